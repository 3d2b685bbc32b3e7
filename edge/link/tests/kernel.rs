//! The congestion window of the model against the one of this kernel: the same bursts sent through a real TCP
//! connection, captured on a veth pair, must leave in the same flights.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use onetrip_link::{Bottleneck, Lane, LinkSpec, MSS, Payload};

const ONE_WAY: Duration = Duration::from_millis(25);

/// What the sender writes, and how long it pauses after the reader has it all.
const PLAN: [(usize, Duration); 4] = [
    (20_000, Duration::ZERO),
    (1 << 20, Duration::from_millis(400)), // longer than one timeout: the window is halved
    (1 << 20, Duration::from_millis(3000)), // longer than all of them: it starts anew
    (1 << 20, Duration::ZERO),
];

/// Runs until one that agrees.
const TRIES: usize = 8;

/// A busy machine delays packets in bursts, which tears flights apart. The processes of a run waited 25 ms for a processor
/// in all where nothing else ran, and 500 ms beside six that never sleep. Runs of more than this may all disagree.
const WAITED_MAX: Duration = Duration::from_millis(50);

#[derive(Debug, PartialEq, Eq)]
struct Flight {
    segments: usize,
    at: Duration,
}

#[test]
fn a_kernel_sends_in_the_flights_of_the_model() {
    compare("reno");
    compare("cubic");
}

fn compare(congestion_control: &str) {
    if let Some(reason) = why_not(congestion_control) {
        println!("skipped: {reason}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let capture = folder.path().join("flights.pcapng");
    let mut is_busy = false;
    for last in (0..TRIES).rev().map(|left| left == 0) {
        let waited = send_bursts(&capture, congestion_control);
        let measured = flights(&captured_segments(&capture));
        let expected = model(&burst_starts(&measured));
        if agree(&measured, &expected) {
            let segments = |flights: &[Flight]| -> Vec<_> { flights.iter().map(|it| it.segments).collect() };
            println!("{congestion_control}: {:?}, the model {:?}", segments(&measured), segments(&expected));
            return;
        }
        is_busy |= waited > WAITED_MAX;
        assert!(is_busy || !last, "{congestion_control} sent {measured:#?}, the model {expected:#?}");
    }
    println!("skipped: this machine is too busy to see how {congestion_control} sends");
}

fn why_not(congestion_control: &str) -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("network namespaces need root".to_owned());
    }
    for tool in ["ip", "tshark", "unshare", "python3"] {
        let found = Command::new(tool).arg("--help").stdout(Stdio::null()).stderr(Stdio::null()).status();
        if found.is_err() {
            return Some(format!("{tool} is not installed"));
        }
    }
    let available = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    let known = available.split_whitespace().any(|name| name == congestion_control);
    (!known).then(|| format!("this kernel has no {congestion_control}"))
}

/// How long its processes had to wait for a processor.
fn send_bursts(capture: &Path, congestion_control: &str) -> Duration {
    let words = |(bytes, pause): &(usize, Duration)| format!("{bytes},{}", pause.as_millis());
    let plan: Vec<String> = PLAN.iter().map(words).collect();
    let output = Command::new("unshare")
        .args(["--net", "--kill-child", "--fork", "python3"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernel/flights.py"))
        .arg(capture)
        .args([congestion_control, &ONE_WAY.as_millis().to_string(), &plan.join(",")])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the bursts could not be sent: {}: {said}", output.status);
    let waited = String::from_utf8(output.stdout).unwrap();
    Duration::from_nanos(waited.lines().map(|line| line.parse::<u64>().unwrap()).sum())
}

/// Time and length of every data segment that the sender put on the wire.
fn captured_segments(capture: &Path) -> Vec<(Duration, usize)> {
    let output = Command::new("tshark")
        .arg("-r")
        .arg(capture)
        .args(["-Y", "tcp.srcport == 5432 && tcp.len > 0", "-T", "fields"])
        .args(["-e", "frame.time_relative", "-e", "tcp.len"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let segment = |line: &str| {
        let (at, length) = line.split_once('\t').unwrap();
        (Duration::from_secs_f64(at.parse().unwrap()), length.parse().unwrap())
    };
    text.lines().map(segment).collect()
}

/// Segments with less than half a round trip between them.
fn flights(segments: &[(Duration, usize)]) -> Vec<Flight> {
    let mut flights: Vec<Flight> = Vec::new();
    let mut last = Duration::ZERO;
    for (at, length) in segments {
        assert!(*length <= MSS, "a segment of {length} bytes");
        match flights.last_mut() {
            Some(flight) if *at < last + ONE_WAY => flight.segments += 1,
            _ => flights.push(Flight { segments: 1, at: *at }),
        }
        last = *at;
    }
    flights
}

/// When each burst began: the first flight after all segments of the bursts before.
fn burst_starts(flights: &[Flight]) -> Vec<Duration> {
    let mut starts = Vec::new();
    let mut sent = 0;
    let mut due = 0;
    for flight in flights {
        if sent >= due {
            starts.push(flight.at);
            due += PLAN.get(starts.len() - 1).map_or(0, |(bytes, _)| bytes.div_ceil(MSS));
        }
        sent += flight.segments;
    }
    starts
}

/// The flights in which the model sends the plan, each burst written when it was in the capture.
fn model(starts: &[Duration]) -> Vec<Flight> {
    let mut wire = Bottleneck::new(None);
    let mut lane = Lane::new(&LinkSpec::with_rtt(ONE_WAY * 2), Duration::ZERO, 0);
    let mut flights = Vec::new();
    for ((bytes, _), start) in PLAN.iter().zip(starts) {
        lane.admit(*start, *bytes, &mut wire);
        while let Some(now) = lane.next_event() {
            lane.advance(now, &mut wire);
            while let Some(release) = lane.pop_due(now) {
                let Payload::Bytes(bytes) = release.payload else { panic!("{release:?}") };
                flights.push(Flight { segments: bytes.div_ceil(MSS), at: release.at - ONE_WAY });
            }
        }
    }
    flights
}

/// As many flights, at the same times, and after each of them as many segments sent as the model has, within 5 %: the
/// last segments of a flight can wait for an acknowledgement that the receiver delays, and then leave with the next.
fn agree(measured: &[Flight], expected: &[Flight]) -> bool {
    let (mut sent, mut modelled) = (0, 0);
    let mut near = |(one, other): (&Flight, &Flight)| {
        sent += one.segments;
        modelled += other.segments;
        sent.abs_diff(modelled) * 20 <= modelled && one.at.abs_diff(other.at) < ONE_WAY
    };
    measured.len() == expected.len() && measured.iter().zip(expected).all(&mut near)
}
