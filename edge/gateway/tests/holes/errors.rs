//! Errors that a program never comes to.

use super::harmless::serves_loop;
use super::stage::{Hole, Session, Stage};

const SETUP: &str = "CREATE TABLE numbers AS SELECT g AS id, g::text AS v FROM generate_series(1, 30) AS g; \
    CREATE TABLE words AS SELECT g AS id, 'w' || g AS w FROM generate_series(1, 30) AS g; ANALYZE numbers, words";
const OUTER: &str = "SELECT v FROM numbers ORDER BY id";
const INNER: &str = "SELECT w FROM words WHERE id = '$1'::int";

/// The program stops before it comes to the number that is none.
fn loops(program: &mut Session<'_>) {
    program.says("BEGIN ISOLATION LEVEL REPEATABLE READ");
    program.stage.thinks();
    for key in program.column(OUTER).iter().take(11) {
        program.says(&INNER.replace("$1", key));
    }
    program.stage.thinks();
    program.says("COMMIT");
}

/// A guess fails that the program does not come to, where every error ends the session (`exit_on_error`).
fn ends_by_errors(setting: &'static str) -> impl Fn(&Stage) + Sync {
    move |stage| {
        let mut program = stage.session("program");
        serves_loop(&mut program, OUTER, INNER, false);
        program.says(setting);
        stage.session("other").says("UPDATE numbers SET v = '1x' WHERE id = 12");
        for _ in 0..6 {
            loops(&mut program);
        }
        program.says("SHOW exit_on_error");
        stage.session("other").says("UPDATE numbers SET v = '12' WHERE id = 12");
    }
}

#[test]
fn a_guess_that_fails_ends_no_session_that_errors_end() {
    let set = ends_by_errors("SET exit_on_error = on");
    let told = ends_by_errors("SELECT set_config('exit_on_error', 'on', false)");
    Hole { name: "errors", setup: SETUP, programs: &[("set", &set), ("by a function", &told)] }.assert_shut();
}
