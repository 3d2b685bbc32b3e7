//! What a session does before a program begins: the same as the program, but for the hole. The gateway has to serve it:
//! where a remedy is inactive, it is no wonder that nothing differs. Directly nothing is done.

use super::messages::{INT4, parse_typed};
use super::stage::Session;
use crate::common::messages::*;

/// Rounds of a loop until its statement should be foreseen.
const ROUNDS: usize = 12;

/// A cursor over this query is read ahead.
pub(crate) fn reads_ahead(program: &mut Session<'_>, select: &str) {
    program.settles(&format!("cursor over {select}"), |program| {
        program.says_all(&["BEGIN", &format!("DECLARE h CURSOR FOR {select}"), "FETCH FORWARD 10 FROM h"]);
        program.says("FETCH FORWARD 10 FROM h");
        program.stage.thinks();
        let is_told = program.is_told("FETCH FORWARD 10 FROM h");
        program.says("ROLLBACK");
        is_told
    });
}

/// A portal of the protocol is read ahead.
pub(crate) fn reads_portal_ahead(program: &mut Session<'_>, select: &str) {
    program.settles(&format!("portal of {select}"), |program| {
        program.says("BEGIN");
        let opened = [parse("", select), bind("h", "", &[]), describe_portal("h"), execute("h", 10), sync()];
        program.exchange("Bind", &opened.concat());
        program.exchange("Execute", &[execute("h", 10), sync()].concat());
        program.stage.thinks();
        let is_told = program.is_served("Execute", &[execute("h", 10), sync()].concat());
        program.says("ROLLBACK");
        is_told
    });
}

/// The same read twice in one snapshot takes one trip.
pub(crate) fn serves_repeat(program: &mut Session<'_>, select: &str) {
    program.settles(&format!("{select}, twice"), |program| {
        program.says_all(&["BEGIN ISOLATION LEVEL REPEATABLE READ", select]);
        program.stage.thinks();
        let is_told = program.is_told(select);
        program.says("COMMIT");
        is_told
    });
}

/// The same for a statement that was prepared and has one parameter.
pub(crate) fn serves_named_repeat(program: &mut Session<'_>, text: &str) {
    program.settles(&format!("{text}, twice"), |program| {
        program.exchange("Parse", &[parse_typed("hs", text, &[INT4]), sync()].concat());
        program.says("BEGIN ISOLATION LEVEL REPEATABLE READ");
        program.exchange("run", &run_named("hs", "1"));
        program.stage.thinks();
        let is_told = program.is_served("run", &run_named("hs", "1"));
        program.says("COMMIT");
        program.exchange("Close", &[close_statement("hs"), sync()].concat());
        is_told
    });
}

/// A statement that runs for each row of another is served: by name if it is prepared, as a text otherwise.
pub(crate) fn serves_loop(program: &mut Session<'_>, outer: &str, inner: &str, is_prepared: bool) {
    program.settles(&format!("loop over {inner}"), |program| {
        if is_prepared {
            program.exchange("Parse", &[parse_typed("hs", inner, &[INT4]), sync()].concat());
        }
        program.says("BEGIN ISOLATION LEVEL REPEATABLE READ");
        program.stage.thinks();
        let keys = program.column(outer);
        let mut told = 0;
        for key in keys.iter().take(ROUNDS) {
            let is_told = if is_prepared {
                program.is_served(key, &run_named("hs", key))
            } else {
                program.is_told(&inner.replace("$1", key))
            };
            told += usize::from(is_told);
        }
        program.says("COMMIT");
        if is_prepared {
            program.exchange("Close", &[close_statement("hs"), sync()].concat());
        }
        told > 0
    });
}

/// A Parse that the server has answered before is told.
pub(crate) fn tells_parse(program: &mut Session<'_>, text: &str) {
    program.settles(&format!("Parse of {text}"), |program| {
        let prepare = [parse("hs", text), describe_statement("hs"), sync()].concat();
        let is_told = program.is_served("Parse", &prepare);
        program.stage.thinks();
        program.exchange("Close", &[close_statement("hs"), sync()].concat());
        is_told
    });
}

/// Bind of a statement with one parameter, Describe of its portal and Execute.
pub(crate) fn run_named(statement: &str, key: &str) -> Vec<u8> {
    [bind("", statement, &[key.as_bytes()]), describe_portal(""), execute("", 0), sync()].concat()
}
