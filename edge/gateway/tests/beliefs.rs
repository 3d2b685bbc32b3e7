//! What the rules of `docs/safety.md` believe of PostgreSQL, asked of real servers of both versions, without a gateway.

mod common;

use std::time::Duration;

use common::client::RawClient;
use common::messages::*;
use common::server::Server;
use common::transcript::Message;
use onetrip_sql::purity::{Lookup, SessionQuestion};
use onetrip_wire::pg::{DataRow, backend};

/// A belief holds on each of these.
const VERSIONS: [&str; 2] = ["15", "18"];

fn on_each(belief: impl Fn(&Server, &mut RawClient)) {
    for version in VERSIONS {
        let server = Server::with_acts_template_and(&["--version", version]);
        server.psql(
            "postgres",
            "CREATE TABLE n AS SELECT id FROM generate_series(1, 30) id; CREATE TABLE w (id int PRIMARY KEY, v int);
            SELECT lo_from_bytea(70001, 'abcdefgh'), lo_from_bytea(70002, 'second');",
        );
        let mut client = RawClient::session(&server.direct(), "postgres");
        belief(&server, &mut client);
    }
}

/// The tags of messages, as letters.
fn tags(messages: &[Message]) -> String {
    messages.iter().map(|message| char::from(message.tag)).collect()
}

/// The first columns of all rows.
fn values(messages: &[Message]) -> Vec<String> {
    let value = |message: &Message| {
        let row = DataRow::decode(&message.body).expect("a row");
        let first = row.columns.iter().next().flatten().unwrap_or_default();
        String::from_utf8_lossy(first).into_owned()
    };
    messages.iter().filter(|message| message.tag == backend::DATA_ROW).map(value).collect()
}

/// Sends groups that end with so many ReadyForQuery, and gives what they are answered by.
fn asks(client: &mut RawClient, parts: &[Vec<u8>], ready: usize) -> Vec<Message> {
    let (start, before) = (client.len(), client.count(backend::READY_FOR_QUERY));
    client.send(&parts.concat());
    client.await_count(backend::READY_FOR_QUERY, before + ready);
    client.messages_from(start)
}

/// What a simple query gives, in the first columns of its rows.
fn one(client: &mut RawClient, text: &str) -> String {
    let messages = client.query(text);
    assert!(!tags(&messages).contains('E'), "{text}: {messages:?}");
    values(&messages).join(",")
}

/// R5: pieces are read behind a savepoint that is rolled back to.
#[test]
fn a_portal_keeps_its_place_when_a_savepoint_is_rolled_back_to() {
    on_each(|_, client| {
        client.query("BEGIN");
        let opened = [parse("", "SELECT id FROM n ORDER BY id"), bind("c", "", &[]), execute("c", 2), sync()];
        assert_eq!(values(&asks(client, &opened, 1)), ["1", "2"]);
        client.query("SAVEPOINT s");
        assert_eq!(values(&asks(client, &[execute("c", 3), sync()], 1)), ["3", "4", "5"]);
        client.query("SELECT 1 / 0");
        client.query("ROLLBACK TO s");
        assert_eq!(values(&asks(client, &[execute("c", 2), sync()], 1)), ["6", "7"]);
    });
}

/// R5: an error in a piece ends its portal, and ROLLBACK TO does not bring it back.
#[test]
fn a_portal_in_which_a_piece_has_failed_is_gone() {
    on_each(|_, client| {
        client.query("BEGIN");
        let text = "SELECT 1 / (3 - id) FROM (SELECT id FROM n ORDER BY id OFFSET 0) n";
        asks(client, &[parse("", text), bind("c", "", &[]), execute("c", 2), sync()], 1);
        client.query("SAVEPOINT s");
        assert!(tags(&asks(client, &[execute("c", 1), sync()], 1)).starts_with('E'));
        client.query("ROLLBACK TO s");
        assert!(tags(&asks(client, &[execute("c", 1), sync()], 1)).starts_with('E'));
    });
}

/// B6 and B7: a statement that fails in an extended group has all behind it skipped up to a Sync, simple queries as well.
#[test]
fn behind_an_error_everything_is_skipped_up_to_a_sync() {
    on_each(|_, client| {
        let parts = [parse("", "SELEKT"), flush(), query("INSERT INTO w VALUES (1, 1)"), sync()];
        assert_eq!(tags(&asks(client, &parts, 1)), "EZ");
        assert_eq!(one(client, "SELECT count(*) FROM w"), "0");
    });
}

/// S6: there is no unnamed statement behind a Parse of one that has failed.
#[test]
fn a_parse_that_fails_leaves_no_unnamed_statement() {
    on_each(|_, client| {
        asks(client, &[parse("", "SELECT 1"), sync()], 1);
        asks(client, &[parse("", "SELEKT"), sync()], 1);
        let bound = asks(client, &[bind("", "", &[]), execute("", 0), sync()], 1);
        assert!(String::from_utf8_lossy(&bound[0].body).contains("26000"), "{bound:?}");
    });
}

/// S1: a write without RETURNING has no result, whatever its table's rules are.
#[test]
fn a_write_without_returning_is_described_as_nothing() {
    on_each(|server, client| {
        server.psql("postgres", "CREATE RULE r AS ON UPDATE TO w DO INSTEAD SELECT id FROM n");
        let parts = [parse("", "UPDATE w SET v = 1"), describe_statement(""), sync()];
        assert_eq!(tags(&asks(client, &parts, 1)), "1tnZ");
    });
}

/// P22: a simple query drops the unnamed statement and the unnamed portal.
#[test]
fn a_simple_query_drops_what_is_unnamed() {
    on_each(|_, client| {
        client.query("BEGIN");
        asks(client, &[parse("", "SELECT 1"), bind("", "", &[]), sync()], 1);
        client.query("SAVEPOINT s");
        assert!(tags(&asks(client, &[execute("", 0), sync()], 1)).starts_with('E'));
        client.query("ROLLBACK TO s");
        assert!(tags(&asks(client, &[bind("", "", &[]), sync()], 1)).starts_with('E'));
    });
}

/// L1 and L2: a descriptor that is opened to read sees the snapshot of its opening; one that may write does not.
#[test]
fn a_descriptor_that_only_reads_sees_the_snapshot_of_its_opening() {
    on_each(|server, client| {
        client.query("BEGIN");
        one(client, "SELECT lo_open(70001, x'40000'::int), lo_open(70001, x'60000'::int)");
        server.psql("postgres", "SELECT lo_put(70001, 0, 'XY')");
        assert_eq!(one(client, "SELECT encode(loread(0, 4), 'escape')"), "abcd");
        assert_eq!(one(client, "SELECT encode(loread(1, 4), 'escape')"), "XYcd");
        server.psql("postgres", "SELECT lo_unlink(70001)");
        assert_eq!(one(client, "SELECT encode(loread(0, 4), 'escape')"), "efgh");
    });
}

/// Purity: a question inside a READ COMMITTED transaction is asked only where the transaction holds a snapshot anyway, for others
/// wait for the end of one that does (`WaitForOlderSnapshots`).
#[test]
fn between_statements_cursors_and_descriptors_that_only_read_hold_a_snapshot() {
    on_each(|server, client| {
        let process = one(client, "SELECT pg_backend_pid()");
        let mut other = RawClient::session(&server.direct(), "postgres");
        let asks_other =
            format!("SELECT backend_xmin IS NOT NULL FROM pg_stat_activity WHERE pid = {process}");
        for (text, is_held) in [
            ("BEGIN", "f"),
            ("SELECT count(*) FROM n", "f"),
            ("SHOW transaction_isolation", "f"),
            ("SAVEPOINT s", "f"),
            ("DECLARE c CURSOR FOR SELECT id FROM n", "t"),
            ("CLOSE c", "f"),
            ("SELECT lo_open(70001, x'40000'::int)", "t"),
            ("SELECT lo_close(0)", "f"),
            ("SELECT lo_open(70001, x'60000'::int)", "f"),
        ] {
            client.query(text);
            assert_eq!(one(&mut other, &asks_other), is_held, "{text}");
        }
        asks(client, &[parse("", "SELECT id FROM n"), bind("p", "", &[]), execute("p", 2), sync()], 1);
        assert_eq!(one(&mut other, &asks_other), "t", "a portal that is read in pieces");
    });
}

/// L4 and L6: ROLLBACK TO closes what was opened behind the savepoint and moves nothing back; numbers are the lowest that are free.
#[test]
fn rolling_back_closes_descriptors_and_moves_none() {
    on_each(|_, client| {
        client.query("BEGIN");
        assert_eq!(one(client, "SELECT lo_open(70001, x'40000'::int)"), "0");
        client.query("SAVEPOINT s");
        assert_eq!(one(client, "SELECT lo_open(70002, x'40000'::int)"), "1");
        assert_eq!(one(client, "SELECT encode(loread(0, 3), 'escape')"), "abc");
        client.query("ROLLBACK TO s");
        assert_eq!(one(client, "SELECT lo_tell(0)"), "3");
        assert_eq!(one(client, "SELECT lo_open(70002, x'40000'::int)"), "1");
    });
}

/// L3: opening takes no lock, nor does reading no bytes; reading takes one that ROLLBACK TO does not give back, and so does
/// looking for the end.
#[test]
fn reading_an_object_takes_a_lock_to_the_end_of_the_transaction() {
    on_each(|_, client| {
        const LOCKS: &str = "SELECT count(*) FROM pg_locks WHERE relation = 'pg_largeobject'::regclass AND pid = pg_backend_pid()";
        client.query("BEGIN");
        one(client, "SELECT lo_open(70001, x'40000'::int)");
        for call in
            ["loread(0, 0)", "loread(0, -1)", "lo_lseek(0, 2, 0)", "lo_lseek64(0, -1, 1)", "lo_tell(0)"]
        {
            one(client, &format!("SELECT {call}"));
            assert_eq!(one(client, LOCKS), "0", "{call}");
        }
        client.query("SAVEPOINT s");
        one(client, "SELECT lo_lseek(0, 0, 2)");
        assert_eq!(one(client, LOCKS), "1");
        client.query("ROLLBACK");
        client.query("BEGIN");
        one(client, "SELECT lo_open(70001, x'40000'::int)");
        client.query("SAVEPOINT s");
        one(client, "SELECT loread(0, 1)");
        client.query("ROLLBACK TO s");
        assert_eq!(one(client, LOCKS), "1");
    });
}

/// K1: a SET that changes nothing is not reported, and one that does comes right ahead of ReadyForQuery.
#[test]
fn a_parameter_is_reported_only_where_it_changes() {
    on_each(|_, client| {
        assert_eq!(tags(&client.query("SET TimeZone = 'Asia/Tokyo'; SELECT 1")), "CTDCSZ");
        assert_eq!(tags(&client.query("SET TimeZone = 'Asia/Tokyo'")), "CZ");
    });
}

/// C1 and P1: a failure takes back the level that BEGIN has set, and what is chained to the transaction has the session's own.
#[test]
fn a_chain_behind_a_failure_has_the_session_s_own_level() {
    on_each(|_, client| {
        client.query("BEGIN ISOLATION LEVEL REPEATABLE READ");
        client.query("SELECT 1 / 0");
        client.query("ROLLBACK AND CHAIN");
        assert_eq!(one(client, "SHOW transaction_isolation"), "read committed");
    });
}

/// P22: what was answered from memory is run when its portal is asked for, under a statement that is closed at once.
#[test]
fn a_portal_outlives_the_statement_that_it_was_bound_to() {
    on_each(|_, client| {
        client.query("BEGIN");
        let opened = [parse("", "SELECT id FROM n ORDER BY id"), bind("", "", &[]), execute("", 2), sync()];
        assert_eq!(values(&asks(client, &opened, 1)), ["1", "2"]);
        let other = [parse("", "SELECT 'other'"), sync()];
        assert_eq!(tags(&asks(client, &other, 1)), "1Z");
        assert_eq!(values(&asks(client, &[execute("", 1), sync()], 1)), ["3"], "another unnamed statement");
        assert_eq!(tags(&asks(client, &[close_statement(""), sync()], 1)), "3Z");
        assert_eq!(values(&asks(client, &[execute("", 1), sync()], 1)), ["4"], "no unnamed statement");
        let named = [parse("s", "SELECT id FROM n ORDER BY id"), bind("", "s", &[]), execute("", 1), sync()];
        assert_eq!(values(&asks(client, &named, 1)), ["1"]);
        let closed = [close_statement("s"), execute("", 1), sync()];
        assert_eq!(values(&asks(client, &closed, 1)), ["2"], "a statement that was closed");
    });
}

/// P22: a call of a function neither drops the unnamed statement nor the unnamed portal.
#[test]
fn a_function_call_leaves_what_is_unnamed() {
    on_each(|_, client| {
        client.query("BEGIN");
        let opened = [parse("", "SELECT id FROM n ORDER BY id"), bind("", "", &[]), execute("", 2), sync()];
        assert_eq!(values(&asks(client, &opened, 1)), ["1", "2"]);
        const PG_BACKEND_PID: u32 = 2026;
        assert_eq!(tags(&asks(client, &[function_call(PG_BACKEND_PID, &[])], 1)), "VZ");
        assert_eq!(values(&asks(client, &[execute("", 1), sync()], 1)), ["3"]);
        assert_eq!(values(&asks(client, &[bind("", "", &[]), execute("", 1), sync()], 1)), ["1"]);
    });
}

/// P22: rights are looked at when a portal is made, and not when a statement is.
#[test]
fn a_parse_looks_at_no_rights_and_a_bind_does() {
    on_each(|server, client| {
        server
            .psql("postgres", "CREATE ROLE nobody_in_particular; GRANT SELECT ON w TO nobody_in_particular");
        client.query("SET ROLE nobody_in_particular");
        assert_eq!(tags(&asks(client, &[parse("", "SELECT id FROM n"), sync()], 1)), "1Z");
        assert_eq!(tags(&asks(client, &[bind("", "", &[]), sync()], 1)), "EZ");
    });
}

/// P22: closing what is not there is no error.
#[test]
fn what_is_not_there_can_be_closed() {
    on_each(|_, client| {
        client.query("BEGIN");
        let closed = [close_statement(""), close_portal(""), sync()];
        let answered = asks(client, &closed, 1);
        assert_eq!(tags(&answered), "33Z");
        assert_eq!(answered.last().map(|message| message.body.clone()), Some(b"T".to_vec()));
    });
}

/// One of the answers to what functions of users may do.
fn acts(client: &mut RawClient, which: usize) -> String {
    let answers = client.query(Lookup::Locks.sql());
    let row = answers.iter().find(|message| message.tag == backend::DATA_ROW).expect("answers");
    let row = DataRow::decode(&row.body).expect("a row");
    let answer = row.columns.iter().nth(which).flatten().expect("an answer");
    String::from_utf8_lossy(answer).into_owned()
}

/// S3: what the server is asked tells whether a login runs code of users that may act.
#[test]
fn the_catalogue_tells_whether_code_acts_at_a_login() {
    const FUNCTION: &str = "CREATE FUNCTION acts() RETURNS event_trigger LANGUAGE plpgsql AS";
    const SILENT: &str = "'BEGIN PERFORM 1; END'";
    const ACTING: &str = "'BEGIN CREATE TEMP TABLE t (); END'";
    const ON_LOGIN: &str = "CREATE EVENT TRIGGER e ON login EXECUTE FUNCTION acts()";
    const ON_DDL: &str = "CREATE EVENT TRIGGER e ON ddl_command_end EXECUTE FUNCTION acts()";
    on_each(|_, client| {
        let has_login_triggers =
            one(client, "SHOW server_version_num").parse::<u32>().expect("a number") >= 170_000;
        let disabled = format!("{ON_LOGIN}; ALTER EVENT TRIGGER e DISABLE");
        let always = format!("{ON_LOGIN}; ALTER EVENT TRIGGER e ENABLE ALWAYS");
        let cases = [
            (ACTING, "", "false"),
            (ACTING, ON_DDL, "false"),
            (ACTING, ON_LOGIN, "true"),
            (ACTING, &disabled, "false"),
            (ACTING, &always, "true"),
            (SILENT, ON_LOGIN, "false"),
        ];
        for (body, trigger, told) in cases {
            if trigger.contains("login") && !has_login_triggers {
                continue;
            }
            client.query("BEGIN");
            one(client, &format!("{FUNCTION} {body}; {trigger}"));
            assert_eq!(acts(client, 4), told, "{body} {trigger}");
            client.query("ROLLBACK");
        }
    });
}

/// S3 and C6: what the server is asked tells whether code of users may act where a statement is only parsed or planned.
#[test]
fn the_catalogue_tells_whether_code_may_act_unrun() {
    const ACTS: &str = "CREATE FUNCTION acts() RETURNS int LANGUAGE sql AS 'SELECT 1';";
    const SILENT: [&str; 9] = [
        "",
        "CREATE FUNCTION f(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT $1 + 1'",
        "CREATE FUNCTION f() RETURNS bigint STABLE LANGUAGE sql AS 'SELECT count(*) FROM n'",
        "CREATE FUNCTION f(int) RETURNS int IMMUTABLE LANGUAGE sql BEGIN ATOMIC SELECT $1 + 1; END",
        "CREATE VIEW carries AS SELECT acts() AS x; CREATE FUNCTION f() RETURNS int STABLE LANGUAGE sql AS 'SELECT 1'",
        "CREATE DOMAIN d AS int CHECK (VALUE > 0); CREATE DOMAIN e AS text CHECK (VALUE ~ '^a' AND length(VALUE) < 9)",
        "CREATE FUNCTION ok(int) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT $1 > 1';
        CREATE DOMAIN d AS int CHECK (ok(VALUE))",
        "CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.v = 1; RETURN NEW; END';
        CREATE TRIGGER x BEFORE UPDATE ON w FOR EACH ROW EXECUTE FUNCTION touch();
        CREATE FUNCTION f() RETURNS int STABLE LANGUAGE sql AS 'SELECT 1'",
        "DO $$ DECLARE e text; BEGIN
            FOR e IN SELECT name FROM pg_available_extensions
                WHERE name IN ('citext', 'pg_trgm', 'hstore', 'uuid-ossp', 'pgcrypto', 'unaccent', 'btree_gist', 'ltree')
            LOOP EXECUTE format('CREATE EXTENSION %I', e); END LOOP; END $$",
    ];
    const ACTING: [&str; 10] = [
        "CREATE FUNCTION f() RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT acts()'",
        "CREATE FUNCTION g() RETURNS int STABLE LANGUAGE plpgsql AS 'BEGIN PERFORM acts(); RETURN 1; END';
        CREATE FUNCTION f() RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT g()'",
        "CREATE FUNCTION f() RETURNS int IMMUTABLE LANGUAGE sql BEGIN ATOMIC SELECT acts(); END",
        "CREATE FUNCTION f() RETURNS text STABLE LANGUAGE sql AS $$SELECT set_config('work_mem', '1MB', false)$$",
        "CREATE FUNCTION f() RETURNS xml STABLE LANGUAGE sql AS $$SELECT query_to_xml('SELECT acts()', true, true, '')$$",
        "CREATE DOMAIN d AS int CHECK (VALUE > acts())",
        "CREATE SEQUENCE s; CREATE DOMAIN d AS int CHECK (nextval('s') > 0)",
        "CREATE VIEW carries AS SELECT acts() AS x;
        CREATE FUNCTION f() RETURNS int STABLE LANGUAGE sql AS 'SELECT x FROM carries'",
        "CREATE TYPE pair AS (x int); CREATE FUNCTION acts(pair) RETURNS int LANGUAGE sql AS 'SELECT 1';
        CREATE CAST (pair AS int) WITH FUNCTION acts(pair) AS IMPLICIT;
        CREATE FUNCTION f(pair) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT $1 + 0'",
        "CREATE FUNCTION \"a b\"() RETURNS int LANGUAGE sql AS 'SELECT 1';
        CREATE FUNCTION f() RETURNS int STABLE LANGUAGE sql AS 'SELECT 1'",
    ];
    on_each(|_, client| {
        for (kinds, told) in [(&SILENT[..], "false"), (&ACTING[..], "true")] {
            for kind in kinds {
                client.query("BEGIN");
                one(client, &format!("{ACTS} {kind}"));
                let fourth = acts(client, 3);
                assert_eq!(fourth, told, "{kind}");
                client.query("ROLLBACK");
            }
        }
    });
}

/// S3: what the server is asked tells whether code that acts runs as rows are written, whatever its name is.
#[test]
fn the_catalogue_tells_whether_code_that_a_trigger_calls_acts() {
    let long = "l".repeat(70);
    let upper = "L".repeat(70);
    let cases = [
        ("acts()", "acts()", "true"),
        ("acts()", "ACTS()", "true"),
        ("acts()", "pg_sleep(0)", "false"),
        ("\"a b\"()", "\"a b\"()", "true"),
        ("\"A\"()", "\"A\"()", "true"),
        ("évil()", "évil()", "true"),
        ("évil()", "public . évil ()", "true"),
        (&format!("{long}()"), &format!("{upper}()"), "true"),
    ];
    on_each(|_, client| {
        for (name, call, told) in &cases {
            client.query("BEGIN");
            one(
                client,
                &format!(
                    "CREATE FUNCTION {name} RETURNS int LANGUAGE plpgsql AS 'BEGIN LOCK TABLE n; RETURN 1; END';
                    CREATE FUNCTION calls() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM {call}; RETURN NEW; END';
                    CREATE TRIGGER x BEFORE INSERT ON w FOR EACH ROW EXECUTE FUNCTION calls()"
                ),
            );
            assert_eq!(acts(client, 0), "true", "{name} {call}");
            assert_eq!(acts(client, 1), *told, "{name} {call}");
            client.query("ROLLBACK");
        }
    });
}

/// What may differ: a change of the catalogue that no lock keeps away reaches a session in its snapshot at a moment that
/// PostgreSQL leaves to chance.
#[test]
fn a_renamed_label_is_seen_after_a_rollback_to_or_when_others_have_changed_much() {
    on_each(|server, client| {
        server
            .psql("postgres", "CREATE TYPE mood AS ENUM ('ok'); CREATE TABLE k AS SELECT 'ok'::mood AS mood");
        one(client, "PREPARE q AS SELECT mood FROM k");
        for (notices, old, new) in [("ROLLBACK TO s", "ok", "fine"), ("", "fine", "ok")] {
            one(client, "BEGIN ISOLATION LEVEL REPEATABLE READ; SAVEPOINT s");
            assert_eq!(one(client, "EXECUTE q"), old);
            server.psql("postgres", &format!("ALTER TYPE mood RENAME VALUE '{old}' TO '{new}'"));
            assert_eq!(one(client, "EXECUTE q"), old, "it holds all its locks");
            match notices {
                "" => server.spread_changes(),
                text => drop(one(client, text)),
            }
            assert_eq!(one(client, "EXECUTE q"), new);
            one(client, "COMMIT");
        }
    });
}

/// The last column of the answer for the settings: how many microseconds ago the session's process has read its configuration.
fn configured_for(client: &mut RawClient) -> u64 {
    let messages = client.query(&SessionQuestion::Settings.sql());
    let row = messages.iter().find(|message| message.tag == backend::DATA_ROW).expect("a row");
    let row = DataRow::decode(&row.body).expect("a row");
    let age = row.columns.iter().last().flatten().expect("an age");
    std::str::from_utf8(age).expect("digits").parse().expect("a number")
}

/// S3: a process reads a configuration anew for itself, before the next message, and says when that was. One that begins later
/// has it from the server's first process, which has read it before all.
#[test]
fn a_process_reads_a_configuration_anew_before_its_next_message_and_says_when() {
    on_each(|server, client| {
        let mut idle = RawClient::session(&server.direct(), "postgres");
        std::thread::sleep(Duration::from_millis(300));
        assert!(configured_for(client) >= 300_000 && configured_for(&mut idle) >= 300_000);
        one(client, "SELECT pg_reload_conf(), pg_sleep(0.3)");
        let first = configured_for(client);
        std::thread::sleep(Duration::from_millis(300));
        let mut later = RawClient::session(&server.direct(), "postgres");
        assert!(configured_for(client) >= first + 300_000, "it was read once");
        assert!(configured_for(&mut later) >= 300_000, "before it began");
        // Whoever was idle has read it last.
        assert!(configured_for(&mut idle) < configured_for(client));
    });
}
