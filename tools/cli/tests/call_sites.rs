//! Findings name the lines of the program that sent their statements, and nothing else changes.
//!
//! In the programs of `call_sites/`, a comment behind a line says which finding has to name it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use onetrip_pgserver::{PgServer, repository};
use serde_json::Value;

const SCHEMA: &str = "
CREATE TABLE author (id int PRIMARY KEY);
CREATE TABLE book (id int PRIMARY KEY, author_id int NOT NULL REFERENCES author, title text NOT NULL);
CREATE TABLE note (body text NOT NULL);
INSERT INTO author SELECT n * n FROM generate_series(1, 30) AS n;
INSERT INTO book SELECT n, (1 + n % 30) * (1 + n % 30), 'Book ' || n FROM generate_series(1, 90) AS n;
";

/// One for all tests: none depends on the rows that another writes.
fn server() -> &'static PgServer {
    static SERVER: OnceLock<PgServer> = OnceLock::new();
    SERVER.get_or_init(|| {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("schema.sql");
        std::fs::write(&file, SCHEMA).unwrap();
        PgServer::start(&["--load", file.to_str().unwrap()])
    })
}

/// Where programs find it.
fn database() -> [(&'static str, String); 5] {
    let at = &server().at;
    [
        ("PGHOST", "127.0.0.1".to_owned()),
        ("PGPORT", at.port.to_string()),
        ("PGDATABASE", "postgres".to_owned()),
        ("PGUSER", at.user.clone()),
        ("PGPASSWORD", at.password.clone()),
    ]
}

/// Runs a program of Python, Node, Ruby or Java.
fn run(options: &[&str], program: &[&str], variables: &[(&str, &str)]) -> Output {
    let is_of = |end: &str| program.iter().any(|word| word.ends_with(end));
    if is_of(".java") {
        return run_words(options, &java_words(program[0]), variables);
    }
    let runtime: OsString = match () {
        () if is_of(".js") => "node".into(),
        () if is_of(".rb") => "ruby".into(),
        () => repository().join(".venv/bin/python").into(),
    };
    let words: Vec<_> = [runtime].into_iter().chain(program.iter().map(OsString::from)).collect();
    run_words(options, &words, variables)
}

/// The command line of a program of Java.
fn java_words(program: &str) -> Vec<OsString> {
    let path = format!("{}:{}", classes().display(), jars());
    let class = program.trim_end_matches(".java");
    ["java", "-XX:TieredStopAtLevel=1", "-cp", &path, class].map(OsString::from).to_vec()
}

fn jars() -> String {
    repository().join("clients/java/target/lib/*").display().to_string()
}

/// The classes of all programs of Java, compiled once.
fn classes() -> &'static Path {
    static CLASSES: OnceLock<PathBuf> = OnceLock::new();
    CLASSES.get_or_init(|| {
        let classes = Path::new(env!("CARGO_TARGET_TMPDIR")).join("call_sites");
        let mut compiler = Command::new("javac");
        compiler.args(["-J-XX:TieredStopAtLevel=1", "-g", "-cp", &jars(), "-d"]).arg(&classes);
        compiler.args(["JdbcProgram.java", "HibernateProgram.java"]).current_dir(directory());
        let done = compiler.output().expect("javac is there");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        classes
    })
}

fn run_words(options: &[&str], words: &[OsString], variables: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_onetrip"))
        .arg("run")
        .args(options)
        .arg("--")
        .args(words)
        .env("NODE_PATH", repository().join("clients/node/node_modules"))
        .current_dir(directory())
        .envs(database())
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .output()
        .expect("onetrip runs")
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/call_sites")
}

/// A driver that sends a trip's messages by two writes (a cursor of Node) may be stopped between them. Only where a trip
/// takes longer than that is their number no chance.
const DISTANCE: [&str; 2] = ["--rtt", "20ms"];

fn report(when: &str, program: &str) -> Value {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("report.json");
    let options =
        [&DISTANCE[..], &["--call-sites", when, "--format", "json", "-o", file.to_str().unwrap()]].concat();
    let done = run(&options, &[program], &[]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

/// What is the same whether lines are asked for or not.
fn counts(report: &Value) -> Vec<u64> {
    let trips = ["total", "connect", "work"].map(|name| &report["trips"][name]);
    let others = ["units", "statements", "bytes_sent", "bytes_received"].map(|name| &report[name]);
    let opened = &report["connections"]["opened"];
    trips.into_iter().chain(others).chain([opened]).map(|count| count.as_u64().unwrap()).collect()
}

/// The innermost frames of a code's findings.
fn innermost(report: &Value, code: &str) -> Vec<String> {
    let findings = report["findings"].as_array().unwrap().iter().filter(|finding| finding["code"] == code);
    let lines = findings.flat_map(|finding| finding["lines"].as_array().unwrap());
    lines.map(|line| line["frames"][0].as_str().unwrap().to_owned()).collect()
}

/// Each finding that a comment of the program names has that line alone, and counts are those of a run without.
fn names_its_lines(program: &str) {
    let (with, without) = (report("auto", program), report("off", program));
    assert_eq!(counts(&with), counts(&without));
    let text = std::fs::read_to_string(directory().join(program)).unwrap();
    let marked = text.lines().zip(1..).filter_map(|(line, number)| {
        let (_, mark) = line.split_once(" # OT").or_else(|| line.split_once(" // OT"))?;
        Some((format!("OT{}", mark.get(..3)?), format!("{program}:{number}")))
    });
    let mut count = 0;
    for (code, place) in marked {
        let frames = innermost(&with, &code);
        let is_it = |frame: &String| frame.split(" in ").next() == Some(place.as_str());
        assert!(frames.iter().any(is_it), "{code} at {place}: {frames:?}");
        assert!(innermost(&without, &code).is_empty());
        count += 1;
    }
    assert!(count > 0, "{program} has no marks");
    let named = with["findings"].as_array().unwrap().iter().flat_map(|it| it["lines"].as_array().unwrap());
    for line in named {
        let frame = line["frames"][0].as_str().unwrap();
        assert!(frame.starts_with(program), "{frame} is not the program's");
    }
}

#[test]
fn psycopg2() {
    names_its_lines("psycopg2_program.py");
}

#[test]
fn psycopg() {
    names_its_lines("psycopg_program.py");
}

#[test]
fn asyncpg() {
    names_its_lines("asyncpg_program.py");
}

#[test]
fn node_postgres() {
    names_its_lines("pg_program.js");
}

#[test]
fn orms_are_no_lines_of_the_program() {
    names_its_lines("orm_program.py");
}

/// Whether Ruby is here with the gems that its programs need; if not, says so.
fn has_ruby() -> bool {
    let asked = ["-e", "require 'pg'; require 'active_record'"];
    let done = Command::new("ruby").args(asked).stderr(Stdio::null()).status();
    let is_here = done.is_ok_and(|status| status.success());
    if !is_here {
        println!("skipped: no Ruby with the gems pg and activerecord here; scripts/setup installs them");
    }
    is_here
}

#[test]
fn pg_of_ruby() {
    if has_ruby() {
        names_its_lines("pg_program.rb");
    }
}

#[test]
fn active_record_is_no_line_of_the_program() {
    if has_ruby() {
        names_its_lines("active_record_program.rb");
    }
}

#[test]
fn jdbc() {
    names_its_lines("JdbcProgram.java");
}

#[test]
fn hibernate_on_hikari_is_no_line_of_the_program() {
    names_its_lines("HibernateProgram.java");
}

/// A compiled program wraps its driver (`bindings/go`).
#[test]
fn database_sql_of_go() {
    let built = tempfile::tempdir().unwrap();
    let program = built.path().join("program");
    let folder = directory().join("go");
    let mut build = Command::new("go");
    build.args(["build", "-buildvcs=false", "-o"]).arg(&program).arg(".").current_dir(&folder);
    let done = build.env("GOTOOLCHAIN", "local").output().expect("Go is there");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let report = |driver: &str, when: &str| -> Value {
        let file = built.path().join("report.json");
        let done = Command::new(env!("CARGO_BIN_EXE_onetrip"))
            .arg("run")
            .args(DISTANCE)
            .args(["--call-sites", when, "--format", "json", "-o", file.to_str().unwrap(), "--"])
            .arg(&program)
            .arg(driver)
            .current_dir(&folder)
            .envs(database())
            .output()
            .expect("onetrip runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
    };
    let text = std::fs::read_to_string(folder.join("main.go")).unwrap();
    let line = text.lines().position(|line| line.ends_with("// OT001")).unwrap() + 1;
    for driver in ["pq", "pgx"] {
        let (with, without) = (report(driver, "on"), report(driver, "off"));
        assert_eq!(counts(&with), counts(&without), "{driver}");
        let (named, unnamed) = (innermost(&with, "OT001"), innermost(&without, "OT001"));
        assert_eq!((named, unnamed.len()), (vec![format!("main.go:{line} in titles")], 0), "{driver}");
    }
}

const TYPED: &str = r#"
import sys
assert sys.modules["sitecustomize"].MINE == 7
import psycopg2
cursor = psycopg2.connect("").cursor()
cursor.execute("SELECT id FROM author ORDER BY id")
for (author,) in cursor.fetchall():
    cursor.execute("SELECT title FROM book WHERE author_id = %s", (author,))
"#;

#[test]
fn the_programs_own_sitecustomize_runs_as_well() {
    let own = tempfile::tempdir().unwrap();
    std::fs::write(own.path().join("sitecustomize.py"), "MINE = 7\n").unwrap();
    let path = [("PYTHONPATH", own.path().to_str().unwrap())];
    let done = run(&[], &["-c", TYPED], &path);
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
    assert!(said.contains("line   <string>:8"), "{said}");
}

#[test]
fn what_the_program_has_ruby_require_is_required_as_well() {
    if !has_ruby() {
        return;
    }
    let own = tempfile::tempdir().unwrap();
    let file = own.path().join("mine.rb");
    std::fs::write(&file, "MINE = 7\n").unwrap();
    let option = format!("-W0 -r{}", file.display());
    let typed = "exit 3 unless MINE == 7 && $VERBOSE.nil? && defined?(OnetripCallSites)";
    let words = ["ruby", "-e", typed].map(OsString::from);
    let done = run_words(&[], &words, &[("RUBYOPT", &option)]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// A JVM prints the variable's name if it is set, so `auto` does not set it.
#[test]
fn a_jvms_own_options_stay_and_auto_prints_nothing() {
    let words = ["java", "-XshowSettings:properties", "-version"].map(OsString::from);
    let said = |when: &str, words: &[OsString], variables: &[(&str, &str)]| {
        let done = run_words(&["--call-sites", when], words, variables);
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "{said}");
        said
    };
    assert!(!said("auto", &words, &[]).contains("Picked up"));
    let shell = ["sh", "-c", "java -XshowSettings:properties -version"].map(OsString::from);
    let said = said("on", &shell, &[("JAVA_TOOL_OPTIONS", "-Dmine=7")]);
    assert!(said.contains("Picked up JAVA_TOOL_OPTIONS: -agentpath:"), "{said}");
    assert!(said.contains("mine = 7"), "{said}");
}

/// A runtime whose options name half of a path would not start.
#[test]
fn a_directory_that_options_cannot_name_costs_only_the_lines() {
    let outer = tempfile::tempdir().unwrap();
    let inner = outer.path().join("of two words");
    std::fs::create_dir(&inner).unwrap();
    let shell = ["sh", "-c", "node -e 1 && java -version"].map(OsString::from);
    let done = run_words(&["--call-sites", "on"], &shell, &[("TMPDIR", inner.to_str().unwrap())]);
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
    assert!(said.contains("lines of the program are not known: options cannot hold the path"), "{said}");
}

/// Nobody listens there any more, or never did.
#[test]
fn a_program_whose_lines_nobody_asks_for_runs_as_without() {
    let hook = repository().join("tools/cli/src/call_sites");
    let ruby = format!("-r{}", hook.join("call_sites.rb").display());
    let agent = concat!("-agentpath:", env!("OUT_DIR"), "/jvm.so=1");
    let variables = [
        ("PYTHONPATH", hook.to_str().unwrap()),
        ("RUBYOPT", &ruby),
        ("JAVA_TOOL_OPTIONS", agent),
        ("ONETRIP_CALLS", "/nowhere/calls"),
    ];
    let programs = ["psycopg_program.py", "JdbcProgram.java", "pg_program.rb"];
    for program in programs.into_iter().filter(|program| !program.ends_with(".rb") || has_ruby()) {
        let done = run(&["--call-sites", "off"], &[program], &variables);
        assert!(done.status.success(), "{program}: {}", String::from_utf8_lossy(&done.stderr));
    }
}

#[test]
fn a_run_that_has_ended_leaves_no_file() {
    for program in ["psycopg_program.py", "pg_program.js", "JdbcProgram.java"] {
        let directory = tempfile::tempdir().unwrap();
        let here = directory.path().to_str().unwrap();
        let done = run(&["--call-sites", "on"], &[program], &[("TMPDIR", here)]);
        assert!(done.status.success(), "{program}: {}", String::from_utf8_lossy(&done.stderr));
        let left: Vec<_> = std::fs::read_dir(here).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(left.is_empty(), "{program}: {left:?}");
    }
}

#[test]
fn a_process_that_outlives_the_run_can_start_others() {
    const PATIENCE: Duration = Duration::from_secs(30);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ended");
    let begun = Instant::now();
    let done = run(&[], &["outliving_program.js", file.to_str().unwrap()], &[]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(!file.exists(), "the run has not waited for it");
    while !std::fs::read_to_string(&file).is_ok_and(|text| text.ends_with('\n')) {
        assert!(begun.elapsed() < PATIENCE, "it has not started another program");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "exit code 0\n");
}
