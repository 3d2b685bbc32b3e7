//! Cursors of SQL: DECLARE, FETCH, MOVE, CLOSE.

use super::super::minima::{Shape, never, served};
use super::super::random::Random;
use super::super::script::Script;
use super::common::{USUAL, begin, interruption, writer};

/// What is read, plainly and otherwise.
pub(crate) const QUERIES: [Shape; 14] = [
    served("SELECT id, v FROM n ORDER BY id"),
    served("SELECT id, v FROM n ORDER BY id"),
    served("SELECT id, t FROM n WHERE v > 50"),
    served("SELECT id, v, t FROM n"),
    served("SELECT id, name FROM p ORDER BY name"),
    // A FETCH gives text, whose form is a setting's.
    never("SELECT at, day, x FROM n ORDER BY id"),
    never("SELECT id, look(id) FROM n ORDER BY id"),
    never("SELECT side(id) FROM n WHERE id <= 25"),
    never("SELECT id, 100 / (25 - id) FROM n"),
    never("SELECT id, v FROM n FOR UPDATE"),
    never("SELECT nextval('sq'), id FROM n"),
    served("SELECT c.id, p.name FROM c JOIN p ON p.id = c.pid ORDER BY c.id"),
    never("SELECT id, calm(id) FROM n ORDER BY id"),
    never("SELECT generate_series(1, 25)"),
];

const DECLARES: [&str; 9] = [
    "DECLARE @ CURSOR FOR",
    "DECLARE @ CURSOR FOR",
    "DECLARE @ CURSOR FOR",
    "DECLARE @ NO SCROLL CURSOR FOR",
    "DECLARE @ SCROLL CURSOR FOR",
    "DECLARE @ CURSOR WITH HOLD FOR",
    "DECLARE @ NO SCROLL CURSOR WITH HOLD FOR",
    "DECLARE @ INSENSITIVE CURSOR WITHOUT HOLD FOR",
    "DECLARE @ BINARY CURSOR FOR",
];

const NAMES: [&str; 3] = ["cur", "\"_django_curs_1\"", "c2"];

/// A cursor that its driver declares with NO SCROLL, and reads by FETCH FORWARD alone: a program that names it otherwise
/// after it was read ahead loses its session (docs/safety.md, "What may differ").
const DRIVERS: &str = "\"_django_curs_7_sync_1\"";

/// A few cursors; one session in three writes instead.
pub(crate) fn write(script: &mut Script, random: &mut Random) {
    if script.session() > 0 && random.one_in(3) {
        return writer(script, random, 14);
    }
    for _ in 0..random.within(1..4) {
        begin(script, random, &USUAL);
        if random.one_in(6) {
            interruption(script, random);
        }
        if random.one_in(4) {
            as_django(script, random);
        } else {
            cursor(script, random);
        }
        script.end_transaction(random);
        if random.one_in(3) {
            // What a holdable cursor allows.
            let name = random.pick(&NAMES);
            fetches(script, random, name, 3, 0);
            script.simple(&format!("CLOSE {}", random.pick(&[name, "ALL"])));
        }
    }
}

/// As Django reads: NO SCROLL, pieces of one size by simple queries, CLOSE; in a transaction of its own or held beyond it.
fn as_django(script: &mut Script, random: &mut Random) {
    let held = random.pick(&["", "", "WITH HOLD "]);
    script.simple(&format!("DECLARE {DRIVERS} NO SCROLL CURSOR {held}FOR {}", random.pick(&QUERIES).text));
    let rows = random.pick(&[1, 3, 5, 10]);
    let interrupts = random.pick(&[0, 0, 4]);
    for piece in 0..random.within(3..12) {
        script.simple(&format!("FETCH FORWARD {rows} FROM {DRIVERS}"));
        if interrupts > 0 && random.one_in(interrupts) {
            interruption(script, random);
        }
        if piece == 3 && !held.is_empty() {
            script.end_transaction(random);
        }
    }
    script.simple(&format!("CLOSE {DRIVERS}"));
}

fn cursor(script: &mut Script, random: &mut Random) {
    let name = random.pick(&NAMES);
    let plain = name.contains("django").then_some("DECLARE @ CURSOR FOR");
    let declare = plain.unwrap_or_else(|| random.pick(&DECLARES)).replace('@', name);
    let text = format!("{declare} {}", random.pick(&QUERIES).text);
    script.any(random, &text);
    let other = random.one_in(5).then(|| random.pick(&NAMES));
    if let Some(other) = other {
        script.simple(&format!("DECLARE {other} CURSOR FOR SELECT id FROM n ORDER BY id DESC"));
    }
    let interrupts = random.pick(&[0, 0, 3, 6]);
    let count = random.within(2..8);
    fetches(script, random, name, count, interrupts);
    if let Some(other) = other {
        fetches(script, random, other, 2, 3);
    }
    if random.one_in(2) {
        script.simple(&format!("CLOSE {name}"));
    }
}

fn fetches(script: &mut Script, random: &mut Random, name: &str, count: usize, interrupts: usize) {
    let rows = random.pick(&[1, 3, 5, 10, 10]);
    let usual = match random.below(3) {
        0 => format!("FETCH {rows} FROM {name}"),
        1 => format!("FETCH FORWARD {rows} FROM {name}"),
        _ => format!("FETCH NEXT IN {name}"),
    };
    let is_plain = random.one_in(2);
    for _ in 0..count {
        if is_plain || random.below(3) > 0 {
            script.any(random, &usual);
        } else {
            let text = otherwise(random, name);
            script.any(random, &text);
        }
        if interrupts > 0 && random.one_in(interrupts) {
            interruption(script, random);
        }
    }
}

fn otherwise(random: &mut Random, name: &str) -> String {
    match random.below(16) {
        0 => format!("FETCH BACKWARD 2 FROM {name}"),
        1 => format!("FETCH PRIOR FROM {name}"),
        2 => format!("FETCH FIRST FROM {name}"),
        3 => format!("FETCH LAST FROM {name}"),
        4 => format!("FETCH ABSOLUTE 7 FROM {name}"),
        5 => format!("FETCH RELATIVE 3 FROM {name}"),
        6 => format!("FETCH ALL FROM {name}"),
        7 => format!("FETCH 0 FROM {name}"),
        8 => format!("MOVE 4 FROM {name}"),
        9 => format!("MOVE BACKWARD ALL IN {name}"),
        10 => format!("UPDATE n SET v = -1 WHERE CURRENT OF {name}"),
        11 => format!("DELETE FROM n WHERE CURRENT OF {name}"),
        12 => format!("FETCH 3 FROM {name}; FETCH 2 FROM {name}"),
        13 => "UPDATE n SET v = v + 1 WHERE id > 10".to_owned(),
        14 => "SELECT name, statement, is_holdable, is_scrollable FROM pg_cursors ORDER BY name".to_owned(),
        _ => format!("FETCH 3 FROM {}", random.pick(&["nobody", "CUR", "\"cur\""])),
    }
}
