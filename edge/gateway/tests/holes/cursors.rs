//! Results that are read in pieces, where something between two pieces shapes the next one.

use std::thread;
use std::time::Duration;

use super::harmless::{reads_ahead, reads_portal_ahead, serves_named_repeat};
use super::messages::{DATE, INT4, bind_binary, parse_typed};
use super::stage::{Hole, Program, Session, Stage};
use crate::common::messages::*;

const NUMBERED: &str = "CREATE TABLE numbered (id int PRIMARY KEY, v int); \
     INSERT INTO numbered SELECT g, g * 10 FROM generate_series(1, 40) AS g; ANALYZE numbered";

/// 200 rows with times on both sides of a midnight that depends on the zone.
const TIMES: &str = "CREATE TABLE stamped (id int PRIMARY KEY, at timestamptz); \
     INSERT INTO stamped SELECT g, '2020-06-01 00:00+00'::timestamptz - \
     (CASE WHEN g > 30 THEN 1 ELSE 1000 END) * interval '1 hour' FROM generate_series(1, 200) AS g; \
     CREATE VIEW plain AS SELECT id FROM stamped WHERE id > 0; \
     CREATE VIEW formatted AS SELECT id, to_char(at, 'YYYY-MM-DD HH24:MI') AS shown FROM stamped; \
     CREATE VIEW asked_by AS SELECT id, current_user AS who FROM stamped; \
     CREATE VIEW before_june AS SELECT id FROM stamped WHERE at::date < date '2020-06-01'; \
     GRANT SELECT ON stamped, plain, formatted, asked_by, before_june TO pg_monitor; ANALYZE stamped";

const PLAIN: &str = "SELECT id FROM plain";
const FETCH: &str = "FETCH FORWARD 10 FROM c";
const MIXED: &str = "SELECT id FROM mixed WHERE id > 0";

/// Begins a transaction in UTC, opens a cursor, reads eight pieces, and changes something after the second one.
fn changes_amid(stage: &Stage, harmless: &str, open: &dyn Fn(&mut Session<'_>), change: &str) {
    let mut program = stage.session("program");
    reads_ahead(&mut program, harmless);
    program.says_all(&["SET TimeZone = 'UTC'", "SELECT 1"]);
    stage.thinks();
    program.says("BEGIN");
    open(&mut program);
    for piece in 0..8 {
        if piece == 2 {
            stage.thinks();
            program.says(change);
        }
        program.says("FETCH FORWARD 10 FROM c");
    }
    program.says("ROLLBACK");
}

fn cursor_over(harmless: &'static str, select: &str, change: &str) -> impl Fn(&Stage) + Sync + use<> {
    let (declare, change) = (format!("DECLARE c CURSOR FOR {select}"), change.to_owned());
    move |stage| {
        let open = |program: &mut Session<'_>| drop(program.says(&declare));
        changes_amid(stage, harmless, &open, &change);
    }
}

/// As psycopg 3 sends a `datetime.date`.
fn declared_as_date(stage: &Stage) {
    let open = |program: &mut Session<'_>| {
        let declare = "DECLARE c CURSOR FOR SELECT id FROM stamped WHERE at < $1";
        let bind = bind("", "", &[b"2020-06-01"]);
        let group =
            [parse_typed("", declare, &[DATE]), bind, describe_portal(""), execute("", 0), sync()].concat();
        program.exchange(declare, &group);
    };
    changes_amid(stage, PLAIN, &open, "SET TimeZone = 'Asia/Tokyo'");
}

#[test]
fn a_setting_or_role_reaches_the_next_piece_of_a_cursor_over_a_view() {
    let tokyo = "SET TimeZone = 'Asia/Tokyo'";
    Hole {
        name: "views",
        setup: TIMES,
        programs: &[
            ("a time as text", &cursor_over(PLAIN, "SELECT id, shown FROM formatted", tokyo)),
            ("current_user", &cursor_over(PLAIN, "SELECT id, who FROM asked_by", "SET ROLE pg_monitor")),
            ("a cast to date", &cursor_over(PLAIN, "SELECT id FROM before_june", tokyo)),
            ("a parameter declared as date", &declared_as_date),
        ],
    }
    .assert_shut();
}

/// As asyncpg reads: a portal by name, its results in binary.
fn binary_portal(stage: &Stage) {
    let mut program = stage.session("program");
    reads_portal_ahead(&mut program, MIXED);
    program.says_all(&["SET TimeZone = 'UTC'", "SELECT 1"]);
    stage.thinks();
    program.says("BEGIN");
    let text = "SELECT id, coalesce(tz, d) AS at FROM mixed";
    program.exchange("Parse", &[parse("s", text), describe_statement("s"), sync()].concat());
    stage.thinks();
    program.exchange("Bind", &[bind_binary("p", "s"), execute("p", 10), sync()].concat());
    for piece in 0..6 {
        if piece == 2 {
            stage.thinks();
            program.says("SET TimeZone = 'Asia/Tokyo'");
        }
        program.exchange("Execute", &[execute("p", 10), sync()].concat());
    }
    program.says("ROLLBACK");
}

#[test]
fn a_setting_reaches_the_next_piece_where_a_date_becomes_a_time_unsaid() {
    let tokyo = "SET TimeZone = 'Asia/Tokyo'";
    let over =
        |condition: &str| cursor_over(MIXED, &format!("SELECT id FROM mixed WHERE {condition}"), tokyo);
    let least = "SELECT id FROM mixed WHERE id < 1000 UNION ALL \
                 SELECT id FROM (SELECT id, d AS at FROM mixed UNION ALL SELECT id, tz FROM mixed) AS both \
                 WHERE at < '2020-06-01 00:00+00'";
    Hole {
        name: "implicit_casts",
        setup: "CREATE TABLE mixed (id int PRIMARY KEY, d date, tz timestamptz); \
                INSERT INTO mixed SELECT g, CASE WHEN g <= 30 THEN date '2020-01-01' ELSE date '2020-06-01' END, NULL \
                FROM generate_series(1, 200) AS g; ANALYZE mixed",
        programs: &[
            ("COALESCE", &over("coalesce(tz, d) < '2020-06-01 00:00+00'")),
            ("CASE", &over("CASE WHEN tz IS NULL THEN d ELSE tz END < '2020-06-01 00:00+00'")),
            ("LEAST", &over("LEAST(tz, d) < '2020-06-01 00:00+00'")),
            ("GREATEST", &over("GREATEST(d, tz) < '2020-06-01 00:00+00'")),
            ("IN", &over("d IN (tz, '2020-06-01 00:00+00'::timestamptz)")),
            ("UNION", &cursor_over(MIXED, least, tokyo)),
            ("a portal in binary", &binary_portal),
        ],
    }
    .assert_shut();
}

/// A statement that was described as integers is prepared again after another session made times of them, and not described.
fn older_types(stage: &Stage) {
    let (mut other, mut program) = (stage.session("other"), stage.session("program"));
    let text = "SELECT id, v FROM retyped";
    reads_portal_ahead(&mut program, text);
    program.says_all(&["SET TimeZone = 'UTC'", "SELECT 1"]);
    program.exchange("Parse", &[parse("s1", text), describe_statement("s1"), sync()].concat());
    other.says(
        "ALTER TABLE retyped ALTER v TYPE timestamptz USING '2024-01-01 00:00+00'::timestamptz + v * interval '1h'",
    );
    for _ in 0..4 {
        program.says("SELECT 1");
        other.says("SELECT 1");
        stage.thinks();
    }
    program.says("BEGIN");
    let group = [parse("s2", text), bind("p", "s2", &[]), execute("p", 10), sync()].concat();
    program.exchange("Parse, Bind", &group);
    for piece in 0..6 {
        stage.thinks();
        if piece == 2 {
            program.says("SET TimeZone = 'Asia/Tokyo'");
        }
        program.exchange("Execute", &[execute("p", 10), sync()].concat());
    }
    program.says("ROLLBACK");
}

#[test]
fn a_portal_is_judged_by_the_types_that_its_columns_have_now() {
    Hole {
        name: "older_types",
        setup: "CREATE TABLE retyped (id int PRIMARY KEY, v int); \
                INSERT INTO retyped SELECT g, g FROM generate_series(1, 200) AS g; ANALYZE retyped",
        programs: &[("ALTER TABLE by another session", &older_types)],
    }
    .assert_shut();
}

/// Reads two pieces, the error lies in the fourth, and goes elsewhere.
fn turns_back(last: &str) -> impl Fn(&Stage) + Sync + use<> {
    let last = last.to_owned();
    move |stage| {
        let mut program = stage.session("program");
        reads_ahead(&mut program, "SELECT id, v FROM divided");
        program.says_all(&["BEGIN", "DECLARE c CURSOR FOR SELECT id, 100 / v FROM divided"]);
        program.says_all(&["FETCH FORWARD 10 FROM c", "FETCH FORWARD 10 FROM c"]);
        stage.thinks();
        program.says_all(&[&last, "ROLLBACK"]);
    }
}

#[test]
fn an_error_that_the_program_never_comes_to_does_not_end_its_cursor() {
    Hole {
        name: "errors_ahead",
        setup: "CREATE TABLE divided (id int PRIMARY KEY, v int); INSERT INTO divided \
                SELECT g, CASE WHEN g = 35 THEN 0 ELSE 1 END FROM generate_series(1, 200) AS g; ANALYZE divided",
        programs: &[
            ("FETCH BACKWARD", &turns_back("FETCH BACKWARD 5 FROM c")),
            ("MOVE", &turns_back("MOVE 0 FROM c")),
            ("WHERE CURRENT OF", &turns_back("UPDATE divided SET v = 2 WHERE CURRENT OF c")),
        ],
    }
    .assert_shut();
}

/// Rows in their order, and conditions that are not compiled: the other pieces are fast.
const PLAIN_SCANS: (&str, &str) = ("options", "-c jit=off -c synchronize_seqscans=off");

/// The third piece is slow. The program reads it when nothing limits its time any more.
fn without_limit_again(stage: &Stage, query: &str) {
    let mut program = stage.session_with("program", &[PLAIN_SCANS]);
    reads_ahead(&mut program, "SELECT id FROM quick");
    program.says_all(&["SET statement_timeout = '500ms'", "SELECT 1"]);
    stage.thinks();
    program.says_all(&["BEGIN", &format!("DECLARE c CURSOR FOR {query}")]);
    for piece in 0..4 {
        if piece == 2 {
            thread::sleep(Duration::from_secs(1));
            program.says("SET statement_timeout = 0");
        }
        program.says("FETCH FORWARD 10 FROM c");
    }
    program.says("ROLLBACK");
}

/// Another session cancels the program's while that thinks: directly this hits nothing.
fn cancelled_while_it_thinks(stage: &Stage, query: &str) {
    let mut program = stage.session_with("program", &[PLAIN_SCANS]);
    reads_ahead(&mut program, "SELECT id FROM quick");
    let mut admin = stage.elsewhere("admin");
    let process = program.process();
    program.says("SELECT 1");
    stage.thinks();
    program.says_all(&["BEGIN", &format!("DECLARE c CURSOR FOR {query}")]);
    program.says_all(&["FETCH FORWARD 10 FROM c", "FETCH FORWARD 10 FROM c"]);
    stage.thinks();
    admin.client.query(&format!("SELECT pg_cancel_backend({process})"));
    thread::sleep(Duration::from_millis(200));
    program.says_all(&["FETCH FORWARD 10 FROM c", "FETCH FORWARD 10 FROM c", "ROLLBACK"]);
}

#[test]
fn a_limit_that_is_lifted_in_time_ends_no_piece() {
    let conditions: Vec<String> = (1..=400).map(|number| format!("id <> -{number}")).collect();
    let plain = format!("SELECT id FROM slow WHERE {} AND v = 1", conditions.join(" AND "));
    let computed = "SELECT id FROM slow WHERE length(replace(pad, 'x', 'yy')) > 0 AND v = 1";
    Hole {
        name: "limits",
        setup: "CREATE TABLE slow (id int PRIMARY KEY, v int, pad text); \
                INSERT INTO slow SELECT g, CASE WHEN g <= 25 OR g > 299960 THEN 1 ELSE 0 END, repeat('x', 10) \
                FROM generate_series(1, 300000) AS g; \
                CREATE TABLE quick AS SELECT g AS id FROM generate_series(1, 200) AS g; ANALYZE",
        programs: &[
            ("columns and constants", &|stage| without_limit_again(stage, &plain)),
            ("functions", &|stage| without_limit_again(stage, computed)),
            ("cancelled", &|stage| cancelled_while_it_thinks(stage, computed)),
        ],
    }
    .assert_shut();
}

/// Runs the statement `st` from the unnamed portal.
fn runs_named(program: &mut Session<'_>) {
    program.exchange("run", &[bind("", "st", &[b"4"]), execute("", 0), sync()].concat());
}

/// A program at REPEATABLE READ, beyond two runs of `st`: another is answered from memory. `more` is what else it parses before.
fn repeats_named<'s>(stage: &'s Stage, more: &[Vec<u8>]) -> Session<'s> {
    let text = "SELECT v FROM numbered WHERE id >= $1 AND id < $1 + 3 ORDER BY id";
    let mut program = stage.session("program");
    serves_named_repeat(&mut program, text);
    program.exchange("Parse", &[parse_typed("st", text, &[INT4]), sync()].concat());
    for parse in more {
        program.exchange("Parse", &[parse.clone(), sync()].concat());
    }
    program.says("SELECT 1");
    stage.thinks();
    program.says("BEGIN ISOLATION LEVEL REPEATABLE READ");
    stage.thinks();
    for _ in 0..2 {
        runs_named(&mut program);
        stage.thinks();
    }
    program
}

#[test]
fn an_answer_from_memory_does_not_replace_the_portal_that_the_program_has_bound() {
    let program = |stage: &Stage| {
        let mut program = repeats_named(stage, &[parse("ps", "SELECT id FROM numbered ORDER BY id")]);
        program.exchange("Bind", &[bind("", "ps", &[]), execute("", 1), sync()].concat());
        for _ in 0..3 {
            stage.thinks();
            program.exchange("Execute", &[execute("", 1), sync()].concat());
        }
        program.says("COMMIT");
    };
    Hole { name: "unnamed_portals", setup: NUMBERED, programs: &[("Bind of the unnamed portal", &program)] }
        .assert_shut();
}

/// The portal of an answer from memory is among those that a text lists.
#[test]
fn the_portal_of_an_answer_from_memory_is_listed() {
    let lists = |stage: &Stage, statement: &str| {
        let mut program = repeats_named(stage, &[]);
        program.says("SELECT 1"); // ends the unnamed portal
        runs_named(&mut program);
        let list = parse(statement, "SELECT name, statement FROM PG_CURSORS ORDER BY name");
        program.exchange("list", &[list, bind("p", statement, &[]), execute("p", 0), sync()].concat());
        program.says("COMMIT");
    };
    let unnamed = |stage: &Stage| lists(stage, "");
    let named = |stage: &Stage| lists(stage, "list");
    Hole {
        name: "listed_portals",
        setup: NUMBERED,
        programs: &[("an unnamed statement", &unnamed), ("a named one", &named)],
    }
    .assert_shut();
}

/// A character that the program's encoding does not have ends the piece that it is in, and no other. Only what is stored is
/// read ahead where characters are converted.
fn without_a_character(stage: &Stage) {
    const FETCH: &str = "FETCH FORWARD 5 FROM c";
    let mut program = stage.session_with("program", &[("client_encoding", "LATIN1")]);
    program.settles("held cursor of numbers", |program| {
        program.says_all(&["BEGIN", "SELECT id FROM written WHERE id = 1", "COMMIT"]);
        program.says("DECLARE c CURSOR WITH HOLD FOR SELECT id FROM written");
        for _ in 0..4 {
            program.says(FETCH);
            program.stage.thinks();
        }
        let is_told = program.is_told(FETCH);
        program.says("CLOSE c");
        is_told
    });
    program.says_all(&["BEGIN", "SELECT id FROM written WHERE id = 1", "COMMIT"]);
    program.says("DECLARE c CURSOR WITH HOLD FOR SELECT id, v FROM written ORDER BY id");
    for _ in 0..6 {
        program.says(FETCH);
        stage.thinks();
    }
    program.says_all(&["FETCH BACKWARD 3 FROM c", "MOVE 1 FROM c", FETCH, FETCH, FETCH, FETCH, "SELECT 1"]);
}

#[test]
fn a_character_that_cannot_be_converted_fails_where_it_is_read() {
    let setup = "CREATE TABLE written (id int PRIMARY KEY, v text); \
         INSERT INTO written SELECT g, CASE g WHEN 45 THEN chr(8364) ELSE 'x' END FROM generate_series(1, 80) AS g; ANALYZE written";
    Hole { name: "characters", setup, programs: &[("held", &without_a_character)] }.assert_shut();
}

/// A column that is computed when it is read (PostgreSQL 18; stored before), behind a view.
#[test]
fn a_column_that_is_computed_behind_a_view_is_not_read_ahead() {
    let setup = "DO $$ DECLARE kind text := CASE WHEN current_setting('server_version_num')::int >= 180000 THEN 'VIRTUAL' ELSE 'STORED' END; \
         BEGIN EXECUTE 'CREATE TABLE computed (id int PRIMARY KEY, f float8, g text GENERATED ALWAYS AS (f::text) ' || kind || ')'; END $$; \
         INSERT INTO computed (id, f) SELECT g, 0.1::float8 + 0.2 FROM generate_series(1, 80) AS g; ANALYZE computed; \
         CREATE VIEW over_computed AS SELECT id, g FROM computed; CREATE VIEW over_view AS SELECT id, g FROM over_computed; \
         CREATE TABLE plain (id int PRIMARY KEY); INSERT INTO plain SELECT generate_series(1, 80); ANALYZE plain";
    let over = |view: &'static str| {
        move |stage: &Stage| {
            let mut program = stage.session("program");
            reads_ahead(&mut program, "SELECT id FROM plain");
            program.says_all(&["BEGIN", &format!("DECLARE c CURSOR FOR SELECT id, g FROM {view}")]);
            for _ in 0..4 {
                program.says("FETCH FORWARD 10 FROM c");
                stage.thinks();
            }
            program.says_all(&["SET LOCAL extra_float_digits = 0", "FETCH FORWARD 10 FROM c", "ROLLBACK"]);
        }
    };
    let (one, two) = (over("over_computed"), over("over_view"));
    Hole { name: "computed", setup, programs: &[("a view", &one), ("a view over it", &two)] }.assert_shut();
}

/// How a program asks for more of a cursor.
#[derive(Clone, Copy)]
enum Asks {
    Fetch,
    Move,
    Extended,
}

/// Reads a cursor ahead, has it closed by `closer`, and asks for more of it. Outside of a transaction it is one WITH HOLD.
fn closed_by(
    begin: Option<&'static str>,
    closer: &'static str,
    asks: Asks,
) -> impl Fn(&Stage) + Sync + use<> {
    move |stage| {
        let mut program = stage.session("program");
        reads_ahead(&mut program, PLAIN);
        begin.iter().for_each(|text| drop(program.says(text)));
        let held = if begin.is_some() { "" } else { " WITH HOLD" };
        program.says_all(&[&format!("DECLARE c CURSOR{held} FOR {PLAIN}"), FETCH, FETCH]);
        stage.thinks();
        program.says(FETCH);
        stage.thinks();
        program.says(closer);
        match asks {
            Asks::Fetch => drop(program.says(FETCH)),
            Asks::Move => drop(program.says("MOVE 3 IN c")),
            Asks::Extended => {
                let text = [parse("", FETCH), bind("", "", &[]), execute("", 0), sync()];
                program.exchange("FETCH, extended", &text.concat());
            }
        }
        program.says_all(&["ROLLBACK", &format!("SELECT count(*) FROM ({PLAIN}) AS p")]);
    }
}

#[test]
fn a_cursor_that_was_closed_with_all_others_is_not_there() {
    let discarded = closed_by(None, "DISCARD ALL", Asks::Extended);
    let closed = closed_by(None, "CLOSE ALL", Asks::Extended);
    let read = closed_by(None, "DISCARD ALL", Asks::Fetch);
    let among_others = closed_by(None, "SELECT 1; CLOSE ALL", Asks::Move);
    let within = closed_by(Some("BEGIN"), "CLOSE ALL", Asks::Extended);
    let refused = closed_by(Some("BEGIN"), "DISCARD ALL", Asks::Extended);
    let programs: [Program<'_>; 6] = [
        ("DISCARD ALL", &discarded),
        ("CLOSE ALL", &closed),
        ("a simple query", &read),
        ("several statements", &among_others),
        ("CLOSE ALL in a transaction", &within),
        ("DISCARD ALL, which fails", &refused),
    ];
    Hole { name: "closed_all", setup: TIMES, programs: &programs }.assert_shut();
}
