//! N+1 loops: a result, then statements by the values of its rows.

use onetrip_testkit::messages::{describe_portal, execute, parse, sync};
use onetrip_testkit::random::Random;
use onetrip_testkit::script::{Manner, Script, Statement, Value, bind_all};
use onetrip_testkit::step::{Aside, Step, Wait};

use super::super::simulation::PRIVATE;
use super::common::{PARENTS, begin, interruption, writer};

pub(super) const SNAPSHOTS: [&str; 6] = [
    "BEGIN ISOLATION LEVEL REPEATABLE READ",
    "BEGIN ISOLATION LEVEL REPEATABLE READ",
    "BEGIN ISOLATION LEVEL REPEATABLE READ",
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
    "BEGIN",
    "START TRANSACTION ISOLATION LEVEL REPEATABLE READ",
];

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
        script.end_transaction(random);
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

const BODIES: usize = 11;
/// Children of a parent.
pub(super) const CHILDREN: &str = "SELECT id, val FROM c WHERE pid = $1 ORDER BY id";
/// Notes, and when they were made, by their parent: written as the session's time zone says.
pub(super) const NOTES: &str = "SELECT note, made FROM d WHERE pid = $1 ORDER BY id";

fn iteration(script: &mut Script, random: &mut Random, body: usize, manner: Manner, place: usize) {
    let number = place as i64;
    let id = Value::Int(PARENTS[place]);
    let by = |text: &str, value: &Value| Statement::new(text, std::slice::from_ref(value));
    let children = by(CHILDREN, &id);
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
            script.run(&by(NOTES, &id), manner);
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
        // What it takes outlives savepoints, and a transaction that only reads may take it.
        9 => script.run(&by("SELECT pg_try_advisory_lock($1)", &id), manner),
        _ => script.run(&by("SELECT 10 / (id - 26) FROM p WHERE id = $1", &id), manner),
    }
}

/// Results that are read twice in one snapshot, and between them the server's configuration has another time zone.
pub(crate) fn reloads(script: &mut Script, random: &mut Random) {
    let (manner, at) = (Manner::any(random), random.below(PARENTS.len()));
    script.simple(SNAPSHOTS[0]);
    for is_again in [false, true] {
        script.run(&Statement::new("SELECT id, name FROM p ORDER BY id", &[]), manner);
        for (place, id) in PARENTS.into_iter().enumerate() {
            script.run(&Statement::new(NOTES, &[Value::Int(id)]), manner);
            if is_again && place == at && script.session() == 0 {
                let aside = Step::aside(script.session(), Aside::Configures("timezone", "Asia/Karachi"));
                script.joined(|script| script.push(aside));
            }
        }
    }
    script.end_transaction(random);
}

/// Loops over which the server fails to take back what was read ahead.
pub(crate) fn refusals(script: &mut Script, random: &mut Random) {
    let (manner, at) = (Manner::any(random), random.below(PARENTS.len()));
    if random.one_in(3) {
        return refusals_of_pieces(script, random, at);
    }
    script.simple(SNAPSHOTS[0]);
    script.run(&Statement::new("SELECT id, name FROM p ORDER BY id", &[]), manner);
    for (place, id) in PARENTS.into_iter().enumerate() {
        if place == at {
            let aside = Step::aside(script.session(), Aside::Refuses(PRIVATE));
            script.joined(|script| script.push(aside));
        }
        script.run(&Statement::new(CHILDREN, &[Value::Int(id)]), manner);
    }
    script.end_transaction(random);
}

/// The same over a result that is read in pieces.
fn refusals_of_pieces(script: &mut Script, random: &mut Random, at: usize) {
    script.simple("BEGIN");
    pieces(script, random.pick(&[1, 2]), 18, |script, piece| {
        if piece == at {
            let aside = Step::aside(script.session(), Aside::Refuses(PRIVATE));
            script.joined(|script| script.push(aside));
        }
    });
    script.end_transaction(random);
}

/// A result of forty rows, so many at a time; `between` comes before each piece.
pub(super) fn pieces(
    script: &mut Script,
    rows: u32,
    count: usize,
    mut between: impl FnMut(&mut Script, usize),
) {
    let text = "SELECT id, v FROM n ORDER BY id";
    let statement = Statement::new(text, &[]);
    let opened = [
        parse("", text),
        bind_all("C_1", "", &statement, Manner::SIMPLE),
        describe_portal("C_1"),
        execute("C_1", rows),
        sync(),
    ];
    script.send(opened.concat(), Wait::Ready(1), format!("open C_1, {rows} rows: {text}"));
    for piece in 0..count {
        between(script, piece);
        script.send([execute("C_1", rows), sync()].concat(), Wait::Ready(1), format!("fetch {rows} of C_1"));
    }
}

/// A loop over so many rows, and behind one of them something else.
fn walk_of_chain(
    script: &mut Script,
    random: &mut Random,
    manner: Manner,
    (rows, at, between): (usize, usize, &str),
) {
    script.run(&Statement::new("SELECT id, name, ref, grp FROM p ORDER BY id", &[]), manner);
    for (place, id) in PARENTS.into_iter().skip(1).take(rows).enumerate() {
        script.run(&Statement::new(CHILDREN, &[Value::Int(id)]), manner);
        if place == at {
            script.any(random, between);
        }
    }
}

/// Transactions chained to one another, in which the same is read again: what a chained one may believe of the one before.
/// A failure takes back the level that BEGIN has set; the session's own is set in between.
pub(crate) fn chains(script: &mut Script, random: &mut Random, sessions: usize) {
    const BEGINS: [&str; 5] = [
        "BEGIN ISOLATION LEVEL REPEATABLE READ",
        "BEGIN ISOLATION LEVEL REPEATABLE READ",
        "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        "BEGIN",
        "SET default_transaction_isolation = 'repeatable read'",
    ];
    const BETWEEN: [&str; 9] = [
        "SELECT 1 / 0",
        "SELECT 1 / 0",
        "SELECT 1 / 0",
        "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
        "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
        "SET default_transaction_isolation = 'repeatable read'",
        "RESET default_transaction_isolation",
        "SHOW transaction_isolation",
        "SAVEPOINT s1",
    ];
    const ENDS: [&str; 8] = [
        "COMMIT AND CHAIN",
        "COMMIT AND CHAIN",
        "COMMIT AND CHAIN",
        "ROLLBACK AND CHAIN",
        "ROLLBACK AND CHAIN",
        "COMMIT AND NO CHAIN",
        "COMMIT",
        "ROLLBACK",
    ];
    let last = sessions - 1;
    if script.session() == last {
        return; // it writes what the others make it write, and commits
    }
    let manner = Manner::any(random);
    let rows = random.pick(&[1, 1, 2, 3, 8]);
    for _ in 0..random.within(1..3) {
        begin(script, random, &BEGINS);
        for _ in 0..random.within(2..6) {
            for _ in 0..random.within(1..3) {
                let fails_at = if random.one_in(3) { random.below(rows) } else { rows };
                let between = random.pick(&BETWEEN);
                walk_of_chain(script, random, manner, (rows, fails_at, between));
                if random.one_in(2) {
                    let parent = PARENTS[1 + random.below(rows)];
                    script.elsewhere(last, &format!("UPDATE c SET val = val || '+' WHERE pid = {parent}"));
                }
            }
            let text = random.pick(&ENDS);
            script.any(random, text);
            if random.one_in(4) {
                let text = random.pick(&BETWEEN);
                script.any(random, text);
            }
        }
        script.end_transaction(random);
    }
}
