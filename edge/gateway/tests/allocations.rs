//! An exchange allocates nothing in the gateway: what its threads take from the heap, counted, with a stub in place of the
//! database.
//!
//! Alone in its binary: the counter counts all threads but those of the test.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use onetrip_gateway::{Gateway, GatewayConfig, ListenAddress, Remedies};
use onetrip_heap::{ALLOCATIONS_OF_ALL, IS_LEFT_OUT};
use onetrip_target::{Conninfo, Environment};

/// Exchanges before those that are counted: templates are known then, and buffers are there.
const FIRST: usize = 300;
const EXCHANGES: usize = 2_000;
/// How often records go to the recorder, and what that takes at most: the block grows anew, and is analyzed.
const HAND_OVER: Duration = Duration::from_millis(50);
const EACH_HAND_OVER_MAX: usize = 40;
/// An exchange in a hundred may take something: tables that grow.
const EXCHANGES_EACH: usize = 100;
const STARTUP: &[u8] = b"\0\0\0\x16\0\x03\0\0user\0onetrip\0\0";
const QUERY: &[u8] = b"Q\0\0\0\x0dSELECT 1\0";
/// A named statement is run again: Bind, Execute, Sync.
const EXECUTE: &[u8] = b"B\0\0\0\x0f\0one\0\0\0\0\0\0\0E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04";
/// Parse of that statement, and Sync.
const PARSE: &[u8] = b"P\0\0\0\x13one\0SELECT 1\0\0\0S\0\0\0\x04";
/// AuthenticationOk, BackendKeyData, ReadyForQuery.
const WELCOME: &[u8] = b"R\0\0\0\x08\0\0\0\0K\0\0\0\x0c\0\0\0\x07\0\0\0\x07Z\0\0\0\x05I";
/// RowDescription of one column, a row, CommandComplete, ReadyForQuery.
const ROWS: &[u8] = b"T\0\0\0\x1a\0\x01c\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0\
    D\0\0\0\x0b\0\x01\0\0\0\x011C\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I";
/// BindComplete, a row, CommandComplete, ReadyForQuery.
const BOUND: &[u8] = b"2\0\0\0\x04D\0\0\0\x0b\0\x01\0\0\0\x011C\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I";
/// ParseComplete, ReadyForQuery.
const PARSED: &[u8] = b"1\0\0\0\x04Z\0\0\0\x05I";

/// A message of a client's, and its answer.
type Exchange = (&'static [u8], &'static [u8]);

/// Lets one client in, and answers what it sends by its first byte.
fn stub() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
    let port = listener.local_addr().expect("it is bound").port();
    thread::spawn(move || {
        IS_LEFT_OUT.set(true);
        let (mut stream, _) = listener.accept().expect("a client comes");
        stream.set_nodelay(true).expect("a socket");
        stream.read_exact(&mut [0; STARTUP.len()]).expect("a startup packet");
        stream.write_all(WELCOME).expect("it is taken");
        let mut buffer = [0; 64];
        // It ends with its client.
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            let answers = [(QUERY, ROWS), (EXECUTE, BOUND), (PARSE, PARSED)];
            let found = answers.into_iter().find(|(asked, _)| *asked == &buffer[..count]);
            let Some((_, answer)) = found else { return };
            stream.write_all(answer).expect("it is taken");
        }
    });
    port
}

fn exchange(stream: &mut TcpStream, (asked, answer): Exchange) {
    let mut buffer = [0; 128];
    stream.write_all(asked).expect("it is taken");
    stream.read_exact(&mut buffer[..answer.len()]).expect("an answer");
    assert!(buffer[..answer.len()] == *answer);
}

/// Waits until the gateway has analyzed what it has recorded: with the first connection it makes what all of them share.
fn await_rest() {
    let mut before = None;
    loop {
        let now = ALLOCATIONS_OF_ALL.load(Ordering::Relaxed);
        if before.replace(now) == Some(now) {
            return;
        }
        thread::sleep(2 * HAND_OVER);
    }
}

/// Allocations of the gateway's threads in all exchanges, and how many there may be.
fn taken(remedies: Remedies, first: Option<Exchange>, again: Exchange) -> (usize, usize) {
    let upstream = format!("postgres://onetrip@127.0.0.1:{}/postgres?sslmode=disable", stub());
    let upstream = Conninfo::parse(&upstream, &Environment::default()).expect("the settings are good");
    let config = GatewayConfig { spin: Duration::ZERO, remedies, ..GatewayConfig::new(upstream) };
    let gateway = Gateway::start(config).expect("it starts");
    let ListenAddress::Tcp(address) = *gateway.address() else { panic!("it listens at a port") };
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_nodelay(true).expect("a socket");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket");
    stream.write_all(STARTUP).expect("it is taken");
    stream.read_exact(&mut [0; WELCOME.len()]).expect("it is let in, with a key of the gateway's");
    first.into_iter().for_each(|first| exchange(&mut stream, first));
    (0..FIRST).for_each(|_| exchange(&mut stream, again));
    await_rest();
    (0..FIRST).for_each(|_| exchange(&mut stream, again));
    let (before, started) = (ALLOCATIONS_OF_ALL.load(Ordering::Relaxed), Instant::now());
    (0..EXCHANGES).for_each(|_| exchange(&mut stream, again));
    let taken = ALLOCATIONS_OF_ALL.load(Ordering::Relaxed) - before;
    let hand_overs = started.elapsed().as_millis() / HAND_OVER.as_millis() + 1;
    drop(stream);
    gateway.stop();
    (taken, hand_overs as usize * EACH_HAND_OVER_MAX + EXCHANGES / EXCHANGES_EACH)
}

#[test]
fn an_exchange_allocates_nothing() {
    IS_LEFT_OUT.set(true);
    for (what, remedies) in [("observing", Remedies::default()), ("with remedies", Remedies::exact())] {
        for (how, first, again) in
            [("simple", None, (QUERY, ROWS)), ("prepared", Some((PARSE, PARSED)), (EXECUTE, BOUND))]
        {
            let (taken, most) = taken(remedies, first, again);
            println!("{what}, {how}: {taken} allocations in {EXCHANGES} exchanges, at most {most}");
            assert!(taken <= most, "{what}, {how}: {taken} allocations in {EXCHANGES} exchanges");
        }
    }
}
