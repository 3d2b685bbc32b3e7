//! Bytes from the published pages, and bytes made by their rules where no server here speaks them.

use onetrip_wire::mysql::*;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<_> = text.bytes().filter_map(|byte| char::from(byte).to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}

/// The payload of one packet, which must have this number.
fn payload(text: &str, sequence: u8) -> Vec<u8> {
    let bytes = hex(text);
    let header = PacketHeader::peek(&bytes).expect("it has a header");
    assert_eq!((header.packet_len(), header.sequence), (bytes.len(), sequence));
    let mut again = Vec::new();
    packet(&mut again, sequence, |out| out.extend_from_slice(&bytes[HEADER_BYTES..]));
    assert_eq!(again, bytes);
    bytes[HEADER_BYTES..].to_vec()
}

fn same(body: &[u8], encode: impl FnOnce(&mut Vec<u8>)) {
    let mut out = Vec::new();
    encode(&mut out);
    assert_eq!(out, body);
}

const NONE: Capabilities = Capabilities(0);

#[test]
fn a_greeting() {
    // MySQL Internals, "Protocol::HandshakeV10".
    let body = payload(
        "36 00 00 00 0a 35 2e 35 2e 32 2d 6d 32 00 0b 00 00 00 64 76 48 40 49 2d 43 4a 00 ff f7 08 02 00
         00 00 00 00 00 00 00 00 00 00 00 00 00 2a 34 64 7c 63 5a 77 6b 34 5e 5d 3a 00",
        0,
    );
    let greeting = Handshake::decode(&body).unwrap();
    assert_eq!((greeting.server_version, greeting.thread_id), (&b"5.5.2-m2"[..], 11));
    assert_eq!((greeting.capabilities, greeting.status), (Capabilities(0xf7ff), Status::AUTOCOMMIT));
    assert_eq!(
        (greeting.challenge_start, greeting.challenge_end),
        (&b"dvH@I-CJ"[..], &b"*4d|cZwk4^]:\0"[..])
    );
    assert!(greeting.plugin.is_none() && !greeting.is_mariadb());
    same(&body, |out| greeting.encode(out));
}

#[test]
fn a_response() {
    // MySQL Internals, "Protocol::HandshakeResponse41".
    let body = payload(
        "54 00 00 01 8d a6 0f 00 00 00 00 01 08 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
         00 00 00 00 70 61 6d 00 14 ab 09 ee f6 bc b1 32 3e 61 14 38 65 c0 99 1d 95 7d 75 d4 47 74 65 73
         74 00 6d 79 73 71 6c 5f 6e 61 74 69 76 65 5f 70 61 73 73 77 6f 72 64 00",
        1,
    );
    let ClientHello::Response(response) = ClientHello::decode(&body).unwrap() else { panic!("no TLS here") };
    assert_eq!((response.user, response.answer.len()), (&b"pam"[..], 20));
    assert_eq!(
        (response.database, response.plugin),
        (Some(&b"test"[..]), Some(&b"mysql_native_password"[..]))
    );
    same(&body, |out| response.encode(out));
    // Its head alone, with the flag, is a request for TLS.
    let mut request = body[..32].to_vec();
    request[1] |= 0x08;
    let hello = ClientHello::decode(&request).unwrap();
    assert!(matches!(hello, ClientHello::Ssl(_)));
    same(&request, |out| hello.encode(out));
    // Before 4.1 there were other ones.
    assert!(ClientHello::decode(&hex("85 24 00 00 00 6f 6c 64 00 47 44 53 43 51 59 52 5f")).is_err());
}

#[test]
fn a_response_with_everything_not_verified_on_8() {
    let capabilities = Capabilities::PROTOCOL_41
        | Capabilities::SECURE_CONNECTION
        | Capabilities::PLUGIN_AUTH
        | Capabilities::PLUGIN_AUTH_LENENC_CLIENT_DATA
        | Capabilities::CONNECT_ATTRS
        | Capabilities::ZSTD_COMPRESSION
        | Capabilities::MARIADB_CACHE_METADATA;
    let mut body = (capabilities.0 as u32).to_le_bytes().to_vec();
    body.extend_from_slice(&hex("00 00 00 01 ff"));
    body.extend_from_slice(&[0; 19]);
    body.extend_from_slice(&((capabilities.0 >> 32) as u32).to_le_bytes());
    body.extend_from_slice(b"me\0\x03abccaching_sha2_password\0\x0d\x03_os\x08Linux 64\x0b");
    let ClientHello::Response(response) = ClientHello::decode(&body).unwrap() else { panic!("no TLS here") };
    assert_eq!(response.head.capabilities, capabilities);
    let attributes: Vec<_> = response.attributes.iter().flat_map(ConnectAttributes::iter).collect();
    assert_eq!(attributes, [(&b"_os"[..], &b"Linux 64"[..])]);
    assert_eq!(response.zstd_level, Some(11));
    same(&body, |out| response.encode(out));
}

#[test]
fn generic_answers() {
    // MySQL Internals, "OK_Packet", "ERR_Packet", "EOF_Packet".
    let body = payload("07 00 00 02 00 00 00 02 00 00 00", 2);
    let ok = OkPacket::decode(&body, Capabilities::SESSION_TRACK).unwrap();
    assert_eq!((ok.status, ok.info), (Status::AUTOCOMMIT, Info::Absent));
    same(&body, |out| ok.encode(out));
    let body = payload("17 00 00 01 ff 48 04 23 48 59 30 30 30 4e 6f 20 74 61 62 6c 65 73 20 75 73 65 64", 1);
    let error = ErrPacket::decode(&body).unwrap();
    assert_eq!((error.code, error.state, error.message), (1096, Some(&b"HY000"[..]), &b"No tables used"[..]));
    same(&body, |out| error.encode(out));
    let body = payload("05 00 00 05 fe 00 00 02 00", 5);
    let eof = EofPacket::decode(&body).unwrap();
    assert_eq!((eof.warnings, eof.status), (0, Status::AUTOCOMMIT));
    same(&body, |out| eof.encode(out));
    // What a server says instead of a greeting has no state.
    let error = ErrPacket::decode(b"\xff\x10\x04Too many connections").unwrap();
    assert_eq!((error.code, error.state), (1040, None));
}

#[test]
fn session_states() {
    // MySQL Internals, "OK_Packet": the reply to USE test.
    let body = hex("00 00 00 02 40 00 00 00 07 01 05 04 74 65 73 74");
    let ok = OkPacket::decode(&body, Capabilities::SESSION_TRACK).unwrap();
    let Info::Tracked { text: b"", states: Some(states) } = ok.info else { panic!("{:?}", ok.info) };
    assert_eq!(states.iter().collect::<Vec<_>>(), [SessionState::Schema(b"test")]);
    same(&body, |out| ok.encode(out));
    // A variable, and MariaDB's several of them in one entry.
    let body = b"\0\0\0\x02\x40\0\0\0\x17\0\x0f\x0aautocommit\x03OFF\x02\x02\x011\x09\0".to_vec();
    let ok = OkPacket::decode(&body, Capabilities::SESSION_TRACK).unwrap();
    let Info::Tracked { states: Some(states), .. } = ok.info else { panic!("{:?}", ok.info) };
    let found: Vec<_> = states.iter().collect();
    assert_eq!(found[0].variables().collect::<Vec<_>>(), [(&b"autocommit"[..], &b"OFF"[..])]);
    assert_eq!(found[1..], [SessionState::Changed(b"1"), SessionState::Other(9, b"")]);
}

#[test]
fn progress_is_no_error() {
    let body = b"\xff\xff\xff\x01\x02\x03\x10\x27\0\x0dcopy to table".to_vec();
    let progress = Progress::decode(&body).unwrap();
    assert_eq!((progress.stage, progress.stage_max, progress.progress), (2, 3, 10_000));
    assert_eq!(progress.state, b"copy to table");
    assert!(Progress::is(&body) && ErrPacket::decode(&body).is_err());
    same(&body, |out| progress.encode(out));
}

#[test]
fn further_steps_of_a_login() {
    // MySQL Internals, "Protocol::AuthSwitchRequest".
    let body = payload(
        "2c 00 00 02 fe 6d 79 73 71 6c 5f 6e 61 74 69 76 65 5f 70 61 73 73 77 6f 72 64 00 7a 51 67 34 69
         36 6f 4e 79 36 3d 72 48 4e 2f 3e 2d 62 29 41 00",
        2,
    );
    let AuthSwitch::To { plugin, challenge } = AuthSwitch::decode(&body).unwrap() else {
        panic!("it has a name")
    };
    assert_eq!((plugin, challenge), (&b"mysql_native_password"[..], &b"zQg4i6oNy6=rHN/>-b)A\0"[..]));
    same(&body, |out| AuthSwitch::To { plugin, challenge }.encode(out));
    assert_eq!(AuthSwitch::decode(&[0xfe]), Ok(AuthSwitch::Old));
    // "Caching SHA-2 Pluggable Authentication"; not verified on 8.x.
    let meaning = |body: &'static [u8]| AuthMoreData::decode(body).unwrap().caching_sha2();
    assert_eq!(meaning(b"\x01\x03"), CachingSha2::FastOk);
    assert_eq!(meaning(b"\x01\x04"), CachingSha2::Full);
    assert_eq!(meaning(b"\x01-----BEGIN"), CachingSha2::PublicKey(b"-----BEGIN"));
}

#[test]
fn prepared_statements() {
    // MySQL Internals, "COM_STMT_PREPARE Response", "COM_STMT_EXECUTE", "Binary Protocol Resultset".
    let body = payload("0c 00 00 01 00 01 00 00 00 01 00 02 00 00 00 00", 1);
    let ok = PrepareOk::decode(&body).unwrap();
    assert_eq!((ok.statement, ok.columns, ok.parameters, ok.metadata_follows), (1, 1, 2, None));
    same(&body, |out| ok.encode(out));
    let body = payload("12 00 00 00 17 01 00 00 00 00 01 00 00 00 00 01 0f 00 03 66 6f 6f", 0);
    let execute = Execute::decode(&body, NONE, 1).unwrap();
    let parameters = execute.parameters.unwrap();
    let types: Vec<_> = parameters.types().map(|one| one.column_type).collect();
    assert_eq!(types, [ColumnType::VARCHAR]);
    let values: Vec<_> = parameters.values(types, |_| false).collect();
    assert_eq!(values, [Ok(Some(&b"foo"[..]))]);
    same(&body, |out| execute.encode(out));
    let body = payload(
        "1a 00 00 02 03 64 65 66 00 00 00 04 63 6f 6c 31 00 0c 08 00 06 00 00 00 fd 00 00 1f 00 00",
        2,
    );
    let column = ColumnDefinition::decode(&body, NONE).unwrap();
    assert_eq!((column.name, column.column_type), (&b"col1"[..], ColumnType::VAR_STRING));
    same(&body, |out| column.encode(out));
    let body = payload("09 00 00 04 00 00 06 66 6f 6f 62 61 72", 4);
    let row = BinaryRow::decode(&body, &[column.column_type]).unwrap();
    assert_eq!(row.values(&[column.column_type]).collect::<Vec<_>>(), [Some(&b"foobar"[..])]);
    // The third bit is the first column's.
    let row = BinaryRow::decode(&[0, 0b100], &[ColumnType::LONG]).unwrap();
    assert_eq!(row.values(&[ColumnType::LONG]).collect::<Vec<_>>(), [None]);
}

#[test]
fn query_attributes_not_verified_on_8() {
    // MySQL Server Doxygen, "COM_QUERY".
    let body = payload(
        "21 00 00 00 03 01 01 00 01 fe 00 01 61 01 31 73 65 6c 65 63 74 20 40 40 76 65 72 73 69 6f 6e 5f
         63 6f 6d 6d 65",
        0,
    );
    let query = Query::decode(&body, Capabilities::QUERY_ATTRIBUTES).unwrap();
    assert_eq!(query.text, b"select @@version_comme");
    let attributes = query.attributes.unwrap();
    assert_eq!(attributes.types().map(|one| one.name).collect::<Vec<_>>(), [b"a"]);
    assert_eq!(attributes.values([ColumnType::STRING], |_| false).collect::<Vec<_>>(), [Ok(Some(&b"1"[..]))]);
    same(&body, |out| query.encode(out, Capabilities::QUERY_ATTRIBUTES));
    // With an execution: one more than the statement has, with names.
    let body = b"\x17\x01\0\0\0\x08\x01\0\0\0\x02\0\x01\x03\0\0\xfe\0\x01a\x05\0\0\0\x011".to_vec();
    let execute = Execute::decode(&body, Capabilities::QUERY_ATTRIBUTES, 1).unwrap();
    assert_eq!(execute.parameters.map(|parameters| parameters.count()), Some(2));
    same(&body, |out| execute.encode(out));
}

#[test]
fn mariadbs_bulk() {
    let body = b"\xfa\x07\0\0\0\x80\0\x03\x80\xfe\0\0\x01\0\0\0\0\x01a\x01\x02".to_vec();
    let bulk = BulkExecute::decode(&body, 2).unwrap();
    let types: Vec<_> = bulk.types().map(|(column_type, _)| column_type).collect();
    assert_eq!(bulk.types().next(), Some((ColumnType::LONG, 0x80)));
    let values: Vec<_> = bulk.values(&types).map(Result::unwrap).collect();
    let one = 1u32.to_le_bytes();
    assert_eq!(values, [BulkValue::Value(&one), BulkValue::Value(b"a"), BulkValue::Null, BulkValue::Default]);
    same(&body, |out| bulk.encode(out));
}
