//! Whatever bytes come: no decoder panics, and what decodes encodes back to the same bytes.

use onetrip_wire::pg::*;
use proptest::prelude::*;

fn check(body: &[u8]) {
    let same = |tag: u8, out: Vec<u8>| {
        let mut expected = Vec::new();
        frame(&mut expected, tag, |out| out.extend_from_slice(body));
        assert_eq!(out, expected);
    };
    let mut out = Vec::new();
    if let Ok(message) = Parse::decode(body) {
        message.encode(&mut out);
        same(b'P', std::mem::take(&mut out));
    }
    if let Ok(message) = Bind::decode(body) {
        message.encode(&mut out);
        same(b'B', std::mem::take(&mut out));
    }
    if let Ok(message) = Execute::decode(body) {
        message.encode(&mut out);
        same(b'E', std::mem::take(&mut out));
    }
    if let Ok(message) = FunctionCall::decode(body) {
        message.encode(&mut out);
        same(b'F', std::mem::take(&mut out));
    }
    if let Ok(message) = FunctionCallResponse::decode(body) {
        message.encode(&mut out);
        same(b'V', std::mem::take(&mut out));
    }
    if let Ok(message) = StatementOrPortal::decode(body) {
        message.encode(b'D', &mut out);
        same(b'D', std::mem::take(&mut out));
    }
    let mut columns = Vec::new();
    let read = DataRow::read(body, |position, column| columns.push((position, column)));
    assert_eq!(read, DataRow::decode(body).map(drop));
    if let Ok(message) = DataRow::decode(body) {
        assert!(columns.into_iter().eq((0..).zip(message.columns.iter())));
        message.encode(&mut out);
        same(b'D', std::mem::take(&mut out));
    }
    if let Ok(message) = RowDescription::decode(body) {
        RowDescription::encode(&mut out, message.columns());
        same(b'T', std::mem::take(&mut out));
    }
    if let Ok(message) = ParameterDescription::decode(body) {
        message.encode(&mut out);
        same(b't', std::mem::take(&mut out));
    }
    if let Ok(message) = ParameterStatus::decode(body) {
        message.encode(&mut out);
        same(b'S', std::mem::take(&mut out));
    }
    if let Ok(message) = CommandComplete::decode(body) {
        message.rows();
        message.encode(&mut out);
        same(b'C', std::mem::take(&mut out));
    }
    if let Ok(message) = CopyResponse::decode(body) {
        message.encode(b'G', &mut out);
        same(b'G', std::mem::take(&mut out));
    }
    if let Ok(message) = NotificationResponse::decode(body) {
        message.encode(&mut out);
        same(b'A', std::mem::take(&mut out));
    }
    if let Ok(message) = BackendKeyData::decode(body) {
        message.encode(&mut out);
        same(b'K', std::mem::take(&mut out));
    }
    if let Ok(message) = Authentication::decode(body) {
        message.mechanisms().count();
        message.encode(&mut out);
        same(b'R', std::mem::take(&mut out));
    }
    if let Ok(message) = NegotiateProtocolVersion::decode(body) {
        message.encode(&mut out);
        same(b'v', std::mem::take(&mut out));
    }
    if let Ok(status) = TransactionStatus::decode(body) {
        encode_ready_for_query(&mut out, status);
        same(b'Z', std::mem::take(&mut out));
    }
    if let Ok(message) = ErrorResponse::decode(body) {
        let _ = (message.sqlstate(), message.is_fatal(), message.message());
        let again: Vec<u8> =
            message.fields().flat_map(|(code, text)| [&[code], text, &[0]].concat()).chain([0]).collect();
        assert_eq!(again, body);
    }
    if let Ok(Startup::Session(message)) = Startup::decode(body) {
        encode_startup(&mut out, message.version, message.parameters.iter());
        assert_eq!(&out[4..], body);
    }
}

/// Bytes biased to what the formats are made of: small counts, NULs, lengths that fit.
fn body() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(vec![0u8]),
        Just(vec![0, 0]),
        Just(vec![0, 1]),
        Just(vec![0, 2]),
        Just(vec![0, 0, 0, 0]),
        Just(vec![0, 0, 0, 1, b'x']),
        Just(vec![0xff, 0xff, 0xff, 0xff]),
        Just(vec![0, 3, 0, 0]),
        "[a-zP]{0,3}".prop_map(|text| [text.as_bytes(), &[0]].concat()),
        proptest::collection::vec(any::<u8>(), 0..6),
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_decodes_encodes_back(body in body()) {
        check(&body);
    }
}
