//! Results that are read in pieces.

use onetrip_testkit::messages::*;
use onetrip_testkit::random::Random;
use onetrip_testkit::script::{Form, INT8, Manner, Script, Statement, Value, bind_all, parse_typed};
use onetrip_testkit::step::Wait;

use super::common::{begin, interruption, writer};

const WALKED: [&str; 5] = [
    "SELECT id, v FROM n ORDER BY id",
    "SELECT id, v FROM n ORDER BY id",
    "SELECT id, t FROM n WHERE id > 4 ORDER BY id",
    "SELECT id, 100 / (25 - id) FROM n ORDER BY id",
    "SELECT id FROM n WHERE v > 1000 ORDER BY id LIMIT 9",
];

/// Results that are read in pieces by the protocol.
pub(crate) fn portals(script: &mut Script, random: &mut Random) {
    if script.session() > 0 && random.one_in(3) {
        return writer(script, random);
    }
    for _ in 0..random.within(1..4) {
        begin(
            script,
            random,
            &["BEGIN", "BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ", "BEGIN READ ONLY"],
        );
        let (portal, rows) = (random.pick(&["", "C_1", "C_2"]), random.pick(&[1, 3, 10, 10, 13]));
        let declared = if random.one_in(3) { Some(INT8) } else { None };
        let statement = match declared {
            None => Statement::new(random.pick(&WALKED), &[]),
            Some(_) => Statement::new("SELECT id, v FROM n WHERE id > $1 ORDER BY id", &[Value::Int(2)]),
        };
        let manner = Manner { form: Form::Unnamed, declared, is_binary: random.one_in(4) };
        let types: Vec<u32> = declared.into_iter().collect();
        let opened = [
            parse_typed("", &statement.text, &types),
            bind_all(portal, "", &statement, Manner { declared: Some(INT8), ..manner }),
            describe_portal(portal),
            execute(portal, rows),
            sync(),
        ];
        script.send(
            opened.concat(),
            Wait::Ready(1),
            format!("open {portal:?}, {rows} rows: {}", statement.text),
        );
        let interrupts = random.pick(&[0, 0, 5, 10]);
        for _ in 0..random.within(1..40 / rows as usize + 3) {
            let rows = if random.one_in(12) { random.pick(&[0, 2, 7]) } else { rows };
            let bytes = [execute(portal, rows), sync()].concat();
            script.send(bytes, Wait::Ready(1), format!("fetch {rows} of {portal:?}"));
            if interrupts > 0 && random.one_in(interrupts) {
                interruption(script, random);
            }
        }
        if random.one_in(2) {
            script.send([close_portal(portal), sync()].concat(), Wait::Ready(1), format!("close {portal:?}"));
        }
        script.end_transaction(random);
    }
}

/// Cursors of SQL.
pub(crate) fn cursors(script: &mut Script, random: &mut Random) {
    if script.session() > 0 && random.one_in(3) {
        return writer(script, random);
    }
    for _ in 0..random.within(1..4) {
        let holds = random.one_in(5);
        let begins: &[&str] =
            if holds { &["BEGIN", ""] } else { &["BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ"] };
        begin(script, random, begins);
        let name = random.pick(&["c1", "c1", "\"c_2\"", "_django_curs_1_sync_1"]);
        let scroll = if name.starts_with("_django") { " NO SCROLL" } else { "" };
        let hold = if holds { " WITH HOLD" } else { "" };
        let query = if holds { WALKED[0] } else { random.pick(&WALKED) };
        script.any(random, &format!("DECLARE {name}{scroll} CURSOR{hold} FOR {query}"));
        let (rows, interrupts) = (random.pick(&[1, 5, 10, 10]), random.pick(&[0, 0, 5, 10]));
        if holds && random.one_in(2) {
            script.end_transaction(random);
        }
        let how = random.pick(&["FETCH", "FETCH FORWARD"]);
        for _ in 0..random.within(1..40 / rows + 3) {
            script.simple(&format!("{how} {rows} FROM {name}"));
            // A cursor of Django's that was read ahead, and is asked for otherwise, ends its session (docs/safety.md).
            if random.one_in(20) && !query.contains('/') && scroll.is_empty() {
                let back = random.pick(&[
                    "FETCH BACKWARD 3 FROM",
                    "MOVE 2 IN",
                    "FETCH ALL IN",
                    "MOVE ABSOLUTE 4 IN",
                ]);
                script.simple(&format!("{back} {name}"));
            }
            if interrupts > 0 && random.one_in(interrupts) {
                interruption(script, random);
            }
        }
        if random.one_in(2) {
            script.simple(&format!("CLOSE {name}"));
        }
        script.end_transaction(random);
    }
}
