//! Answers from memory that are run for real as well.

mod common;

use common::objects::{FIRST, READ, close, open, read, seek, tell};
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

/// A transaction that has read an object, in a session of which each second one from memory is verified.
fn reading(level: &'static str) -> Wire {
    let remedies = [Remedy::Begin, Remedy::Lobs].into_iter().collect();
    let pair = Pair::verified(remedies, "1/2".parse().expect("it is a fraction"));
    let mut wire = Wire { pair, server: Server { level, ..Server::default() } };
    wire.turn(b"");
    wire.turn(&query("BEGIN"));
    wire.turn(&query(PARENTS));
    read_object(&mut wire, FIRST - 1);
    wire
}

/// Reads all of an object, as libpq does, the last bytes twice.
fn read_object(wire: &mut Wire, oid: u32) {
    wire.turn(&open(oid, READ));
    wire.turn(&tell(0));
    wire.turn(&seek(0, 0, 2));
    wire.turn(&seek(0, 0, 0));
    wire.turn(&read(0, 60));
    wire.turn(&read(0, 1000));
    wire.turn(&seek(0, -10, 2));
    wire.turn(&read(0, 10));
    wire.turn(&close(0));
}

fn object(number: u32) -> u32 {
    3 * number
}

#[test]
fn every_second_object_is_read_for_real_and_is_the_same() {
    // In REPEATABLE READ they are opened from memory, and so opened once more for this.
    for (level, served, opened) in [("read committed", 8 * 55, 0), ("repeatable read", 9 * 50, 20)] {
        let mut wire = reading(level);
        (1..=EMPLOYEES).for_each(|number| read_object(&mut wire, object(number)));
        let count = |wire: &Wire, name: &str| {
            wire.server.objects.calls.iter().filter(|call| call.starts_with(name)).count()
        };
        assert!(count(&wire, "open") >= 61 + opened, "{level}");
        assert!(count(&wire, "tell 0") >= 25, "{level}: only verifying asks for that");
        assert!(wire.server.objects.open.is_empty());
        let summary = wire.pair.books().summary;
        let removed = summary.removed[&Remedy::Lobs];
        assert!(removed >= served, "{level}: {removed} from memory: verifying takes no trip");
        assert!((28..=30).contains(&summary.verified), "{level}: {} verified", summary.verified);
        assert_eq!((summary.differed, summary.differences), (0, Vec::new()), "{level}");
    }
}

#[test]
fn an_object_that_is_not_the_servers_is_told_and_is_the_last_from_memory() {
    let mut wire = reading("repeatable read");
    (1..=20).for_each(|number| read_object(&mut wire, object(number)));
    let kept = wire.server.objects.calls.len();
    for number in 1..=EMPLOYEES {
        wire.server.objects.written.insert(object(number), vec![7; 200]); // no snapshot does that
    }
    (21..=24).for_each(|number| read_object(&mut wire, object(number)));
    assert!(wire.server.objects.calls.len() > kept);
    let before = wire.server.objects.calls.len();
    (25..=EMPLOYEES).for_each(|number| read_object(&mut wire, object(number)));
    let calls = &wire.server.objects.calls[before..];
    assert_eq!(calls.len(), 9 * (EMPLOYEES as usize - 24), "all are the server's now: {calls:?}");
    let summary = wire.pair.books().summary;
    assert!(summary.differed == 1 && summary.verified > 5, "{} of {}", summary.differed, summary.verified);
    let found: &Difference = &summary.differences[0];
    assert_eq!((&*found.statement, found.at), ("lo_lseek64($1, $2, $3)", 7), "its length is another");
}

#[test]
fn a_server_that_fails_at_an_object_that_was_answered_ends_the_session() {
    let mut wire = reading("repeatable read");
    (1..=20).for_each(|number| read_object(&mut wire, object(number)));
    let mut failed = None;
    for number in 21..=30 {
        [open(object(number), READ), read(0, 1000)].iter().for_each(|sent| drop(wire.turn(sent)));
        wire.server.objects.forbidden.push(954);
        failed = failed.or(wire.tries(&close(0)).err());
        if failed.is_some() {
            break;
        }
        wire.server.objects.forbidden.clear();
    }
    assert_eq!(failed, Some(SessionError::VerifyFailed));
}
