//! Prepared statements: what is parsed and described once and run later, while names and tables change.

use super::super::minima::{Shape, never, served};
use super::super::random::Random;
use super::super::script::{Form, INT4, INT8, Manner, Script, Statement, Value};
use super::super::step::Wait;
use super::common::{USUAL, begin, interruption, writer};
use crate::common::messages::*;

/// What is prepared; the same texts again and again, so that they are known. The remedy tells only what surely reads, and what
/// writes rows and returns none.
pub(crate) const TEXTS: [Shape; 18] = [
    served("SELECT id, name FROM p WHERE id = $1"),
    served("SELECT id, name FROM p WHERE id = $1"),
    served("SELECT * FROM e WHERE id = $1"),
    served("SELECT * FROM e WHERE v > $1 ORDER BY id"),
    served("SELECT * FROM p WHERE grp = $1 ORDER BY id"),
    served("SELECT val FROM c WHERE pid = $1 ORDER BY id"),
    served("SELECT $1"),
    served("SELECT $1 + 1"),
    served("SELECT count(*) FROM c WHERE pid <> $1"),
    served("SELECT 1 / $1::int"),
    served(UPDATE),
    never("SELECT side($1)"),
    never("INSERT INTO log (what) VALUES ($1) RETURNING id"),
    never("SELECT no_such_column FROM p WHERE id = $1"),
    never("SELECT id FROM nowhere WHERE id = $1"),
    never("SELEKT $1"),
    never("BEGIN"),
    never("SELECT id FROM p; SELECT $1"),
];

/// What changes rows and returns none.
const UPDATE: &str = "UPDATE e SET v = v WHERE id = $1";

/// What changes the answers of statements that were prepared before.
const CHANGES: [&str; 7] = [
    "ALTER TABLE e ADD COLUMN extra int DEFAULT 9",
    "ALTER TABLE e DROP COLUMN IF EXISTS extra",
    "ALTER TABLE e ALTER COLUMN v TYPE bigint",
    "ALTER TABLE e ALTER COLUMN id TYPE bigint",
    "ALTER TABLE e RENAME TO e2",
    "ALTER TABLE e2 RENAME TO e",
    "DROP TABLE IF EXISTS e",
];

const NAMES: [&str; 4] = ["", "", "a", "b"];

/// How many of them, from the first on, the server can prepare.
const GOOD: usize = 10;

/// Statements prepared, run, closed and disturbed; one session in four writes and changes tables instead.
pub(crate) fn write(script: &mut Script, random: &mut Random, sessions: usize) {
    if script.session() > 0 && random.one_in(4) {
        return writer(script, random, 3);
    }
    let choice = if script.is_calm() { &TEXTS[..GOOD] } else { &TEXTS[..] };
    let texts: Vec<&str> = (0..random.within(1..4)).map(|_| random.pick(choice).text).collect();
    let is_plain = script.is_calm() && random.below(3) > 0;
    for _ in 0..random.within(1..5) {
        begin(script, random, &USUAL);
        if is_plain {
            plainly(script, random, &texts);
        }
        let steps = if is_plain { random.below(2) } else { random.within(2..8) };
        for _ in 0..steps {
            let text = random.pick(&texts);
            step(script, random, text, sessions);
        }
        script.end_transaction(random);
    }
}

/// Nothing but statements that are prepared, described and run, as by a driver without a cache. A change is told again only
/// if it was not run in between, since it may change what statements mean.
fn plainly(script: &mut Script, random: &mut Random, texts: &[&str]) {
    if random.one_in(3) {
        let manner = Manner { form: Form::Split, declared: None, is_binary: false };
        for _ in 0..2 {
            script.prepare("", &Statement::new(UPDATE, &[]), manner);
        }
    }
    for _ in 0..random.within(2..7) {
        let statement = Statement::new(random.pick(texts), &[Value::Int(7)]);
        let form = random.pick(&[Form::Split, Form::Split, Form::Named]);
        script.run(&statement, Manner { form, declared: None, is_binary: false });
    }
}

fn step(script: &mut Script, random: &mut Random, text: &str, sessions: usize) {
    let statement = Statement::new(text, &values(random, text));
    let name = random.pick(&NAMES);
    match random.below(20) {
        0..=8 => {
            let manner = manner(random);
            script.run(&statement, manner);
        }
        9 | 10 => {
            let manner = manner(random);
            script.prepare(name, &statement, manner);
            match random.below(6) {
                0 => interruption(script, random),
                1 | 2 if !script.is_calm() => {
                    let other = (script.session() + 1 + random.below(sessions - 1)) % sessions;
                    script.elsewhere(other, random.pick(&CHANGES));
                }
                _ => {}
            }
            script.bind(name, &statement, manner);
        }
        11 => {
            let manner = manner(random);
            script.bind(name, &statement, manner);
        }
        12 => flushed(script, name, &statement),
        13 => described(script, random, name),
        14 => {
            script.send([close_statement(name), sync()].concat(), Wait::Ready(1), format!("close {name:?}"))
        }
        15 => by_sql(script, random),
        16 => script.simple(random.pick(&[
            "DEALLOCATE ALL",
            "DEALLOCATE a",
            "DEALLOCATE stmt_1",
            "DEALLOCATE PREPARE b",
        ])),
        17 => script.simple(random.pick(&[
            "SET search_path = other, public",
            "SET search_path = public",
            "RESET search_path",
            "CREATE TEMP TABLE p (id int, name text)",
            "DROP TABLE IF EXISTS pg_temp.p",
            "DISCARD ALL",
            "DISCARD TEMP",
            "DISCARD PLANS",
        ])),
        18 if !script.is_calm() => own_ddl(script, random),
        _ => interruption(script, random),
    }
}

fn manner(random: &mut Random) -> Manner {
    const FORMS: [Form; 5] = [Form::Unnamed, Form::Split, Form::Split, Form::Named, Form::NamedTogether];
    let declared = random.pick(&[None, None, None, Some(INT4), Some(INT8)]);
    Manner { form: random.pick(&FORMS), declared, is_binary: declared.is_some() && random.one_in(2) }
}

/// As many values as the text has parameters, mostly.
fn values(random: &mut Random, text: &str) -> Vec<Value> {
    let value = match random.below(8) {
        0 => Value::Null,
        1 => Value::Text("x".to_owned()),
        2 => Value::Int(0),
        _ => Value::Int(random.pick(&[3, 7, 11, 20])),
    };
    let is_right = random.below(20) > 0;
    if text.contains("$1") == is_right { vec![value] } else { Vec::new() }
}

/// Parse, Describe and Flush; then Bind and Execute in another group, before the Sync.
fn flushed(script: &mut Script, name: &str, statement: &Statement) {
    let parsed = [parse(name, &statement.text), describe_statement(name), flush()].concat();
    script.send(parsed, Wait::Described, format!("flush-prepare {name:?} {}", statement.text));
    script.bind(name, statement, Manner { form: Form::Split, declared: None, is_binary: false });
}

fn described(script: &mut Script, random: &mut Random, name: &str) {
    match random.below(3) {
        0 => {
            let bytes = [describe_statement(name), sync()].concat();
            script.send(bytes, Wait::Ready(1), format!("describe {name:?}"));
        }
        1 => {
            let bytes = [parse(name, "SELECT id, name FROM p WHERE id = $1"), sync()].concat();
            script.send(bytes, Wait::Ready(1), format!("parse {name:?} only"));
        }
        _ => {
            let text = "SELECT id FROM e ORDER BY id";
            let bytes = [parse(name, text), describe_statement(name), bind("", name, &[]), execute("", 0)];
            let bytes = [bytes.concat(), close_statement(name), sync()].concat();
            script.send(bytes, Wait::Ready(1), format!("all in one {name:?} {text}"));
        }
    }
}

fn by_sql(script: &mut Script, random: &mut Random) {
    const TEXTS: [&str; 8] = [
        "PREPARE a AS SELECT id, name FROM p WHERE id = $1",
        "PREPARE b (bigint) AS SELECT * FROM e WHERE id = $1",
        "PREPARE stmt_1 AS SELECT 1",
        "EXECUTE a(7)",
        "EXECUTE b(2)",
        "EXECUTE stmt_1",
        "EXECUTE stmt_1(3)",
        "SELECT name, statement, parameter_types, from_sql FROM pg_prepared_statements ORDER BY name",
    ];
    let text = random.pick(&TEXTS);
    script.any(random, text);
}

fn own_ddl(script: &mut Script, random: &mut Random) {
    if random.one_in(2) {
        let text = random.pick(&CHANGES);
        script.simple(text);
    }
}
