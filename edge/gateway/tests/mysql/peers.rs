//! Peers that are slow, leave, speak TLS or speak nonsense: bytes pass as they came, and nothing hangs.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use onetrip_mysqlserver::{Kind, MysqlServer, repository};

use crate::raw::RawClient;
use crate::{Watching, closed_server, open_server, python};

#[test]
fn a_client_that_reads_late_loses_nothing() {
    let gateway = Watching::start(open_server(Kind::MariaDb).at.port);
    let mut client = RawClient::connect(gateway.port, &open_server(Kind::MariaDb).at.database);
    client.send(0, b"\x03SELECT seq, REPEAT('r', 1000) FROM seq_1_to_50000");
    thread::sleep(Duration::from_millis(400));
    assert_eq!(client.answer().rows, 50_000);
    drop(client);
    assert_eq!(gateway.summary().trips.work(), 1);
}

#[test]
fn a_statement_of_sixteen_mebibytes_and_more_arrives() {
    let gateway = Watching::start(open_server(Kind::MariaDb).at.port);
    let mut client = RawClient::connect(gateway.port, &open_server(Kind::MariaDb).at.database);
    let text = format!("SELECT LENGTH('{}')", "x".repeat(20_000_000));
    assert_eq!(client.query(&text).rows, 1);
    assert_eq!(client.query("SELECT 1").rows, 1);
    drop(client);
    let summary = gateway.summary();
    assert_eq!((summary.trips.work(), summary.undecoded), (2, 0));
}

#[test]
fn an_answer_still_comes_to_a_client_that_sends_nothing_more() {
    let gateway = Watching::start(open_server(Kind::MariaDb).at.port);
    let mut client = RawClient::connect(gateway.port, &open_server(Kind::MariaDb).at.database);
    client.send(0, b"\x03SELECT SLEEP(0.2), 1");
    client.ends();
    assert_eq!(client.answer().rows, 1);
    while client.read() {}
    drop(client);
    assert_eq!(gateway.summary().unanswered, 0);
}

#[test]
fn a_kill_by_the_servers_own_number_hits_the_session() {
    let gateway = Watching::start(open_server(Kind::MariaDb).at.port);
    let database = &open_server(Kind::MariaDb).at.database;
    let mut victim = RawClient::connect(gateway.port, database);
    victim.query("SELECT 1 /* find me */");
    victim.send(0, b"\x03SELECT /* find me */ SLEEP(30)");
    let mut other = RawClient::connect(gateway.port, database);
    let started = Instant::now();
    let kill = "SELECT ID INTO @it FROM information_schema.PROCESSLIST WHERE INFO LIKE '%find me%SLEEP(30)%' AND ID <> \
                CONNECTION_ID() LIMIT 1";
    while other.query(kill).affected_rows == 0 {
        assert!(started.elapsed() < Duration::from_secs(20), "the statement runs");
    }
    other.query("EXECUTE IMMEDIATE CONCAT('KILL QUERY ', @it)");
    let reply = victim.answer();
    assert!(started.elapsed() < Duration::from_secs(25), "{reply:?}");
    drop((victim, other));
    gateway.summary();
}

#[test]
fn a_gateway_that_drains_ends_a_session_at_rest_and_lets_a_transaction_end() {
    let gateway = Watching::start(open_server(Kind::MariaDb).at.port);
    let database = &open_server(Kind::MariaDb).at.database;
    let mut idle = RawClient::connect(gateway.port, database);
    let mut busy = RawClient::connect(gateway.port, database);
    idle.query("SELECT 1");
    busy.query("START TRANSACTION");
    gateway.gateway.drain();
    assert!(!idle.read(), "it is ended");
    assert_eq!(busy.query("SELECT 2").rows, 1);
    busy.query("COMMIT");
    assert!(!busy.read(), "it is ended behind its transaction");
    let summary = gateway.summary();
    assert_eq!((summary.sessions, summary.unanswered, summary.trips.work()), (2, 0, 4));
}

#[test]
fn a_database_that_is_not_there_is_told_in_the_greetings_place() {
    let nobody =
        TcpListener::bind(("127.0.0.1", 0)).expect("a port").local_addr().expect("it is bound").port();
    let gateway = Watching::start(nobody);
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", gateway.port)).expect("the gateway listens");
    let mut said = Vec::new();
    stream.read_to_end(&mut said).expect("it is told and closed");
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(
        said.contains("onetrip cannot reach the database") && said.contains("Connection refused"),
        "{said}"
    );
    let summary = gateway.summary();
    assert_eq!(summary.refusals.len(), 1);
    // A driver shows it.
    let gateway = Watching::start(nobody);
    let output = python("connect", &closed_server().at, gateway.port, &[]);
    let shown = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(shown.contains("onetrip cannot reach the database"), "{shown}");
}

#[test]
fn a_server_that_never_greets_has_the_time_that_its_settings_give() {
    let silent = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = silent.local_addr().expect("it is bound").port();
    let gateway = Watching::before(&format!("mysql://127.0.0.1:{port}?connect_timeout=1"));
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", gateway.port)).expect("the gateway listens");
    let mut said = Vec::new();
    stream.read_to_end(&mut said).expect("it is told and closed");
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(said.contains("no answer within 1 s"), "{said}");
    assert_eq!(gateway.summary().refusals.len(), 1);
}

#[test]
fn a_client_that_leaves_before_the_greeting_takes_its_leg_with_it() {
    let silent = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let gateway = Watching::start(silent.local_addr().expect("it is bound").port());
    let client = std::net::TcpStream::connect(("127.0.0.1", gateway.port)).expect("the gateway listens");
    let (mut leg, _) = silent.accept().expect("the gateway comes");
    drop(client);
    assert_eq!(leg.read(&mut [0]).expect("it ends"), 0);
    drop(leg);
    assert_eq!(gateway.summary().refusals.len(), 0);
}

#[test]
fn a_client_that_speaks_tls_with_the_server_works_and_is_said_to_be_unseen() {
    let certificates = repository().join("edge/target/tests/certificates");
    let option = |name: &str, file: &str| format!("--{name}={}", certificates.join(file).display());
    let options = [
        option("ssl-cert", "manual-server.pem"),
        option("ssl-key", "manual-server.key"),
        option("ssl-ca", "manual-root.pem"),
    ];
    let server = MysqlServer::start(Kind::MariaDb, &options.iter().map(String::as_str).collect::<Vec<_>>());
    let gateway = Watching::start(server.at.port);
    let output = python("schema", &server.at, gateway.port, &["tls"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let summary = gateway.summary();
    assert_eq!((summary.connections, summary.sessions, summary.trips.total), (1, 0, 1));
    assert!(summary.gaps.has_loss(), "counts are lower bounds");
    // Where the upstream says that there is to be no TLS, none is offered, and all is seen.
    for (text, is_seen) in [("", false), ("?ssl-mode=DISABLED", true)] {
        let gateway = Watching::before(&format!("mysql://127.0.0.1:{}{text}", server.at.port));
        let output = python("loop", &server.at, gateway.port, &["tls-preferred"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let summary = gateway.summary();
        assert_eq!((summary.connections, summary.sessions), (1, u64::from(is_seen)), "{text}");
        assert_eq!(
            (summary.findings.len(), summary.gaps.has_loss()),
            (usize::from(is_seen), !is_seen),
            "{text}"
        );
    }
}

#[test]
fn a_server_that_breaks_off_is_gone_for_the_client_with_all_that_it_had_said() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = listener.local_addr().expect("it is bound").port();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("the gateway comes");
        let mut real = std::net::TcpStream::connect(("127.0.0.1", open_server(Kind::MariaDb).at.port))
            .expect("it is there");
        let mut greeting = vec![0; 4096];
        let count = real.read(&mut greeting).expect("it greets");
        stream.write_all(&greeting[..count]).expect("it is taken");
        let mut login = vec![0; 4096];
        assert!(stream.read(&mut login).expect("it logs in") > 0);
        // The beginning of an OK packet.
        stream.write_all(b"\x07\0\0\x02\0\0").expect("it is taken");
    });
    let gateway = Watching::start(port);
    let mut client = RawClient::greeted(gateway.port);
    client.log_in("onetrip");
    let before = client.received;
    while client.read() {}
    assert_eq!(client.received - before, 6);
    server.join().expect("it ends");
    let summary = gateway.summary();
    assert_eq!((summary.connections, summary.sessions, summary.unanswered), (1, 0, 1));
}

#[test]
fn a_client_that_vanishes_amid_a_result_takes_its_session_with_it() {
    let gateway = Watching::start(open_server(Kind::MariaDb).at.port);
    let mut client = RawClient::connect(gateway.port, &open_server(Kind::MariaDb).at.database);
    client.send(0, b"\x03SELECT seq, REPEAT('r', 1000) FROM seq_1_to_100000");
    client.read();
    drop(client); // what it has not read makes this a reset
    let started = Instant::now();
    while gateway.gateway.open_connections() > 0 {
        assert!(started.elapsed() < Duration::from_secs(20), "it is noticed");
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(gateway.summary().unanswered, 1);
}

#[test]
fn what_is_no_protocol_passes_all_the_same() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = listener.local_addr().expect("it is bound").port();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("the gateway comes");
        stream.write_all(b"220 mail.example ESMTP\r\n").expect("it is taken");
        let mut heard = vec![0; 18];
        stream.read_exact(&mut heard).expect("it comes");
        stream.write_all(b"250 hello\r\n").expect("it is taken");
        heard
    });
    let gateway = Watching::start(port);
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", gateway.port)).expect("the gateway listens");
    let mut said = vec![0; 24];
    stream.read_exact(&mut said).expect("it comes");
    assert_eq!(said, b"220 mail.example ESMTP\r\n");
    stream.write_all(b"EHLO here.example\n").expect("it is taken");
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).expect("it ends");
    assert_eq!(
        (server.join().expect("it ends"), rest),
        (b"EHLO here.example\n".to_vec(), b"250 hello\r\n".to_vec())
    );
    let summary = gateway.summary();
    assert_eq!((summary.sessions, summary.unanswered), (0, 1), "there was no greeting");
}
