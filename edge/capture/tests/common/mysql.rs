//! MySQL's conversations made by hand.

use onetrip_ledger::Summary;
use onetrip_ledger::network::NetworkSummary;
use onetrip_wire::mysql::{
    Capabilities, ClientHello, EofPacket, Handshake, HandshakeResponse, Info, OkPacket, SslRequest, Status,
    command, packet, put_lenenc_bytes,
};

use super::{Talk, analyze, runs};

pub const CHILD: &str = "SELECT title FROM books WHERE author_id = ";
pub const PLAIN: Capabilities = Capabilities(
    Capabilities::LONG_PASSWORD.0
        | Capabilities::PROTOCOL_41.0
        | Capabilities::SECURE_CONNECTION.0
        | Capabilities::TRANSACTIONS.0
        | Capabilities::PLUGIN_AUTH.0,
);
pub const LONG: u8 = 3;

/// Payloads as a side sends them at once, numbered from `sequence`.
pub fn packets(sequence: u8, payloads: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut next = sequence;
    for payload in payloads {
        next = packet(&mut bytes, next, |out| out.extend_from_slice(payload));
    }
    bytes
}

pub fn encoded(encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(&mut bytes);
    bytes
}

pub fn greeting(capabilities: Capabilities) -> Vec<u8> {
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

pub fn login(capabilities: Capabilities) -> Vec<u8> {
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

pub fn tls_request(capabilities: Capabilities) -> Vec<u8> {
    let head = SslRequest { capabilities, packet_bytes_max: 0, character_set: 45, reserved: &[0; 23] };
    encoded(|out| ClientHello::Ssl(head).encode(out))
}

pub fn ok() -> Vec<u8> {
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

pub fn end(capabilities: Capabilities) -> Vec<u8> {
    if capabilities.has(Capabilities::DEPRECATE_EOF) {
        return [&[0xfe][..], &ok()[1..]].concat();
    }
    encoded(|out| EofPacket { warnings: 0, status: Status::AUTOCOMMIT }.encode(out))
}

/// The definition of a column `id` of numbers.
pub fn id_column() -> Vec<u8> {
    let mut column = b"\x03def\0\0\0\x02id\0\x0c\x2d\0\0\0\0\0".to_vec();
    column.extend_from_slice(&[LONG, 0, 0, 0, 0, 0]);
    column
}

/// A result of such a column.
pub fn result(ids: impl Iterator<Item = u32>, capabilities: Capabilities) -> Vec<u8> {
    let mut payloads = vec![vec![1], id_column()];
    if !capabilities.has(Capabilities::DEPRECATE_EOF) {
        payloads.push(end(capabilities));
    }
    payloads.extend(ids.map(|id| encoded(|out| put_lenenc_bytes(out, id.to_string().as_bytes()))));
    payloads.push(end(capabilities));
    packets(1, &payloads)
}

pub fn query(text: &str) -> Vec<u8> {
    packets(0, &[[&[command::QUERY][..], text.as_bytes()].concat()])
}

/// The server greets.
pub fn greeted(capabilities: Capabilities, port: u16) -> Talk {
    let mut talk = Talk::to_port(port);
    talk.handshake();
    talk.server(&packets(0, &[greeting(capabilities)]));
    talk
}

/// The client asks for TLS and begins it, with one segment or two.
pub fn begin_tls(talk: &mut Talk, capabilities: Capabilities, hello: &[u8], at_once: bool) {
    let request = packets(1, &[tls_request(capabilities)]);
    if at_once {
        return talk.client(&[&request, hello].concat());
    }
    talk.client(&request);
    talk.client_piece(hello);
}

/// The server greets, the client logs in.
pub fn logged_in(capabilities: Capabilities, port: u16) -> Talk {
    let mut talk = greeted(capabilities, port);
    talk.client(&packets(1, &[login(capabilities)]));
    talk.server(&packets(2, &[ok()]));
    talk
}

/// Ten queries of one row each. Frames: handshake 0 to 2, greeting, login and its reply 3 to 5, then queries and replies in
/// turn.
pub fn ten_queries(capabilities: Capabilities, port: u16) -> Talk {
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
pub fn children(summary: &Summary) -> (u64, u64, usize) {
    let runs = runs(summary);
    let of_child = runs.iter().find(|(text, _)| text.starts_with(CHILD)).map_or(0, |(_, runs)| *runs);
    let others = runs.iter().filter(|(text, runs)| *runs > 0 && !text.starts_with(CHILD)).count();
    (of_child, summary.rows, others)
}

pub fn told(talk: &Talk) -> (Summary, NetworkSummary) {
    let told = analyze(&talk.frames);
    assert_eq!(told.0.undecoded, 0);
    told
}
