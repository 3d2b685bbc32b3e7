//! Texts whose meaning is not in them: literals that a setting reads, views that a setting or a role shapes, implicit
//! casts, domains, enums, functions of all classes, columns of the system, comments; prepared once and run under other settings, in loops, in
//! pieces, by cursors of SQL and by portals, in texts and in binary, and with an error amid what may be read ahead.

use super::super::minima::{Shape, never, served};
use super::super::random::Random;
use super::super::script::{Form, INT4, Manner, Script, Statement, Value, bind_all, parse_typed};
use super::super::step::Wait;
use super::common::{SNAPSHOTS, USUAL, begin, interruption, writer};
use crate::common::messages::*;

/// Reads with one parameter, an int.
pub(crate) const READS: [Shape; 36] = [
    served("SELECT id, v FROM m WHERE id = $1"),
    served("SELECT id, at, day, b, span, x FROM m WHERE id = $1"),
    served("SELECT count(*) FROM m WHERE at >= '01/02/2024 00:00' AND id > $1"),
    served("SELECT count(*) FROM m WHERE at >= '2024-03-11 00:00' AND id > $1"),
    served("SELECT count(*) FROM m WHERE day = '02/03/2024' AND id > $1"),
    served("SELECT at < 'now' FROM m WHERE id = $1"),
    served("SELECT id, 'a\\nb', b = '\\x0003' FROM m WHERE id = $1"),
    served("SELECT id FROM m WHERE note = NULL AND id > $1"),
    served("SELECT id FROM m WHERE at > day AND id > $1 ORDER BY id"),
    served("SELECT id FROM m WHERE coalesce(at, day) < '2024-03-12 00:00+00' AND id > $1 ORDER BY id"),
    served("SELECT s FROM zoned WHERE id = $1"),
    served("SELECT a, s, b, x FROM told WHERE id = $1"),
    served("SELECT note FROM mine WHERE id > $1 ORDER BY id"),
    never("SELECT id FROM secret WHERE id > $1 ORDER BY id"),
    served("SELECT q FROM risky WHERE id = $1"),
    served("SELECT id, v FROM flat WHERE id = $1"),
    served("SELECT id FROM late WHERE id > $1 ORDER BY id"),
    never("SELECT id FROM k WHERE mood = 'ok' AND id > $1 ORDER BY id"),
    never("SELECT id, mood, pos FROM k WHERE mood > 'sad' AND id > $1 ORDER BY mood, id"),
    never("SELECT $1::positive"),
    never("SELECT imm($1)"),
    never("SELECT stab($1), id FROM m WHERE id = 3"),
    never("SELECT vol($1), calm($1)"),
    served("SELECT id, name, grp FROM p WHERE id = $1"),
    served("SELECT note FROM d WHERE pid = $1 ORDER BY note"),
    served("SELECT id, v FROM m WHERE id = $1 /* a comment */"),
    served("SELECT /* another */ id, v FROM m WHERE id = $1 -- and one more"),
    served("SELECT id, note FROM m WHERE note LIKE 'note\\_%' AND id = $1"),
    served("SELECT m.id, c.val FROM m LEFT JOIN c ON c.pid = m.id WHERE m.id = $1 ORDER BY c.id"),
    served("SELECT v FROM m WHERE id = $1 UNION ALL SELECT v FROM e WHERE id = $1"),
    served("WITH x AS (SELECT id, v FROM m WHERE id > $1) SELECT count(*), sum(v) FROM x"),
    served("SELECT id, row_number() OVER (ORDER BY v) FROM m WHERE id > $1 ORDER BY id"),
    served("SELECT lower(note), length(note), id % 3 FROM m WHERE id = $1"),
    served("SELECT 100 / v FROM m WHERE id = $1"),
    never("SELECT id, xmax::text <> '0' FROM m WHERE id = $1"),
    never("SELECT mark FROM marked WHERE id = $1"),
];

/// Results that are read in pieces.
pub(crate) const RESULTS: [Shape; 28] = [
    served("SELECT id, v FROM m ORDER BY id"),
    served("SELECT id, v FROM m"),
    served("SELECT id, note FROM m WHERE v > 0"),
    never("SELECT id, mood FROM k ORDER BY id"),
    never("SELECT id, pos FROM k ORDER BY id"),
    served("SELECT id, at, day FROM m ORDER BY id"),
    served("SELECT id, b, span, x FROM m ORDER BY id"),
    never("SELECT id, s FROM zoned"),
    never("SELECT id, a, s, b, x FROM told"),
    never("SELECT id, note FROM mine"),
    never("SELECT id FROM secret"),
    never("SELECT id, q FROM risky"),
    never("SELECT id, 100 / v FROM m"),
    never("SELECT id, 1 / v FROM m ORDER BY id"),
    never("SELECT id FROM m WHERE 100 / v < 1000"),
    served("SELECT id, v FROM flat"),
    never("SELECT id FROM late"),
    never("SELECT id FROM m WHERE at > day + 10"),
    never("SELECT id FROM m WHERE coalesce(at, day) < '2024-03-17 00:00+00'"),
    never("SELECT id, CASE WHEN v > 0 THEN at ELSE day END FROM m"),
    never("SELECT id, imm(id), stab(id) FROM m"),
    never("SELECT id, vol(id) FROM m"),
    never("SELECT id, note::varchar(3), v::text FROM m"),
    never("SELECT id, v::numeric / 7 FROM m ORDER BY id"),
    served("SELECT c.id, c.val FROM c ORDER BY c.id"),
    served("SELECT id, v, t FROM n ORDER BY id"),
    never("SELECT id, xmax::text <> '0' FROM m ORDER BY id"),
    never("SELECT id, mark FROM marked"),
];

/// A few transactions, and work beside them; one session in four writes instead.
pub(crate) fn write(script: &mut Script, random: &mut Random) {
    write_of(script, random, &READS.map(|shape| shape.text), &RESULTS.map(|shape| shape.text));
}

/// The same with these reads, each of which may have an int as its parameter, and results.
pub(crate) fn write_of(script: &mut Script, random: &mut Random, reads: &[&str], results: &[&str]) {
    if script.session() > 0 && random.one_in(4) {
        return writer(script, random, 10);
    }
    let texts: Vec<&str> = (0..random.within(1..4)).map(|_| random.pick(reads)).collect();
    let manner = Manner::any(random);
    for _ in 0..random.within(2..5) {
        let in_snapshot = random.one_in(2);
        begin(script, random, if in_snapshot { &SNAPSHOTS } else { &USUAL });
        for _ in 0..random.within(1..3) {
            match random.below(5) {
                0 | 1 => again(script, random, &texts, manner),
                2 => cursor(script, random, results),
                3 => portal(script, random, results),
                _ => walk(script, random, &texts, manner),
            }
        }
        script.end_transaction(random);
        if random.one_in(3) {
            again(script, random, &texts, manner);
        }
        if random.one_in(4) {
            fetch(script, random, "held", 5);
        }
    }
}

/// The same statement again and again.
fn again(script: &mut Script, random: &mut Random, texts: &[&str], manner: Manner) {
    let statement = Statement::new(random.pick(texts), &[Value::Int(random.pick(&[3, 7, 11, 19, 30]))]);
    let manner = if random.one_in(4) { Manner::any(random) } else { manner };
    let restlessness = random.pick(&[4, 1000, 1000]);
    for _ in 0..random.within(3..9) {
        script.run(&statement, manner);
        if random.one_in(restlessness) {
            interruption(script, random);
        }
    }
}

/// A loop over rows.
fn walk(script: &mut Script, random: &mut Random, texts: &[&str], manner: Manner) {
    script.run(&Statement::new("SELECT id, v, note FROM m ORDER BY id", &[]), manner);
    let text = random.pick(texts);
    let restlessness = random.pick(&[6, 1000, 1000]);
    for id in 1..random.within(8..24) {
        script.run(&Statement::new(text, &[Value::Int(id as i64)]), manner);
        if random.one_in(restlessness) {
            interruption(script, random);
        }
    }
}

/// A cursor of SQL: read by FETCH in both protocols and formats, by Execute, moved, written through.
fn cursor(script: &mut Script, random: &mut Random, results: &[&str]) {
    let (name, how) = random.pick(&[
        ("cur", "CURSOR"),
        ("cur", "CURSOR"),
        ("cur", "SCROLL CURSOR"),
        ("cur", "NO SCROLL CURSOR"),
        ("held", "CURSOR WITH HOLD"),
        ("held", "SCROLL CURSOR WITH HOLD"),
        ("cur", "BINARY CURSOR"),
    ]);
    let text = format!("DECLARE {name} {how} FOR {}", random.pick(results));
    script.any(random, &text);
    let rows = random.pick(&[1, 2, 5, 5, 10]);
    let (is_plain, restlessness) = (random.one_in(2), random.pick(&[5, 1000, 1000]));
    for _ in 0..random.within(3..12) {
        if is_plain || random.below(3) > 0 {
            script.simple(&format!("FETCH {rows} FROM {name}"));
        } else {
            fetch(script, random, name, rows);
        }
        if random.one_in(restlessness) {
            interruption(script, random);
        }
    }
    if random.one_in(2) {
        script.simple(&format!("CLOSE {name}"));
    }
}

/// In a form that is not the usual one.
fn fetch(script: &mut Script, random: &mut Random, name: &str, rows: u32) {
    let text = match random.below(8) {
        0 => format!("FETCH BACKWARD {rows} FROM {name}"),
        1 => format!("MOVE {rows} FROM {name}"),
        2 => format!("FETCH RELATIVE 2 FROM {name}"),
        3 => format!("UPDATE m SET v = -7 WHERE CURRENT OF {name}"),
        4 => format!("DELETE FROM m WHERE CURRENT OF {name}"),
        5 => format!("FETCH ALL FROM {name}"),
        _ => format!("FETCH {rows} FROM {name}"),
    };
    match random.below(4) {
        0 => script.simple(&text),
        1 => {
            let bytes = [execute(name, rows), sync()].concat();
            script.send(bytes, Wait::Ready(1), format!("execute {rows} of {name}"));
        }
        form => {
            let nothing = Statement::new(&text, &[]);
            let manner = Manner { is_binary: form == 2, ..Manner::SIMPLE };
            let bytes = [
                close_statement("fetch"),
                parse_typed("fetch", &text, &[]),
                bind_all("fetched", "fetch", &nothing, manner),
                describe_portal("fetched"),
                execute("fetched", 0),
                close_portal("fetched"),
                sync(),
            ];
            script.send(bytes.concat(), Wait::Ready(1), format!("extended {form} {text}"));
        }
    }
}

/// A portal of the protocol, of a statement that was prepared at some time before, in some format.
fn portal(script: &mut Script, random: &mut Random, results: &[&str]) {
    let (name, source) = (random.pick(&["C_1", "C_2"]), random.pick(&["S_1", "S_2"]));
    let statement = Statement::new(random.pick(results), &[]);
    let manner = Manner { declared: Some(INT4), is_binary: random.one_in(3), form: Form::Named };
    if random.below(3) > 0 {
        let bytes = [close_statement(source), parse_typed(source, &statement.text, &[]), sync()].concat();
        script.send(bytes, Wait::Ready(1), format!("prepare {source} {}", statement.text));
    }
    let rows = random.pick(&[2, 5, 5, 10]);
    let describe = if random.below(3) > 0 { describe_portal(name) } else { Vec::new() };
    let opened = [bind_all(name, source, &statement, manner), describe, execute(name, rows), sync()];
    script.send(opened.concat(), Wait::Ready(1), format!("open {name} of {source}, {rows} rows"));
    let restlessness = random.pick(&[5, 1000, 1000]);
    for _ in 0..random.within(2..12) {
        if random.one_in(restlessness) {
            interruption(script, random);
        }
        let rows = if random.one_in(8) { 3 } else { rows };
        script.send(
            [execute(name, rows), sync()].concat(),
            Wait::Ready(1),
            format!("fetch {rows} of {name}"),
        );
    }
    if random.one_in(2) {
        script.send([close_portal(name), sync()].concat(), Wait::Ready(1), format!("close {name}"));
    }
}
