//! What packets and their times tell, however they are wrapped: IPv6, fragments, clocks, the place of the capture.

mod common;

use std::ops::Range;

use common::{Dress, Frame, Talk, analyze, pcap, pcapng, read, runs, startup};
use onetrip_ledger::network::{ConnectionPath, Place};

const SECOND_NS: u64 = 1_000_000_000;
const CHILD: &str = "SELECT title FROM books WHERE author_id = ";

/// Logs in and asks ten queries; the end is not in the capture. Frames: handshake 0 to 2, login 3 and 4, then queries and
/// replies in turn.
fn ten_queries() -> Talk {
    queries_after(0)
}

/// The same with pauses before the queries.
fn queries_after(pause_us: u64) -> Talk {
    let mut talk = Talk::default();
    talk.log_in();
    for number in 0..10 {
        talk.wait_us(pause_us);
        talk.query(&format!("{CHILD}{number}"));
    }
    talk
}

/// IPv4 packets as IPv6 packets: after the extension headers comes what the IPv4 header had.
fn v6(frames: &[Frame], wrap: impl Fn(usize, &[u8]) -> Vec<(u8, Vec<u8>)>) -> Vec<Frame> {
    let mut all = Vec::new();
    for (place, frame) in frames.iter().enumerate() {
        let address = |at: usize| [&[0xfd][..], &[0; 11], &frame.ip[at..at + 4]].concat();
        for (next, payload) in wrap(place, &frame.ip[20..]) {
            let length = (payload.len() as u16).to_be_bytes();
            let head = [&[0x60, 0, 0, 0][..], &length, &[next, 64], &address(12), &address(16)];
            all.push(Frame { ip: [&head.concat()[..], &payload].concat(), ..frame.clone() });
        }
    }
    all
}

/// IPv4 packets in pieces: `cut` tells the number of a datagram, and which bytes its pieces have.
fn v4(frames: &[Frame], cut: impl Fn(usize, usize) -> (u16, Vec<Range<usize>>)) -> Vec<Frame> {
    let mut all = Vec::new();
    for (place, frame) in frames.iter().enumerate() {
        let tcp = &frame.ip[20..];
        let (number, pieces) = cut(place, tcp.len());
        for piece in pieces {
            let more = if piece.end < tcp.len() { 0x2000 } else { 0 };
            let mut ip = frame.ip[..20].to_vec();
            ip[2..4].copy_from_slice(&(20 + piece.len() as u16).to_be_bytes());
            ip[4..6].copy_from_slice(&number.to_be_bytes());
            ip[6..8].copy_from_slice(&(more | (piece.start / 8) as u16).to_be_bytes());
            ip.extend_from_slice(&tcp[piece]);
            all.push(Frame { ip, ..frame.clone() });
        }
    }
    all
}

#[test]
fn pieces_that_come_again_after_their_datagram_was_joined_are_no_incomplete_one() {
    let talk = ten_queries();
    let expected = analyze(&talk.frames).0;
    let doubled = v4(&talk.frames, |place, tcp| (place as u16, vec![0..16, 0..16, 16..tcp, 16..tcp]));
    let overlapping = v4(&talk.frames, |place, tcp| (place as u16, vec![0..16, 8..tcp, 16..tcp]));
    let numbered_alike = v4(&talk.frames, |_, tcp| (7, vec![0..16, 16..tcp]));
    for frames in [&doubled, &overlapping, &numbered_alike] {
        let (summary, network, _) = read(&pcap(frames, Dress::Raw, false), 1 << 20);
        assert_eq!((summary.trips, runs(&summary)), (expected.trips, runs(&expected)));
        assert_eq!((network.capture.incomplete_datagrams, network.capture.unknown_bytes), (0, 0));
    }
    // A datagram with the number of one that was joined, and other bytes, counts.
    let cut = &numbered_alike[..numbered_alike.len() - 1];
    let (_, network, _) = read(&pcap(cut, Dress::Raw, false), 1 << 20);
    assert_eq!(network.capture.incomplete_datagrams, 1);
}

#[test]
fn ipv6_extension_headers_and_fragments_change_nothing() {
    const TCP: u8 = 6;
    let talk = ten_queries();
    let expected = analyze(&talk.frames).0;
    let plain = v6(&talk.frames, |_, tcp| vec![(TCP, tcp.to_vec())]);
    // Options for each hop, then for the destination.
    let extended = v6(&talk.frames, |_, tcp| {
        vec![(0, [&[60, 0, 1, 4, 0, 0, 0, 0][..], &[TCP, 0, 1, 4, 0, 0, 0, 0], tcp].concat())]
    });
    let pieces = |place: usize, tcp: &[u8]| {
        let (first, second) = tcp.split_at(16);
        let piece = |offset: u16, bytes: &[u8]| {
            let head = [&[TCP, 0][..], &offset.to_be_bytes(), &[0, 0, 0, place as u8]].concat();
            (44, [&head[..], bytes].concat())
        };
        // The offset counts units of eight bytes, and its last bit says that more follows.
        vec![piece(1, first), piece(16, second)]
    };
    let fragments = v6(&talk.frames, pieces);
    let backwards = v6(&talk.frames, |place, tcp| pieces(place, tcp).into_iter().rev().collect());
    let v4 = v4(&talk.frames, |place, tcp| (place as u16, vec![0..16, 16..tcp]));
    for (name, frames) in [
        ("v6", plain),
        ("extended", extended),
        ("fragments", fragments),
        ("backwards", backwards),
        ("v4", v4),
    ] {
        let (summary, network, problem) = read(&pcap(&frames, Dress::Raw, false), 1 << 20);
        assert_eq!(
            (problem, network.capture.other_packets, network.capture.unreadable_packets),
            (None, 0, 0)
        );
        assert_eq!((summary.trips, runs(&summary)), (expected.trips, runs(&expected)), "{name}");
        assert_eq!(network.capture.incomplete_datagrams, 0, "{name}");
        assert_eq!(network.paths[0].client.starts_with("[fd00::"), name != "v4", "{name}");
    }
    let mut cut = v6(&talk.frames, pieces);
    cut.remove(11);
    let (_, network, _) = read(&pcap(&cut, Dress::Raw, false), 1 << 20);
    assert_eq!(network.capture.incomplete_datagrams, 1);
}

#[test]
fn at_the_servers_side_the_client_has_sent_before_and_receives_after() {
    let mut talk = queries_after(2_000);
    let (at_client, network) = analyze(&talk.frames);
    assert_eq!(network.capture.place, Place::Client);
    let waited = |summary: &onetrip_ledger::Summary| summary.templates[0].waited_ns;
    assert_eq!(waited(&at_client), 10 * 1_210_000, "10 us to the client and back");
    // The server answers the handshake in 20 us, the client 990 us later.
    talk.frames[1].at_ns = talk.frames[0].at_ns + 20_000;
    let (at_server, network) = analyze(&talk.frames);
    assert_eq!((network.capture.place, network.totals.initial_rtt_ns), (Place::Server, Some(1_010_000)));
    assert_eq!(waited(&at_server), 10 * (1_200_000 + 990_000));
}

#[test]
fn the_clocks_resolution_is_the_largest_that_all_times_have() {
    let mut talk = ten_queries();
    assert_eq!(analyze(&talk.frames).1.capture.resolution_ns, 10_000);
    talk.frames[7].at_ns += 1_000;
    assert_eq!(analyze(&talk.frames).1.capture.resolution_ns, 1_000);
    for frame in &mut talk.frames {
        frame.at_ns = frame.at_ns / SECOND_NS * SECOND_NS;
    }
    assert_eq!(analyze(&talk.frames).1.capture.resolution_ns, SECOND_NS);
}

#[test]
fn times_go_on_where_the_clock_is_set_back() {
    let whole = ten_queries();
    let (expected, before) = analyze(&whole.frames);
    // In the middle of a trip, and between two.
    for place in [10, 11] {
        let mut talk = whole.clone();
        talk.frames[place..].iter_mut().for_each(|frame| frame.at_ns -= 3_600 * SECOND_NS);
        let (summary, network) = analyze(&talk.frames);
        assert_eq!(network.capture.clock_steps, 1);
        assert!(network.capture.clock_step_max_ns > 3_599 * SECOND_NS);
        let lost_ns = 2 * SECOND_NS / 1_000; // of the pause in which it was set
        let near = |found: u64, known: u64| found <= known && found + lost_ns >= known;
        assert_eq!(summary.trips.total, expected.trips.total);
        assert!(near(summary.templates[0].waited_ns, expected.templates[0].waited_ns), "{place}");
        assert!(near(network.capture.elapsed_ns, before.capture.elapsed_ns), "{place}");
    }
    // Packets of another clock that lags cost no more than themselves.
    let mut talk = whole.clone();
    talk.frames.iter_mut().skip(6).step_by(2).for_each(|frame| frame.at_ns -= SECOND_NS);
    let (_, network) = analyze(&talk.frames);
    assert!(network.capture.elapsed_ns <= before.capture.elapsed_ns);
}

#[test]
fn a_trip_in_which_the_clock_is_set_back_measures_nothing() {
    for back_ms in [200, 5_000] {
        let mut talk = queries_after(100);
        let (plain, expected) = analyze(&talk.frames);
        let (before, after) = talk.frames.split_at_mut(8);
        assert!(before.last().expect("a request").ip.len() > after[0].ip.len() / 2);
        after.iter_mut().for_each(|frame| frame.at_ns -= back_ms * 1_000_000);
        let (summary, network) = analyze(&talk.frames);
        assert_eq!((network.capture.clock_steps, summary.trips), (1, plain.trips));
        let (found, expected) = (network.totals, expected.totals);
        let legs =
            |path: ConnectionPath| (path.initial_rtt_ns, path.client_leg_min_ns, path.server_leg_min_ns);
        assert_eq!(legs(found), legs(expected));
        for (found, expected) in [
            (found.first_byte, expected.first_byte),
            (found.last_byte, expected.last_byte),
            (found.next_request, expected.next_request),
        ] {
            assert_eq!((found.count, found.min_ns), (expected.count - 1, expected.min_ns));
        }
    }
}

#[test]
fn data_of_a_syn_is_the_first_of_its_connection() {
    let mut talk = Talk::default();
    talk.fast_open(&startup());
    talk.let_in();
    talk.query("SELECT 1");
    talk.end();
    for is_sent_again in [false, true] {
        let mut frames = talk.frames.clone();
        if is_sent_again {
            frames.insert(1, frames[0].clone());
        }
        let (summary, network) = analyze(&frames);
        assert_eq!((summary.trips.total, summary.trips.connect, summary.statements), (2, 1, 1));
        assert_eq!((network.capture.missed_bytes, network.capture.unknown_bytes), (0, 0));
        assert_eq!(network.totals.initial_rtt_ns, Some(1_010_000));
    }
}

#[test]
fn the_last_byte_of_the_last_reply_counts() {
    let talk = ten_queries();
    let (_, network) = analyze(&talk.frames);
    let totals = &network.totals;
    assert_eq!((totals.turns, totals.first_byte.count, totals.last_byte.count), (11, 11, 11));
    assert_eq!((totals.first_byte.sum_ns, totals.last_byte.sum_ns), (11 * 1_200_000, 11 * 1_200_000));
    assert_eq!((totals.next_request.count, totals.next_request.sum_ns), (10, 10 * 100_000));
    // The last request has no reply: the one before counts once.
    let mut ended = talk.clone();
    ended.end();
    let totals = analyze(&ended.frames).1.totals;
    assert_eq!((totals.turns, totals.first_byte.count, totals.last_byte.count), (12, 11, 11));
}

#[test]
fn a_handshakes_segments_that_come_again_late_change_nothing() {
    let whole = ten_queries();
    let expected = analyze(&whole.frames).0;
    for again in [0, 1] {
        let mut talk = whole.clone();
        let late = Frame { at_ns: talk.frames[9].at_ns + 10_000, ..talk.frames[again].clone() };
        talk.frames.insert(10, late);
        let (summary, network) = analyze(&talk.frames);
        assert_eq!((network.capture.missed_bytes, network.capture.unknown_bytes), (0, 0), "{again}");
        assert_eq!((summary.trips, runs(&summary)), (expected.trips, runs(&expected)), "{again}");
    }
}

#[test]
fn times_of_a_file_may_be_anything() {
    let talk = ten_queries();
    for first in [0, 1, u64::MAX / 2, u64::MAX - 1_000_000] {
        for step in [1, 1 << 40, 1 << 62, u64::MAX / 3] {
            let mut frames = talk.frames.clone();
            frames.extend(talk.frames.clone()); // all is sent again
            for (place, frame) in frames.iter_mut().enumerate() {
                frame.at_ns = (place as u64).wrapping_mul(step).wrapping_add(first);
            }
            let (_, network, _) = read(&pcapng(&frames, Dress::Ethernet), 1 << 20);
            assert_eq!(network.capture.packets, frames.len() as u64);
        }
    }
}
