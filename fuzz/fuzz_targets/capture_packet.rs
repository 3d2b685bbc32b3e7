//! Packets of any content with any link layer: segments or a reason, never a panic, and no more bytes than were captured.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onetrip_capture::link::LinkType;
use onetrip_capture::{Capture, CaptureConfig, Packet};
use onetrip_ledger::{Analyzer, Mutes};

const LINKS: [i32; 7] = [1, 113, 276, 0, 108, 101, 228];

fuzz_target!(|data: &[u8]| {
    let mut capture = Capture::new(CaptureConfig::default());
    let mut analyzer = Analyzer::new();
    let mut rest = data;
    let mut at_ns = 0;
    // Each: link, time, length on the wire, bytes.
    while let [link, time, longer, length, after @ ..] = rest {
        let (bytes, after) = after.split_at(after.len().min(usize::from(*length)));
        rest = after;
        at_ns += u64::from(*time) * 1_000_003;
        let packet = Packet {
            at_ns,
            link: LinkType(LINKS[usize::from(*link) % LINKS.len()]),
            interface: 0,
            data: bytes,
            length: bytes.len() + usize::from(*longer),
        };
        capture.packet(&packet, &mut |stream, block| analyzer.block(stream, block).expect("own records"));
    }
    let network = capture.finish(0, &mut |stream, block| analyzer.block(stream, block).expect("own records"));
    assert!(network.capture.bytes <= data.len() as u64);
    analyzer.finish(&Mutes::default());
});
