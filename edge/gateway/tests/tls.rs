//! The way to the database: TLS by every sslmode word, every way of logging in, unix sockets. What the gateway should
//! do is what psql does with the same settings.

mod common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Instant;

use common::client::{Endpoint, PATIENCE, RawClient};
use common::messages::{self, query};
use common::server::{RunningGateway, Server, config, conninfo};
use onetrip_gateway::{Gateway, GatewayConfig, ListenAddress};
use onetrip_target::tls::{TlsAcceptor, connector};
use onetrip_wire::pg::backend;

/// A server with TLS and SCRAM.
fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start(&["--ssl", "--auth", "scram-sha-256"]))
}

/// Runs psql with connection text only; its output, or its words of failure.
fn psql(text: &str, password: &str, statement: &str) -> Result<String, String> {
    let nowhere = tempfile::tempdir().expect("a directory");
    let mut command = Command::new("psql");
    command.args(["-X", "-A", "-t", "-c", statement, text]).env_clear();
    command.env("HOME", nowhere.path()).env("PATH", std::env::var_os("PATH").unwrap_or_default());
    let output =
        command.env("PGPASSWORD", password).stdin(Stdio::null()).output().expect("psql is installed");
    let words = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(words(&output.stdout)) } else { Err(words(&output.stderr)) }
}

/// Connection text for psql through a gateway, whose client leg is plain.
fn through(gateway: &RunningGateway) -> String {
    plain(&gateway.endpoint())
}

fn plain(endpoint: &Endpoint) -> String {
    format!("host=127.0.0.1 port={} user=onetrip dbname=postgres sslmode=disable", endpoint.port())
}

const IS_TLS: &str = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";

/// A certificate that signed nothing.
fn wrong_root(directory: &Path) -> PathBuf {
    let path = directory.join("wrong.crt");
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-batch",
            "-days",
            "30",
            "-subj",
            "/CN=another CA",
        ])
        .arg("-keyout")
        .arg(directory.join("wrong.key"))
        .arg("-out")
        .arg(&path)
        .output();
    assert!(made.expect("openssl is installed").status.success());
    path
}

#[test]
fn every_sslmode_connects_or_fails_as_it_does_for_psql() {
    let at = &server().at;
    let directory = tempfile::tempdir().expect("a directory");
    let right = at.ca.clone().expect("it was started with --ssl");
    let wrong = wrong_root(directory.path());
    let readable = directory.path().join("right.crt");
    std::fs::copy(&right, &readable).expect("the root certificate is readable");
    let roots = [None, Some(&readable), Some(&wrong)];
    let names = ["host=localhost", "host=127.0.0.1", "host=other.example hostaddr=127.0.0.1"];
    let (mut connected, mut with_tls) = (0, 0);
    for mode in ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"] {
        for (root, name) in roots.iter().flat_map(|root| names.map(|name| (root, name))) {
            let mut text = format!("{name} port={} user=onetrip dbname=postgres sslmode={mode}", at.port);
            if let Some(root) = root {
                text += &format!(" sslrootcert={}", root.display());
            }
            let direct = psql(&text, &at.password, IS_TLS);
            let gateway = match Gateway::start(config(conninfo(&text))) {
                Ok(gateway) => gateway,
                Err(error) => {
                    let refusal = direct.expect_err("the gateway refuses settings that psql takes");
                    assert!(refusal.contains("root certificate"), "{text}: {error} against {refusal}");
                    continue;
                }
            };
            let ListenAddress::Tcp(address) = gateway.address() else { panic!("it listens by TCP") };
            let got = psql(&plain(&Endpoint::Tcp(*address)), &at.password, IS_TLS);
            match (&direct, &got) {
                (Ok(direct), Ok(got)) => {
                    assert_eq!(direct, got, "{text}: TLS or not");
                    connected += 1;
                    with_tls += u32::from(got == "t");
                }
                (Err(_), Err(words)) => assert!(words.contains("certificate"), "{text}: {words}"),
                _ => panic!("{text}: psql {direct:?}, through the gateway {got:?}"),
            }
            gateway.stop();
        }
    }
    assert!(
        connected > 20 && with_tls > 10 && with_tls < connected,
        "{connected} connected, {with_tls} with TLS"
    );
}

#[test]
fn a_server_without_tls_is_refused_where_tls_is_required() {
    let port = Server::shared().at.port;
    for mode in ["disable", "allow", "prefer", "require"] {
        let text = format!("host=127.0.0.1 port={port} user=onetrip dbname=postgres sslmode={mode}");
        let gateway = RunningGateway::start(config(conninfo(&text)));
        let direct = psql(&text, "", "SELECT 1");
        let got = psql(&through(&gateway), "", "SELECT 1");
        assert_eq!(direct.is_ok(), got.is_ok(), "{mode}: {direct:?} against {got:?}");
        if let Err(words) = got {
            assert!(words.contains("does not support SSL, but SSL was required"), "{words}");
        }
    }
}

#[test]
fn a_cancel_travels_over_tls_as_well() {
    let at = &server().at;
    let text = format!("host=127.0.0.1 port={} user=onetrip dbname=postgres sslmode=require", at.port);
    let gateway = RunningGateway::start(config(conninfo(&text)));
    let cancelled = psql(
        &format!("{} options='-c statement_timeout=0'", through(&gateway)),
        &at.password,
        "SELECT pg_sleep(0)",
    );
    assert!(cancelled.is_ok(), "{cancelled:?}");
    let mut running = Command::new("psql")
        .args(["-X", "-c", "SELECT pg_sleep(20)", &through(&gateway)])
        .env("PGPASSWORD", &at.password)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("psql is installed");
    let is_running = "SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(20)'";
    let direct = format!("host=127.0.0.1 port={} user=onetrip dbname=postgres", at.port);
    while psql(&direct, &at.password, is_running).expect("it answers") != "1" {
        assert!(running.try_wait().expect("it runs").is_none(), "psql ended early");
    }
    // Ctrl-C: psql sends a cancel request on a connection of its own.
    let interrupted = Command::new("kill").args(["-INT", &running.id().to_string()]).status();
    assert!(interrupted.expect("kill runs").success());
    let output = running.wait_with_output().expect("it ends");
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(words.contains("canceling statement due to user request"), "{words}");
}

#[test]
fn every_way_of_logging_in_works_and_a_wrong_password_is_refused_in_the_servers_words() {
    for auth in ["trust", "password", "md5", "scram-sha-256"] {
        let server = Server::start(&["--auth", auth]);
        let gateway = server.gateway();
        let direct = plain(&server.direct());
        let right = psql(&through(&gateway), &server.at.password, "SELECT 'in'");
        assert_eq!(right.as_deref(), Ok("in"), "{auth}");
        let words = |result: Result<String, String>, port: u16| {
            result.map_err(|words| words.replace(&port.to_string(), "PORT"))
        };
        let expected = words(psql(&direct, "wrong", "SELECT 1"), server.at.port);
        let got = words(psql(&through(&gateway), "wrong", "SELECT 1"), gateway.endpoint().port());
        assert_eq!(got, expected, "{auth}");
        assert_eq!(got.is_ok(), auth == "trust", "{auth}: {got:?}");
        let unknown =
            |text: &str| psql(&text.replace("user=onetrip", "user=nobody"), "x", "SELECT 1").is_ok();
        assert_eq!(unknown(&through(&gateway)), unknown(&direct), "{auth}");
    }
}

#[test]
fn scram_over_tls_works_with_every_channel_binding_but_a_required_one() {
    let at = &server().at;
    let text = format!("host=127.0.0.1 port={} user=onetrip dbname=postgres sslmode=require", at.port);
    let gateway = RunningGateway::start(config(conninfo(&text)));
    for binding in ["disable", "prefer"] {
        let got = psql(&format!("{} channel_binding={binding}", through(&gateway)), &at.password, IS_TLS);
        assert_eq!(got.as_deref(), Ok("t"), "{binding}");
    }
    // The client sees no TLS, so it cannot bind to it, and says so.
    let required = psql(&format!("{} channel_binding=require", through(&gateway)), &at.password, "SELECT 1");
    assert!(required.expect_err("it cannot work").contains("channel binding"));
}

/// Reads until `end` is in what came, or the stream ends.
fn read_until(stream: &mut impl Read, end: &[u8]) -> Vec<u8> {
    let mut came = Vec::new();
    let mut piece = [0; 4096];
    while !came.windows(end.len()).any(|part| part == end) {
        match stream.read(&mut piece).expect("it goes on, or ends as TLS ends") {
            0 => break,
            count => came.extend_from_slice(&piece[..count]),
        }
    }
    came
}

#[test]
fn a_client_that_ends_tls_behind_its_last_message_gets_its_answer_and_the_end() {
    let gateway = RunningGateway::start(GatewayConfig {
        client_tls: Some(TlsAcceptor::with_own_certificate().expect("a certificate")),
        ..config(Server::shared().upstream())
    });
    let target = conninfo(&format!(
        "host=127.0.0.1 port={} user=onetrip dbname=postgres sslmode=require",
        gateway.endpoint().port()
    ));
    let plan = connector(&target).expect("it has no files").expect("TLS is required");
    // The end comes in the segment of the last message, or behind it.
    for is_apart in [false, true] {
        let mut socket = TcpStream::connect(("127.0.0.1", gateway.endpoint().port())).expect("it listens");
        socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        socket.write_all(&messages::ssl_request()).expect("it is taken");
        socket.read_exact(&mut [0]).expect("TLS is offered");
        let mut tls = plan.start(&target.hosts[0]).expect("a client");
        let mut stream = rustls::Stream::new(&mut tls, &mut socket);
        stream.write_all(&messages::startup("postgres")).expect("it is taken");
        read_until(&mut stream, b"Z\0\0\0\x05I");
        stream.conn.writer().write_all(&query("SELECT 5 FROM pg_sleep(0.3)")).expect("it has room");
        if is_apart {
            stream.flush().expect("it is taken");
        }
        stream.conn.send_close_notify();
        let mut last = Vec::new();
        while stream.conn.wants_write() {
            stream.conn.write_tls(&mut last).expect("a vector takes it");
        }
        stream.sock.write_all(&last).expect("it is taken");
        let came = read_until(&mut stream, b"never");
        assert!(came.windows(8).any(|part| part == b"SELECT 1"), "{}", came.escape_ascii());
    }
}

#[test]
fn unix_sockets_work_on_both_legs() {
    let server = Server::shared();
    let directory = tempfile::tempdir().expect("a directory");
    let socket = directory.path().join(".s.PGSQL.6432");
    let sockets = server.at.socket_dir.display();
    let text = format!("host={sockets} port={} user=onetrip dbname=postgres", server.at.port);
    let mut config = config(conninfo(&text));
    config.listen = ListenAddress::Unix(socket.clone());
    let gateway = RunningGateway::start(config);
    let through = format!("host={} port=6432 user=onetrip dbname=postgres", directory.path().display());
    let is_local = "SELECT client_addr IS NULL FROM pg_stat_activity WHERE pid = pg_backend_pid()";
    assert_eq!(psql(&through, "", is_local).as_deref(), Ok("t"));
    let mut session = RawClient::session(&gateway.endpoint(), "postgres");
    session.send(&query("SELECT pg_sleep(10)"));
    // A request that comes before the statement runs cancels nothing, as without a gateway.
    let runs =
        "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query = 'SELECT pg_sleep(10)'";
    let deadline = Instant::now() + PATIENCE;
    while server.psql("postgres", runs) == "0" {
        assert!(Instant::now() < deadline, "the statement runs");
    }
    let mut messenger = RawClient::connect(&gateway.endpoint());
    while session.count(backend::READY_FOR_QUERY) < 2 && !messenger.ends_within(std::time::Duration::ZERO) {
        messenger.send(&session.cancel_request());
        session.await_count(backend::READY_FOR_QUERY, 2);
    }
    assert_eq!(session.errors()[0].1, "57014");
    gateway.stop();
    assert!(!socket.exists(), "the socket's file is removed");
}
