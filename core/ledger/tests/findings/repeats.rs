//! OT005.

use onetrip_ledger::Code;

use crate::traffic::{MILLISECOND, Traffic};

#[test]
fn one_question_asked_again_is_counted_until_something_is_written() {
    let mut traffic = Traffic::new();
    traffic.begin();
    for _ in 0..4 {
        traffic.run("SELECT * FROM settings WHERE id = $1", &[5]);
    }
    traffic.run("UPDATE settings SET v = $1", &[6]);
    for _ in 0..2 {
        traffic.run("SELECT * FROM settings WHERE id = $1", &[5]);
    }
    traffic.commit();
    assert_eq!(traffic.found(), [(Code::Repeated, 3)]);
}

#[test]
fn pings_and_polls_are_not_repeats() {
    let mut traffic = Traffic::new();
    for _ in 0..10 {
        traffic.run("SELECT 1", &[]);
    }
    traffic.think = 50 * MILLISECOND;
    for _ in 0..10 {
        traffic.run("SELECT state FROM jobs WHERE id = $1", &[5]);
    }
    assert_eq!(traffic.found(), [(Code::SessionChatter, 10)]);
}

#[test]
fn what_changes_the_meaning_of_a_text_ends_its_repeats() {
    for between in ["USE other", "SELECT id INTO @n FROM sources LIMIT $1", "SELECT @n:=max(id) FROM sources"]
    {
        let mut traffic = Traffic::new();
        for _ in 0..8 {
            traffic.run("SELECT count(*) FROM settings", &[]);
            traffic.run(between, &[]);
        }
        assert_eq!(traffic.avoidable(Code::Repeated), 0, "{between}");
    }
    let mut traffic = Traffic::new();
    for _ in 0..8 {
        traffic.run("SELECT get_lock(name, $1) FROM settings", &[7]);
    }
    assert_eq!(traffic.avoidable(Code::Repeated), 0);
}
