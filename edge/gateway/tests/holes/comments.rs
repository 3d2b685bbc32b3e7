//! Comments: what they say is nothing to the server, unless it looks into them.

use super::harmless::{run_named, serves_loop};
use super::messages::{INT4, parse_typed};
use super::stage::{Hole, Session, Stage};

const KEYS: &str = "SELECT id FROM keys ORDER BY id";

/// A simple query whose text is these bytes.
fn raw_query(text: &[u8]) -> Vec<u8> {
    let length = (text.len() as u32 + 5).to_be_bytes();
    [b"Q", &length[..], text, b"\0"].concat()
}

/// Transaction control with a route in it takes no trip of its own.
fn serves_control(program: &mut Session<'_>) {
    program.settles("BEGIN and COMMIT with comments", |program| {
        let has_begun = program.is_told("/* app */ BEGIN /* route='/a' */");
        program.says("SELECT v FROM found WHERE id = 1 /* route='/a' */");
        program.stage.thinks();
        let has_ended = program.is_told("COMMIT -- route='/a'");
        has_begun && has_ended
    });
}

/// Each run has another comment, and is served; a comment that the server may look into is looked into.
fn comments_that_vary(stage: &Stage) {
    let mut program = stage.session("program");
    serves_control(&mut program);
    serves_loop(&mut program, KEYS, "SELECT v FROM found WHERE id = $1 /* span='$1' */", false);
    let inner = |key: &str, comment: &str| format!("SELECT v FROM found WHERE id = {key}{comment}");
    for comments in
        [[" /* a */", " /* b */"], ["", " /* a */"], [" /*+ SeqScan(found) */", " /*+ Set(jit off) */"]]
    {
        program.says("BEGIN ISOLATION LEVEL REPEATABLE READ");
        stage.thinks();
        for (place, key) in program.column(KEYS).iter().enumerate() {
            program.says(&inner(key, comments[place % 2]));
        }
        program.says("COMMIT");
    }
    // The server checks encodings and ends of comments, whatever is in memory.
    for bad in [&b" /* \xff */"[..], b" /* a", b" /* /* a */", b" --\xc3\x28"] {
        program.says("BEGIN ISOLATION LEVEL REPEATABLE READ");
        stage.thinks();
        for (place, key) in program.column(KEYS).iter().enumerate() {
            let text = inner(key, " /* a */");
            match place {
                12 => program.exchange("bad", &raw_query(&[inner(key, "").as_bytes(), bad].concat())),
                _ => program.says(&text),
            };
        }
        program.says("ROLLBACK");
    }
}

/// The same by the extended protocol, with a Parse for each run.
fn parsed_comments_that_vary(stage: &Stage) {
    let mut program = stage.session("program");
    let run = |key: &str| {
        let text = format!("SELECT v FROM found WHERE id = $1 /* span='{key}' */");
        [parse_typed("", &text, &[INT4]), run_named("", key)].concat()
    };
    program.settles("a loop of Parse with comments", |program| {
        program.says("BEGIN ISOLATION LEVEL REPEATABLE READ");
        program.stage.thinks();
        let served = program.column(KEYS).iter().filter(|key| program.is_served(key, &run(key))).count();
        program.says("COMMIT");
        served > 10
    });
    program.says("BEGIN ISOLATION LEVEL REPEATABLE READ");
    stage.thinks();
    for key in program.column(KEYS) {
        program.exchange(&key, &run(&key));
    }
    program.says("COMMIT");
}

#[test]
fn what_a_comment_says_changes_no_answer_and_costs_no_trip() {
    Hole {
        name: "comments",
        setup: "CREATE TABLE keys (id int PRIMARY KEY); CREATE TABLE found (id int PRIMARY KEY, v int); \
                INSERT INTO keys SELECT generate_series(1, 20); \
                INSERT INTO found SELECT g, 10 * g FROM generate_series(1, 20) AS g; ANALYZE keys, found",
        programs: &[("simple queries", &comments_that_vary), ("groups", &parsed_comments_that_vary)],
    }
    .assert_shut();
}
