//! Answers from memory that are run for real as well.

mod common;

use common::server::{EMPLOYEES, PARENTS, Server};
use common::wire::Wire;
use common::{Pair, bind, execute, parse, query, sync};
use onetrip_ledger::{Difference, Remedy};
use onetrip_session::SessionError;

const CHILD: &str = "SELECT pay FROM salary WHERE emp = ";

fn simple(number: u32) -> Vec<u8> {
    query(&format!("{CHILD}{}", 3 * number))
}

fn extended(number: u32) -> Vec<u8> {
    let value = (3 * number).to_string();
    [parse("", &format!("{CHILD}$1")), bind("", "", &[&value]), execute(""), sync()].concat()
}

/// A loop in a transaction of which each second answer from memory is verified.
fn looping(ask: fn(u32) -> Vec<u8>, rows: u32) -> Wire {
    let remedies = [Remedy::Begin, Remedy::Loops].into_iter().collect();
    let pair = Pair::verified(remedies, "1/2".parse().expect("it is a fraction"));
    let mut wire = Wire { pair, server: Server { level: "repeatable read", ..Server::default() } };
    wire.turn(b"");
    wire.turn(&query("BEGIN"));
    wire.turn(&query(PARENTS));
    (1..=rows).for_each(|number| drop(wire.turn(&ask(number))));
    wire
}

#[test]
fn every_second_answer_is_run_for_real_and_is_the_same() {
    for ask in [simple, extended] {
        let mut wire = looping(ask, EMPLOYEES);
        wire.turn(&query("COMMIT"));
        let summary = wire.pair.books().summary;
        let removed = summary.removed[&Remedy::Loops];
        assert!(removed > 45, "{removed} from memory: verifying takes no trip");
        assert!(
            (removed / 2..=EMPLOYEES.into()).contains(&summary.verified),
            "{} verified",
            summary.verified
        );
        assert_eq!((summary.differed, summary.differences), (0, Vec::new()));
    }
}

#[test]
fn an_answer_that_is_not_the_servers_is_told_and_is_the_last_from_memory() {
    let mut wire = looping(simple, 20);
    wire.server.raise = 7; // no snapshot does that
    (21..=24).for_each(|number| drop(wire.turn(&simple(number))));
    let ran = wire.server.ran;
    (25..=EMPLOYEES).for_each(|number| drop(wire.turn(&simple(number))));
    assert_eq!(wire.server.ran, ran + EMPLOYEES - 24, "all are the server's now, and none is run ahead");
    let summary = wire.pair.books().summary;
    assert!(summary.differed > 0 && summary.differed < summary.verified);
    let found: &Difference = &summary.differences[0];
    assert!(found.statement.contains("FROM salary") && found.at > 7, "{found:?}");
}

#[test]
fn a_server_that_fails_at_what_was_answered_ends_the_session() {
    let mut wire = looping(extended, 20);
    let error = common::error("ERROR", "57014", "canceling statement due to user request");
    wire.server.refuses.insert(format!("{CHILD}$1"), error);
    let failed = (21..=EMPLOYEES).map(|number| wire.tries(&extended(number))).find(Result::is_err);
    assert_eq!(failed, Some(Err(SessionError::VerifyFailed)));
}
