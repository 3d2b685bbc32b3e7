//! The remedy `loops`, rule by rule: each test here is the one that goes red when its rule is left out of the build.

mod common;

use std::sync::Arc;

use common::server::{EMPLOYEES, PARENTS, Server, messages};
use common::wire::Wire;
use common::{PRIVATE, bind, complete, execute, message, notice, parameter, parse, query, ready, row, sync};
use onetrip_ledger::Remedy;
use onetrip_session::{Rule, SessionError};

const CHILD: &str = "SELECT pay FROM salary WHERE emp = ";

fn repeatable() -> Server {
    Server { level: "repeatable read", ..Server::default() }
}

/// A program that has begun a transaction and read the parents.
fn looping(server: Server) -> Wire {
    let mut wire = Wire::new(Arc::default(), [Remedy::Begin, Remedy::Loops], server).warmed();
    wire.turn(&query("BEGIN"));
    wire.turn(&query(PARENTS));
    wire
}

fn child(number: u32) -> Vec<u8> {
    query(&format!("{CHILD}{}", 3 * number))
}

/// The same as an extended group with unnamed objects.
fn group(number: u32) -> Vec<u8> {
    let describe = message(b'D', b"P\0");
    let value = (3 * number).to_string();
    [parse("", &format!("{CHILD}$1")), bind("", "", &[&value]), describe, execute(""), sync()].concat()
}

/// What the salary of parent `number` is, as the server would say it.
fn pay(number: u32, raise: u32) -> Vec<u8> {
    let pay = 1000 + 3 * number + raise;
    [row(pay.to_string().as_bytes()), complete("SELECT 1"), ready(b'T')].concat()
}

/// Statements answered from memory.
fn served(wire: Wire) -> u64 {
    wire.pair.books().summary.removed.get(&Remedy::Loops).copied().unwrap_or(0)
}

#[test]
fn a_loop_is_answered_from_memory_and_every_answer_is_the_servers() {
    for ask in [child, group] {
        let mut wire = looping(repeatable());
        for number in 1..=EMPLOYEES {
            let told = wire.turn(&ask(number));
            assert!(told.ends_with(&pay(number, 0)), "{number}: {}", told.escape_ascii());
        }
        let ran = u64::from(wire.server.ran);
        assert!(ran <= 2 * u64::from(EMPLOYEES), "{ran} statements for {EMPLOYEES}");
        assert!(served(wire) > 45);
    }
}

/// Parse and Describe of a statement with a name; a Flush or a Sync is to follow.
fn prepared(name: &str, text: &str) -> Vec<u8> {
    [parse(name, text), message(b'D', &[b"S", name.as_bytes(), b"\0"].concat())].concat()
}

fn run(name: &str, values: &[&str]) -> Vec<u8> {
    [bind("", name, values), execute(""), sync()].concat()
}

/// Prepares both statements by units that end so, and walks the list.
fn walk_prepared(wire: &mut Wire, end: &[u8]) {
    let prepare = |wire: &mut Wire, name: &str, text: &str| {
        // What is answered before the server has spoken is not waited for.
        if wire.pair.told(&[&prepared(name, text), end].concat()).is_empty() {
            wire.turn(b"");
        }
    };
    wire.turn(&query("BEGIN"));
    prepare(wire, "list", PARENTS);
    wire.turn(&run("list", &[]));
    prepare(wire, "child", &format!("{CHILD}$1"));
    for number in 1..=EMPLOYEES {
        let told = wire.turn(&run("child", &[&(3 * number).to_string()]));
        assert!(told.ends_with(&pay(number, 0)), "{number}: {}", told.escape_ascii());
    }
}

/// As asyncpg does: a Flush behind Parse and Describe, and the first run in the group that it leaves open.
#[test]
fn a_list_that_is_run_behind_a_flush_is_one_that_loops_walk() {
    let mut wire = Wire::new(Arc::default(), [Remedy::Begin, Remedy::Loops], repeatable()).warmed();
    walk_prepared(&mut wire, &message(b'H', b""));
    let ran = wire.server.ran;
    assert!(
        ran < 1 + EMPLOYEES + 16,
        "{ran} statements: one that counts on without the list runs beyond its end"
    );
    assert!(served(wire) > 45);
}

#[test]
fn a_list_whose_parse_was_answered_before_is_one_that_loops_walk() {
    let common = Arc::default();
    let session = || {
        let mut server = repeatable();
        let row = [b"\0\x01id\0", &[0; 6][..], &25u32.to_be_bytes(), &[0xff; 6], &[0; 2]].concat();
        server.describes.insert(PARENTS.to_owned(), (vec![], Some(row.clone())));
        server.describes.insert(format!("{CHILD}$1"), (vec![23], Some(row)));
        let remedies = [Remedy::Begin, Remedy::Loops, Remedy::Statements];
        let mut wire = Wire::new(Arc::clone(&common), remedies, server).warmed();
        // Behind its first Parse the session's settings are known.
        wire.turn(&[prepared("first", "SELECT pay FROM salary"), sync()].concat());
        wire
    };
    walk_prepared(&mut session(), &sync());
    let mut wire = session();
    walk_prepared(&mut wire, &sync());
    let ran = wire.server.ran;
    assert!(
        ran < 1 + EMPLOYEES + 16,
        "{ran} statements: one that counts on without the list runs beyond its end"
    );
    let removed = wire.pair.books().summary.removed;
    assert!(removed[&Remedy::Statements] >= 2 && removed[&Remedy::Loops] > 45, "{removed:?}");
}

#[test]
fn a_program_that_asks_before_the_answer_is_there_waits_for_it() {
    let mut wire = looping(repeatable());
    for number in 1..=6 {
        wire.turn(&child(number));
    }
    // The server is slow: the answers of the flight have not come.
    let ahead = wire.pair.client(&child(20)).unwrap();
    let said = wire.server.takes(&ahead);
    assert_eq!(wire.pair.told(&child(21)), b"", "it waits, or goes to the server");
    wire.pair.server(&said).unwrap();
    assert!(wire.turn(b"").ends_with(&pay(21, 0)));
}

/// D1.
#[test]
fn an_identical_read_is_answered_by_the_first_until_something_is_written() {
    let repeats = |remedies: &[Remedy]| {
        let mut wire = Wire::new(Arc::default(), remedies.iter().copied(), repeatable()).warmed();
        wire.turn(&query("BEGIN"));
        for number in [7, 20, 7, 7] {
            assert!(wire.turn(&child(number)).ends_with(&pay(number, 0)));
        }
        wire.turn(&query("UPDATE salary SET pay = pay + 1"));
        assert!(wire.turn(&child(7)).ends_with(&pay(7, 1)), "its own write is seen");
        let ran = wire.server.ran;
        (ran, wire.pair.books().summary.removed.get(&Remedy::Repeats).copied().unwrap_or(0))
    };
    let on = [Remedy::Begin, Remedy::Repeats];
    assert_eq!(repeats(&on), (4, 2));
    assert_eq!(repeats(&[Remedy::Begin, Remedy::Loops]).1, 0, "it can be left out");
}

/// P1.
#[test]
fn only_a_repeatable_read_is_answered_from_memory() {
    let mut wire = looping(Server::default());
    (1..=EMPLOYEES).for_each(|number| assert!(wire.turn(&child(number)).ends_with(&pay(number, 0))));
    assert_eq!(wire.server.ran, 1 + EMPLOYEES, "READ COMMITTED: each sees what others have committed");
    assert_eq!(served(wire), 0);
    let mut wire = Wire::new(Arc::default(), [Remedy::Begin, Remedy::Repeats], Server::default()).warmed();
    wire.turn(&query("BEGIN"));
    (0..2).for_each(|_| drop(wire.turn(&child(7))));
    assert_eq!(wire.server.ran, 2, "not even what it has read itself");
    for begin in ["BEGIN", "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY"] {
        assert_eq!(served_at_serializable(&[begin]), 0, "what is read matters to others");
    }
    assert_eq!(served_at_serializable(&[SAFE, "SET TRANSACTION NOT DEFERRABLE"]), 0);
}

const SAFE: &str = "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE";

/// Answers from memory in a transaction that begins so.
fn served_at_serializable(opening: &[&str]) -> u64 {
    let server = Server { level: "serializable", ..Server::default() };
    let mut wire = Wire::new(Arc::default(), [Remedy::Begin, Remedy::Loops], server).warmed();
    opening.iter().for_each(|text| drop(wire.turn(&query(text))));
    wire.turn(&query(PARENTS));
    (1..=EMPLOYEES).for_each(|number| assert!(wire.turn(&child(number)).ends_with(&pay(number, 0))));
    served(wire)
}

#[test]
fn a_safe_snapshot_is_as_good_as_one_of_repeatable_read() {
    assert!(served_at_serializable(&[SAFE]) > 45);
}

/// P4.
#[test]
fn only_what_is_proven_to_read_is_answered_from_memory() {
    let mut wire = looping(repeatable());
    for number in 1..=EMPLOYEES {
        wire.turn(&query(&format!("SELECT touch() FROM salary WHERE emp = {}", 3 * number)));
    }
    assert_eq!(wire.server.ran, 1 + EMPLOYEES, "a function of a user may do anything");
    assert_eq!(served(wire), 0);
}

#[test]
fn behind_a_write_everything_is_the_servers() {
    for write in ["UPDATE salary SET pay = pay + 1", "UPDATE SALARY SET pay = pay + 1 WHERE touch()"] {
        let mut wire = looping(repeatable());
        (1..=40).for_each(|number| assert!(wire.turn(&child(number)).ends_with(&pay(number, 0))));
        wire.turn(&query(write));
        (41..=50).for_each(|number| assert!(wire.turn(&child(number)).ends_with(&pay(number, 1))));
    }
}

/// P7.
#[test]
fn nothing_is_kept_over_anything_else() {
    let mut wire = looping(repeatable());
    (1..=40).for_each(|number| assert!(wire.turn(&child(number)).ends_with(&pay(number, 0))));
    // The server's configuration is read anew, and values are written in another way.
    wire.pair.server(&parameter("DateStyle", "German")).unwrap();
    wire.server.raise = 1;
    (41..=50).for_each(|number| assert!(wire.turn(&child(number)).ends_with(&pay(number, 1)), "{number}"));
}

/// P9.
#[test]
fn a_shield_that_does_not_end_ends_the_session() {
    let mut wire = Wire::new(Arc::default(), [Remedy::Begin, Remedy::Loops], repeatable());
    wire.turn(&query("BEGIN"));
    wire.server.shield_fails = true;
    assert_eq!(
        wire.tries(&query(PARENTS)),
        Err(SessionError::ShieldBroken),
        "what is asked has a shield, too"
    );

    let mut wire = looping(repeatable());
    wire.server.shield_fails = true;
    let mut outcome = Ok(Vec::new());
    for number in 1..=8 {
        let sent = wire.pair.client(&child(number)).unwrap();
        let said = wire.server.takes(&sent);
        outcome = wire.pair.server(&said);
        if outcome.is_err() {
            break;
        }
    }
    assert_eq!(outcome, Err(SessionError::ShieldBroken));
    let told = wire.pair.session.to_client().escape_ascii().to_string();
    assert!(told.contains("FATAL") && told.contains("08006"), "{told}");
}

#[test]
fn what_fails_ahead_is_run_when_the_program_asks() {
    let mut wire = looping(repeatable());
    (1..=8).for_each(|number| drop(wire.turn(&child(number))));
    // From here on the server cannot run ahead: its savepoints fail.
    wire.server.begin_fails = true;
    (9..=EMPLOYEES)
        .for_each(|number| assert!(wire.turn(&child(number)).ends_with(&pay(number, 0)), "{number}"));
}

/// P10.
#[test]
fn an_answer_with_a_notice_is_the_servers() {
    let mut wire = looping(repeatable());
    wire.server.warns = true;
    for number in 1..=40 {
        let told = wire.turn(&child(number));
        assert!(told.ends_with(&pay(number, 0)), "{number}: {}", told.escape_ascii());
        assert!(told.windows(notice().len()).any(|part| part == notice()), "{number}");
    }
}

/// P11.
#[test]
fn what_is_read_ahead_waits_for_no_lock() {
    let mut wire = looping(repeatable());
    (1..=8).for_each(|number| drop(wire.turn(&child(number))));
    let texts = &wire.server.texts;
    let heads = texts.windows(2).filter(|pair| pair[0].starts_with("SAVEPOINT onetrip_"));
    let settings: Vec<&String> = heads.map(|pair| &pair[1]).collect();
    assert!(!settings.is_empty());
    for text in settings {
        let sets = |what| text.contains(&format!("set_config({what}, true)"));
        assert!(
            sets("'lock_timeout', '2ms'")
                && sets("'statement_timeout', '100ms'")
                && sets("'transaction_read_only', 'on'"),
            "{text}"
        );
    }
}

/// P14.
#[test]
fn an_answer_of_two_seconds_ago_is_read_again() {
    let mut wire = looping(repeatable());
    (1..=40).for_each(|number| drop(wire.turn(&child(number))));
    wire.pair.wait(1_900_000_000);
    assert!(wire.is_answered(&child(41)));
    wire.pair.wait(200_000_000);
    assert!(!wire.is_answered(&child(42)));
}

/// P18.
#[test]
fn the_server_sees_a_program_that_is_served_from_memory() {
    let mut wire = looping(repeatable());
    (1..=40).for_each(|number| drop(wire.turn(&child(number))));
    wire.pair.wait(50_000_000);
    assert!(wire.is_answered(&child(41)));
    let sent = wire.pair.client(b"").unwrap();
    assert!(messages(&sent).any(|(tag, _)| tag == b'S'), "the server is shown that the program is there");
}

/// P22.
#[test]
fn unnamed_objects_are_what_the_program_believes() {
    let mut wire = looping(repeatable());
    (1..=40).for_each(|number| drop(wire.turn(&group(number))));
    wire.turn(&[parse("", PARENTS), sync()].concat());
    (41..=46).for_each(|number| drop(wire.turn(&group(number))));
    // The unnamed statement is the child's for the program, and must be that for the server.
    let told = wire.turn(&[bind("", "", &["9"]), execute(""), sync()].concat());
    assert!(told.ends_with(&pay(3, 0)), "{}", told.escape_ascii());
}

#[test]
fn what_was_answered_is_not_run_for_a_unit_that_does_not_use_it() {
    for first in [group, bound] {
        let mut wire = looping(repeatable());
        wire.turn(&[parse("", &format!("{CHILD}$1")), sync()].concat());
        (1..=40).for_each(|number| drop(wire.turn(&group(number))));
        wire.turn(&first(41));
        for other in [
            [parse("", PARENTS), sync()].concat(),
            [message(b'C', b"P\0"), sync()].concat(),
            [parse("other", PARENTS), sync()].concat(),
        ] {
            let sent = wire.pair.client(&other).expect("good messages");
            assert_eq!(sent, other, "{}", sent.escape_ascii());
            let told = wire.server.takes(&sent);
            wire.pair.server(&told).expect("good messages");
        }
    }
}

/// A run of the statement that is there.
fn bound(number: u32) -> Vec<u8> {
    [bind("", "", &[&(3 * number).to_string()]), message(b'D', b"P\0"), execute(""), sync()].concat()
}

#[test]
fn a_portal_outlives_its_statement_also_where_it_was_answered_from_memory() {
    if !Rule::Unnamed.is_kept() {
        return;
    }
    let mut wire = looping(repeatable());
    (1..=46).for_each(|number| drop(wire.turn(&group(number))));
    wire.turn(&[parse("", PARENTS), sync()].concat());
    let asked = [message(b'D', b"P\0"), sync()].concat();
    let sent = wire.pair.client(&asked).expect("good messages");
    let tags: Vec<u8> = messages(&sent).map(|(tag, _)| tag).collect();
    assert_eq!(tags, b"PBDECDS", "{}", sent.escape_ascii());
    let text = format!("{CHILD}$1");
    assert!(sent.windows(text.len()).any(|part| part == text.as_bytes()), "{}", sent.escape_ascii());
    let told = wire.pair.server(&wire.server.takes(&sent)).expect("good messages");
    let tags: Vec<u8> = messages(&told).map(|(tag, _)| tag).collect();
    assert_eq!(tags, b"TZ", "{}", told.escape_ascii());
}

/// P24.
#[test]
fn the_shield_has_a_name_that_no_program_can_guess() {
    let mut wire = looping(repeatable());
    (1..=8).for_each(|number| drop(wire.turn(&child(number))));
    let names = wire.server.texts.iter().filter_map(|text| text.strip_prefix("SAVEPOINT "));
    let names: Vec<&str> = names.collect();
    let secret = format!("onetrip_{:016x}", u64::from_be_bytes(PRIVATE));
    assert!(!names.is_empty() && names.iter().all(|name| *name == secret), "{names:?}");
}

#[test]
fn a_failed_transaction_closes_what_was_answered_from_memory() {
    let mut wire = looping(repeatable());
    (1..=46).for_each(|number| drop(wire.turn(&group(number))));
    wire.turn(&[bind("", "nobody", &[]), sync()].concat());
    for what in [b"P\0", b"S\0"] {
        let told = wire.turn(&[message(b'C', what), sync()].concat());
        assert_eq!(told, [message(b'3', b""), ready(b'E')].concat(), "{}", told.escape_ascii());
    }
}

#[test]
fn a_failed_transaction_says_itself_whether_there_is_an_unnamed_statement() {
    let mut wire = Wire::new(Arc::default(), [Remedy::Begin, Remedy::Loops], repeatable()).warmed();
    walk_prepared(&mut wire, &sync());
    wire.turn(&[bind("", "nobody", &[]), sync()].concat());
    let asked = [message(b'D', b"S\0"), sync()].concat();
    let sent = wire.pair.client(&asked).unwrap();
    assert_eq!(sent, asked, "{}", sent.escape_ascii());
    assert!(served(wire) > 45);
}

#[test]
fn what_another_remedy_sends_is_the_unnamed_statement_from_then_on() {
    let mut wire =
        Wire::new(Arc::default(), [Remedy::Begin, Remedy::Commit, Remedy::Loops], repeatable()).warmed();
    wire.turn(&query("BEGIN"));
    wire.turn(&query(PARENTS));
    (1..=40).for_each(|number| drop(wire.turn(&group(number))));
    let end = [bind("", "", &[]), execute(""), sync()].concat();
    wire.turn(&[parse("", "COMMIT"), end.clone()].concat());
    let told = wire.turn(&end);
    assert!(told.ends_with(&[complete("COMMIT"), ready(b'I')].concat()), "{}", told.escape_ascii());
}

#[test]
fn every_rule_names_a_test_of_this_file() {
    let here = include_str!("loops.rs");
    for rule in Rule::ALL.into_iter().filter(|rule| rule.name().starts_with('P')) {
        assert!(here.contains(&format!("/// {}.\n#[test]\nfn {}()", rule.name(), rule.test())), "{rule:?}");
    }
}
