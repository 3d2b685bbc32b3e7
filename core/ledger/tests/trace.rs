//! The trace file: what is written is read, and whatever happens to the file, complete blocks survive.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use onetrip_ledger::trace::{BLOCK_BYTES_MAX, Records, TraceHeader, decode_block};
use onetrip_ledger::{
    Analyzer, Cut, EXCHANGE_BYTES_MAX, Exchange, Moment, Mutes, Obstacle, Outcome, Record, Remedy, Statement,
    Steps, StreamEncoder, TraceError, TraceReader, TraceWriter, TransactionStatus, UnitKind,
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
                cut: Cut { rows: bytes_sent, ..Cut::default() },
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

const HEADER_BYTES: usize = 24;

/// A child that is being started has its parent's files for a moment, and with them the locks of traces. So the tests that
/// start one and those that open a trace again take turns.
static TURNS: Mutex<()> = Mutex::new(());

/// A trace of three blocks, and where each ends.
fn three_blocks(path: &Path) -> Vec<u64> {
    three_blocks_after(path, TraceHeader::now(false))
}

fn three_blocks_after(path: &Path, header: TraceHeader) -> Vec<u64> {
    let mut writer = TraceWriter::create(path, header).unwrap();
    (1..=3u32)
        .map(|stream| {
            let mut encoder = StreamEncoder::default();
            encoder.template(1, b"SELECT $1");
            writer.append(stream, &encoder.take_block()).unwrap();
            fs::metadata(path).unwrap().len()
        })
        .collect()
}

/// Streams of the blocks, damaged places, damaged bytes, and bytes at the end that are no block.
fn read(path: &Path) -> (Vec<u32>, [u64; 3]) {
    let mut reader = TraceReader::open(path).unwrap();
    let mut streams = Vec::new();
    while let Some(block) = reader.next_block().unwrap() {
        streams.push(block.stream);
    }
    let gaps = reader.gaps();
    (streams, [gaps.damaged_blocks, gaps.damaged_bytes, gaps.tail_bytes])
}

#[test]
fn a_trace_cut_anywhere_keeps_its_complete_blocks() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("whole.trace");
    let ends = three_blocks(&path);
    let whole = fs::read(&path).unwrap();
    for length in HEADER_BYTES..=whole.len() {
        let cut = directory.path().join("cut.trace");
        fs::write(&cut, &whole[..length]).unwrap();
        let complete = ends.iter().filter(|end| **end <= length as u64).count();
        let (streams, gaps) = read(&cut);
        assert_eq!(streams.len(), complete, "cut at {length}");
        let last_end = complete.checked_sub(1).map_or(HEADER_BYTES as u64, |last| ends[last]);
        assert_eq!(gaps, [0, 0, length as u64 - last_end], "cut at {length}");
    }
}

#[test]
fn what_a_client_has_sent_does_not_pass_for_a_block_of_the_trace() {
    let _turn = TURNS.lock();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("forged.trace");
    let own = TraceHeader::now(false);
    // Blocks as a trace has them, in a statement's text, and then the writer was killed.
    let found = |forged: TraceHeader| {
        three_blocks_after(&path, forged);
        let blocks = fs::read(&path).unwrap().split_off(HEADER_BYTES);
        let mut encoder = StreamEncoder::default();
        encoder.template(1, &[blocks.as_slice(), b"more"].concat());
        TraceWriter::create(&path, own).unwrap().append(7, &encoder.take_block()).unwrap();
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(file.metadata().unwrap().len() - 1).unwrap();
        read(&path).0
    };
    assert_eq!(found(TraceHeader::now(false)), [0_u32; 0]);
    assert_eq!(found(own), [1, 2, 3], "with the salt known they would pass");
}

#[test]
fn whole_blocks_that_are_missing_or_there_twice_are_damage() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("whole.trace");
    let mut writer = TraceWriter::create(&path, TraceHeader::now(false)).unwrap();
    let mut ends = Vec::new();
    for stream in 1..=3 {
        let mut encoder = StreamEncoder::default();
        encoder.template(1, b"SELECT $1");
        writer.append(stream, &encoder.take_block()).unwrap();
        ends.push(usize::try_from(fs::metadata(&path).unwrap().len()).unwrap());
    }
    writer.finish(0).unwrap();
    let whole = fs::read(&path).unwrap();
    let (first, second) = (ends[0], ends[1]);
    let bytes = (second - first) as u64;
    let without = [&whole[..first], &whole[second..]].concat();
    let doubled = [&whole[..second], &whole[first..]].concat();
    let damaged = |trace: &[u8]| {
        fs::write(&path, trace).unwrap();
        let mut reader = TraceReader::open(&path).unwrap();
        while reader.next_block().unwrap().is_some() {}
        (reader.gaps().damaged_blocks, reader.gaps().damaged_bytes)
    };
    assert_eq!(damaged(&whole), (0, 0));
    assert_eq!(damaged(&without), (1, bytes));
    assert_eq!(damaged(&doubled), (1, bytes));
    // Behind the end there is nothing.
    let behind = [&whole[..], &whole[first..second]].concat();
    assert_eq!(damaged(&behind), (1, bytes));
}

#[test]
fn a_trace_of_version_1_which_has_no_salt_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("old.trace");
    three_blocks_after(&path, TraceHeader { version: 1, salt: 0, ..TraceHeader::now(false) });
    let mut bytes = fs::read(&path).unwrap();
    bytes.drain(20..HEADER_BYTES);
    fs::write(&path, bytes).unwrap();
    assert_eq!(read(&path), (vec![1, 2, 3], [0; 3]));
}

#[test]
fn a_flipped_bit_costs_its_own_block_and_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("flipped.trace");
    let ends = three_blocks(&path);
    let whole = fs::read(&path).unwrap();
    // Every bit of the second block: of its length, its checksum, its stream and its records.
    for at in ends[0]..ends[1] {
        for bit in 0..8 {
            let mut bytes = whole.clone();
            bytes[at as usize] ^= 1 << bit;
            fs::write(&path, bytes).unwrap();
            assert_eq!(read(&path), (vec![1, 3], [1, ends[1] - ends[0], 0]), "bit {bit} of byte {at}");
        }
    }
}

#[test]
fn a_block_longer_than_readers_take_costs_itself_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("long.trace");
    let ends = three_blocks(&path);
    let whole = fs::read(&path).unwrap();
    let (before, after) = whole.split_at(ends[1] as usize);
    let length = BLOCK_BYTES_MAX as u32 + 1;
    // Not a hole: zeros are what a file system leaves where nothing was written.
    let long = vec![b'x'; length as usize];
    fs::write(&path, [before, &length.to_le_bytes(), &[0; 8], &long, after].concat()).unwrap();
    let damage = u64::from(length) + 12;
    assert_eq!(read(&path), (vec![1, 2, 3], [1, damage, 0]));
    let mut writer = TraceWriter::create(&path, TraceHeader::now(false)).unwrap();
    assert!(writer.append(1, &long).unwrap_err().to_string().contains("too long"));
    writer.append(2, b"\x0e\0\0\0\0").unwrap();
}

#[test]
fn a_damaged_trace_is_read_as_far_as_that_goes_from_a_pipe() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("damaged.trace");
    let ends = three_blocks(&path);
    let mut bytes = fs::read(&path).unwrap();
    bytes[ends[0] as usize + 20] ^= 1;
    let pipe = directory.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let writing = {
        let pipe = pipe.clone();
        std::thread::spawn(move || fs::write(pipe, bytes).unwrap())
    };
    assert_eq!(read(&pipe), (vec![1], [1, ends[2] - ends[0], 0]));
    writing.join().unwrap();
}

#[test]
fn a_trace_is_its_owners_and_replaces_nothing_but_a_trace() {
    let _turn = TURNS.lock();
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let create = |name: &str| TraceWriter::create(&path(name), TraceHeader::now(false));
    let refused = |name: &str| create(name).unwrap_err().to_string();
    create("new").unwrap();
    assert_eq!(fs::metadata(path("new")).unwrap().permissions().mode() & 0o777, 0o600);
    fs::set_permissions(path("new"), PermissionsExt::from_mode(0o644)).unwrap();
    let writing = create("new").unwrap();
    assert_eq!(fs::metadata(path("new")).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(refused("new").contains("being written by another"), "{}", refused("new"));
    drop(writing);
    create("new").unwrap();

    fs::write(path("app.py"), "print()\n").unwrap();
    assert!(refused("app.py").contains("is not a trace"));
    assert_eq!(fs::read(path("app.py")).unwrap(), b"print()\n");
    fs::write(path("empty"), "").unwrap();
    create("empty").unwrap();

    for target in ["victim", "new"] {
        symlink(path(target), path("link")).unwrap();
        assert!(refused("link").contains("symbolic link"));
        assert!(!path("victim").exists());
        fs::remove_file(path("link")).unwrap();
    }
    assert!(refused(".").contains("directory"), "{}", refused("."));
}

#[test]
fn pipes_and_devices_are_written_to() {
    TraceWriter::create(Path::new("/dev/null"), TraceHeader::now(false)).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let alone = TraceWriter::create(&pipe, TraceHeader::now(false)).unwrap_err().to_string();
    assert!(alone.contains("nobody reads this pipe"), "{alone}");
    let link = directory.path().join("link");
    symlink(&pipe, &link).unwrap();
    let reader = fs::OpenOptions::new().read(true).custom_flags(0o4000).open(&pipe).unwrap();
    for path in [&pipe, &link] {
        let mut writer = TraceWriter::create(path, TraceHeader::now(false)).unwrap();
        writer.append(1, b"\x10\0\0\0\0").unwrap();
        writer.finish(0).unwrap();
    }
    drop(reader);
}

#[test]
fn a_pipe_that_is_full_is_not_waited_for_before_the_first_block() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let mut both = fs::OpenOptions::new().read(true).write(true).custom_flags(0o4000).open(&pipe).unwrap();
    let mut filled = 0;
    while let Ok(bytes) = both.write(&[b'x'; 4096]) {
        filled += bytes;
    }
    let (created, writer) = std::sync::mpsc::channel();
    let at = pipe.clone();
    std::thread::spawn(move || created.send(TraceWriter::create(&at, TraceHeader::now(false)).unwrap()));
    let mut writer = writer.recv_timeout(Duration::from_secs(10)).expect("the pipe is waited for");
    both.read_exact(&mut vec![0; filled]).unwrap();
    writer.append(1, b"\x10\0\0\0\0").unwrap();
    writer.finish(0).unwrap();
    let mut bytes = vec![0; 4096];
    let count = both.read(&mut bytes).unwrap();
    let copy = directory.path().join("copy.trace");
    fs::write(&copy, &bytes[..count]).unwrap();
    assert_eq!(ends_of(&copy), (vec![1, 0], 0, true));
}

/// What the trace says of itself.
fn ends_of(path: &Path) -> (Vec<u32>, u64, bool) {
    let mut reader = TraceReader::open(path).unwrap();
    let (mut streams, mut lost, mut is_ended) = (Vec::new(), 0, false);
    while let Some(block) = reader.next_block().unwrap() {
        streams.push(block.stream);
        decode_block::<TraceError>(&mut Records::default(), block.stream, block.payload, |record| {
            match record {
                Record::Lost { bytes } => lost += bytes,
                Record::End { .. } => is_ended = true,
                _ => {}
            }
            Ok(())
        })
        .unwrap();
    }
    (streams, lost, is_ended)
}

#[test]
fn a_trace_ends_with_its_mark_and_what_was_lost() {
    let _turn = TURNS.lock();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ended.trace");
    three_blocks(&path);
    assert_eq!(ends_of(&path), (vec![1, 2, 3], 0, false));
    let mut writer = TraceWriter::create(&path, TraceHeader::now(false)).unwrap();
    writer.append(1, b"\x10\0\0\0\0").unwrap();
    writer.finish(12_345).unwrap();
    assert_eq!(ends_of(&path), (vec![1, 0], 12_345, true));
}

/// The largest file that this process may write is bounded: what a full disk does, without one.
#[test]
fn on_a_full_disk_the_last_block_gives_way_to_the_end_mark() {
    let _turn = TURNS.lock();
    let directory = tempfile::tempdir().unwrap();
    for room in 0..140 {
        let path = directory.path().join(format!("{room}.trace"));
        let script = "trap '' XFSZ; ulimit -f 10; exec \"$0\" --exact write_until_full --ignored";
        let begun = std::process::Command::new("bash")
            .args(["-c", script])
            .arg(std::env::current_exe().unwrap())
            .env("TRACE", &path)
            .env("ROOM", room.to_string())
            .output()
            .unwrap();
        assert!(begun.status.success(), "{}", String::from_utf8_lossy(&begun.stderr));
        let (streams, lost, is_ended) = ends_of(&path);
        assert!(is_ended, "room {room}");
        let kept = streams.iter().filter(|stream| **stream == 2).count();
        assert_eq!(read(&path).1, [0, 0, 0]);
        assert_eq!(kept as u64 * BLOCK + lost, 100 * BLOCK, "room {room}: {streams:?}");
        assert!(kept > 5, "room {room}");
    }
}

/// Bytes of a payload in the test of a full disk.
const BLOCK: u64 = 100;

/// The part of the test above that the system bounds.
#[test]
#[ignore = "it is run by the test of a full disk"]
fn write_until_full() {
    let path = std::env::var_os("TRACE").unwrap();
    let room: usize = std::env::var("ROOM").unwrap().parse().unwrap();
    let mut writer = TraceWriter::create(Path::new(&path), TraceHeader::now(false)).unwrap();
    // The first block decides how much room is left at the end.
    let mut encoder = StreamEncoder::default();
    encoder.template(1, &vec![b'x'; 6 + room]);
    let first = encoder.take_block();
    writer.append(1, &first).unwrap();
    let mut lost = 0;
    for _ in 0..100 {
        encoder.template(1, &[b'x'; BLOCK as usize - 6]);
        if writer.append(2, &encoder.take_block()).is_err() {
            lost += BLOCK;
        }
    }
    assert!(lost > 0);
    writer.finish(lost).unwrap();
}

#[test]
fn an_exchange_beyond_its_bound_is_counted_and_not_kept() {
    let statement =
        Statement { template: 1, steps: Steps::EXECUTE, rows: 2, parameters: 256, ..Statement::default() };
    let exchange = Exchange {
        bytes_sent: 77,
        starts_trip: true,
        statements: vec![statement; 1000],
        parameters: vec![5; 256_000],
        ..Exchange::default()
    };
    let mut stream = StreamEncoder::default();
    stream.exchange(&exchange);
    let block = stream.take_block();
    assert!(block.len() < 200, "{} bytes", block.len());
    let cut = Cut { statements: 1000, rows: 2000, values: 256_000, ..Cut::default() };
    let kept = Exchange { statements: Vec::new(), parameters: Vec::new(), cut, ..exchange.clone() };
    assert_eq!(decode(&block), [kept]);
    let mut analyzer = Analyzer::new();
    analyzer.block(1, &block).unwrap();
    let summary = analyzer.finish(&Mutes::default()).summary;
    assert_eq!((summary.trips.total, summary.statements, summary.rows), (1, 1000, 2000));
    assert_eq!(summary.gaps.cut_exchanges, 1);
    let fits = Exchange { statements: vec![statement; 500], parameters: vec![5; 128_000], ..exchange };
    let mut stream = StreamEncoder::default();
    stream.exchange(&fits);
    assert!(stream.len() < EXCHANGE_BYTES_MAX && stream.len() > EXCHANGE_BYTES_MAX - 30_000);
    assert_eq!(decode(&stream.take_block()), [fits]);
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
    let mut writer = match TraceWriter::create(Path::new("/dev/full"), TraceHeader::now(false)) {
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
