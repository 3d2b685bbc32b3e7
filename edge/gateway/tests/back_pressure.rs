//! Peers that do not read: the gateway stops reading from the other side, its memory stays bounded, and nothing hangs.

mod common;

use std::io::{Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use common::client::{PATIENCE, Stream};
use common::messages::*;
use common::server::{RunningGateway, Server, config, conninfo};
use common::transcript::Transcript;
use onetrip_wire::pg::backend;

/// Memory that the gateway may take for one connection, with what the allocator keeps back.
const GROWTH_MAX: usize = 8 << 20;

/// The tests measure the memory of one process: one at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes of this process, the gateway included, that are in memory.
fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages: usize =
        statm.split_whitespace().nth(1).and_then(|pages| pages.parse().ok()).expect("a number");
    pages * 4096
}

/// A session that is read from only by its test.
fn open_session(endpoint: &common::client::Endpoint) -> Stream {
    let mut stream = endpoint.connect();
    stream.set_timeouts(PATIENCE);
    stream.write_all(&startup("postgres")).expect("it is taken");
    let (mut seen, mut buffer) = (Transcript::default(), [0; 1024]);
    while seen.count(backend::READY_FOR_QUERY) == 0 {
        let count = stream.read(&mut buffer).expect("the session begins");
        assert!(count > 0, "{seen:?}");
        seen.push(&buffer[..count]);
    }
    stream
}

/// Reads to the end of the stream and counts rows and ReadyForQuery messages.
fn count_to_end(stream: &mut Stream) -> (usize, usize) {
    let (mut rows, mut ready) = (0, 0);
    let mut buffer = vec![0; 256 * 1024];
    let mut pending = Transcript::default();
    loop {
        let count = stream.read(&mut buffer).expect("it goes on until the end");
        if count == 0 {
            return (rows, ready);
        }
        pending.push(&buffer[..count]);
        rows += pending.count(backend::DATA_ROW);
        ready += pending.count(backend::READY_FOR_QUERY);
        pending.clear();
    }
}

#[test]
fn a_client_that_reads_late_costs_no_memory_and_loses_nothing() {
    let _alone = alone();
    let gateway = Server::shared().gateway();
    let mut stream = open_session(&gateway.endpoint());
    let before = resident_bytes();
    let many = query("SELECT x, repeat('r', 1000) FROM generate_series(1, 100000) x");
    stream.write_all(&[many, terminate()].concat()).expect("it is taken");
    let mut growth = 0;
    for _ in 0..20 {
        thread::sleep(Duration::from_millis(25));
        growth = growth.max(resident_bytes().saturating_sub(before));
    }
    assert!(growth < GROWTH_MAX, "{growth} bytes more for a result of 100 MB that nobody reads");
    assert_eq!(count_to_end(&mut stream), (100_000, 1));
}

#[test]
fn a_client_that_only_writes_is_held_back_and_goes_on_when_it_reads() {
    const COUNT: usize = 8_000;
    let _alone = alone();
    let gateway = Server::shared().gateway();
    let mut stream = open_session(&gateway.endpoint());
    let mut writer = stream.try_clone();
    let written = Arc::new(AtomicUsize::new(0));
    let before = resident_bytes();
    let progress = Arc::clone(&written);
    let writing = thread::spawn(move || {
        // 10 KB each way per query, 80 MB in all: more than the kernel's buffers on the way hold.
        let one = query(&format!("SELECT length('{}'), repeat('r', 10000)", "q".repeat(10_000)));
        for _ in 0..COUNT {
            writer.write_all(&one).expect("the peer takes it in the end");
            progress.fetch_add(1, Ordering::SeqCst);
        }
        writer.write_all(&terminate()).expect("the peer takes it in the end");
    });
    let deadline = Instant::now() + PATIENCE;
    let mut last = (written.load(Ordering::SeqCst), Instant::now());
    while last.1.elapsed() < Duration::from_millis(500) {
        assert!(Instant::now() < deadline, "nothing holds the client back");
        thread::sleep(Duration::from_millis(10));
        let now = written.load(Ordering::SeqCst);
        if now != last.0 {
            last = (now, Instant::now());
        }
    }
    assert!(last.0 < COUNT, "all was taken from a client that does not read");
    let growth = resident_bytes().saturating_sub(before);
    assert!(growth < GROWTH_MAX, "{growth} bytes more for a client that does not read");
    assert_eq!(count_to_end(&mut stream), (COUNT, COUNT));
    writing.join().expect("it wrote everything");
}

#[test]
fn a_server_that_does_not_read_holds_the_client_back() {
    assert_held_back(Server::shared(), "disable");
}

#[test]
fn a_server_that_does_not_read_over_tls_holds_the_client_back() {
    assert_held_back(&Server::start(&["--ssl", "--auth", "trust"]), "require");
}

fn assert_held_back(server: &Server, sslmode: &str) {
    let _alone = alone();
    let text = format!("postgres://onetrip@127.0.0.1:{}/postgres?sslmode={sslmode}", server.at.port);
    let gateway = RunningGateway::start(config(conninfo(&text)));
    let mut stream = open_session(&gateway.endpoint());
    let statement = format!("SELECT length('{}')", "q".repeat(30 << 20));
    let large = [query(&statement), terminate()].concat();
    let before = resident_bytes();
    // The server sleeps and reads nothing meanwhile.
    stream.write_all(&query("SELECT pg_sleep(1)")).expect("it is taken");
    let mut writer = stream.try_clone();
    let writing = thread::spawn(move || {
        writer.write_all(&large).expect("the server wakes up and reads");
    });
    thread::sleep(Duration::from_millis(700));
    let growth = resident_bytes().saturating_sub(before);
    assert!(growth < GROWTH_MAX, "{growth} bytes more for a server that does not read");
    assert!(!writing.is_finished(), "30 MB were taken for a server that does not read");
    assert_eq!(count_to_end(&mut stream), (2, 2));
    writing.join().expect("it wrote everything");
}
