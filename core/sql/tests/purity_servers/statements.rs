//! Every statement of `statements.sql`: the verdict against the expected one, and against what the server then does.

use onetrip_sql::purity::read;
use postgres::Client;

use crate::server::{Known, catalogue, rows, servers, sorted};

const SCHEMA: &str = include_str!("schema.sql");
const STATEMENTS: &str = include_str!("statements.sql");

/// Statements that the oracle must have caught at more than reading, or it proves nothing.
const CAUGHT_MIN: usize = 50;

/// All that a statement may leave behind and its own session can see.
const SESSION_STATE: &str = "
    SELECT 'xid', pg_current_xact_id_if_assigned()::text
    UNION ALL SELECT 'lock', concat_ws(' ', locktype, mode, relation, classid, objid) FROM pg_locks
      WHERE pid = pg_backend_pid() AND mode <> 'AccessShareLock' AND locktype <> 'virtualxid'
    UNION ALL SELECT 'temporary', oid::text FROM pg_class WHERE relnamespace = pg_my_temp_schema()
    UNION ALL SELECT 'setting', name || '=' || setting FROM pg_settings
    UNION ALL SELECT 'prepared', name FROM pg_prepared_statements
    UNION ALL SELECT 'cursor', name FROM pg_cursors WHERE name <> ''
    UNION ALL SELECT 'channel', channel FROM pg_listening_channels() AS c (channel)
    UNION ALL SELECT 'relation', oid::text FROM pg_class WHERE relnamespace <> 'pg_toast'::regnamespace
    UNION ALL SELECT 'large object', oid::text FROM pg_largeobject_metadata
    UNION ALL SELECT 'sequence', concat_ws(' ', last_value, log_cnt, is_called) FROM s
    UNION ALL SELECT 'effects', count(*)::text FROM effects
    UNION ALL SELECT 'emp', md5(string_agg(e::text, '' ORDER BY id)) FROM emp AS e";

/// What any other session may do while a transaction reads, as far as no lock forbids it.
const DISTURBANCE: &str = "
    BEGIN;
    UPDATE emp SET pay = pay + 1, name = md5(name), score = -score, seen = now();
    INSERT INTO emp (id, name, dept_id) SELECT max(id) + 1, 'new', 1 FROM emp;
    DELETE FROM pay WHERE amount = (SELECT min(amount) FROM pay);
    UPDATE dept SET budget = budget + 1;
    UPDATE moods SET now_is = 'ok';
    UPDATE \"Odd Name\" SET \"select\" = 'other', ip = '192.168.0.1', span = '[2,9)';
    INSERT INTO hr.secret VALUES (1, 'word');
    INSERT INTO effects VALUES (9);
    INSERT INTO numbered DEFAULT VALUES;
    INSERT INTO unlogged VALUES (1);
    COMMIT;
    SELECT nextval('s')";

struct Case {
    expected: String,
    statement: &'static str,
}

fn cases() -> Vec<Case> {
    let mut expected = "";
    let mut cases = Vec::new();
    for line in STATEMENTS.lines().filter(|line| !line.is_empty()) {
        match line.strip_prefix("-- ") {
            Some(verdict) => expected = verdict,
            None => cases.push(Case { expected: expected.to_owned(), statement: line }),
        }
    }
    cases
}

fn verdict(catalogue: &Known, statement: &str) -> String {
    match read(statement).and_then(|needs| catalogue.check(&needs)) {
        Ok(_) => "pure".to_owned(),
        Err(reason) => reason.to_string(),
    }
}

#[test]
fn every_statement_has_the_verdict_that_is_expected_of_it() {
    for server in servers() {
        let catalogue = catalogue(&mut server.connect(&server.database(SCHEMA)));
        for case in cases() {
            assert_eq!(
                verdict(&catalogue, case.statement),
                case.expected,
                "on {}: {}",
                server.version,
                case.statement
            );
        }
    }
    assert!(cases().len() >= 290);
}

#[test]
fn what_is_called_pure_leaves_nothing_behind_and_sees_one_snapshot() {
    for server in servers() {
        let dbname = server.database(SCHEMA);
        let catalogue = catalogue(&mut server.connect(&dbname));
        let (mut client, mut other) = (server.connect(&dbname), server.connect(&dbname));
        other.batch_execute("SET lock_timeout = '100ms'").expect("a setting");
        let mut caught = 0;
        for case in cases() {
            let is_pure = verdict(&catalogue, case.statement) == "pure";
            let seen = observe(&mut client, &mut other, case.statement);
            assert!(!is_pure || seen.is_none(), "on {}: {}: {seen:?}", server.version, case.statement);
            caught += usize::from(seen.is_some());
        }
        assert!(caught >= CAUGHT_MIN, "the oracle caught only {caught} statements");
    }
}

/// Runs a statement twice in a transaction, with a disturbance in between. What it did apart from reading rows of
/// the transaction's snapshot, if anything.
fn observe(client: &mut Client, other: &mut Client, statement: &str) -> Option<String> {
    client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SAVEPOINT first").expect("a transaction");
    let before = sorted(&rows(client, SESSION_STATE));
    let first = run(client, statement);
    if first.is_err() {
        client.batch_execute("ROLLBACK TO first").expect("a savepoint heals");
    }
    let after = sorted(&rows(client, SESSION_STATE));
    let disturbed = disturb(other);
    let second = run(client, statement);
    client.batch_execute("ROLLBACK").and_then(|()| client.batch_execute("DISCARD ALL")).expect("an end");
    if let Some(line) = after.iter().find(|line| !before.contains(line)) {
        return Some(format!("left {line:?}"));
    }
    if let Err(reason) = disturbed {
        return Some(format!("held up another session: {reason}"));
    }
    (first != second).then(|| format!("first {first:?}, then {second:?}"))
}

fn run(client: &mut Client, statement: &str) -> Result<Vec<Vec<Option<String>>>, String> {
    let messages = client.simple_query(statement).map_err(|error| match error.as_db_error() {
        Some(error) => error.code().code().to_owned(),
        None => error.to_string(),
    })?;
    let row = |message| match message {
        postgres::SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    };
    Ok(sorted(&messages.into_iter().filter_map(row).collect::<Vec<_>>()))
}

fn disturb(other: &mut Client) -> Result<(), String> {
    let result = other.batch_execute(DISTURBANCE);
    if result.is_err() {
        other.batch_execute("ROLLBACK").expect("an end");
    }
    result.map_err(|error| error.to_string())
}
