//! Whatever bytes come: no decoder of MySQL's panics, and what decodes encodes back to the same bytes.

use onetrip_wire::mysql::*;
use proptest::prelude::*;

fn same(body: &[u8], encode: impl FnOnce(&mut Vec<u8>)) {
    let mut out = Vec::new();
    encode(&mut out);
    assert_eq!(out, body);
}

/// What a body is decoded by beside its bytes.
#[derive(Debug, Clone)]
struct Context {
    capabilities: Capabilities,
    parameters: u16,
    types: Vec<ColumnType>,
}

fn check_connection(body: &[u8], context: &Context) {
    let capabilities = context.capabilities;
    if let Ok(message) = Handshake::decode(body) {
        message.is_mariadb();
        same(body, |out| message.encode(out));
    }
    if let Ok(message) = ClientHello::decode(body) {
        if let ClientHello::Response(HandshakeResponse { attributes: Some(attributes), .. }) = message {
            attributes.iter().count();
        }
        same(body, |out| message.encode(out));
    }
    if let Ok(message) = AuthSwitch::decode(body) {
        same(body, |out| message.encode(out));
    }
    if let Ok(message) = AuthMoreData::decode(body) {
        message.caching_sha2();
        same(body, |out| message.encode(out));
    }
    if let Ok(message) = AuthNextFactor::decode(body) {
        same(body, |out| message.encode(out));
    }
    if let Ok(message) = ChangeUser::decode(body, capabilities) {
        same(body, |out| message.encode(out, capabilities));
    }
    if let Ok(message) = OkPacket::decode(body, capabilities) {
        if let Info::Tracked { states: Some(states), .. } = message.info {
            assert!(states.iter().all(|state| state.variables().count() <= body.len()));
        }
        same(body, |out| message.encode(out));
    }
    if let Ok(message) = ErrPacket::decode(body) {
        assert!(!Progress::is(body));
        same(body, |out| message.encode(out));
    }
    if let Ok(message) = Progress::decode(body) {
        assert!(Progress::is(body));
        same(body, |out| message.encode(out));
    }
    if let Ok(message) = EofPacket::decode(body) {
        same(body, |out| message.encode(out));
    }
}

fn check_commands(body: &[u8], context: &Context) {
    let capabilities = context.capabilities;
    let types = || context.types.iter().copied();
    if let Ok(message) = Query::decode(body, capabilities) {
        if let Some(attributes) = &message.attributes {
            let types = attributes.types().map(|parameter| parameter.column_type);
            assert!(attributes.values(types, |_| false).all(|value| value.is_ok()));
        }
        same(body, |out| message.encode(out, capabilities));
    }
    if let Ok(message) = Execute::decode(body, capabilities, context.parameters) {
        assert_eq!(Execute::peek(body), Ok((message.statement, message.flags)));
        if let Some(parameters) = &message.parameters {
            parameters.values(types(), |index| index == 1).count();
            parameters.types().count();
        }
        same(body, |out| message.encode(out));
    }
    if let Ok(message) = BulkExecute::decode(body, context.parameters) {
        assert_eq!(BulkExecute::peek(body), Ok((message.statement, message.flags)));
        message.types().count();
        assert!(message.values(&context.types).count() <= body.len());
        same(body, |out| message.encode(out));
    }
    if let Ok(message) = LongData::decode(body) {
        same(body, |out| message.encode(out));
    }
    if let Ok(message) = Fetch::decode(body) {
        same(body, |out| message.encode(out));
    }
    if let Ok(message) = FieldList::decode(body) {
        same(body, |out| message.encode(out));
    }
    if let Ok(message) = ProcessKill::decode(body) {
        same(body, |out| message.encode(out));
    }
    if let Ok(message) = SetOption::decode(body) {
        same(body, |out| message.encode(out));
    }
    if let Ok(message) = BinlogDump::decode(body) {
        same(body, |out| message.encode(out));
    }
    if let Ok(message) = BinlogDumpGtid::decode(body) {
        same(body, |out| message.encode(out));
    }
    if let Ok(message) = RegisterReplica::decode(body) {
        same(body, |out| message.encode(out));
    }
    for tag in [command::STMT_CLOSE, command::STMT_RESET] {
        if let Ok(message) = StatementId::decode(tag, body) {
            same(body, |out| message.encode(tag, out));
        }
    }
    for tag in [command::INIT_DB, command::STMT_PREPARE, server::LOCAL_INFILE] {
        if let Ok(message) = TextCommand::decode(tag, body) {
            same(body, |out| message.encode(tag, out));
        }
    }
}

fn check_results(body: &[u8], context: &Context) {
    let capabilities = context.capabilities;
    if let Ok(message) = ColumnCount::decode(body, capabilities) {
        assert!(message.definitions() <= message.count);
        same(body, |out| message.encode(out));
    }
    if let Ok(message) = ColumnDefinition::decode(body, capabilities) {
        message.extended_entries().count();
        same(body, |out| message.encode(out));
    }
    if let Ok(message) = PrepareOk::decode(body) {
        same(body, |out| message.encode(out));
    }
    let columns = u64::from(context.parameters);
    let mut seen = Vec::new();
    let read = TextRow::read(body, columns as usize, |position, value| seen.push((position, value)));
    assert_eq!(read, TextRow::decode(body, columns).map(drop));
    if let Ok(message) = TextRow::decode(body, columns) {
        assert!(seen.into_iter().eq(message.values().enumerate()));
        assert_eq!(message.values().count() as u64, columns);
        same(body, |out| TextRow::encode(out, message.values()));
    }
    let mut seen = Vec::new();
    let read = BinaryRow::read(body, &context.types, |position, value| seen.push((position, value)));
    assert_eq!(read, BinaryRow::decode(body, &context.types).map(drop));
    if let Ok(message) = BinaryRow::decode(body, &context.types) {
        assert!(seen.into_iter().eq(message.values(&context.types).enumerate()));
        assert_eq!(message.values(&context.types).count(), context.types.len());
        same(body, |out| message.encode(out));
    }
}

/// Bytes biased to what the formats are made of.
fn body() -> impl Strategy<Value = Vec<u8>> {
    let tag = prop_oneof![
        any::<u8>(),
        (0..0x22u8),
        Just(0xfa),
        Just(0xfb),
        Just(0xfe),
        Just(0xff),
        Just(10),
        Just(0)
    ];
    let piece = prop_oneof![
        Just(vec![0u8]),
        Just(vec![0, 0, 0, 0]),
        Just(vec![1]),
        Just(vec![1, b'x']),
        Just(vec![0, 1, 8, 0]),
        Just(vec![0xfb]),
        Just(vec![0xfc, 0xfb, 0]),
        Just(vec![12, 33, 0, 9, 0, 0, 0, 253, 1, 0, 31, 0, 0]),
        Just(b"\x03def".to_vec()),
        Just(vec![0; 10]),
        Just(b"#42000".to_vec()),
        "[a-z]{0,3}".prop_map(|text| [text.as_bytes(), &[0]].concat()),
        "[a-z]{0,9}".prop_map(|text| [&[text.len() as u8], text.as_bytes()].concat()),
        proptest::collection::vec(any::<u8>(), 0..6),
    ];
    (tag, proptest::collection::vec(piece, 0..12))
        .prop_map(|(tag, pieces)| [vec![tag], pieces.concat()].concat())
}

fn context() -> impl Strategy<Value = Context> {
    let types = prop_oneof![any::<u8>(), 0..20u8, 240..=255u8].prop_map(ColumnType);
    (any::<u64>(), 0..4u16, proptest::collection::vec(types, 0..4)).prop_map(
        |(capabilities, parameters, types)| Context {
            capabilities: Capabilities(capabilities),
            parameters,
            types,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_decodes_encodes_back(body in body(), context in context()) {
        check_connection(&body, &context);
        check_commands(&body, &context);
        check_results(&body, &context);
    }

    /// Greetings and logins are too long to be met by chance.
    #[test]
    fn what_a_connection_begins_with_encodes_back(
        low in any::<u32>(), high in any::<u32>(), numbers in any::<(u32, u8, u16, u8)>(),
        texts in proptest::collection::vec("[a-z]{0,9}", 4), level in any::<u8>(), more in 0..4usize,
    ) {
        let (thread_id, character_set, status, challenge_len) = numbers;
        let mut body = vec![10];
        body.extend_from_slice(texts[0].as_bytes());
        body.push(0);
        body.extend_from_slice(&thread_id.to_le_bytes());
        body.extend_from_slice(b"challeng\0");
        body.extend_from_slice(&(low as u16).to_le_bytes());
        body.push(character_set);
        body.extend_from_slice(&status.to_le_bytes());
        body.extend_from_slice(&((low >> 16) as u16).to_le_bytes());
        body.push(challenge_len);
        body.extend_from_slice(&[0; 6]);
        body.extend_from_slice(&high.to_le_bytes());
        if low & 0x8000 != 0 {
            body.resize(body.len() + usize::from(challenge_len).saturating_sub(8).max(13), b'e');
        }
        if low & 0x8_0000 != 0 {
            body.extend_from_slice(b"mysql_native_password\0");
        }
        let greeting = Handshake::decode(&body).unwrap();
        let extended = if low & 1 == 0 { u64::from(high) << 32 } else { 0 };
        prop_assert_eq!(greeting.capabilities, Capabilities(u64::from(low) | extended));
        same(&body, |out| greeting.encode(out));
        prop_assert!(Handshake::decode(&body[..body.len() - 1]).is_err());

        let low = low | 0x200;
        let mut body = low.to_le_bytes().to_vec();
        body.extend_from_slice(&[0, 0, 0, 1, 45]);
        body.extend_from_slice(&[0; 19]);
        body.extend_from_slice(&high.to_le_bytes());
        body.extend_from_slice(texts[1].as_bytes());
        body.push(0);
        if low & 0x20_8000 != 0 {
            body.push(texts[2].len() as u8);
            body.extend_from_slice(texts[2].as_bytes());
        } else {
            body.extend_from_slice(texts[2].as_bytes());
            body.push(0);
        }
        for flag in [8, 0x8_0000] {
            if low & flag != 0 {
                body.extend_from_slice(texts[3].as_bytes());
                body.push(0);
            }
        }
        if low & 0x10_0000 != 0 {
            body.push(7 * more as u8);
            for _ in 0..more {
                body.extend_from_slice(b"\x03key\x02id");
            }
        }
        if low & 0x400_0000 != 0 {
            body.push(level);
        }
        let hello = ClientHello::decode(&body).unwrap();
        same(&body, |out| hello.encode(out));
        let ClientHello::Response(response) = hello else { panic!("a response, not TLS") };
        prop_assert_eq!(response.user, texts[1].as_bytes());
        prop_assert_eq!(response.answer, texts[2].as_bytes());
        let pairs = response.attributes.map_or(0, |attributes| attributes.iter().count());
        prop_assert_eq!(pairs, if low & 0x10_0000 != 0 { more } else { 0 });
    }
}
