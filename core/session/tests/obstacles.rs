//! What the books say of units that remedies left to the server.

mod common;

use std::sync::Arc;

use common::query;
use common::server::{EMPLOYEES, PARENTS, Server};
use common::wire::Wire;
use onetrip_ledger::{Code, Obstacle, Remedy};

/// The obstacles of those of these texts that have one, in order, to a program that has read in a transaction before.
fn obstacles(level: &'static str, texts: &[&str]) -> Vec<Obstacle> {
    let server = Server { level, ..Server::default() };
    let mut wire =
        Wire::new(Arc::default(), [Remedy::Begin, Remedy::Commit, Remedy::Loops, Remedy::Repeats], server)
            .warmed();
    for text in texts {
        wire.turn(&query(text));
    }
    let exchanges = wire.pair.books().exchanges;
    exchanges[exchanges.len() - texts.len()..].iter().filter_map(|exchange| exchange.obstacle).collect()
}

#[test]
fn a_read_that_is_left_says_what_kept_remedies_from_it() {
    use Obstacle as O;
    let of = |level, text| obstacles(level, &["BEGIN", text, text]);
    assert_eq!(obstacles("read committed", &[PARENTS]), [O::NoTransaction]);
    assert_eq!(of("read committed", PARENTS), [O::LevelUnknown, O::ReadCommitted], "asked behind the first");
    assert_eq!(of("serializable", PARENTS), [O::LevelUnknown, O::Serializable]);
    assert_eq!(of("repeatable read", PARENTS), [O::LevelUnknown], "the second is answered by the first");
    assert_eq!(of("repeatable read", "SELECT touch(7)"), [O::Impure; 2], "the level does not matter");
}

#[test]
fn the_end_of_a_transaction_that_wrote_is_left_for_that() {
    let texts = ["BEGIN", "UPDATE emp SET name = 'x' WHERE id = 7", "COMMIT"];
    assert_eq!(obstacles("read committed", &texts), [Obstacle::Wrote]);
}

#[test]
fn a_loop_is_booked_with_what_was_taken_out_of_it_and_what_was_left() {
    let server = Server { level: "repeatable read", ..Server::default() };
    let mut wire = Wire::new(Arc::default(), [Remedy::Begin, Remedy::Loops], server).warmed();
    wire.turn(&query("BEGIN"));
    wire.turn(&query(PARENTS));
    for number in 1..=EMPLOYEES {
        wire.turn(&query(&format!("SELECT pay FROM salary WHERE emp = {}", 3 * number)));
    }
    let summary = wire.pair.books().summary;
    let removed = summary.removed[&Remedy::Loops];
    let found =
        summary.findings.iter().find(|finding| finding.code == Code::Loop).expect("the loop is found");
    assert!(removed > 45 && found.removed == removed, "{} of {removed}", found.removed);
    assert_eq!(found.trips + found.removed, u64::from(EMPLOYEES));
    assert_eq!(found.left.iter().collect::<Vec<_>>(), [(&Obstacle::Unforeseen, &found.trips)]);
}
