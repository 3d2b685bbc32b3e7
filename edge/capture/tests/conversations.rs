//! What packets come to, whatever happened to them.

mod common;

use common::{
    ACK, Dress, Frame, RST, Talk, analyze, analyze_with, described, message, pcap, pcapng, query, read,
    ready, reply, row, runs,
};
use onetrip_capture::CaptureConfig;

const CHILD: &str = "SELECT title FROM books WHERE author_id = ";

/// Logs in and asks ten queries.
fn ten_queries() -> Talk {
    let mut talk = Talk::default();
    talk.log_in();
    for number in 0..10 {
        talk.query(&format!("{CHILD}{number}"));
    }
    talk.end();
    talk
}

#[test]
fn a_conversation_is_the_same_in_every_file_format_and_link_layer_and_by_the_byte() {
    let talk = ten_queries();
    let (expected, network) = analyze(&talk.frames);
    assert_eq!((expected.trips.total, expected.trips.connect, expected.statements), (11, 1, 10));
    assert_eq!((expected.connections, expected.unanswered, expected.undecoded), (1, 0, 0));
    assert_eq!(runs(&expected), [(format!("{CHILD}$1"), 10)]);
    assert_eq!(network.totals.initial_rtt_ns, Some(1_010_000));
    assert_eq!(network.capture.unknown_bytes, 0);
    for dress in Dress::ALL {
        for file in
            [pcap(&talk.frames, dress, false), pcap(&talk.frames, dress, true), pcapng(&talk.frames, dress)]
        {
            for piece in [usize::MAX, 1] {
                let (summary, _, problem) = read(&file, piece);
                assert_eq!(
                    (problem, summary.trips, runs(&summary)),
                    (None, expected.trips, runs(&expected)),
                    "{dress:?}"
                );
            }
        }
    }
}

#[test]
fn segments_twice_out_of_order_and_in_pieces_change_nothing_but_the_marks() {
    let mut talk = ten_queries();
    let text = query(&format!("{CHILD}77"));
    talk.reopen(25); // without the end
    for piece in text.chunks(20) {
        talk.client_piece(piece);
    }
    talk.server(&reply("1"));
    let expected = analyze(&talk.frames).0;
    assert_eq!(expected.statements, 11);
    let mut again = talk.frames[7].clone();
    again.ip[4] ^= 0x80; // another packet, with another IP identification
    talk.frames.insert(9, again);
    talk.frames.swap(27, 28);
    let (summary, network) = analyze(&talk.frames);
    assert_eq!((summary.trips, runs(&summary)), (expected.trips, runs(&expected)));
    assert_eq!(network.totals.up.spurious_retransmissions + network.totals.down.spurious_retransmissions, 1);
}

#[test]
fn packets_that_a_capture_has_twice_count_once() {
    let once = ten_queries().frames;
    let copy = |frame: &Frame| {
        let mut copy = frame.clone();
        copy.at_ns += 3_000;
        copy.ip[8] -= 1; // a router is in between
        [frame.clone(), copy]
    };
    let twice: Vec<Frame> = once.iter().flat_map(copy).collect();
    let ((expected, alone), (summary, network)) = (analyze(&once), analyze(&twice));
    assert_eq!((summary.trips, runs(&summary)), (expected.trips, runs(&expected)));
    assert_eq!(network.totals.up, alone.totals.up);
    assert_eq!(network.totals.down, alone.totals.down);
    assert_eq!(network.capture.doubled_packets, once.len() as u64);
}

#[test]
fn a_client_that_was_nearer_for_once_does_not_pipeline() {
    // Captured at the server: the way to the client takes 20 ms in the handshake, and 1 ms later.
    let mut talk = Talk::default();
    talk.handshake_seen_at(10, 20_000);
    talk.start_up();
    for number in 0..5 {
        talk.wait_us(1_000);
        talk.query(&format!("{CHILD}{number}"));
    }
    talk.end();
    let (summary, _) = analyze(&talk.frames);
    assert_eq!((summary.trips.total, summary.trips.may_share), (6, 0));
}

#[test]
fn a_client_that_answers_at_once_and_in_one_segment_with_the_acknowledgement_does_not_pipeline() {
    let mut talk = Talk::default();
    talk.log_in();
    for _ in 0..20 {
        talk.wait_us(11);
        talk.segment(true, ACK, &[]);
        talk.client_at_once(&query("SELECT 1"), 12);
        talk.server(&reply("1"));
        talk.client_at_once(&query("SELECT 2"), 11);
        talk.server(&reply("2"));
    }
    let (summary, _) = analyze(&talk.frames);
    assert_eq!((summary.trips.work(), summary.trips.may_share), (40, 0));
}

#[test]
fn a_late_acknowledgement_does_not_hold_up_the_times_behind_it() {
    let measured = |begin: &dyn Fn(&mut Talk)| {
        let mut talk = Talk::default();
        begin(&mut talk);
        let begun = talk.frames.len();
        for _ in 0..30 {
            // Seen near the server, 2 ms from the client.
            talk.client_at_once(&query("SELECT 1"), 2_050);
            talk.wait_us(100);
            talk.segment(false, ACK, &reply("1"));
            talk.server_has_sent(&reply("1"));
        }
        let (summary, _) = analyze(&talk.frames);
        let elapsed_ns = talk.now_ns - talk.frames[begun].at_ns;
        (elapsed_ns, summary.times.wire_ns)
    };
    let late_handshake = |talk: &mut Talk| {
        talk.handshake_seen_at(10, 400_000);
        talk.start_up();
    };
    // The first that is seen is a reply, which the client acknowledges late.
    let joined = |talk: &mut Talk| {
        talk.client_at_once(&query("SELECT 0"), 100);
        talk.wait_us(100);
        talk.segment(false, ACK, &reply("0"));
        talk.server_has_sent(&reply("0"));
        talk.wait_us(42_000);
        talk.segment(true, ACK, &[]);
    };
    for begin in [&late_handshake as &dyn Fn(&mut Talk), &joined] {
        let (elapsed_ns, wire_ns) = measured(begin);
        let expected_ns = 30 * 2_100_000;
        assert!(elapsed_ns.abs_diff(expected_ns) < 4_000_000, "{elapsed_ns}");
        assert!((50_000_000..70_000_000).contains(&wire_ns), "{wire_ns}");
    }
}

#[test]
fn the_first_reply_of_a_connection_that_was_joined_does_not_measure_the_path() {
    let mut talk = Talk::default();
    talk.client(&query("SELECT pg_sleep(0.5)"));
    talk.wait_us(500_000);
    talk.server(&reply(""));
    for _ in 0..30 {
        talk.query("SELECT 1");
    }
    let (summary, _) = analyze(&talk.frames);
    assert!((30_000_000..40_000_000).contains(&summary.times.wire_ns), "{}", summary.times.wire_ns);
}

#[test]
fn a_reset_that_no_receiver_takes_ends_nothing() {
    let mut talk = ten_queries();
    let end = talk.frames.len() - 3;
    let mut reset = talk.frames[end - 1].clone();
    // The server's last reply, as a reset far away: flags and sequence number of its TCP header.
    reset.ip.truncate(40);
    reset.ip[2..4].copy_from_slice(&40_u16.to_be_bytes());
    reset.ip[4] ^= 0x80;
    reset.ip[24] ^= 0x40;
    reset.ip[33] = RST;
    talk.frames.insert(end - 4, reset);
    let (summary, _) = analyze(&talk.frames);
    assert_eq!((summary.trips.total, summary.statements), (11, 10));
}

#[test]
fn a_frame_that_the_capture_missed_is_unknown_and_the_books_go_on_at_the_next_turn() {
    let whole = ten_queries();
    // Frames: handshake 0-2, login 3-4, then query and reply in turn.
    for (missing, unknown) in [(5, "a request"), (6, "a reply")] {
        let mut talk = whole.clone();
        let lost = talk.frames.remove(missing);
        let (summary, network) = analyze(&talk.frames);
        let bytes = lost.ip.len() as u64 - 40;
        assert_eq!(network.capture.missed_bytes, bytes, "{unknown}");
        assert!(network.capture.unknown_bytes >= bytes, "{unknown}");
        assert_eq!(summary.trips.total, 11, "{unknown} is a trip all the same");
        let known = if missing == 5 { 9 } else { 10 };
        let runs = runs(&summary);
        let of_child = runs.iter().find(|(text, _)| text.starts_with(CHILD)).map(|(_, runs)| *runs);
        assert_eq!(of_child, Some(known), "{unknown}: {runs:?}");
        assert_eq!(summary.undecoded, 0);
    }
}

#[test]
fn rows_that_a_loop_walks_are_known_however_segments_cut_them() {
    let all: Vec<u8> = (100..140).flat_map(|id| row(&id.to_string())).collect();
    let end = [message(b'C', b"SELECT 40\0"), ready(b'I')].concat();
    let authors = [described(), all, end].concat();
    for segment in [usize::MAX, 500, 11, 1] {
        let mut talk = Talk::default();
        talk.log_in();
        talk.client(&query("SELECT id FROM authors"));
        let pieces: Vec<&[u8]> = authors.chunks(segment.min(authors.len())).collect();
        pieces.into_iter().for_each(|piece| talk.server(piece));
        for id in 100..140 {
            talk.query(&format!("{CHILD}{id}"));
        }
        let (summary, _) = analyze(&talk.frames);
        assert_eq!((summary.rows, summary.statements, summary.undecoded), (80, 41, 0), "{segment}");
        let codes: Vec<_> = summary.findings.iter().map(|finding| finding.code.to_string()).collect();
        assert_eq!(codes, ["OT001"], "{segment}");
        assert_eq!(summary.findings[0].trips, 40, "{segment}");
    }
}

/// Rows of COPY data, each a message.
fn copy_rows(from: usize, to: usize) -> Vec<u8> {
    (from..to).flat_map(|row| message(b'd', format!("{row}\tQuite dull\n").as_bytes())).collect()
}

/// What begins COPY data: `tag` is G or H, `format` 0 for text.
fn copy_begins(tag: u8, format: u8) -> Vec<u8> {
    message(tag, &[format, 0, 2, 0, format, 0, format])
}

fn copied(rows: usize) -> Vec<u8> {
    [message(b'C', format!("COPY {rows}\0").as_bytes()), ready(b'I')].concat()
}

/// 400 rows from client to server in 20 segments, the first of them frame 7; then a query, or one that does not wait.
fn copies_in(format: u8, waits: bool) -> Talk {
    let mut talk = Talk::default();
    talk.log_in();
    talk.client(&query("COPY books FROM STDIN"));
    talk.server(&copy_begins(b'G', format));
    let all = copy_rows(0, 400);
    let size = all.len().div_ceil(20);
    talk.wait_us(100);
    all.chunks(size).for_each(|data| talk.client_piece(data));
    let done = message(b'c', b"");
    if waits {
        talk.client_piece(&done);
        talk.server(&copied(400));
        talk.query("SELECT 1");
    } else {
        talk.client_piece(&[done, query("SELECT 1")].concat());
        talk.server(&[copied(400), reply("1")].concat());
    }
    talk.query("SELECT 'after'");
    talk
}

#[test]
fn copy_data_goes_on_after_a_gap_and_what_follows_it_is_known() {
    for waits in [true, false] {
        let talk = copies_in(0, waits);
        let (whole, _) = analyze(&talk.frames);
        assert_eq!(runs(&whole).len(), 2, "SELECT twice, COPY: {:?}", runs(&whole));
        for (missing, count) in [(7, 1), (9, 1), (12, 5), (25, 1)] {
            let mut talk = talk.clone();
            let lost: usize =
                talk.frames.drain(missing..missing + count).map(|frame| frame.ip.len() - 40).sum();
            let (summary, network) = analyze(&talk.frames);
            assert_eq!(network.capture.missed_bytes, lost as u64);
            let unknown = network.capture.unknown_bytes;
            assert!((lost as u64..lost as u64 + 60).contains(&unknown), "{missing}: {unknown} of {lost}");
            assert_eq!((summary.trips, runs(&summary)), (whole.trips, runs(&whole)), "{missing}");
            assert_eq!(
                (summary.rows, summary.undecoded, summary.unanswered),
                (whole.rows, 0, 0),
                "{missing}"
            );
        }
    }
}

#[test]
fn rows_that_a_server_copies_out_are_known_after_a_gap() {
    let mut talk = Talk::default();
    talk.log_in();
    talk.client(&query("COPY books TO STDOUT"));
    let all = [copy_begins(b'H', 0), copy_rows(0, 400), message(b'c', b""), copied(400)].concat();
    for data in all.chunks(700) {
        talk.server(data);
        talk.segment(true, ACK, &[]);
    }
    talk.query("SELECT 1");
    let (whole, _) = analyze(&talk.frames);
    for missing in [8, 12] {
        let mut talk = talk.clone();
        let lost = talk.frames.remove(missing).ip.len() - 40;
        let (summary, network) = analyze(&talk.frames);
        let unknown = network.capture.unknown_bytes;
        assert!((lost as u64..lost as u64 + 60).contains(&unknown), "{unknown} of {lost}");
        assert_eq!((summary.trips, summary.rows, runs(&summary)), (whole.trips, whole.rows, runs(&whole)));
    }
}

#[test]
fn nothing_in_copy_data_is_taken_for_a_statement() {
    // Binary data may hold whole messages.
    let mut binary = copies_in(1, true);
    let inner = [copy_rows(0, 3), message(b'c', b""), query("DROP TABLE books")].concat();
    let at = binary.frames[12].ip.len() - inner.len();
    binary.frames[12].ip[at..].copy_from_slice(&inner);
    binary.frames.remove(11);
    // A notice amid the data: the client is not at the beginning of a request, whatever its next byte.
    let mut noticed = copies_in(0, true);
    noticed.frames.remove(9);
    let mut notice = Talk::default();
    notice.log_in();
    notice.server(&message(b'N', b"SNOTICE\0\0"));
    let mut notice = notice.frames.pop().expect("it was sent");
    notice.at_ns = noticed.frames[9].at_ns;
    let (before, after) = (noticed.frames[6].ip.clone(), noticed.frames[8].ip.clone());
    let size = (before.len() - 40) as u32;
    let sequence = u32::from_be_bytes([before[24], before[25], before[26], before[27]]).wrapping_add(size);
    notice.ip[24..28].copy_from_slice(&sequence.to_be_bytes());
    notice.ip[28..32].copy_from_slice(&after[24..28]);
    let length = (notice.ip.len() - 40) as u32;
    noticed.frames.insert(9, notice);
    for frame in &mut noticed.frames[10..] {
        // Everybody goes on after it.
        let at = if frame.ip[12..16] == [10, 0, 0, 1] { 28 } else { 24 };
        let number = u32::from_be_bytes([frame.ip[at], frame.ip[at + 1], frame.ip[at + 2], frame.ip[at + 3]]);
        frame.ip[at..at + 4].copy_from_slice(&number.wrapping_add(length).to_be_bytes());
    }
    noticed.frames[10].ip[40..45].copy_from_slice(b"Quite");
    for talk in [binary, noticed] {
        let (summary, _) = analyze(&talk.frames);
        let runs = runs(&summary);
        let known = ["", "COPY books FROM STDIN", "SELECT $1"];
        assert!(runs.iter().all(|(text, _)| known.contains(&text.as_str())), "{runs:?}");
        assert_eq!(runs.last(), Some(&("SELECT $1".to_owned(), 2)), "what follows is known");
    }
}

#[test]
fn what_was_prepared_before_the_capture_is_unknown_and_never_guessed() {
    let bind = |statement: &str| {
        let body = [b"\0", statement.as_bytes(), b"\0\0\0\0\0\0\0"].concat();
        [message(b'B', &body), message(b'E', b"\0\0\0\0\0"), message(b'S', b"")].concat()
    };
    let prepare = [message(b'P', b"s1\0SELECT 1 FROM a\0\0\0"), message(b'S', b"")].concat();
    let answer = [message(b'2', b""), message(b'C', b"SELECT 0\0"), ready(b'I')].concat();
    let mut talk = Talk::default();
    talk.log_in();
    talk.client(&prepare);
    talk.server(&[message(b'1', b""), ready(b'I')].concat());
    for _ in 0..20 {
        talk.client(&bind("s1"));
        talk.server(&answer);
    }
    let (whole, _) = analyze(&talk.frames);
    assert_eq!(runs(&whole).last(), Some(&("SELECT $1 FROM a".to_owned(), 20)));
    let (summary, network) = analyze(&talk.frames[8..]);
    assert_eq!(network.capture.joined, 1);
    let runs = runs(&summary);
    assert!(runs.iter().all(|(text, _)| !text.contains("SELECT")), "{runs:?}");
    assert_eq!(summary.findings, Vec::new(), "nothing is said of statements that are not known");
    assert!(summary.trips.total >= 18, "{:?}", summary.trips);
}

#[test]
fn cut_packets_are_counted_by_turns_and_no_statement_is_guessed_from_its_beginning() {
    let mut talk = ten_queries();
    for frame in &mut talk.frames {
        frame.snaplen = 14 + 40 + 20;
    }
    let (summary, network) = analyze(&talk.frames);
    assert_eq!(summary.trips.total, 11);
    assert!(network.capture.cut_packets > 10);
    assert!(runs(&summary).iter().all(|(text, _)| !text.contains("title")), "{:?}", runs(&summary));
    assert_eq!(summary.findings, Vec::new());
}

#[test]
fn of_half_seen_connections_what_was_seen_is_counted() {
    let whole = ten_queries();
    let from_client: Vec<_> =
        whole.frames.iter().filter(|frame| frame.ip[12..16] == [10, 0, 0, 1]).cloned().collect();
    let (summary, network) = analyze(&from_client);
    assert_eq!(network.capture.half_seen, 1);
    assert!(network.capture.missed_bytes > 0);
    assert_eq!(summary.trips.work(), 10, "{:?} {:?}", summary.trips, runs(&summary));
}

#[test]
fn a_unit_sent_before_the_reply_was_received_shares_the_trip_however_late_it_is_seen() {
    let mut talk = Talk::default();
    talk.log_in();
    talk.client(&query("SELECT 1"));
    // At the server's side the second unit arrives after the first was answered; its acknowledgement tells that the client
    // had not received that answer when it sent it.
    let mut second = talk.clone();
    second.client(&query("SELECT 2"));
    let late = second.frames.pop().expect("it was sent");
    talk.server(&reply("1"));
    let at_ns = talk.now_ns + 50_000;
    talk.frames.push(Frame { at_ns, ..late });
    let (summary, _) = analyze(&talk.frames);
    assert_eq!((summary.trips.work(), summary.statements), (1, 1), "the second is not answered yet");
}

#[test]
fn a_connection_from_a_port_that_is_looked_at_is_left_out() {
    // The port of one program's server is that of another program's client.
    const PORT: u16 = 39_999;
    let conversation = |mut talk: Talk, queries| {
        talk.log_in();
        (0..queries).for_each(|number| talk.query(&format!("SELECT {number}")));
        talk.end();
        talk.frames
    };
    let (from, to) = (conversation(Talk::from_port(PORT), 9), conversation(Talk::to_port(PORT), 2));
    let config = || CaptureConfig { ports: vec![PORT], ..CaptureConfig::default() };
    for frames in [[&from[..], &to].concat(), [&to[..], &from].concat()] {
        let (summary, _) = analyze_with(config(), &frames);
        assert_eq!((summary.connections, summary.statements), (1, 2));
    }
    let (summary, _) = analyze_with(config(), &from);
    assert_eq!((summary.connections, summary.trips.total), (0, 0));
    // Without the handshake, the port tells the server.
    let (summary, _) = analyze_with(config(), &from[3..]);
    assert_eq!(summary.connections, 1);
}

#[test]
fn another_protocol_is_counted_by_turns_under_its_ports_name() {
    let mut talk = Talk::to_port(6379);
    talk.handshake();
    for _ in 0..5 {
        talk.client(b"*1\r\n$4\r\nPING\r\n");
        talk.server(b"+PONG\r\n");
    }
    talk.end();
    let (summary, network) = analyze(&talk.frames);
    assert_eq!((summary.trips.total, summary.statements, summary.connections), (5, 0, 1));
    assert_eq!(summary.scopes[0].label, "redis (port 6379)");
    assert_eq!(network.paths[0].protocol, "redis (port 6379)");
    assert_eq!(summary.findings, Vec::new());
}

#[test]
fn a_held_acknowledgement_and_a_held_segment_are_named_as_the_40_ms_bug() {
    let mut talk = Talk::default();
    talk.log_in();
    for number in 0..4 {
        let text = query(&format!("SELECT {number}"));
        let (head, rest) = text.split_at(5);
        talk.client(head);
        talk.wait_us(40_000);
        talk.segment(false, ACK, &[]);
        talk.client(rest);
        talk.server(&reply("1"));
    }
    let (summary, network) = analyze(&talk.frames);
    assert_eq!(summary.trips.work(), 4);
    assert_eq!(network.totals.up.delayed_ack_pairs, 4);
    assert!(network.totals.up.delayed_ack_ns > 4 * 30_000_000);
    assert_eq!(network.totals.down.delayed_ack_pairs, 0);
}

#[test]
fn damaged_files_say_where_and_why_and_what_was_before_is_counted() {
    let talk = ten_queries();
    let good = pcap(&talk.frames, Dress::Ethernet, false);
    let (_, _, problem) = read(&[], 100);
    assert_eq!(problem.as_deref(), Some("at offset 0: the file is empty"));
    let (_, _, problem) = read(b"GIF89a and so on", 100);
    assert!(problem.is_some_and(|text| text.starts_with("at offset 0: neither a pcap nor a pcapng")));
    let (summary, _, problem) = read(&good[..good.len() - 3], 100);
    assert!(problem.is_some_and(|text| text.contains("the file ends inside a record")));
    assert_eq!(summary.trips.total, 11);
    let mut huge = good.clone();
    huge.extend_from_slice(&[1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0x40]);
    let (summary, _, problem) = read(&huge, 100);
    let at = good.len();
    assert_eq!(
        problem,
        Some(format!("at offset {at}: a record claims 1073741824 bytes, more than any packet has"))
    );
    assert_eq!(summary.trips.total, 11);
    let sparse = [good.clone(), vec![0; 1 << 20]].concat();
    let (_, _, problem) = read(&sparse, 4096);
    assert!(problem.is_some_and(|text| text.starts_with(&format!("at offset {at}: a record of zeros"))));
}
