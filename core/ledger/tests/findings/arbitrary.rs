//! What holds for any traffic: no panic, and no trip is avoidable twice.

use onetrip_ledger::{
    Analyzer, Exchange, Moment, Mutes, Outcome, Statement, Steps, StreamEncoder, Summary, TransactionStatus,
    UnitKind,
};
use proptest::prelude::*;

const TEXTS: [&str; 26] = [
    "BEGIN",
    "BEGIN ISOLATION LEVEL REPEATABLE READ",
    "COMMIT",
    "ROLLBACK",
    "SELECT id, flag FROM authors",
    "SELECT * FROM books WHERE author_id = $1",
    "SELECT * FROM books WHERE author_id = $1 AND shop = $2",
    "SELECT balance FROM accounts WHERE id = $1",
    "UPDATE accounts SET balance = $1 WHERE id = $2",
    "DELETE FROM accounts WHERE id = $1",
    "SELECT id FROM tags WHERE name = $1",
    "INSERT INTO tags (name) VALUES ($1)",
    "SELECT nextval('tags_id_seq')",
    "SELECT 1",
    "SET search_path TO shop",
    "SELECT current_schema()",
    "SELECT oid FROM pg_type WHERE typname = $1",
    "lo_open($1, $2)",
    "loread($1, $2)",
    "lo_close($1)",
    "DECLARE c CURSOR FOR SELECT * FROM books",
    "FETCH 10 FROM c",
    "CLOSE c",
    "CREATE TABLE t (a int)",
    "SELECT max(price) FROM books WHERE author_id = $1",
    "SELECT set_config($1, $2, false)",
];
/// Traffic that patterns are made of: templates, each with the values that it is given and the rows that it returns.
const PIECES: [&[(usize, &[u64], u64)]; 6] = [
    &[(5, &[8], 2), (24, &[8], 1), (7, &[8], 1)],
    &[(7, &[8], 1), (8, &[3, 8], 1)],
    &[(12, &[], 1), (11, &[7], 1)],
    &[(10, &[8], 0), (11, &[8], 1)],
    &[(0, &[], 0), (4, &[], 3), (7, &[8], 1), (3, &[], 0)],
    &[(17, &[9, 5], 1), (18, &[7, 4], 1), (18, &[7, 4], 1), (19, &[7], 1)],
];
const KINDS: [UnitKind; 4] =
    [UnitKind::Query, UnitKind::Group, UnitKind::FlushedGroup, UnitKind::FunctionCall];
const STATUSES: [TransactionStatus; 3] =
    [TransactionStatus::Idle, TransactionStatus::Active, TransactionStatus::Failed];
const STREAMS: usize = 3;
/// Units after which a connection is closed and a new one opened.
const LIVES: [usize; 4] = [2, 30, 500, usize::MAX];

#[derive(Debug, Clone)]
struct Unit {
    stream: usize,
    kind: usize,
    parts: Vec<Part>,
    think_ns: u64,
    status: usize,
    request: u64,
    starts_trip: bool,
    may_share: bool,
    /// How often this piece of traffic came before.
    round: u64,
}

/// One statement. Values from 6 on differ from round to round, and so do those that it returns, which begin at 7.
#[derive(Debug, Clone)]
struct Part {
    template: usize,
    steps: u8,
    values: Vec<u64>,
    rows: u64,
    row_limit: u32,
    fails: bool,
}

fn part() -> impl Strategy<Value = Part> {
    let steps = prop_oneof![8 => Just(8), 2 => Just(12), 1 => Just(1), 1 => Just(3), 1 => Just(15)];
    let values = proptest::collection::vec(0..12_u64, 0..3);
    let limit = prop_oneof![6 => Just(0), 1 => Just(2), 1 => Just(600)];
    (0..TEXTS.len(), steps, values, 0..4_u64, limit, prop::bool::weighted(0.03)).prop_map(
        |(template, steps, values, rows, row_limit, fails)| Part {
            template,
            steps,
            values,
            rows,
            row_limit,
            fails,
        },
    )
}

fn unit() -> impl Strategy<Value = Unit> {
    let parts =
        prop_oneof![9 => proptest::collection::vec(part(), 1), 1 => proptest::collection::vec(part(), 0..4)];
    let think = prop_oneof![8 => Just(50_000), 1 => Just(9_000_000), 1 => Just(2_000_000_000)];
    let trip = (prop::bool::weighted(0.9), prop::bool::weighted(0.1));
    (0..STREAMS, 0..KINDS.len(), parts, think, 0..STATUSES.len(), 0..2_u64, trip).prop_map(
        |(stream, kind, parts, think_ns, status, request, (starts_trip, may_share))| Unit {
            stream,
            kind,
            parts,
            think_ns,
            status,
            request,
            starts_trip,
            may_share,
            round: 0,
        },
    )
}

/// A piece of one stream, as a program would send it.
fn piece() -> impl Strategy<Value = Vec<Unit>> {
    (0..PIECES.len(), 0..STREAMS, any::<bool>()).prop_map(|(piece, stream, in_transaction)| {
        let unit = |(position, (template, values, rows)): (usize, &(usize, &[u64], u64))| {
            let (kind, steps) = if TEXTS[*template].starts_with("lo") { (3, 8) } else { (1, 12) };
            let goes_on = PIECES[piece][0].0 == 0 && position + 1 < PIECES[piece].len();
            let (template, values, rows, row_limit) = (*template, values.to_vec(), *rows, 0);
            Unit {
                stream,
                kind,
                parts: vec![Part { template, steps, values, rows, row_limit, fails: false }],
                think_ns: 50_000,
                status: usize::from(goes_on || in_transaction && PIECES[piece][0].0 != 0),
                request: 0,
                starts_trip: true,
                may_share: false,
                round: 0,
            }
        };
        PIECES[piece].iter().enumerate().map(unit).collect()
    })
}

/// The same few units again and again, as programs send them, with and without others among them.
fn units() -> impl Strategy<Value = Vec<Unit>> {
    let random = || proptest::collection::vec(unit(), 1..5);
    let mixed = (piece(), unit(), any::<prop::sample::Index>()).prop_map(|(mut piece, unit, place)| {
        piece.insert(place.index(piece.len()), unit);
        piece
    });
    let body = prop_oneof![3 => random(), 4 => piece(), 2 => mixed];
    let run = (body, 1..25_u64).prop_map(|(body, rounds)| {
        let of_round = |round| body.iter().cloned().map(move |unit| Unit { round, ..unit });
        (0..rounds).flat_map(of_round).collect::<Vec<_>>()
    });
    proptest::collection::vec(run, 1..10).prop_map(|runs| runs.concat())
}

fn exchange(unit: &Unit, sent_at: u64) -> Exchange {
    let mut exchange = Exchange {
        kind: KINDS[unit.kind],
        sent_at: Moment(sent_at),
        first_reply_at: Moment(sent_at + 20_000),
        last_reply_at: Moment(sent_at + 100_000),
        starts_trip: unit.starts_trip,
        may_share: unit.may_share,
        status: STATUSES[unit.status],
        request: unit.request,
        ..Exchange::default()
    };
    for part in &unit.parts {
        let outcome = if part.fails { Outcome::Failed(*b"23505") } else { Outcome::Done };
        exchange.outcome = if part.fails { outcome } else { exchange.outcome };
        let value = |value: &u64| if *value < 6 { *value } else { 100 * unit.round + *value };
        exchange.parameters.extend(part.values.iter().map(value));
        let width = if part.rows == 1 { 1 } else { 2 };
        let cells = part.rows as u32 * width;
        exchange.results.extend((0..cells).map(|cell| 100 * unit.round as u32 + 7 + cell));
        exchange.statements.push(Statement {
            template: part.template as u32 + 1,
            steps: Steps(part.steps),
            rows: part.rows,
            row_limit: part.row_limit,
            suspended: part.row_limit > 0 && part.rows >= 2,
            outcome,
            parameters: part.values.len() as u16,
            columns: width,
            key_columns: width as u16,
            results: cells,
            result_digest: part.rows,
        });
    }
    exchange
}

fn opened(at: u64) -> StreamEncoder {
    let mut stream = StreamEncoder::default();
    let connect = Exchange {
        kind: UnitKind::Connect,
        sent_at: Moment(at),
        first_reply_at: Moment(at),
        last_reply_at: Moment(at),
        starts_trip: true,
        ..Exchange::default()
    };
    stream.exchange(&connect);
    stream.opened(Moment(at), [(&b"user"[..], &b"ann"[..])]);
    stream.columns(1, [&b"id"[..]]);
    stream.columns(2, [&b"id"[..], &b"flag"[..]]);
    for (id, text) in (1..).zip(TEXTS) {
        stream.template(id, text.as_bytes());
    }
    stream
}

/// Counts the traffic; a connection lives for `life` units.
fn summary(units: &[Unit], life: usize) -> Summary {
    let mut analyzer = Analyzer::new();
    let mut streams: Vec<(u32, usize, StreamEncoder, u64)> =
        (0..STREAMS).map(|number| (number as u32, 0, opened(0), 0)).collect();
    for unit in units {
        let (number, units, stream, now) = &mut streams[unit.stream];
        *now += unit.think_ns;
        stream.exchange(&exchange(unit, *now));
        *now += 100_000;
        *units += 1;
        if *units >= life {
            stream.closed(Moment(*now), 0, 0, 0);
            analyzer.block(*number, &stream.take_block()).unwrap();
            (*number, *units, *stream) = (*number + STREAMS as u32, 0, opened(*now));
        }
    }
    for (number, _, mut stream, now) in streams {
        stream.closed(Moment(now), 0, 0, 0);
        analyzer.block(number, &stream.take_block()).unwrap();
    }
    analyzer.finish(&Mutes::default()).summary
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn no_traffic_has_more_avoidable_trips_than_trips(units in units(), life in 0..LIVES.len()) {
        let summary = summary(&units, LIVES[life]);
        let avoidable: u64 = summary.findings.iter().map(|finding| finding.avoidable).sum();
        prop_assert!(
            avoidable <= summary.trips.total,
            "{avoidable} of {}: {:#?}", summary.trips.total, summary.findings
        );
        for finding in &summary.findings {
            prop_assert!(finding.avoidable <= finding.trips, "{finding:#?}");
            prop_assert!(finding.wire_ns <= finding.waited_ns, "{finding:#?}");
        }
    }
}
