//! The trace file: what is written is read, and whatever happens to the file, complete blocks survive.

use std::fs;

use onetrip_ledger::trace::{Records, TraceHeader, decode_block};
use onetrip_ledger::{
    Exchange, Moment, Obstacle, Outcome, Record, Remedy, Statement, Steps, StreamEncoder, TraceError,
    TraceReader, TraceWriter, TransactionStatus, UnitKind,
};
use proptest::prelude::*;

/// Amounts from here on are refused: see `docs/trace-format.md`.
const AMOUNT_LIMIT: u64 = 1 << 48;

fn statement() -> impl Strategy<Value = (Statement, Vec<u64>, Vec<u32>)> {
    let head = (any::<u32>(), 0u8..32, 0..AMOUNT_LIMIT, any::<u32>(), any::<bool>());
    let outcome =
        prop_oneof![Just(Outcome::Done), Just(Outcome::Skipped), any::<[u8; 5]>().prop_map(Outcome::Failed)];
    let values =
        (proptest::collection::vec(any::<u64>(), 0..4), 0u16..4, 0u32..5, any::<u32>(), any::<u64>());
    (head, outcome, values).prop_map(
        |(head, outcome, (parameters, width, rows_kept, columns, result_digest))| {
            let (template, steps, rows, row_limit, suspended) = head;
            let results: Vec<u32> = (0..u32::from(width) * rows_kept).collect();
            let statement = Statement {
                template,
                steps: Steps(steps),
                rows,
                row_limit,
                suspended,
                outcome,
                parameters: parameters.len() as u16,
                columns,
                key_columns: width,
                results: results.len() as u32,
                result_digest,
            };
            (statement, parameters, results)
        },
    )
}

fn exchange() -> impl Strategy<Value = Exchange> {
    let times = (0..1u64 << 55, 0..1u64 << 40, 0..1u64 << 40);
    let numbers = (0..AMOUNT_LIMIT, 0..AMOUNT_LIMIT, any::<u32>(), any::<u64>());
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (times, numbers, flags, proptest::collection::vec(statement(), 0..4)).prop_map(
        |((sent, first, last), (bytes_sent, bytes_received, scope, request), flags, statements)| {
            let parameters: Vec<u64> =
                statements.iter().flat_map(|(_, parameters, _)| parameters.clone()).collect();
            let keep = flags.2 && !parameters.is_empty();
            Exchange {
                kind: UnitKind::Group,
                sent_at: Moment(sent),
                first_reply_at: Moment(sent + first),
                last_reply_at: Moment(sent + first + last),
                bytes_sent,
                bytes_received,
                starts_trip: flags.0,
                may_share: flags.1,
                remedy: flags.3.then_some(Remedy::Begin),
                obstacle: (!flags.3 && flags.0).then_some(Obstacle::Wrote),
                status: TransactionStatus::Failed,
                outcome: Outcome::Failed(*b"23505"),
                scope,
                request,
                results: statements.iter().flat_map(|(_, _, results)| results.clone()).collect(),
                parameter_texts: if keep {
                    parameters.iter().map(|n| n.to_string().into()).collect()
                } else {
                    vec![]
                },
                parameters,
                statements: statements.into_iter().map(|(statement, _, _)| statement).collect(),
            }
        },
    )
}

fn decode(block: &[u8]) -> Vec<Exchange> {
    let mut exchanges = Vec::new();
    decode_block::<TraceError>(&mut Records::default(), 1, block, |record| {
        if let Record::Exchange(exchange) = record {
            exchanges.push(exchange.clone());
        }
        Ok(())
    })
    .unwrap();
    exchanges
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn exchanges_decode_to_what_was_encoded(exchanges in proptest::collection::vec(exchange(), 1..5)) {
        let mut stream = StreamEncoder::default();
        for exchange in &exchanges {
            stream.exchange(exchange);
        }
        prop_assert_eq!(decode(&stream.take_block()), exchanges);
    }

    #[test]
    fn damaged_records_are_errors_and_never_panics(mut block in proptest::collection::vec(any::<u8>(), 0..200), tag in 0u8..12) {
        if let Some(first) = block.first_mut() {
            *first = tag;
        }
        if block.len() >= 5 {
            let length = (block.len() - 5) as u32;
            block[1..5].copy_from_slice(&length.to_le_bytes());
        }
        let _ = decode_block::<TraceError>(&mut Records::default(), 1, &block, |_| Ok(()));
    }
}

/// A trace of three blocks, and where each ends.
fn three_blocks(path: &std::path::Path) -> Vec<u64> {
    let mut writer = TraceWriter::create(path, TraceHeader::now(false)).unwrap();
    (1..=3u32)
        .map(|stream| {
            let mut encoder = StreamEncoder::default();
            encoder.template(1, b"SELECT $1");
            writer.append(stream, &encoder.take_block()).unwrap();
            fs::metadata(path).unwrap().len()
        })
        .collect()
}

fn read(path: &std::path::Path) -> (Vec<u32>, u64) {
    let mut reader = TraceReader::open(path).unwrap();
    let mut streams = Vec::new();
    while let Some(block) = reader.next_block().unwrap() {
        streams.push(block.stream);
    }
    (streams, reader.ignored_bytes())
}

#[test]
fn a_trace_cut_anywhere_keeps_its_complete_blocks() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("whole.trace");
    let ends = three_blocks(&path);
    let whole = fs::read(&path).unwrap();
    for length in 20..=whole.len() {
        let cut = directory.path().join("cut.trace");
        fs::write(&cut, &whole[..length]).unwrap();
        let complete = ends.iter().filter(|end| **end <= length as u64).count();
        let (streams, ignored) = read(&cut);
        assert_eq!(streams.len(), complete, "cut at {length}");
        let last_end = complete.checked_sub(1).map_or(20, |last| ends[last]);
        assert_eq!(ignored, length as u64 - last_end, "cut at {length}");
    }
}

#[test]
fn a_flipped_bit_ends_the_trace_before_its_block() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("flipped.trace");
    let ends = three_blocks(&path);
    let mut bytes = fs::read(&path).unwrap();
    bytes[ends[0] as usize + 20] ^= 1;
    fs::write(&path, bytes).unwrap();
    let (streams, ignored) = read(&path);
    assert_eq!(streams, [1]);
    assert_eq!(ignored, ends[2] - ends[0]);
}

#[test]
fn files_that_are_no_traces_are_told_apart() {
    let directory = tempfile::tempdir().unwrap();
    let open = |bytes: &[u8]| {
        let path = directory.path().join("other");
        fs::write(&path, bytes).unwrap();
        TraceReader::open(&path).unwrap_err().to_string()
    };
    assert!(open(b"").contains("is not a onetrip trace"));
    assert!(open(b"\x89PNG\r\n\x1a\n and so on and on").contains("is not a onetrip trace"));
    assert!(open(b"onetrip\0\x63\x00\0\0\0\0\0\0\0\0\0\0").contains("trace format 99"));
    assert!(
        TraceReader::open(&directory.path().join("missing"))
            .unwrap_err()
            .to_string()
            .contains("No such file")
    );
}

#[test]
fn a_full_disk_leaves_a_readable_trace() {
    let mut writer = match TraceWriter::create(std::path::Path::new("/dev/full"), TraceHeader::now(false)) {
        Err(error) => return assert!(error.to_string().contains("No space left"), "{error}"),
        Ok(writer) => writer,
    };
    assert!(writer.append(1, b"block").unwrap_err().to_string().contains("No space left"));
}

#[test]
fn numbers_that_no_session_can_reach_are_malformed_and_not_added_up() {
    let far = Moment(1 << 56);
    let cases = [
        Exchange { bytes_sent: AMOUNT_LIMIT, ..Exchange::default() },
        Exchange { bytes_received: u64::MAX, ..Exchange::default() },
        Exchange { sent_at: far, first_reply_at: far, last_reply_at: far, ..Exchange::default() },
        Exchange { last_reply_at: far, ..Exchange::default() },
        Exchange {
            statements: vec![Statement { rows: u64::MAX, ..Statement::default() }],
            ..Exchange::default()
        },
    ];
    for exchange in cases {
        let mut encoder = StreamEncoder::default();
        encoder.exchange(&exchange);
        let decoded =
            decode_block::<TraceError>(&mut Records::default(), 1, &encoder.take_block(), |_| Ok(()));
        assert!(matches!(decoded, Err(TraceError::Malformed { .. })), "{exchange:?}");
    }
}
