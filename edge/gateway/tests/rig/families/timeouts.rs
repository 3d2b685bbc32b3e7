//! What takes longer than a session allows.

use std::time::Duration;

use super::super::random::Random;
use super::super::schema::PARENTS;
use super::super::script::{Manner, Script, Statement, Value};
use super::common::writer;

/// Much longer than the timeouts of what ends by them.
const LONG: Duration = Duration::from_millis(700);
/// Ten of them are longer than the timeout that they stay below.
const SHORT: Duration = Duration::from_millis(30);

/// A transaction or two; one session in three writes instead.
pub(crate) fn write(script: &mut Script, random: &mut Random, sessions: usize) {
    if script.session() > 0 && random.one_in(3) {
        return writer(script, random, 12);
    }
    for _ in 0..random.within(1..3) {
        script.block(|script| match random.below(6) {
            0 => slow_statement(script, random),
            1 => slow_row(script, random),
            2 => thinking(script, random),
            3 => idle(script, random, "idle_in_transaction_session_timeout"),
            4 => idle(script, random, "transaction_timeout"),
            _ => locked(script, random, sessions),
        })
    }
}

fn begin(script: &mut Script, random: &mut Random) {
    script.simple(random.pick(&["BEGIN ISOLATION LEVEL REPEATABLE READ", "BEGIN", "BEGIN READ ONLY"]));
}

fn children(script: &mut Script, manner: Manner, count: usize, pause: Duration) {
    script.run(&Statement::new("SELECT id FROM p ORDER BY id", &[]), manner);
    for parent in &PARENTS[..count] {
        let text = "SELECT id, val FROM c WHERE pid = $1 ORDER BY id";
        script.run(&Statement::new(text, &[Value::Int(*parent)]), manner);
        if !pause.is_zero() {
            script.pause_before_last(pause);
        }
    }
}

fn slow_statement(script: &mut Script, random: &mut Random) {
    script.simple("SET statement_timeout = '60ms'");
    begin(script, random);
    children(script, Manner::any(random), 6, Duration::ZERO);
    script.ending("SELECT pg_sleep(0.3)");
    script.simple("ROLLBACK");
    script.simple("RESET statement_timeout");
}

/// One row's statement is slow.
fn slow_row(script: &mut Script, random: &mut Random) {
    let manner = Manner::any(random);
    begin(script, random);
    script.simple("SET LOCAL statement_timeout = '60ms'");
    script.run(&Statement::new("SELECT id FROM p ORDER BY id", &[]), manner);
    for parent in &PARENTS[..8] {
        let text = "SELECT name, pg_sleep(CASE WHEN id = 26 THEN 0.3 ELSE 0 END) FROM p WHERE id = $1";
        script.run(&Statement::new(text, &[Value::Int(*parent)]), manner);
    }
    script.simple("ROLLBACK");
}

/// A program that says something often enough, though not always to the server.
fn thinking(script: &mut Script, random: &mut Random) {
    script.simple("SET idle_in_transaction_session_timeout = '220ms'");
    begin(script, random);
    children(script, Manner::any(random), 10, SHORT);
    script.simple("COMMIT");
    script.simple("RESET idle_in_transaction_session_timeout");
}

/// A program that does not.
fn idle(script: &mut Script, random: &mut Random, timeout: &str) {
    script.simple(&format!("SET {timeout} = '300ms'"));
    begin(script, random);
    children(script, Manner::any(random), 3, Duration::ZERO);
    script.simple("SELECT count(*) FROM c");
    script.pause_before_last(LONG);
    script.simple("COMMIT");
    // Where something has ended the transaction before, the session goes on: what follows is not to be timed by this.
    script.simple(&format!("RESET {timeout}"));
}

/// Another session may hold the lock, for as long as it likes.
fn locked(script: &mut Script, random: &mut Random, sessions: usize) {
    let other = (script.session() + 1 + random.below(sessions - 1)) % sessions;
    let held = random.pick(&["BEGIN; LOCK TABLE d", "BEGIN; UPDATE w SET v = 5", "BEGIN; LOCK TABLE c"]);
    script.simple("SET lock_timeout = '40ms'");
    script.elsewhere(other, held);
    begin(script, random);
    script.ending("SELECT count(*) FROM d");
    script.ending("UPDATE w SET v = v + 1");
    for parent in &PARENTS[..4] {
        script.ending(&format!("SELECT id, val FROM c WHERE pid = {parent} ORDER BY id"));
    }
    script.simple("ROLLBACK");
    script.elsewhere(other, "ROLLBACK");
}
