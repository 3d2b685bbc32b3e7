//! What packets tell of the network.

use onetrip_ledger::network::{CaptureFacts, ConnectionPath, Direction, NetworkSummary, Place, Times};

use super::Page;
use super::table::Table;
use crate::clean::clean;
use crate::number::{bytes, count, counted, duration};

/// Connections listed.
const ROWS_MAX: usize = 10;
/// Spans of round-trip times listed.
const SPANS_MAX: usize = 8;
/// Width of the labels.
const LABELS: usize = 13;

pub(super) fn show(network: &NetworkSummary, page: &mut Page) {
    page.heading("What the packets say");
    for (label, text) in facts(network) {
        page.labelled(2, &format!("{label:<LABELS$}"), &text);
    }
    let style = page.style;
    for problem in problems(&network.totals) {
        page.paragraph(&format!("  {problem}"), |line| style.mark(line));
    }
    for doubt in doubts(&network.capture) {
        page.paragraph(&format!("  {doubt}"), |line| style.mark(line));
    }
    show_rtts(network, page);
    show_paths(network, page);
}

/// What was captured and measured, each with its name; the texts are not yet safe to show.
pub(crate) fn facts(network: &NetworkSummary) -> Vec<(&'static str, String)> {
    let NetworkSummary { capture, totals, .. } = network;
    let mut facts = vec![(
        "capture",
        format!(
            "{}, {} in {}; times to {}",
            counted(capture.packets, "packet", "packets"),
            bytes(capture.bytes),
            duration(capture.elapsed_ns),
            duration(capture.resolution_ns)
        ),
    )];
    if let Some(place) = place(capture.place) {
        facts.push(("made", place.to_owned()));
    }
    if let Some(rtt) = totals.initial_rtt_ns {
        let legs = match (totals.client_leg_min_ns, totals.server_leg_min_ns) {
            (Some(client), Some(server)) => {
                format!(
                    "; from here {} to the client and back, {} to the server",
                    duration(client),
                    duration(server)
                )
            }
            _ => String::new(),
        };
        facts.push(("initial RTT", format!("{} at least, of the handshakes{legs}", duration(rtt))));
    }
    let turns: [(&str, &Times, &str); 3] = [
        ("first byte", &totals.first_byte, "from a request to the first byte of its reply"),
        ("last byte", &totals.last_byte, "from a request to the last byte of its reply"),
        ("next request", &totals.next_request, "from a reply to the next request"),
    ];
    for (name, times, what) in turns {
        if let Some(mean) = times.mean_ns() {
            let range = format!("{} to {}", duration(times.min_ns), duration(times.max_ns));
            facts.push((name, format!("{} on average, {range}: {what}", duration(mean))));
        }
    }
    facts
}

fn place(place: Place) -> Option<&'static str> {
    match place {
        Place::Unknown => None,
        Place::Client => Some("at the client's side of the path"),
        Place::Server => {
            Some("at the server's side of the path; times below are the client's, half a round trip away")
        }
        Place::Between => Some("between client and server"),
        Place::SameMachine => Some("on the machine that client and server share"),
    }
}

/// What went wrong on the path, a sentence each.
pub(crate) fn problems(totals: &ConnectionPath) -> Vec<String> {
    let mut problems = Vec::new();
    for (direction, who) in [(&totals.up, "client"), (&totals.down, "server")] {
        problems.extend(problems_of(direction, who));
    }
    problems
}

fn problems_of(direction: &Direction, who: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let again = direction.retransmissions - direction.spurious_retransmissions;
    if again > 0 {
        problems.push(format!(
            "The {who} sent {} again, waiting {} for that in all: they or their acknowledgements were lost, or late.",
            counted(again, "segment", "segments"),
            duration(direction.retransmission_wait_ns)
        ));
    }
    if direction.spurious_retransmissions > 0 {
        let what = counted(direction.spurious_retransmissions, "segment", "segments");
        problems.push(format!("The {who} sent {what} again although they had arrived."));
    }
    if direction.delayed_ack_pairs > 0 {
        problems.push(format!(
            "The {who} held back the end of a message {}, and the other side its acknowledgement: {} lost (the \
             40 ms bug). Set TCP_NODELAY at the {who}.",
            counted(direction.delayed_ack_pairs, "time", "times"),
            duration(direction.delayed_ack_ns)
        ));
    }
    if direction.zero_window_ns > 0 {
        let times = counted(direction.zero_windows, "segment says", "segments say");
        let time = duration(direction.zero_window_ns);
        problems.push(format!(
            "The {who} took nothing more for {time} (zero window, {times} so): it reads too slowly."
        ));
    }
    if direction.slow_start_rounds > 0 {
        problems.push(format!(
            "The {who} waited {} for its window to grow after a pause, {} in all (slow start after idle).",
            counted(direction.slow_start_rounds, "round trip", "round trips"),
            duration(direction.slow_start_ns)
        ));
    }
    problems
}

/// What keeps the numbers from being exact, a sentence each.
pub(crate) fn doubts(capture: &CaptureFacts) -> Vec<String> {
    let mut doubts = Vec::new();
    let mut say = |number: u64, one: &str, many: &str, what: &str| {
        if number > 0 {
            doubts.push(format!("{} {what}", counted(number, one, many)));
        }
    };
    say(capture.dropped_packets, "packet", "packets", "dropped by the capture, as it says itself");
    say(capture.untimed_packets, "packet", "packets", "without a time, so no time is measured");
    let missed = capture.missed_bytes;
    say(
        missed,
        "byte",
        "bytes",
        "acknowledged and not in the file: the capture missed them, not the network",
    );
    let unknown = capture.unknown_bytes;
    say(
        unknown,
        "byte",
        "bytes",
        "unknown, up to where a message surely begins; statements in them are not counted",
    );
    say(
        capture.cut_packets,
        "packet",
        "packets",
        "captured in part, so trips and sizes may be wrong; tcpdump -s 0 keeps all of them",
    );
    say(
        capture.doubled_packets,
        "packet",
        "packets",
        "captured twice, as on both ports of a bridge; counted once",
    );
    say(
        capture.joined,
        "connection",
        "connections",
        "begun before the capture: what they had prepared is unknown",
    );
    say(capture.half_seen, "connection", "connections", "of which one direction only was captured");
    say(
        capture.encrypted,
        "connection",
        "connections",
        "encrypted: trips, times and sizes only, no statements",
    );
    say(capture.unreadable_packets, "packet", "packets", "cut or damaged within their headers");
    say(capture.unknown_links, "packet", "packets", "of link types that are not looked into");
    say(capture.incomplete_datagrams, "datagram", "datagrams", "with missing fragments");
    let widest = format!("back of the capture's clock, up to {}", duration(capture.clock_step_max_ns));
    say(capture.clock_steps, "step", "steps", &widest);
    doubts
}

/// A table's rows: numbers, then a text that is not yet safe to show.
pub(crate) type Rows = Vec<(Vec<String>, String)>;

pub(crate) const RTT_COLUMNS: [&str; 4] = ["least", "mean", "most", "measured"];
pub(crate) const PATH_COLUMNS: [&str; 5] =
    ["turns", "initial RTT", "first byte", "next request", "sent again"];

/// Round-trip times over the capture, in at most so many rows.
pub(crate) fn rtts(network: &NetworkSummary, rows_max: usize) -> Rows {
    let step = network.rtts.len().div_ceil(rows_max).max(1);
    let rows = network.rtts.chunks(step).map(|spans| {
        let mut rtt = Times::default();
        spans.iter().for_each(|span| rtt.join(&span.rtt));
        let mean = rtt.mean_ns().unwrap_or_default();
        let cells = vec![duration(rtt.min_ns), duration(mean), duration(rtt.max_ns), count(rtt.count)];
        (cells, format!("from {}", duration(spans[0].from_ns)))
    });
    rows.collect()
}

/// Connections with most turns, at most so many.
pub(crate) fn paths(network: &NetworkSummary, rows_max: usize) -> Rows {
    let rows = network.paths.iter().take(rows_max).map(|named| {
        let path = &named.path;
        let time = |time: Option<u64>| time.map_or("?".to_owned(), duration);
        let again = path.up.retransmissions + path.down.retransmissions;
        let cells = vec![
            count(path.turns),
            time(path.initial_rtt_ns),
            time(path.first_byte.mean_ns()),
            time(path.next_request.mean_ns()),
            count(again),
        ];
        (cells, format!("{} → {}  {}", named.client, named.server, named.protocol))
    });
    rows.collect()
}

fn show_rtts(network: &NetworkSummary, page: &mut Page) {
    if network.rtts.len() < 2 {
        return;
    }
    page.heading("Round-trip time over the capture");
    page.table(&Table { columns: &RTT_COLUMNS, text: "when", rows: rtts(network, SPANS_MAX) });
}

fn show_paths(network: &NetworkSummary, page: &mut Page) {
    page.heading("Connections, most turns first");
    let rows = paths(network, ROWS_MAX).into_iter().map(|(cells, name)| (cells, clean(&name)));
    page.table(&Table { columns: &PATH_COLUMNS, text: "connection", rows: rows.collect() });
    let all = usize::try_from(network.connections).unwrap_or(usize::MAX);
    page.left_out(network.paths.len().min(ROWS_MAX), all, "connections");
}
