//! `onetrip ping` against real servers of every kind, over a distance, and against what is no server at all.
//! Times are asserted from below only: a busy machine makes all of them longer.

mod common;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use common::onetrip;
use onetrip_link::{LinkSpec, Relay};
use onetrip_pgserver::PgServer;
use serde_json::Value;

const PASSWORD: &str = "onetrip-secret";
const RTT_MS: f64 = 20.0;

fn ping(target: &str) -> Command {
    let mut command = onetrip();
    command.args(["ping", target, "--format", "json"]);
    command
}

fn json(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{error}: {text}{}", String::from_utf8_lossy(&output.stderr)))
}

/// Pings that must succeed.
fn report(command: &mut Command) -> Value {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    json(&output)
}

/// What a failing ping says.
fn complaint(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(125), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).unwrap()
}

/// Steps that cost trips, with their number.
fn trips(report: &Value) -> Vec<(String, u64)> {
    let steps = report["opening"]["steps"].as_array().unwrap().iter();
    let steps =
        steps.map(|step| (step["step"].as_str().unwrap().to_owned(), step["trips"].as_u64().unwrap()));
    steps.filter(|(_, trips)| *trips > 0).collect()
}

fn step_ms(report: &Value, name: &str) -> f64 {
    let steps = report["opening"]["steps"].as_array().unwrap();
    steps.iter().find(|step| step["step"] == name).unwrap()["ms"].as_f64().unwrap()
}

fn ms(report: &Value, part: &str, measure: &str) -> f64 {
    report["ms"][part][measure].as_f64().unwrap()
}

/// A server that is shared by the tests: SCRAM, with TLS. It ends when the last test has ended, with our input to it.
fn scram_server() -> &'static PgServer {
    static SERVER: OnceLock<PgServer> = OnceLock::new();
    SERVER.get_or_init(|| PgServer::start(&["--ssl"]))
}

fn plain_target(server: &PgServer) -> String {
    format!("host=127.0.0.1 port={} sslmode=disable", server.at.port)
}

#[test]
fn every_way_of_logging_in_costs_its_trips() {
    for (auth, method, answers) in
        [("trust", "trust", 0), ("password", "cleartext password", 1), ("md5", "MD5", 1)]
    {
        let server = PgServer::start(&["--auth", auth]);
        let report = report(ping(&plain_target(&server)).args(["-n", "20"]).env("PGPASSWORD", PASSWORD));
        let mut expected = vec![("tcp_connect".to_owned(), 1), ("startup".to_owned(), 1)];
        expected.extend((answers > 0).then(|| ("authentication".to_owned(), answers)));
        assert_eq!(trips(&report), expected, "{auth}");
        assert_eq!((&report["authentication"], &report["trips"]), (&method.into(), &20.into()));
        assert_eq!(report["opening"]["trips"], 2 + answers);
    }
}

#[test]
fn scram_costs_two_trips_and_reports_who_answered() {
    let server = scram_server();
    let target = format!("postgres://localhost:{}/postgres?sslmode=disable", server.at.port);
    let report = report(ping(&target).args(["-n", "50"]).env("PGPASSWORD", PASSWORD));
    let expected = [("tcp_connect", 1), ("startup", 1), ("authentication", 2)];
    assert_eq!(trips(&report), expected.map(|(name, trips)| (name.to_owned(), trips)));
    assert_eq!(report["authentication"], "SCRAM-SHA-256");
    assert_eq!(report["address"], format!("127.0.0.1:{}", server.at.port));
    assert!(report["server_version"].as_str().unwrap().starts_with("15."));
    assert_eq!((&report["tls"], &report["user"]), (&Value::Null, &"onetrip".into()));
    let (trip, wire, rest) =
        (ms(&report, "trip", "min"), ms(&report, "wire", "min"), ms(&report, "server", "min"));
    assert!(wire > 0.0 && rest >= 0.0 && (trip - wire - rest).abs() < 1e-3, "{trip} = {wire} + {rest}");
    assert!(ms(&report, "trip", "p99") <= ms(&report, "trip", "max"));
}

#[test]
fn tls_is_spoken_by_the_rules_of_sslmode() {
    let server = scram_server();
    let target = format!(
        "postgres://localhost:{}/postgres?sslmode=verify-full&sslrootcert={}",
        server.at.port,
        server.at.ca.as_ref().expect("it has certificates").display()
    );
    let report = report(ping(&target).args(["-n", "5"]).env("PGPASSWORD", PASSWORD));
    assert_eq!(report["tls"], "1.3");
    // PostgreSQL 15's ssl_ecdh_curve is not what rustls or OpenSSL offer first, so the handshake takes two.
    let expected =
        [("tcp_connect", 1), ("tls_request", 1), ("tls_handshake", 2), ("startup", 1), ("authentication", 2)];
    assert_eq!(trips(&report), expected.map(|(name, trips)| (name.to_owned(), trips)));
    let other_root = format!("{target}&sslrootcert=/nonexistent/root.crt");
    assert!(complaint(ping(&other_root).env("PGPASSWORD", PASSWORD)).contains("/nonexistent/root.crt"));
    let without = PgServer::start(&["--auth", "trust"]);
    let refused = complaint(&mut ping(&format!("host=127.0.0.1 port={} sslmode=require", without.at.port)));
    assert!(refused.contains("does not support SSL"), "{refused}");
}

#[test]
fn over_a_distance_every_trip_takes_it() {
    let server = scram_server();
    let target = SocketAddr::from(([127, 0, 0, 1], server.at.port));
    let relay = Relay::start(LinkSpec::with_rtt(Duration::from_secs_f64(RTT_MS / 1e3)), target).unwrap();
    let target = format!("host=127.0.0.1 port={} sslmode=require", relay.local_addr().port());
    let report = report(ping(&target).args(["-n", "10"]).env("PGPASSWORD", PASSWORD));
    assert_eq!((&report["opening"]["trips"], &report["trips"]), (&7.into(), &10.into()));
    // The link's near end answers a SYN at once; the far one is waited for by the first message.
    let opened = step_ms(&report, "tcp_connect") + step_ms(&report, "tls_request");
    assert!(opened >= 2.0 * RTT_MS, "{report:#}");
    assert!(step_ms(&report, "tls_handshake") >= 2.0 * RTT_MS, "{report:#}");
    assert!(step_ms(&report, "startup") >= RTT_MS, "{report:#}");
    assert!(step_ms(&report, "authentication") >= 2.0 * RTT_MS, "{report:#}");
    assert!(ms(&report, "trip", "min") >= RTT_MS, "{report:#}");
    assert!(report["trips_per_second_max"].as_f64().unwrap() <= 1e3 / RTT_MS, "{report:#}");
}

#[test]
fn a_unix_socket_has_no_wire() {
    let server = scram_server();
    let target = format!("host={} port={}", server.at.socket_dir.display(), server.at.port);
    let report = report(ping(&target).args(["-n", "5"]).env("PGPASSWORD", PASSWORD));
    assert_eq!(trips(&report)[0], ("socket_connect".to_owned(), 1));
    assert_eq!((&report["ms"]["wire"], &report["kernel_rtt_ms"]), (&Value::Null, &Value::Null));
    assert!(ms(&report, "trip", "min") > 0.0);
}

#[test]
fn the_text_fits_and_closes_with_the_ceiling() {
    let server = scram_server();
    // Where no target is given it is libpq's environment that names one, and a host alone is enough of one.
    for (environment, target) in [("localhost", None), ("no-such-host.invalid", Some("localhost"))] {
        let mut command = onetrip();
        command.args(["ping", "-n", "30"]).args(target).env("PGPASSWORD", PASSWORD);
        command.env("PGHOST", environment).env("PGPORT", server.at.port.to_string());
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.starts_with(&format!("PING localhost:{} (127.0.0.1:", server.at.port)), "{text}");
        assert!(text.contains("SELECT 1, 30 times in "), "{text}");
        assert!(text.ends_with("trips per second per session is the ceiling here.\n"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        assert!(output.stderr.is_empty(), "a bar belongs on a terminal only");
    }
}

#[test]
fn passwords_come_from_the_password_file_too() {
    let server = scram_server();
    let home = std::env::temp_dir().join(format!("onetrip-ping-{}", std::process::id()));
    std::fs::create_dir_all(&home).unwrap();
    let file = home.join(".pgpass");
    let with_line = |password: &str| {
        std::fs::write(&file, format!("127.0.0.1:{}:*:onetrip:{password}\n", server.at.port)).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    };
    let mut command = ping(&plain_target(server));
    command.args(["-n", "1"]).env("HOME", &home);
    with_line(PASSWORD);
    assert_eq!(report(&mut command)["trips"], 1);
    with_line("wrong");
    let wrong = complaint(&mut command);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let open_to_all = complaint(&mut command);
    std::fs::remove_dir_all(&home).unwrap();
    assert!(wrong.contains("password authentication failed for user \"onetrip\""), "{wrong}");
    assert!(wrong.contains("came from the password file"), "{wrong}");
    assert!(open_to_all.contains("none was given") && open_to_all.contains(".pgpass"), "{open_to_all}");
}

#[test]
fn a_refusal_is_told_in_the_servers_words_with_what_to_do() {
    let server = scram_server();
    let target = plain_target(server);
    let wrong = complaint(ping(&target).env("PGPASSWORD", "wrong"));
    assert!(wrong.contains("password authentication failed for user \"onetrip\" (28P01)"), "{wrong}");
    assert!(wrong.contains("PGPASSWORD") && !wrong.contains("wrong"), "{wrong}");
    let none = complaint(&mut ping(&target));
    assert!(none.contains("SCRAM-SHA-256") && none.contains("set PGPASSWORD"), "{none}");
    let elsewhere = complaint(ping(&format!("{target} dbname=nowhere")).env("PGPASSWORD", PASSWORD));
    assert!(elsewhere.contains("database \"nowhere\" does not exist (3D000)"), "{elsewhere}");
    let forbidden = complaint(ping(&format!("{target} require_auth=md5")).env("PGPASSWORD", PASSWORD));
    assert!(forbidden.contains("require_auth forbids"), "{forbidden}");
}

/// Something that answers every connection with these words, and closes if there are none.
fn stranger(words: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(words);
        }
    });
    port
}

#[test]
fn what_is_not_postgresql_is_recognised() {
    let http = b"HTTP/1.1 400 Bad Request\r\n\r\n";
    let mysql = b"\x4a\0\0\0\x0a8.0.36\0";
    for words in [&http[..], &mysql[..]] {
        let port = stranger(words);
        let plain = complaint(&mut ping(&format!("host=127.0.0.1 port={port} sslmode=disable")));
        assert!(plain.contains(&format!("what answers at 127.0.0.1:{port} is not PostgreSQL")), "{plain}");
        let preferred = complaint(&mut ping(&format!("host=127.0.0.1 port={port}")));
        assert!(preferred.contains("is it a PostgreSQL server?"), "{preferred}");
    }
    for sslmode in ["disable", "prefer", "require"] {
        let target = format!("host=127.0.0.1 port={} sslmode={sslmode}", stranger(b""));
        let closes = complaint(&mut ping(&target));
        assert!(closes.contains("closed the connection without an answer"), "{closes}");
    }
}

#[test]
fn waits_end() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let started = Instant::now();
    for sslmode in ["disable", "require"] {
        let target = format!("host=127.0.0.1 port={port} sslmode={sslmode} connect_timeout=2");
        let late = complaint(&mut ping(&target));
        assert!(late.contains("no answer within 2 s"), "{late}");
    }
    assert!(started.elapsed() < Duration::from_secs(60));
}

/// A ping over a link, once it has measured some trips.
fn ping_under_way(relay: &Relay) -> std::process::Child {
    let target = format!("host=127.0.0.1 port={} sslmode=disable", relay.local_addr().port());
    let mut command = ping(&target);
    command.args(["-n", "100000"]).env("PGPASSWORD", PASSWORD);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    while relay.stats().unwrap().bytes_up < 1000 {
        assert!(Instant::now() < deadline, "no trips");
        thread::sleep(Duration::from_millis(5));
    }
    child
}

fn relay_to(server: &PgServer) -> Relay {
    let target = SocketAddr::from(([127, 0, 0, 1], server.at.port));
    Relay::start(LinkSpec::with_rtt(Duration::from_millis(2)), target).unwrap()
}

#[test]
fn ctrl_c_reports_what_was_measured_so_far() {
    let relay = relay_to(scram_server());
    let child = ping_under_way(&relay);
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let report = json(&output);
    let measured = report["trips"].as_u64().unwrap();
    assert!((1..100_000).contains(&measured) && report["asked"] == 100_000, "{report:#}");
    assert!(ms(&report, "trip", "min") >= 2.0);
}

#[test]
fn a_server_that_goes_away_is_told_after_what_was_measured() {
    let relay = relay_to(scram_server());
    let child = ping_under_way(&relay);
    drop(relay);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(json(&output)["trips"].as_u64().unwrap() > 0);
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert!(complaint.contains("closed the connection"), "{complaint}");
}

#[test]
fn impossible_counts_are_refused() {
    for count in ["0", "1000001", "-1", "x"] {
        let output = ping("localhost").arg(format!("--count={count}")).output().unwrap();
        assert_eq!(output.status.code(), Some(125), "{count}");
    }
}

#[test]
fn ready_says_of_a_silent_listener_that_nothing_came_in_time() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    for protocol in [&[][..], &["--mysql"]] {
        let mut command = onetrip();
        let done = command.args(["ready", &address, "--timeout", "100ms"]).args(protocol).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(125), "{said}");
        assert_eq!(said, format!("onetrip: {address} does not answer: nothing came within 0.1 s\n"));
    }
}
