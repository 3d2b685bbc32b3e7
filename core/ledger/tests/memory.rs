//! The analyzer's memory does not grow with the number of exchanges.

use onetrip_heap::LIVE;
use onetrip_ledger::{
    Analyzer, Exchange, Moment, Mutes, Statement, Steps, StreamEncoder, TransactionStatus, UnitKind,
};

/// Connections open at once; each is closed and opened anew after so many rounds.
const CONNECTIONS: u32 = 16;
const ROUNDS_PER_LIFE: u64 = 10;
/// A third of them, and all, end in the middle of the connections' lives.
const ROUNDS: u64 = 1_575;
const TEMPLATES: u32 = 60;

/// One round of all connections: a list, its loop, some other reads, and writes; values never come again.
fn round(analyzer: &mut Analyzer, streams: &mut [(u32, StreamEncoder)], round: u64) -> u64 {
    let mut exchanges = 0;
    for (number, stream) in streams {
        let mut now = round * 1_000_000_000;
        if round % ROUNDS_PER_LIFE == 0 {
            open(stream, now);
        }
        let first = round * 100;
        for step in 0..30_u64 {
            let (template, parameters, rows) = match step {
                0 => (1, vec![], 10),
                1..=10 => (2, vec![first + 2 * (step - 1)], 0),
                11..=20 => (3 + (first + step) as u32 % (TEMPLATES - 3), vec![first + 50 + step], 0),
                _ => (TEMPLATES, vec![first + step, step], 0),
            };
            let results: Vec<u32> = (0..rows).flat_map(|row| [first as u32 + 2 * row, 1]).collect();
            let statement = Statement {
                template,
                steps: Steps::EXECUTE,
                rows: u64::from(rows),
                parameters: parameters.len() as u16,
                columns: 1,
                key_columns: 2,
                results: results.len() as u32,
                ..Statement::default()
            };
            now += 500_000;
            stream.exchange(&Exchange {
                kind: UnitKind::Group,
                sent_at: Moment(now),
                first_reply_at: Moment(now + 100_000),
                last_reply_at: Moment(now + 110_000),
                bytes_received: if step == 0 { 40_000 } else { 100 },
                starts_trip: true,
                status: TransactionStatus::Idle,
                statements: vec![statement],
                parameters,
                results,
                ..Exchange::default()
            });
            exchanges += 1;
        }
        if round % ROUNDS_PER_LIFE == ROUNDS_PER_LIFE - 1 {
            stream.closed(Moment(now), 0, 0, 0);
        }
        analyzer.block(*number, &stream.take_block()).unwrap();
        if round % ROUNDS_PER_LIFE == ROUNDS_PER_LIFE - 1 {
            *number += CONNECTIONS;
        }
    }
    exchanges
}

fn open(stream: &mut StreamEncoder, now: u64) {
    stream.opened(Moment(now), [(&b"user"[..], &b"ann"[..])]);
    stream.columns(1, [&b"id"[..], &b"flag"[..]]);
    stream.template(1, b"SELECT id, flag FROM authors");
    stream.template(2, b"SELECT * FROM books WHERE author_id = $1");
    for id in 3..TEMPLATES {
        stream.template(id, format!("SELECT * FROM t{id} WHERE id = $1").as_bytes());
    }
    stream.template(TEMPLATES, b"INSERT INTO log (at, message) VALUES ($1, $2)");
}

#[test]
fn three_times_as_many_exchanges_take_no_more_memory() {
    let mut analyzer = Analyzer::new();
    let mut streams: Vec<(u32, StreamEncoder)> =
        (1..=CONNECTIONS).map(|number| (number, StreamEncoder::default())).collect();
    let (mut early, mut exchanges) = (0, 0);
    for number in 0..ROUNDS {
        exchanges += round(&mut analyzer, &mut streams, number);
        if number == ROUNDS / 3 {
            early = LIVE.get();
        }
    }
    let late = LIVE.get();
    assert!(exchanges > 700_000, "{exchanges}");
    // By then all that is bounded is nearly full.
    assert!(late <= early + early / 4, "{early} bytes, then {late}");
    assert!(late <= 16 << 20, "{late} bytes");
    assert!(!analyzer.finish(&Mutes::default()).summary.findings.is_empty());
}
