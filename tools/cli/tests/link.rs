//! A distance to the database that is not there: times are asserted from below only.

mod common;

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use common::onetrip;
use onetrip_pgserver::PgServer;
use serde_json::Value;

const RTT_MS: u64 = 20;
const RTT_NS: u64 = RTT_MS * 1_000_000;

/// SCRAM, with TLS; it ends with this process, whose pipe it reads.
fn server() -> &'static PgServer {
    static SERVER: OnceLock<PgServer> = OnceLock::new();
    SERVER.get_or_init(|| PgServer::start(&["--ssl"]))
}

/// The command with the server in its environment, under a name that has several addresses on many machines.
fn with_server(arguments: &[&str]) -> Command {
    let mut command = onetrip();
    command.args(arguments).env("PGHOST", "localhost").env("PGPORT", server().at.port.to_string());
    command.env("PGPASSWORD", "onetrip-secret");
    command
}

fn run(options: &[&str], statements: &[&str]) -> (Duration, Value, String) {
    let path =
        std::env::temp_dir().join(format!("onetrip-link-{}-{}.json", std::process::id(), statements.len()));
    let mut command = with_server(&["run", "--format", "json", "--output"]);
    command.arg(&path).args(options).args(["--", "psql", "-X", "-At"]);
    command.args(statements.iter().flat_map(|statement| ["-c", statement]));
    let started = Instant::now();
    let output = command.output().unwrap();
    let elapsed = started.elapsed();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    (elapsed, serde_json::from_str(&report).unwrap(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn a_program_waits_for_every_trip_over_the_link() {
    let rtt = format!("{RTT_MS}ms");
    let (elapsed, report, output) = run(&["--rtt", &rtt], &["select 1", "select 2", "select 3"]);
    assert_eq!(output, "1\n2\n3\n");
    let (total, work) =
        (report["trips"]["total"].as_u64().unwrap(), report["trips"]["work"].as_u64().unwrap());
    assert_eq!((work, total > work), (3, true), "{report:#}");
    assert!(elapsed >= Duration::from_millis(work * RTT_MS), "{elapsed:?}");
    for template in report["templates"].as_array().unwrap() {
        let (trips, waited) = (template["trips"].as_u64().unwrap(), template["waited_ns"].as_u64().unwrap());
        assert!(waited >= trips * RTT_NS, "{template:#}");
    }
    // The kernel sees the near end only; what lies beyond is added to what it tells.
    assert!(report["database"]["rtt_min_ns"].as_u64().unwrap() >= RTT_NS, "{report:#}");
    assert!(report["times"]["wire_ns"].as_u64().unwrap() >= work * RTT_NS, "{report:#}");
}

#[test]
fn tls_over_the_link_is_with_the_real_host() {
    let query = "select ssl from pg_stat_ssl where pid = pg_backend_pid()";
    let target = format!(
        "host=localhost port={} sslmode=verify-full sslrootcert={}",
        server().at.port,
        server().at.ca.as_ref().expect("it has certificates").display()
    );
    let (_, report, output) =
        run(&["--rtt", "1ms", "--jitter", "1ms", "--seed", "3", "--upstream", &target], &[query]);
    assert_eq!(output, "t\n");
    assert_eq!(report["trips"]["work"], 1);
}

#[test]
fn an_address_where_nobody_listens_is_told_as_without_a_link() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let target = format!("host=127.0.0.1 port={free} sslmode=disable");
    let output =
        with_server(&["run", "--rtt", "1ms", "--upstream", &target, "--", "psql", "-X", "-c", "select 1"])
            .output()
            .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "psql's own code: {said}");
    assert!(said.contains("Connection refused") && said.contains("Is the server running"), "{said}");
}

/// `onetrip link` in front of the server, and the port of its near end.
fn link(options: &[&str]) -> (Child, u16) {
    let mut command = with_server(&["link", "--to", &format!("localhost:{}", server().at.port)]);
    command.args(options).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let near_end = line.strip_prefix("onetrip: link from 127.0.0.1:").expect(&line);
    let port = near_end.split(' ').next().unwrap().parse().unwrap();
    (child, port)
}

#[test]
fn the_link_command_serves_until_ctrl_c_and_tells_how_it_went() {
    let (mut link, port) = link(&["--rtt", "20ms", "--tcp-window", "off", "--link-buffer", "1MiB"]);
    let ping = with_server(&["ping", "-n", "5", "--format", "json"])
        .env("PGPORT", port.to_string())
        .output()
        .unwrap();
    assert!(Command::new("kill").args(["-INT", &link.id().to_string()]).status().unwrap().success());
    let mut statistics = String::new();
    link.stdout.take().unwrap().read_to_string(&mut statistics).unwrap();
    assert!(link.wait().unwrap().success());
    let report: Value = serde_json::from_slice(&ping.stdout).unwrap();
    assert!(report["ms"]["trip"]["min"].as_f64().unwrap() >= 20.0, "{report:#}");
    assert!(statistics.starts_with("link: 1 connections (0 refused), "), "{statistics}");
    assert!(statistics.contains("pacing: "), "{statistics}");
}

#[test]
fn links_that_cannot_be_are_refused_with_what_can() {
    for (options, said) in [
        (&["--rtt", "20"][..], "write for example 12.9ms"),
        (&["--bandwidth", "0mbit"], "needs some bandwidth"),
        (&["--seed", "3"], "--jitter"),
        (&["--tcp-window", "maybe"], "--tcp-window"),
    ] {
        let output = onetrip().args(["link", "--to", "127.0.0.1:1"]).args(options).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{text}");
        assert!(text.contains(said), "{text}");
    }
}
