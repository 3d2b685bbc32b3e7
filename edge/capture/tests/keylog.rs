//! TLS with a key log: what a capture says of real sessions must be what tshark says with the same log.
//!
//! A server with TLS is spoken to by a client that writes its secrets (`keylog.py`), for every cipher suite that rustls has
//! and this server takes, while tcpdump watches. Where this user may not capture packets, the tests say so and compare
//! nothing.

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, OnceLock};

use common::tcpdump::Tcpdump;
use onetrip_capture::{Capture, CaptureConfig, CaptureFile, KeyLog};
use onetrip_ledger::network::NetworkSummary;
use onetrip_ledger::{Analyzer, Mutes, Summary};
use onetrip_pgserver::PgServer;
use onetrip_sql::Lifter;

const TRIES: usize = 5;
const SUITES: [&str; 6] = [
    "TLSv1_3",
    "TLSv1_3:TLS_AES_128_GCM_SHA256",
    "TLSv1_3:TLS_CHACHA20_POLY1305_SHA256",
    "TLSv1_2:ECDHE-RSA-AES128-GCM-SHA256",
    "TLSv1_2:ECDHE-RSA-AES256-GCM-SHA384",
    "TLSv1_2:ECDHE-RSA-CHACHA20-POLY1305",
];
/// Statements that the client runs on each connection: simple ones, those of a prepared one, and long ones.
const QUERIES: u64 = 12 + 3;
const RUNS: u64 = 6;

struct Made {
    port: u16,
    file: Vec<u8>,
    log: Vec<u8>,
}

fn real() -> Option<&'static Made> {
    static MADE: OnceLock<Option<Made>> = OnceLock::new();
    MADE.get_or_init(|| {
        let server = PgServer::start(&["--auth", "trust", "--ssl"]);
        for _ in 0..TRIES {
            let directory = tempfile::tempdir().expect("a directory");
            let log = directory.path().join("keys.log");
            let tcpdump = Tcpdump::start(server.at.port)?;
            let client = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/keylog.py");
            let done = Command::new("python3")
                .arg(client)
                .args([&server.at.host, &server.at.port.to_string(), &server.at.user])
                .arg(&log)
                .args(SUITES)
                .output()
                .expect("python3 runs");
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            if let Some(file) = tcpdump.stop() {
                let log = std::fs::read(&log).expect("the client has written it");
                return Some(Made { port: server.at.port, file, log });
            }
        }
        panic!("the kernel has dropped packets of {TRIES} captures");
    })
    .as_ref()
}

fn analyze(file: &[u8], port: u16, log: Option<&[u8]>) -> (Summary, NetworkSummary) {
    let keys = log.map(|log| Arc::new(KeyLog::parse(log).expect("a key log")));
    let config = CaptureConfig { postgres_ports: vec![port], keys, ..CaptureConfig::default() };
    let (mut reader, mut capture, mut analyzer) = (CaptureFile::new(), Capture::new(config), Analyzer::new());
    let mut rest = file;
    loop {
        while let Some(packet) = reader.next_packet().expect("a good file") {
            capture.packet(&packet, &mut |stream, block| analyzer.block(stream, block).expect("own records"));
        }
        let count = rest.len().min(reader.room().len());
        if count == 0 {
            break;
        }
        reader.room()[..count].copy_from_slice(&rest[..count]);
        reader.filled(count);
        rest = &rest[count..];
    }
    let network = capture.finish(0, &mut |stream, block| analyzer.block(stream, block).expect("own records"));
    (analyzer.finish(&Mutes::default()).summary, network)
}

/// Templates by how often they ran.
fn runs(summary: &Summary) -> BTreeMap<String, u64> {
    summary.templates.iter().map(|template| (template.text.clone(), template.executions)).collect()
}

/// Templates by how often their text was sent, as tshark has them.
fn tshark(made: &Made) -> BTreeMap<String, u64> {
    let directory = tempfile::tempdir().expect("a directory");
    let (capture, log) = (directory.path().join("tls.pcap"), directory.path().join("keys.log"));
    std::fs::write(&capture, &made.file).expect("room for a file");
    std::fs::write(&log, &made.log).expect("room for a file");
    let done = Command::new("tshark")
        .arg("-r")
        .arg(&capture)
        .args(["-o", &format!("tls.keylog_file:{}", log.display())])
        .args(["-d", &format!("tcp.port=={},pgsql", made.port), "-T", "fields", "-E", "aggregator=\u{2}"])
        .args(["-e", "pgsql.query"])
        .output()
        .expect("tshark is installed (scripts/setup test)");
    assert!(done.status.success());
    let mut said = BTreeMap::new();
    for query in
        String::from_utf8_lossy(&done.stdout).split(['\n', '\u{2}']).filter(|query| !query.is_empty())
    {
        let template = Lifter::new().lift(query.as_bytes(), true).template().to_vec();
        *said.entry(String::from_utf8_lossy(&template).into_owned()).or_default() += 1;
    }
    said
}

#[test]
fn statements_of_tls_sessions_are_those_that_tshark_sees_with_the_same_key_log() {
    let Some(made) = real() else { return };
    let (summary, network) = analyze(&made.file, made.port, Some(&made.log));
    let sessions = SUITES.len() as u64;
    assert_eq!((network.capture.encrypted, network.capture.unknown_bytes), (0, 0));
    assert!(network.paths.iter().all(|named| named.protocol == "postgresql over TLS"));
    assert_eq!((summary.connections, summary.sessions), (sessions, sessions));
    assert_eq!((summary.unanswered, summary.undecoded, summary.unasked_replies), (0, 0, 0));
    assert_eq!(summary.statements, sessions * (QUERIES + RUNS));
    // SSLRequest, a handshake of two trips, the startup packet; then each statement and the Parse. TLS 1.3 needs one trip, and
    // another as this server's curve is not the one that the clients try first: it asks them to try again.
    assert_eq!(summary.trips.connect, sessions * (1 + 2 + 1));
    assert_eq!(summary.trips.work(), sessions * (QUERIES + 1 + RUNS));
    let mut ours = runs(&summary);
    let theirs = tshark(made);
    // tshark shows the text that was prepared; we count how often it ran.
    let prepared = ours.get_mut("SELECT relkind FROM pg_class WHERE oid = $1").expect("it ran");
    assert_eq!(std::mem::replace(prepared, sessions), sessions * RUNS);
    assert_eq!(ours, theirs);
}

#[test]
fn without_its_secrets_a_session_is_counted_by_turns_as_without_a_key_log() {
    let Some(made) = real() else { return };
    let (without, _) = analyze(&made.file, made.port, None);
    let (empty, network) = analyze(&made.file, made.port, Some(b"# nothing\n"));
    assert_eq!(network.capture.encrypted, SUITES.len() as u64);
    assert_eq!((empty.trips, empty.statements, empty.connections), (without.trips, 0, without.connections));
    // Secrets that belong to other sessions open nothing, and nothing is guessed.
    let text = String::from_utf8_lossy(&made.log).into_owned();
    let swapped: String = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let (begin, secret) = line.rsplit_once(' ').expect("three words");
            let other: String = secret.chars().rev().collect();
            format!("{begin} {other}\n")
        })
        .collect();
    let (wrong, network) = analyze(&made.file, made.port, Some(swapped.as_bytes()));
    assert!(wrong.templates.iter().all(|template| !template.text.contains("SELECT")), "{:?}", runs(&wrong));
    assert_eq!((wrong.statements, wrong.findings), (0, Vec::new()));
    assert_eq!(network.capture.missed_bytes, 0);
}

#[test]
fn after_a_gap_records_open_again_and_nothing_is_guessed() {
    let Some(made) = real() else { return };
    let (whole, _) = analyze(&made.file, made.port, Some(&made.log));
    let known = runs(&whole);
    let (header, packets) = common::split(&made.file);
    let payload =
        |packet: &[u8]| packet.len() - 16 - 14 - 20 - usize::from(packet[16 + 14 + 20 + 12] >> 4) * 4;
    // Each packet with data that is neither of a handshake nor of a log-in: those come after the first kilobytes.
    let places: Vec<usize> = (0..packets.len()).filter(|place| payload(&packets[*place]) > 0).collect();
    let (mut seen, mut tried) = (0_u64, 0_u64);
    for skipped in places.iter().skip(5).step_by(15) {
        let kept: Vec<_> = packets
            .iter()
            .enumerate()
            .filter(|(place, _)| place != skipped)
            .map(|(_, packet)| packet.clone())
            .collect();
        let edited = [&header[..], &kept.concat()].concat();
        let (summary, network) = analyze(&edited, made.port, Some(&made.log));
        seen += u64::from(network.capture.missed_bytes > 0);
        tried += 1;
        for (text, count) in runs(&summary) {
            let is_known = known.get(&text).is_some_and(|all| count <= *all);
            assert!(is_known || !text.contains("SELECT"), "packet {skipped}: {text} {count} times");
        }
        // One connection of six may be closed where its handshake is not whole; all others are known.
        assert!(summary.statements + QUERIES + RUNS >= whole.statements, "packet {skipped}");
    }
    assert!(
        tried > 20 && seen * 4 > tried * 3,
        "{seen} gaps of {tried} are seen: those that somebody acknowledged"
    );
}
