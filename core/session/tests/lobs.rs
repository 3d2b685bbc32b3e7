//! The remedy `lobs`, rule by rule: each test here is the one that goes red when its rule is left out of the build.

mod common;

use std::sync::Arc;

use common::objects::{FIRST, READ, READ_WRITE, close, open, read, seek, tell};
use common::server::{EMPLOYEES, PARENTS, Server};
use common::wire::Wire;
use common::{error, message, query, ready};
use onetrip_ledger::Remedy;
use onetrip_session::{Rule, SessionError};

fn begun(level: &'static str) -> Wire {
    let server = Server { level, ..Server::default() };
    let mut wire = Wire::new(Arc::default(), [Remedy::Begin, Remedy::Lobs], server);
    wire.turn(&query("BEGIN"));
    wire.turn(&query(PARENTS));
    wire
}

/// What a call returns in a transaction.
fn value(bytes: &[u8]) -> Vec<u8> {
    [message(b'V', &[&(bytes.len() as u32).to_be_bytes(), bytes].concat()), ready(b'T')].concat()
}

fn object(oid: u32) -> Vec<u8> {
    (0..100 + oid).map(|at| (at * 7 + oid) as u8).collect()
}

fn calls(wire: &Wire) -> usize {
    wire.server.objects.calls.len()
}

/// Reads an object as libpq does, and looks at each answer.
fn read_whole(wire: &mut Wire, oid: u32) {
    let bytes = object(oid);
    let size = bytes.len() as i64;
    assert_eq!(wire.turn(&open(oid, READ)), value(&0i32.to_be_bytes()));
    assert_eq!(wire.turn(&tell(0)), value(&0i64.to_be_bytes()));
    assert_eq!(wire.turn(&seek(0, 0, 2)), value(&size.to_be_bytes()));
    assert_eq!(wire.turn(&seek(0, 0, 0)), value(&0i64.to_be_bytes()));
    assert_eq!(wire.turn(&read(0, size as i32)), value(&bytes));
    assert_eq!(wire.turn(&read(0, 10)), value(b""));
    assert_eq!(wire.turn(&close(0)), value(&0i32.to_be_bytes()));
}

/// Calls of the program's that did not start a trip.
fn served(wire: Wire) -> u64 {
    wire.pair.books().summary.removed.get(&Remedy::Lobs).copied().unwrap_or(0)
}

#[test]
fn an_object_costs_the_trip_that_opens_it() {
    let mut wire = begun("read committed");
    (0..10).for_each(|number| read_whole(&mut wire, FIRST + 3 * number + 1)); // no row names them
    let closed = wire.server.objects.calls.iter().filter(|call| *call == "close 0").count();
    assert_eq!(closed, 10, "each is closed on the server as well");
    assert!(served(wire) >= 9 * 6);
}

#[test]
fn objects_of_a_loop_are_opened_from_memory() {
    let mut wire = begun("repeatable read");
    for oid in (1..=EMPLOYEES).map(|number| 3 * number) {
        assert_eq!(wire.turn(&open(oid, READ)), value(&0i32.to_be_bytes()));
        assert_eq!(wire.turn(&read(0, 1000)), value(&object(oid)));
        assert_eq!(wire.turn(&close(0)), value(&0i32.to_be_bytes()));
    }
    assert!(wire.server.objects.open.is_empty());
    assert!(served(wire) > 50 * 3, "opened and read from memory");
}

#[test]
fn an_object_that_is_not_there_fails_as_it_does() {
    let mut wire = begun("read committed");
    (0..3).for_each(|number| read_whole(&mut wire, FIRST + 3 * number));
    wire.server.objects.forbidden.push(952);
    let failed = [error("ERROR", "42501", "permission denied for function"), ready(b'E')].concat();
    assert_eq!(wire.turn(&open(FIRST, READ)), failed);
    assert_eq!(wire.server.status, b'E');
    assert!(wire.turn(&query("ROLLBACK")).ends_with(&ready(b'I')));
}

/// L1.
#[test]
fn a_descriptor_that_may_write_reads_what_is_there() {
    let mut wire = begun("read committed");
    (0..3).for_each(|number| read_whole(&mut wire, FIRST + 3 * number));
    wire.turn(&open(FIRST, READ_WRITE));
    wire.server.objects.written.insert(FIRST, b"newer".to_vec());
    assert_eq!(wire.turn(&read(0, 200)), value(b"newer"));
}

/// L2.
#[test]
fn only_in_repeatable_read_an_object_is_opened_ahead() {
    let mut wire = begun("read committed");
    (1..=20).for_each(|number| read_whole(&mut wire, 3 * number));
    let before = wire.server.objects.calls.len();
    wire.turn(&open(63, READ));
    let opened = wire.server.objects.calls[before..].iter().filter(|call| call.starts_with("open"));
    assert_eq!(opened.collect::<Vec<_>>(), [&format!("open 63 {READ}")]);
    wire.server.objects.written.insert(66, b"newer".to_vec());
    wire.turn(&close(0));
    wire.turn(&open(66, READ));
    assert_eq!(wire.turn(&read(0, 5)), value(b"newer"));
}

/// L3.
#[test]
fn nothing_is_read_ahead_before_the_program_has_read() {
    let mut wire = begun("read committed");
    (0..3).for_each(|number| read_whole(&mut wire, FIRST + 3 * number));
    wire.turn(&query("COMMIT"));
    wire.turn(&query("BEGIN"));
    let before = calls(&wire);
    wire.turn(&open(FIRST, READ));
    assert_eq!(wire.server.objects.calls[before..], [format!("open {FIRST} {READ}")]);
    // A read of no bytes takes no lock.
    wire.turn(&read(0, 0));
    assert!(calls(&wire) <= before + 2, "{:?}", &wire.server.objects.calls[before..]);
    let before = calls(&wire);
    wire.turn(&read(0, 200));
    assert!(calls(&wire) > before + 2, "now it is");
}

/// L4.
#[test]
fn descriptors_are_in_their_places_before_anything_can_tell() {
    for level in ["read committed", "repeatable read"] {
        let mut wire = begun(level);
        (1..=9).for_each(|number| read_whole(&mut wire, 3 * number));
        wire.turn(&open(30, READ));
        wire.turn(&read(0, 10));
        wire.turn(&open(33, READ));
        wire.turn(&read(1, 20));
        wire.turn(&close(0));
        wire.turn(&query("SELECT touch()"));
        let open: Vec<(i32, u32, usize)> =
            wire.server.objects.open.iter().map(|(fd, (oid, place, _))| (*fd, *oid, *place)).collect();
        assert_eq!(open, [(1, 33, 20)], "{level}");
        assert_eq!(wire.turn(&read(1, 5)), value(&object(33)[20..25]));
        wire.turn(&query("SAVEPOINT s1"));
        wire.turn(&query("ROLLBACK TO s1"));
        assert_eq!(wire.turn(&read(1, 5)), value(&object(33)[25..30]));
    }
}

/// L5.
#[test]
fn an_object_that_is_unlinked_is_gone() {
    let mut wire = begun("read committed");
    (0..3).for_each(|number| read_whole(&mut wire, FIRST + 3 * number));
    wire.turn(&open(FIRST, READ));
    wire.turn(&read(0, 10));
    wire.turn(&query(&format!("SELECT lo_unlink({FIRST})")));
    let failed = [error("ERROR", "42704", "invalid large-object descriptor"), ready(b'E')].concat();
    assert_eq!(wire.turn(&read(0, 10)), failed);
    wire.turn(&query("ROLLBACK"));
    wire.turn(&query("BEGIN"));
    (1..4).for_each(|number| read_whole(&mut wire, FIRST + 3 * number));
    wire.turn(&query("SAVEPOINT s1"));
    wire.turn(&open(30, READ));
    wire.turn(&read(0, 10));
    wire.turn(&query("ROLLBACK TO s1"));
    assert_eq!(wire.turn(&read(0, 10)), failed);
}

/// L6.
#[test]
fn a_descriptor_of_another_number_ends_the_session() {
    let mut wire = begun("read committed");
    (0..3).for_each(|number| read_whole(&mut wire, FIRST + 3 * number));
    wire.server.objects.shift = 1;
    assert_eq!(wire.tries(&open(FIRST, READ)), Err(SessionError::LobsBroke));
}

/// L7.
#[test]
fn a_function_that_was_not_called_is_asked_of_the_server() {
    let mut wire = begun("read committed");
    for _ in 0..3 {
        wire.turn(&open(FIRST, READ));
        wire.turn(&read(0, 200));
        wire.turn(&close(0));
    }
    wire.server.objects.forbidden.push(3171);
    wire.turn(&open(FIRST, READ));
    let failed = [error("ERROR", "42501", "permission denied for function"), ready(b'E')].concat();
    assert_eq!(wire.turn(&tell(0)), failed);
}

/// L8.
#[test]
fn a_close_that_fails_ends_the_session() {
    let mut wire = begun("read committed");
    (0..3).for_each(|number| read_whole(&mut wire, FIRST + 3 * number));
    wire.turn(&open(FIRST, READ));
    wire.server.objects.close_fails = true;
    assert_eq!(wire.tries(&close(0)), Err(SessionError::LobsBroke));
}

#[test]
fn every_rule_names_a_test_of_this_file() {
    let here = include_str!("lobs.rs");
    for rule in Rule::ALL.into_iter().filter(|rule| rule.name().starts_with('L')) {
        assert!(here.contains(&format!("/// {}.\n#[test]\nfn {}()", rule.name(), rule.test())), "{rule:?}");
    }
}
