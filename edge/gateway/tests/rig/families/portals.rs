//! Portals that are read a few rows at a time.

use super::super::minima::{Shape, never, served};
use super::super::random::Random;
use super::super::script::{Manner, Script, Statement, Value, bind_all, parse_typed};
use super::super::step::Wait;
use super::common::{USUAL, begin, interruption, writer};
use crate::common::messages::*;

/// What is read, plainly and otherwise.
pub(crate) const QUERIES: [Shape; 20] = [
    served("SELECT id, v FROM n ORDER BY id"),
    served("SELECT id, v, t FROM n WHERE id > 5 ORDER BY id"),
    served("SELECT id, name FROM p ORDER BY id"),
    served("SELECT n.id, c.val FROM n JOIN c ON c.pid = n.id ORDER BY n.id, c.id"),
    served("SELECT at, day FROM n ORDER BY id"),
    served("SELECT x, b FROM n ORDER BY id"),
    never("SELECT id, look(id) FROM n ORDER BY id"),
    never("SELECT id, calm(id) FROM n ORDER BY id"),
    never("SELECT side(id) FROM n WHERE id <= 20"),
    never("SELECT id, noisy(id) FROM n WHERE id <= 12"),
    never("SELECT id, 100 / (25 - id) FROM n"),
    // Sorted below what fails, so that it fails at its row whatever the plan is.
    never("SELECT id, 100 / (25 - id) FROM (SELECT id FROM n ORDER BY id OFFSET 0) n"),
    never("SELECT id, v FROM n ORDER BY id FOR UPDATE"),
    never("SELECT nextval('sq'), id FROM n"),
    never("SELECT id, current_setting('DateStyle') FROM n ORDER BY id"),
    never("SELECT id, current_user FROM n ORDER BY id"),
    never("SELECT generate_series(1, 30)"),
    // Its first piece is all of it.
    never("SELECT id FROM n WHERE false"),
    never("UPDATE n SET v = v + 1 WHERE id < 15 RETURNING id, v"),
    never("SELECT c::text, ref::regclass FROM c CROSS JOIN (SELECT 1259 AS ref) x ORDER BY id"),
];

/// What each of a program's fetches asks for, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asks {
    Sync,
    Flush,
}

/// A few portals, one after the other or two in turn; one session in three writes instead.
pub(crate) fn write(script: &mut Script, random: &mut Random) {
    if script.session() > 0 && random.one_in(3) {
        return writer(script, random, 12);
    }
    for _ in 0..random.within(1..4) {
        begin(script, random, &USUAL);
        if random.one_in(6) {
            interruption(script, random);
        }
        match random.below(4) {
            0 => in_turn(script, random),
            _ => one(script, random),
        }
        script.end_transaction(random);
    }
}

fn one(script: &mut Script, random: &mut Random) {
    let portal = random.pick(&["", "C_1", "C_1", "C_2"]);
    let asks = if random.one_in(3) { Asks::Flush } else { Asks::Sync };
    let rows = random.pick(&[1, 3, 5, 10, 10, 10, 20, 40]);
    let interrupts = random.pick(&[0, 0, 3, 6]);
    open(script, random, portal, rows, asks);
    let fetches = 40 / rows as usize + 2;
    let fetches = if random.one_in(3) { random.within(0..4) } else { fetches.min(8) };
    for _ in 0..fetches {
        if interrupts > 0 && random.one_in(interrupts) {
            between(script, random, portal, asks);
        }
        fetch(script, portal, rows, asks);
    }
    close(script, random, portal, asks);
}

fn in_turn(script: &mut Script, random: &mut Random) {
    let interrupts = random.pick(&[0, 4]);
    for portal in ["C_1", "C_2"] {
        open(script, random, portal, 5, Asks::Sync);
    }
    for _ in 0..random.within(2..9) {
        let portal = random.pick(&["C_1", "C_2"]);
        fetch(script, portal, random.pick(&[5, 5, 5, 7, 0]), Asks::Sync);
        if interrupts > 0 && random.one_in(interrupts) {
            between(script, random, portal, Asks::Sync);
        }
    }
    for portal in ["C_2", "C_1"] {
        close(script, random, portal, Asks::Sync);
    }
}

fn open(script: &mut Script, random: &mut Random, portal: &str, rows: u32, asks: Asks) {
    let parameterised = Statement::new("SELECT id, v FROM n WHERE id > $1 ORDER BY id", &[Value::Int(2)]);
    let statement = match random.below(4) {
        0 => parameterised,
        _ => Statement::new(random.pick(&QUERIES).text, &[]),
    };
    let manner =
        Manner { is_binary: random.one_in(4), declared: Some(super::super::script::INT8), ..Manner::SIMPLE };
    let name = random.pick(&["", "", "S_1"]);
    let types: &[u32] = if statement.values.is_empty() { &[] } else { &[super::super::script::INT8] };
    let closed = if name.is_empty() { Vec::new() } else { close_statement(name) };
    let opened = [
        without_dangling(portal),
        closed,
        parse_typed(name, &statement.text, types),
        bind_all(portal, name, &statement, manner),
        describe_portal(portal),
    ];
    let shown = format!("open {portal:?} of {name:?}, {rows} rows, {asks:?}: {}", statement.text);
    let (asked, wait) = asking(asks);
    let bytes = [opened.concat(), execute(portal, rows), asked].concat();
    script.send(bytes, wait, shown);
}

fn fetch(script: &mut Script, portal: &str, rows: u32, asks: Asks) {
    let (asked, wait) = asking(asks);
    script.send(
        [execute(portal, rows), asked].concat(),
        wait,
        format!("fetch {rows} of {portal:?}, {asks:?}"),
    );
}

fn asking(asks: Asks) -> (Vec<u8>, Wait) {
    match asks {
        Asks::Sync => (sync(), Wait::Ready(1)),
        Asks::Flush => (flush(), Wait::Executed),
    }
}

fn close(script: &mut Script, random: &mut Random, portal: &str, asks: Asks) {
    match random.below(3) {
        0 if asks == Asks::Sync => {}
        1 => script.send(sync(), Wait::Ready(1), "sync"),
        _ => {
            script.send([close_portal(portal), sync()].concat(), Wait::Ready(1), format!("close {portal:?}"))
        }
    }
}

/// A simple query that fails in a transaction leaves the unnamed portal to statements that the server has freed: what an
/// Execute of it then says depends on what lies there, and may be the end of the server (PostgreSQL 15 and 18).
fn without_dangling(portal: &str) -> Vec<u8> {
    if portal.is_empty() { close_portal("") } else { Vec::new() }
}

/// What comes between two fetches of a portal; after a Flush there is no simple query before the Sync.
fn between(script: &mut Script, random: &mut Random, portal: &str, asks: Asks) {
    // No FETCH by SQL of a portal that is there: a program that reads its driver's portals so loses its session
    // (docs/safety.md).
    const TEXTS: [&str; 9] = [
        "UPDATE n SET v = v + 1 WHERE id > 20",
        "DELETE FROM n WHERE id > 30",
        "SET DateStyle = 'German'",
        "SET TimeZone = 'Asia/Tokyo'",
        "SET bytea_output = 'escape'",
        "ROLLBACK TO s1",
        "SAVEPOINT s1",
        "FETCH 2 FROM \"C_9\"",
        "SELECT name FROM pg_cursors ORDER BY name",
    ];
    let text = random.pick(&TEXTS);
    match random.below(4) {
        0 if asks == Asks::Sync => {
            interruption(script, random);
            if portal.is_empty() {
                script.send([close_portal(""), sync()].concat(), Wait::Ready(1), "close \"\"");
            }
        }
        1 if asks == Asks::Sync && portal.is_empty() && !text.starts_with("SET ") => {
            let bytes = [query(text), close_portal(""), sync()].concat();
            script.send(bytes, Wait::Ready(2), format!("{text}; close \"\""));
        }
        1 if asks == Asks::Sync => script.simple(text),
        // The unnamed portal survives a statement by another name.
        _ if asks == Asks::Sync => {
            let bytes =
                [parse("b", text), bind("b", "b", &[]), execute("b", 0), close_statement("b"), sync()];
            script.send(bytes.concat(), Wait::Ready(1), format!("beside {text}"));
        }
        _ => {
            let bytes =
                [close_statement("b"), parse("b", text), bind("b", "b", &[]), execute("b", 0), flush()];
            script.send(bytes.concat(), Wait::Executed, format!("flushed beside {text}"));
        }
    }
}
