//! Segments of a conversation of PostgreSQL's or MySQL's in any order, overlapping, lost, cut, with any acknowledgement: the books are
//! readable and no more trips are counted than segments were sent.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onetrip_capture::link::LinkType;
use onetrip_capture::{Capture, CaptureConfig, Packet};
use onetrip_ledger::{Analyzer, Mutes};

const RAW: LinkType = LinkType(101);

const CLIENT_PORT: u16 = 40_000;
const POSTGRES_PORT: u16 = 5432;
const MYSQL_PORT: u16 = 3306;

/// A segment from the client or the server, at an offset of its stream.
fn packet(
    from_client: bool,
    server_port: u16,
    flags: u8,
    sequence: u32,
    acknowledged: u32,
    data: &[u8],
) -> Vec<u8> {
    let (ports, hosts) = match from_client {
        true => ([CLIENT_PORT, server_port], [10, 0, 0, 1, 10, 0, 0, 2]),
        false => ([server_port, CLIENT_PORT], [10, 0, 0, 2, 10, 0, 0, 1]),
    };
    let length = (40 + data.len()) as u16;
    let mut ip = vec![0x45, 0];
    ip.extend_from_slice(&length.to_be_bytes());
    ip.extend_from_slice(&[0, 1, 0x40, 0, 64, 6, 0, 0]);
    ip.extend_from_slice(&hosts);
    ip.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
    ip.extend_from_slice(&sequence.to_be_bytes());
    ip.extend_from_slice(&acknowledged.to_be_bytes());
    ip.extend_from_slice(&[0x50, flags & 0x1f, 0x40, 0, 0, 0, 0, 0]);
    ip.extend_from_slice(data);
    ip
}

fuzz_target!(|data: &[u8]| {
    let mut capture = Capture::new(CaptureConfig::default());
    let mut analyzer = Analyzer::new();
    let mut next = [u32::MAX - 30, 5_000_u32];
    let (mut rest, mut at_ns, mut segments) = (data, 0, 0);
    let server_port = if data.first().is_some_and(|how| how & 128 != 0) { MYSQL_PORT } else { POSTGRES_PORT };
    // Each: who and how, a shift of the numbers, flags, bytes cut off, time, length, bytes.
    while let [how, shift, flags, cut, time, length, after @ ..] = rest {
        let (bytes, after) = after.split_at(after.len().min(usize::from(*length)));
        rest = after;
        let from_client = how & 1 == 0;
        let (own, other) = if from_client { (0, 1) } else { (1, 0) };
        let shift = if how & 2 == 0 { 0 } else { i32::from(*shift as i8) };
        let sequence = next[own].wrapping_add_signed(shift);
        let acknowledged = next[other].wrapping_add_signed(if how & 4 == 0 { 0 } else { shift });
        let flags = if how & 8 == 0 { 0x10 } else { *flags };
        at_ns += u64::from(*time) * 250_000;
        let ip = packet(from_client, server_port, flags, sequence, acknowledged, bytes);
        let length = ip.len();
        let kept = if how & 16 == 0 { length } else { length - usize::from(*cut).min(length) };
        // The capture may have missed it.
        if how & 32 == 0 {
            let packet = Packet { at_ns, link: RAW, interface: 0, data: &ip[..kept], length };
            capture.packet(&packet, &mut |stream, block| analyzer.block(stream, block).expect("own records"));
            segments += 1;
        }
        let taken = bytes.len() as u32 + u32::from(flags & 2 != 0) + u32::from(flags & 1 != 0);
        if how & 64 == 0 {
            next[own] = sequence.wrapping_add(taken);
        }
    }
    let network = capture.finish(0, &mut |stream, block| analyzer.block(stream, block).expect("own records"));
    assert!(network.totals.turns <= segments);
    analyzer.finish(&Mutes::default());
});
