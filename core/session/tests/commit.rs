//! The remedy `commit`, rule by rule: each test here is the one that goes red when its rule is left out of the build.

mod common;

use std::sync::Arc;

use common::server::Server;
use common::wire::Wire;
use common::{PROCESS_ID, bind, complete, error, execute, message, parse, query, ready, sync};
use onetrip_ledger::{Moment, Remedy};
use onetrip_session::{Common, Rule, SessionError};

const READ: &str = "SELECT name FROM emp WHERE id = 7";

fn alone(server: Server) -> Wire {
    among(Arc::default(), server)
}

fn among(common: Arc<Common>, server: Server) -> Wire {
    Wire::new(common, [Remedy::Begin, Remedy::Commit], server)
}

/// A transaction has been read and ended, so that its statement is known to only read (the server is asked behind it); then
/// these texts have run.
fn with(server: Server, texts: &[&str]) -> Wire {
    let mut wire = alone(server);
    for text in ["BEGIN", READ, "COMMIT"].iter().chain(texts) {
        wire.turn(&query(text));
    }
    wire
}

fn committed() -> Vec<u8> {
    [complete("COMMIT"), ready(b'I')].concat()
}

#[test]
fn a_transaction_that_only_read_is_answered_at_once_and_ended_on_the_server() {
    let mut wire = with(Server::default(), &["BEGIN", READ, "SHOW TimeZone", READ]);
    assert_eq!(wire.pair.told(&query("COMMIT")), committed());
    let sent = wire.pair.client(b"").unwrap();
    assert_eq!(sent, query("COMMIT"), "sent along as it is");
    let said = wire.server.takes(&sent);
    assert_eq!(wire.pair.server(&said).unwrap(), b"", "the program has its answer");
    assert_eq!(wire.turn(&query(READ)), [complete("SELECT 1"), ready(b'I')].concat());
    let removed = wire.pair.books().summary.removed;
    assert_eq!(removed.get(&Remedy::Begin), Some(&2));
    let is_first_asked_for = removed.get(&Remedy::Commit) == Some(&1);
    assert!(is_first_asked_for || !Rule::OnlyReads.is_kept(), "not the first end");
}

#[test]
fn the_next_transaction_goes_behind_one_that_is_not_yet_over() {
    let mut wire = with(Server::default(), &["BEGIN", READ]);
    for told in [wire.pair.told(&query("ROLLBACK")), wire.pair.told(&query("BEGIN"))] {
        assert!(!told.is_empty());
    }
    let told = wire.turn(&query(READ));
    assert_eq!(told, [complete("SELECT 1"), ready(b'T')].concat());
    assert_eq!(wire.pair.told(&query("END;")), committed());
}

#[test]
fn an_extended_group_that_ends_a_transaction_is_answered_message_by_message() {
    let mut wire = with(Server::default(), &["BEGIN", READ]);
    let close = message(b'C', b"P\0");
    let describe = message(b'D', b"P\0");
    let group = [parse("", "COMMIT"), bind("", "", &[]), describe, execute(""), close, sync()].concat();
    let told =
        [message(b'1', b""), message(b'2', b""), message(b'n', b""), complete("COMMIT"), message(b'3', b"")];
    assert_eq!(wire.pair.told(&group), [told.concat(), ready(b'I')].concat());

    let mut wire = with(Server::default(), &[]);
    let end = [bind("", "end", &[]), execute(""), sync()].concat();
    wire.turn(&[parse("end", "COMMIT"), sync()].concat());
    for _ in 0..2 {
        wire.turn(&query("BEGIN"));
        wire.turn(&query(READ));
        assert!(wire.is_answered(&end), "a statement that is surely there");
        wire.turn(b"");
    }
    wire.turn(&query("BEGIN"));
    wire.turn(&query(READ));
    let taken = [parse("end", "COMMIT"), end].concat();
    assert!(!wire.is_answered(&taken), "a name that is taken");

    let mut wire = with(Server::default(), &["BEGIN", READ]);
    let first = [parse("end", "COMMIT"), bind("", "end", &[]), execute(""), sync()].concat();
    assert!(wire.is_answered(&first), "a name that is free");
}

#[test]
fn a_text_that_is_prepared_behind_the_bind_is_not_the_one_that_runs() {
    let mut wire = alone(Server::default());
    wire.turn(&query("BEGIN"));
    wire.turn(&query(READ));
    wire.turn(&[parse("", READ), sync()].concat());
    let group = [bind("", "", &[]), parse("", "COMMIT"), execute(""), sync()].concat();
    assert!(!wire.is_answered(&group));
}

#[test]
fn a_level_that_the_server_would_not_tell_is_not_waited_for() {
    let mut wire = with(Server::default(), &["BEGIN", READ, "COMMIT", "BEGIN", "SAVEPOINT guard"]);
    let sent = wire.pair.client(&query(READ)).unwrap();
    wire.server.status = b'E';
    let said = wire.server.takes(&sent);
    wire.pair.server(&said).unwrap();
    wire.turn(&query("ROLLBACK TO SAVEPOINT guard"));
    assert_eq!(wire.turn(&query("ROLLBACK")), [complete("ROLLBACK"), ready(b'I')].concat());
}

/// C1.
#[test]
fn a_transaction_of_another_level_is_ended_by_the_server() {
    let serializable = || Server { level: "serializable", ..Server::default() };
    assert!(!with(serializable(), &["BEGIN", READ]).is_answered(&query("COMMIT")));
    let safe = "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE";
    assert!(with(serializable(), &[safe, READ]).is_answered(&query("COMMIT")));
    let repeatable = || Server { level: "repeatable read", ..Server::default() };
    assert!(with(repeatable(), &["BEGIN", READ]).is_answered(&query("COMMIT")));
    let mut wire = alone(Server::default());
    wire.turn(&[query(READ), query("BEGIN")].concat());
    assert!(!wire.is_answered(&query("COMMIT")), "a BEGIN that was not seen alone");
}

#[test]
fn a_comment_is_no_part_of_an_end() {
    assert!(
        with(Server::default(), &["BEGIN /* why */", READ]).is_answered(&query("/* why */ COMMIT -- so"))
    );
}

#[test]
fn an_end_that_is_more_than_that_or_comes_too_early_is_left_to_the_server() {
    for text in [
        "COMMIT AND CHAIN",
        "COMMIT; SELECT 1",
        "/*+ Set(jit off) */ COMMIT",
        "PREPARE TRANSACTION 'x'",
        "ROLLBACK TO a",
    ] {
        let mut wire = with(Server::default(), &["BEGIN", READ]);
        assert!(!wire.is_answered(&query(text)), "{text}");
    }
    let mut wire = with(Server::default(), &["BEGIN", READ]);
    wire.pair.client(&query(READ)).unwrap();
    assert!(!wire.is_answered(&query("COMMIT")), "something is under way");
}

/// C2.
#[test]
fn only_a_transaction_that_only_read_is_ended_early() {
    for (what, text) in [
        ("a write", "INSERT INTO emp VALUES (1)"),
        ("a function of a user", "SELECT touch()"),
        ("a function with effects", "SELECT nextval('s')"),
        ("row locks", "SELECT name FROM emp FOR UPDATE"),
        ("a setting", "SET LOCAL work_mem = '1MB'"),
        ("a cursor", "DECLARE c CURSOR WITH HOLD FOR SELECT name FROM emp"),
        ("several statements", "SELECT 1; SELECT 2"),
    ] {
        let mut wire = with(Server::default(), &["BEGIN", READ, text]);
        assert!(!wire.is_answered(&query("COMMIT")), "{what}");
    }
    let special = Server { is_special: true, ..Server::default() };
    let mut wire = with(special, &["BEGIN", READ]);
    assert!(!wire.is_answered(&query("COMMIT")), "the session has temporary tables");
    let mut wire = with(Server::default(), &["LISTEN news", "BEGIN", READ]);
    assert!(!wire.is_answered(&query("COMMIT")), "it listens");
    let read = ["BEGIN", READ, "COMMIT"];
    let again = [&["INSERT INTO emp VALUES (1)"], &read[..], &read, &read[..2]].concat();
    assert!(with(Server::default(), &again).is_answered(&query("COMMIT")), "the server was asked again");
    nothing_is_known_while_the_catalogue_may_change();
}

/// A part of C2: while another session's transaction may change the catalogue, nothing is known of it.
fn nothing_is_known_while_the_catalogue_may_change() {
    let common = Arc::<Common>::default();
    let mut reader = among(Arc::clone(&common), Server::default());
    let mut other = among(common, Server::default());
    for text in ["BEGIN", "ALTER TABLE emp ADD COLUMN age int"] {
        other.turn(&query(text));
    }
    for text in ["BEGIN", READ] {
        reader.turn(&query(text));
    }
    assert!(!reader.is_answered(&query("COMMIT")), "the table may be another already");
    reader.turn(b"");
    other.turn(&query("COMMIT"));
    // The catalogue is read anew, but not more often than once a second.
    reader.pair.wait(2_000_000_000);
    for text in ["BEGIN", READ, "COMMIT", "BEGIN", READ, "COMMIT", "BEGIN", READ] {
        reader.turn(&query(text));
    }
    assert!(reader.is_answered(&query("COMMIT")));
}

/// Two sessions of a gateway, each in a transaction that has only read; it is known whether functions of users take strong
/// locks.
fn reading(server: fn() -> Server) -> (Wire, Wire) {
    let common = Arc::<Common>::default();
    let (mut reader, mut other) = (among(Arc::clone(&common), server()), among(common, server()));
    for text in ["BEGIN", READ, "COMMIT", "BEGIN", READ] {
        reader.turn(&query(text));
        other.turn(&query(text));
    }
    (reader, other)
}

/// C3.
#[test]
fn strong_locks_of_other_sessions_wait() {
    let (mut reader, mut other) = reading(Server::default);
    assert!(reader.is_answered(&query("COMMIT")));
    for harmless in [READ, "UPDATE emp SET name = 'x'", "SAVEPOINT a1"] {
        assert!(!other.turn(&query(harmless)).is_empty(), "{harmless}");
    }
    let alter = query("ALTER TABLE emp ADD COLUMN age int");
    assert_eq!(other.turn(&alter), b"", "it waits");
    reader.turn(b"");
    assert!(!other.turn(b"").is_empty(), "and goes on when the server has ended the other's transaction");

    assert!(!reader.turn(&query("LOCK TABLE emp")).is_empty(), "a session does not wait for itself");
    writes_wait_where_a_trigger_may_lock();
    nobody_waits_for_a_session_that_is_not_confirmed();
}

/// A part of C3: a trigger may run what takes strong locks.
fn writes_wait_where_a_trigger_may_lock() {
    let (mut reader, mut other) = reading(|| Server { takes_locks: true, ..Server::default() });
    assert!(reader.is_answered(&query("COMMIT")));
    assert!(!other.turn(&query(READ)).is_empty(), "a read runs no trigger");
    assert_eq!(other.turn(&query("UPDATE emp SET name = 'x'")), b"", "it waits");
    reader.turn(b"");
    assert!(!other.turn(b"").is_empty());
}

/// A part of C3: a server that does not answer stops one session, not all.
fn nobody_waits_for_a_session_that_is_not_confirmed() {
    let (mut reader, mut other) = reading(Server::default);
    assert_eq!(reader.pair.session.deadline(), None);
    assert!(reader.is_answered(&query("COMMIT")));
    let at = reader.pair.session.deadline().expect("it is not confirmed");
    let alter = query("ALTER TABLE emp ADD COLUMN age int");
    assert_eq!(other.turn(&alter), b"", "it waits");
    assert_eq!(reader.pair.session.meet_deadline(Moment(at.0 - 1)), Ok(()));
    assert_eq!(reader.pair.session.meet_deadline(at), Err(SessionError::CommitRefused));
    let told = reader.pair.session.to_client().escape_ascii().to_string();
    assert!(told.contains("FATAL") && told.contains("08006"), "{told}");
    reader.pair.books();
    assert!(!other.turn(b"").is_empty(), "it goes on when that session is over");
}

/// C4.
#[test]
fn an_end_that_fails_ends_the_session() {
    let refused = error("ERROR", "40001", "could not serialize access");
    let mut wire = with(Server::default(), &["BEGIN", READ]);
    wire.server.end_fails = Some(refused);
    assert!(wire.is_answered(&query("COMMIT")));
    let sent = wire.pair.client(b"").unwrap();
    let said = wire.server.takes(&sent);
    assert_eq!(wire.pair.server(&said), Err(SessionError::CommitRefused));
    let told = wire.pair.session.to_client().escape_ascii().to_string();
    assert!(told.contains("FATAL") && told.contains("08006"), "{told}");

    let mut wire = with(Server::default(), &["BEGIN", READ]);
    let fatal = error("FATAL", "57P01", "terminating connection due to administrator command");
    assert_eq!(wire.pair.server(&fatal).unwrap(), fatal);
    assert!(!wire.is_answered(&query("COMMIT")), "the program knows that the session is over");
}

/// C5.
#[test]
fn a_pooler_is_noticed() {
    let transaction = ["BEGIN", READ, "COMMIT", "BEGIN", READ];
    assert!(with(Server::default(), &transaction).is_answered(&query("COMMIT")));
    let pooled = Server { process_id: PROCESS_ID + 1, ..Server::default() };
    let mut wire = with(pooled, &transaction);
    assert!(!wire.is_answered(&query("COMMIT")), "the server's session may be another one's tomorrow");
    wire.turn(b"");
    let asked =
        |wire: &Wire| wire.server.texts.iter().filter(|text| text.contains("current_schemas")).count();
    assert_eq!(asked(&wire), 1);
    wire.server.process_id = PROCESS_ID;
    for text in transaction {
        wire.turn(&query(text));
    }
    assert!(!wire.is_answered(&query("COMMIT")), "for the rest of the session");
    wire.turn(b"");
    assert_eq!(asked(&wire), 1, "the server is not asked again");
}

/// C6.
#[test]
fn code_that_runs_before_its_statement_counts() {
    const WRITE: &str = "INSERT INTO emp SELECT 1";
    let parsed = || [parse("", WRITE), sync()].concat();
    let bound = || [parse("", WRITE), bind("", "", &[]), sync()].concat();
    for (writes_unrun, unrun) in [(false, parsed()), (false, bound()), (true, parsed()), (true, bound())] {
        // The first of them makes it known whether there is such code.
        let mut wire = with(Server { writes_unrun, ..Server::default() }, &[]);
        wire.turn(&unrun);
        for text in ["BEGIN", READ, "COMMIT", "BEGIN", READ] {
            wire.turn(&query(text));
        }
        wire.turn(&unrun);
        wire.turn(&query(READ));
        let is_answered = wire.is_answered(&query("COMMIT"));
        assert!(is_answered != writes_unrun || !Rule::OnlyReads.is_kept(), "{writes_unrun}, {unrun:?}");
    }
}

#[test]
fn a_program_that_comes_before_the_server_has_said_its_level_waits_for_it() {
    let mut wire = with(Server::default(), &["BEGIN", READ, "COMMIT"]);
    let group = [
        parse("", "BEGIN"),
        bind("", "", &[]),
        execute(""),
        parse("", READ),
        bind("", "", &[]),
        execute(""),
        sync(),
    ];
    let sent = wire.pair.client(&group.concat()).unwrap();
    assert!(
        sent.starts_with(&group.concat()) && sent.len() > group.concat().len(),
        "the question goes behind it"
    );
    let said = wire.server.takes(&sent);
    let ready_at = said.windows(6).position(|bytes| bytes == ready(b'T')).expect("it is ready") + 6;
    wire.pair.server(&said[..ready_at]).unwrap();
    assert!(!wire.is_answered(&query("COMMIT")), "not yet");
    wire.pair.server(&said[ready_at..]).unwrap();
    assert!(wire.is_answered(b""), "now");
}

#[test]
fn every_rule_names_a_test_of_this_file() {
    let here = include_str!("commit.rs");
    for rule in Rule::ALL.into_iter().filter(|rule| rule.name().starts_with('C')) {
        assert!(here.contains(&format!("/// {}.\n#[test]\nfn {}()", rule.name(), rule.test())), "{rule:?}");
    }
}
