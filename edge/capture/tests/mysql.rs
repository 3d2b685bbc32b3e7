//! MySQL's conversations in captures, made by hand.

mod common;

use common::mysql::{
    CHILD, PLAIN, begin_tls, children, encoded, end, greeted, logged_in, packets, query, result, ten_queries,
    told,
};
use common::{Talk, runs};
use onetrip_wire::mysql::{Capabilities, Compression, command, pack, put_lenenc_bytes};

#[test]
fn a_conversation_is_known_at_any_port_whatever_ends_its_rows() {
    for capabilities in [PLAIN, PLAIN | Capabilities::DEPRECATE_EOF] {
        for port in [3306, 4711] {
            let (summary, network) = told(&ten_queries(capabilities, port));
            // The greeting is a wait of its own.
            assert_eq!((summary.trips.total, summary.trips.connect, summary.statements), (12, 2, 10));
            assert_eq!((summary.connections, summary.unanswered), (1, 0));
            assert_eq!(children(&summary), (10, 10, 0));
            assert_eq!(network.capture.unknown_bytes, 0);
            assert_eq!(network.paths[0].protocol, "mysql");
        }
    }
}

#[test]
fn a_loop_over_the_rows_of_a_query_is_found() {
    let mut talk = logged_in(PLAIN, 3306);
    talk.client(&query("SELECT id FROM authors"));
    talk.server(&result(100..140, PLAIN));
    for id in 100..140 {
        talk.client(&query(&format!("{CHILD}{id}")));
        talk.server(&result(id..id + 1, PLAIN));
    }
    let (summary, _) = told(&talk);
    let codes: Vec<_> = summary.findings.iter().map(|finding| finding.code.to_string()).collect();
    assert_eq!((codes, summary.findings[0].trips), (vec!["OT001".to_owned()], 40));
}

#[test]
fn a_frame_that_the_capture_missed_is_unknown_and_the_books_go_on_at_the_next_turn() {
    let whole = ten_queries(PLAIN, 3306);
    for (missing, unknown, known) in [(6, "a request", (9, 9)), (7, "a reply", (10, 9))] {
        let mut talk = whole.clone();
        let lost = talk.frames.remove(missing).ip.len() as u64 - 40;
        let (summary, network) = told(&talk);
        assert_eq!(network.capture.missed_bytes, lost, "{unknown}");
        assert!(network.capture.unknown_bytes >= lost, "{unknown}");
        assert_eq!(summary.trips.total, 12, "{unknown} is a trip all the same");
        assert_eq!(children(&summary), (known.0, known.1, 0), "{unknown}");
        assert_eq!(summary.unanswered, 0, "{unknown}");
    }
}

#[test]
fn what_is_missing_within_a_row_or_a_statement_is_missing_there_alone() {
    let mut talk = logged_in(PLAIN, 3306);
    let long = format!("SELECT '{}'", "x".repeat(300));
    let text = query(&long);
    for piece in text.chunks(100) {
        talk.client_piece(piece);
    }
    talk.server(&result(1..2, PLAIN));
    let mut reply = result(5..7, PLAIN);
    let row = packets(4, &[encoded(|out| put_lenenc_bytes(out, &[b'x'; 200]))]);
    let at = reply.len() - 2 * packets(0, &[vec![1, b'5']]).len() - packets(0, &[end(PLAIN)]).len();
    reply.splice(at..at + 6, row);
    talk.client(&query("SELECT body FROM books"));
    for piece in reply.chunks(reply.len().div_ceil(4)) {
        talk.server(piece);
    }
    talk.client(&query("SELECT 'after'"));
    talk.server(&result(9..10, PLAIN));
    let (whole, _) = told(&talk);
    assert_eq!((whole.rows, whole.statements), (4, 3));
    for missing in [7, 13] {
        let mut talk = talk.clone();
        let lost = talk.frames.remove(missing).ip.len() as u64 - 40;
        let (summary, network) = told(&talk);
        assert_eq!(network.capture.unknown_bytes, lost, "{missing}");
        assert_eq!((summary.trips.total, summary.rows), (whole.trips.total, whole.rows), "{missing}");
        let (all, known) = (runs(&whole), runs(&summary));
        let unknown = known
            .iter()
            .filter(|(text, _)| all.iter().all(|(other, _)| other != text))
            .map(|(_, runs)| *runs);
        assert_eq!(unknown.sum::<u64>(), u64::from(missing == 7), "{missing}: {known:?}");
        assert_eq!(summary.statements, whole.statements, "{missing}");
    }
}

#[test]
fn what_was_agreed_on_before_the_capture_shows_at_the_first_rows() {
    for capabilities in [PLAIN, PLAIN | Capabilities::DEPRECATE_EOF] {
        let mut talk = ten_queries(capabilities, 3306);
        talk.frames.drain(..6);
        let (summary, network) = told(&talk);
        assert_eq!(network.capture.joined, 1);
        assert_eq!(summary.trips.total, 10);
        assert_eq!(children(&summary), (10, 10, 0), "the first result tells how rows end");
    }
}

#[test]
fn statements_that_have_attributes_are_read_in_a_capture_that_begins_behind_the_login() {
    let mut talk = logged_in(PLAIN, 3306);
    let behind = talk.frames.len();
    for number in 0..5 {
        let text = format!("{CHILD}{number}");
        talk.client(&packets(0, &[[&[command::QUERY, 0, 1][..], text.as_bytes()].concat()]));
        talk.server(&result(number..number + 1, PLAIN));
    }
    talk.frames.drain(..behind);
    assert_eq!(children(&told(&talk).0), (5, 5, 0));
}

#[test]
fn compressed_conversations_are_known_and_go_on_after_a_gap() {
    let capabilities = PLAIN | Capabilities::COMPRESS;
    let mut talk = logged_in(capabilities, 3306);
    let packed = |sequence, plain: &[u8]| encoded(|out| _ = pack(out, Compression::Zlib, 1, sequence, plain));
    for number in 0..10 {
        talk.client(&packed(0, &query(&format!("{CHILD}{number}"))));
        talk.server(&packed(1, &result(number..number + 1, capabilities)));
    }
    assert_eq!(children(&told(&talk).0), (10, 10, 0));
    let mut gap = talk.clone();
    gap.frames.remove(9);
    let (summary, network) = told(&gap);
    assert!(network.capture.unknown_bytes > 0);
    assert_eq!((summary.trips.total, children(&summary)), (12, (10, 9, 0)));
    // Without its login, nobody knows that it is compressed.
    talk.frames.drain(..6);
    let (summary, _) = told(&talk);
    assert_eq!((summary.trips.total, children(&summary)), (10, (0, 0, 0)));
}

#[test]
fn behind_tls_turns_are_counted_and_the_clients_hello_opens() {
    let capabilities = PLAIN | Capabilities::SSL;
    for at_once in [true, false] {
        let mut talk = greeted(capabilities, 3306);
        let hello = [&[0x16, 3, 1, 0, 60, 1][..], &[0; 59]].concat();
        begin_tls(&mut talk, capabilities, &hello, at_once);
        talk.server(b"\x16\x03\x03\0\x02hi");
        for _ in 0..5 {
            talk.client(b"\x17\x03\x03\0\x03ask");
            talk.server(b"\x17\x03\x03\0\x02ok");
        }
        let (summary, network) = told(&talk);
        assert_eq!(network.capture.encrypted, 1);
        assert_eq!((network.paths[0].protocol.as_str(), summary.connections), ("mysql over TLS", 1));
        assert_eq!((summary.trips.total, summary.trips.connect), (7, 2), "{at_once}");
    }
}

#[test]
fn a_server_that_refuses_is_known_by_its_words() {
    let mut talk = Talk::to_port(3306);
    talk.handshake();
    talk.server(&packets(0, &[b"\xff\x10\x04Too many connections".to_vec()]));
    talk.close();
    let (summary, network) = told(&talk);
    assert_eq!(network.paths[0].protocol, "mysql");
    assert_eq!((summary.trips.total, summary.statements), (1, 0));
}
