//! Verdicts that must not come about by accident, and what a gateway says and does when it ends.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::process::Child;

use super::*;

const ONE: &str = "psql -qAtc 'SELECT 1'";

/// Exit code and standard error.
fn judged(options: &[&str], script: &str) -> (Option<i32>, String) {
    let done = run(options, script);
    (done.status.code(), text(&done.stderr))
}

/// `onetrip report` on a trace.
fn reported(trace: &Path, options: &[&str]) -> (Option<i32>, String, String) {
    let done = onetrip().arg("report").arg(trace).args(options).output().unwrap();
    (done.status.code(), text(&done.stdout), text(&done.stderr))
}

#[test]
fn a_run_that_never_reached_the_gateway_keeps_no_budget() {
    for rule in [&["--budget", "trips=1000"][..], &["--fail-on", "OT001"]] {
        let (code, said) = judged(rule, "true");
        assert_eq!(code, Some(91), "{said}");
        assert!(said.contains("Could not be judged. No connection reached the gateway."), "{said}");
        let (code, said) = judged(&[rule, &["--allow-no-connections"]].concat(), "true");
        assert_eq!(code, Some(0), "{said}");
    }
    let (code, said) = judged(&["--budget", "trips=1000", "--format", "junit"], "true");
    assert_eq!((code, said.matches("<error").count(), said.matches("<failure").count()), (Some(91), 1, 0));
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("report.txt");
    let (code, said) = judged(&["--budget", "trips=1000", "-o", file.to_str().unwrap()], "true");
    assert_eq!(code, Some(91), "{said}");
    assert!(said.contains("no connection reached the gateway"), "it is on standard error, too: {said}");
}

#[test]
fn a_run_whose_sessions_were_all_refused_says_why_in_the_servers_words() {
    let (code, said) = judged(&["--budget", "trips=1000"], "PGPASSWORD=wrong psql -qAtc 'SELECT 1' || true");
    assert_eq!(code, Some(91), "{said}");
    assert!(said.contains("password authentication failed") && said.contains("28P01"), "{said}");
    assert!(!said.contains("nothing worth doing"), "{said}");
    let (code, said) = judged(&[], "psql -qAtc 'SELECT 1 FROM nowhere'");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("42P01") && !said.contains("nothing worth doing"), "{said}");
}

#[test]
fn a_misspelt_scope_keeps_no_budget_and_is_told_the_nearest_one() {
    let directory = tempfile::tempdir().unwrap();
    let budgets = directory.path().join("budgets.toml");
    fs::write(&budgets, "[scope.improt]\ntrips = 100\n").unwrap();
    let options = ["--budget-file", budgets.to_str().unwrap()];
    let script = psql_script("SET onetrip.scope = 'import'; SELECT 1;");
    let (code, said) = judged(&options, &script);
    assert_eq!(code, Some(91), "{said}");
    assert!(said.contains("did you mean \"import\"?"), "{said}");
    assert_eq!(judged(&[&options[..], &["--allow-missing-scopes"]].concat(), &script).0, Some(0));
    let (code, said) = judged(&["--budget", "work-trip=3"], ONE);
    assert_eq!(code, Some(125));
    assert!(said.contains("did you mean work-trips?"), "{said}");
}

#[test]
fn a_broken_budget_is_one_line_on_standard_error_also_with_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("report.json");
    let options = ["--budget", "work-trips=0", "--format", "json", "-o", file.to_str().unwrap()];
    let (code, said) = judged(&options, ONE);
    assert_eq!(code, Some(90), "{said}");
    let lines: Vec<_> = said.lines().filter(|line| line.contains("0 allowed")).collect();
    assert_eq!(lines.len(), 1, "{said}");
    let report: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(report["ruling"], "failed");
}

#[test]
fn a_trace_that_is_cut_damaged_or_without_an_end_keeps_no_budget() {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("run.trace");
    let (code, said) = judged(&["--trace", trace.to_str().unwrap()], &psql_script(LOOP));
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(fs::metadata(&trace).unwrap().permissions().mode() & 0o777, 0o600);
    let budget = &["--budget", "trips=1000"][..];
    assert_eq!(reported(&trace, budget).0, Some(0));

    let whole = fs::read(&trace).unwrap();
    let other = directory.path().join("other.trace");
    // The end mark is the last block: twelve bytes of header and five of record.
    fs::write(&other, &whole[..whole.len() - 17]).unwrap();
    let (code, said, _) = reported(&other, budget);
    assert_eq!(code, Some(91), "{said}");
    assert!(said.contains("the trace has no end"), "{said}");
    assert_eq!(reported(&other, &["--budget", "trips=1000", "--allow-open"]).0, Some(0));
    // A limit that is broken by what is there is broken.
    assert_eq!(reported(&other, &["--budget", "work-trips=1"]).0, Some(90));

    let mut damaged = whole.clone();
    let place = damaged.len() / 2;
    damaged[place] ^= 0xff;
    fs::write(&other, &damaged).unwrap();
    let (code, said, _) = reported(&other, budget);
    assert_eq!(code, Some(91), "{said}");
    assert!(said.contains("damaged"), "{said}");
    // The one session is in the block that is left out.
    let allowed = |kin: &[&str]| reported(&other, &[budget, kin].concat()).0;
    assert_eq!(allowed(&["--allow-no-connections"]), Some(91));
    assert_eq!(allowed(&["--allow-no-connections", "--allow-loss"]), Some(0));
}

#[test]
fn a_run_whose_trace_is_not_whole_keeps_no_budget_unless_that_is_allowed() {
    let directory = tempfile::tempdir().unwrap();
    // Each is open for both, as an end alone would wait for the other; nobody reads it.
    let pipe = |name: &str| {
        let pipe = directory.path().join(name);
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let ends = fs::OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
        (pipe.to_str().unwrap().to_owned(), ends)
    };
    // More than a pipe holds, and no two alike.
    let script = "x=$(printf '%04000d' 0); \
        for number in $(seq 60); do echo \"SELECT 1 AS \\\"c${number}_$x\\\";\"; done | psql -qAt";
    let (path, _ends) = pipe("first");
    let (code, said) = judged(&["--trace", &path, "--budget", "trips=1000"], script);
    assert_eq!(code, Some(91), "{said}");
    assert!(said.contains("the trace does not hold the whole run"), "{said}");
    let (path, _ends) = pipe("second");
    let (code, said) = judged(&["--trace", &path, "--budget", "trips=1000", "--allow-loss"], script);
    assert_eq!(code, Some(0), "{said}");
    // What was seen breaks a limit all the same.
    let (path, _ends) = pipe("third");
    assert_eq!(judged(&["--trace", &path, "--budget", "work-trips=1", "--allow-loss"], script).0, Some(90));
}

#[test]
fn a_trace_replaces_nothing_but_a_trace() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("app.py");
    fs::write(&file, "import shop\n").unwrap();
    let link = directory.path().join("link.trace");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    for path in [&file, &link] {
        let (code, said) = judged(&["--trace", path.to_str().unwrap()], "touch ran");
        assert_eq!(code, Some(125), "{said}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "import shop\n");
    }
}

#[test]
fn growth_and_snapshots_are_judged() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (base, lock) = (path("base.json"), path("trips.lock"));
    assert_eq!(judged(&["--format", "json", "-o", &base], ONE).0, Some(0));
    let growth = ["--compare", base.as_str(), "--max-increase", "5%"];
    assert_eq!(judged(&growth, ONE).0, Some(0));
    let (code, said) = judged(&growth, &psql_script(LOOP));
    assert_eq!(code, Some(90), "{said}");

    let snapshot = format!("--snapshot={lock}");
    let (code, said) = judged(&[&snapshot], ONE);
    assert_eq!(code, Some(125), "{said}");
    assert!(said.contains("--update"), "{said}");
    // Neither a program that failed nor one that was not seen is what is expected.
    assert_eq!(judged(&[&snapshot, "--update"], "psql -qAtc 'SELECT 1'; exit 3").0, Some(3));
    assert_eq!(judged(&[&snapshot, "--update"], "true").0, Some(91));
    assert!(!Path::new(&lock).exists());
    assert_eq!(judged(&[&snapshot, "--update"], ONE).0, Some(0));
    assert_eq!(judged(&[&snapshot], ONE).0, Some(0));
    let (code, said) = judged(&[&snapshot], "psql -qAt -c 'SELECT 1' -c 'SELECT 2'");
    assert_eq!(code, Some(90), "{said}");
    assert_eq!(judged(&[&snapshot], "true").0, Some(91));
}

#[test]
fn secrets_in_the_programs_arguments_are_in_no_report() {
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("run.html");
    for format in ["text", "json", "markdown", "junit"] {
        let mut command = psql(onetrip(), SERVER.0);
        command.args(["run", "--format", format, "--html", page.to_str().unwrap(), "--", "true"]);
        command.args(["--password=hunter2", "postgres://ann:hunter2@db/shop", "--api-token", "hunter2"]);
        command.args([
            "--password",
            "-hunter2",
            "curl https://example.org; psql postgres://ann:hunter2@db/x",
        ]);
        let done = command.output().unwrap();
        assert!(!text(&done.stderr).contains("hunter2"), "{}", text(&done.stderr));
        let page = fs::read_to_string(&page).unwrap();
        assert!(page.contains("example.org") && !page.contains("hunter2"), "{format}");
    }
}

#[test]
fn the_control_socket_is_its_owners_and_a_silent_client_holds_nobody_up() {
    let script = r#"umask 000; python3 - <<'END'
import os, socket
path = os.environ["ONETRIP_CONTROL"]
assert os.stat(os.path.dirname(path)).st_mode & 0o777 == 0o700
silent = socket.socket(socket.AF_UNIX); silent.connect(path); silent.send(b"cou")
other = socket.socket(socket.AF_UNIX); other.settimeout(30); other.connect(path)
other.send(b"counts\n")
assert b"trips" in other.recv(1000)
silent.send(b"nts\n"); silent.settimeout(30) # it was not given up before the other was answered
assert b"trips" in silent.recv(1000)
END"#;
    let (code, said) = judged(&[], script);
    assert_eq!(code, Some(0), "{said}");
}

/// `onetrip gateway` and the address at which it listens.
fn gateway(options: &[&str]) -> (Child, String, BufReader<std::process::ChildStderr>) {
    let mut command = psql(onetrip(), SERVER.0);
    command.args(["gateway", "--listen", "127.0.0.1:0"]).args(options);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    let port = loop {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0, "it ends before it listens");
        if let Some(at) = line.find("127.0.0.1:") {
            break line[at + 10..].chars().take_while(char::is_ascii_digit).collect();
        }
    };
    (child, port, lines)
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([format!("-{name}"), child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// Waits until it comes true, however busy the machine is.
#[track_caller]
fn wait_until(what: &str, is_true: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_true() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Whether the server is busy with a statement of which this is a part.
fn is_running(part: &str) -> bool {
    let question = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%{part}%' AND pid <> pg_backend_pid()"
    );
    let done = psql(Command::new("psql"), SERVER.0).args(["-qAtc", &question]).output().unwrap();
    text(&done.stdout).trim().parse::<u32>().is_ok_and(|count| count > 0)
}

#[test]
fn a_hangup_changes_nothing_and_a_stop_lets_statements_end() {
    let (child, port, _lines) = gateway(&["--drain", "20s"]);
    let client = |statement: &str| {
        let mut command = psql(Command::new("psql"), port.parse().unwrap());
        command.args(["-qAtc", statement]).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    signal(&child, "HUP");
    assert!(client("SELECT 1").wait_with_output().unwrap().status.success());
    let slow = client("SELECT pg_sleep(2.25), 'answered'");
    wait_until("the statement runs", || is_running("pg_sleep(2.25)"));
    signal(&child, "TERM");
    let answer = slow.wait_with_output().unwrap();
    assert_eq!(text(&answer.stdout), "|answered\n", "{}", text(&answer.stderr));
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(0));
    assert!(text(&done.stdout).contains("round trips"), "{}", text(&done.stdout));
}

#[test]
fn a_second_signal_ends_at_once_and_who_waits_is_told_why() {
    let (child, port, _lines) = gateway(&["--drain", "600s"]);
    let mut client = psql(Command::new("psql"), port.parse().unwrap());
    client.args(["-qAtc", "SELECT pg_sleep(600.25)"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let client = client.spawn().unwrap();
    wait_until("the statement runs", || is_running("pg_sleep(600.25)"));
    signal(&child, "TERM");
    // Two signals that come before the first is heeded are one.
    let address = format!("127.0.0.1:{port}");
    wait_until("nobody is let in", || std::net::TcpStream::connect(&address).is_err());
    signal(&child, "TERM");
    let told = client.wait_with_output().unwrap();
    assert!(
        text(&told.stderr).contains("terminating connection due to administrator command"),
        "{}",
        text(&told.stderr)
    );
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
}

/// A terminal and a supervisor may both stop it.
#[test]
fn a_second_signal_does_not_take_the_report() {
    for delay in [0, 5, 20, 60, 120] {
        let (child, port, _lines) = gateway(&[]);
        let client =
            psql(Command::new("psql"), port.parse().unwrap()).args(["-qAtc", "SELECT 1"]).output().unwrap();
        assert!(client.status.success());
        signal(&child, "TERM");
        std::thread::sleep(Duration::from_millis(delay));
        signal(&child, "TERM");
        let done = child.wait_with_output().unwrap();
        assert_eq!(done.status.code(), Some(0), "after {delay} ms");
        assert!(text(&done.stdout).contains("round trips"), "after {delay} ms: {}", text(&done.stdout));
    }
}

#[test]
fn what_runs_longer_than_the_drain_is_ended_and_told_why() {
    let (child, port, _lines) = gateway(&["--drain", "1s"]);
    let mut client = psql(Command::new("psql"), port.parse().unwrap());
    client.args(["-qAtc", "SELECT pg_sleep(600.75)"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let client = client.spawn().unwrap();
    wait_until("the statement runs", || is_running("pg_sleep(600.75)"));
    let begun = Instant::now();
    signal(&child, "TERM");
    let told = client.wait_with_output().unwrap();
    assert!(begun.elapsed() >= Duration::from_secs(1), "{:?}", begun.elapsed());
    let told = text(&told.stderr);
    assert!(told.contains("terminating connection due to administrator command"), "{told}");
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
}

/// What `onetrip gateway` says until it listens.
fn said_at_the_start(options: &[&str]) -> String {
    let mut command = psql(onetrip(), SERVER.0);
    let mut child =
        command.arg("gateway").args(options).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    for line in lines.lines() {
        let line = line.unwrap();
        said.push_str(&line);
        if line.contains("listening at") {
            break;
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    said
}

#[test]
fn what_others_may_see_is_told_at_the_start() {
    let upstream = |login: &str| format!("postgres://{login}@127.0.0.1:{}/postgres", SERVER.0);
    let (with_password, without) = (upstream("me:secret"), upstream("me"));
    let start =
        |listen: &str, upstream: &str| said_at_the_start(&["--listen", listen, "--upstream", upstream]);
    let said = start("0.0.0.0:0", &with_password);
    assert!(said.contains("is not encrypted"), "{said}");
    assert!(said.contains("other users can see the password in --upstream"), "{said}");
    assert!(!said.contains("secret"), "{said}");
    let said = start("127.0.0.1:0", &without);
    assert!(said.contains("listening at") && !said.contains("warning"), "{said}");
}

#[test]
fn a_full_standard_error_delays_neither_clients_nor_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("door");
    let pipe = directory.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let _reader = fs::OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
    let mut command = psql(onetrip(), SERVER.0);
    command.arg("gateway").arg("--listen").arg(&socket).stdout(Stdio::null());
    let mut child = command.stderr(fs::OpenOptions::new().write(true).open(&pipe).unwrap()).spawn().unwrap();
    wait_until("it listens", || std::os::unix::net::UnixStream::connect(&socket).is_ok());
    // Only this end does not block.
    let mut full = fs::OpenOptions::new().write(true).custom_flags(0o4000).open(&pipe).unwrap();
    while full.write(&[b'x'; 1024]).is_ok() {}
    let connect = || {
        let client = std::os::unix::net::UnixStream::connect(&socket).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        client
    };
    for _ in 0..20 {
        let mut stranger = connect();
        stranger.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        stranger.read_to_end(&mut Vec::new()).expect("the stranger is let go");
    }
    let mut client = connect();
    client.write_all(b"\0\0\0\x08\x04\xd2\x16\x2f").unwrap();
    let mut answer = [0];
    client.read_exact(&mut answer).expect("the request for TLS is answered");
    let begun = Instant::now();
    signal(&child, "TERM");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
}

#[test]
fn sessions_that_were_all_refused_have_no_curve() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (trace, chart) = (path("refused.trace"), path("cost.svg"));
    let script = "PGPASSWORD=wrong psql -qAtc 'SELECT 1' || true";
    assert_eq!(judged(&["--trace", &trace, "--chart", &chart], script).0, Some(0));
    let done = onetrip().args(["forecast", &trace, "--chart", &chart]).output().unwrap();
    assert!(text(&done.stderr).contains("there is nothing to draw"), "{}", text(&done.stderr));
    assert!(!Path::new(&chart).exists());
}

#[test]
fn settings_that_the_gateway_does_not_keep_are_refused_by_name() {
    for (setting, word) in [
        ("target_session_attrs=read-only", "target_session_attrs"),
        ("channel_binding=require", "channel_binding"),
        ("require_auth=scram-sha-256", "require_auth"),
        ("sslmod=require", "did you mean sslmode?"),
    ] {
        let url = format!("postgres://onetrip@127.0.0.1:{}/postgres?{setting}", SERVER.0);
        let done =
            onetrip().args(["gateway", "--listen", "127.0.0.1:0", "--upstream", &url]).output().unwrap();
        assert_eq!(done.status.code(), Some(125), "{}", text(&done.stderr));
        assert!(text(&done.stderr).contains(word), "{}", text(&done.stderr));
    }
}

#[test]
fn strangers_at_the_port_do_not_hide_what_is_told_after_them() {
    let (mut child, port, mut lines) = gateway(&["--upstream", "postgres://u@127.0.0.1:1/d"]);
    for _ in 0..25 {
        let mut stranger = std::net::TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
        stranger.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        // Its end: the gateway has told of it by then, or left it out.
        let _ = stranger.read_to_end(&mut Vec::new());
    }
    let done = psql(Command::new("psql"), port.parse().unwrap()).args(["-c", "SELECT 1"]).output().unwrap();
    assert!(text(&done.stderr).contains("cannot reach the database"), "{}", text(&done.stderr));
    signal(&child, "TERM"); // it tells all that it has to tell
    let mut log = String::new();
    lines.read_to_string(&mut log).unwrap();
    child.wait().unwrap();
    let told: Vec<&str> =
        log.lines().filter(|line| line.contains("connection to server at 127.0.0.1:1 failed")).collect();
    assert_eq!(told.len(), 1, "{log}");
    assert!(told[0].contains("127.0.0.1:") && told[0].contains("connection 26"), "{log}");
    let strangers = log.lines().filter(|line| line.contains("connection") && !told.contains(line)).count();
    assert!((1..25).contains(&strangers), "they are limited: {log}");
}
