//! No finding hangs on how many milliseconds a gap takes.

use onetrip_ledger::Code;

use crate::traffic::{CHILD, MILLISECOND, Traffic, found};

/// One run with loops, batches, pairs, repeats and separate requests in it, all gaps so many times as long.
fn replayed(stretch: u64) -> Traffic {
    let mut traffic = Traffic::new();
    traffic.stretch = stretch;
    let authors: Vec<u64> = (0..20).map(|number| 700 + 13 * number).collect();
    traffic.list("SELECT id, flag FROM authors", &authors);
    authors.iter().for_each(|author| traffic.run(CHILD, &[*author]));
    traffic.begin();
    (0..20).for_each(|number| traffic.run("INSERT INTO visits (post_id) VALUES ($1)", &[1_000 + number]));
    traffic.commit();
    // The program works a while on each row.
    traffic.think = 2 * MILLISECOND;
    for number in 0..15 {
        traffic.run("SELECT title FROM posts WHERE id = $1", &[5_000 + (number * 37) % 101]);
    }
    for number in 0..8 {
        traffic.run("SELECT balance FROM accounts WHERE id = $1", &[900 - number * 3]);
        traffic.run("UPDATE accounts SET balance = 7 WHERE id = $1", &[900 - number * 3]);
    }
    (0..6).for_each(|_| traffic.run("SELECT name FROM shops WHERE id = $1", &[3]));
    // Requests of a page each, told apart by the time between them.
    for request in 0..30 {
        traffic.think = 300 * MILLISECOND;
        traffic.run("SELECT user_id FROM sessions WHERE token = $1", &[90_000 + (request * 7919) % 4_001]);
        traffic.think = MILLISECOND / 10;
        traffic.run("SELECT name FROM users WHERE id = $1", &[40_000 + (request * 7919) % 4_001]);
    }
    traffic
}

#[test]
fn a_run_replayed_with_longer_gaps_has_the_same_findings() {
    let once = replayed(1).findings();
    let mut codes = found(&once);
    codes.sort();
    let expected = [
        (Code::Loop, 19),
        (Code::RowByRow, 19),
        (Code::CommitPerRow, 7),
        (Code::Repeated, 5),
        (Code::OnePerValue, 14),
        (Code::ReadBeforeWrite, 8),
    ];
    assert_eq!(codes, expected);
    for stretch in [5, 20] {
        let longer = replayed(stretch).findings();
        assert_eq!(found(&longer), found(&once), "{stretch} times as long");
        let evidence = |of: &[onetrip_ledger::Finding]| -> Vec<_> {
            of.iter().map(|finding| finding.evidence.clone()).collect()
        };
        assert_eq!(evidence(&longer), evidence(&once), "{stretch} times as long");
    }
}

#[test]
fn a_loop_that_works_on_each_row_is_one_however_long_it_works() {
    for think in [1, 6, 9, 45, 2_000] {
        let mut traffic = Traffic::new();
        traffic.think = think * MILLISECOND;
        traffic.begin();
        (0..40).for_each(|number| traffic.run("INSERT INTO visits (post_id) VALUES ($1)", &[1_000 + number]));
        traffic.commit();
        for number in 0..15 {
            traffic.run("SELECT title FROM posts WHERE id = $1", &[5_000 + (number * 37) % 101]);
        }
        let mut codes = traffic.found();
        codes.sort();
        assert_eq!(codes, [(Code::RowByRow, 39), (Code::OnePerValue, 14)], "{think} ms");
    }
}
