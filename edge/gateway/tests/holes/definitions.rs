//! Tables that a function or a trigger changes, and nobody's text: what sessions know together does not hold any longer.

use super::harmless::{serves_repeat, tells_parse};
use super::stage::{Hole, Session, Stage, administer, server};
use crate::common::messages::*;

const SETUP: &str = "CREATE SCHEMA first; CREATE SEQUENCE counted; \
     CREATE TABLE chosen (id int, v int); INSERT INTO chosen SELECT g, g FROM generate_series(1, 30) AS g; \
     CREATE TABLE asks (id int); CREATE TABLE asks_late (id int); CREATE TABLE done (id int); \
     CREATE FUNCTION remake() RETURNS int LANGUAGE plpgsql AS $$BEGIN \
     CREATE VIEW first.chosen AS SELECT id, 'view'::text AS v, nextval('public.counted') AS n FROM public.chosen; \
     RETURN 1; END$$; \
     CREATE FUNCTION remakes() RETURNS int LANGUAGE sql AS 'SELECT remake()'; \
     CREATE FUNCTION remake_by_trigger() RETURNS trigger LANGUAGE plpgsql AS \
     'BEGIN PERFORM public.remakes(); RETURN NULL; END'; \
     CREATE TRIGGER t AFTER INSERT ON asks FOR EACH ROW EXECUTE FUNCTION remake_by_trigger(); \
     CREATE CONSTRAINT TRIGGER t AFTER INSERT ON asks_late DEFERRABLE INITIALLY DEFERRED \
     FOR EACH ROW EXECUTE FUNCTION remake_by_trigger(); \
     ANALYZE chosen";

const FIRST: (&str, &str) = ("search_path", "first, public");
const BY_ID: &str = "SELECT * FROM chosen WHERE id = $1";
const COUNT: &str = "SELECT count(*) FROM chosen";
const ROW: &str = "SELECT * FROM chosen WHERE id = 3";

/// How a session has the table changed.
const WAYS: [(&str, &[&str]); 8] = [
    ("SELECT", &["SELECT remakes()"]),
    ("SELECT in a transaction", &["BEGIN", "SELECT remakes()", "COMMIT"]),
    ("INSERT", &["INSERT INTO asks VALUES (1)"]),
    ("INSERT within WITH", &["WITH x AS (INSERT INTO asks VALUES (1) RETURNING id) SELECT count(*) FROM x"]),
    ("INSERT of a call", &["INSERT INTO done VALUES (remakes())"]),
    ("INSERT, deferred", &["BEGIN", "INSERT INTO asks_late VALUES (1)", "COMMIT"]),
    ("COPY", &["COPY done FROM PROGRAM 'true'", "COPY asks FROM PROGRAM 'echo 1'"]),
    ("a cursor", &["BEGIN", "DECLARE c CURSOR FOR SELECT remakes()", "FETCH 1 FROM c", "COMMIT"]),
];

fn prepares(program: &mut Session<'_>) {
    program.exchange("Parse", &[parse("", BY_ID), describe_statement(""), sync()].concat());
}

fn runs(program: &mut Session<'_>) {
    let run = [bind("", "", &[b"3"]), describe_portal(""), execute("", 0), sync()].concat();
    program.exchange("Bind", &run);
}

/// What a Parse says: in a transaction nobody can take back what was told.
fn described(stage: &Stage, change: &[&str], by_another: bool) {
    let (mut program, mut other) = (stage.session_with("program", &[FIRST]), stage.session("other"));
    tells_parse(&mut program, BY_ID);
    for _ in 0..2 {
        prepares(&mut program);
        runs(&mut program);
        stage.thinks();
    }
    if by_another {
        other.says_all(change);
    } else {
        program.says_all(change);
        stage.thinks();
        program.says(COUNT);
        stage.thinks();
    }
    program.says("BEGIN");
    stage.thinks();
    prepares(&mut program);
    program.says("SELECT 1");
    program.says("ROLLBACK");
    other.says("DROP VIEW first.chosen");
}

/// What a statement does: one that was proven to only read would be answered from memory, and counts now.
fn proven(stage: &Stage, change: &[&str], by_another: bool) {
    let (mut program, mut other) = (stage.session_with("program", &[FIRST]), stage.session("other"));
    serves_repeat(&mut program, ROW);
    if by_another {
        other.says_all(change);
    } else {
        program.says_all(change);
        stage.thinks();
    }
    program.says("BEGIN ISOLATION LEVEL REPEATABLE READ");
    for _ in 0..3 {
        program.says("SELECT 1");
        stage.thinks();
        program.says(ROW);
        stage.thinks();
    }
    program.says("COMMIT");
    program.says("SELECT last_value FROM counted");
    other.says("DROP VIEW first.chosen");
}

type Program = dyn Fn(&Stage) + Sync;

#[test]
fn what_a_function_defines_is_there_for_all_sessions() {
    let programs: Vec<(String, Box<Program>)> = WAYS
        .into_iter()
        .flat_map(|(name, change)| {
            [true, false].into_iter().flat_map(move |by_another| {
                let who = if by_another { "another session" } else { "the session itself" };
                let described = move |stage: &Stage| described(stage, change, by_another);
                let proven = move |stage: &Stage| proven(stage, change, by_another);
                let described: Box<Program> = Box::new(described);
                let proven: Box<Program> = Box::new(proven);
                [(format!("described, {name}, {who}"), described), (format!("proven, {name}, {who}"), proven)]
            })
        })
        .collect();
    let programs: Vec<(&str, &Program)> =
        programs.iter().map(|(name, program)| (&**name, &**program)).collect();
    Hole { name: "definitions", setup: SETUP, programs: &programs }.assert_shut();
}

/// Reading a literal checks its domain, and planning runs what is declared IMMUTABLE: no statement has to be run for that.
#[test]
fn what_a_statement_defines_that_is_never_run_is_there_for_all_sessions() {
    let setup = format!(
        "{SETUP}; CREATE DOMAIN checked AS int CHECK (remakes() = 1); CREATE TYPE pair AS (x checked); \
         CREATE FUNCTION folded(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS \
         'BEGIN PERFORM public.remakes(); RETURN 1; END'"
    );
    let bound = |text: &str, values: &[&[u8]]| [parse("", text), bind("", "", values), sync()].concat();
    let ways = [
        ("Parse of a literal", [parse("", "SELECT '(5)'::pair"), sync()].concat()),
        ("Parse of a write", [parse("", "INSERT INTO done SELECT (('(5)'::pair).x)"), sync()].concat()),
        ("Describe", [parse("", "SELECT '{5}'::checked[]"), describe_statement(""), sync()].concat()),
        ("PREPARE", query("PREPARE reads AS SELECT '(5)'::pair")),
        ("EXPLAIN", query("EXPLAIN (COSTS OFF) SELECT '(5)'::pair")),
        ("Bind of a value", bound("SELECT $1::pair", &[b"(5)"])),
        ("Bind of a write", bound("INSERT INTO done VALUES (($1::pair).x)", &[b"(5)"])),
        ("Bind of a call", bound("SELECT folded(1)", &[])),
        ("Bind of an UPDATE", bound("UPDATE done SET id = id WHERE id = folded(-1)", &[])),
    ];
    let programs: Vec<(&str, Box<Program>)> = ways
        .into_iter()
        .map(|(name, change)| {
            let program = move |stage: &Stage| {
                let (mut program, mut other) =
                    (stage.session_with("program", &[FIRST]), stage.session("other"));
                // So often that the Parse would be answered, if it were not for such code (rule C6).
                for _ in 0..6 {
                    prepares(&mut program);
                    stage.thinks();
                }
                other.exchange(name, &change);
                prepares(&mut program);
                runs(&mut program);
                other.says("DROP VIEW first.chosen");
            };
            (name, Box::new(program) as Box<Program>)
        })
        .collect();
    let programs: Vec<(&str, &Program)> =
        programs.iter().map(|(name, program)| (*name, &**program)).collect();
    Hole { name: "unrun", setup: &setup, programs: &programs }.assert_shut();
}

/// Where a view may define something, no read is harmless before it is proven.
#[test]
fn what_a_view_defines_is_there_for_all_sessions() {
    let program = |stage: &Stage| {
        let (mut program, mut other) = (stage.session_with("program", &[FIRST]), stage.session("other"));
        for _ in 0..5 {
            prepares(&mut program);
            runs(&mut program);
            program.says_all(&["BEGIN ISOLATION LEVEL REPEATABLE READ", ROW, ROW, "COMMIT"]);
            stage.thinks();
        }
        other.says("SELECT * FROM asked");
        program.says("BEGIN ISOLATION LEVEL REPEATABLE READ");
        prepares(&mut program);
        for _ in 0..3 {
            program.says(ROW);
            stage.thinks();
        }
        program.says_all(&["COMMIT", "SELECT last_value FROM counted"]);
    };
    let setup = format!("{SETUP}; CREATE VIEW asked AS SELECT remake()");
    Hole { name: "acting_views", setup: &setup, programs: &[("a view", &program)] }.assert_shut();
}

/// The catalogue is written like any other table.
#[test]
fn what_is_written_into_the_catalogue_is_there_for_all_sessions() {
    const COLUMN: &str =
        "UPDATE pg_attribute SET attname = 'named' WHERE attrelid = 'public.chosen'::regclass AND attnum = 2";
    const SCHEMA: &str =
        "UPDATE pg_class SET relnamespace = 'first'::regnamespace WHERE oid = 'later.chosen'::regclass";
    let renamed = |stage: &Stage| described(stage, &[COLUMN], true);
    let moved = |stage: &Stage| {
        let (mut program, mut other) = (stage.session_with("program", &[FIRST]), stage.session("other"));
        other.says(
            "CREATE VIEW later.chosen AS SELECT id, v, nextval('public.counted') AS n FROM public.chosen",
        );
        serves_repeat(&mut program, ROW);
        other.says(SCHEMA);
        program.says("BEGIN ISOLATION LEVEL REPEATABLE READ");
        for _ in 0..3 {
            program.says("SELECT 1");
            stage.thinks();
            program.says(ROW);
            stage.thinks();
        }
        program.says_all(&["COMMIT", "SELECT last_value FROM counted"]);
    };
    let in_function = |stage: &Stage| {
        let (mut program, mut other) = (stage.session_with("program", &[FIRST]), stage.session("other"));
        tells_parse(&mut program, BY_ID);
        prepares(&mut program);
        runs(&mut program);
        stage.thinks();
        other.says("SELECT renames()");
        program.says("BEGIN");
        stage.thinks();
        prepares(&mut program);
        program.says_all(&["SELECT 1", "ROLLBACK"]);
    };
    // No function of a user is there that may act unasked.
    let plain = "CREATE SCHEMA first; CREATE SCHEMA later; CREATE SEQUENCE counted; \
         CREATE TABLE chosen (id int, v int); INSERT INTO chosen SELECT g, g FROM generate_series(1, 30) AS g; ANALYZE chosen";
    let programs: [(&str, &Program); 2] = [("a column", &renamed), ("a schema", &moved)];
    Hole { name: "catalogues", setup: plain, programs: &programs }.assert_shut();
    let setup = format!(
        "{plain}; CREATE FUNCTION renames() RETURNS void LANGUAGE sql AS \
         $$UPDATE pg_catalog.pg_attribute SET attname = 'again' WHERE attrelid = 'public.chosen'::regclass AND attnum = 2$$"
    );
    Hole { name: "writers", setup: &setup, programs: &[("in a function", &in_function)] }.assert_shut();
}

/// Functions of the server run texts that nobody sees before.
#[test]
fn what_a_text_that_is_run_defines_is_there_for_all_sessions() {
    const REMAKE: &str = "CREATE SCHEMA first; CREATE SEQUENCE counted; \
         CREATE TABLE chosen (id int, v int); INSERT INTO chosen SELECT g, g FROM generate_series(1, 30) AS g; ANALYZE chosen; \
         CREATE FUNCTION remake() RETURNS int LANGUAGE plpgsql AS $$BEGIN \
         CREATE VIEW first.chosen AS SELECT id, 'view'::text AS v, nextval('public.counted') AS n FROM public.chosen; RETURN 1; END$$";
    const BY: [(&str, &str, &str); 4] = [
        (
            "text_in_trigger",
            "CREATE TABLE asks (id int); CREATE FUNCTION runs() RETURNS trigger LANGUAGE plpgsql AS \
             $$BEGIN PERFORM query_to_xml('SELECT public.rema' || 'ke()', true, true, ''); RETURN NULL; END$$; \
             CREATE TRIGGER t AFTER INSERT ON asks FOR EACH ROW EXECUTE FUNCTION runs()",
            "INSERT INTO asks VALUES (1)",
        ),
        (
            "text_in_default",
            "CREATE TABLE asks (id int, v text DEFAULT query_to_xml('SELECT public.remake()', true, true, '')::text)",
            "INSERT INTO asks (id) VALUES (1)",
        ),
        (
            "text_in_check",
            "CREATE TABLE asks (id int CHECK (query_to_xml('SELECT public.remake()', true, true, '') IS NOT NULL))",
            "INSERT INTO asks VALUES (1)",
        ),
        (
            "text_in_view",
            "CREATE VIEW asks AS SELECT query_to_xml('SELECT public.remake()', true, true, '')::text AS v",
            "SELECT * FROM asks",
        ),
    ];
    for (name, code, change) in BY {
        let program = |stage: &Stage| described(stage, &[change], true);
        let setup = format!("{REMAKE}; {code}");
        Hole { name, setup: &setup, programs: &[(name, &program)] }.assert_shut();
    }
}

/// COMMIT runs deferred triggers, and what cursors WITH HOLD read.
#[test]
fn what_a_commit_runs_may_change_the_session() {
    let setup = "CREATE SCHEMA first; CREATE TABLE chosen (id int, v int); INSERT INTO chosen SELECT g, g FROM generate_series(1, 30) AS g; \
         CREATE TABLE first.chosen (id int, other text); INSERT INTO first.chosen VALUES (3, 'first'); \
         CREATE TABLE asks (id int); CREATE FUNCTION moves_on() RETURNS int LANGUAGE plpgsql AS \
         $$BEGIN PERFORM set_config('search_path', 'first, public', false); RETURN 1; END$$; \
         CREATE FUNCTION moves_by_trigger() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM public.moves_on(); RETURN NULL; END'; \
         CREATE CONSTRAINT TRIGGER t AFTER INSERT ON asks DEFERRABLE INITIALLY DEFERRED FOR EACH ROW \
         EXECUTE FUNCTION moves_by_trigger(); ANALYZE chosen";
    let behind = |change: &'static str| {
        move |stage: &Stage| {
            let mut program = stage.session("program");
            tells_parse(&mut program, BY_ID);
            serves_repeat(&mut program, ROW);
            program.says_all(&["BEGIN", change]);
            for _ in 0..4 {
                prepares(&mut program);
                runs(&mut program);
                program.says_all(&[ROW, "SELECT 1"]);
                stage.thinks();
            }
            program.says_all(&["COMMIT", "BEGIN"]);
            prepares(&mut program);
            runs(&mut program);
            program.says_all(&["COMMIT", "BEGIN ISOLATION LEVEL REPEATABLE READ", ROW, ROW, "COMMIT"]);
            program.says("SHOW search_path");
        }
    };
    let deferred = behind("INSERT INTO asks VALUES (1)");
    let held = behind("DECLARE c CURSOR WITH HOLD FOR SELECT moves_on()");
    let programs: [(&str, &Program); 2] = [("a deferred trigger", &deferred), ("a held cursor", &held)];
    Hole { name: "ends", setup, programs: &programs }.assert_shut();
}

/// All databases of a server share their roles, and a role's name decides where a name is looked for.
#[test]
fn what_a_session_of_another_database_changes_in_roles_is_there_for_all_sessions() {
    const NAMED: &str = "SELECT * FROM z";
    let program = |stage: &Stage| {
        let role = format!("role_of_{}", stage.database);
        let renamed = format!("{role}_x");
        let setup = format!(
            "CREATE ROLE {role} SUPERUSER; \
             CREATE SCHEMA {role}; CREATE TABLE {role}.z AS SELECT 1 AS id, 'a'::text AS v; \
             CREATE SCHEMA {renamed}; CREATE TABLE {renamed}.z AS SELECT 1 AS id, 2 AS v, 3 AS w"
        );
        administer(stage.server, &stage.database, &setup);
        let mut program = stage.session("program");
        let mut other = stage.session_with("other", &[("database", "postgres")]);
        program.exchange("SET ROLE", &query(&format!("SET ROLE {role}")));
        for (from, to) in [(&role, &renamed), (&renamed, &role)] {
            serves_repeat(&mut program, NAMED);
            tells_parse(&mut program, NAMED);
            program.says_all(&["BEGIN ISOLATION LEVEL REPEATABLE READ", NAMED]);
            stage.thinks();
            program.says(NAMED);
            other.exchange("ALTER ROLE", &query(&format!("ALTER ROLE {from} RENAME TO {to}")));
            program.says_all(&[NAMED, NAMED, "COMMIT"]);
            let prepare = [parse("", NAMED), describe_statement(""), sync()].concat();
            program.exchange("Parse", &prepare);
            program.exchange("Bind", &[bind("", "", &[]), execute("", 0), sync()].concat());
        }
        program.says("RESET ROLE");
        administer(stage.server, "postgres", &format!("DROP ROLE {role}"));
    };
    Hole { name: "roles", setup: "", programs: &[("a role", &program)] }.assert_shut();
}

/// Somebody logs in, and that defines another table.
fn logs_in(stage: &Stage, is_described: bool) {
    let mut program = stage.session_with("program", &[FIRST]);
    let mut other = stage.session("other");
    tells_parse(&mut program, BY_ID);
    serves_repeat(&mut program, ROW);
    other.says("INSERT INTO going VALUES (1)");
    if is_described {
        for _ in 0..2 {
            prepares(&mut program);
            runs(&mut program);
            stage.thinks();
        }
        drop(stage.session("who logs in"));
        program.says("BEGIN");
        stage.thinks();
        prepares(&mut program);
        program.says("SELECT 1");
    } else {
        program.says("BEGIN ISOLATION LEVEL REPEATABLE READ");
        program.says_all(&["SELECT 1", ROW]);
        stage.thinks();
        drop(stage.session("who logs in"));
        program.says_all(&[ROW, ROW]);
    }
    program.says("ROLLBACK");
    other.says_all(&["TRUNCATE going", "DROP VIEW first.chosen"]);
}

/// From PostgreSQL 17 on, an event trigger may run at a login.
#[test]
fn what_a_login_defines_is_there_for_all_sessions() {
    let setup = format!(
        "{SETUP}; CREATE TABLE going (id int); CREATE FUNCTION defines() RETURNS event_trigger LANGUAGE plpgsql AS \
         $$BEGIN IF EXISTS (SELECT FROM public.going) THEN PERFORM public.remakes(); END IF; END$$; \
         CREATE EVENT TRIGGER defines ON login EXECUTE FUNCTION defines()"
    );
    let described = |stage: &Stage| logs_in(stage, true);
    let repeated = |stage: &Stage| logs_in(stage, false);
    let programs: [(&str, &Program); 2] = [("described", &described), ("repeated", &repeated)];
    Hole { name: "logins", setup: &setup, programs: &programs }.assert_shut_on(&[("18", server("18"))]);
}
