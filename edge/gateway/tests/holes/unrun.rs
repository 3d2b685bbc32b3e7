//! Code of users that runs when a statement is only parsed or planned: parsing a literal checks its domain, and planning runs
//! functions that are not VOLATILE.

use super::stage::{Hole, Session, Stage};
use crate::common::messages::*;

const SETUP: &str = "CREATE SCHEMA first; CREATE TABLE read_of (id int PRIMARY KEY, v int); \
     INSERT INTO read_of SELECT g, g FROM generate_series(1, 9) AS g; \
     CREATE TABLE first.chosen (id int, other text); CREATE TABLE chosen (id int, v int); \
     CREATE TABLE broken (id int REFERENCES read_of DEFERRABLE INITIALLY DEFERRED); CREATE TABLE noted (id int); \
     CREATE FUNCTION breaks(int) RETURNS bool LANGUAGE plpgsql AS \
     'BEGIN INSERT INTO public.broken VALUES (999); RETURN true; END'; \
     CREATE FUNCTION notes(int) RETURNS bool LANGUAGE plpgsql AS \
     'BEGIN INSERT INTO public.noted VALUES (1); RETURN true; END'; \
     CREATE FUNCTION sets(int) RETURNS bool LANGUAGE sql AS \
     'SELECT set_config(''work_mem'', ''69kB'', false) IS NOT NULL'; \
     CREATE FUNCTION moves(int) RETURNS bool LANGUAGE sql AS \
     'SELECT set_config(''search_path'', ''first, public'', false) IS NOT NULL'; \
     CREATE DOMAIN breaking AS int CHECK (breaks(VALUE)); CREATE TYPE breaks_it AS (x breaking); \
     CREATE DOMAIN noting AS int CHECK (notes(VALUE)); CREATE TYPE notes_it AS (x noting); \
     CREATE DOMAIN setting AS int CHECK (sets(VALUE)); CREATE TYPE sets_it AS (x setting); \
     CREATE DOMAIN moving AS int CHECK (moves(VALUE)); CREATE TYPE moves_it AS (x moving); \
     CREATE FUNCTION folded(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS \
     'BEGIN PERFORM public.breaks($1); RETURN 1; END'; \
     CREATE TABLE indexed (id int PRIMARY KEY, v int); INSERT INTO indexed VALUES (1, 1); \
     CREATE TABLE flag (id int); CREATE FUNCTION flagged(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS \
     'BEGIN IF EXISTS (SELECT FROM public.flag) THEN PERFORM public.breaks($1); END IF; RETURN 1; END'; \
     CREATE INDEX ON indexed (id) WHERE flagged(1) = 1; \
     CREATE FUNCTION estimated(int) RETURNS int LANGUAGE sql STABLE AS 'SELECT public.breaks($1)::int'; \
     ANALYZE read_of";

type Program = dyn Fn(&Stage) + Sync;

const READ: &str = "SELECT v FROM read_of WHERE id = 1";
const BY_ID: &str = "SELECT * FROM chosen WHERE id = $1";

fn parsed(text: &str) -> Vec<u8> {
    [parse("", text), sync()].concat()
}

fn described(text: &str) -> Vec<u8> {
    [parse("", text), describe_statement(""), sync()].concat()
}

fn bound(text: &str, values: &[&[u8]]) -> Vec<u8> {
    [parse("", text), bind("", "", values), sync()].concat()
}

/// So often that the ends would be answered, if it were not for such code: in a database that has it, none is.
fn ends(program: &mut Session<'_>) {
    for _ in 0..4 {
        program.says_all(&["BEGIN", READ]);
        program.stage.thinks();
        program.says("COMMIT");
    }
}

#[test]
fn a_commit_behind_code_that_ran_before_its_statement_is_the_servers() {
    let ways = [
        ("Parse", parsed("SELECT '(5)'::breaks_it")),
        ("Parse of a write", parsed("INSERT INTO noted SELECT (('(5)'::breaks_it).x)")),
        ("Describe", described("SELECT '{5}'::breaking[]")),
        ("Bind of a value", bound("SELECT $1::breaks_it", &[b"(5)"])),
        ("Bind of an IMMUTABLE call", bound("SELECT folded(1)", &[])),
        ("Bind of a STABLE call", bound("SELECT id FROM read_of WHERE id < estimated(1)", &[])),
        ("no error", parsed("SELECT '(5)'::notes_it")),
    ];
    let programs: Vec<(&str, Box<Program>)> = ways
        .into_iter()
        .map(|(name, unrun)| {
            let program = move |stage: &Stage| {
                let (mut program, mut other) = (stage.session("program"), stage.elsewhere("other"));
                ends(&mut program);
                for _ in 0..2 {
                    program.says_all(&["BEGIN", READ]);
                    program.exchange(name, &unrun);
                    stage.thinks();
                    program.says(READ);
                    stage.thinks();
                    program.says("COMMIT");
                    other.says("SELECT count(*) FROM noted");
                    program.says(READ);
                }
            };
            (name, Box::new(program) as Box<Program>)
        })
        .collect();
    let programs: Vec<(&str, &Program)> =
        programs.iter().map(|(name, program)| (*name, &**program)).collect();
    Hole { name: "unrun_ends", setup: SETUP, programs: &programs }.assert_shut();
}

/// Planning looks at each index of a table.
#[test]
fn what_an_index_runs_is_no_read() {
    let program = |stage: &Stage| {
        let (mut program, mut other) = (stage.session("program"), stage.session("other"));
        let read = "SELECT v FROM indexed WHERE id = 1";
        for _ in 0..3 {
            program.says_all(&["BEGIN", read]);
            stage.thinks();
            program.says("COMMIT");
        }
        other.says("INSERT INTO flag VALUES (1)");
        program.says_all(&["BEGIN", read]);
        stage.thinks();
        program.says_all(&["COMMIT", READ]);
        program.says("BEGIN ISOLATION LEVEL REPEATABLE READ");
        for _ in 0..3 {
            program.says(read);
            stage.thinks();
        }
        program.says_all(&["SELECT count(*) FROM broken", "ROLLBACK"]);
    };
    Hole { name: "unrun_index", setup: SETUP, programs: &[("an index", &program)] }.assert_shut();
}

#[test]
fn what_code_sets_before_its_statement_is_set() {
    let shown = |stage: &Stage| {
        let mut program = stage.session("program");
        for _ in 0..4 {
            program.says_all(&["SET work_mem = '100kB'", "SHOW work_mem"]);
            stage.thinks();
        }
        program.exchange("Parse", &parsed("SELECT '(5)'::sets_it"));
        stage.thinks();
        program.says_all(&[
            "SHOW work_mem",
            "SET work_mem = '100kB'",
            "SHOW work_mem",
            "RESET ALL",
            "SHOW work_mem",
        ]);
    };
    let moved = |stage: &Stage| {
        let mut program = stage.session("program");
        let prepares = |program: &mut Session<'_>| {
            program.exchange("Parse", &[parse("", BY_ID), describe_statement(""), sync()].concat());
        };
        for _ in 0..4 {
            prepares(&mut program);
            stage.thinks();
        }
        program.exchange("Parse", &parsed("SELECT '(5)'::moves_it"));
        prepares(&mut program);
        let run = [bind("", "", &[b"1"]), describe_portal(""), execute("", 0), sync()].concat();
        program.exchange("Bind", &run);
    };
    let programs: [(&str, &Program); 2] = [("SHOW", &shown), ("search_path", &moved)];
    Hole { name: "unrun_settings", setup: SETUP, programs: &programs }.assert_shut();
}

/// lo_open and loread, by their numbers.
const LO_OPEN: u32 = 952;
const LOREAD: u32 = 954;
const OBJECT: u32 = 90_001;

/// A statement was sent as a read, and turns out to be none while the server's descriptor is ahead of the program.
#[test]
fn a_descriptor_stays_in_its_place_when_a_read_turns_out_to_be_none() {
    let reads = |text: &'static str, thinks: usize| {
        move |stage: &Stage| {
            let mut program = stage.session("program");
            for _ in 0..3 {
                program.says_all(&["BEGIN", text]);
                let opens = call_binary(LO_OPEN, &[&OBJECT.to_be_bytes(), &0x4_0000u32.to_be_bytes()]);
                program.exchange("lo_open", &opens);
                for read in 0..5 {
                    if read == thinks {
                        stage.thinks();
                    }
                    let reads = call_binary(LOREAD, &[&0u32.to_be_bytes(), &300u32.to_be_bytes()]);
                    program.exchange("loread", &reads);
                }
                program.says("COMMIT");
            }
        }
    };
    let table = "SELECT id FROM read_of ORDER BY id";
    let (early, late, never) = (reads(table, 0), reads(table, 1), reads(table, 9));
    let called = reads("SELECT notes(1)", 0);
    let setup = format!("{SETUP}; SELECT lo_from_bytea({OBJECT}, decode(repeat('01020304', 200), 'hex'))");
    let programs: [(&str, &Program); 4] = [
        ("at once", &never),
        ("before it is read", &early),
        ("while it is read", &late),
        ("a call", &called),
    ];
    Hole { name: "late_proof", setup: &setup, programs: &programs }.assert_shut();
}
