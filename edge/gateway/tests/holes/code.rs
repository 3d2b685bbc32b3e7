//! Code of users that touches a cursor which was read ahead: it says so in no text of the program's.

use std::time::Duration;

use super::harmless::{reads_ahead, reads_portal_ahead};
use super::stage::{
    DISTANCES_MS, Hole, Path, Program, Session, Stage, VERSIONS, administer, gateway_at, server,
};
use crate::common::client::PATIENCE;
use crate::common::messages::*;

const SETUP: &str = "CREATE TABLE coded (id int PRIMARY KEY, v int NOT NULL); \
     INSERT INTO coded SELECT i, i FROM generate_series(1, 80) AS i; ANALYZE coded; CREATE TABLE other (v text); \
     CREATE FUNCTION adds() RETURNS void LANGUAGE sql AS 'INSERT INTO other VALUES (''a'')'; \
     CREATE PROCEDURE adds_more() LANGUAGE sql AS 'INSERT INTO other VALUES (''b'')'";
const SELECT: &str = "SELECT id FROM coded";
const DECLARE: &str = "DECLARE c CURSOR FOR SELECT id FROM coded";
const FETCH: &str = "FETCH FORWARD 10 FROM c";

/// Reads pieces of a cursor of SQL, runs these, and goes on.
fn between_fetches<'a>(texts: &'a [&'a str]) -> impl Fn(&Stage) + Sync + 'a {
    move |stage| {
        let mut program = stage.session("program");
        reads_ahead(&mut program, SELECT);
        program.says_all(&["BEGIN", DECLARE, FETCH, FETCH]);
        stage.thinks();
        program.says_all(texts);
        program.says_all(&[FETCH, "FETCH RELATIVE 0 FROM c", "ROLLBACK"]);
    }
}

/// The same where the database has code that finds a cursor: nothing may be read ahead, so that nothing is waited for. The
/// rounds before the last give a gateway the time to learn all that it would need.
fn in_rounds(text: &str, stage: &Stage) {
    let mut program = stage.session("program");
    for _ in 0..3 {
        program.says_all(&["BEGIN", DECLARE]);
        for _ in 0..4 {
            program.says(FETCH);
            stage.thinks();
        }
        program.says_all(&[text, FETCH, "FETCH RELATIVE 0 FROM c", "ROLLBACK"]);
    }
    for _ in 0..2 {
        program.says_all(&["BEGIN", "SELECT id FROM coded WHERE id = 1", "COMMIT"]);
        program.says("DECLARE c CURSOR WITH HOLD FOR SELECT id FROM coded");
        for _ in 0..5 {
            program.says(FETCH);
            stage.thinks();
        }
        program.says_all(&["BEGIN", text, "ROLLBACK", FETCH, "FETCH RELATIVE 0 FROM c", "CLOSE c"]);
    }
}

#[test]
fn a_cursor_that_a_statement_names_within_is_found() {
    let within = between_fetches(&[
        "WITH x AS (UPDATE coded SET v = -1 WHERE CURRENT OF c RETURNING id) SELECT * FROM x",
    ]);
    let inserted = between_fetches(&[
        "WITH x AS (DELETE FROM coded WHERE CURRENT OF c RETURNING id) INSERT INTO other SELECT id FROM x RETURNING v",
    ]);
    let explained = between_fetches(&[
        "EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off, BUFFERS off) WITH x AS (UPDATE coded SET v = -1 WHERE CURRENT OF c \
         RETURNING id) SELECT * FROM x",
        "SELECT id FROM coded WHERE v = -1",
    ]);
    let built = between_fetches(&["DO $$ BEGIN EXECUTE 'MO' || 'VE 5 FROM ' || 'c'; END $$"]);
    let several = between_fetches(&["SELECT 1; DO $$ BEGIN EXECUTE 'MO' || 'VE 5 FROM ' || 'c'; END $$"]);
    let to_xml = between_fetches(&[
        "SELECT query_to_xml('SELECT cursor' || '_to_xml(''c'', 3, true, true, '''')', true, true, '')",
    ]);
    let escaped = between_fetches(&["SELECT U&\"cursor\\005Fto\\005Fxml\"('c', 3, true, true, '')"]);
    let programs: [Program<'_>; 7] = [
        ("UPDATE within WITH", &within),
        ("DELETE within an INSERT", &inserted),
        ("EXPLAIN ANALYZE", &explained),
        ("DO that builds its statement", &built),
        ("DO among others", &several),
        ("query_to_xml", &to_xml),
        ("escaped name", &escaped),
    ];
    Hole { name: "within", setup: SETUP, programs: &programs }.assert_shut();
}

/// What a database has, and a statement that runs it.
const CODE: [(&str, &str, &str); 12] = [
    (
        "builds",
        "CREATE FUNCTION run(q text) RETURNS void LANGUAGE plpgsql AS 'BEGIN EXECUTE q; END'",
        "SELECT run('MO' || 'VE 5 FROM c')",
    ),
    (
        "atomic",
        "CREATE FUNCTION marks() RETURNS int LANGUAGE sql BEGIN ATOMIC UPDATE coded SET v = -1 WHERE CURRENT OF c RETURNING id; END",
        "SELECT marks()",
    ),
    (
        "rule",
        "CREATE RULE marks AS ON INSERT TO other DO ALSO UPDATE coded SET v = -1 WHERE CURRENT OF c",
        "INSERT INTO other VALUES ('x')",
    ),
    (
        "view",
        "CREATE VIEW seen AS SELECT cursor_to_xml('c', 3, true, true, '')::text AS v",
        "SELECT * FROM seen",
    ),
    (
        "default",
        "ALTER TABLE other ALTER COLUMN v SET DEFAULT cursor_to_xml('c', 3, true, true, '')::text",
        "INSERT INTO other DEFAULT VALUES RETURNING v",
    ),
    (
        "checked",
        "ALTER TABLE other ADD CHECK (length(cursor_to_xml('c', 3, true, true, '')::text) > 0)",
        "INSERT INTO other VALUES ('x')",
    ),
    (
        "trigger",
        "CREATE FUNCTION moves() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN EXECUTE NEW.v; RETURN NEW; END'; \
         CREATE TRIGGER moves BEFORE INSERT ON other FOR EACH ROW EXECUTE FUNCTION moves()",
        "INSERT INTO other VALUES ('MO' || 'VE 5 FROM c')",
    ),
    (
        "internal",
        "CREATE FUNCTION mine(refcursor, int, bool, bool, text) RETURNS xml LANGUAGE internal AS 'cursor_to_xml'",
        "SELECT mine('c', 3, true, true, '')",
    ),
    (
        "runs",
        "CREATE FUNCTION runs(text) RETURNS xml LANGUAGE sql AS $$ SELECT query_to_xml($1, true, true, '') $$",
        "SELECT runs('SELECT cursor' || '_to_xml(''c'', 3, true, true, '''')')",
    ),
    (
        "extends",
        "CREATE FUNCTION extends() RETURNS void LANGUAGE plpgsql AS 'BEGIN CREATE EXTENSION tablefunc; END'",
        "SELECT extends(); SELECT b FROM crosstab('SELECT 1, 1, cursor' || \
         '_to_xml(''c'', 3, true, true, '''')::text') AS t(a int, b text)",
    ),
    (
        "makes",
        "CREATE FUNCTION makes() RETURNS void LANGUAGE plpgsql AS 'BEGIN CREATE FUNCTION crossed(text) RETURNS SETOF record \
         LANGUAGE c AS ''$libdir/tablefunc'', ''crosstab''; END'",
        "SELECT makes(); SELECT b FROM crossed('SELECT 1, 1, cursor' || \
         '_to_xml(''c'', 3, true, true, '''')::text') AS t(a int, b text)",
    ),
    (
        "operator",
        "CREATE OPERATOR <#> (LEFTARG = text, RIGHTARG = text, FUNCTION = ts_stat)",
        "INSERT INTO other SELECT ('SELECT to_tsvector(cursor' || '_to_xml(''c'', 3, true, true, '''')::text)' <#> 'a')::text",
    ),
];

#[test]
fn code_of_users_that_finds_a_cursor_keeps_it_where_it_is() {
    std::thread::scope(|scope| {
        for part in CODE.chunks(4) {
            scope.spawn(move || {
                for (name, code, text) in part {
                    let setup = format!("{SETUP}; {code}");
                    let program = |stage: &Stage| in_rounds(text, stage);
                    let name = format!("code_{name}");
                    Hole { name: &name, setup: &setup, programs: &[(&name, &program)] }.assert_shut();
                }
            });
        }
    });
}

#[test]
fn what_was_prepared_before_finds_its_cursor() {
    let prepared = |stage: &Stage| {
        let mut program = stage.session("program");
        program.says("PREPARE reads AS SELECT cursor_to_xml($1, 3, true, true, '')");
        for _ in 0..3 {
            program.says_all(&["BEGIN", DECLARE]);
            for _ in 0..4 {
                program.says(FETCH);
                stage.thinks();
            }
            program.says_all(&["EXECUTE reads('c')", FETCH, "FETCH RELATIVE 0 FROM c", "ROLLBACK"]);
        }
    };
    Hole { name: "prepared_xml", setup: SETUP, programs: &[("PREPARE before", &prepared)] }.assert_shut();
}

/// The portal `p` is read ahead, in a transaction, when a piece of it has come from memory. Directly it is read as far.
fn portal_is_ahead(program: &mut Session<'_>) {
    let piece = [execute("p", 10), sync()].concat();
    let opened =
        [parse("", SELECT), bind("p", "", &[]), describe_portal("p"), execute("p", 10), sync()].concat();
    let opens = |program: &mut Session<'_>| {
        program.says_all(&["ROLLBACK", "BEGIN"]);
        program.exchange("Bind", &opened);
        program.exchange("Execute", &piece);
        program.stage.thinks();
    };
    program.settles("portal", |program| {
        opens(program);
        program.is_served("Execute", &piece)
    });
    if program.stage.is_direct() {
        program.unseen(|program| {
            opens(program);
            program.exchange("Execute", &piece);
        });
    }
}

#[test]
fn code_that_is_made_while_a_cursor_is_ahead_finds_its_place() {
    const MOVES: &str =
        "CREATE FUNCTION moves() RETURNS void LANGUAGE plpgsql AS 'BEGIN EXECUTE ''MOVE 5 FROM c''; END'";
    let made = between_fetches(&[MOVES, "SELECT moves()"]);
    let by_another = |stage: &Stage| {
        let mut program = stage.session("program");
        reads_ahead(&mut program, SELECT);
        program.says_all(&["BEGIN", DECLARE, FETCH, FETCH]);
        stage.thinks();
        stage.session("neighbour").says(MOVES);
        program.says_all(&["SELECT moves()", FETCH, "FETCH RELATIVE 0 FROM c", "ROLLBACK"]);
    };
    // EXECUTE of SQL runs what the protocol has prepared: any statement, and long before.
    let prepared = |stage: &Stage| {
        let (mut program, mut neighbour) = (stage.session("program"), stage.session("neighbour"));
        neighbour.exchange("Parse", &[parse("mk", MOVES), sync()].concat());
        reads_ahead(&mut program, SELECT);
        program.says_all(&["BEGIN", DECLARE, FETCH, FETCH]);
        stage.thinks();
        neighbour.says("EXECUTE mk");
        program.says_all(&["SELECT moves()", FETCH, "FETCH RELATIVE 0 FROM c", "ROLLBACK"]);
    };
    // Nothing is ahead when it runs, and something is afterwards.
    let at_once = |stage: &Stage| {
        let mut program = stage.session("program");
        reads_ahead(&mut program, SELECT);
        program.says_all(&["BEGIN", DECLARE, FETCH]);
        stage.session("neighbour").says(MOVES);
        program.says_all(&["SELECT moves()", FETCH, FETCH]);
        stage.thinks();
        program.says_all(&[FETCH, "FETCH RELATIVE 0 FROM c", "ROLLBACK"]);
    };
    // What makes no code leaves a portal of the protocol where it is, and the program goes on.
    let harmless = |stage: &Stage| {
        let mut program = stage.session("program");
        reads_portal_ahead(&mut program, SELECT);
        program.says("BEGIN");
        let opened = [parse("s", SELECT), bind("p", "s", &[]), execute("p", 10), sync()].concat();
        program.exchange("Bind", &opened);
        program.exchange("Execute", &[execute("p", 10), sync()].concat());
        stage.thinks();
        program.says_all(&["CREATE TEMP TABLE mine (v text)", "INSERT INTO mine VALUES ('x')"]);
        program.exchange("Execute", &[execute("p", 10), sync()].concat());
        program.says("ROLLBACK");
    };
    // Nor does what another session runs that is in the database already.
    let runs = |stage: &Stage| {
        let mut program = stage.session("program");
        reads_portal_ahead(&mut program, SELECT);
        portal_is_ahead(&mut program);
        const ACTS_ON_ITS_OWN: &str =
            "DO $$BEGIN DELETE FROM other WHERE CURRENT OF c; EXCEPTION WHEN OTHERS THEN NULL; END$$";
        const WRITES: &str = "BEGIN; UPDATE other SET v = v || '+'; COMMIT";
        const FETCHES: &str = "BEGIN; DECLARE d CURSOR FOR SELECT 1; FETCH 1 FROM d; COMMIT";
        const PREPARES: &str = "PREPARE writes AS UPDATE other SET v = v || '-'";
        let texts = [
            "DO $$BEGIN PERFORM adds(); END$$",
            "CALL adds_more()",
            ACTS_ON_ITS_OWN,
            WRITES,
            FETCHES,
            PREPARES,
            "EXECUTE writes",
            "EXECUTE nothing",
        ];
        stage.session("neighbour").says_all(&texts);
        program.says("SELECT count(*) FROM other");
        program.exchange("Execute", &[execute("p", 10), sync()].concat());
        program.says("ROLLBACK");
    };
    let programs: [Program<'_>; 4] =
        [("harmless", &harmless), ("runs", &runs), ("by the program", &made), ("by another", &by_another)];
    Hole { name: "made_before", setup: SETUP, programs: &[("before it is ahead", &at_once)] }.assert_shut();
    Hole { name: "made", setup: SETUP, programs: &programs }.assert_shut();
    Hole { name: "made_prepared", setup: SETUP, programs: &[("by another", &prepared)] }.assert_shut();
}

/// A portal of the protocol cannot be put back: the session ends, with the reason.
#[test]
fn new_code_that_may_find_a_portal_ends_the_session() {
    for version in VERSIONS {
        let (server, database) = (server(version), format!("new_code_{version}"));
        administer(server, "postgres", &format!("CREATE DATABASE {database}"));
        administer(server, &database, SETUP);
        let distance = Duration::from_millis(DISTANCES_MS[0]);
        let gateway = gateway_at(server, server.at.port, distance);
        let path = Path { server, port: server.at.port, database: &database };
        let stage = Stage::through(&gateway, &path, distance);
        let mut program = stage.session("program");
        reads_portal_ahead(&mut program, SELECT);
        portal_is_ahead(&mut program);
        program.says(
            "CREATE FUNCTION moves() RETURNS void LANGUAGE plpgsql AS 'BEGIN EXECUTE ''MOVE 5 FROM '' || chr(112); END'",
        );
        program.client.send(&query("SELECT moves()"));
        assert!(program.client.ends_within(PATIENCE), "the session goes on");
        let errors = program.client.errors();
        assert!(
            errors.iter().any(|(_, code, why)| code == "08006" && why.contains("a new function")),
            "{errors:?}"
        );
        drop(program);
        gateway.stop();
        administer(server, "postgres", &format!("DROP DATABASE {database} WITH (FORCE)"));
    }
}
