//! Key logs of any content, and TLS sessions of any content with a key log that has them: a reason or bytes, never a panic, and
//! no statement comes of what no key opens.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use onetrip_capture::link::LinkType;
use onetrip_capture::{Capture, CaptureConfig, KeyLog, Packet};
use onetrip_ledger::{Analyzer, Mutes};

const RAW: LinkType = LinkType(101);
/// The random number of the client whose secrets are known.
const RANDOM: [u8; 32] = [7; 32];

fn log() -> KeyLog {
    let random = "07".repeat(32);
    let line = |label: &str, bytes: usize| format!("{label} {random} {}\n", "5a".repeat(bytes));
    let lines = [
        line("CLIENT_RANDOM", 48),
        line("CLIENT_HANDSHAKE_TRAFFIC_SECRET", 32),
        line("SERVER_HANDSHAKE_TRAFFIC_SECRET", 32),
        line("CLIENT_TRAFFIC_SECRET_0", 32),
        line("SERVER_TRAFFIC_SECRET_0", 32),
    ];
    KeyLog::parse(lines.concat().as_bytes()).expect("a key log")
}

fn packet(from_client: bool, sequence: u32, acknowledged: u32, data: &[u8]) -> Vec<u8> {
    let (ports, hosts) = match from_client {
        true => ([0x9c, 0x40, 0x15, 0x38], [10, 0, 0, 1, 10, 0, 0, 2]),
        false => ([0x15, 0x38, 0x9c, 0x40], [10, 0, 0, 2, 10, 0, 0, 1]),
    };
    let mut ip = vec![0x45, 0];
    ip.extend_from_slice(&((40 + data.len()) as u16).to_be_bytes());
    ip.extend_from_slice(&[0, 1, 0x40, 0, 64, 6, 0, 0]);
    ip.extend_from_slice(&hosts);
    ip.extend_from_slice(&ports);
    ip.extend_from_slice(&sequence.to_be_bytes());
    ip.extend_from_slice(&acknowledged.to_be_bytes());
    ip.extend_from_slice(&[0x50, 0x10, 0x40, 0, 0, 0, 0, 0]);
    ip.extend_from_slice(data);
    ip
}

fn record(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind, 3, 3][..], &(body.len() as u16).to_be_bytes(), body].concat()
}

/// A handshake message with two random bytes of version, its random number, and what follows.
fn hello(kind: u8, random: [u8; 32], rest: &[u8]) -> Vec<u8> {
    let body = [&[3, 3][..], &random, rest].concat();
    let length = (body.len() as u32).to_be_bytes();
    record(22, &[&[kind][..], &length[1..], &body].concat())
}

fuzz_target!(|data: &[u8]| {
    let _ = KeyLog::parse(data).map(|log| log.sessions());
    let [choice, data @ ..] = data else { return };
    let suite = [0x1301_u16, 0x1302, 0x1303, 0xc02f, 0xc030, 0xcca8, 0x0035, 0][usize::from(choice & 7)];
    let version: &[u8] = if choice & 8 == 0 { &[0, 6, 0, 43, 0, 2, 3, 4] } else { &[] };
    let server = [&[0][..], &suite.to_be_bytes(), &[0], version].concat();
    let mut said: Vec<(bool, Vec<u8>, bool)> = vec![
        (true, vec![0, 0, 0, 8, 4, 210, 22, 47], false),
        (false, b"S".to_vec(), false),
        (true, hello(1, RANDOM, &[0, 0, 2, 0x13, 1, 1, 0]), false),
    ];
    if choice & 16 == 0 {
        said.push((false, hello(2, [9; 32], &server), false));
    }
    // Each: who and how, kind of record, length, bytes.
    let mut rest = data;
    while let [how, kind, length, after @ ..] = rest {
        let (bytes, after) = after.split_at(after.len().min(usize::from(*length)));
        rest = after;
        let bytes = if how & 2 == 0 { record(20 + kind % 4, bytes) } else { bytes.to_vec() };
        said.push((how & 1 == 0, bytes, how & 4 != 0));
    }
    let config = CaptureConfig { keys: Some(Arc::new(log())), ..CaptureConfig::default() };
    let (mut capture, mut analyzer) = (Capture::new(config), Analyzer::new());
    let mut next = [1_000_u32, 5_000];
    let mut at_ns = 0;
    for (from_client, bytes, is_missed) in said {
        at_ns += 1_000_000;
        let (own, other) = if from_client { (0, 1) } else { (1, 0) };
        let ip = packet(from_client, next[own], next[other], &bytes);
        next[own] = next[own].wrapping_add(bytes.len() as u32);
        if !is_missed {
            let packet = Packet { at_ns, link: RAW, interface: 0, data: &ip, length: ip.len() };
            capture.packet(&packet, &mut |stream, block| analyzer.block(stream, block).expect("own records"));
        }
    }
    capture.finish(0, &mut |stream, block| analyzer.block(stream, block).expect("own records"));
    let summary = analyzer.finish(&Mutes::default()).summary;
    assert_eq!(summary.statements, 0, "nothing opens what is not encrypted with the keys");
});
