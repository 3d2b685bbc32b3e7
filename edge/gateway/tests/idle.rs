//! What an idle session keeps: bytes that this process holds on its heap, counted, with a stub in place of the database.
//!
//! Alone in its binary: the counter counts all threads.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicIsize, Ordering};
use std::thread;
use std::time::Duration;

use onetrip_gateway::{Gateway, GatewayConfig, ListenAddress, Remedies};
use onetrip_target::{Conninfo, Environment};

struct Counting;

static LIVE: AtomicIsize = AtomicIsize::new(0);

// SAFETY: every call goes to the system's allocator unchanged; the counter needs no allocation.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the pointer comes from `System.alloc` with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        LIVE.fetch_add(size as isize - layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the pointer comes from `System.alloc` with this layout, the caller answers for the size.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const SESSIONS: usize = 300;
/// Sessions before those that are counted: what all share is there, and buffers that threads keep.
const FIRST: usize = 100;
const PLAIN_BYTES_MAX: isize = 24 * 1024;
const REMEDIED_BYTES_MAX: isize = 40 * 1024;
/// Records leave a session, and its buffers are given back, within 200 ms and one more look.
const SETTLED: Duration = Duration::from_secs(2);
const STARTUP: &[u8] = b"\0\0\0\x16\0\x03\0\0user\0onetrip\0\0";
const QUERY: &[u8] = b"Q\0\0\0\x0dSELECT 1\0";
/// AuthenticationOk, BackendKeyData, ReadyForQuery.
const WELCOME: &[u8] = b"R\0\0\0\x08\0\0\0\0K\0\0\0\x0c\0\0\0\x07\0\0\0\x07Z\0\0\0\x05I";
/// RowDescription of one column, a row, CommandComplete, ReadyForQuery.
const ANSWER: &[u8] = b"T\0\0\0\x1a\0\x01c\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0\
    D\0\0\0\x0b\0\x01\0\0\0\x011C\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I";

/// Lets in one after the other, answers what each asks first, and holds the sockets: four bytes each.
fn stub() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
    let port = listener.local_addr().expect("it is bound").port();
    thread::spawn(move || {
        let mut held = Vec::with_capacity(FIRST + SESSIONS);
        for mut stream in listener.incoming().flatten() {
            let mut startup = [0; STARTUP.len()];
            stream.read_exact(&mut startup).expect("a startup packet");
            stream.write_all(WELCOME).expect("it is taken");
            let mut query = [0; QUERY.len()];
            stream.read_exact(&mut query).expect("a statement");
            stream.write_all(ANSWER).expect("it is taken");
            held.push(stream);
        }
    });
    port
}

/// A session that has asked once.
fn session(address: &ListenAddress) -> TcpStream {
    let ListenAddress::Tcp(address) = address else { panic!("it listens at a port") };
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket");
    for (sent, answer) in [(STARTUP, WELCOME.len()), (QUERY, ANSWER.len())] {
        stream.write_all(sent).expect("it is taken");
        stream.read_exact(&mut vec![0; answer]).expect("an answer");
    }
    stream
}

fn live_bytes() -> isize {
    thread::sleep(SETTLED);
    LIVE.load(Ordering::Relaxed)
}

/// Bytes that an idle session has on the heap.
fn bytes_each(change: impl FnOnce(GatewayConfig) -> GatewayConfig) -> isize {
    let upstream = format!("postgres://onetrip@127.0.0.1:{}/postgres?sslmode=disable", stub());
    let upstream = Conninfo::parse(&upstream, &Environment::default()).expect("the settings are good");
    let config = GatewayConfig { spin: Duration::ZERO, ..GatewayConfig::new(upstream) };
    let gateway = Gateway::start(change(config)).expect("it starts");
    let mut sessions = Vec::with_capacity(FIRST + SESSIONS);
    sessions.extend((0..FIRST).map(|_| session(gateway.address())));
    let before = live_bytes();
    sessions.extend((0..SESSIONS).map(|_| session(gateway.address())));
    let each = (live_bytes() - before) / SESSIONS as isize;
    drop(sessions);
    gateway.stop();
    each
}

#[test]
fn an_idle_session_keeps_little_also_with_trace_and_remedies() {
    let plain = bytes_each(|config| config);
    let directory = tempfile::tempdir().expect("a directory");
    let trace = Some(directory.path().join("idle.trace"));
    let remedied = bytes_each(|config| GatewayConfig { trace, remedies: Remedies::exact(), ..config });
    println!("an idle session keeps {plain} bytes, with trace and remedies {remedied}");
    assert!(plain > size_of::<TcpStream>() as isize, "something is counted: {plain}");
    assert!(plain <= PLAIN_BYTES_MAX, "{plain} bytes");
    assert!(remedied <= REMEDIED_BYTES_MAX, "{remedied} bytes");
}
