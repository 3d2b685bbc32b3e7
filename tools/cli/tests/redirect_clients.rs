//! `onetrip run --redirect` with real drivers whose database stands in their code: `clients/redirect`.

mod common;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::onetrip;
use onetrip_pgserver::PgServer;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Runs a program, HOST and PORT as its last arguments; its connections must have gone to the gateway. Some drivers make
/// two: a first one only asks for TLS.
#[track_caller]
fn assert_led(server: &PgServer, program: &[&str]) {
    let port = server.at.port.to_string();
    for host in ["127.0.0.1", "localhost"] {
        let mut command = onetrip();
        let upstream = format!("127.0.0.1:{port}");
        command.args(["run", "--redirect", "--upstream", &upstream]).args(program).args([host, &port]);
        command.env_remove("PGUSER").env_remove("PGDATABASE");
        let done = command.stdin(Stdio::null()).current_dir(repository()).output().unwrap();
        let report = String::from_utf8_lossy(&done.stderr);
        assert_eq!(String::from_utf8_lossy(&done.stdout), "42\n", "{program:?}\n{report}");
        let led =
            ["  1 connection", "  2 connections"].map(|count| format!("{count} to the gateway, by seccomp"));
        assert!(led.iter().any(|led| report.contains(led)), "{program:?}\n{report}");
        assert!(report.contains("connections  1"), "{program:?}\n{report}");
    }
}

#[test]
fn django_with_its_database_in_the_settings_is_led_to_the_gateway() {
    assert_led(&PgServer::start(&[]), &[".venv/bin/python", "clients/redirect/django_program.py"]);
}

#[test]
fn a_static_go_binary_is_led_to_the_gateway() {
    let directory = tempfile::tempdir().unwrap();
    let binary = directory.path().join("program");
    let mut build = Command::new("go");
    build.args(["build", "-buildvcs=false", "-o"]).arg(&binary).arg("./redirect");
    build.env("CGO_ENABLED", "0").env("GOTOOLCHAIN", "local").current_dir(repository().join("clients/go"));
    assert!(build.status().unwrap().success());
    assert_led(&PgServer::start(&[]), &[binary.to_str().unwrap()]);
}

#[test]
fn a_jvm_is_led_to_the_gateway() {
    let classes = "clients/java/target/lib/*";
    assert_led(&PgServer::start(&[]), &["java", "-cp", classes, "clients/redirect/Redirect.java"]);
}

#[test]
fn node_is_led_to_the_gateway() {
    assert_led(&PgServer::start(&[]), &["node", "clients/redirect/program.js"]);
}

#[test]
fn php_is_led_to_the_gateway() {
    assert_led(&PgServer::start(&[]), &["php", "clients/redirect/program.php"]);
}
