//! MySQL's conversations of which the capture lacks the beginning, or bytes in the middle.

mod common;

use std::sync::Arc;

use common::mysql::{
    CHILD, PLAIN, begin_tls, children, encoded, end, greeted, logged_in, login, ok, packets, query, result,
    ten_queries, told,
};
use common::tls13::{Sealer, hellos, key_log};
use common::{Talk, analyze_with, message, ready, reply, runs};
use onetrip_capture::{CaptureConfig, KeyLog};
use onetrip_wire::mysql::{Capabilities, Compression, PrepareOk, command, pack, put_lenenc_bytes};

const RECORD_BYTES: usize = 16 << 10;
/// What statements are called whose text is not known.
const UNKNOWN: &str = "(other statements)";
/// Frames before the first command of [`logged_in`].
const LOGIN_FRAMES: usize = 6;

fn packed(sequence: u8, plain: &[u8]) -> Vec<u8> {
    encoded(|out| _ = pack(out, Compression::Zlib, 1, sequence, plain))
}

fn prepared(parameters: u16, columns: u16, capabilities: Capabilities) -> Vec<u8> {
    let ok = PrepareOk { statement: 1, columns, parameters, warnings: 0, metadata_follows: None };
    let mut payloads = vec![encoded(|out| ok.encode(out))];
    for count in [parameters, columns].into_iter().filter(|count| *count > 0) {
        let definition = b"\x03def\0\0\0\x01?\0\x0c\x3f\0\0\0\0\0\xfd\x80\0\0\0\0".to_vec();
        payloads.extend(vec![definition; count.into()]);
        if !capabilities.has(Capabilities::DEPRECATE_EOF) {
            payloads.push(end(capabilities));
        }
    }
    packets(1, &payloads)
}

#[test]
fn a_tls_connection_that_is_joined_is_counted_by_turns() {
    // The first segment that is seen begins a record of the client's, or of the server's, or is within one.
    let record = |length: u8, byte: u8| [&[0x17, 3, 3, 0, length][..], &vec![byte; length.into()]].concat();
    for first in [vec![], record(200, 0x5c), vec![0xab; 100], record(200, 0x5c)[..150].to_vec()] {
        let mut talk = Talk::to_port(3306);
        talk.server(&first);
        if first.is_empty() {
            talk.frames.clear();
        }
        for number in 0..20 {
            // The codes of commands are among the lengths.
            talk.client(&record(18 + number, 0xc5));
            talk.server(&record(60, 0x5c));
        }
        let (summary, network) = told(&talk);
        assert_eq!((summary.trips.total, summary.statements), (20, 0), "{first:?}");
        assert_eq!(network.capture.encrypted, 1, "{first:?}");
        assert_eq!(network.paths[0].protocol, "mysql over TLS");
        assert_eq!((summary.connections, summary.unanswered), (1, 0));
    }
}

#[test]
fn a_tls_connection_whose_greeting_is_missing_is_counted_by_turns() {
    let capabilities = PLAIN | Capabilities::SSL;
    for at_once in [true, false] {
        let mut talk = greeted(capabilities, 3306);
        talk.frames.pop();
        let [hello, answer] = hellos();
        begin_tls(&mut talk, capabilities, &hello, at_once);
        talk.server(&answer);
        // ChangeCipherSpec looks like the header of a QUIT.
        talk.client(&[&[0x14, 3, 3, 0, 1, 1][..], b"\x17\x03\x03\0\x03ask"].concat());
        talk.server(b"\x17\x03\x03\0\x02ok");
        for _ in 0..5 {
            talk.client(b"\x17\x03\x03\0\x03ask");
            talk.server(b"\x17\x03\x03\0\x02ok");
        }
        let (summary, network) = told(&talk);
        assert_eq!((summary.trips.total, summary.statements), (7, 0), "{at_once}");
        assert_eq!((network.capture.encrypted, summary.connections), (1, 1));
    }
}

/// A session over TLS whose keys are known, up to its login.
fn sealed_login() -> (Talk, Sealer, Sealer) {
    let capabilities = PLAIN | Capabilities::SSL;
    let (mut client, mut server) = (Sealer::client(), Sealer::server());
    let [hello, answer] = hellos();
    let mut talk = greeted(capabilities, 3306);
    begin_tls(&mut talk, capabilities, &hello, false);
    talk.server(&answer);
    talk.client(&client.record(&packets(2, &[login(capabilities)])));
    talk.server(&server.record(&packets(3, &[ok()])));
    (talk, client, server)
}

fn with_keys() -> CaptureConfig {
    let keys = KeyLog::parse(key_log().as_bytes()).expect("a key log");
    CaptureConfig { keys: Some(Arc::new(keys)), ..CaptureConfig::default() }
}

#[test]
fn a_record_that_is_missing_within_a_long_row_or_statement_hides_that_turn_alone() {
    let (mut talk, mut client, mut server) = sealed_login();
    let mut long = result(0..1, PLAIN);
    let row = packets(4, &[encoded(|out| put_lenenc_bytes(out, &vec![b'x'; 100_000]))]);
    let at = long.len() - packets(0, &[end(PLAIN)]).len() - packets(0, &[vec![1, b'0']]).len();
    long.splice(at..at + 6, row);
    talk.client(&client.record(&query("SELECT body FROM books")));
    let reply_at = talk.frames.len();
    for piece in long.chunks(RECORD_BYTES) {
        talk.server(&server.record(piece));
    }
    let query_at = talk.frames.len();
    for piece in query(&format!("INSERT INTO books VALUES ('{}')", "x".repeat(60_000))).chunks(RECORD_BYTES) {
        talk.client_piece(&client.record(piece));
    }
    talk.server(&server.record(&packets(1, &[ok()])));
    for number in 0..10 {
        talk.client(&client.record(&query(&format!("{CHILD}{number}"))));
        talk.server(&server.record(&result(number..number + 1, PLAIN)));
    }
    let (whole, network) = analyze_with(with_keys(), &talk.frames);
    assert_eq!(network.paths[0].protocol, "mysql over TLS");
    assert_eq!((children(&whole), whole.rows), ((10, 11, 2), 11));
    for (missing, others) in [(reply_at + 3, 2), (query_at + 1, 1)] {
        let mut talk = talk.clone();
        talk.frames.remove(missing);
        let (summary, _) = analyze_with(with_keys(), &talk.frames);
        assert_eq!(summary.trips.total, whole.trips.total, "{missing}");
        let (known, rows, named) = children(&summary);
        assert_eq!((known, named), (10, others), "{missing}: {:?}", runs(&summary));
        assert!(rows >= 10, "{missing}: {rows}");
        assert_eq!((summary.unanswered, summary.undecoded), (0, 0), "{missing}");
    }
}

#[test]
fn the_same_holds_for_postgresql() {
    let (mut client, mut server) = (Sealer::client(), Sealer::server());
    let [hello, answer] = hellos();
    let mut talk = Talk::default();
    talk.handshake();
    talk.client(&[0, 0, 0, 8, 4, 210, 22, 47]);
    talk.server(b"S");
    talk.client(&hello);
    talk.server(&answer);
    let startup = b"\0\0\0\x24\0\x03\0\0user\0ada\0database\0shop\0\0\0\0\0";
    talk.client(&client.record(startup));
    talk.server(&server.record(&[message(b'R', &[0, 0, 0, 0]), ready(b'I')].concat()));
    talk.client(&client.record(&common::query("SELECT body FROM books")));
    let at = talk.frames.len();
    // A record carries 22 bytes less than it has: so many at the end of the row look like messages.
    let text = [&[b'x'; 100_000][..], &common::row("9"), &message(b'N', &[0; 5])].concat();
    let long_row = message(b'D', &[&[0, 1][..], &(text.len() as u32).to_be_bytes(), &text].concat());
    let long = [common::described(), long_row, message(b'C', b"SELECT 1\0"), ready(b'I')];
    for piece in long.concat().chunks(RECORD_BYTES) {
        talk.server(&server.record(piece));
    }
    for number in 0..10 {
        talk.client(&client.record(&common::query(&format!("{CHILD}{number}"))));
        talk.server(&server.record(&reply("1")));
    }
    let (whole, _) = analyze_with(with_keys(), &talk.frames);
    assert_eq!((children(&whole), whole.rows), ((10, 11, 1), 11));
    talk.frames.remove(at + 3);
    let (summary, _) = analyze_with(with_keys(), &talk.frames);
    assert_eq!(summary.trips.total, whole.trips.total);
    assert_eq!(children(&summary).0, 10, "{:?}", runs(&summary));
    assert!((10..=11).contains(&summary.rows), "{}", summary.rows);
    assert_eq!((summary.undecoded, summary.unasked_replies), (0, 0));
}

#[test]
fn a_compressed_conversation_is_known_although_the_end_of_its_login_is_missing() {
    let capabilities = PLAIN | Capabilities::COMPRESS;
    for padding in [0, 100] {
        let mut talk = logged_in(capabilities, 3306);
        talk.frames.remove(LOGIN_FRAMES - 1);
        for number in 0..10 {
            talk.client(&packed(0, &query(&format!("{CHILD}{number}{}", " ".repeat(padding)))));
            talk.server(&packed(1, &result(number..number + 1, capabilities)));
        }
        let (summary, _) = told(&talk);
        assert_eq!((summary.trips.total, children(&summary)), (12, (10, 10, 0)), "{padding}");
    }
}

#[test]
fn nothing_of_a_compressed_conversation_without_its_login_is_taken_for_a_statement() {
    let capabilities = PLAIN | Capabilities::COMPRESS;
    let mut noise = fastrand::Rng::with_seed(7);
    for random in [0, 3_000] {
        let mut talk = logged_in(capabilities, 3306);
        talk.frames.clear();
        // Of the plain length the low byte is every command once.
        for length in 256..512 {
            let mut text = format!(
                "SELECT '{}'",
                std::iter::repeat_with(|| noise.alphanumeric()).take(random).collect::<String>()
            );
            text += &" ".repeat(length + random / 256 * 256 + 256 - text.len() - 5);
            let bytes = packed(0, &query(&text));
            for piece in bytes.chunks(1_448) {
                talk.client_piece(piece);
            }
            talk.server(&packed(1, &result(1..2, capabilities)));
        }
        let (summary, _) = told(&talk);
        assert_eq!((summary.trips.total, runs(&summary)), (256, vec![(UNKNOWN.to_owned(), 0)]), "{random}");
    }
}

#[test]
fn attributes_are_known_whichever_command_the_capture_begins_with() {
    let mut talk = logged_in(PLAIN, 3306);
    talk.frames.clear();
    talk.client(&packets(0, &[vec![command::PING]]));
    talk.server(&packets(1, &[ok()]));
    for number in 0..5 {
        let text = format!("{CHILD}{number}");
        talk.client(&packets(0, &[[&[command::QUERY, 0, 1][..], text.as_bytes()].concat()]));
        talk.server(&result(number..number + 1, PLAIN));
    }
    assert_eq!(children(&told(&talk).0), (5, 5, 1));
}

#[test]
fn a_gap_says_nothing_of_how_rows_end() {
    for capabilities in [PLAIN, PLAIN | Capabilities::DEPRECATE_EOF] {
        let mut talk = logged_in(capabilities, 3306);
        talk.frames.clear();
        let mut missing = 0;
        for number in 0..6 {
            talk.client(&query(&format!("{CHILD}{number}")));
            let reply = result(number..number + 1, capabilities);
            if number != 2 {
                talk.server(&reply);
                continue;
            }
            talk.server(&reply[..20]); // within the definition of the column
            missing = talk.frames.len();
            talk.server(&reply[20..]);
        }
        talk.frames.remove(missing);
        let (summary, _) = told(&talk);
        assert_eq!((summary.trips.total, children(&summary)), (6, (6, 5, 0)));
    }
}

#[test]
fn a_statement_that_is_prepared_first_is_a_trip_and_its_run_another() {
    for capabilities in [PLAIN, PLAIN | Capabilities::DEPRECATE_EOF] {
        for (parameters, columns) in [(1, 0), (0, 1), (2, 2), (0, 0)] {
            let mut talk = logged_in(capabilities, 3306);
            talk.frames.clear();
            talk.client(&packets(
                0,
                &[[&[command::STMT_PREPARE][..], b"INSERT INTO books VALUES (?)"].concat()],
            ));
            talk.server(&prepared(parameters, columns, capabilities));
            for _ in 0..2 {
                talk.client(&packets(0, &[vec![command::STMT_EXECUTE, 1, 0, 0, 0, 0, 1, 0, 0, 0]]));
                talk.server(&packets(1, &[ok()]));
            }
            talk.client(&query(&format!("{CHILD}1")));
            talk.server(&result(1..2, capabilities));
            let (summary, _) = common::analyze(&talk.frames);
            let case = format!("{capabilities:?} {parameters} {columns}");
            assert_eq!((summary.trips.total, summary.unanswered), (4, 0), "{case}");
            assert_eq!(children(&summary), (1, 1, 1), "{case}");
        }
    }
}

#[test]
fn what_was_prepared_before_the_capture_is_unknown_and_its_trips_count() {
    let mut talk = logged_in(PLAIN, 3306);
    talk.frames.clear();
    for _ in 0..5 {
        talk.client(&packets(0, &[vec![command::STMT_EXECUTE, 1, 0, 0, 0, 0, 1, 0, 0, 0]]));
        talk.server(&packets(1, &[ok()]));
    }
    let (summary, _) = told(&talk);
    assert_eq!((summary.trips.total, runs(&summary)), (5, vec![(UNKNOWN.to_owned(), 5)]));
}

#[test]
fn of_one_direction_trips_are_known_and_of_the_clients_statements_too() {
    for capabilities in [PLAIN, PLAIN | Capabilities::DEPRECATE_EOF] {
        let whole = ten_queries(capabilities, 3306);
        let is_client = |frame: &common::Frame| frame.ip[12..16] == common::CLIENT.0;
        let mut talk = whole.clone();
        talk.frames.retain(is_client);
        let (summary, network) = told(&talk);
        assert_eq!((network.capture.half_seen, children(&summary)), (1, (10, 0, 0)));
        assert_eq!(summary.trips.total, 11, "all but the greeting's");
        let mut talk = whole.clone();
        talk.frames.retain(|frame| !is_client(frame));
        let (summary, _) = told(&talk);
        assert_eq!(children(&summary).0, 0);
        assert!((10..=12).contains(&summary.trips.total), "{:?}", summary.trips);
    }
}

#[test]
fn of_packets_that_were_cut_no_beginning_of_a_statement_is_shown() {
    let mut talk = ten_queries(PLAIN, 3306);
    talk.frames.iter_mut().for_each(|frame| frame.snaplen = 14 + 40 + 30);
    let (summary, network) = told(&talk);
    assert!(network.capture.cut_packets > 20, "{:?}", network.capture);
    assert!((10..=12).contains(&summary.trips.total), "{:?}", summary.trips);
    assert!(runs(&summary).iter().all(|(text, _)| text == UNKNOWN), "{:?}", runs(&summary));
}
