//! Two captures of one path, made with clocks and delays that are known: the merge must find them.

mod common;

use common::{ACK, CLIENT, Dress, FIN, Frame, SERVER, SYN, packet, pcap};
use onetrip_capture::sides::Side;
use onetrip_capture::{CaptureConfig, CaptureFile};
use onetrip_ledger::sides::{Split, TwoSides};

const START_NS: u64 = 1_700_000_000_000_000_000;
const MS: u64 = 1_000_000;
/// What a request and a reply are.
const DATA: [u8; 40] = [b'x'; 40];
/// As long as segments can be.
const FULL: [u8; 1_460] = [b'y'; 1_460];

/// A connection over a path, seen at both ends. Its times are the client's clock.
struct Path {
    now_ns: u64,
    there_ns: u64,
    back_ns: u64,
    /// The server's clock less the client's.
    offset_ns: i64,
    at_client: Vec<Frame>,
    at_server: Vec<Frame>,
    next: [u32; 2],
    port: u16,
    /// What a router makes of the client's address.
    client_seen: ([u8; 4], u16),
    /// What a firewall adds to the numbers of client and server.
    shift: [u32; 2],
}

impl Path {
    fn new(there_ns: u64, back_ns: u64, offset_ns: i64) -> Self {
        let port = CLIENT.1;
        Self {
            now_ns: START_NS,
            there_ns,
            back_ns,
            offset_ns,
            at_client: Vec::new(),
            at_server: Vec::new(),
            next: [u32::MAX - 100, 7_000], // one wraps around
            port,
            client_seen: (CLIENT.0, port),
            shift: [0; 2],
        }
    }

    /// A segment that leaves at a time of the client's clock; the capture of the other end has it unless it gets lost.
    fn send(
        &mut self,
        from_client: bool,
        left_ns: u64,
        sequence: u32,
        flags: u8,
        data: &[u8],
        is_lost: bool,
    ) {
        let frame = |client, at_ns, shift: [u32; 2]| {
            let (source, destination) = if from_client { (client, SERVER) } else { (SERVER, client) };
            let other = usize::from(from_client);
            let acknowledged = if flags & ACK == 0 { 0 } else { self.next[other].wrapping_add(shift[other]) };
            let sequence = sequence.wrapping_add(shift[1 - other]);
            let ip = packet(source, destination, sequence, acknowledged, flags, 65_535, data);
            Frame { at_ns, ip, snaplen: usize::MAX }
        };
        let way_ns = if from_client { self.there_ns } else { self.back_ns };
        let (at_client, at_server) = match from_client {
            true => (left_ns, left_ns + way_ns),
            false => (left_ns + way_ns, left_ns),
        };
        let at_client = frame((CLIENT.0, self.port), at_client, [0; 2]);
        let at_server = at_server.checked_add_signed(self.offset_ns).unwrap();
        let at_server = frame(self.client_seen, at_server, self.shift);
        if from_client || !is_lost {
            self.at_client.push(at_client);
        }
        if !from_client || !is_lost {
            self.at_server.push(at_server);
        }
    }

    /// Sends now, and counts the bytes.
    fn go(&mut self, from_client: bool, flags: u8, data: &[u8]) {
        let way = usize::from(!from_client);
        self.send(from_client, self.now_ns, self.next[way], flags, data, false);
        let length = data.len() as u32 + u32::from(flags & (SYN | FIN) != 0);
        self.next[way] = self.next[way].wrapping_add(length);
    }

    fn handshake(&mut self) {
        self.go(true, SYN, &[]);
        self.now_ns += self.there_ns;
        self.go(false, SYN | ACK, &[]);
        self.now_ns += self.back_ns;
        self.go(true, ACK, &[]);
    }

    /// A request after 2 ms, and its reply after 3 ms of work.
    fn turn(&mut self) {
        self.now_ns += 2 * MS;
        self.go(true, ACK, &DATA);
        self.now_ns += self.there_ns + 3 * MS;
        self.go(false, ACK, &DATA);
        self.now_ns += self.back_ns;
    }

    fn merge(&self) -> TwoSides {
        side(&self.at_client).merge(side(&self.at_server))
    }
}

fn side(frames: &[Frame]) -> Side {
    let mut frames = frames.to_vec();
    frames.sort_by_key(|frame| frame.at_ns);
    side_in_order(&frames)
}

/// A capture has packets in the order in which they passed, whatever its clock says.
fn side_in_order(frames: &[Frame]) -> Side {
    let bytes = pcap(frames, Dress::Ethernet, false);
    let mut file = CaptureFile::new();
    let mut side = Side::new(&CaptureConfig::default());
    let mut rest = &bytes[..];
    loop {
        while let Some(packet) = file.next_packet().unwrap() {
            side.packet(&packet);
        }
        let room = file.room();
        let count = rest.len().min(room.len());
        room[..count].copy_from_slice(&rest[..count]);
        file.filled(count);
        rest = &rest[count..];
        if count == 0 {
            return side;
        }
    }
}

/// Sums of the four parts in milliseconds.
fn parts(split: &Split) -> [f64; 4] {
    [split.client, split.there, split.server, split.back].map(|times| times.sum_ns as f64 / MS as f64)
}

fn left_out(split: &Split) -> [u64; 3] {
    [split.crossed, split.missed, split.unclocked]
}

#[test]
fn every_millisecond_is_where_it_went_whatever_the_clocks_say() {
    for offset_ns in [0, 7_300 * MS as i64, -86_400_000 * MS as i64] {
        let mut path = Path::new(5 * MS, 5 * MS, offset_ns);
        path.handshake();
        (0..100).for_each(|_| path.turn());
        let merged = path.merge();
        let clock = merged.clock.unwrap();
        assert_eq!(clock.offset_ns, offset_ns);
        assert_eq!((clock.drift_ppb, clock.steps, clock.is_impossible), (0, 0, false));
        assert_eq!(
            clock.error_ns,
            6 * MS,
            "half of the way there and back, and a step of clocks that tell milliseconds"
        );
        assert_eq!(merged.totals.turns, 100);
        assert_eq!(left_out(&merged.totals), [0; 3]);
        // The client had no reply to think about before its first request.
        assert_eq!(parts(&merged.totals), [198.0, 500.0, 300.0, 500.0]);
        assert_eq!((merged.connections, merged.client_only, merged.server_only), (1, 0, 0));
        assert_eq!(merged.paths[0].split, merged.totals);
        assert_eq!(merged.paths[0].seen_as, None);
    }
}

#[test]
fn ways_that_differ_are_wrong_by_no_more_than_the_error_and_right_in_sum() {
    let mut path = Path::new(8 * MS, 2 * MS, -40 * MS as i64);
    path.handshake();
    (0..50).for_each(|_| path.turn());
    let merged = path.merge();
    let clock = merged.clock.unwrap();
    assert!((clock.offset_ns + 40 * MS as i64).unsigned_abs() <= clock.error_ns, "{clock:?}");
    let [client, there, server, back] = parts(&merged.totals);
    assert_eq!((client, server, there + back), (98.0, 150.0, 500.0));
    assert!((there - 400.0).abs() / 50.0 <= clock.error_ns as f64 / MS as f64, "{there}");
}

#[test]
fn a_translated_address_is_no_obstacle_where_the_handshake_was_captured() {
    let mut path = Path::new(MS, MS, 0);
    path.client_seen = ([203, 0, 113, 9], 61_000);
    path.handshake();
    (0..10).for_each(|_| path.turn());
    let merged = path.merge();
    assert_eq!((merged.connections, merged.totals.turns), (1, 10));
    let seen = merged.paths[0].seen_as.clone().unwrap();
    assert_eq!(seen, ["203.0.113.9:61000", "10.0.0.2:5432"]);
    // Without the handshake nothing says that it is the same.
    path.at_server.drain(..3);
    let merged = path.merge();
    assert_eq!((merged.connections, merged.client_only, merged.server_only), (0, 1, 1));
    assert_eq!((merged.clock, merged.totals.turns), (None, 0));
}

#[test]
fn captures_that_begin_in_the_middle_tell_what_both_have_seen() {
    let mut path = Path::new(4 * MS, 4 * MS, 9 * MS as i64);
    path.handshake();
    (0..20).for_each(|_| path.turn());
    path.at_client.drain(..3 + 2 * 5);
    path.at_server.drain(..3 + 2 * 8);
    let merged = path.merge();
    assert_eq!(merged.connections, 1);
    assert_eq!(merged.clock.unwrap().offset_ns, 9 * MS as i64);
    // The client's capture has turns 6 to 20, the server's 9 to 20.
    assert_eq!((merged.totals.turns, merged.totals.missed), (12, 3));
    assert_eq!(parts(&merged.totals), [24.0, 48.0, 36.0, 48.0]);
}

#[test]
fn a_lost_request_is_time_of_the_wire() {
    let mut path = Path::new(5 * MS, 5 * MS, 0);
    path.handshake();
    path.turn();
    path.now_ns += 2 * MS;
    let sequence = path.next[0];
    path.send(true, path.now_ns, sequence, ACK, &DATA, true);
    path.now_ns += 200 * MS;
    path.go(true, ACK, &DATA);
    path.now_ns += 5 * MS + 3 * MS;
    path.go(false, ACK, &DATA);
    path.now_ns += 5 * MS;
    (0..5).for_each(|_| path.turn());
    let merged = path.merge();
    assert_eq!((merged.totals.turns, left_out(&merged.totals)), (7, [0; 3]));
    assert_eq!(parts(&merged.totals), [12.0, 235.0, 21.0, 35.0]);
    assert_eq!(merged.totals.there.max_ns, 205 * MS);
}

#[test]
fn a_turn_that_a_capture_missed_is_left_out_and_no_other_is() {
    let mut path = Path::new(5 * MS, 5 * MS, 0);
    path.handshake();
    (0..10).for_each(|_| path.turn());
    path.at_server.remove(3 + 2 * 4); // the fifth request
    let merged = path.merge();
    assert_eq!((merged.totals.turns, left_out(&merged.totals)), (9, [0, 1, 0]));
    path.at_client.remove(3 + 2 * 7 + 1); // the eighth reply: the next request is seen to follow nothing
    let merged = path.merge();
    assert_eq!((merged.totals.turns, left_out(&merged.totals)), (7, [0, 3, 0]));
}

#[test]
fn a_sender_that_waits_for_acknowledgements_waits_for_the_wire() {
    let mut path = Path::new(10 * MS, 10 * MS, 3 * MS as i64);
    path.handshake();
    path.now_ns += 2 * MS;
    path.go(true, ACK, &DATA);
    path.now_ns += path.there_ns + 3 * MS;
    // Three flights of ten segments, one round trip after the other; then the end, which the server has to work for.
    for _ in 0..3 {
        (0..10).for_each(|_| path.go(false, ACK, &FULL));
        path.now_ns += path.back_ns;
        path.go(true, ACK, &[]);
        path.now_ns += path.there_ns;
    }
    path.now_ns += 30 * MS;
    path.go(false, ACK, &DATA);
    path.now_ns += path.back_ns;
    (0..3).for_each(|_| path.turn());
    let merged = path.merge();
    assert_eq!((merged.totals.turns, left_out(&merged.totals)), (4, [0; 3]));
    // 3 ms of work; two waits of 20 ms; then 20 ms and 30 ms, in which nothing says that the server waited.
    assert_eq!(merged.totals.back.max_ns, 50 * MS, "{:?}", merged.totals);
    assert_eq!(merged.totals.server.max_ns, 53 * MS);
}

#[test]
fn a_client_that_pipelines_has_turns_that_cross() {
    let mut path = Path::new(10 * MS, 10 * MS, 0);
    path.handshake();
    (0..3).for_each(|_| path.turn());
    path.now_ns += 2 * MS;
    path.go(true, ACK, &DATA);
    // The server sends two replies. The client goes on after the first, and again after the second, which had left long before.
    let asked_ns = path.now_ns;
    path.now_ns = asked_ns + 11 * MS;
    path.go(false, ACK, &DATA);
    let first = path.next[1];
    path.now_ns = asked_ns + 12 * MS;
    path.go(false, ACK, &DATA);
    let second = std::mem::replace(&mut path.next[1], first);
    path.now_ns = asked_ns + 21 * MS + MS / 2;
    path.go(true, ACK, &DATA);
    path.next[1] = second;
    path.now_ns = asked_ns + 23 * MS;
    path.go(true, ACK, &DATA);
    path.now_ns += 10 * MS + MS;
    path.go(false, ACK, &DATA);
    path.now_ns += 10 * MS;
    path.turn();
    let merged = path.merge();
    assert_eq!(left_out(&merged.totals), [1, 0, 0], "{:?}", merged.totals);
    assert_eq!(merged.totals.turns, 6);
}

#[test]
fn captures_that_are_mistaken_for_each_other_are_noticed() {
    let mut path = Path::new(5 * MS, 5 * MS, 0);
    path.handshake();
    (0..10).for_each(|_| path.turn());
    std::mem::swap(&mut path.at_client, &mut path.at_server);
    let merged = path.merge();
    assert!(merged.clock.unwrap().is_impossible);
    assert_eq!((merged.totals.turns, merged.totals.unclocked), (0, 10));
}

#[test]
fn one_capture_given_for_both_sides_is_noticed_even_with_other_times() {
    for offset_ns in [0, 3_600_000 * MS as i64] {
        let mut path = Path::new(5 * MS, 5 * MS, 0);
        path.handshake();
        (0..10).for_each(|_| path.turn());
        path.at_server.clone_from(&path.at_client);
        for frame in &mut path.at_server {
            frame.at_ns = frame.at_ns.checked_add_signed(offset_ns).unwrap();
        }
        let merged = path.merge();
        assert!(merged.is_one_place && merged.clock.is_none());
        assert_eq!((merged.connections, merged.totals.turns, merged.totals.unclocked), (1, 0, 10));
    }
}

#[test]
fn a_clock_that_runs_fast_moves_no_time_from_one_part_to_another() {
    let mut path = Path::new(5 * MS, 5 * MS, 0);
    path.handshake();
    for _ in 0..2_000 {
        path.turn();
        path.offset_ns += 3_000; // 200 µs a second, and 6 ms in all: more than a way takes
    }
    let merged = path.merge();
    let clock = merged.clock.unwrap();
    assert!((clock.drift_ppb - 200_000).abs() < 5_000, "{clock:?}");
    assert_eq!((merged.totals.turns, clock.steps), (2_000, 0));
    let [_, there, server, back] = parts(&merged.totals);
    for (part, true_ms) in [(there, 10_000.0), (server, 6_000.0), (back, 10_000.0)] {
        assert!((part - true_ms).abs() < 500.0, "{part} ms, in truth {true_ms}");
    }
}

#[test]
fn a_clock_that_was_set_costs_the_turns_of_that_time_only() {
    for step_ms in [-250, 8, 250] {
        let mut path = Path::new(5 * MS, 5 * MS, 0);
        path.handshake();
        (0..300).for_each(|_| path.turn());
        path.offset_ns += step_ms * MS as i64;
        (0..300).for_each(|_| path.turn());
        let merged = side(&path.at_client).merge(side_in_order(&path.at_server));
        let clock = merged.clock.unwrap();
        assert_eq!((clock.steps, clock.drift_ppb, clock.is_impossible), (1, 0, false), "{step_ms}");
        let turns = merged.totals.turns;
        assert!(
            (590..=600).contains(&turns) && turns + merged.totals.unclocked == 600,
            "{:?}",
            merged.totals
        );
        let [_, there, server, back] = parts(&merged.totals).map(|sum| sum / turns as f64);
        assert!((there - 5.0).abs() < 0.2 && (server - 3.0).abs() < 0.01 && (back - 5.0).abs() < 0.2);
    }
}

#[test]
fn a_turn_in_which_a_clock_was_set_is_left_out_however_long_it_is() {
    for (is_client, step_ms) in [(true, 900), (true, -900), (false, 900), (false, -900)] {
        let mut path = Path::new(5 * MS, 5 * MS, 0);
        path.handshake();
        (0..300).for_each(|_| path.turn());
        path.now_ns += 2 * MS;
        path.go(true, ACK, &DATA);
        path.now_ns += path.there_ns + 3_000 * MS;
        path.offset_ns += step_ms * MS as i64 * if is_client { -1 } else { 1 };
        if is_client {
            path.now_ns = path.now_ns.checked_add_signed(step_ms * MS as i64).unwrap();
        }
        path.go(false, ACK, &DATA);
        path.now_ns += path.back_ns;
        (0..300).for_each(|_| path.turn());
        let merged = side_in_order(&path.at_client).merge(side_in_order(&path.at_server));
        assert_eq!(merged.clock.unwrap().steps, 1);
        assert_eq!(merged.totals.turns + merged.totals.unclocked, 601);
        assert!((1..10).contains(&merged.totals.unclocked), "{:?}", merged.totals);
        assert_eq!(merged.totals.server.max_ns, 3 * MS, "{is_client} {step_ms}: {:?}", merged.totals);
    }
}

#[test]
fn packets_that_are_cut_after_their_headers_are_enough() {
    let mut path = Path::new(5 * MS, 5 * MS, 0);
    path.handshake();
    (0..10).for_each(|_| path.turn());
    for frame in &mut path.at_server {
        frame.snaplen = 14 + 20 + 20;
    }
    let merged = path.merge();
    assert_eq!((merged.totals.turns, left_out(&merged.totals)), (10, [0; 3]));
    assert_eq!(parts(&merged.totals), [18.0, 50.0, 30.0, 50.0]);
}

#[test]
fn numbers_that_a_firewall_changes_are_never_taken_for_each_other() {
    for shift in [[1, 0], [0, 1], [0x1234_5678, 0xfedc_ba98], [20, 20], [u32::MAX, 3]] {
        let mut path = Path::new(5 * MS, 5 * MS, 0);
        path.shift = shift;
        path.handshake();
        (0..50).for_each(|_| path.turn());
        for from in [0, 3] {
            // With the SYNs, and without.
            path.at_client.drain(..from);
            path.at_server.drain(..from);
            let merged = path.merge();
            let found = (merged.connections, merged.client_only, merged.server_only);
            assert_eq!(found, (0, 1, 1), "{shift:?} {from}");
            assert_eq!((merged.clock, merged.totals), (None, Split::default()));
        }
    }
}

#[test]
fn a_proxy_leaves_nothing_to_match() {
    let mut before = Path::new(MS, MS, 0);
    before.handshake();
    (0..10).for_each(|_| before.turn());
    let mut after = Path::new(MS, MS, 0);
    after.client_seen.0 = [10, 0, 0, 9];
    after.next = [77, 99];
    after.handshake();
    (0..10).for_each(|_| after.turn());
    let merged = side(&before.at_client).merge(side(&after.at_server));
    assert_eq!((merged.connections, merged.client_only, merged.server_only), (0, 1, 1));
}

#[test]
fn segments_sent_again_in_vain_change_nothing() {
    let mut path = Path::new(5 * MS, 5 * MS, 0);
    path.handshake();
    for turn in 0..10 {
        path.turn();
        // The request again, which gets lost; the reply again, which arrives.
        let sequences = path.next.map(|next| next.wrapping_sub(DATA.len() as u32));
        let (now_ns, next) = (path.now_ns, path.next);
        path.next[1] = sequences[1];
        path.send(true, now_ns - 9 * MS, sequences[0], ACK, &DATA, turn % 2 == 0);
        path.next = next;
        path.send(false, now_ns - 4 * MS, sequences[1], ACK, &DATA, turn % 3 == 0);
    }
    let merged = path.merge();
    assert_eq!((merged.totals.turns, left_out(&merged.totals)), (10, [0; 3]));
    assert_eq!(parts(&merged.totals), [18.0, 50.0, 30.0, 50.0]);
    assert_eq!(merged.clock.unwrap().offset_ns, 0);
}

#[test]
fn losses_of_one_way_are_time_of_that_way() {
    let mut path = Path::new(5 * MS, 5 * MS, 4 * MS as i64);
    path.handshake();
    for turn in 0..30 {
        path.now_ns += 2 * MS;
        path.go(true, ACK, &DATA);
        path.now_ns += 5 * MS + 3 * MS;
        if turn % 3 == 0 {
            let sequence = path.next[1];
            path.send(false, path.now_ns, sequence, ACK, &DATA, true);
            path.now_ns += 200 * MS;
        }
        path.go(false, ACK, &DATA);
        path.now_ns += 5 * MS;
    }
    let merged = path.merge();
    assert_eq!((merged.totals.turns, left_out(&merged.totals)), (30, [0; 3]));
    assert_eq!(parts(&merged.totals), [58.0, 150.0, 90.0, 2_150.0]);
    assert_eq!(merged.clock.unwrap().offset_ns, 4 * MS as i64, "what was lost says nothing of clocks");
}

#[test]
fn half_of_a_connection_at_one_side_has_no_parts_and_is_matched() {
    let is_of_client = |frame: &Frame| frame.ip[12..16] == CLIENT.0;
    for (at_client, from_client) in [(true, true), (true, false), (false, true), (false, false)] {
        let mut path = Path::new(5 * MS, 5 * MS, 0);
        path.handshake();
        (0..10).for_each(|_| path.turn());
        let frames = if at_client { &mut path.at_client } else { &mut path.at_server };
        frames.retain(|frame| is_of_client(frame) == from_client);
        let merged = path.merge();
        assert_eq!((merged.connections, merged.totals.turns), (1, 0), "{at_client} {from_client}");
        assert!(merged.clock.is_none_or(|clock| !clock.is_impossible));
    }
}

#[test]
fn a_copy_that_the_sender_s_capture_missed_makes_no_clock_wrong() {
    let mut path = Path::new(5 * MS, 5 * MS, 0);
    path.handshake();
    (0..100).for_each(|_| path.turn());
    // The request arrives; its acknowledgement is lost, so that it is sent again; of the client's two copies one was captured.
    path.now_ns += 2 * MS;
    let (sequence, left_ns) = (path.next[0], path.now_ns);
    path.go(true, ACK, &DATA);
    path.at_client.pop();
    path.send(true, left_ns + 200 * MS, sequence, ACK, &DATA, true);
    path.now_ns = left_ns + 210 * MS;
    path.go(false, ACK, &DATA);
    path.now_ns += 5 * MS;
    (0..100).for_each(|_| path.turn());
    let merged = path.merge();
    let clock = merged.clock.unwrap();
    assert_eq!((clock.offset_ns, clock.steps, clock.is_impossible), (0, 0, false));
    assert_eq!((merged.totals.turns, left_out(&merged.totals)), (200, [0, 0, 1]));
    assert_eq!((merged.totals.there.max_ns, merged.totals.back.max_ns), (5 * MS, 5 * MS));
}

#[test]
fn a_reply_whose_first_segment_was_captured_last_at_its_sender_is_left_out() {
    let mut path = Path::new(5 * MS, 5 * MS, 0);
    path.handshake();
    (0..10).for_each(|_| path.turn());
    path.now_ns += 2 * MS;
    path.go(true, ACK, &DATA);
    path.now_ns += 8 * MS;
    let (sequence, left_ns) = (path.next[1], path.now_ns);
    path.go(false, ACK, &FULL);
    path.at_server.pop();
    path.go(false, ACK, &DATA);
    path.send(false, left_ns + 3 * MS, sequence, ACK, &FULL, true);
    path.now_ns += 5 * MS;
    (0..10).for_each(|_| path.turn());
    let merged = path.merge();
    assert_eq!(merged.clock.unwrap().offset_ns, 0);
    assert_eq!((merged.totals.turns, left_out(&merged.totals)), (20, [0, 1, 0]), "{:?}", merged.totals);
}

#[test]
fn a_path_that_is_too_narrow_for_a_reply_has_its_time() {
    let mut path = Path::new(10 * MS, 10 * MS, 0);
    path.handshake();
    (0..5).for_each(|_| path.turn());
    path.now_ns += 2 * MS;
    path.go(true, ACK, &DATA);
    path.now_ns += path.there_ns + 3 * MS;
    // One segment each millisecond fits: after the first flight, each acknowledgement lets the next one go.
    (0..20).for_each(|_| path.go(false, ACK, &FULL));
    let window = 20 * FULL.len() as u32;
    path.now_ns += 20 * MS;
    for _ in 0..100 {
        path.now_ns += MS;
        let sent = path.next[1];
        path.next[1] = sent.wrapping_sub(window - FULL.len() as u32);
        let (left_ns, sequence) = (path.now_ns - path.there_ns, path.next[0]);
        path.send(true, left_ns, sequence, ACK, &[], false);
        path.next[1] = sent;
        path.go(false, ACK, &FULL);
    }
    path.go(false, ACK, &DATA);
    path.now_ns += path.back_ns;
    (0..3).for_each(|_| path.turn());
    let merged = path.merge();
    assert_eq!((merged.totals.turns, left_out(&merged.totals)), (9, [0; 3]));
    assert_eq!(merged.totals.server.max_ns, 3 * MS, "{:?}", merged.totals);
    assert_eq!(merged.totals.back.max_ns, (10 + 20 + 100) * MS);
}

#[test]
fn connections_of_the_same_ports_one_after_the_other_are_told_apart() {
    let mut path = Path::new(5 * MS, 5 * MS, 0);
    for begin in [1_000, 500_000] {
        path.next = [begin, begin + 9];
        path.handshake();
        (0..4).for_each(|_| path.turn());
        path.go(true, FIN | ACK, &[]);
        path.now_ns += path.there_ns;
        path.go(false, FIN | ACK, &[]);
        path.now_ns += 100 * MS;
    }
    let merged = path.merge();
    assert_eq!((merged.connections, merged.totals.turns), (2, 8));
    assert_eq!(parts(&merged.totals), [12.0, 40.0, 24.0, 40.0]);
}
