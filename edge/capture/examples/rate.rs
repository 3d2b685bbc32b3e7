//! scratch
use onetrip_capture::source::{Progress, Sources};
use onetrip_capture::{Capture, CaptureConfig};
use onetrip_ledger::{Analyzer, Mutes};
use std::path::PathBuf;
use std::sync::Arc;
fn main() {
    let path = PathBuf::from(std::env::args().nth(1).unwrap());
    let mut sources = Sources::open(&[path], false, Arc::new(Progress::default())).unwrap();
    let mut capture = Capture::new(CaptureConfig::default());
    let mut analyzer = Analyzer::new();
    sources.read(
        |packet| {
            capture.packet(packet, &mut |stream, block| analyzer.block(stream, block).unwrap());
        },
        |problem| eprintln!("{problem}"),
    );
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    eprintln!(
        "{} open, {}",
        capture.open_connections(),
        status.lines().find(|l| l.starts_with("VmHWM")).unwrap()
    );
    let network = capture.finish(0, &mut |stream, block| analyzer.block(stream, block).unwrap());
    let s = analyzer.finish(&Mutes::default()).summary;
    println!(
        "{} trips {} statements {} findings {} bytes",
        s.trips.total,
        s.statements,
        s.findings.len(),
        network.capture.bytes
    );
}
