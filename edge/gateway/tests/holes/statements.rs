//! What a Parse says, where settings, locks or tables have changed since it was last asked.

use super::harmless::{serves_repeat, tells_parse};
use super::stage::{Hole, Program, Session, Stage};
use crate::common::messages::*;

fn prepare(text: &str, is_described: bool) -> Vec<u8> {
    let describe = if is_described { describe_statement("") } else { Vec::new() };
    [parse("", text), describe, sync()].concat()
}

const FIRST: (&str, &str) = ("search_path", "first, public");
const BY_ID: &str = "SELECT * FROM chosen WHERE id = $1";

/// Prepares and runs a statement, with answers described.
fn prepares_and_runs(program: &mut Session<'_>) {
    program.exchange("Parse", &prepare(BY_ID, true));
    let run = [bind("", "", &[b"3"]), describe_portal(""), execute("", 0), sync()].concat();
    program.exchange("Bind", &run);
}

/// Another session of the gateway makes a table of the same name, earlier in the search path, by SELECT INTO.
fn made_by_another(stage: &Stage) {
    let (mut program, mut other) = (stage.session_with("program", &[FIRST]), stage.session("other"));
    tells_parse(&mut program, BY_ID);
    for _ in 0..3 {
        prepares_and_runs(&mut program);
        stage.thinks();
    }
    other.says("SELECT 'x'::text AS other, 3 AS id INTO first.chosen");
    prepares_and_runs(&mut program);
    other.says("DROP TABLE first.chosen");
}

/// The session does so itself.
fn made_by_itself(stage: &Stage) {
    let mut program = stage.session_with("program", &[FIRST]);
    tells_parse(&mut program, BY_ID);
    for _ in 0..3 {
        prepares_and_runs(&mut program);
        stage.thinks();
    }
    program.says_all(&["SELECT 'x'::text AS other, 3 AS id INTO first.chosen", "SELECT 1"]);
    stage.thinks();
    program.says("SELECT 1");
    prepares_and_runs(&mut program);
    program.says("DROP TABLE first.chosen");
}

/// Another session does so between two reads of one snapshot.
fn made_amid_a_snapshot(stage: &Stage) {
    let (mut program, mut other) = (stage.session_with("program", &[FIRST]), stage.session("other"));
    serves_repeat(&mut program, "SELECT count(*) FROM chosen");
    program.says_all(&["SELECT 1", "BEGIN ISOLATION LEVEL REPEATABLE READ"]);
    stage.thinks();
    program.says("SELECT count(*) FROM chosen");
    stage.thinks();
    program.says("SELECT count(*) FROM chosen");
    other.says("SELECT 1 AS id, 2 AS v INTO first.chosen");
    program.says_all(&["SELECT count(*) FROM chosen", "COMMIT"]);
    other.says("DROP TABLE first.chosen");
}

#[test]
fn select_into_makes_a_table_for_all_sessions() {
    let programs: [Program<'_>; 3] = [
        ("by another session", &made_by_another),
        ("by the session itself", &made_by_itself),
        ("amid a snapshot", &made_amid_a_snapshot),
    ];
    Hole {
        name: "select_into",
        setup: "CREATE SCHEMA first; CREATE TABLE chosen (id int, v int); \
                INSERT INTO chosen SELECT g, g FROM generate_series(1, 30) AS g; ANALYZE chosen",
        programs: &programs,
    }
    .assert_shut();
}

#[test]
fn a_parse_waits_for_a_lock_that_another_session_holds() {
    let text = "SELECT v FROM locked WHERE id = $1";
    let program = |stage: &Stage| {
        let (mut program, mut other) = (stage.session("program"), stage.session("other"));
        tells_parse(&mut program, text);
        program.says_all(&["SET lock_timeout = '300ms'", "SELECT 1"]);
        stage.thinks();
        let run = [bind("", "", &[b"1"]), execute("", 0), sync()].concat();
        for _ in 0..3 {
            program.exchange("Parse", &prepare(text, true));
            program.exchange("Bind", &run);
            stage.thinks();
        }
        other.says_all(&["BEGIN", "LOCK TABLE locked IN ACCESS EXCLUSIVE MODE"]);
        program.exchange("Parse", &prepare(text, true));
        other.says("ROLLBACK");
        program.exchange("Bind", &run);
        program.exchange("Parse", &prepare(text, true));
        program.exchange("Bind", &run);
    };
    Hole {
        name: "locked",
        setup: "CREATE TABLE locked (id int PRIMARY KEY, v int); INSERT INTO locked VALUES (1, 1); ANALYZE locked",
        programs: &[("LOCK TABLE", &program)],
    }
    .assert_shut();
}

/// What begins a transaction whose first Parse waits until no other session can make its snapshot an unsafe one.
const DEFERRABLE: &str = "BEGIN ISOLATION LEVEL SERIALIZABLE, READ ONLY, DEFERRABLE";

/// Another session is amid a transaction that writes; the program begins by `begins`, with these defaults.
fn waits_for_a_safe_snapshot(stage: &Stage, defaults: &str, begins: &[&str]) {
    let text = "SELECT v FROM awaited WHERE id = $1";
    let (mut program, mut other) = (stage.session("program"), stage.session("other"));
    tells_parse(&mut program, text);
    program.says_all(&["SET statement_timeout = '300ms'", defaults, "SELECT 1"]);
    stage.thinks();
    let run = [bind("", "", &[b"1"]), execute("", 0), sync()].concat();
    for _ in 0..3 {
        program.exchange("Parse", &prepare(text, true));
        program.exchange("Bind", &run);
        stage.thinks();
    }
    other.says_all(&["BEGIN ISOLATION LEVEL SERIALIZABLE", "UPDATE awaited SET v = 2 WHERE id = 2"]);
    program.says_all(begins);
    // It may wait for other tests of this server as well, which only makes it wait longer.
    program.exchange("Parse", &prepare(text, true));
    program.says("ROLLBACK");
    other.says("ROLLBACK");
}

#[test]
fn a_parse_waits_for_a_safe_snapshot() {
    let plain = |stage: &Stage| waits_for_a_safe_snapshot(stage, "SELECT 2", &[DEFERRABLE]);
    let again = |stage: &Stage| waits_for_a_safe_snapshot(stage, "SELECT 2", &["BEGIN", DEFERRABLE]);
    let chained = |stage: &Stage| {
        waits_for_a_safe_snapshot(stage, "SELECT 2", &[DEFERRABLE, "ROLLBACK AND CHAIN"]);
    };
    let default = |stage: &Stage| {
        let defaults = "SET default_transaction_deferrable = on";
        waits_for_a_safe_snapshot(stage, defaults, &["BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY"]);
    };
    Hole {
        name: "awaited",
        setup: "CREATE TABLE awaited (id int PRIMARY KEY, v int); INSERT INTO awaited VALUES (1, 1), (2, 1); ANALYZE awaited",
        programs: &[("BEGIN", &plain), ("BEGIN twice", &again), ("chained", &chained), ("default", &default)],
    }
    .assert_shut();
}

/// A driver that prepares each statement before it runs it: the Parse of a write is told.
fn prepares_writes(program: &mut Session<'_>) {
    program.settles("Parse of an INSERT", |program| {
        let is_told = program.is_served("Parse", &prepare("INSERT INTO warm VALUES ('2020-02-13')", true));
        program.exchange("Bind", &[bind("", "", &[]), execute("", 0), sync()].concat());
        program.stage.thinks();
        is_told
    });
}

/// A statement that one session has prepared often, and another one prepares with other settings.
struct Prepared {
    text: &'static str,
    taught_with: &'static [&'static str],
    used_with: &'static [&'static str],
    is_described: bool,
    user: &'static str,
    in_transaction: bool,
}

impl Prepared {
    const fn new(text: &'static str) -> Self {
        let (taught_with, used_with) = (&[], &[]);
        Self { text, taught_with, used_with, is_described: true, user: "onetrip", in_transaction: false }
    }

    fn run(&self, stage: &Stage) {
        let user = [("user", self.user)];
        let mut teacher = stage.session_with("teacher", &user);
        for _ in 0..3 {
            teacher.says_all(self.taught_with);
            stage.thinks();
            teacher.exchange("Parse", &prepare(self.text, self.is_described));
            stage.thinks();
        }
        let mut program = stage.session_with("program", &user);
        prepares_writes(&mut program);
        for _ in 0..2 {
            program.says_all(self.used_with);
            program.says("SELECT 1");
            stage.thinks();
            if self.in_transaction {
                program.says("BEGIN");
                stage.thinks();
            }
            program.exchange("Parse", &prepare(self.text, self.is_described));
            program.says("SELECT 2");
            if self.in_transaction {
                program.says("ROLLBACK");
            }
        }
    }
}

const DATE_OF_US: &str = "INSERT INTO dated VALUES ('13/02/2020')";
const DMY: &[&str] = &["SET DateStyle = 'ISO, DMY'"];
const MDY: &[&str] = &["SET DateStyle = 'ISO, MDY'"];
/// A name that is cut, with a notice, because it is longer than 63 bytes.
const LONG_NAME: &str =
    "SELECT 1 AS xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";

const PREPARED: [(&str, Prepared); 8] = [
    (
        "DateStyle, SELECT",
        Prepared { taught_with: DMY, used_with: MDY, ..Prepared::new("SELECT '13/02/2020'::date AS d") },
    ),
    (
        "DateStyle, Parse alone",
        Prepared {
            taught_with: DMY,
            used_with: MDY,
            is_described: false,
            ..Prepared::new("SELECT '13/02/2020'::date AS d")
        },
    ),
    ("DateStyle, INSERT", Prepared { taught_with: DMY, used_with: MDY, ..Prepared::new(DATE_OF_US) }),
    (
        "DateStyle, INSERT in a transaction",
        Prepared { taught_with: DMY, used_with: MDY, in_transaction: true, ..Prepared::new(DATE_OF_US) },
    ),
    (
        "row_security",
        Prepared {
            used_with: &["SET row_security = off"],
            user: "holes_user",
            ..Prepared::new("UPDATE owned SET id = $1")
        },
    ),
    (
        "xmloption",
        Prepared {
            taught_with: &["SET xmloption = content"],
            used_with: &["SET xmloption = document"],
            is_described: false,
            ..Prepared::new("SELECT 'a<b/>'::xml::text")
        },
    ),
    (
        "client_min_messages",
        Prepared {
            taught_with: &["SET client_min_messages = warning"],
            used_with: &["SET client_min_messages = notice"],
            ..Prepared::new(LONG_NAME)
        },
    ),
    (
        "backslash_quote",
        Prepared {
            taught_with: &["SET backslash_quote = on", "SET standard_conforming_strings = off"],
            used_with: &["SET backslash_quote = off", "SET standard_conforming_strings = off"],
            ..Prepared::new("SELECT 'a\\'b' AS quoted")
        },
    ),
];

/// One session, one program, nobody else: prepares, sets, prepares again.
fn alone(stage: &Stage) {
    let mut program = stage.session("program");
    prepares_writes(&mut program);
    for style in ["DMY", "DMY", "DMY", "MDY", "MDY"] {
        program.says_all(&[&format!("SET DateStyle = 'ISO, {style}'"), "SELECT 1"]);
        stage.thinks();
        program.says("BEGIN");
        stage.thinks();
        program.exchange("Parse", &prepare(DATE_OF_US, true));
        program.says_all(&["SELECT count(*) FROM dated", "ROLLBACK"]);
    }
}

#[test]
fn a_parse_is_told_with_the_settings_of_its_own_session() {
    let others: Vec<_> =
        PREPARED.iter().map(|(name, prepared)| (*name, |stage: &Stage| prepared.run(stage))).collect();
    let mut programs: Vec<Program<'_>> = vec![("one session", &alone)];
    others.iter().for_each(|(name, run)| programs.push((name, run)));
    Hole {
        name: "parse_settings",
        setup: "CREATE TABLE dated (d date); CREATE TABLE warm (d date); CREATE TABLE owned (id int, who text); \
                ALTER TABLE owned ENABLE ROW LEVEL SECURITY; \
                DO 'BEGIN CREATE ROLE holes_user LOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END'; \
                GRANT ALL ON dated, warm, owned TO holes_user; CREATE POLICY p ON owned USING (who = current_user)",
        programs: &programs,
    }
    .assert_shut();
}
