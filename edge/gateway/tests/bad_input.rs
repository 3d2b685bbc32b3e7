//! Clients, servers and files that are not what they should be: a clear message, in PostgreSQL's own words where it
//! has some, and the gateway goes on serving others.

mod common;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use common::client::{Endpoint, PATIENCE, RawClient, errors};
use common::messages::*;
use common::process;
use common::server::{RunningGateway, Server, config, conninfo};
use common::stub::Stub;
use common::transcript::{SINGLE_BYTE, Transcript};
use onetrip_gateway::{Gateway, GatewayConfig};
use onetrip_ledger::{Analyzer, Mutes, Summary, TraceError, TraceReader};
use onetrip_target::Conninfo;
use onetrip_wire::pg::backend;

type Error = (String, String, String);

/// A session through the gateway that has nothing to do with the trouble of others.
struct Bystander(RawClient);

impl Bystander {
    fn new(gateway: &RunningGateway) -> Self {
        Self(RawClient::session(&gateway.endpoint(), "postgres"))
    }

    fn is_served(&mut self) {
        let reply = self.0.query("SELECT 'served'");
        assert!(reply.iter().any(|message| message.body.ends_with(b"served")), "{reply:?}");
    }
}

/// What a peer says to these first bytes before it hangs up.
fn answer_to(endpoint: &Endpoint, bytes: &[u8]) -> Vec<Error> {
    let mut client = RawClient::connect(endpoint);
    client.send(bytes);
    errors(&client.transcript())
}

/// What it says to them in a session that is ready for queries.
fn answer_in_session(endpoint: &Endpoint, bytes: &[u8]) -> Vec<Error> {
    let mut client = RawClient::session(endpoint, "postgres");
    client.send(bytes);
    errors(&client.transcript())
}

/// The gateway says what the server says, and nothing where the server hangs up without a word: what drivers make of
/// either is known (node-postgres takes a FATAL error for one of the program's).
fn assert_answered(what: &str, direct: &[Error], through: &[Error]) {
    assert_eq!(direct, through, "{what}");
}

fn packet(length: u32, code: [u8; 4], rest: &[u8]) -> Vec<u8> {
    [&length.to_be_bytes()[..], &code, rest].concat()
}

#[test]
fn strangers_at_the_port_are_told_what_postgresql_tells_them() {
    let server = Server::shared();
    let gateway = server.gateway();
    let mut bystander = Bystander::new(&gateway);
    let version = [0, 3, 0, 0];
    let client_hello = [&[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3][..], &[7; 505]].concat();
    let cases = [
        ("garbage", vec![0xa5; 400]),
        ("HTTP", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec()),
        ("a TLS ClientHello", client_hello),
        ("the longest packet", packet(10_004, version, &[0; 9_996])),
        ("a packet that is just too long", packet(10_005, version, &[0; 9_997])),
        ("a length of 2 GiB", packet(0x8000_0000, version, &[])),
        ("a length of 0", packet(0, version, &[])),
        ("a length of 3", packet(3, version, &[])),
        ("a length of 7", packet(7, version, &[])),
        ("version 4.0", packet(9, [0, 4, 0, 0], &[0])),
        ("an unknown request", packet(8, [0x04, 0xd2, 0x16, 0x31], &[])),
        ("parameters without an end", packet(19, version, b"user\0ann\0x\0")),
        ("bytes behind the parameters", packet(22, version, b"user\0onetrip\0\0x")),
        ("a cancel request that is too short", packet(12, [0x04, 0xd2, 0x16, 0x2e], &[0; 4])),
        ("a cancel request that is too long", packet(20, [0x04, 0xd2, 0x16, 0x2e], &[0; 12])),
        ("a cancel request without anything", packet(8, [0x04, 0xd2, 0x16, 0x2e], &[])),
    ];
    for (what, bytes) in cases {
        let direct = answer_to(&server.direct(), &bytes);
        assert_answered(what, &direct, &answer_to(&gateway.endpoint(), &bytes));
        bystander.is_served();
    }
}

#[test]
fn clients_of_protocol_2_are_refused_in_its_own_form() {
    let server = Server::shared();
    let gateway = server.gateway();
    for major in [1, 2] {
        let answer = |endpoint: &Endpoint| {
            let mut stream = endpoint.connect();
            stream.write_all(&packet(9, [0, major, 0, 0], &[0])).expect("it is taken");
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).expect("it hangs up");
            String::from_utf8(answer).expect("text")
        };
        let direct = answer(&server.direct());
        assert!(direct.starts_with("EFATAL:  unsupported frontend protocol"), "{direct}");
        assert_eq!(direct, answer(&gateway.endpoint()));
    }
}

#[test]
fn a_second_request_for_encryption_is_refused_as_postgresql_refuses_it() {
    let server = Server::shared();
    let gateway = server.gateway();
    let asked_twice = |endpoint: &Endpoint| {
        let mut client = RawClient::connect(endpoint);
        client.send(&ssl_request());
        client.await_count(SINGLE_BYTE, 1);
        // In two pieces, so that this client does not expect a single byte again.
        client.send(&ssl_request()[..5]);
        client.send(&ssl_request()[5..]);
        errors(&client.transcript())
    };
    let direct = asked_twice(&server.direct());
    assert_eq!(direct[0].1, "0A000");
    assert_eq!(direct, asked_twice(&gateway.endpoint()));
}

#[test]
fn what_comes_along_with_a_request_for_encryption_is_refused_as_postgresql_refuses_it() {
    let server = Server::shared();
    let gateway = server.gateway();
    let gssenc_request = packet(8, [0x04, 0xd2, 0x16, 0x30], &[]);
    for (what, more) in [
        ("a second one", ssl_request()),
        ("one for GSSAPI", gssenc_request),
        ("a startup packet", startup("postgres")),
    ] {
        let answer = |endpoint: &Endpoint| {
            let mut stream = endpoint.connect();
            stream.set_timeouts(PATIENCE);
            // In one write: both are there when the first is looked at.
            stream.write_all(&[ssl_request(), more.clone()].concat()).expect("it is taken");
            let mut answer = vec![0; 1];
            stream.read_exact(&mut answer).expect("a byte");
            let mut transcript = Transcript::default();
            let mut rest = Vec::new();
            stream.read_to_end(&mut rest).expect("it hangs up");
            transcript.push(&rest);
            (answer, errors(&transcript))
        };
        let direct = answer(&server.direct());
        assert_eq!(direct.1[0].2, "received unencrypted data after SSL request", "{what}");
        assert_eq!(direct, answer(&gateway.endpoint()), "{what}");
    }
}

#[test]
fn requests_for_encryption_in_turn_are_answered_once_each_as_postgresql_18_answers_them() {
    // Its build has no GSSAPI, as the gateway has none. PostgreSQL 15 takes them in turn without end.
    let server = Server::start(&["--version", "18", "--auth", "trust"]);
    let gateway = server.gateway();
    let gssenc_request = || packet(8, [0x04, 0xd2, 0x16, 0x30], &[]);
    for (what, requests) in [
        ("the first again", [ssl_request(), gssenc_request(), ssl_request()]),
        ("the second again", [ssl_request(), gssenc_request(), gssenc_request()]),
        ("the other order", [gssenc_request(), ssl_request(), gssenc_request()]),
    ] {
        let answer = |endpoint: &Endpoint| {
            let mut stream = endpoint.connect();
            stream.set_timeouts(PATIENCE);
            let [first, second, third] = &requests;
            for request in [first, second] {
                stream.write_all(request).expect("it is taken");
                let mut byte = [0];
                stream.read_exact(&mut byte).expect("a byte");
                assert_eq!(&byte, b"N", "{what}");
            }
            stream.write_all(third).expect("it is taken");
            let (mut transcript, mut rest) = (Transcript::default(), Vec::new());
            stream.read_to_end(&mut rest).expect("it hangs up");
            transcript.push(&rest);
            let error = errors(&transcript).remove(0);
            // The newest version that it names is its own: the gateway speaks 3.0 alone.
            (error.1, error.2.split(':').next().map(str::to_owned))
        };
        let direct = answer(&server.direct());
        assert_eq!(direct.0, "0A000", "{what}");
        assert_eq!(direct, answer(&gateway.endpoint()), "{what}");
    }
}

#[test]
fn broken_framing_inside_a_session_is_answered_as_postgresql_answers_it() {
    let server = Server::shared();
    let gateway = server.gateway();
    let mut bystander = Bystander::new(&gateway);
    let header = |tag: u8, length: u32| [&[tag][..], &length.to_be_bytes()].concat();
    let cases = [
        ("a message of 2 GiB", header(b'Q', 0x8000_0000)),
        ("a message of nearly 2 GiB", header(b'Q', 0x7fff_ffff)),
        ("a message of more than 1 GiB", header(b'd', 0x4000_0000)),
        ("a message of 1 GiB less one byte", header(b'Q', 0x3fff_ffff)),
        ("a Describe of more than 10,000 bytes", [header(b'D', 10_001), vec![b'S'; 10]].concat()),
        ("an Execute of more than 10,000 bytes", header(b'E', 10_001)),
        ("a Close of more than 10,000 bytes", header(b'C', 10_001)),
        ("a Flush of more than 10,000 bytes", header(b'H', 10_001)),
        ("a Sync of more than 10,000 bytes", header(b'S', 10_001)),
        ("a Terminate of more than 10,000 bytes", header(b'X', 10_001)),
        ("a CopyDone of more than 10,000 bytes", header(b'c', 10_001)),
        ("a CopyFail of more than 10,000 bytes", header(b'f', 10_001)),
        ("a length of 3", header(b'Q', 3)),
        ("a length of 0", header(b'S', 0)),
        ("an unknown message", header(b'z', 4)),
        ("an unknown message with a bad length", header(b'z', 0)),
        ("a password nobody asked for", [header(b'p', 0x7fff_ffff), vec![0; 5]].concat()),
        ("HTTP", b"GET / HTTP/1.1\r\n\r\n".to_vec()),
        ("zeros", vec![0; 64]),
        ("garbage", vec![0xa5; 400]),
    ];
    for (what, bytes) in cases {
        let direct = answer_in_session(&server.direct(), &bytes);
        assert_answered(what, &direct, &answer_in_session(&gateway.endpoint(), &bytes));
        bystander.is_served();
    }
}

#[test]
fn what_is_sent_in_place_of_a_password_is_answered_as_postgresql_answers_it() {
    let server = Server::start(&["--auth", "password"]);
    let gateway = server.gateway();
    let asked = |endpoint: &Endpoint, bytes: &[u8]| {
        let mut client = RawClient::connect(endpoint);
        client.send(&startup("postgres"));
        client.await_count(backend::AUTHENTICATION, 1);
        client.send(bytes);
        errors(&client.transcript())
    };
    let password = |length: usize| message(b'p', &[vec![b'x'; length], vec![0]].concat());
    let right = format!("{}\0", server.at.password).into_bytes();
    let cases = [
        ("65 KiB", password(65 * 1024)),
        ("a password that is just too long", password(65_531)),
        ("the longest password", password(65_530)),
        ("a header that announces 2 GiB", vec![b'p', 0x80, 0, 0, 0]),
        ("a query", query("SELECT 1")),
        ("a Sync", sync()),
        ("an unknown message", message(b'z', b"")),
        ("an empty password", message(b'p', b"\0")),
        ("a password without its zero", message(b'p', b"secret")),
        (
            "the password, then a query, then the end",
            [message(b'p', &right), query("SELECT 1/0"), terminate()].concat(),
        ),
    ];
    for (what, bytes) in cases {
        let direct = asked(&server.direct(), &bytes);
        assert_answered(what, &direct, &asked(&gateway.endpoint(), &bytes));
    }
}

/// Listens, and does this with each connection.
fn upstream_that(act: impl Fn(std::net::TcpStream) + Send + 'static) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
    let port = listener.local_addr().expect("it is bound").port();
    thread::spawn(move || listener.incoming().flatten().for_each(act));
    port
}

fn gateway_to(port: u16, settings: &str) -> RunningGateway {
    RunningGateway::start(config(conninfo(&format!(
        "postgres://onetrip@127.0.0.1:{port}/postgres?{settings}"
    ))))
}

/// The one error that a client gets, within a bounded time.
fn refusal(gateway: &RunningGateway) -> Error {
    let started = Instant::now();
    let answers = answer_to(&gateway.endpoint(), &startup("postgres"));
    assert!(started.elapsed() < Duration::from_secs(5), "it took {:?}", started.elapsed());
    assert_eq!(answers.len(), 1, "{answers:?}");
    answers.into_iter().next().expect("one answer")
}

#[test]
fn an_upstream_that_refuses_connections_is_named_to_the_client() {
    let closed =
        TcpListener::bind(("127.0.0.1", 0)).expect("a port is free").local_addr().expect("bound").port();
    let gateway = gateway_to(closed, "sslmode=prefer");
    let (severity, sqlstate, message) = refusal(&gateway);
    assert_eq!((severity.as_str(), sqlstate.as_str()), ("FATAL", "08006"));
    assert!(message.contains(&format!("127.0.0.1:{closed}")) && message.contains("refused"), "{message}");
    assert!(message.contains("Is the server running on that host"), "{message}");
}

#[test]
fn an_upstream_that_is_not_postgresql_is_called_so() {
    let web_server = || {
        upstream_that(|mut client| {
            let _ = client.read(&mut [0; 1024]);
            let _ = client.write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
        })
    };
    for mode in ["disable", "require"] {
        let (_, _, message) = refusal(&gateway_to(web_server(), &format!("sslmode={mode}")));
        assert!(message.contains("is it a PostgreSQL server?"), "{mode}: {message}");
    }
}

#[test]
fn an_upstream_that_hangs_up_at_once_hangs_up_on_the_client() {
    let port = upstream_that(drop);
    let (_, sqlstate, message) = refusal(&gateway_to(port, "sslmode=require"));
    assert_eq!(sqlstate, "08006", "{message}");
    // Without TLS the startup packet is the first that the server sees: the client sees it hang up, as directly.
    let plain = answer_to(&gateway_to(port, "sslmode=disable").endpoint(), &startup("postgres"));
    assert_eq!(plain, []);
}

#[test]
fn an_upstream_that_never_answers_is_given_up_in_time() {
    // Accepted by the kernel and never answered.
    let silent = TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
    let port = silent.local_addr().expect("it is bound").port();
    let (_, sqlstate, message) = refusal(&gateway_to(port, "sslmode=prefer&connect_timeout=2"));
    assert_eq!(sqlstate, "08006");
    assert!(message.contains("no answer within 2 s"), "{message}");
}

#[test]
fn a_server_that_starts_to_talk_nonsense_is_not_relayed() {
    let port = upstream_that(|mut client| {
        let _ = client.read(&mut [0; 1024]);
        let ready = [message(b'R', &[0; 4]), message(b'Z', b"I")].concat();
        let _ = client.write_all(&ready);
        let _ = client.read(&mut [0; 1024]);
        let _ = client.write_all(b"Z\0\0\0\0nonsense");
    });
    let gateway = gateway_to(port, "sslmode=disable");
    let (severity, sqlstate, message) = answer_in_session(&gateway.endpoint(), &query("SELECT 1")).remove(0);
    assert_eq!((severity.as_str(), sqlstate.as_str()), ("FATAL", "08P01"));
    assert!(message.contains("is it a PostgreSQL server?"), "{message}");
}

fn traced(path: &Path) -> GatewayConfig {
    GatewayConfig { trace: Some(path.to_owned()), ..config(Server::shared().upstream()) }
}

/// Complete blocks in a trace, and the bytes behind them.
fn blocks(path: &Path) -> (usize, u64) {
    let mut reader = TraceReader::open(path).expect("it is a trace");
    let mut count = 0;
    while reader.next_block().expect("it can be read").is_some() {
        count += 1;
    }
    (count, reader.gaps().tail_bytes + reader.gaps().damaged_bytes)
}

/// The same once there is more than the first block: sessions do not wait for the trace.
fn written_blocks(path: &Path) -> (usize, u64) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let found = blocks(path);
        if found.0 > 1 || Instant::now() > deadline {
            return found;
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// What a report on a trace is made from.
fn read_back(path: &Path) -> Summary {
    let mut reader = TraceReader::open(path).expect("it is a trace");
    let mut analyzer = Analyzer::new();
    while let Some(block) = reader.next_block().expect("it can be read") {
        analyzer.block(block.stream, block.payload).expect("good records");
    }
    analyzer.gaps(reader.gaps());
    analyzer.finish(&Mutes::default()).summary
}

#[test]
fn a_trace_that_cannot_be_created_is_refused_at_the_start() {
    let directory = tempfile::tempdir().expect("a directory");
    let nowhere = directory.path().join("no/such/directory.trace");
    for (path, reason) in [
        (nowhere.as_path(), "No such file or directory"),
        (directory.path(), "Is a directory"),
        (Path::new("/dev/full"), "No space left on device"),
    ] {
        let error = Gateway::start(traced(path)).expect_err("there is nowhere to write to").to_string();
        assert!(error.starts_with("cannot write the trace: "), "{error}");
        assert!(error.contains(reason) && error.contains(&path.display().to_string()), "{error}");
    }
}

/// A file system of 256 KiB, where this process may mount one.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Option<Self> {
        let directory = tempfile::tempdir().expect("a directory");
        let mut mount = Command::new("mount");
        mount
            .args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"])
            .arg(directory.path())
            .stderr(std::process::Stdio::null());
        mount.status().is_ok_and(|status| status.success()).then_some(Self(directory))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // A mount left behind is seen by whoever runs the tests.
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_disk_that_runs_full_ends_the_trace_and_not_the_service() {
    assert_outlives_a_full_disk(Server::shared().upstream());
}

#[test]
fn a_disk_that_runs_full_ends_the_trace_and_not_the_service_of_a_stub() {
    assert_outlives_a_full_disk(Stub::start().upstream());
}

fn assert_outlives_a_full_disk(upstream: Conninfo) {
    let Some(disk) = SmallDisk::mount() else {
        // The superuser may mount, and tests it wherever all tests run.
        assert!(!rustix::process::geteuid().is_root(), "no file system of 256 KiB could be mounted");
        return;
    };
    let path = disk.0.path().join("small.trace");
    let gateway = RunningGateway::start(GatewayConfig { trace: Some(path.clone()), ..config(upstream) });
    let mut session = Bystander::new(&gateway);
    for number in 0..300 {
        // A template of its own each, of some kilobytes.
        let columns: String = (0..200).map(|column| format!(", 1 AS column_{number}_{column}")).collect();
        session.0.send(&query(&format!("SELECT 1{columns}")));
    }
    session.0.await_count(backend::READY_FOR_QUERY, 301);
    session.is_served();
    let written = written_blocks(&path);
    Bystander::new(&gateway).is_served();
    let outcome = gateway.stop();
    let error = outcome.trace_error.expect("the trace is not complete, and the outcome says so");
    assert!(error.contains("No space left on device") && error.contains("small.trace"), "{error}");
    assert!(error.contains("are missing"), "{error}");
    assert!(written.0 > 1 && blocks(&path).0 >= written.0, "{written:?}");
    assert_eq!(blocks(&path).1, 0, "the file was cut back to its last complete block");
    // The trace says itself that it is not whole, and the live counts are.
    let read = read_back(&path);
    assert!(read.gaps.lost_bytes > 0 && !read.gaps.is_open, "{:?}", read.gaps);
    let live = outcome.analyzer.finish(&Mutes::default()).summary;
    assert_eq!((live.gaps.has_loss(), live.gaps.is_open), (false, false), "{:?}", live.gaps);
    assert_eq!(live.sessions, 2);
}

#[test]
fn what_is_no_trace_is_refused_in_words() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("no.trace");
    for bytes in [&b""[..], b"onetrip", b"PGDMP and so on and so forth", &[0; 4096]] {
        std::fs::write(&path, bytes).expect("there is room");
        let error = TraceReader::open(&path).expect_err("it is no trace");
        assert!(matches!(error, TraceError::NotATrace(_)), "{error}");
        assert!(error.to_string().contains("no.trace"), "{error}");
    }
    let missing = TraceReader::open(&directory.path().join("missing")).expect_err("it is not there");
    assert!(missing.to_string().contains("No such file"), "{missing}");
}

/// Names the trace to write for the gateway that is killed.
const KILLED_TRACE: &str = "ONETRIP_TEST_KILLED_TRACE";
const KILLED_UPSTREAM: &str = "ONETRIP_TEST_KILLED_UPSTREAM";

/// Not a test by itself: the process that `a_trace_survives_…` kills.
#[test]
#[ignore = "run by another test"]
fn a_gateway_in_a_process_of_its_own() {
    let (Ok(trace), Ok(upstream)) = (std::env::var(KILLED_TRACE), std::env::var(KILLED_UPSTREAM)) else {
        return;
    };
    let config = GatewayConfig { trace: Some(trace.into()), ..config(conninfo(&upstream)) };
    let gateway = RunningGateway::start(config);
    process::serve(&gateway);
}

#[test]
fn a_trace_survives_the_killing_of_its_gateway_up_to_the_last_complete_block() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("killed.trace");
    let port = Server::shared().at.port;
    let (mut process, endpoint) = process::start(
        Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "a_gateway_in_a_process_of_its_own", "--ignored", "--nocapture"])
            .env(KILLED_TRACE, &path)
            .env(KILLED_UPSTREAM, format!("postgres://onetrip@127.0.0.1:{port}/postgres?sslmode=disable")),
    );
    let mut session = RawClient::session(&endpoint, "postgres");
    let deadline = Instant::now() + PATIENCE;
    let mut queries = 0;
    while blocks(&path).0 < 4 {
        assert!(Instant::now() < deadline, "the trace does not grow while its gateway runs");
        session.query(&format!("SELECT {queries} AS column_{queries}"));
        queries += 1;
    }
    process.kill().expect("it runs");
    process.wait().expect("it ends");
    let whole = std::fs::read(&path).expect("the trace is there");
    let (complete, _) = blocks(&path);
    assert!(complete >= 4);
    let cut = directory.path().join("cut.trace");
    let mut seen = Vec::new();
    for length in (24..whole.len()).step_by(whole.len() / 200 + 1).chain([whole.len()]) {
        std::fs::write(&cut, &whole[..length]).expect("there is room");
        seen.push(blocks(&cut).0);
    }
    assert!(read_back(&path).gaps.is_open, "nobody ended it");
    assert_eq!(seen.first(), Some(&0));
    assert!(seen.is_sorted() && seen.last() == Some(&complete), "{seen:?} of {complete}");
}
