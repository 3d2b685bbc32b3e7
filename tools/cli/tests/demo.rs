//! The demo, small: what it counts, says, writes and leaves behind. Times are asserted from below only.

mod common;

use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use common::onetrip;
use onetrip_pgserver::PgServer;
use tempfile::TempDir;
use tokio_postgres::NoTls;

/// A page is at most this long.
const PAGE_BYTES_MAX: u64 = 3_000_000;
const SCHEMAS: &str = "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'onetrip_demo_%'";

/// The demo with a directory of its own to be in.
fn demo(arguments: &[&str]) -> (Command, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let mut command = onetrip();
    command.arg("demo").args(arguments).current_dir(directory.path()).env("TMPDIR", directory.path());
    (command, directory)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The words of the table's line that begins with this label.
fn line(output: &Output, label: &str) -> Vec<String> {
    let text = text(&output.stdout);
    let table = text.split("three ways").nth(1).expect(&text);
    let line = table.lines().find_map(|line| line.strip_prefix(label)).expect(&text);
    line.split_whitespace().map(str::to_owned).collect()
}

fn files(directory: &TempDir) -> Vec<PathBuf> {
    std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// The names of the demo's schemas that are in the database.
fn schemas(url: &str) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
        tokio::spawn(connection);
        let rows = client.query_typed(SCHEMAS, &[]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    })
}

fn server() -> (PgServer, String) {
    let server = PgServer::start(&[]);
    let url = format!("postgres://onetrip:onetrip-secret@127.0.0.1:{}/postgres", server.at.port);
    (server, url)
}

#[test]
fn the_loop_spends_a_trip_for_each_employee_and_the_others_spend_one_or_two() {
    // A statement that takes a quarter of the round trip is not guessed: on a busy machine some take several ms.
    let (mut command, directory) = demo(&["--employees", "50", "--rtt", "80ms"]);
    let output = command.output().unwrap();
    let said = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(said.contains("OT001  N+1 loop   49 of 50 trips avoidable"), "{said}");
    assert!(said.contains("tokio-postgres"), "{said}");
    assert_eq!(line(&output, "as is")[0], "51");
    assert_eq!(line(&output, "with ANY")[0], "2");
    assert_eq!(line(&output, "with JOIN")[0], "1");
    assert!(
        text(&output.stderr).starts_with("onetrip: a program lists 50 employees"),
        "what it will do comes first"
    );
    let end = said.lines().last().unwrap();
    assert!(end.starts_with("the gateway has removed") && end.ends_with("trips."), "{said}");
    let left: u32 = line(&output, "as is, with exact")[0].parse().unwrap();
    assert!(left <= 27, "exact removes the half of 50 statements at least: {said}");
    assert!(!said.contains("--full"), "all of it was run: {said}");
    assert!(said.lines().all(|line| line.chars().count() <= 100), "{said}");
    let files = files(&directory);
    assert_eq!(files, [directory.path().join("report.html")], "nothing else is left");
    assert!((10_000..=PAGE_BYTES_MAX).contains(&files[0].metadata().unwrap().len()));
}

#[test]
fn a_loop_that_would_take_long_runs_over_a_part_and_says_so() {
    let (mut command, directory) = demo(&["--employees", "40", "--rtt", "400ms", "--html", "other.html"]);
    let started = Instant::now();
    let output = command.output().unwrap();
    let said = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(started.elapsed() >= Duration::from_millis(400 * 12), "the part was really run");
    assert_eq!(line(&output, "as is, first 10")[0], "11");
    assert!(line(&output, "as is ").contains(&"-".to_owned()), "{said}");
    assert!(said.contains("the loop ran over the first 10 of 40 employees only; --full runs all"), "{said}");
    assert_eq!(files(&directory), [directory.path().join("other.html")]);
}

#[test]
fn options_that_cannot_be_are_refused_before_anything_is_run() {
    for (options, said) in [
        (&["--employees", "0"][..], "--employees"),
        (&["--employees", "1000000"], "100000"),
        (&["--rtt", "0"], "write for example 12.9ms"),
        (&["--rtt", "12.9"], "write for example 12.9ms"),
        (&["--rtt", "2s"], "1s"),
        (&["--html", "no/such/file.html"], "there is no directory no/such"),
        (&["--database", "mysql://127.0.0.1/x"], "--database"),
    ] {
        let (mut command, directory) = demo(options);
        let output = command.output().unwrap();
        let text = text(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{options:?}: {text}");
        assert!(text.contains(said), "{options:?}: {text}");
        assert!(files(&directory).is_empty());
    }
}

#[test]
fn a_real_database_gives_the_same_answers_and_keeps_nothing() {
    let (_server, url) = server();
    let (mut command, _directory) = demo(&["--employees", "50", "--rtt", "2ms", "--database", &url]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("schema onetrip_demo_"), "{}", text(&output.stderr));
    assert_eq!(line(&output, "as is")[0], "51");
    assert!(text(&output.stdout).contains("OT001"));
    assert_eq!(schemas(&url), [""; 0]);
}

#[test]
fn ctrl_c_leaves_neither_a_schema_nor_half_a_file_behind() {
    let (_server, url) = server();
    let (mut command, directory) =
        demo(&["--employees", "2000", "--rtt", "50ms", "--full", "--database", &url]);
    let mut demo = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while schemas(&url).is_empty() {
        assert!(Instant::now() < deadline, "the demo makes its schema");
        std::thread::sleep(Duration::from_millis(50));
    }
    std::thread::sleep(Duration::from_millis(1500));
    assert!(Command::new("kill").args(["-INT", &demo.id().to_string()]).status().unwrap().success());
    let mut said = String::new();
    demo.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(demo.wait().unwrap().code(), Some(130), "{said}");
    assert!(said.contains("onetrip: stopped"), "{said}");
    assert_eq!(schemas(&url), [""; 0], "{said}");
    // The report of the first run may be there: then it is whole.
    for file in files(&directory) {
        assert_eq!(file.file_name().unwrap(), "report.html");
        assert!(
            std::fs::read_to_string(&file).unwrap().trim_end().ends_with("</html>"),
            "{}",
            file.display()
        );
    }
}
