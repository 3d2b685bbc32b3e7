//! What a capture tells of a path over time, and what losses, closed windows and slow starts cost there.

mod common;

use common::{ACK, Talk, analyze, message, query, ready, reply, row};
use onetrip_ledger::network::Direction;

/// Data bytes of a full segment.
const FULL: usize = 1_460;
const MS: u64 = 1_000_000;

/// A reply of rows that is so many segments long.
fn long_reply(segments: usize) -> Vec<u8> {
    let end = [message(b'C', b"SELECT 1\0"), ready(b'I')].concat();
    let head = common::described();
    let free = segments * FULL - head.len() - end.len();
    let value = "v".repeat(free - row("").len());
    [head, row(&value), end].concat()
}

/// The bytes of a long reply, in rounds of so many segments: between two of them is a round trip.
fn in_rounds(talk: &mut Talk, rounds: &[usize]) {
    let all = long_reply(rounds.iter().sum());
    let mut rest = &all[..];
    for segments in rounds {
        let (round, after) = rest.split_at(segments * FULL);
        talk.wait_us(1_010);
        talk.server_round(*segments, round);
        rest = after;
    }
    assert!(rest.is_empty());
}

fn down_of(act: impl FnOnce(&mut Talk)) -> Direction {
    let mut talk = Talk::default();
    talk.log_in();
    act(&mut talk);
    let (summary, network) = analyze(&talk.frames);
    assert_eq!(network.capture.unknown_bytes, 0);
    assert_eq!(network.totals.up.slow_start_rounds, 0);
    assert!(summary.statements > 0);
    network.totals.down
}

#[test]
fn a_segment_sent_again_costs_the_time_since_it_was_sent_first() {
    let mut talk = Talk::default();
    talk.log_in();
    let text = query("SELECT 1");
    talk.client(&text);
    talk.wait_us(200_000);
    talk.client_again(&text);
    talk.server(&reply("1"));
    talk.query("SELECT 2");
    let (summary, network) = analyze(&talk.frames);
    assert_eq!(summary.trips.work(), 2);
    let up = network.totals.up;
    assert_eq!((up.retransmissions, up.fast_retransmissions, up.spurious_retransmissions), (1, 0, 0));
    assert_eq!(up.retransmission_wait_ns, 200 * MS);
    assert_eq!(network.totals.down.retransmissions, 0);
}

#[test]
fn a_segment_sent_again_for_duplicate_acknowledgements_is_a_fast_one() {
    let mut talk = Talk::default();
    talk.log_in();
    // What the server says it has: all until here.
    let acknowledged = talk.clone();
    let first = query("SELECT 1");
    talk.client(&first);
    for _ in 0..3 {
        talk.wait_us(1_000);
        let mut same = acknowledged.clone();
        same.now_ns = talk.now_ns;
        same.frames.clear();
        same.segment(false, ACK, &[]);
        talk.frames.extend(same.frames);
    }
    talk.wait_us(500);
    talk.client_again(&first);
    talk.server(&reply("1"));
    let (summary, network) = analyze(&talk.frames);
    assert_eq!(summary.trips.work(), 1);
    let up = network.totals.up;
    assert_eq!((up.retransmissions, up.fast_retransmissions), (1, 1));
    assert_eq!(up.retransmission_wait_ns, 3 * MS + MS / 2);
}

#[test]
fn a_window_that_is_closed_costs_the_time_until_it_opens() {
    let mut talk = Talk::default();
    talk.log_in();
    talk.client(&query("SELECT 1"));
    in_rounds(&mut talk, &[3]);
    talk.client_takes(0);
    talk.wait_us(300_000);
    talk.client_takes(20_000);
    talk.query("SELECT 2");
    let (summary, network) = analyze(&talk.frames);
    assert_eq!(summary.trips.work(), 2);
    let (up, down) = (network.totals.up, network.totals.down);
    assert_eq!((up.zero_windows, up.zero_window_ns), (1, 300 * MS));
    assert_eq!((down.zero_windows, down.zero_window_ns), (0, 0));
}

#[test]
fn rounds_of_a_reply_after_a_pause_are_a_slow_start() {
    let rested = |talk: &mut Talk, rounds: &[usize]| {
        talk.wait_us(2_000_000);
        talk.client(&query("SELECT 1"));
        in_rounds(talk, rounds);
    };
    let down = down_of(|talk| rested(talk, &[10, 20, 40]));
    assert_eq!(down.slow_start_rounds, 2);
    assert!((2 * MS..3 * MS).contains(&down.slow_start_ns), "{}", down.slow_start_ns);
    // The last round is what is left.
    assert_eq!(down_of(|talk| rested(talk, &[10, 3])).slow_start_rounds, 1);
    assert_eq!(down_of(|talk| rested(talk, &[10])).slow_start_rounds, 0);
    // Whatever limits these, it is no window that grows.
    assert_eq!(down_of(|talk| rested(talk, &[10, 10, 10, 10, 10])).slow_start_rounds, 1);
}

#[test]
fn rounds_without_a_pause_before_are_no_slow_start_after_idle() {
    let down = down_of(|talk| {
        for _ in 0..3 {
            talk.client(&query("SELECT 1"));
            in_rounds(talk, &[10, 20]);
        }
    });
    assert_eq!((down.slow_start_rounds, down.slow_start_ns), (0, 0));
}

#[test]
fn the_round_trip_times_of_the_capture_are_told_over_time() {
    let mut talk = Talk::default();
    talk.log_in();
    for second in 0..20 {
        talk.wait_us(1_000_000);
        talk.client(&query("SELECT 1"));
        // The path is longer in the second half.
        talk.wait_us(if second < 10 { 0 } else { 30_000 });
        talk.server(&reply("1"));
    }
    let (_, network) = analyze(&talk.frames);
    let means = |from_s: u64, to_s: u64| {
        let spans = network
            .rtts
            .iter()
            .filter(move |span| (from_s * 1_000 * MS..to_s * 1_000 * MS).contains(&span.from_ns));
        spans.filter_map(|span| span.rtt.mean_ns()).collect::<Vec<_>>()
    };
    let (before, after) = (means(1, 10), means(12, 30));
    assert!(before.len() >= 9 && after.len() >= 8, "{before:?} {after:?}");
    assert!(before.iter().all(|mean| *mean < 2 * MS), "{before:?}");
    assert!(after.iter().all(|mean| (31 * MS..32 * MS).contains(mean)), "{after:?}");
    let count: u64 = network.rtts.iter().map(|span| span.rtt.count).sum();
    assert!(count >= 20, "{count}");
}
