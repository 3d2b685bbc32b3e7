//! MySQL's conversations in captures, made by hand.

mod common;

use common::{Talk, analyze, runs};
use onetrip_ledger::Summary;
use onetrip_ledger::network::NetworkSummary;
use onetrip_wire::mysql::{
    Capabilities, ClientHello, Compression, EofPacket, Handshake, HandshakeResponse, Info, OkPacket,
    SslRequest, Status, command, pack, packet, put_lenenc_bytes,
};

const CHILD: &str = "SELECT title FROM books WHERE author_id = ";
const PLAIN: Capabilities = Capabilities(
    Capabilities::LONG_PASSWORD.0
        | Capabilities::PROTOCOL_41.0
        | Capabilities::SECURE_CONNECTION.0
        | Capabilities::TRANSACTIONS.0
        | Capabilities::PLUGIN_AUTH.0,
);
const LONG: u8 = 3;

/// Payloads as a side sends them at once, numbered from `sequence`.
fn packets(sequence: u8, payloads: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut next = sequence;
    for payload in payloads {
        next = packet(&mut bytes, next, |out| out.extend_from_slice(payload));
    }
    bytes
}

fn encoded(encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(&mut bytes);
    bytes
}

fn greeting(capabilities: Capabilities) -> Vec<u8> {
    let greeting = Handshake {
        server_version: b"10.11.6-MariaDB",
        thread_id: 7,
        capabilities,
        character_set: 45,
        status: Status::AUTOCOMMIT,
        challenge_start: b"challeng",
        challenge_end: b"challenge123\0",
        challenge_len: 21,
        reserved: &[0; 10],
        plugin: Some(b"mysql_native_password"),
    };
    encoded(|out| greeting.encode(out))
}

fn login(capabilities: Capabilities) -> Vec<u8> {
    let head = SslRequest { capabilities, packet_bytes_max: 0, character_set: 45, reserved: &[0; 23] };
    let response = HandshakeResponse {
        head,
        user: b"ada",
        answer: b"a",
        database: None,
        plugin: Some(b"mysql_native_password"),
        attributes: None,
        zstd_level: None,
    };
    encoded(|out| response.encode(out))
}

fn tls_request(capabilities: Capabilities) -> Vec<u8> {
    let head = SslRequest { capabilities, packet_bytes_max: 0, character_set: 45, reserved: &[0; 23] };
    encoded(|out| ClientHello::Ssl(head).encode(out))
}

fn ok() -> Vec<u8> {
    let ok = OkPacket {
        ends_rows: false,
        affected_rows: 0,
        last_insert_id: 0,
        status: Status::AUTOCOMMIT,
        warnings: 0,
        info: Info::Plain(b""),
    };
    encoded(|out| ok.encode(out))
}

fn end(capabilities: Capabilities) -> Vec<u8> {
    if capabilities.has(Capabilities::DEPRECATE_EOF) {
        return [&[0xfe][..], &ok()[1..]].concat();
    }
    encoded(|out| EofPacket { warnings: 0, status: Status::AUTOCOMMIT }.encode(out))
}

/// A result of one column `id` of numbers.
fn result(ids: impl Iterator<Item = u32>, capabilities: Capabilities) -> Vec<u8> {
    let mut column = b"\x03def\0\0\0\x02id\0\x0c\x2d\0\0\0\0\0".to_vec();
    column.extend_from_slice(&[LONG, 0, 0, 0, 0, 0]);
    let mut payloads = vec![vec![1], column];
    if !capabilities.has(Capabilities::DEPRECATE_EOF) {
        payloads.push(end(capabilities));
    }
    payloads.extend(ids.map(|id| encoded(|out| put_lenenc_bytes(out, id.to_string().as_bytes()))));
    payloads.push(end(capabilities));
    packets(1, &payloads)
}

fn query(text: &str) -> Vec<u8> {
    packets(0, &[[&[command::QUERY][..], text.as_bytes()].concat()])
}

/// The server greets, the client logs in.
fn logged_in(capabilities: Capabilities, port: u16) -> Talk {
    let mut talk = Talk::to_port(port);
    talk.handshake();
    talk.server(&packets(0, &[greeting(capabilities)]));
    talk.client(&packets(1, &[login(capabilities)]));
    talk.server(&packets(2, &[ok()]));
    talk
}

/// Ten queries of one row each. Frames: handshake 0 to 2, greeting, login and its reply 3 to 5, then queries and replies in
/// turn.
fn ten_queries(capabilities: Capabilities, port: u16) -> Talk {
    let mut talk = logged_in(capabilities, port);
    for number in 0..10 {
        talk.client(&query(&format!("{CHILD}{number}")));
        talk.server(&result(number..number + 1, capabilities));
    }
    talk.client(&packets(0, &[vec![command::QUIT]]));
    talk.close();
    talk
}

/// Runs of the query, rows of all results, and how many other statements are known.
fn children(summary: &Summary) -> (u64, u64, usize) {
    let runs = runs(summary);
    let of_child = runs.iter().find(|(text, _)| text.starts_with(CHILD)).map_or(0, |(_, runs)| *runs);
    let others = runs.iter().filter(|(text, runs)| *runs > 0 && !text.starts_with(CHILD)).count();
    (of_child, summary.rows, others)
}

fn told(talk: &Talk) -> (Summary, NetworkSummary) {
    let told = analyze(&talk.frames);
    assert_eq!(told.0.undecoded, 0);
    told
}

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
        let unknown = u64::from(capabilities != PLAIN);
        assert_eq!(children(&summary), (10, 10 - unknown, 0), "the first result tells how rows end");
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
        let mut talk = Talk::to_port(3306);
        talk.handshake();
        talk.server(&packets(0, &[greeting(capabilities)]));
        let (request, hello) =
            (packets(1, &[tls_request(capabilities)]), [&[0x16, 3, 1, 0, 60, 1][..], &[0; 59]].concat());
        match at_once {
            true => talk.client(&[request, hello].concat()),
            false => {
                talk.client(&request);
                talk.client_piece(&hello);
            }
        }
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
