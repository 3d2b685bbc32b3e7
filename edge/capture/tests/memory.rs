//! What an open connection of a capture takes from the heap.

mod common;

use onetrip_capture::link::LinkType;
use onetrip_capture::{Capture, CaptureConfig, Packet};
use onetrip_heap::LIVE;
use onetrip_ledger::Analyzer;

use common::{Frame, Talk, mysql};

const CONNECTIONS: u16 = 200;
/// The first ones bring what all share.
const FIRST: u16 = 20;
/// Bytes of a connection that is open and has sent some statements: capture, session and analysis.
const POSTGRES_BYTES_MAX: isize = 16 * 1024;
const MYSQL_BYTES_MAX: isize = 16 * 1024;
/// A value so long that a connection must not keep room for the next one.
const LONG_BYTES: usize = 24 * 1024;

/// Bytes that each connection holds when all of them are open.
fn bytes_each(talk: impl Fn(u16) -> Talk) -> isize {
    let mut capture = Capture::new(CaptureConfig { records_stay: true, ..CaptureConfig::default() });
    let mut analyzer = Analyzer::new();
    let mut open = |ports: std::ops::Range<u16>| {
        let frames: Vec<Frame> = ports.flat_map(|port| talk(port).frames).collect();
        let before = LIVE.get();
        for Frame { at_ns, ip, .. } in &frames {
            let link = LinkType(101);
            let packet = Packet { link, interface: 0, at_ns: *at_ns, data: ip, length: ip.len() };
            capture.packet(&packet, &mut |stream, block| {
                analyzer.block(stream, block).expect("own records");
            });
        }
        LIVE.get() - before
    };
    open(10_000..10_000 + FIRST);
    open(20_000..20_000 + CONNECTIONS) / CONNECTIONS as isize
}

#[test]
fn an_open_connection_of_postgresql_takes_little() {
    let each = bytes_each(|port| {
        let mut talk = Talk::from_port(port);
        talk.log_in();
        for table in 0..12 {
            talk.query(&format!("SELECT id FROM table_{table} WHERE id = {port}"));
        }
        talk.query(&format!("SELECT '{}'", "x".repeat(LONG_BYTES)));
        talk.query("SELECT 1");
        talk
    });
    println!("a connection of PostgreSQL holds {each} bytes");
    assert!(each > 0 && each < POSTGRES_BYTES_MAX, "{each} bytes");
}

#[test]
fn an_open_connection_of_mysql_takes_little() {
    let each = bytes_each(|port| {
        let capabilities = mysql::PLAIN;
        let mut talk = mysql::logged_in(capabilities, port);
        for table in 0..12 {
            talk.client(&mysql::query(&format!("SELECT id FROM table_{table} WHERE id = {port}")));
            talk.server(&mysql::result(0..1, capabilities));
        }
        for piece in mysql::query(&format!("SELECT '{}'", "x".repeat(LONG_BYTES))).chunks(1_448) {
            talk.client_piece(piece);
        }
        talk.server(&mysql::result(0..1, capabilities));
        talk.client(&mysql::query("SELECT 1"));
        talk.server(&mysql::result(0..1, capabilities));
        talk
    });
    println!("a connection of MySQL holds {each} bytes");
    assert!(each > 0 && each < MYSQL_BYTES_MAX, "{each} bytes");
}
