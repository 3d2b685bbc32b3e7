//! What runs for months keeps no huge pages.

mod common;

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use common::onetrip;

/// Starts a service and gives it back once it has said where it listens.
fn started(command: &mut Command) -> Child {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    let mut lines = BufReader::new(child.stderr.as_mut().unwrap());
    while !said.contains("127.0.0.1:") {
        assert!(lines.read_line(&mut said).unwrap() > 0, "it ends before it listens: {said}");
    }
    child
}

/// What the kernel says of huge pages for a process; nothing before Linux 5.0.
fn huge_pages(process: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    status.lines().find_map(|line| line.strip_prefix("THP_enabled:")).map(|word| word.trim().to_owned())
}

#[track_caller]
fn assert_small(command: &mut Command) {
    if huge_pages("self").as_deref() != Some("1") {
        println!("huge pages are not for this test's process, nor for what it starts");
        return;
    }
    let mut child = started(command);
    let found = huge_pages(&child.id().to_string());
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(found.as_deref(), Some("0"));
}

#[test]
fn a_gateway_keeps_no_huge_pages() {
    let upstream = ["--upstream", "postgres://127.0.0.1:1/none"];
    assert_small(onetrip().args(["gateway", "--listen", "127.0.0.1:0"]).args(upstream));
}

#[test]
fn an_embedded_server_keeps_no_huge_pages() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("shop.db");
    assert_small(onetrip().arg("serve").arg(file).args(["--listen", "127.0.0.1:0"]));
}
