//! Programs that differ from those beside them in nothing but the hole. The gateway has to serve each of them: where a
//! remedy is inactive, it is no wonder that nothing differs.

use super::messages::{INT4, parse_typed};
use super::stage::Stage;
use crate::common::messages::*;

/// Rounds of a loop until its statement should be foreseen.
const ROUNDS: usize = 12;

/// A cursor over this query is read ahead.
pub(crate) fn reads_ahead(stage: &Stage, select: &str) {
    stage.settles(&format!("cursor over {select}"), |stage| {
        let mut program = stage.session("harmless");
        program.says_all(&["BEGIN", &format!("DECLARE h CURSOR FOR {select}"), "FETCH FORWARD 10 FROM h"]);
        program.says("FETCH FORWARD 10 FROM h");
        stage.thinks();
        let is_told = program.is_told("FETCH FORWARD 10 FROM h");
        program.says("ROLLBACK");
        is_told
    });
}

/// The same read twice in one snapshot takes one trip.
pub(crate) fn serves_repeat(stage: &Stage, select: &str) {
    stage.settles(&format!("{select}, twice"), |stage| {
        let mut program = stage.session("harmless");
        program.says_all(&["BEGIN ISOLATION LEVEL REPEATABLE READ", select]);
        stage.thinks();
        let is_told = program.is_told(select);
        program.says("COMMIT");
        is_told
    });
}

/// A statement that runs for each row of another is served: by name if it is prepared, as a text otherwise.
pub(crate) fn serves_loop(stage: &Stage, outer: &str, inner: &str, is_prepared: bool) {
    stage.settles(&format!("loop over {inner}"), |stage| {
        let mut program = stage.session("harmless");
        if is_prepared {
            program.exchange("Parse", &[parse_typed("hs", inner, &[INT4]), sync()].concat());
        }
        program.says("BEGIN ISOLATION LEVEL REPEATABLE READ");
        stage.thinks();
        let keys = program.column(outer);
        let mut told = 0;
        for key in keys.iter().take(ROUNDS) {
            let is_told = if is_prepared {
                program.is_served(key, &run_named("hs", key))
            } else {
                program.is_told(&inner.replace("$1", key))
            };
            told += usize::from(is_told);
            if told == 0 {
                stage.thinks();
            }
        }
        program.says("COMMIT");
        told > 0
    });
}

/// A Parse that the server has answered before is told.
pub(crate) fn tells_parse(stage: &Stage, text: &str, parameters: &[(&str, &str)]) {
    stage.settles(&format!("Parse of {text}"), |stage| {
        let mut program = stage.session_with("harmless", parameters);
        let mut is_told = false;
        for _ in 0..3 {
            let prepare = [parse("", text), describe_statement(""), sync()].concat();
            is_told = program.is_served("Parse", &prepare);
            program.exchange("Close", &[close_statement(""), sync()].concat());
            stage.thinks();
        }
        is_told
    });
}

/// Bind of a statement with one parameter, Describe of its portal and Execute.
pub(crate) fn run_named(statement: &str, key: &str) -> Vec<u8> {
    [bind("", statement, &[key.as_bytes()]), describe_portal(""), execute("", 0), sync()].concat()
}
