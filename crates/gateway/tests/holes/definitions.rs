//! Tables that a function or a trigger changes, and nobody's text: what sessions know together does not hold any longer.

use super::harmless::{serves_repeat, tells_parse};
use super::stage::{Hole, Session, Stage};
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
const WAYS: [(&str, &[&str]); 7] = [
    ("SELECT", &["SELECT remakes()"]),
    ("SELECT in a transaction", &["BEGIN", "SELECT remakes()", "COMMIT"]),
    ("INSERT", &["INSERT INTO asks VALUES (1)"]),
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
