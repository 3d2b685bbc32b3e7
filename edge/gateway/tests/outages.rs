//! What a gateway does when its surroundings fail: files that block, peers that vanish, its own end.

mod common;

use std::fs;
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use common::client::{PATIENCE, RawClient};
use common::messages::*;
use common::server::{RunningGateway, Server, config, conninfo, endpoint_of};
use common::stub::Stub;
use onetrip_gateway::{Gateway, GatewayConfig, ListenAddress, Outcome};
use onetrip_ledger::{Mutes, Summary};
use onetrip_link::LinkSpec;
use onetrip_target::Conninfo;
use onetrip_wire::pg::backend;

fn summary(outcome: Outcome) -> Summary {
    outcome.analyzer.finish(&Mutes::default()).summary
}

fn pipe(path: &Path) -> fs::File {
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, 0o600.into(), 0).expect("a pipe");
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    fs::OpenOptions::new().read(true).custom_flags(nonblocking).open(path).expect("its reader")
}

#[test]
fn a_trace_whose_file_blocks_delays_neither_sessions_nor_the_end() {
    assert_not_delayed(Server::shared().upstream());
}

#[test]
fn a_trace_whose_file_blocks_delays_neither_the_sessions_of_a_stub_nor_the_end() {
    assert_not_delayed(Stub::start().upstream());
}

fn assert_not_delayed(upstream: Conninfo) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("stuck.trace");
    let reader = pipe(&path); // which is never read
    let gateway = RunningGateway::start(GatewayConfig { trace: Some(path), ..config(upstream) });
    let mut trips = 0;
    let mut session = RawClient::session(&gateway.endpoint(), "postgres");
    // Far more records than a pipe holds, in statements that all differ, and sessions that end meanwhile.
    for round in 0..30 {
        let mut other = RawClient::session(&gateway.endpoint(), "postgres");
        for number in 0..10 {
            let text = format!("SELECT 1 AS \"{round}_{number}{}\"", "x".repeat(4_000));
            other.query(&text);
            session.query(&text);
            trips += 2;
        }
        other.send(&terminate());
        other.transcript();
    }
    let started = Instant::now();
    let outcome = gateway.stop();
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    let error = outcome.trace_error.clone().expect("the trace is not complete, and the outcome says so");
    assert!(error.contains("takes nothing"), "{error}");
    let counted = summary(outcome);
    assert_eq!((counted.trips.work(), counted.sessions), (trips, 31), "the live counts are whole");
    assert_eq!((counted.gaps.has_loss(), counted.gaps.is_open), (false, false));
    drop(reader);
}

#[test]
fn a_trace_that_is_read_by_another_program_arrives_whole() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("piped.trace");
    let opened = pipe(&path);
    let server = Server::shared();
    let trace = Some(path.clone());
    let gateway = RunningGateway::start(GatewayConfig { trace, ..config(server.upstream()) });
    let reading = thread::spawn(move || {
        let mut bytes = Vec::new();
        let mut file = fs::File::open(path).expect("the pipe");
        drop(opened);
        file.read_to_end(&mut bytes).expect("it ends");
        bytes
    });
    RawClient::session(&gateway.endpoint(), "postgres").query("SELECT 1");
    assert_eq!(gateway.stop().trace_error, None);
    let bytes = reading.join().expect("it is read");
    assert!(bytes.starts_with(b"onetrip\0") && bytes.len() > 200, "{} bytes", bytes.len());
}

/// Timers of the kernel on established connections of this port, by `/proc/net/tcp`.
fn timers(port: u16, place: usize) -> Vec<u8> {
    let table = fs::read_to_string("/proc/net/tcp").expect("Linux");
    let lines = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    lines
        .filter(|fields| {
            let address = fields[place].rsplit(':').next().expect("a port");
            fields[3] == "01" && u16::from_str_radix(address, 16).is_ok_and(|found| found == port)
        })
        .map(|fields| u8::from_str_radix(&fields[5][..2], 16).expect("a timer"))
        .collect()
}

#[test]
fn the_kernel_watches_over_both_legs() {
    let server = Server::start(&["--auth", "trust"]);
    assert_watched(config(server.upstream()), server.at.port, KEEPALIVE);
}

#[test]
fn the_kernel_watches_over_both_legs_of_a_stub() {
    let stub = Stub::start();
    assert_watched(config(stub.upstream()), stub.port, KEEPALIVE);
}

#[test]
fn the_kernel_watches_over_both_legs_of_a_simulated_distance() {
    let stub = Stub::start();
    let link = Some(LinkSpec::with_rtt(Duration::from_millis(1)));
    assert_watched(GatewayConfig { link, ..config(stub.upstream()) }, stub.port, KEEPALIVE);
}

#[test]
fn the_leg_to_the_database_is_not_watched_where_that_is_not_wanted() {
    for rtt in [None, Some(Duration::from_millis(1))] {
        let stub = Stub::start();
        let mut upstream = stub.upstream();
        upstream.keepalives.is_on = false;
        let link = rtt.map(LinkSpec::with_rtt);
        assert_watched(GatewayConfig { link, ..config(upstream) }, stub.port, NO_TIMER);
    }
}

/// Timers of `/proc/net/tcp`.
const NO_TIMER: u8 = 0;
const KEEPALIVE: u8 = 2;

/// Each session's leg to the client has the kernel's keepalive, and the one to the database this timer.
fn assert_watched(config: GatewayConfig, upstream: u16, expected: u8) {
    const LOCAL: usize = 1;
    const REMOTE: usize = 2;
    let gateway = RunningGateway::start(config);
    let sessions: Vec<_> = (0..5).map(|_| RawClient::session(&gateway.endpoint(), "postgres")).collect();
    let deadline = Instant::now() + PATIENCE;
    // The timer of what was just sent comes before that of keepalive.
    let all = |timers: Vec<u8>, wanted: u8| {
        timers.len() == sessions.len() && timers.iter().all(|timer| *timer == wanted)
    };
    let port = gateway.endpoint().port();
    while !(all(timers(port, LOCAL), KEEPALIVE) && all(timers(upstream, REMOTE), expected)) {
        assert!(Instant::now() < deadline, "{:?} {:?}", timers(port, LOCAL), timers(upstream, REMOTE));
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_socket_replaces_a_dead_socket_and_nothing_else() {
    let server = Server::shared();
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("shop.db");
    let listening =
        || GatewayConfig { listen: ListenAddress::Unix(path.clone()), ..config(server.upstream()) };
    fs::write(&path, "precious").expect("there is room");
    let refused = Gateway::start(listening()).expect_err("something is in the way").to_string();
    assert!(refused.contains("no socket") && refused.contains("shop.db"), "{refused}");
    assert_eq!(fs::read_to_string(&path).expect("it is there"), "precious");

    fs::remove_file(&path).expect("it is there");
    drop(UnixListener::bind(&path).expect("a socket that nobody listens at"));
    let gateway = RunningGateway::start(listening());
    RawClient::session(&gateway.endpoint(), "postgres").query("SELECT 1");
    let second = Gateway::start(listening()).expect_err("the first listens").to_string();
    assert!(second.contains("listens there already"), "{second}");
    gateway.stop();
    assert!(!path.exists(), "it was ours");

    // Whoever put something else in its place keeps it.
    let gateway = RunningGateway::start(listening());
    fs::remove_file(&path).expect("it is there");
    fs::write(&path, "another's").expect("there is room");
    let place = fs::metadata(&path).expect("it is there").ino();
    gateway.stop();
    assert_eq!(fs::metadata(&path).expect("it is there").ino(), place);
    assert!(!fs::metadata(&path).expect("it is there").file_type().is_socket());
}

/// Threads of this process that look up names or wait for a file.
fn helper_threads() -> usize {
    let tasks = fs::read_dir("/proc/self/task").expect("Linux").flatten();
    let name = |task: fs::DirEntry| fs::read_to_string(task.path().join("comm")).unwrap_or_default();
    tasks.map(name).filter(|name| name.starts_with("tokio-")).count()
}

#[test]
fn dialling_an_address_takes_no_thread() {
    let server = Server::start(&["--auth", "trust"]);
    let gateway = server.gateway();
    for _ in 0..20 {
        RawClient::session(&gateway.endpoint(), "postgres").query("SELECT 1");
    }
    assert_eq!(helper_threads(), 0);
}

#[test]
fn a_gateway_that_leads_to_itself_says_so_and_takes_no_more_of_itself() {
    let directory = tempfile::tempdir().expect("a directory");
    let socket = directory.path().join(".s.PGSQL.5432");
    let stub = Stub::start();
    let by_tcp = Gateway::start(GatewayConfig {
        listen: ListenAddress::Tcp(([0, 0, 0, 0], 0).into()),
        ..config(stub.upstream())
    });
    let by_tcp = by_tcp.expect("it starts");
    let ListenAddress::Tcp(address) = *by_tcp.address() else { panic!("a port") };
    let by_socket = GatewayConfig { listen: ListenAddress::Unix(socket), ..config(stub.upstream()) };
    let by_socket = Gateway::start(by_socket).expect("it starts");
    for (gateway, itself) in [
        (by_tcp, format!("postgres://ann@127.0.0.1:{}/shop", address.port())),
        (by_socket, format!("postgres:///shop?user=ann&host={}", directory.path().display())),
    ] {
        gateway.leader().lead_to(conninfo(&itself)).expect("it leads there");
        let mut client = RawClient::connect(&endpoint_of(&gateway));
        client.send(&startup("postgres"));
        assert!(client.ends_within(PATIENCE));
        let errors = client.errors();
        assert_eq!((errors.len(), &*errors[0].1), (1, "08006"), "{errors:?}");
        assert!(errors[0].2.contains("is this gateway itself"), "{errors:?}");
        assert_eq!(gateway.accepted(), 1);
        gateway.leader().lead_to(stub.upstream()).expect("it leads there");
        RawClient::session(&endpoint_of(&gateway), "postgres").query("SELECT 1");
        gateway.stop();
    }
}

#[test]
fn a_draining_gateway_lets_end_what_is_under_way_and_says_why_it_ends_the_rest() {
    let server = Server::shared();
    let gateway = Gateway::start(config(server.upstream())).expect("it starts");
    let endpoint = endpoint_of(&gateway);
    let session = || RawClient::session(&endpoint, "postgres");
    let (idle, mut busy, mut inside, mut endless) = (session(), session(), session(), session());
    inside.query("BEGIN");
    busy.send(&query("SELECT pg_sleep(1), 'answered'"));
    endless.send(&query("SELECT pg_sleep(100)"));
    thread::sleep(Duration::from_millis(300));
    gateway.drain();

    let ended = |client: &RawClient, limit| {
        client.ends_within(limit) && client.errors().iter().any(|error| error.1 == "57P01")
    };
    assert!(ended(&idle, Duration::from_secs(1)), "nothing is under way: {:?}", idle.errors());
    assert!(ended(&busy, PATIENCE), "{:?}", busy.errors());
    assert_eq!(busy.count(backend::DATA_ROW), 1, "what was asked is answered");
    assert!(!inside.ends_within(Duration::from_millis(200)), "its transaction goes on");
    inside.query("SELECT 1");
    inside.send(&query("COMMIT"));
    assert!(ended(&inside, PATIENCE), "{:?}", inside.errors());
    assert_eq!(inside.errors()[0].2, "terminating connection due to administrator command");
    let deadline = Instant::now() + PATIENCE;
    while gateway.open_connections() > 1 {
        assert!(Instant::now() < deadline, "{} are left", gateway.open_connections());
        thread::sleep(Duration::from_millis(10));
    }
    let counted = summary(gateway.stop());
    assert!(ended(&endless, PATIENCE), "{:?}", endless.errors());
    assert_eq!((counted.sessions, counted.unanswered), (4, 1));
}

#[test]
fn many_clients_that_ask_for_encryption_and_no_more_cost_two_records_each() {
    let server = Server::shared();
    let gateway = server.gateway();
    let gssenc = [8u32.to_be_bytes(), (1234u32 << 16 | 5680).to_be_bytes()].concat();
    for _ in 0..50 {
        let mut stream = gateway.endpoint().connect();
        stream.set_timeouts(PATIENCE);
        for request in [&ssl_request(), &gssenc] {
            use std::io::Write;
            stream.write_all(request).expect("it is taken");
            stream.read_exact(&mut [0]).expect("a byte");
        }
    }
    let counted = summary(gateway.stop());
    assert_eq!((counted.trips.connect, counted.connections, counted.sessions), (100, 0, 0));
}
