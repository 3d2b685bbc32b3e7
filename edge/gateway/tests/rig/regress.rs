//! Programs of statements that are not ours: PostgreSQL's own regression files, one file a program, each statement alone, in
//! transactions of any level, repeated, prepared, or read in pieces.
//!
//! `ONETRIP_REGRESS` names the directory of the files (`src/test/regress/sql` of PostgreSQL's sources, also part of
//! `libpg_query`).

use std::path::{Path, PathBuf};

use super::perturb::perturb_gently;
use super::random::Random;
use super::script::{Manner, Script, Statement, bind_all};
use super::step::{Patience, Program, Wait};
use crate::common::messages::*;

/// Where the files are.
pub(crate) const DIRECTORY: &str = "ONETRIP_REGRESS";

/// What is all databases', needs files of the server's machine, waits by the clock, or tells numbers that no two runs share.
const EXCLUDED: [&str; 63] = [
    "tablespace",
    "create role",
    "create user",
    "create group",
    "drop role",
    "drop user",
    "drop group",
    "alter role",
    "alter user",
    "create database",
    "alter database",
    "drop database",
    "alter system",
    "pg_reload_conf",
    "subscription",
    "publication",
    "copy ",
    "load ",
    "pg_sleep",
    "checkpoint",
    "replication",
    "pg_stat",
    "pg_ls_",
    "pg_read",
    "lo_import",
    "lo_export",
    "dblink",
    "language c",
    "as :",
    ":'",
    "pg_terminate",
    "pg_cancel",
    "pg_backend_pid",
    "session authorization",
    "set role",
    "_xact_id",
    "txid_",
    "ctid",
    "xmin",
    "xmax",
    "oid,",
    "random()",
    "gen_random",
    "clock_timestamp",
    "now()",
    "'now'",
    "current_timestamp",
    "timeofday",
    "pg_wal",
    "pg_current_",
    "pg_backup",
    "event trigger",
    "security label",
    "prepare transaction",
    "commit prepared",
    "rollback prepared",
    "pg_relation_size",
    "pg_size",
    "explain",
    "infinite_recurse",
    "tableoid",
    "listen",
    "notify",
];

/// Files that are about what a database's programs share with others, or that take very long.
const LEFT_OUT: [&str; 24] = [
    "test_setup",
    "tablespace",
    "publication",
    "subscription",
    "stats",
    "vacuum",
    "vacuum_parallel",
    "write_parallel",
    "infinite_recurse",
    "event_trigger",
    "copy",
    "copy2",
    "collate.windows.win1252",
    "password",
    "dbsize",
    "sysviews",
    "select_parallel",
    "psql",
    "async",
    "random",
    "security_label",
    "create_am",
    "index_including_gist",
    "join_hash",
];

/// Tables that the files' own preparation fills from files of the server's machine.
pub(crate) const FILLED: &str = "
    INSERT INTO onek SELECT i, (i * 7) % 1000, i % 2, i % 4, i % 10, i % 20, i % 100, i % 200, i % 500, i, i, i % 20, (i % 20) + 1,
        chr(65 + i % 26) || chr(65 + i / 26 % 26) || 'AAAA', chr(65 + i % 26) || 'AAAAA', (ARRAY['AAAAxx', 'HHHHxx', 'OOOOxx', 'VVVVxx'])[1 + i % 4]
        FROM generate_series(0, 999) i;
    INSERT INTO tenk1 SELECT i, (i * 7) % 10000, i % 2, i % 4, i % 10, i % 20, i % 1000, i % 2000, i % 5000, i, i, i % 20, (i % 20) + 1,
        chr(65 + i % 26) || chr(65 + i / 26 % 26) || 'AAAA', chr(65 + i % 26) || 'AAAAA', (ARRAY['AAAAxx', 'HHHHxx', 'OOOOxx', 'VVVVxx'])[1 + i % 4]
        FROM generate_series(0, 2999) i;
    INSERT INTO tenk2 SELECT * FROM tenk1;
    INSERT INTO person SELECT 'p' || i, i, point(i, i) FROM generate_series(1, 50) i;
    ANALYZE;
";

/// One regression file.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) name: String,
    statements: Vec<String>,
}

/// The statements of the files' common tables, and the files.
pub(crate) fn read(directory: &Path) -> (Vec<String>, Vec<File>) {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(directory)
        .unwrap_or_else(|error| panic!("{DIRECTORY}={}: {error}", directory.display()))
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "sql"))
        .collect();
    paths.sort();
    let files: Vec<File> = paths.iter().map(|path| file(path)).collect();
    let (setup, files): (Vec<_>, Vec<_>) = files.into_iter().partition(|file| file.name == "test_setup");
    let setup = setup.into_iter().flat_map(|file| file.statements).collect();
    (setup, files.into_iter().filter(|file| !LEFT_OUT.contains(&&*file.name)).collect())
}

fn file(path: &Path) -> File {
    let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
    let bytes = std::fs::read(path).expect("it can be read");
    let statements =
        split(&String::from_utf8_lossy(&bytes)).into_iter().filter(|text| is_usable(text)).collect();
    File { name, statements }
}

fn is_usable(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    !text.contains('\\') && text.len() < 20_000 && !EXCLUDED.iter().any(|word| lower.contains(word))
}

/// Cuts a file for psql into statements; lines that are psql's own, and what COPY reads, are no statements.
pub(crate) fn split(text: &str) -> Vec<String> {
    let mut statements = Vec::new();
    let mut statement = String::new();
    let mut rest = text;
    let mut depth = 0;
    let mut is_copy = false;
    while let Some(next) = rest.chars().next() {
        if statement.trim().is_empty() && is_copy {
            let end = rest.find("\n\\.").map_or(rest.len(), |at| at + 3);
            (rest, is_copy) = (&rest[end..], false);
            continue;
        }
        let length = match next {
            '\\' if statement.trim().is_empty() => {
                rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
                statement.clear();
                continue;
            }
            '\'' | '"' => {
                let is_escaped = next == '\'' && statement.ends_with(['e', 'E']);
                quoted(rest, next, is_escaped)
            }
            '-' if rest.starts_with("--") => {
                rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
                continue;
            }
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |at| at + 2),
            '$' => dollar(rest),
            _ => next.len_utf8(),
        };
        match next {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        let is_end = next == ';' && depth <= 0 && !is_open_body(&statement);
        if is_end {
            let whole = std::mem::take(&mut statement).trim().to_owned();
            let lower = whole.to_ascii_lowercase();
            is_copy = lower.starts_with("copy") && lower.contains("from stdin");
            if !whole.is_empty() {
                statements.push(whole);
            }
            depth = 0;
        } else {
            statement.push_str(&rest[..length]);
        }
        rest = &rest[length..];
    }
    statements
}

/// BEGIN ATOMIC has no END yet.
fn is_open_body(statement: &str) -> bool {
    let lower = statement.to_ascii_lowercase();
    lower.contains("begin atomic") && !lower.trim_end().ends_with("end")
}

fn quoted(rest: &str, quote: char, is_escaped: bool) -> usize {
    let mut skips = false;
    for (at, next) in rest.char_indices().skip(1) {
        match next {
            _ if skips => skips = false,
            '\\' if is_escaped => skips = true,
            _ if next == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

fn dollar(rest: &str) -> usize {
    let Some(end) = rest[1..].find('$') else { return 1 };
    let tag = &rest[..end + 2];
    let is_tag = tag[1..tag.len() - 1].chars().all(|char| char.is_ascii_alphanumeric() || char == '_')
        && !tag[1..].starts_with(|char: char| char.is_ascii_digit());
    if !is_tag {
        return 1;
    }
    rest[tag.len()..].find(tag).map_or(rest.len(), |at| at + 2 * tag.len())
}

/// A file's program.
pub(crate) fn program(seed: u64, file: &File) -> Program {
    let random = &mut Random::new(seed ^ 0xf11e_0000_0000);
    let mut script = Script::new(0);
    let (mut left, mut cursors) = (0, 0);
    for text in &file.statements {
        if left == 0 && random.one_in(5) && !is_control(text) {
            left = random.within(2..12);
            script.simple(random.pick(&LEVELS));
        }
        let is_select = {
            let lower = text.to_ascii_lowercase();
            lower.starts_with("select") || lower.starts_with("with") || lower.starts_with("values")
        };
        match random.below(8) {
            0 | 1 if is_select && left > 0 => {
                for _ in 0..3 {
                    script.simple(text);
                }
            }
            2 if is_select && left > 0 => {
                cursors += 1;
                let how = random.pick(&["CURSOR", "NO SCROLL CURSOR", "SCROLL CURSOR", "CURSOR WITH HOLD"]);
                script.simple(&format!("DECLARE rig_{cursors} {how} FOR {text}"));
                for _ in 0..random.within(2..6) {
                    script.simple(&format!("FETCH 2 FROM rig_{cursors}"));
                }
                script.simple(&format!("CLOSE rig_{cursors}"));
            }
            3 if is_select => pieces(&mut script, random, text),
            4 => named(&mut script, random, text),
            5 => {
                script.send([run_unnamed(text), sync()].concat(), Wait::Ready(1), format!("extended {text}"))
            }
            _ => script.simple(text),
        }
        if left > 0 {
            left -= 1;
            if left == 0 {
                script.simple(random.pick(&["COMMIT", "COMMIT", "COMMIT", "ROLLBACK"]));
            }
        }
    }
    let mut program = super::script::interleave(random, vec![script]);
    // A session alone waits for nobody.
    program.steps.iter_mut().for_each(|step| step.patience = Patience::Ends);
    perturb_gently(random, program)
}

const LEVELS: [&str; 6] = [
    "BEGIN",
    "BEGIN ISOLATION LEVEL REPEATABLE READ",
    "BEGIN ISOLATION LEVEL REPEATABLE READ",
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
    "BEGIN ISOLATION LEVEL SERIALIZABLE",
    "BEGIN READ ONLY",
];

fn is_control(text: &str) -> bool {
    const WORDS: [&str; 8] = ["begin", "start", "commit", "rollback", "end", "abort", "savepoint", "vacuum"];
    let lower = text.to_ascii_lowercase();
    WORDS.iter().any(|word| lower.starts_with(word))
}

/// By a portal, a few rows at a time.
fn pieces(script: &mut Script, random: &mut Random, text: &str) {
    let statement = Statement::new(text, &[]);
    let manner = Manner { is_binary: random.one_in(4), ..Manner::SIMPLE };
    let opened = [
        close_portal("rig_p"),
        parse("", text),
        bind_all("rig_p", "", &statement, manner),
        describe_portal("rig_p"),
        execute("rig_p", 2),
        sync(),
    ];
    script.send(opened.concat(), Wait::Ready(1), format!("open {text}"));
    for _ in 0..random.within(1..6) {
        script.send([execute("rig_p", 2), sync()].concat(), Wait::Ready(1), "fetch 2");
    }
}

/// Parsed by a name once, and run a few times.
fn named(script: &mut Script, random: &mut Random, text: &str) {
    let statement = Statement::new(text, &[]);
    let manner = Manner { is_binary: random.one_in(4), ..Manner::SIMPLE };
    let parsed = [close_statement("rig_s"), parse("rig_s", text), describe_statement("rig_s"), sync()];
    script.send(parsed.concat(), Wait::Ready(1), format!("prepare {text}"));
    for _ in 0..random.within(1..4) {
        script.bind("rig_s", &statement, manner);
    }
}
