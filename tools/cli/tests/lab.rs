//! `onetrip lab`: the list, a short run with its files, charts from samples alone, a choice, and what is refused.

mod common;

use std::path::Path;
use std::process::Output;

use common::onetrip;

fn lab(folder: &Path, arguments: &[&str]) -> Output {
    onetrip().arg("lab").args(arguments).current_dir(folder).output().unwrap()
}

fn text(output: &[u8]) -> &str {
    std::str::from_utf8(output).unwrap()
}

#[test]
fn a_short_run_prints_its_table_and_its_charts_are_drawn_again_from_its_samples() {
    let folder = tempfile::tempdir().unwrap();
    let run = lab(folder.path(), &["fetch", "--short", "--engine", "embedded", "--output", "out"]);
    assert!(run.status.success(), "{}", text(&run.stderr));
    let table = text(&run.stdout);
    assert!(table.contains("Ten rows at a time take 53 trips, all at once 3."), "{table}");
    let again = lab(folder.path(), &["chart", "out/fetch.json", "--output", "again", "--write", "pages"]);
    assert!(again.status.success(), "{}", text(&again.stderr));
    assert_eq!(text(&again.stdout), table);
    let page = std::fs::read_to_string(folder.path().join("pages/fetch.md")).unwrap();
    assert!(page.contains("**Answer.** Ten rows at a time take 53 trips"), "{page}");
    assert!(folder.path().join("again/fetch.html").exists());
}

#[test]
fn the_list_names_every_workload_and_an_unknown_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let list = lab(folder.path(), &["list"]);
    assert!(text(&list.stdout).lines().any(|line| line.starts_with("pipeline-oltp ")));
    let unknown = lab(folder.path(), &["nothing"]);
    assert_eq!(unknown.status.code(), Some(125));
    assert!(text(&unknown.stderr).contains("onetrip lab list"), "{}", text(&unknown.stderr));
    assert_eq!(lab(folder.path(), &[]).status.code(), Some(125));
}

#[test]
fn a_choice_is_said_in_the_words_of_the_drivers() {
    let folder = tempfile::tempdir().unwrap();
    let chosen = lab(folder.path(), &["tune", "--no-check", "--lob", "4000B", "--memory", "100KiB"]);
    assert!(chosen.status.success(), "{}", text(&chosen.stderr));
    let said = text(&chosen.stdout);
    assert!(said.starts_with("fetch size 20, rows with values\n"), "{said}");
    assert!(said.contains("setFetchSize(20)") && said.contains("setLobPrefetchSize(4000)"), "{said}");
}

#[test]
fn a_table_tells_its_rows_and_which_column_is_the_large_one() {
    let server = onetrip_pgserver::PgServer::start(&["--auth", "trust"]);
    let url = format!("host=127.0.0.1 port={} user=onetrip dbname=postgres sslmode=disable", server.at.port);
    let made = std::process::Command::new("psql")
        .args(["-X", "-q", "-v", "ON_ERROR_STOP=1", &url, "-c"])
        .arg(
        "CREATE TABLE \"My pictures\" (id integer PRIMARY KEY, name varchar(20) NOT NULL, content bytea NOT NULL); \
         INSERT INTO \"My pictures\" SELECT n, repeat('n', 10), decode(repeat('ab', 5000), 'hex') \
         FROM generate_series(100, 299) AS n",
    )
    .status()
    .unwrap();
    assert!(made.success());
    let folder = tempfile::tempdir().unwrap();
    let tune = |table: &str| {
        lab(folder.path(), &["tune", "--no-check", "--database", &url, "--table", table, "--share", "10"])
    };
    let chosen = tune("\"My pictures\"");
    assert!(chosen.status.success(), "{}", text(&chosen.stderr));
    let said = text(&chosen.stdout);
    let found =
        "table \"My pictures\": 200 rows of 13 B, large values of 5.00 kB, 10 % of them read, 1ms away\n";
    assert!(said.starts_with(found), "{said}");
    let missing = tune("nothing");
    assert!(text(&missing.stderr).contains("there is no table \"nothing\""), "{}", text(&missing.stderr));
}
