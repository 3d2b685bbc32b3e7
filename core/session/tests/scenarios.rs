//! Conversations that broke other tools, and the corners of the start-up; after the manual's "Message Flow".

mod common;

use common::{
    Pair, SHOWN_KEY, bind, complete, execute, message, parameter, parse, query, ready, row, startup,
    startup_with, sync,
};
use onetrip_ledger::{Outcome, Steps, UnitKind};
use onetrip_session::{INSPECT_BYTES_MAX, Opening, SessionError};
use onetrip_wire::pg::{
    CancelRequest, ErrorResponse, FrameHeader, HEADER_BYTES, NegotiateProtocolVersion, PROTOCOL_3_0,
    ProtocolVersion, encode_cancel_request, encode_sasl_mechanisms, encode_ssl_request, encode_startup,
};

const SYNTAX_ERROR: &[u8] = b"SERROR\0C42601\0Msyntax error\0\0";
const COPY_ERROR: &[u8] = b"SERROR\0C22P04\0Mextra data\0\0";

fn error() -> Vec<u8> {
    message(b'E', SYNTAX_ERROR)
}

fn kinds(exchanges: &[onetrip_ledger::Exchange]) -> Vec<(UnitKind, bool)> {
    exchanges
        .iter()
        .filter(|exchange| exchange.kind != UnitKind::Connect)
        .map(|exchange| (exchange.kind, exchange.starts_trip))
        .collect()
}

/// SQLSTATE and text of the error in the outbox for the client.
fn told(pair: &mut Pair) -> (String, String) {
    let bytes = std::mem::take(pair.session.to_client());
    let header = FrameHeader::peek(&bytes, u32::MAX).expect("a header").expect("a frame");
    assert_eq!((header.tag, header.frame_len()), (b'E', bytes.len()));
    let error = ErrorResponse::decode(&bytes[HEADER_BYTES..]).expect("an error");
    assert!(error.is_fatal());
    let sqlstate = error.sqlstate().expect("a SQLSTATE");
    (String::from_utf8_lossy(&sqlstate).into_owned(), String::from_utf8_lossy(error.message()).into_owned())
}

#[test]
fn parse_describe_flush_is_one_trip_and_bind_execute_sync_the_next() {
    let mut pair = Pair::serving();
    let statement = "SELECT pay FROM emp WHERE id = $1";
    pair.turn(
        &[parse("", statement), message(b'D', b"S\0"), message(b'H', b"")],
        &[message(b'1', b""), message(b't', &[0, 1, 0, 0, 0, 23]), message(b'n', b"")],
    );
    assert!(!pair.session.is_waiting());
    pair.turn(
        &[bind("", "", &["7"]), execute(""), sync()],
        &[message(b'2', b""), row(b"100"), complete("SELECT 1"), ready(b'I')],
    );
    assert!(!pair.session.is_waiting());
    let hash = pair.hasher.hash(b"7");
    let books = pair.books();
    assert_eq!(kinds(&books.exchanges), [(UnitKind::FlushedGroup, true), (UnitKind::Group, true)]);
    let run = &books.exchanges[2];
    assert_eq!((run.statements[0].rows, run.parameters.as_slice()), (1, &[hash][..]));
    assert_eq!(books.templates[run.statements[0].template as usize], statement);
}

#[test]
fn spans_of_one_trace_are_one_request() {
    let mut pair = Pair::serving();
    for (trace, span) in [(7, 1), (7, 2), (8, 2)] {
        let text = format!("SELECT 1 /*traceparent='00-{trace:032x}-{span:016x}-01'*/");
        pair.turn(&[query(&text)], &[complete("SELECT 1"), ready(b'I')]);
    }
    let books = pair.books();
    let queries = books.exchanges.iter().filter(|exchange| exchange.kind == UnitKind::Query);
    let requests: Vec<u64> = queries.map(|exchange| exchange.request).collect();
    assert!(requests[0] != 0 && requests[0] == requests[1] && requests[1] != requests[2], "{requests:?}");
}

#[test]
fn a_sync_sent_before_the_server_asked_for_copy_data_owes_nothing() {
    let mut pair = Pair::serving();
    let copy = "COPY log FROM STDIN";
    // As libpq sends a COPY with PQsendQueryParams.
    pair.turn(
        &[parse("", copy), bind("", "", &[]), message(b'D', b"P\0"), execute(""), sync()],
        &[message(b'1', b""), message(b'2', b""), message(b'n', b""), message(b'G', &[0; 3])],
    );
    pair.turn(
        &[message(b'd', b"1\n"), message(b'H', b""), message(b'd', b"2\n"), message(b'c', b""), sync()],
        &[complete("COPY 2"), ready(b'I')],
    );
    assert!(!pair.session.is_waiting());
    pair.turn(&[query("SELECT 1")], &[complete("SELECT 1"), ready(b'I')]);
    let books = pair.books();
    let expected = [(UnitKind::Group, true), (UnitKind::CopyIn, true), (UnitKind::Query, true)];
    assert_eq!(kinds(&books.exchanges), expected);
    let data = &books.exchanges[2];
    assert_eq!(data.statements[0].rows, 2);
    assert_eq!(books.templates[data.statements[0].template as usize], copy);
    assert_eq!((books.summary.unasked_replies, books.summary.unanswered), (0, 0));
}

#[test]
fn copy_data_sent_ahead_is_one_trip_with_its_copy() {
    let mut pair = Pair::serving();
    pair.turn(
        &[
            parse("", "COPY log FROM STDIN"),
            bind("", "", &[]),
            execute(""),
            message(b'd', b"1\n"),
            message(b'c', b""),
            sync(),
        ],
        &[message(b'1', b""), message(b'2', b""), message(b'G', &[0; 3]), complete("COPY 1"), ready(b'I')],
    );
    assert!(!pair.session.is_waiting());
    assert_eq!(kinds(&pair.books().exchanges), [(UnitKind::Group, true)]);
}

#[test]
fn a_copy_that_fails_under_way_does_not_swallow_the_next_query() {
    let mut pair = Pair::serving();
    pair.turn(&[query("COPY log FROM STDIN")], &[message(b'G', &[0; 3])]);
    pair.turn(&[message(b'd', b"1\tx\n")], &[message(b'E', COPY_ERROR), ready(b'I')]);
    // The client learns of it late; the server ignores what it still sends.
    pair.turn(&[message(b'd', b"2\n"), message(b'c', b"")], &[]);
    assert!(!pair.session.is_waiting());
    pair.turn(&[query("SELECT 1")], &[complete("SELECT 1"), ready(b'I')]);
    let books = pair.books();
    let expected = [(UnitKind::Query, true), (UnitKind::CopyIn, true), (UnitKind::Query, true)];
    assert_eq!(kinds(&books.exchanges), expected);
    assert_eq!(books.exchanges[2].outcome, Outcome::Failed(*b"22P04"));
    assert_eq!(books.exchanges[3].outcome, Outcome::Done);
    assert_eq!(books.summary.errors, 1);
}

#[test]
fn a_copy_that_fails_before_any_data_leaves_the_next_query_whole() {
    let mut pair = Pair::serving();
    pair.turn(
        &[query("COPY log FROM STDIN")],
        &[message(b'G', &[0; 3]), message(b'E', COPY_ERROR), ready(b'I')],
    );
    assert!(!pair.session.is_waiting());
    pair.turn(&[query("SELECT 1")], &[complete("SELECT 1"), ready(b'I')]);
    let books = pair.books();
    assert_eq!(kinds(&books.exchanges), [(UnitKind::Query, true), (UnitKind::Query, true)]);
    assert_eq!(books.exchanges[2].outcome, Outcome::Done);
}

#[test]
fn a_query_skipped_after_an_error_owes_no_ready_for_query() {
    for error_is_known in [false, true] {
        let mut pair = Pair::serving();
        if error_is_known {
            pair.turn(&[parse("", "SELEC"), message(b'H', b"")], &[error()]);
            pair.turn(&[query("SELECT 2"), sync()], &[ready(b'I')]);
        } else {
            pair.turn(&[parse("", "SELEC"), query("SELECT 2"), sync()], &[error(), ready(b'I')]);
        }
        assert!(!pair.session.is_waiting());
        pair.turn(&[query("SELECT 3")], &[complete("SELECT 1"), ready(b'I')]);
        let books = pair.books();
        assert_eq!((books.summary.unasked_replies, books.summary.unanswered), (0, 0));
        let runs = books.exchanges.iter().flat_map(|exchange| &exchange.statements);
        let runs: Vec<Outcome> =
            runs.filter(|run| run.steps.has(Steps::EXECUTE)).map(|run| run.outcome).collect();
        assert_eq!(runs, [Outcome::Skipped, Outcome::Done]);
    }
}

#[test]
fn a_sync_that_was_taken_for_part_of_a_copy_heals_the_queue_when_it_is_answered() {
    let mut pair = Pair::serving();
    // A trigger fails before the server has read a byte: the Sync behind Execute counts after all.
    pair.turn(
        &[parse("", "COPY log FROM STDIN"), bind("", "", &[]), execute(""), sync()],
        &[message(b'1', b""), message(b'2', b""), message(b'G', &[0; 3]), error(), ready(b'I')],
    );
    pair.turn(
        &[parse("", "SELECT 1"), bind("", "", &[]), execute(""), sync()],
        &[message(b'1', b""), message(b'2', b""), complete("SELECT 1"), ready(b'I')],
    );
    assert!(!pair.session.is_waiting());
    assert_eq!(pair.books().summary.unasked_replies, 1);
}

#[test]
fn a_function_call_is_a_unit_of_its_own() {
    let mut pair = Pair::serving();
    let call = message(b'F', &[0, 0, 3, 0xb9, 0, 0, 0, 0, 0, 0]);
    pair.turn(std::slice::from_ref(&call), &[message(b'V', &[0, 0, 0, 1, 7]), ready(b'I')]);
    pair.turn(&[call], &[error(), ready(b'I')]);
    assert!(!pair.session.is_waiting());
    let books = pair.books();
    assert_eq!(kinds(&books.exchanges), [(UnitKind::FunctionCall, true); 2]);
    assert_eq!(books.exchanges[2].outcome, Outcome::Failed(*b"42601"));
}

#[test]
fn a_function_call_tells_its_function_its_arguments_and_what_it_returned() {
    let mut pair = Pair::serving();
    // lo_open(77, 262144), arguments and result binary, which returns 5.
    let open = [
        &[0, 0, 3, 0xb8, 0, 1, 0, 1, 0, 2][..],
        &[0, 0, 0, 4, 0, 0, 0, 77],
        &[0, 0, 0, 4, 0, 4, 0, 0],
        &[0, 1],
    ]
    .concat();
    pair.turn(&[message(b'F', &open)], &[message(b'V', &[0, 0, 0, 4, 0, 0, 0, 5]), ready(b'T')]);
    // A function of the user's that returns nothing.
    let unknown = [0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    pair.turn(&[message(b'F', &unknown)], &[message(b'V', &[255; 4]), ready(b'T')]);
    let hash = |value: &[u8]| pair.hasher.hash(value);
    let (object, mode, handle) = (hash(b"77"), hash(b"262144"), hash(b"5"));
    let books = pair.books();
    let [open, unknown] = &books.exchanges[1..] else { panic!("two calls") };
    assert_eq!(books.templates[open.statements[0].template as usize], "lo_open($1, $2)");
    assert_eq!(open.parameters, [object, mode]);
    assert_eq!(open.results, [handle as u32]);
    assert!(open.statements[0].steps.has(Steps::EXECUTE));
    assert_eq!(books.templates[unknown.statements[0].template as usize], "function 65536()");
    assert_eq!((unknown.results.len(), unknown.statements[0].rows), (0, 1));
    assert_eq!(books.summary.undecoded, 0);
}

#[test]
fn what_comes_at_any_time_answers_nothing() {
    let mut pair = Pair::serving();
    let notice = || message(b'N', b"SNOTICE\0Mso\0\0");
    let notification = || message(b'A', b"\0\0\0\x07jobs\0\0");
    let status = || message(b'S', b"TimeZone\0UTC\0");
    pair.turn(&[], &[notification(), notice(), status()]);
    pair.turn(
        &[query("SELECT 1")],
        &[notice(), status(), complete("SELECT 1"), notification(), ready(b'I'), notice()],
    );
    assert!(!pair.session.is_waiting());
    let books = pair.books();
    assert_eq!(kinds(&books.exchanges), [(UnitKind::Query, true)]);
    assert_eq!(books.summary.unasked_replies, 0);
}

#[test]
fn an_error_without_sqlstate_is_booked_as_one() {
    let mut pair = Pair::serving();
    pair.turn(&[query("SELECT 1")], &[message(b'E', b"SERROR\0Mno code\0\0"), ready(b'I')]);
    let books = pair.books();
    assert_eq!(books.exchanges[1].outcome, Outcome::Failed(*b"?????"));
    assert_eq!(books.summary.errors, 1);
}

#[test]
fn a_server_that_claims_impossible_numbers_of_rows_does_not_spoil_the_books() {
    let mut pair = Pair::serving();
    let claim = || complete(&format!("SELECT {}", u64::MAX));
    let large = || complete(&format!("SELECT {}", 1u64 << 47));
    pair.turn(&[query("SELECT 1")], &[claim(), claim(), large(), large(), ready(b'I')]);
    pair.turn(&[query("SELECT 1")], &[complete("SELECT 3"), ready(b'I')]);
    let rows: Vec<u64> =
        pair.books().exchanges[1..].iter().map(|exchange| exchange.statements[0].rows).collect();
    assert_eq!(rows, [1 << 47, 3]);
}

#[test]
fn a_server_that_says_goodbye_to_an_idle_client_is_forwarded_and_counted() {
    let mut pair = Pair::serving();
    pair.turn(&[], &[message(b'E', b"SFATAL\0VFATAL\0C57P01\0Mterminating\0\0")]);
    let books = pair.books();
    assert_eq!((books.summary.unasked_replies, books.summary.unanswered), (1, 0));
}

#[test]
fn messages_of_unknown_kind_and_bodies_that_do_not_decode_are_forwarded_and_counted() {
    let mut pair = Pair::serving();
    pair.turn(&[message(b'B', b"nonsense"), sync()], &[message(b'2', b""), ready(b'I')]);
    pair.turn(&[], &[message(b'y', b"what is this")]);
    let books = pair.books();
    assert_eq!((books.summary.undecoded, books.summary.unasked_replies), (1, 1));
}

#[test]
fn a_long_statement_is_booked_the_same_in_whatever_pieces_it_comes() {
    let text = format!("SELECT '{}', 7", "x".repeat(INSPECT_BYTES_MAX + 5_000));
    let mut booked = Vec::new();
    for piece in [1_000_000, INSPECT_BYTES_MAX, 40_000, 1_001] {
        let mut pair = Pair::serving();
        let sent = query(&text);
        let mut forwarded = Vec::new();
        for part in sent.chunks(piece) {
            forwarded.extend(pair.client(part).expect("a good message"));
        }
        assert_eq!(forwarded, sent);
        pair.turn(&[], &[complete("SELECT 1"), ready(b'I')]);
        let books = pair.books();
        let run = books.exchanges[1].statements[0];
        booked.push((books.templates[run.template as usize].clone(), run.parameters, run.rows));
    }
    assert!(booked.iter().all(|one| *one == booked[0]), "{booked:?}");
}

#[test]
fn long_rows_that_begin_alike_are_not_taken_for_the_same_result() {
    let mut pair = Pair::serving();
    for end in [b"a", b"b"] {
        let value = [&vec![b'x'; 2 * INSPECT_BYTES_MAX][..], end].concat();
        pair.turn(&[query("SELECT text FROM doc WHERE id = 1")], &[]);
        let answer = [row(&value), complete("SELECT 1"), ready(b'I')].concat();
        for part in answer.chunks(INSPECT_BYTES_MAX) {
            pair.turn(&[], &[part.to_vec()]);
        }
    }
    let books = pair.books();
    let digest = |number: usize| books.exchanges[number].statements[0].result_digest;
    assert_ne!(digest(1), digest(2));
}

#[test]
fn requests_for_encryption_are_declined_and_counted() {
    let mut pair = Pair::opening();
    let gssenc = [&8u32.to_be_bytes()[..], &(1234u32 << 16 | 5680).to_be_bytes()].concat();
    let mut ssl = Vec::new();
    encode_ssl_request(&mut ssl);
    for request in [gssenc, ssl] {
        assert_eq!(pair.client(&request).expect("a good packet"), b"");
        assert_eq!(std::mem::take(pair.session.to_client()), b"N");
    }
    assert_eq!(pair.client(&startup()).expect("a good packet"), startup());
    pair.server(&[message(b'R', &[0; 4]), ready(b'I')].concat()).expect("good messages");
    assert_eq!(pair.books().summary.trips.connect, 3);
}

#[test]
fn a_request_for_encryption_is_answered_once_and_alone() {
    let request = |code: u32| [8u32.to_be_bytes(), (1234 << 16 | code).to_be_bytes()].concat();
    let (ssl, gssenc) = (request(5679), request(5680));
    for (first, second) in [(&ssl, &gssenc), (&gssenc, &ssl)] {
        for again in [first, second] {
            let mut pair = Pair::opening();
            for request in [first, second] {
                pair.client(request).expect("a good packet");
                assert_eq!(std::mem::take(pair.session.to_client()), b"N");
            }
            assert!(matches!(pair.client(again), Err(SessionError::Client(_))));
            assert_eq!(told(&mut pair).0, "0A000", "declined once, it is no request any more");
        }
    }
    for (request, name) in [(&ssl, "SSL"), (&gssenc, "GSSAPI encryption")] {
        for more in [ssl.clone(), gssenc.clone(), startup()] {
            let mut pair = Pair::opening();
            let both = [&request[..], &more].concat();
            assert!(matches!(
                pair.session.handle_opening(onetrip_ledger::Moment(0), &both),
                Err(SessionError::Client(_))
            ));
            assert_eq!(pair.session.to_client().remove(0), b'N');
            assert_eq!(
                told(&mut pair),
                ("08P01".into(), format!("received unencrypted data after {name} request")),
                "what was sent before the answer may be somebody else's"
            );
        }
    }
}

#[test]
fn who_was_let_in_and_who_was_not_and_why_is_in_the_books() {
    let summary = Pair::serving().books().summary;
    assert_eq!((summary.connections, summary.sessions, summary.refusals.len()), (1, 1, 0));
    let mut pair = Pair::entering();
    let error = b"SFATAL\0VFATAL\0C28P01\0Mpassword authentication failed for user \"ann\"\0\0";
    pair.server(&message(b'E', error)).expect("a good message");
    let summary = pair.books().summary;
    assert_eq!((summary.connections, summary.sessions), (1, 0));
    let [refusal] = summary.refusals.as_slice() else { panic!("{:?}", summary.refusals) };
    assert_eq!(refusal.sqlstate, "28P01");
    assert_eq!(refusal.message, "password authentication failed for user \"ann\"");
    let mut pair = Pair::entering();
    pair.session.refuse("08006", "onetrip cannot reach the database", None);
    assert_eq!(pair.books().summary.refusals[0].sqlstate, "08006");
}

#[test]
fn a_client_of_a_newer_protocol_is_negotiated_down() {
    let cases: [(ProtocolVersion, &[&[u8]]); 3] = [
        (ProtocolVersion { major: 3, minor: 2 }, &[]),
        (PROTOCOL_3_0, &[b"_pq_.compression"]),
        // What libpq asks for to see whether servers negotiate.
        (ProtocolVersion { major: 3, minor: 9999 }, &[b"_pq_.test_protocol_negotiation"]),
    ];
    for (version, options) in cases {
        let mut pair = Pair::opening();
        let mut packet = Vec::new();
        let user = [(&b"user"[..], &b"ann"[..])];
        encode_startup(
            &mut packet,
            version,
            user.into_iter().chain(options.iter().map(|name| (*name, &b"1"[..]))),
        );
        let forwarded = pair.client(&packet).expect("a good packet");
        assert_eq!(forwarded, startup(), "the server is asked for protocol 3.0");
        let answer = std::mem::take(pair.session.to_client());
        let negotiated = NegotiateProtocolVersion::decode(&answer[HEADER_BYTES..]).expect("a negotiation");
        assert_eq!(answer[0], b'v');
        assert_eq!((negotiated.version, negotiated.unknown_options.as_slice()), (PROTOCOL_3_0, options));
    }
    let mut pair = Pair::entering();
    assert!(pair.session.to_client().is_empty(), "protocol 3.0 needs no negotiation");
}

#[test]
fn the_client_gets_the_gateways_own_cancel_key_and_can_show_it() {
    let mut pair = Pair::entering();
    let key = |key: &[u8]| message(b'K', &[&4711u32.to_be_bytes(), key].concat());
    let long = [7; 32];
    let got = pair.server(&key(&long)).expect("a good message");
    assert_eq!(got, key(&SHOWN_KEY));
    let backend = pair.session.backend_key().expect("a key");
    assert_eq!((backend.process_id, backend.key.as_slice()), (4711, &long[..]));
    let mut request = Vec::new();
    encode_cancel_request(&mut request, CancelRequest { process_id: 4711, key: &SHOWN_KEY });
    let opening = Pair::opening().session.handle_opening(onetrip_ledger::Moment(0), &request);
    assert_eq!(opening, Ok(Opening::Cancel { bytes: request.len(), process_id: 4711, key: SHOWN_KEY }));
}

#[test]
fn channel_binding_is_not_offered_where_it_cannot_work() {
    let offer = |names: &[&[u8]]| {
        let mut out = Vec::new();
        encode_sasl_mechanisms(&mut out, names.iter().copied());
        out
    };
    let mut pair = Pair::entering();
    let got = pair.server(&offer(&[b"SCRAM-SHA-256-PLUS", b"SCRAM-SHA-256"])).expect("a good message");
    assert_eq!(got, offer(&[b"SCRAM-SHA-256"]));
    let mut pair = Pair::entering();
    assert_eq!(pair.server(&offer(&[b"SCRAM-SHA-256-PLUS"])), Err(SessionError::ChannelBindingOnly));
    assert_eq!(told(&mut pair).0, "28000");
    let mut pair = Pair::entering();
    let got = pair.server(&offer(&[b"SCRAM-SHA-256"])).expect("a good message");
    assert_eq!(got, offer(&[b"SCRAM-SHA-256"]));
}

#[test]
fn what_is_sent_before_the_server_is_ready_waits_and_then_goes_on() {
    let mut pair = Pair::entering();
    assert_eq!(pair.client(&query("SELECT 1")).expect("a good message"), b"");
    pair.server(&[message(b'R', &[0; 4]), ready(b'I')].concat()).expect("good messages");
    assert_eq!(pair.client(b"").expect("a good message"), query("SELECT 1"));
    pair.turn(&[], &[complete("SELECT 1"), ready(b'I')]);
    assert_eq!(kinds(&pair.books().exchanges), [(UnitKind::Query, true)]);
}

#[test]
fn a_password_sent_before_it_was_asked_for_does_not_block_the_books() {
    let mut pair = Pair::opening();
    let password = message(b'p', b"secret\0");
    let sent = [startup(), password].concat();
    let mut forwarded = pair.client(&sent).expect("good messages");
    pair.server(&message(b'R', &[0, 0, 0, 3])).expect("a good message");
    forwarded.extend(pair.client(b"").expect("good messages"));
    assert_eq!(forwarded, sent);
    pair.server(&[message(b'R', &[0; 4]), ready(b'I')].concat()).expect("good messages");
    assert!(!pair.session.is_waiting());
    pair.turn(&[query("SELECT 1")], &[complete("SELECT 1"), ready(b'I')]);
    let books = pair.books();
    assert_eq!((books.summary.units, books.summary.unanswered), (3, 0));
}

#[test]
fn a_startup_packet_of_impossible_length_or_version_is_refused() {
    let packet = |length: u32, code: u32| [length.to_be_bytes(), code.to_be_bytes()].concat();
    let version_3 = PROTOCOL_3_0.code();
    for length in [10_005, 1 << 30, u32::MAX, 3, 0, 7] {
        let mut pair = Pair::opening();
        assert!(matches!(pair.client(&packet(length, version_3)), Err(SessionError::Client(_))), "{length}");
        assert_eq!(pair.session.to_client(), b"", "PostgreSQL says nothing either");
    }
    for key in [&b""[..], b"abc", &[b'x'; 256]] {
        let mut pair = Pair::opening();
        let cancel = [&packet(12 + key.len() as u32, 1234 << 16 | 5678)[..], &[0, 0, 0, 1], key].concat();
        assert!(matches!(pair.client(&cancel), Err(SessionError::Client(_))));
        assert_eq!(pair.session.to_client(), b"", "a cancel request has no answer");
    }
    let mut pair = Pair::opening();
    assert!(matches!(pair.client(&packet(8, 2 << 16)), Err(SessionError::Client(_))));
    // In the form that clients of protocol 2 read: a text and no fields.
    let told = std::mem::take(pair.session.to_client());
    let text = String::from_utf8_lossy(&told);
    assert!(text.starts_with('E') && text.contains("unsupported frontend protocol 2.0"), "{text}");
}

#[test]
fn a_message_of_impossible_length_ends_the_session() {
    let header = |tag: u8, length: u32| [&[tag][..], &length.to_be_bytes()].concat();
    for length in [0, 3, u32::MAX, 0x4000_0000, 0x3fff_ffff] {
        let mut pair = Pair::serving();
        assert!(matches!(pair.client(&header(b'Q', length)), Err(SessionError::Client(_))), "{length}");
        assert_eq!(pair.session.to_client(), b"", "PostgreSQL says nothing either");
        let mut pair = Pair::serving();
        assert!(matches!(pair.server(&header(b'D', length)), Err(SessionError::Server(_))), "{length}");
    }
    assert_eq!(Pair::serving().client(&header(b'd', 0x3fff_fffe)), Ok(header(b'd', 0x3fff_fffe)));
    // Messages that hold a name at most have a limit of their own.
    assert!(matches!(Pair::serving().client(&header(b'D', 10_001)), Err(SessionError::Client(_))));
    let mut pair = Pair::serving();
    assert!(matches!(pair.client(&header(b'~', 7)), Ok(_) | Err(SessionError::Client(_))));
}

#[test]
fn more_than_64_kib_before_the_client_is_let_in_is_refused() {
    let header = |length: u32| [&b"p"[..], &length.to_be_bytes()].concat();
    let mut pair = Pair::entering();
    pair.server(&message(b'R', &[0, 0, 0, 3])).expect("a good message");
    assert_eq!(pair.client(&header(65_535)), Ok(header(65_535)));
    let mut pair = Pair::entering();
    pair.server(&message(b'R', &[0, 0, 0, 3])).expect("a good message");
    assert!(matches!(pair.client(&header(65_536)), Err(SessionError::Client(_))));
    assert_eq!(pair.session.to_client(), b"");
}

#[test]
fn a_portal_name_that_is_never_closed_is_forgotten_with_its_transaction() {
    let mut pair = Pair::serving();
    pair.turn(&[parse("s", "SELECT 1"), sync()], &[message(b'1', b""), ready(b'I')]);
    for number in 0..70_000 {
        let portal = format!("C_{number}");
        pair.turn(
            &[bind(&portal, "s", &[]), execute(&portal), sync()],
            &[message(b'2', b""), complete("SELECT 1"), ready(b'I')],
        );
    }
    let books = pair.books();
    let last = books.exchanges.last().expect("an exchange");
    assert_eq!(last.statements.len(), 1, "Execute is taken for the run of what was bound");
    assert_eq!(books.templates[last.statements[0].template as usize], "SELECT $1");
}

#[test]
fn a_row_that_was_not_described_is_no_part_of_an_earlier_result() {
    let mut pair = Pair::serving();
    let id =
        [&b"\0\x01id\0"[..], &[0; 6], &23u32.to_be_bytes(), &[0, 4, 0xff, 0xff, 0xff, 0xff, 0, 0]].concat();
    // The first query's result ends without CommandComplete, the second one's row comes without RowDescription.
    let said = [message(b'T', &id), ready(b'I'), row(b"5"), complete("SELECT 1"), ready(b'I')];
    pair.turn(&[query("SELECT id FROM t"), query("SELECT 1")], &said);
    let books = pair.books();
    let last = books.exchanges.last().expect("an exchange");
    assert_eq!((last.statements[0].results, last.statements[0].key_columns), (0, 0));
}

#[test]
fn values_of_settings_that_users_define_are_not_kept() {
    let mut pair = Pair::opening();
    let packet = startup_with(&[("options", "-c app.jwt=s3cret -c geqo=off"), ("app.key", "s3cret")]);
    pair.client(&packet).expect("a good packet");
    pair.server(&[message(b'R', &[0; 4]), ready(b'I')].concat()).expect("good messages");
    for text in ["SET app.token = s3cret", "SET LOCAL \"app.token\" TO \"s3cret\""] {
        let sent = pair.client(&query(text)).expect("a good statement");
        assert!(sent.is_empty() || sent.windows(6).any(|bytes| bytes == b"s3cret"), "the server has it");
        pair.server(&[complete("SET"), ready(b'I')].concat()).expect("good messages");
    }
    let books = pair.books();
    let value =
        |name: &str| books.parameters.iter().find(|(known, _)| known == name).map(|(_, value)| &**value);
    assert_eq!((value("user"), value("app.key")), (Some("ann"), Some("***")));
    assert_eq!(value("options"), Some("-c app.jwt=*** -c geqo=off"));
    assert_eq!(books.templates[1..], ["SET app.token = ***", "SET LOCAL \"app.token\" TO ***"]);
}

#[test]
fn a_backslash_within_a_character_of_the_clients_encoding_escapes_nothing() {
    use onetrip_ledger::Remedy;

    let sent = message(b'Q', b"SELECT E'\x83\x5c' , 'secret' , 'x'\0");
    for mut pair in [Pair::serving(), Pair::remedied([Remedy::Chatter].into_iter().collect(), Some("off"))] {
        pair.turn(&[], &[parameter("client_encoding", "SJIS")]);
        for _ in 0..3 {
            pair.turn(std::slice::from_ref(&sent), &[complete("SELECT 1"), ready(b'I')]);
        }
        pair.turn(&[], &[parameter("client_encoding", "UTF8")]);
        pair.turn(&[query("SELECT 'a'")], &[complete("SELECT 1"), ready(b'I')]);
        let hashes = [pair.hasher.hash(b"secret"), pair.hasher.hash(b"x")];
        let books = pair.books();
        assert!(books.templates.contains(&"SELECT $1 , $2 , $3".to_owned()), "{:?}", books.templates);
        assert!(books.templates.iter().all(|template| !template.contains("secret")));
        let mut runs = books.exchanges.iter().filter(|exchange| exchange.parameters.len() == 3);
        assert!(runs.by_ref().take(3).all(|run| run.parameters[1..] == hashes));
    }
}

#[test]
fn a_scope_holds_from_its_setting_on_and_not_where_that_failed() {
    let mut pair = Pair::serving();
    let set = |label: &str| query(&format!("SET onetrip.scope = '{label}'"));
    let done = || [complete("SELECT 1"), ready(b'I')].concat();
    let failed = || [error(), ready(b'I')].concat();
    pair.turn(
        &[
            query("SELECT 1"),
            set("first"),
            query("SELECT 2"),
            set("other"),
            query("SELECT 3"),
            query("RESET ALL"),
        ],
        &[done(), done(), done(), failed(), done(), failed()],
    );
    pair.turn(&[query("SELECT 4")], &[done()]);
    let scopes = pair.books().summary.scopes;
    let counted: Vec<_> = scopes.iter().map(|scope| (scope.label.as_str(), scope.statements)).collect();
    assert_eq!(counted, [("", 1), ("first", 4)]);
}

#[test]
fn a_text_that_is_whole_in_a_message_that_is_not_has_no_more_than_its_own_bytes() {
    let mut pair = Pair::serving();
    for cut in 2..8 {
        let text = format!("SELECT /*{}*/ 1", "c".repeat(INSPECT_BYTES_MAX - cut - 17));
        pair.turn(&[parse("", &text), sync()], &[message(b'1', b""), ready(b'I')]);
    }
    assert_eq!(pair.books().templates[1..], ["SELECT $1"]);
}

#[test]
fn rows_of_a_copy_are_those_of_its_statement_however_its_data_comes() {
    use onetrip_ledger::{Analyzer, Mutes};

    let mut pair = Pair::serving();
    pair.turn(&[query("COPY log FROM STDIN")], &[message(b'G', &[0; 3])]);
    pair.turn(&[message(b'd', b"1\n2\n"), message(b'c', b"")], &[complete("COPY 2"), ready(b'I')]);
    pair.turn(
        &[query("COPY log FROM STDIN"), message(b'd', b"1\n2\n3\n"), message(b'c', b"")],
        &[message(b'G', &[0; 3]), complete("COPY 3"), ready(b'I')],
    );
    let mut analyzer = Analyzer::new();
    analyzer.block(1, &pair.session.stream().take_block()).expect("own records read back");
    let summary = analyzer.finish(&Mutes::default()).summary;
    let totals: Vec<_> = summary
        .templates
        .iter()
        .map(|template| (&*template.text, template.executions, template.rows))
        .collect();
    assert_eq!(totals, [("COPY log FROM STDIN", 2, 5)]);
    assert_eq!(summary.rows, 5);
}
