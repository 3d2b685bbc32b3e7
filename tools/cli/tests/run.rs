//! `onetrip run`, `gateway` and `report`, tried as a stranger would, with psql as the program.

mod common;
#[path = "run/inputs.rs"]
mod inputs;
#[path = "run/uncounted.rs"]
mod uncounted;
#[path = "run/verdicts.rs"]
mod verdicts;

use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use common::onetrip;
use onetrip_pgserver::PgServer;
use serde_json::Value;

const LOOP: &str = "SELECT id, name FROM authors ORDER BY id;
SELECT title FROM books WHERE author_id = 101; SELECT title FROM books WHERE author_id = 108;
SELECT title FROM books WHERE author_id = 115; SELECT title FROM books WHERE author_id = 122;";

const SCHEMA: &str = "CREATE TABLE IF NOT EXISTS authors (id int, name text);
CREATE TABLE IF NOT EXISTS books (author_id int, title text);
TRUNCATE authors; INSERT INTO authors SELECT 101 + 7 * n, 'a' FROM generate_series(0, 3) n;";

/// One server for all tests of this file.
static SERVER: LazyLock<(u16, std::sync::Mutex<PgServer>)> = LazyLock::new(|| {
    let server = PgServer::start(&[]);
    let port = server.at.port;
    let made = psql(Command::new("psql"), port).args(["-qc", SCHEMA]).output().expect("psql runs");
    assert!(made.status.success(), "{}", text(&made.stderr));
    // Statics are never dropped; the server stops when this process's end closes its input.
    (port, std::sync::Mutex::new(server))
});

fn psql(mut command: Command, port: u16) -> Command {
    command
        .env("PGHOST", "127.0.0.1")
        .env("PGPORT", port.to_string())
        .env("PGUSER", "onetrip")
        .env("PGPASSWORD", "onetrip-secret")
        .env("PGDATABASE", "postgres");
    command
}

/// `onetrip run OPTIONS -- sh -c SCRIPT` with the server in the PG* environment.
fn run(options: &[&str], script: &str) -> Output {
    let mut command = psql(onetrip(), SERVER.0);
    command.arg("run").args(options).args(["--", "sh", "-c", script]);
    command.stdin(Stdio::null()).output().expect("onetrip runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn json(options: &[&str], script: &str) -> Value {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("report.json");
    let path = file.to_str().unwrap();
    let done = run(&[options, &["--format", "json", "-o", path]].concat(), script);
    assert!(done.status.success(), "{}", text(&done.stderr));
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

fn psql_script(statements: &str) -> String {
    format!("psql -qAt <<'SQL'\n{statements}\nSQL")
}

#[test]
fn the_programs_output_passes_and_the_report_leads_with_its_sentence() {
    let done = run(&[], "psql -Atc 'SELECT 41 + 1'");
    assert_eq!(text(&done.stdout), "42\n");
    let report = text(&done.stderr);
    assert!(report.contains("5 round trips; nothing worth doing here."), "{report}");
    assert!(report.contains("PGPORT="), "{report}");
    assert!(!report.contains("onetrip-secret"), "{report}");
}

#[test]
fn a_loop_is_found_and_proven() {
    let report = json(&[], &psql_script(LOOP));
    let finding = &report["findings"][0];
    assert_eq!(finding["code"], "OT001");
    assert_eq!(finding["avoidable"], 3);
    assert_eq!(finding["evidence"]["parameters"][0]["column"], "id");
    assert_eq!(report["trips"]["work"], 5);
}

#[test]
fn the_exit_code_is_the_programs_and_ninety_only_when_that_is_zero() {
    let code = |options: &[&str], script: &str| run(options, script).status.code();
    assert_eq!(code(&[], "exit 7"), Some(7));
    assert_eq!(code(&[], "kill -TERM $$"), Some(128 + 15));
    assert_eq!(code(&["--budget", "trips=0"], "psql -qAtc 'SELECT 1'"), Some(90));
    assert_eq!(code(&["--budget", "trips=5"], "psql -qAtc 'SELECT 1'"), Some(0));
    assert_eq!(code(&["--budget", "trips=0"], "psql -qAtc 'SELECT 1'; exit 7"), Some(7));
    assert_eq!(code(&["--fail-on", "OT001"], &psql_script(LOOP)), Some(90));
    assert_eq!(code(&["--fail-on", "OT002"], &psql_script(LOOP)), Some(0));
    let missing = psql(onetrip(), SERVER.0).args(["run", "--", "/no/such/program"]).output().unwrap();
    assert_eq!(missing.status.code(), Some(127));
    assert!(text(&missing.stderr).contains("not found"), "{}", text(&missing.stderr));
}

#[test]
fn budgets_hold_per_scope_and_junit_tells_which_broke() {
    let directory = tempfile::tempdir().unwrap();
    let budgets = directory.path().join("budgets.toml");
    std::fs::write(
        &budgets,
        "[budget]\ntrips = 100\n[scope.import]\ntrips = 2\n[scope.\"GET /\"]\ntrips = 1\n",
    )
    .unwrap();
    let script = psql_script(
        "SET onetrip.scope = 'import';
         SELECT 1; SELECT 2; SELECT 3;
         SELECT 4 /* route='GET%20%2F' */;",
    );
    let done = run(&["--budget-file", budgets.to_str().unwrap(), "--format", "junit"], &script);
    assert_eq!(done.status.code(), Some(90), "{}", text(&done.stderr));
    let xml = text(&done.stderr);
    let xml = &xml[xml.find("<?xml").unwrap()..];
    assert_eq!(xml.matches("<testcase").count(), 3, "{xml}");
    assert_eq!(xml.matches("<failure").count(), 1, "{xml}");
    assert!(xml.contains("import"), "{xml}");
}

#[test]
fn a_program_that_goes_elsewhere_is_noticed() {
    let done = run(&[], "true");
    let report = text(&done.stderr);
    assert!(report.contains("No connection reached the gateway"), "{report}");
    assert!(report.contains("--env") && report.contains("onetrip gateway"), "{report}");
}

#[test]
fn urls_in_the_environment_are_pointed_at_the_gateway() {
    let url = format!("postgresql://onetrip:onetrip-secret@127.0.0.1:{}/postgres", SERVER.0);
    let jdbc = format!("jdbc:postgresql://127.0.0.1:{}/postgres?user=onetrip", SERVER.0);
    let mut command = onetrip();
    command.env("DATABASE_URL", &url).env("SPRING_URL", &jdbc);
    command.args([
        "run",
        "--env",
        "SPRING_URL",
        "--",
        "sh",
        "-c",
        "psql -qAtc 'SELECT 1' $DATABASE_URL; echo $SPRING_URL",
    ]);
    let done = command.output().unwrap();
    let (output, report) = (text(&done.stdout), text(&done.stderr));
    assert!(output.starts_with("1\njdbc:postgresql://127.0.0.1:"), "{output}{report}");
    assert!(!output.contains(&format!(":{}/", SERVER.0)), "{output}");
    assert!(report.contains("5 round trips"), "{report}");
    assert!(!report.contains("onetrip-secret"), "{report}");
}

#[test]
fn the_program_needs_no_dashes_and_keeps_its_own() {
    let words = |arguments: &[&str]| {
        let mut command = psql(onetrip(), SERVER.0);
        let done = command.args(["run", "--settle", "1ms"]).args(arguments).output().unwrap();
        assert!(done.status.success(), "{}", text(&done.stderr));
        text(&done.stdout)
    };
    let show = ["sh", "-c", r#"printf '%s|' "$@""#];
    assert_eq!(
        words(&[&show[..], &["name", "--budget", "trips=0", "--", "-x", "--help"]].concat()),
        "--budget|trips=0|--|-x|--help|"
    );
    assert_eq!(words(&[&["--"], &show[..], &["name", "--", "-x"]].concat()), "--|-x|");
    let unknown = psql(onetrip(), SERVER.0).args(["run", "--no-such-flag", "true"]).output().unwrap();
    assert_eq!(unknown.status.code(), Some(125));
    assert!(text(&unknown.stderr).contains("--no-such-flag"), "{}", text(&unknown.stderr));
}

#[test]
fn variables_of_any_name_are_pointed_at_the_gateway_and_listed_in_the_report() {
    let port = SERVER.0.to_string();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut command = onetrip();
    command
        .env("SHOP_DB", format!("Host=127.0.0.1;Port={port};Username=onetrip;Password=onetrip-secret"))
        .env("POSTGRES_HOST", "localhost")
        .env("POSTGRES_PORT", &port)
        .env("CACHE_URL", format!("http://127.0.0.1:{port}/"))
        .env("PGPASSWORD", "onetrip-secret")
        .args(["run", "--listen", &free.to_string(), "sh", "-c"])
        .arg(r#"psql -qAtc 'SELECT 1' -h "$POSTGRES_HOST" -p "$POSTGRES_PORT" -U onetrip postgres; echo "$SHOP_DB" "$CACHE_URL""#);
    let done = command.output().unwrap();
    let (output, report) = (text(&done.stdout), text(&done.stderr));
    let gateway = free.port();
    assert_eq!(
        output,
        format!(
            "1\nHost=127.0.0.1;Port={gateway};Username=onetrip;Password=onetrip-secret http://127.0.0.1:{port}/\n"
        ),
        "{report}"
    );
    assert!(report.contains("5 round trips"), "{report}");
    assert!(
        report.contains("SHOP_DB, POSTGRES_HOST, POSTGRES_PORT") && report.contains("pointed at the gateway"),
        "{report}"
    );
    assert!(!report.contains("onetrip-secret"), "{report}");
}

#[test]
fn a_trace_reports_the_same_and_two_compare() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (bad, good) = (path("bad.trace"), path("good.trace"));
    let live = json(&["--trace", &bad], &psql_script(LOOP));
    json(&["--trace", &good], &psql_script("SELECT id, name FROM authors ORDER BY id;"));
    let report = |arguments: &[&str]| onetrip().arg("report").args(arguments).output().unwrap();
    let later: Value = serde_json::from_slice(&report(&[&bad, "--format", "json"]).stdout).unwrap();
    for part in ["trips", "findings", "templates", "times", "rows"] {
        assert_eq!(later[part], live[part], "{part}");
    }
    let better = text(&report(&[&good, "--compare", &bad]).stdout);
    assert!(better.contains("Better: trips") && better.contains("OT001"), "{better}");
    let raw = std::fs::read(&bad).unwrap();
    assert!(!raw.windows(3).any(|window| window == b"115"), "a value is in the trace");
}

#[test]
fn interrupting_a_run_still_prints_the_report() {
    let mut command = psql(onetrip(), SERVER.0);
    command.args([
        "run",
        "--",
        "sh",
        "-c",
        "trap 'exit 3' INT TERM; psql -qAtc 'SELECT 1'; echo ready; sleep 30 >/dev/null 2>&1 & wait",
    ]);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let started = Instant::now();
    std::thread::sleep(Duration::from_secs(3));
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(3), "{}", text(&done.stderr));
    assert!(text(&done.stderr).contains("5 round trips"), "{}", text(&done.stderr));
    assert!(started.elapsed() < Duration::from_secs(20));
}

#[test]
fn where_nothing_names_a_database_that_is_said() {
    let said = |variables: &[(&str, &str)]| {
        let done = onetrip().args(["run", "true"]).envs(variables.iter().copied()).output().unwrap();
        text(&done.stderr)
    };
    let default = "nothing names a database, so libpq's default is used";
    assert!(said(&[]).contains(default), "{}", said(&[]));
    for named in [("PGHOST", "127.0.0.1"), ("SHOP", "postgres://127.0.0.1:1/shop")] {
        assert!(!said(&[named]).contains(default), "{}", said(&[named]));
    }
    let pair = [("DB_HOST", "127.0.0.1"), ("DB_PORT", "5432")];
    assert!(!said(&pair).contains(default), "{}", said(&pair));
}

#[test]
fn wrong_flags_and_files_say_what_to_do() {
    let refused = |arguments: &[&str]| {
        let done = psql(onetrip(), SERVER.0).args(arguments).output().unwrap();
        assert!(!done.status.success(), "{arguments:?}");
        text(&done.stderr)
    };
    assert!(refused(&["run", "--budget", "speed=1", "--", "true"]).contains("write trips=200"));
    assert!(refused(&["run", "--fail-on", "OT999", "--", "true"]).contains("OT001 to OT016"));
    assert!(refused(&["run", "--env", "NO_SUCH", "--", "true"]).contains("NO_SUCH"));
    assert!(refused(&["run", "--upstream", "redis://db/shop", "--", "true"]).contains("redis"));
    assert!(refused(&["run", "--trace", "/no/such/dir/t", "--", "true"]).contains("/no/such/dir/t"));
    assert!(refused(&["report", "/etc/hostname"]).contains("is not a onetrip trace"));
    assert!(refused(&["report", "/no/such/file"]).contains("No such file"));
    assert!(refused(&["gateway", "--listen", "nowhere"]).contains("HOST:PORT"));
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    assert!(refused(&["gateway", "--listen", &address]).contains("something listens there already"));
}

#[test]
fn a_test_runner_names_the_scope_and_reads_the_counts() {
    let script = r#"python3 - <<'END'
import json, os, socket, subprocess
control = socket.socket(socket.AF_UNIX)
control.connect(os.environ["ONETRIP_CONTROL"])
lines = control.makefile("rw")
def ask(line):
    lines.write(line + "\n")
    lines.flush()
    return json.loads(lines.readline())
assert ask("counts")["connections"] == 0
before = ask("scope tests/test_a.py::test_it [1]")
subprocess.run(["psql", "-qAtc", "SELECT 1", "-c", "SELECT 2"], check=True)
after = ask("scope")
assert (after["trips"] - before["trips"], after["statements"], after["connections"]) == (2, 2, 1), after
assert "error" in ask("nonsense")
lines.write("x" * 5000)
try:
    lines.flush()
    assert lines.readline() == ""
except ConnectionError:
    pass
END"#;
    let report = json(&[], script);
    let scope = &report["scopes"][0];
    assert_eq!(
        (scope["label"].as_str(), scope["trips"].as_u64()),
        (Some("tests/test_a.py::test_it [1]"), Some(2))
    );
}
