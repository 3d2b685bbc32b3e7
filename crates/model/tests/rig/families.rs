//! Generators of programs, one for what each remedy may break.

use onetrip_model::messages::*;
use onetrip_model::random::Random;
use onetrip_model::script::{Form, INT4, INT8, Manner, Script, Statement, Value, bind_all, parse_typed};
use onetrip_model::step::Wait;

/// Keys of `p`.
pub(crate) const PARENTS: [i64; 20] =
    [3, 7, 11, 19, 20, 26, 33, 41, 52, 64, 77, 90, 91, 104, 112, 119, 127, 133, 140, 158];

const SNAPSHOTS: [&str; 6] = [
    "BEGIN ISOLATION LEVEL REPEATABLE READ",
    "BEGIN ISOLATION LEVEL REPEATABLE READ",
    "BEGIN ISOLATION LEVEL REPEATABLE READ",
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
    "BEGIN",
    "START TRANSACTION ISOLATION LEVEL REPEATABLE READ",
];

const USUAL: [&str; 6] =
    ["BEGIN", "BEGIN", "BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ", "BEGIN READ ONLY", ""];

/// Begins as one of these says, or does not.
fn begin(script: &mut Script, random: &mut Random, ways: &[&str]) {
    let text = random.pick(ways);
    if !text.is_empty() {
        script.simple(text);
    }
}

fn end(script: &mut Script, random: &mut Random) {
    script.simple(random.pick(&["COMMIT", "COMMIT", "COMMIT", "ROLLBACK", "END"]));
}

/// A statement that writes where others read; alone, it commits.
fn write(random: &mut Random, session: usize) -> String {
    let parent = random.pick(&PARENTS);
    let number = 1 + random.below(40);
    match random.below(8) {
        0 => format!("UPDATE c SET val = val || '!' WHERE pid = {parent}"),
        1 => format!("INSERT INTO c VALUES ({session}0{number}, {parent}, 'new')"),
        2 => format!("DELETE FROM c WHERE pid = {parent} AND id % 2 = 0"),
        3 => format!("UPDATE d SET note = note || '?' WHERE pid = {parent}"),
        4 => format!("UPDATE p SET name = name || '+' WHERE id = {parent}"),
        5 => format!("UPDATE n SET v = v + 1000 WHERE id = {number}"),
        6 => format!("DELETE FROM n WHERE id = {number}"),
        _ => format!("INSERT INTO n VALUES ({session}{number}00, 1, 'new')"),
    }
}

/// What may come between any two statements of a program.
fn interruption(script: &mut Script, random: &mut Random) {
    const TEXTS: [&str; 24] = [
        "SAVEPOINT s1",
        "SAVEPOINT \"s2\"",
        "ROLLBACK TO s1",
        "RELEASE s1",
        "SET LOCAL TimeZone = 'Asia/Tokyo'",
        "SET TimeZone = 'Europe/Paris'",
        "SET application_name = 'other'",
        "RESET TimeZone",
        "RESET ALL",
        "SET LOCAL work_mem = '1MB'",
        "SELECT set_config('TimeZone', 'Asia/Tokyo', true)",
        "SELECT side(1)",
        "SELECT 1",
        "",
        "SHOW transaction_isolation",
        "SHOW TimeZone",
        "SET TRANSACTION READ ONLY",
        "SELECT current_setting('TimeZone')",
        "DEALLOCATE ALL",
        "SELECT id FROM w ORDER BY id FOR UPDATE",
        "SELECT count(*) FROM log",
        "SELECT count(*) FROM c WHERE pid > 90",
        "CLOSE ALL",
        "SELECT 1; SELECT 2",
    ];
    match random.below(14) {
        0..=2 => {
            let text = write(random, script.session());
            script.any(random, &text);
        }
        3 => {
            script.simple("SAVEPOINT guard");
            script.simple("SELECT 1 / 0");
            script.simple("ROLLBACK TO guard");
        }
        4 if random.one_in(3) => script.simple("SELECT no_such_column"),
        5 if random.one_in(2) => {
            script.simple("DISCARD ALL");
            script.forget();
        }
        _ => {
            let text = random.pick(&TEXTS);
            if text.contains(';') {
                script.simple(text)
            } else {
                script.any(random, text)
            }
            if text == "DEALLOCATE ALL" && random.one_in(2) {
                script.forget();
            }
        }
    }
}

/// A session that changes what the others read.
fn writer(script: &mut Script, random: &mut Random) {
    for _ in 0..random.within(2..6) {
        if random.one_in(3) {
            script.simple(random.pick(&["BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ"]));
            for _ in 0..random.within(1..3) {
                let text = write(random, script.session());
                script.simple(&text);
            }
            end(script, random);
        } else {
            let text = write(random, script.session());
            script.any(random, &text);
        }
    }
}

/// N+1 loops, and whatever may come between.
pub(crate) fn loops(script: &mut Script, random: &mut Random) {
    if script.session() > 0 && random.one_in(2) {
        return writer(script, random);
    }
    let (body, manner) = (random.below(BODIES), Manner::any(random));
    let interrupts = random.pick(&[0, 0, 8, 20, 40]);
    for _ in 0..random.within(1..4) {
        begin(script, random, &SNAPSHOTS);
        if random.one_in(8) {
            interruption(script, random);
        }
        for _ in 0..random.within(1..3) {
            let body = if random.one_in(5) { random.below(BODIES) } else { body };
            one_loop(script, random, body, manner, interrupts);
        }
        end(script, random);
    }
}

fn one_loop(script: &mut Script, random: &mut Random, body: usize, manner: Manner, interrupts: usize) {
    let of_group = random.one_in(4).then(|| random.below(3));
    let select = match of_group {
        Some(group) => {
            let text = "SELECT id, grp, ref FROM p WHERE grp = $1 ORDER BY id";
            Statement::new(text, &[Value::Int(group as i64)])
        }
        None => Statement::new("SELECT id, name, ref, grp FROM p ORDER BY id", &[]),
    };
    let manner_of_parents = if random.one_in(5) { Manner::any(random) } else { manner };
    script.run(&select, manner_of_parents);
    let rows = (0..PARENTS.len()).filter(|place| of_group.is_none_or(|group| place % 3 == group));
    for place in walk(random, rows.collect()) {
        iteration(script, random, body, manner, place);
        if interrupts > 0 && random.one_in(interrupts) {
            interruption(script, random);
        }
    }
}

/// The rows in the way a program takes them.
fn walk(random: &mut Random, mut rows: Vec<usize>) -> Vec<usize> {
    match random.below(9) {
        0 => rows.truncate(random.within(1..5)),
        1 => rows.retain(|place| place % 3 != 1),
        2 => rows.retain(|place| place % 4 != 3),
        3 => random.shuffle(&mut rows),
        4 => rows = rows.iter().flat_map(|place| vec![*place; 1 + usize::from(place % 3 == 0)]).collect(),
        5 => rows.retain(|_| random.below(3) > 0),
        _ => {}
    }
    rows
}

const BODIES: usize = 10;

fn iteration(script: &mut Script, random: &mut Random, body: usize, manner: Manner, place: usize) {
    let number = place as i64;
    let id = Value::Int(PARENTS[place]);
    let by = |text: &str, value: &Value| Statement::new(text, std::slice::from_ref(value));
    let children = by("SELECT id, val FROM c WHERE pid = $1 ORDER BY id", &id);
    let reference =
        if place % 4 == 3 { Value::Null } else { Value::Int(1000 + 10 * ((number * 7) % 20) + 1) };
    match body {
        0..=2 => script.run(&children, manner),
        3 => {
            if reference != Value::Null || random.one_in(2) {
                script.run(&by("SELECT val, pid FROM c WHERE id = $1", &reference), manner);
            }
        }
        4 => {
            script.run(&children, manner);
            script.run(&by("SELECT note FROM d WHERE pid = $1 ORDER BY id", &id), manner);
        }
        5 => {
            script.run(&children, manner);
            for child in 1..=number % 4 {
                let child = Value::Int(1000 + 10 * number + child);
                script.run(&by("SELECT val, pid FROM c WHERE id = $1", &child), manner);
            }
        }
        6 => {
            let text = "SELECT name FROM p WHERE id >= $1 AND grp = $2 ORDER BY id LIMIT 2";
            script.run(&Statement::new(text, &[id, Value::Int(number % 3)]), manner);
        }
        7 => script.run(&by("SELECT side($1)", &id), manner),
        8 => script.run(&by("UPDATE d SET note = note || '.' WHERE pid = $1", &id), manner),
        _ => script.run(&by("SELECT 10 / (id - 26) FROM p WHERE id = $1", &id), manner),
    }
}

/// BEGIN and its kin, in every spelling, place and protocol form.
pub(crate) fn begins(script: &mut Script, random: &mut Random) {
    const BEGINS: [&str; 10] = [
        "BEGIN",
        "begin;",
        "START TRANSACTION",
        "BEGIN ISOLATION LEVEL REPEATABLE READ",
        "BEGIN TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE",
        "BEGIN READ ONLY",
        "/* app */ BEGIN",
        "BEGIN; SELECT count(*) FROM w",
        "BEGIN READ",
        "BEGIN WORK",
    ];
    const ENDS: [&str; 6] = ["COMMIT", "ROLLBACK", "END", "COMMIT AND CHAIN", "ABORT", "ROLLBACK AND CHAIN"];
    const STATEMENTS: [&str; 27] = [
        "SELECT count(*), max(v) FROM w",
        "SELECT id, v FROM w ORDER BY id",
        "INSERT INTO w VALUES (7@, 1)",
        "UPDATE w SET v = v + 1 WHERE id = @ RETURNING v",
        "DELETE FROM w WHERE id = 7@",
        "SELECT current_setting('TimeZone')",
        "SHOW transaction_isolation",
        "SHOW transaction_read_only",
        "SELECT 1 / 0",
        "SELECT no_such_column",
        "SELEKT",
        "SAVEPOINT s1",
        "SAVEPOINT s1",
        "SAVEPOINT \"S2\"",
        "RELEASE s1",
        "RELEASE SAVEPOINT \"S2\"",
        "ROLLBACK TO s1",
        "SAVEPOINT s",
        "ROLLBACK TO s",
        "RELEASE s",
        "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
        "SET LOCAL TimeZone = 'Asia/Tokyo'",
        "SET TimeZone = 'Asia/Tokyo'",
        "RESET TimeZone",
        "SET default_transaction_isolation = 'repeatable read'",
        "RESET ALL",
        "",
    ];
    for _ in 0..random.within(4..20) {
        let text = match random.below(10) {
            0..=2 => "BEGIN".to_owned(),
            3 => random.pick(&BEGINS).to_owned(),
            4..=6 => random.pick(&ENDS).to_owned(),
            _ => random.pick(&STATEMENTS).replace('@', &(script.session() + 1).to_string()),
        };
        let (bytes, ready, form) = match random.below(12) {
            0 => ([run_unnamed(&text), sync()].concat(), 1, "extended"),
            1 => ([parse("s", &text), bind("p", "s", &[]), sync()].concat(), 1, "prepared"),
            2 => ([bind("", "s", &[]), execute("", 0), close_statement("s"), sync()].concat(), 1, "run s"),
            3 => ([query(&text), query("SELECT 'behind'")].concat(), 2, "pipelined"),
            4 => ([run_unnamed(&text), sync(), run_unnamed("SELECT 7"), sync()].concat(), 2, "groups"),
            5 => ([bind("", "", &[]), execute("", 0), sync()].concat(), 1, "run unnamed"),
            _ => (query(&text), 1, "simple"),
        };
        script.send(bytes, Wait::Ready(ready), format!("{form} {text}"));
    }
}

/// Transactions that only read, or seem to; and what another session does right behind their ends.
pub(crate) fn commits(script: &mut Script, random: &mut Random, sessions: usize) {
    const PURE: [&str; 6] = [
        "SELECT id, name FROM p WHERE id = $1",
        "SELECT val FROM c WHERE pid = $1 ORDER BY id",
        "SELECT count(*) FROM n WHERE id > $1",
        "SELECT max(v) FROM n WHERE id <> $1",
        "SELECT id FROM p WHERE id > $1 ORDER BY id",
        "SELECT $1 + 1",
    ];
    const IMPURE: [&str; 10] = [
        "SELECT side(1)",
        "INSERT INTO w VALUES (77, 977)",
        "UPDATE w SET v = v + 1 WHERE id = 3",
        "SELECT set_config('TimeZone', 'Asia/Tokyo', true)",
        "SET LOCAL TimeZone = 'Asia/Tokyo'",
        "SET TimeZone = 'Europe/Paris'",
        "DECLARE held CURSOR WITH HOLD FOR SELECT id FROM p ORDER BY id",
        "DECLARE held CURSOR WITH HOLD FOR SELECT 100 / (25 - id) FROM n ORDER BY id",
        "SELECT id FROM w ORDER BY id FOR UPDATE",
        "SAVEPOINT s1",
    ];
    const ENDS: [&str; 9] =
        ["COMMIT", "COMMIT", "COMMIT", "ROLLBACK", "ROLLBACK", "END", "ABORT", "COMMIT AND CHAIN", "commit;"];
    const BEHIND: [&str; 5] = [
        "BEGIN; LOCK TABLE p, c, n IN ACCESS EXCLUSIVE MODE NOWAIT; ROLLBACK",
        "BEGIN; LOCK TABLE p, c, n IN ACCESS EXCLUSIVE MODE NOWAIT; ROLLBACK",
        "BEGIN; LOCK TABLE p; ROLLBACK",
        "UPDATE p SET name = name || '*'",
        "SELECT count(*) FROM w",
    ];
    if script.session() > 0 && random.one_in(4) {
        return writer(script, random);
    }
    let purity = random.pick(&[4, 8, 1000]);
    for _ in 0..random.within(2..7) {
        let manner = Manner::any(random);
        begin(script, random, &USUAL);
        for _ in 0..random.below(4) {
            if random.one_in(purity) {
                let text = random.pick(&IMPURE);
                script.any(random, text);
            } else {
                let value = Value::Int(random.pick(&PARENTS));
                script.run(&Statement::new(random.pick(&PURE), &[value]), manner);
            }
        }
        let text = random.pick(&ENDS);
        script.any(random, text);
        if random.one_in(2) {
            let other = (script.session() + 1 + random.below(sessions - 1)) % sessions;
            script.elsewhere(other, random.pick(&BEHIND));
        }
        if random.one_in(6) {
            interruption(script, random);
        }
    }
}

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
        end(script, random);
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
            end(script, random);
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
        end(script, random);
    }
}

/// Prepared statements.
pub(crate) fn statements(script: &mut Script, random: &mut Random) {
    const TEXTS: [&str; 13] = [
        "SELECT id, name FROM p WHERE id = $1",
        "SELECT id, name FROM p WHERE id = $1",
        "SELECT * FROM w WHERE id = $1",
        "SELECT * FROM p WHERE grp = $1 ORDER BY id",
        "SELECT val FROM c WHERE pid = $1 ORDER BY id",
        "SELECT $1 + 1",
        "SELECT side($1)",
        "UPDATE w SET v = v WHERE id = $1",
        "SELECT count(*) FROM c WHERE pid <> $1",
        "SELECT 6 / (id - $1) FROM p WHERE id = 7",
        "SELECT no_such_column FROM p WHERE id = $1",
        "SELECT id FROM nowhere WHERE id = $1",
        "SELEKT $1",
    ];
    if script.session() > 0 && random.one_in(4) {
        return writer(script, random);
    }
    let choice = if random.one_in(3) { &TEXTS[..] } else { &TEXTS[..9] };
    let texts: Vec<&str> = (0..random.within(1..4)).map(|_| random.pick(choice)).collect();
    for _ in 0..random.within(1..6) {
        begin(script, random, &USUAL);
        for _ in 0..random.within(2..8) {
            let text = random.pick(&texts);
            let value = Value::Int(random.pick(&[0, 3, 7, 7, 11]));
            let values = if random.below(20) > 0 { vec![value] } else { Vec::new() };
            let statement = Statement::new(text, &values);
            let declared = random.pick(&[None, None, None, Some(INT4), Some(INT8)]);
            let form =
                random.pick(&[Form::Unnamed, Form::Split, Form::Split, Form::Named, Form::NamedTogether]);
            let manner = Manner { form, declared, is_binary: declared.is_some() && random.one_in(2) };
            let name = random.pick(&["", "", "a", "b"]);
            match random.below(16) {
                0..=9 => script.run(&statement, manner),
                10 => {
                    script.prepare(name, &statement, manner);
                    if random.one_in(3) {
                        interruption(script, random);
                    }
                    script.bind(name, &statement, manner);
                }
                11 => script.bind(name, &statement, manner),
                12 => {
                    let bytes = [close_statement(name), sync()].concat();
                    script.send(bytes, Wait::Ready(1), format!("close {name:?}"));
                }
                13 => script.simple(random.pick(&["DEALLOCATE ALL", "DEALLOCATE a", "DEALLOCATE stmt_1"])),
                14 => {
                    let bytes = [describe_statement(name), sync()].concat();
                    script.send(bytes, Wait::Ready(1), format!("describe {name:?}"));
                }
                _ => interruption(script, random),
            }
        }
        end(script, random);
    }
}

/// Sessions that want the same rows.
pub(crate) fn conflicts(script: &mut Script, random: &mut Random) {
    const TEXTS: [&str; 14] = [
        "UPDATE w SET v = v + 1 WHERE id = 3",
        "UPDATE w SET v = v + 1 WHERE id = 4 RETURNING id, v",
        "UPDATE w SET v = v * 2 + 1 WHERE id = 3",
        "UPDATE w SET v = 5 WHERE id = 5 AND v < 3",
        "DELETE FROM w WHERE id = 4",
        "INSERT INTO w VALUES (9, 1)",
        "INSERT INTO w VALUES (4, 1)",
        "SELECT id, v FROM w WHERE id = 3 FOR UPDATE",
        "SELECT id, v FROM w ORDER BY id",
        "SELECT id, v FROM w ORDER BY id",
        "SELECT v FROM w WHERE id = 3",
        "SAVEPOINT s1",
        "ROLLBACK TO s1",
        "SELECT id, name FROM p WHERE id = 7",
    ];
    for _ in 0..random.within(1..5) {
        begin(
            script,
            random,
            &["BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ", "BEGIN ISOLATION LEVEL REPEATABLE READ", ""],
        );
        for _ in 0..random.within(1..6) {
            match random.below(12) {
                0 => script.simple("LOCK TABLE w IN ACCESS EXCLUSIVE MODE NOWAIT"),
                1 => script.simple("LOCK TABLE p"),
                _ => {
                    let text = random.pick(&TEXTS);
                    script.any(random, text);
                }
            }
        }
        end(script, random);
    }
}
