//! Random streams of well-formed records: the analyzer never panics, and its totals are the records' own.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use onetrip_ledger::{
    Analyzer, Exchange, Moment, Mutes, Outcome, Statement, Steps, StreamEncoder, TransactionStatus, UnitKind,
};

const TEXTS: [&str; 16] = [
    "SELECT pay FROM emp WHERE id = $1",
    "SELECT id FROM emp",
    "INSERT INTO t VALUES ($1)",
    "UPDATE t SET a = $1 WHERE id = $2",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT s",
    "ROLLBACK TO SAVEPOINT s",
    "FETCH FORWARD 10 FROM c",
    "CREATE TABLE t (a int)",
    "SET search_path = x",
    "COPY t FROM STDIN",
    "SELECT 1",
    "DISCARD ALL",
    "",
];

#[derive(Debug, Arbitrary)]
struct Run {
    template: u8,
    steps: u8,
    rows: u16,
    row_limit: u8,
    suspended: bool,
    ending: u8,
    parameters: Vec<u8>,
    key_columns: u8,
    results: Vec<u8>,
    digest: u8,
}

#[derive(Debug, Arbitrary)]
enum Event {
    Exchange { stream: u8, kind: u8, flags: u8, wait: u16, took: u16, scope: u8, runs: Vec<Run> },
    Opened { stream: u8, name: u8 },
    Path { stream: u8, rtt: u16 },
    Name { stream: u8, name: Vec<u8> },
    Closed { stream: u8 },
}

fn outcome(ending: u8) -> Outcome {
    match ending % 8 {
        0 => Outcome::Failed(*b"23505"),
        1 => Outcome::Skipped,
        _ => Outcome::Done,
    }
}

fn exchange(kind: u8, flags: u8, scope: u8, runs: &[Run]) -> Exchange {
    let kinds = [
        UnitKind::Query,
        UnitKind::Group,
        UnitKind::FlushedGroup,
        UnitKind::FunctionCall,
        UnitKind::CopyIn,
        UnitKind::Connect,
    ];
    let statuses = [TransactionStatus::Idle, TransactionStatus::Active, TransactionStatus::Failed];
    let mut exchange = Exchange {
        kind: kinds[usize::from(kind) % kinds.len()],
        starts_trip: flags & 1 != 0,
        may_share: flags & 3 == 3,
        status: statuses[usize::from(flags >> 2) % 3],
        outcome: outcome(flags >> 4),
        scope: u32::from(scope % 4),
        request: u64::from(scope / 4 % 4),
        bytes_sent: 10,
        bytes_received: 20,
        ..Exchange::default()
    };
    for run in runs {
        let width = usize::from(run.key_columns % 4);
        let kept = if width == 0 { 0 } else { run.results.len() / width * width };
        exchange.statements.push(Statement {
            template: u32::from(run.template) % 18,
            steps: Steps(run.steps & 31),
            rows: run.rows.into(),
            row_limit: run.row_limit.into(),
            suspended: run.suspended,
            outcome: outcome(run.ending),
            parameters: run.parameters.len() as u16,
            columns: u32::from(width > 0) * u32::from(1 + run.digest % 2),
            key_columns: width as u16,
            results: kept as u32,
            result_digest: run.digest.into(),
        });
        exchange.parameters.extend(run.parameters.iter().map(|value| u64::from(*value)));
        exchange.results.extend(run.results[..kept].iter().map(|value| u32::from(*value)));
    }
    exchange
}

fuzz_target!(|events: Vec<Event>| {
    let mut analyzer = Analyzer::new();
    let mut defined = [false; 4];
    let (mut now, mut units, mut trips, mut closed) = (0, 0, 0, 0);
    for event in &events {
        let (Event::Exchange { stream, .. }
        | Event::Opened { stream, .. }
        | Event::Path { stream, .. }
        | Event::Name { stream, .. }
        | Event::Closed { stream }) = event;
        let number = usize::from(stream % 4);
        let mut out = StreamEncoder::default();
        if !std::mem::replace(&mut defined[number], true) {
            for (id, text) in (1..).zip(TEXTS) {
                out.template(id, text.as_bytes());
            }
            out.scope(1, b"checkout");
            out.scope(2, b"login");
            out.columns(1, [&b"id"[..]]);
            out.columns(2, [&b"a"[..], b"b", b"c"]);
        }
        match event {
            Event::Exchange { kind, flags, wait, took, scope, runs, .. } => {
                let mut exchange = exchange(*kind, *flags, *scope, &runs[..runs.len().min(200)]);
                now += u64::from(*wait) * 1000;
                exchange.sent_at = Moment(now);
                now += u64::from(*took) * 1000;
                exchange.first_reply_at = Moment(now);
                exchange.last_reply_at = Moment(now);
                units += 1;
                trips += u64::from(exchange.starts_trip);
                out.exchange(&exchange);
            }
            Event::Opened { name, .. } => {
                let names = ["psycopg2", "HikariCP", "", "PostgreSQL JDBC Driver"];
                let name = names[usize::from(*name) % names.len()];
                out.opened(
                    Moment(now),
                    [(&b"user"[..], &b"ann"[..]), (b"application_name", name.as_bytes())],
                );
            }
            Event::Path { rtt, .. } => out.path(Moment(now), (*rtt).into(), (*rtt / 2).into()),
            Event::Name { name, .. } => out.statement_name(name),
            Event::Closed { .. } => {
                out.closed(Moment(now), 1, 0, 0);
                closed += 1;
                defined[number] = false;
            }
        }
        analyzer.block(number as u32 + 1, &out.take_block()).expect("well-formed records");
    }
    let summary = analyzer.finish(&Mutes::default()).summary;
    assert_eq!(summary.units, units);
    assert_eq!(summary.trips.total, trips);
    assert_eq!(summary.unasked_replies, closed);
});
