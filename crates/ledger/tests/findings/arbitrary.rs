//! What holds for any traffic: no panic, and no trip is avoidable twice.

use onetrip_ledger::{
    Analyzer, Exchange, Moment, Mutes, Outcome, Statement, Steps, StreamEncoder, Summary, TransactionStatus,
    UnitKind,
};
use proptest::prelude::*;

const TEXTS: [&str; 24] = [
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
];
const KINDS: [UnitKind; 4] =
    [UnitKind::Query, UnitKind::Group, UnitKind::FlushedGroup, UnitKind::FunctionCall];
const STATUSES: [TransactionStatus; 3] =
    [TransactionStatus::Idle, TransactionStatus::Active, TransactionStatus::Failed];
const STREAMS: usize = 3;

/// One statement: template, steps, values, rows, row limit, and whether it fails.
type Part = (usize, u8, Vec<u64>, u64, u32, bool);
/// One exchange: stream, kind, statements, think time, status, request, and how it takes its trip.
type Unit = (usize, usize, Vec<Part>, u64, usize, u64, u8);

fn part() -> impl Strategy<Value = Part> {
    let steps = prop_oneof![8 => Just(8), 2 => Just(12), 1 => Just(1), 1 => Just(3), 1 => Just(15)];
    let values = proptest::collection::vec(0..12_u64, 0..3);
    let limit = prop_oneof![6 => Just(0), 1 => Just(2), 1 => Just(600)];
    (0..TEXTS.len(), steps, values, 0..4_u64, limit, prop::bool::weighted(0.03))
}

fn unit() -> impl Strategy<Value = Unit> {
    let parts =
        prop_oneof![9 => proptest::collection::vec(part(), 1), 1 => proptest::collection::vec(part(), 0..4)];
    let think = prop_oneof![8 => Just(50_000), 1 => Just(9_000_000), 1 => Just(2_000_000_000)];
    (0..STREAMS, 0..KINDS.len(), parts, think, 0..STATUSES.len(), 0..2_u64, 0..12_u8)
}

/// The same few units again and again, as programs send them, between units that never come again.
fn units() -> impl Strategy<Value = Vec<Unit>> {
    let run = (proptest::collection::vec(unit(), 1..5), 1..25_usize)
        .prop_map(|(body, times)| body.iter().cycle().take(body.len() * times).cloned().collect::<Vec<_>>());
    proptest::collection::vec(run, 1..12).prop_map(|runs| runs.concat())
}

fn exchange(unit: &Unit, number: usize, sent_at: u64) -> Exchange {
    let (_, kind, parts, _, status, request, share) = unit;
    let mut exchange = Exchange {
        kind: KINDS[*kind],
        sent_at: Moment(sent_at),
        first_reply_at: Moment(sent_at + 20_000),
        last_reply_at: Moment(sent_at + 100_000),
        starts_trip: *share > 0,
        may_share: *share == 1,
        status: STATUSES[*status],
        request: *request,
        ..Exchange::default()
    };
    for (template, steps, values, rows, row_limit, fails) in parts {
        let outcome = if *fails { Outcome::Failed(*b"23505") } else { Outcome::Done };
        exchange.outcome = if *fails { outcome } else { exchange.outcome };
        // Some values go up with each unit, as those of loops do.
        let parameters = values.iter().map(|value| if *value < 6 { *value } else { number as u64 + *value });
        exchange.parameters.extend(parameters);
        exchange.results.extend((0..*rows as u32 * 2).map(|cell| number as u32 + 7 + cell));
        exchange.statements.push(Statement {
            template: *template as u32 + 1,
            steps: Steps(*steps),
            rows: *rows,
            row_limit: *row_limit,
            suspended: *row_limit > 0 && *rows >= 2,
            outcome,
            parameters: values.len() as u16,
            columns: 1,
            key_columns: 2,
            results: *rows as u32 * 2,
            result_digest: *rows,
        });
    }
    exchange
}

fn summary(units: &[Unit]) -> Summary {
    let mut streams: Vec<StreamEncoder> = Vec::new();
    streams.resize_with(STREAMS, StreamEncoder::default);
    for stream in &mut streams {
        stream.opened(Moment(0), [(&b"user"[..], &b"ann"[..])]);
        stream.columns(1, [&b"id"[..], &b"flag"[..]]);
        for (id, text) in (1..).zip(TEXTS) {
            stream.template(id, text.as_bytes());
        }
    }
    let mut now = [0_u64; STREAMS];
    for (number, unit) in units.iter().enumerate() {
        let (stream, _, _, think, ..) = unit;
        now[*stream] += think;
        streams[*stream].exchange(&exchange(unit, number, now[*stream]));
        now[*stream] += 100_000;
    }
    let mut analyzer = Analyzer::new();
    for (number, stream) in (1..).zip(&mut streams) {
        stream.closed(Moment(now[number as usize - 1]), 0, 0, 0);
        analyzer.block(number, &stream.take_block()).unwrap();
    }
    analyzer.finish(&Mutes::default()).summary
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    #[test]
    fn no_traffic_has_more_avoidable_trips_than_trips(units in units()) {
        let summary = summary(&units);
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
