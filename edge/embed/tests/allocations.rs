//! Executions of prepared statements allocate nothing in Rust, and nothing in SQLite beyond what it preallocates for a
//! session, unless they write: a changed page is kept until its transaction ends.
#![allow(unsafe_code)] // a counting allocator cannot be written without

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::ffi;
use support::Fixture;

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        BYTES.fetch_add(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: as promised by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as promised by the caller.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        BYTES.fetch_add(size as u64, Ordering::Relaxed);
        // SAFETY: as promised by the caller.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What SQLite has taken from malloc, in bytes, at most so far since the last call.
fn sqlite_peak_bytes() -> i64 {
    let (mut now, mut peak) = (0, 0);
    // SAFETY: both places are valid for the call.
    unsafe { ffi::sqlite3_status64(ffi::SQLITE_STATUS_MEMORY_USED, &mut now, &mut peak, 1) };
    peak - now
}

/// Allocations of 1,000 executions, client included, after the buffers have grown.
fn allocations_of(client: &mut support::Client, request: &[u8], reply_len: usize) -> (u64, u64) {
    let mut reply = vec![0; reply_len];
    let mut trip = || {
        client.stream.write_all(request).unwrap();
        client.stream.read_exact(&mut reply).unwrap();
    };
    for _ in 0..50 {
        trip();
    }
    let before = (ALLOCATIONS.load(Ordering::Relaxed), BYTES.load(Ordering::Relaxed));
    for _ in 0..1000 {
        trip();
    }
    (ALLOCATIONS.load(Ordering::Relaxed) - before.0, BYTES.load(Ordering::Relaxed) - before.1)
}

#[test]
fn an_execution_of_a_prepared_statement_allocates_nothing() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    client.run("CREATE TABLE t (id int PRIMARY KEY, v varchar(100), n numeric(8,2), at timestamptz)");
    client.run(
        "INSERT INTO t SELECT n, repeat('x', 100), n / 4.0, '2024-05-06 07:08:09.5+00' FROM generate_series(1, 100) AS n",
    );
    let cases: [(&str, &[Option<&str>]); 6] = [
        ("VALUES (1)", &[]),
        ("SELECT v FROM t WHERE id = $1", &[Some("7")]),
        ("SELECT * FROM t WHERE id = $1 AND at > $2", &[Some("7"), Some("2024-01-01 00:00:00+00")]),
        ("SELECT id, n FROM t WHERE n < $1 ORDER BY id LIMIT 20", &[Some("20.5")]),
        ("UPDATE t SET n = n + $1 WHERE id = $2", &[Some("0.25"), Some("7")]),
        ("SELECT count(*) FROM t WHERE v = $1", &[Some("y")]),
    ];
    for (text, values) in cases {
        // A server of its own: where another session waits, too, the lookout may start a thread.
        let alone = Fixture::with(|options| options.database = fixture.directory.path().join("test.db"));
        let mut client = alone.client();
        client.parse("s", text, &[]).sync();
        client.bind("", "s", values, 0).execute("", 0);
        let reply_len: usize = client.sync().iter().map(|message| 5 + message.body.len()).sum();
        let request = client.encoded(|client| {
            client.bind("", "s", values, 0).execute("", 0).bare(b'S');
        });
        sqlite_peak_bytes();
        // Where a statement takes long, as on a busy machine, a thread is started that takes over, and stays.
        let attempts = (0..4).map(|_| allocations_of(&mut client, &request, reply_len));
        let (count, bytes) = attempts.min().expect("there are some");
        let peak = sqlite_peak_bytes();
        println!(
            "{text}: {count} allocations of {bytes} bytes in 1000 executions, SQLite's peak {peak} bytes"
        );
        assert_eq!(count, 0, "{text}: {bytes} bytes");
        assert!(peak == 0 || text.starts_with("UPDATE"), "{text}: {peak} bytes in SQLite");
        client.close(b'S', "s").sync();
    }
}
