//! Large objects as psycopg2 and pgjdbc read them, with `--remedies exact` and each `--lob-prefetch`: trips.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use onetrip_pgserver::{PgServer, repository};
use serde_json::Value;

/// Objects of 4000 bytes that a program reads in one transaction.
const OBJECTS: u64 = 100;
/// Trips beside those of objects: to connect, to begin and end, and until the session knows the program's manner.
/// That takes longer on a busy machine; what is asked is less than one more for each.
const OTHERS: u64 = 90;

/// Reads the objects that a statement delivers, after another statement; arguments: level, both texts.
const PSYCOPG2: &str = r#"
import sys
import psycopg2
level, before, text = sys.argv[1:]
connection = psycopg2.connect("")
connection.set_session(isolation_level=level)
with connection.cursor() as cursor:
    if before:
        cursor.execute(before)
    cursor.execute(text)
    for (oid,) in cursor.fetchall():
        large = connection.lobject(oid, "rb")
        assert len(large.read()) == 4000
        large.close()
connection.commit()
"#;

const TEXT: &str = "SELECT object FROM lob ORDER BY id LIMIT 100";

/// A server with the table `lob`.
fn server(version: &str) -> PgServer {
    let objects = repository().join("clients/story/lobs.sql");
    PgServer::start(&["--version", version, "--load", &objects.to_string_lossy()])
}

/// Runs a program through `onetrip run`, 12 ms away, and gives the trips of the report.
fn trips<I: AsRef<OsStr>>(
    server: &PgServer,
    options: &[&str],
    environment: &[(&str, &str)],
    program: &[I],
) -> Value {
    let directory = tempfile::tempdir().expect("a directory");
    let report = directory.path().join("report.json");
    let done = Command::new(env!("CARGO_BIN_EXE_onetrip"))
        .args(["run", "--rtt", "12ms", "--remedies", "exact", "--format", "json", "-o"])
        .arg(&report)
        .args(options)
        .arg("--")
        .args(program)
        .current_dir(repository())
        .envs([("PGHOST", "127.0.0.1"), ("PGDATABASE", "postgres"), ("PGPORT", &server.at.port.to_string())])
        .envs([("PGUSER", &server.at.user), ("PGPASSWORD", &server.at.password)])
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .output()
        .expect("onetrip runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let report = std::fs::read_to_string(report).expect("the report is there");
    serde_json::from_str::<Value>(&report).expect("it is JSON")["trips"].take()
}

fn psycopg2(server: &PgServer, options: &[&str], options_of_libpq: &str, arguments: [&str; 3]) -> Value {
    let python = repository().join(".venv/bin/python");
    let program: Vec<&OsStr> = [python.as_os_str(), "-c".as_ref(), PSYCOPG2.as_ref()]
        .into_iter()
        .chain(arguments.map(OsStr::new))
        .collect();
    trips(server, options, &[("PGOPTIONS", options_of_libpq)], &program)
}

/// So many trips for each object.
fn assert_each(trips: &Value, each: u64, what: &str) {
    let total = trips["total"].as_u64().unwrap_or_default();
    assert!(
        (each * OBJECTS..=each * OBJECTS + OTHERS).contains(&total),
        "{what}: {total} trips, not {each} each"
    );
}

fn psycopg2_takes_what_the_policy_says(server: &PgServer) {
    const COMMITTED: &str = "READ COMMITTED";
    const REPEATABLE: &str = "REPEATABLE READ";
    // Six calls each: lo_open, lo_tell64, lo_lseek64 to the end and back, loread, lo_close. Where it stands is known
    // without reading ahead, and lo_close is answered and sent along.
    for (level, option, each) in [
        (COMMITTED, "--lob-prefetch=auto", 1),
        (COMMITTED, "--lob-prefetch=-1", 3),
        (COMMITTED, "--lob-prefetch=0", 2),
        (COMMITTED, "--lob-prefetch=1000", 2),
        (COMMITTED, "--lob-prefetch=8000", 1),
        (COMMITTED, "--lob-prefetch=lob.object=0", 2),
        (REPEATABLE, "--lob-prefetch=auto", 0),
        (REPEATABLE, "--lob-prefetch=-1", 3),
        (REPEATABLE, "--lob-prefetch=0", 1),
        (REPEATABLE, "--lob-prefetch=8000", 0),
        (REPEATABLE, "--verify=1/2", 0),
    ] {
        let trips = psycopg2(server, &[option], "", [level, "", TEXT]);
        assert_each(&trips, each, &format!("{level}, {option}"));
        if option.starts_with("--verify") {
            // Of what was read ahead, that is; how much that is depends on how slow the first objects seemed.
            let verified = trips["verified"].as_u64().unwrap_or_default();
            assert!((OBJECTS / 4..=OBJECTS / 2).contains(&verified) && trips["differed"] == 0, "{trips}");
        }
    }
    // The connection, the statement: each against what is wider.
    let commented = format!("{TEXT} /* onetrip.lob_prefetch=-1 */");
    for (libpq, before, text, each) in [
        ("-c onetrip.lob_prefetch=-1", "", TEXT, 3),
        ("", "SET LOCAL onetrip.lob_prefetch = -1", TEXT, 3),
        ("-c onetrip.lob_prefetch=-1", "SET onetrip.lob_prefetch = 0", TEXT, 2),
        ("-c onetrip.lob_prefetch=0", "", &commented, 3),
    ] {
        let trips = psycopg2(server, &[], libpq, [COMMITTED, before, text]);
        assert_each(&trips, each, &format!("{libpq} {before} {text}"));
    }
}

#[test]
fn psycopg2_takes_what_the_policy_says_on_postgresql_15() {
    psycopg2_takes_what_the_policy_says(&server("15"));
}

#[test]
fn psycopg2_takes_what_the_policy_says_on_postgresql_18() {
    psycopg2_takes_what_the_policy_says(&server("18"));
}

fn a_column_says_it_by_its_comment_and_under_another_name(server: &PgServer) {
    const COMMITTED: &str = "READ COMMITTED";
    let comment = "COMMENT ON COLUMN lob.object IS 'what the camera took; onetrip.lob_prefetch=-1'";
    let renamed = TEXT.replace("object", "object AS picture");
    let ordered = renamed.replace("lob ORDER", "(SELECT * FROM lob) AS l ORDER");
    let trips = psycopg2(server, &["--lob-prefetch=lob.object=0"], "", [COMMITTED, "", &renamed]);
    assert_each(&trips, 2, "renamed");
    psycopg2(server, &[], "", [COMMITTED, comment, TEXT]);
    for text in [TEXT, &renamed, &ordered] {
        let trips = psycopg2(server, &[], "", [COMMITTED, "", text]);
        assert_each(&trips, 3, &format!("a comment, and {text}"));
    }
    let trips = psycopg2(server, &["--lob-prefetch=lob.object=8000"], "", [COMMITTED, "", TEXT]);
    assert_each(&trips, 1, "what the gateway is told of the column counts");
}

#[test]
fn a_column_says_it_by_its_comment_and_under_another_name_on_postgresql_15() {
    a_column_says_it_by_its_comment_and_under_another_name(&server("15"));
}

#[test]
fn a_column_says_it_by_its_comment_and_under_another_name_on_postgresql_18() {
    a_column_says_it_by_its_comment_and_under_another_name(&server("18"));
}

#[test]
fn pgjdbc_takes_what_the_policy_says() {
    let server = server("15");
    let objects = OBJECTS.to_string();
    // Three calls each: lo_open, loread, lo_close.
    for (level, option, each) in [
        ("committed", "--lob-prefetch=auto", 1),
        ("committed", "--lob-prefetch=-1", 2),
        ("committed", "--lob-prefetch=lob.object=8000", 1),
        ("repeatable", "--lob-prefetch=auto", 0),
        ("repeatable", "--lob-prefetch=0", 1),
    ] {
        let program = [
            "java",
            "-cp",
            "clients/java/target/lib/*",
            "clients/story/Lobs.java",
            "object",
            level,
            &objects,
        ];
        assert_each(&trips(&server, &[option], &[], &program), each, &format!("{level}, {option}"));
    }
}

#[test]
fn a_policy_that_is_none_is_told_in_words() {
    for (policy, words) in [
        ("-2", "\"-2\" is neither -1 (nothing comes along), 0 (the length)"),
        ("photo=0", "\"photo\" names no column; write TABLE.COLUMN=N"),
        ("lob.object=lots", "\"lots\" is neither -1"),
    ] {
        let done = Command::new(env!("CARGO_BIN_EXE_onetrip"))
            .args(["gateway", "--lob-prefetch", policy])
            .output()
            .expect("onetrip runs");
        let told = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.code() == Some(125) && told.contains(words), "{told}");
    }
}
