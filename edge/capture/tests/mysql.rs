//! MySQL's conversations in captures, made by hand.

mod common;

use common::mysql::{
    CHILD, PLAIN, begin_tls, children, encoded, end, greeted, id_column, logged_in, ok, packets, query,
    result, ten_queries, told,
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

/// A query of which everything is known, behind what went before.
fn goes_on(talk: &mut Talk) {
    talk.client(&query("SELECT 'after'"));
    talk.server(&result(9..10, PLAIN));
}

#[test]
fn a_file_that_the_server_asks_for_is_a_trip_of_its_own() {
    let mut talk = logged_in(PLAIN | Capabilities::LOCAL_FILES, 3306);
    talk.client(&query("LOAD DATA LOCAL INFILE 'x.csv' INTO TABLE t"));
    talk.server(&packets(1, &[b"\xfbx.csv".to_vec()]));
    talk.client(&packets(2, &[b"1,SELECT secret\n".to_vec(), b"2,b\n".to_vec(), Vec::new()]));
    talk.server(&packets(5, &[b"\0\x02\0\x02\0\0\0".to_vec()]));
    goes_on(&mut talk);
    let (summary, network) = told(&talk);
    assert_eq!((summary.trips.work(), network.capture.unknown_bytes), (3, 0));
    assert!(runs(&summary).iter().all(|(text, _)| !text.contains("secret")), "a file is no statement");
    assert_eq!(summary.rows, 2 + 1);
}

#[test]
fn several_results_of_one_text_are_one_trip() {
    let mut talk = logged_in(PLAIN | Capabilities::MULTI_STATEMENTS | Capabilities::MULTI_RESULTS, 3306);
    talk.client(&query("SELECT 1; UPDATE t SET a = 2; SELECT 3"));
    // As the status of all but the last says, more follows.
    let rows = || [vec![1], id_column(), end(PLAIN), b"\x011".to_vec()];
    let mut payloads = rows().to_vec();
    payloads.push(b"\xfe\0\0\x0a\0".to_vec());
    payloads.push(b"\0\x03\0\x0a\0\0\0".to_vec());
    payloads.extend(rows());
    payloads.push(end(PLAIN));
    let reply = packets(1, &payloads);
    // Where a segment ends says nothing.
    for piece in reply.chunks(7) {
        talk.server(piece);
    }
    goes_on(&mut talk);
    let (summary, network) = told(&talk);
    assert_eq!((summary.trips.work(), network.capture.unknown_bytes), (2, 0));
    assert_eq!(summary.rows, 1 + 3 + 1 + 1);
}

#[test]
fn a_user_may_change_and_the_books_go_on() {
    let mut talk = logged_in(PLAIN, 3306);
    goes_on(&mut talk);
    let change = b"\x11bob\0\x01bshop\0\x2d\0mysql_native_password\0";
    talk.client(&packets(0, &[change.to_vec()]));
    // The server asks for the answer to another challenge.
    talk.server(&packets(1, &[b"\xfemysql_native_password\0challengechallenge12\0".to_vec()]));
    talk.client(&packets(2, &[vec![7; 20]]));
    talk.server(&packets(3, &[ok()]));
    goes_on(&mut talk);
    let (summary, network) = told(&talk);
    assert_eq!((summary.trips.total, network.capture.unknown_bytes), (6, 0));
    // The change is a statement, too.
    assert_eq!((summary.statements, summary.unanswered, summary.connections), (2 + 1, 0, 1));
}

#[test]
fn packets_of_more_than_16_mib_are_one_statement_and_one_row() {
    let mut talk = logged_in(PLAIN, 3306);
    let long = vec![b'x'; (1 << 24) + 1_000];
    let text = [&[command::QUERY][..], b"INSERT INTO t VALUES ('", &long, b"')"].concat();
    for piece in packets(0, &[text]).chunks(60_000) {
        talk.client_piece(piece);
    }
    // The text came in two packets.
    talk.server(&packets(2, &[ok()]));
    talk.client(&query("SELECT body FROM t"));
    let mut reply = result(5..6, PLAIN);
    let at = reply.len() - packets(0, &[b"\x015".to_vec()]).len() - packets(0, &[end(PLAIN)]).len();
    let row = packets(4, &[encoded(|out| put_lenenc_bytes(out, &long))]);
    reply.truncate(at);
    reply.extend(row);
    reply.extend(packets(6, &[end(PLAIN)]));
    for piece in reply.chunks(60_000) {
        talk.server(piece);
    }
    goes_on(&mut talk);
    let (summary, network) = told(&talk);
    assert_eq!((summary.trips.work(), network.capture.unknown_bytes), (3, 0));
    assert_eq!((summary.statements, summary.rows), (3, 2));
}
