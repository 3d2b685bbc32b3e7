//! A right is taken away while reads are answered from memory.

use super::messages::{INT4, parse_typed};
use super::stage::{Hole, Stage};
use crate::common::messages::*;

const SETUP: &str = "DO $$ BEGIN CREATE ROLE hole_reader LOGIN; \
     EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$; \
     CREATE TABLE secret (id int PRIMARY KEY, v int); INSERT INTO secret SELECT g, g FROM generate_series(1, 30) AS g; \
     CREATE TABLE open (id int PRIMARY KEY); INSERT INTO open SELECT generate_series(1, 3); \
     GRANT SELECT ON secret, open TO hole_reader; ANALYZE secret, open";

/// The unnamed statement, and a run of it.
fn read() -> Vec<u8> {
    let text = "SELECT v FROM secret WHERE id = $1";
    [parse_typed("", text, &[INT4]), bind("", "", &[b"1"]), describe_portal(""), execute("", 0), sync()]
        .concat()
}

/// The last read is answered from memory; what it read is forbidden then. The program goes on with another table.
fn goes_on_elsewhere(stage: &Stage) {
    let mut other = stage.elsewhere("other");
    let mut program = stage.session_with("program", &[("user", "hole_reader")]);
    program.settles("an unnamed statement, twice", |program| {
        program.says("BEGIN ISOLATION LEVEL REPEATABLE READ");
        program.exchange("read", &read());
        program.stage.thinks();
        let is_served = program.is_served("read", &read());
        program.says("COMMIT");
        is_served
    });
    program.says("BEGIN ISOLATION LEVEL REPEATABLE READ");
    program.exchange("read", &read());
    stage.thinks();
    program.exchange("read", &read());
    other.says("REVOKE SELECT ON secret FROM hole_reader");
    program.exchange("Parse", &[parse("", "SELECT id FROM open"), sync()].concat());
    program.exchange("run", &[bind("", "", &[]), execute("", 0), sync()].concat());
    program.says("COMMIT");
    other.says("GRANT SELECT ON secret TO hole_reader");
}

#[test]
fn a_right_that_is_taken_away_fails_no_statement_of_another_table() {
    Hole { name: "rights", setup: SETUP, programs: &[("another statement", &goes_on_elsewhere)] }
        .assert_shut();
}
