//! `--learned FILE`: what a run has learned about loops makes the next one shorter, and a file that cannot be used is left
//! as it is.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use onetrip_pgserver::{PgServer, repository};
use serde_json::Value;

/// A loop of 30 in one transaction.
const LOOP: &str = r#"
import psycopg2
connection = psycopg2.connect("")
connection.set_session(isolation_level="REPEATABLE READ")
with connection.cursor() as cursor:
    cursor.execute("SELECT id FROM author ORDER BY id")
    books = 0
    for (author,) in cursor.fetchall():
        cursor.execute("SELECT title FROM book WHERE author_id = %s", (author,))
        books += len(cursor.fetchall())
connection.commit()
assert books == 90, books
"#;

const SCHEMA: &str = "
CREATE TABLE author (id int PRIMARY KEY);
CREATE TABLE book (id int PRIMARY KEY, author_id int NOT NULL, title text NOT NULL);
INSERT INTO author SELECT n * n FROM generate_series(1, 30) AS n;
INSERT INTO book SELECT n, (1 + n % 30) * (1 + n % 30), 'Book ' || n FROM generate_series(1, 90) AS n;
";

fn server() -> PgServer {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("schema.sql");
    fs::write(&file, SCHEMA).unwrap();
    PgServer::start(&["--load", file.to_str().unwrap()])
}

/// Runs `program` 12 ms away with a file for what is learned.
fn run(server: &PgServer, file: &Path, options: &[&str], program: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_onetrip"))
        .args(["run", "--rtt", "12ms", "--format", "json", "--remedies", "exact", "--learned"])
        .arg(file)
        .args(options)
        .args(program)
        .current_dir(repository())
        .envs([("PGHOST", "127.0.0.1"), ("PGDATABASE", "postgres"), ("PGPORT", &server.at.port.to_string())])
        .envs([("PGUSER", &server.at.user), ("PGPASSWORD", &server.at.password)])
        .stdin(Stdio::null())
        .output()
        .expect("onetrip runs")
}

fn python() -> [&'static str; 3] {
    [".venv/bin/python", "-c", LOOP]
}

/// Trips of a run of the loop.
fn trips(server: &PgServer, file: &Path) -> u64 {
    let directory = tempfile::tempdir().unwrap();
    let report = directory.path().join("report.json");
    let done = run(server, file, &["-o", report.to_str().unwrap()], &python());
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let report: Value = serde_json::from_str(&fs::read_to_string(report).unwrap()).unwrap();
    report["trips"]["total"].as_u64().unwrap()
}

/// A busy machine answers some questions to the catalogue too late. Such a run removes less and may learn nothing, so runs are
/// repeated so often at most.
const RUNS_MAX: usize = 10;

/// Runs the loop, `at_once` times each time, until the file holds what was learned, and gives that file.
fn learn(server: &PgServer, file: &Path, at_once: usize) -> String {
    for _ in 0..RUNS_MAX {
        std::thread::scope(|scope| {
            for _ in 0..at_once {
                scope.spawn(|| trips(server, file));
            }
        });
        let text = fs::read_to_string(file).unwrap();
        if text.lines().count() >= 3 {
            return text;
        }
    }
    panic!("{RUNS_MAX} runs have learned nothing")
}

/// Runs with the file take a quarter fewer trips than runs that have learned nothing: the least of each.
#[track_caller]
fn assert_shorter(server: &PgServer, warm: &Path, directory: &Path) {
    let (mut with, mut without) = (u64::MAX, u64::MAX);
    for run in 0..RUNS_MAX {
        without = without.min(trips(server, &directory.join(format!("cold {run}"))));
        with = with.min(trips(server, warm));
        if run > 0 && with * 4 <= without * 3 {
            return;
        }
    }
    panic!("{without} trips with nothing learned, {with} with it");
}

#[test]
fn the_second_run_of_a_short_program_takes_fewer_trips_than_the_first() {
    let server = server();
    let (directory, others) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = directory.path().join("shop.learned");
    let text = learn(&server, &file, 1);
    assert!(text.starts_with("onetrip-learned 1 "), "{text}");
    assert!(!text.contains("SELECT"), "{text}");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_shorter(&server, &file, others.path());
    let files: Vec<_> =
        fs::read_dir(directory.path()).unwrap().flatten().map(|file| file.file_name()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
}

#[test]
fn runs_at_once_leave_a_whole_file_that_holds_what_each_has_learned() {
    let server = server();
    let (directory, others) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = directory.path().join("learned");
    learn(&server, &file, 4);
    assert_shorter(&server, &file, others.path());
}

/// The program is not run, the message says this and the file stays as it was.
#[track_caller]
fn assert_refused(server: &PgServer, file: &Path, text: &[u8], message: &str) {
    fs::write(file, text).unwrap();
    let done = run(server, file, &[], &["sh", "-c", "echo was run"]);
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(125), "{said}");
    assert!(done.stdout.is_empty(), "the program was run");
    assert!(said.contains(message) && said.contains(&*file.to_string_lossy()), "{said}");
    assert_eq!(fs::read(file).unwrap(), text);
}

#[test]
fn a_file_that_cannot_be_used_is_named_and_left_as_it_is() {
    let server = server();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("learned");
    let whole = learn(&server, &file, 1);

    assert_refused(&server, &file, &whole.as_bytes()[..whole.len() - 5], "is damaged in line");
    let changed = whole.replacen(" rows ", " last ", 1);
    assert!(changed != whole, "{whole}");
    assert_refused(&server, &file, changed.as_bytes(), "delete this one: what it held is learned again");
    let newer = whole.replacen("onetrip-learned 1 ", "onetrip-learned 2 ", 1);
    assert_refused(&server, &file, newer.as_bytes(), "another version of onetrip");
    assert_refused(&server, &file, b"trips = 200\n", "was not written by --learned");
    assert_refused(&server, &file, &vec![b'x'; 2 << 20], "was not written by --learned");

    let nowhere = run(&server, &directory.path().join("no/where"), &[], &["true"]);
    assert!(String::from_utf8_lossy(&nowhere.stderr).contains("there is no directory"), "{nowhere:?}");
    let no_file = run(&server, directory.path(), &[], &["true"]);
    assert!(String::from_utf8_lossy(&no_file.stderr).contains("is not a file"), "{no_file:?}");

    // A run that another one's damage meets at its end says so, and its own outcome counts.
    fs::write(&file, &whole).unwrap();
    let spoil = format!("echo spoilt > {}", file.display());
    let done = run(&server, &file, &[], &["sh", "-c", &spoil]);
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && said.contains("what was learned is not kept"), "{said}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "spoilt\n");
}

#[test]
fn a_link_stays_a_link_and_no_remedy_is_told_to_learn_nothing() {
    let server = server();
    let directory = tempfile::tempdir().unwrap();
    let (file, link) = (directory.path().join("file"), directory.path().join("link"));
    fs::write(&file, "").unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    trips(&server, &link);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(fs::read_to_string(&file).unwrap().starts_with("onetrip-learned 1 "));

    let mut idle = Command::new(env!("CARGO_BIN_EXE_onetrip"));
    idle.args(["run", "--upstream", "127.0.0.1:1", "--learned"]).arg(&file).arg("true");
    let said = String::from_utf8_lossy(&idle.output().unwrap().stderr).into_owned();
    assert!(said.contains("nothing is learned without --remedies exact"), "{said}");
}
