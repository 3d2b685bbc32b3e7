//! What a transaction reads, where its level is another than its first BEGIN said, or a statement another than its text.

use super::harmless::{reads_ahead, run_named, serves_loop, serves_named_repeat, serves_repeat};
use super::messages::{INT4, parse_typed};
use super::stage::{Hole, Session, Stage, rows};
use crate::common::messages::*;

const LEVELS: &str = "CREATE TABLE keys (id int PRIMARY KEY); CREATE TABLE found (id int PRIMARY KEY, v int); \
     INSERT INTO keys SELECT generate_series(1, 30); INSERT INTO found SELECT g, 0 FROM generate_series(1, 30) AS g; \
     ANALYZE keys, found";

/// BEGIN at REPEATABLE READ, and again at READ COMMITTED; another session commits amid a loop.
fn loop_below_its_level(stage: &Stage) {
    let (mut other, mut program) = (stage.elsewhere("other"), stage.session("program"));
    serves_loop(&mut program, "SELECT id FROM keys ORDER BY id", "SELECT v FROM found WHERE id = $1", false);
    for _ in 0..2 {
        other.says("UPDATE found SET v = 0");
        program.says("BEGIN ISOLATION LEVEL REPEATABLE READ");
        stage.thinks();
        program.says_all(&["BEGIN ISOLATION LEVEL READ COMMITTED", "SHOW transaction_isolation"]);
        for (place, id) in program.column("SELECT id FROM keys ORDER BY id").iter().enumerate() {
            if place == 15 {
                other.says("UPDATE found SET v = 7");
            }
            program.says(&format!("SELECT v FROM found WHERE id = {id}"));
        }
        program.says("COMMIT");
    }
}

/// The same read before and after a commit of another session.
fn repeat_below_its_level(stage: &Stage) {
    let (mut other, mut program) = (stage.elsewhere("other"), stage.session("program"));
    serves_repeat(&mut program, "SELECT v FROM found WHERE id = 1");
    other.says("UPDATE found SET v = 0");
    program.says("BEGIN ISOLATION LEVEL REPEATABLE READ");
    stage.thinks();
    program.says_all(&["BEGIN ISOLATION LEVEL READ COMMITTED", "SELECT v FROM found WHERE id = 1"]);
    stage.thinks();
    program.says("SELECT v FROM found WHERE id = 1");
    other.says("UPDATE found SET v = 99");
    program.says_all(&["SELECT v FROM found WHERE id = 1", "SELECT v FROM found WHERE id = 1", "COMMIT"]);
}

#[test]
fn a_second_begin_changes_the_level_for_the_gateway_too() {
    Hole {
        name: "second_begins",
        setup: LEVELS,
        programs: &[("a loop", &loop_below_its_level), ("the same read twice", &repeat_below_its_level)],
    }
    .assert_shut();
}

/// The reader reads rows 1 to 20 and writes what the writer has read; the writer writes row 40. Both may commit.
fn reader_and_writer(stage: &Stage) {
    let (mut reader, mut writer) = (stage.session("reader"), stage.elsewhere("writer"));
    reads_ahead(&mut reader, "SELECT id FROM wide WHERE v >= 0");
    for one in [&mut reader, &mut writer] {
        one.says_all(&["SET enable_seqscan = off", "SET enable_bitmapscan = off", "SELECT 1"]);
    }
    stage.thinks();
    reader.says_all(&["SELECT 1", "BEGIN"]);
    reader.says("BEGIN ISOLATION LEVEL SERIALIZABLE");
    reader.says("DECLARE c CURSOR FOR SELECT id FROM wide WHERE v >= 0 ORDER BY id");
    for _ in 0..4 {
        reader.says("FETCH FORWARD 5 FROM c");
        stage.thinks();
    }
    writer.says_all(&["BEGIN ISOLATION LEVEL SERIALIZABLE", "SELECT v FROM written WHERE id = 1"]);
    writer.says("UPDATE wide SET v = 1 WHERE id = 40");
    reader.says_all(&["UPDATE written SET v = 1 WHERE id = 1", "COMMIT"]);
    writer.says("COMMIT");
}

#[test]
fn a_second_begin_that_makes_it_serializable_keeps_others_from_failing() {
    Hole {
        name: "second_serializable",
        setup: "CREATE TABLE wide (id int PRIMARY KEY, pad text, v int) WITH (fillfactor = 50); \
                ALTER TABLE wide ALTER pad SET STORAGE PLAIN; \
                INSERT INTO wide SELECT g, repeat('x', 3000), 0 FROM generate_series(1, 200) AS g; \
                CREATE TABLE written (id int PRIMARY KEY, v int); INSERT INTO written VALUES (1, 0); \
                ANALYZE wide, written",
        programs: &[("a cursor", &reader_and_writer)],
    }
    .assert_shut();
}

const KEPT: &str = "CREATE TABLE orders (pid int, at timestamptz, day date); CREATE TABLE people (id int PRIMARY KEY); \
     INSERT INTO people SELECT generate_series(1, 40); \
     INSERT INTO orders SELECT g, t, date '2024-03-20' FROM generate_series(1, 40) AS g, \
     (VALUES ('2024-01-01 12:00+00'::timestamptz), ('2023-12-31 18:00+00'), ('2023-12-31 08:00+00')) AS v (t); \
     CREATE INDEX ON orders (pid); ANALYZE orders, people";
const PEOPLE: &str = "SELECT id FROM people ORDER BY id";

const ORDERS: &str = "SELECT count(*) FROM orders WHERE pid = $1";

/// Prepares a statement, changes a setting, and runs the statement for each person.
fn changed_then_looped(text: &str, before: &str, after: &str) -> impl Fn(&Stage) + Sync + use<> {
    let (text, before, after) = (text.to_owned(), before.to_owned(), after.to_owned());
    move |stage| {
        let mut program = stage.session("program");
        serves_loop(&mut program, PEOPLE, ORDERS, true);
        program.says(&before);
        program.exchange("Parse", &[parse_typed("st", &text, &[INT4]), sync()].concat());
        program.says_all(&["SELECT 1", &after, "SELECT 1"]);
        stage.thinks();
        for _ in 0..3 {
            program.says("BEGIN ISOLATION LEVEL REPEATABLE READ");
            stage.thinks();
            for id in program.column(PEOPLE).iter().take(20) {
                program.exchange(id, &run_named("st", id));
            }
            program.says("COMMIT");
        }
    }
}

/// Prepares a statement, changes a setting, and runs the same text unnamed first, in one snapshot.
fn changed_then_repeated(text: &str, before: &str, after: &str) -> impl Fn(&Stage) + Sync + use<> {
    let (text, before, after) = (text.to_owned(), before.to_owned(), after.to_owned());
    move |stage| {
        let mut program = stage.session("program");
        serves_named_repeat(&mut program, ORDERS);
        program.says(&before);
        program.exchange("Parse", &[parse_typed("st", &text, &[INT4]), sync()].concat());
        program.says_all(&["SELECT 1", &after, "SELECT 1", "BEGIN ISOLATION LEVEL REPEATABLE READ"]);
        stage.thinks();
        let unnamed = [parse_typed("", &text, &[INT4]), run_named("", "1")].concat();
        for _ in 0..2 {
            program.exchange("unnamed", &unnamed);
            stage.thinks();
            program.exchange("named", &run_named("st", "1"));
        }
        program.says("COMMIT");
    }
}

#[test]
fn a_named_statement_keeps_what_its_parse_made_of_literals() {
    let at = "SELECT count(*) FROM orders WHERE pid = $1 AND at >= '2024-01-01 00:00'";
    let day = "SELECT count(*) FROM orders WHERE pid = $1 AND day >= '04/03/2024'";
    let (utc, tokyo) = ("SET TimeZone = 'UTC'", "SET TimeZone = 'Asia/Tokyo'");
    let (dmy, mdy) = ("SET DateStyle = 'ISO, DMY'", "SET DateStyle = 'ISO, MDY'");
    Hole {
        name: "literals",
        setup: KEPT,
        programs: &[
            ("a time, in a loop", &changed_then_looped(at, utc, tokyo)),
            ("a time, again", &changed_then_repeated(at, utc, tokyo)),
            ("a date, in a loop", &changed_then_looped(day, dmy, mdy)),
            ("a date, again", &changed_then_repeated(day, dmy, mdy)),
        ],
    }
    .assert_shut();
}

const SHADOWED: &str = "SELECT v FROM shadowed WHERE id = $1";

/// How many times one statement gives for the moment at which it was prepared.
fn moments(stage: &Stage) {
    let mut program = stage.session("program");
    serves_loop(&mut program, PEOPLE, SHADOWED, true);
    let text = "SELECT 'now'::timestamptz, id FROM people WHERE id = $1";
    let parsed = [parse_typed("st", text, &[INT4]), sync()].concat();
    program.exchange("Parse", &parsed);
    let mut times = Vec::new();
    let mut lines = Vec::new();
    for _ in 0..2 {
        program.says("BEGIN ISOLATION LEVEL REPEATABLE READ");
        stage.thinks();
        for id in program.column(PEOPLE).iter().take(20) {
            lines.append(&mut stage.take_seen());
            times.extend(
                rows(&program.exchange(id, &run_named("st", id))).into_iter().map(|row| row[0].clone()),
            );
            drop(stage.take_seen());
        }
        program.says("COMMIT");
    }
    times.sort();
    times.dedup();
    lines.into_iter().for_each(|line| stage.note(line));
    stage.note(format!("one statement told {} moments", times.len()));
}

/// Another session makes a table of the same name that is earlier in the search path.
fn shadowed(stage: &Stage) {
    let mut other = stage.session("other");
    let mut program = stage.session_with("program", &[("search_path", "first, public")]);
    serves_loop(&mut program, PEOPLE, SHADOWED, true);
    program.exchange("Parse", &[parse_typed("st", SHADOWED, &[INT4]), sync()].concat());
    program.says("SELECT 1");
    other.says_all(&[
        "CREATE TABLE first.shadowed (id int PRIMARY KEY, v int)",
        "INSERT INTO first.shadowed SELECT g, -g FROM generate_series(1, 40) AS g",
        "ANALYZE first.shadowed",
    ]);
    for _ in 0..3 {
        program.says("SELECT 1");
        other.says("SELECT 1");
        stage.thinks();
    }
    for _ in 0..3 {
        program.says("BEGIN ISOLATION LEVEL REPEATABLE READ");
        stage.thinks();
        for id in program.column(PEOPLE).iter().take(20) {
            program.exchange(id, &run_named("st", id));
        }
        program.says("COMMIT");
    }
}

#[test]
fn a_named_statement_keeps_the_moment_and_the_tables_of_its_parse() {
    Hole {
        name: "moments",
        setup: "CREATE SCHEMA first; CREATE TABLE shadowed (id int PRIMARY KEY, v int); \
                INSERT INTO shadowed SELECT g, g FROM generate_series(1, 40) AS g; \
                CREATE TABLE people (id int PRIMARY KEY); INSERT INTO people SELECT generate_series(1, 40); ANALYZE",
        programs: &[("'now'", &moments), ("a table that is earlier in the path", &shadowed)],
    }
    .assert_shut();
}

const STEPS: &str = "SELECT id, n FROM steps WHERE id = $1";
const PLAIN: &str = "SELECT v FROM plain WHERE id = $1";
const PATH: (&str, &str) = ("search_path", "first, public");
/// A table of that name, earlier in the search path, that only reads.
const HIDES: [&str; 2] = [
    "CREATE TABLE first.steps AS SELECT g AS id, g::bigint AS n FROM generate_series(1, 40) AS g",
    "ANALYZE first.steps",
];

/// A prepared statement reads a view that counts. What its text names changes by `changes`; then it runs in one snapshot,
/// and in pieces.
fn counts_on(changes: &'static [&'static str], by_itself: bool) -> impl Fn(&Stage) + Sync {
    move |stage| {
        let mut program = stage.session_with("program", &[PATH]);
        let mut other = stage.session_with("other", &[PATH]);
        serves_named_repeat(&mut program, PLAIN);
        program.exchange("Parse", &[parse_typed("st", STEPS, &[INT4]), sync()].concat());
        let all = [parse("all", "SELECT id, n FROM steps"), sync()].concat();
        program.exchange("Parse", &all);
        program.exchange("run", &run_named("st", "1"));
        if by_itself {
            program.says_all(changes);
        } else {
            other.says_all(changes);
        }
        for _ in 0..4 {
            program.says_all(&["SELECT 1", "BEGIN ISOLATION LEVEL REPEATABLE READ"]);
            stage.thinks();
            for _ in 0..3 {
                // The text itself may be proven to only read.
                program.says("SELECT id FROM steps WHERE id = 41");
                program.exchange("run", &run_named("st", "1"));
                stage.thinks();
            }
            program.exchange(
                "Bind",
                &[bind("p", "all", &[]), describe_portal("p"), execute("p", 10), sync()].concat(),
            );
            for _ in 0..2 {
                program.exchange("Execute", &[execute("p", 10), sync()].concat());
                stage.thinks();
            }
            other.says("SELECT last_value FROM counted_steps");
            program.says("COMMIT");
        }
        program.exchange("Close", &[close_statement("st"), close_statement("all"), sync()].concat());
        other.says_all(&["DROP TABLE IF EXISTS first.steps", "SET client_min_messages = warning"]);
    }
}

#[test]
fn a_named_statement_keeps_the_view_of_its_parse() {
    let by_another = counts_on(&HIDES, false);
    let by_itself = counts_on(&HIDES, true);
    let by_path = counts_on(
        &[HIDES[0], "SET search_path = public", "SELECT 1", "SET search_path = first, public"],
        true,
    );
    let made_anew = counts_on(
        &["DROP VIEW steps", "CREATE VIEW steps AS SELECT id, nextval('counted_steps') AS n FROM plain"],
        false,
    );
    Hole {
        name: "kept_views",
        setup: "CREATE SCHEMA first; CREATE SEQUENCE counted_steps; CREATE TABLE plain (id int PRIMARY KEY, v int); \
                INSERT INTO plain SELECT g, g FROM generate_series(1, 40) AS g; \
                CREATE VIEW steps AS SELECT id, nextval('counted_steps') AS n FROM plain; ANALYZE plain",
        programs: &[
            ("hidden by another session", &by_another),
            ("hidden by the session itself", &by_itself),
            ("another search path", &by_path),
            ("made anew", &made_anew),
        ],
    }
    .assert_shut();
}

/// A statement is repeated in a snapshot; `change` makes its text mean something else, and `others` prove it anew.
fn proven_anew<'a>(
    row: &'a str,
    change: &'a str,
    back: &'a str,
    by_its_maker: bool,
) -> impl Fn(&Stage) + Sync + 'a {
    move |stage| {
        let mut program = stage.session_with("program", &[PATH]);
        let mut maker = stage.session_with("maker", &[PATH]);
        let mut reader = stage.session_with("reader", &[PATH]);
        serves_repeat(&mut program, row);
        serves_repeat(&mut reader, row);
        program.says("BEGIN ISOLATION LEVEL REPEATABLE READ");
        for _ in 0..2 {
            program.says(row);
            stage.thinks();
        }
        maker.says(change);
        for _ in 0..3 {
            let proves = if by_its_maker { &mut maker } else { &mut reader };
            proves.says_all(&["BEGIN ISOLATION LEVEL REPEATABLE READ", row]);
            stage.thinks();
            proves.says(row);
            stage.thinks();
            proves.says("COMMIT");
        }
        program.says_all(&[row, row, "COMMIT"]);
        maker.says(back);
    }
}

#[test]
fn what_was_read_before_a_change_is_not_served_when_the_text_is_proven_anew() {
    const READ: &str = "SELECT v FROM anew WHERE id = 1";
    const HIDDEN: [&str; 2] = ["CREATE TABLE first.anew (id int, v int)", "DROP TABLE first.anew"];
    const RENAMED: [&str; 2] =
        ["ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'", "ALTER TYPE mood RENAME VALUE 'blue' TO 'sad'"];
    let hidden = proven_anew(READ, HIDDEN[0], HIDDEN[1], false);
    let by_its_maker = proven_anew(READ, HIDDEN[0], HIDDEN[1], true);
    let renamed = proven_anew("SELECT m FROM moods WHERE id = 1", RENAMED[0], RENAMED[1], false);
    Hole {
        name: "proven_anew",
        setup: "CREATE SCHEMA first; CREATE TABLE anew (id int PRIMARY KEY, v text); \
                INSERT INTO anew SELECT g, 'v' || g FROM generate_series(1, 40) AS g; ANALYZE anew; \
                CREATE TYPE mood AS ENUM ('sad', 'gay'); CREATE TABLE moods (id int PRIMARY KEY, m mood); \
                INSERT INTO moods SELECT g, 'sad' FROM generate_series(1, 40) AS g; ANALYZE moods",
        programs: &[("hidden", &hidden), ("hidden by who proves it", &by_its_maker), ("renamed", &renamed)],
    }
    .assert_shut();
}

const COUNTERS: &str = "CREATE TABLE counted (id int PRIMARY KEY, v int); \
     INSERT INTO counted SELECT g, g FROM generate_series(1, 40) AS g; ANALYZE counted";

/// Runs a statement often, and asks the server how often it ran with which plan.
fn counts(stage: &Stage) {
    let mut program = stage.session("program");
    let inner = "SELECT v FROM counted WHERE id = $1";
    serves_loop(&mut program, "SELECT id FROM counted ORDER BY id", inner, true);
    program.exchange("Parse", &[parse_typed("st", inner, &[INT4]), sync()].concat());
    program.says("SELECT 1");
    for _ in 0..2 {
        program.says("BEGIN ISOLATION LEVEL REPEATABLE READ");
        stage.thinks();
        for id in program.column("SELECT id FROM counted ORDER BY id").iter().take(20) {
            program.exchange(id, &run_named("st", id));
        }
        program.says("COMMIT");
    }
    let lines = stage.take_seen();
    let plans = "SELECT generic_plans + custom_plans > 0 FROM pg_prepared_statements WHERE name = 'st'";
    program.says(plans);
    let explained = rows(&program.says("EXPLAIN (COSTS OFF) EXECUTE st(7)")).concat().join(" ");
    drop(stage.take_seen());
    lines.into_iter().for_each(|line| stage.note(line));
    // How often the server ran it is not the same, and so may be the plan; nothing else differs.
    stage.note(explained.replace("id = $1", "id = 7"));
}

#[test]
fn only_the_counters_of_a_prepared_statement_tell_that_runs_are_missing() {
    Hole { name: "counters", setup: COUNTERS, programs: &[("a loop", &counts)] }.assert_shut();
}

/// Another session updates and locks rows that are read again and again, and looped over.
fn marked(stage: &Stage) {
    let (mut program, mut other) = (stage.session("program"), stage.elsewhere("other"));
    serves_repeat(&mut program, "SELECT v FROM found WHERE id = 1");
    serves_loop(&mut program, "SELECT id FROM keys ORDER BY id", "SELECT v FROM found WHERE id = $1", false);
    let mut lines = stage.take_seen();
    // Numbers of transactions are other ones in each run; whether there is one is not.
    let is_marked = |program: &mut Session<'_>, id: &str, column: &str| {
        let told = rows(&program.says(&format!("SELECT {column} FROM found WHERE id = {id}")));
        format!("{column} of {id} told: {}", told.iter().any(|row| row[0] != "0"))
    };
    for column in ["xmax", "cmax"] {
        program.says("BEGIN ISOLATION LEVEL REPEATABLE READ");
        lines.push(is_marked(&mut program, "1", column));
        stage.thinks();
        lines.push(is_marked(&mut program, "1", column));
        other.says_all(&[
            "BEGIN",
            "DELETE FROM keys WHERE id < 0",
            "UPDATE found SET v = 9 WHERE id = 1",
            "COMMIT",
        ]);
        lines.push(is_marked(&mut program, "1", column));
        program.says("COMMIT");
    }
    other.says_all(&["CREATE VIEW told AS SELECT id, xmax AS mark FROM found"]);
    for value in [8, 9] {
        program.says("BEGIN ISOLATION LEVEL REPEATABLE READ");
        for _ in 0..3 {
            let told = rows(&program.says("SELECT mark FROM told WHERE id = 2"));
            lines.push(format!("mark told: {}", told.iter().any(|row| row[0] != "0")));
            stage.thinks();
        }
        other.says(&format!("UPDATE found SET v = {value} WHERE id = 2"));
        let told = rows(&program.says("SELECT mark FROM told WHERE id = 2"));
        lines.push(format!("mark told: {}", told.iter().any(|row| row[0] != "0")));
        program.says("COMMIT");
    }
    for round in 0..3 {
        program.says("BEGIN ISOLATION LEVEL REPEATABLE READ");
        stage.thinks();
        for (place, id) in program.column("SELECT id FROM keys ORDER BY id").iter().enumerate() {
            if place == 10 {
                other.says_all(&[
                    "BEGIN",
                    &format!("SELECT id FROM found WHERE id > {} FOR UPDATE", 12 + round),
                ]);
            }
            lines.push(is_marked(&mut program, id, "xmax"));
        }
        program.says("COMMIT");
        other.says("ROLLBACK");
    }
    drop(stage.take_seen());
    lines.into_iter().for_each(|line| stage.note(line));
}

#[test]
fn what_others_do_to_a_row_is_told_by_the_server() {
    Hole { name: "marks", setup: LEVELS, programs: &[("xmax and cmax", &marked)] }.assert_shut();
}
