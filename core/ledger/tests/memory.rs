//! The analyzer's memory does not grow with the number of exchanges, and is small for each connection.

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
            now += 500_000;
            let bytes = if step == 0 { 40_000 } else { 100 };
            stream.exchange(&read(now, (template, rows), parameters, results, bytes));
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

/// One statement and so many rows in a trip of its own.
fn read(
    now: u64,
    (template, rows): (u32, u32),
    parameters: Vec<u64>,
    results: Vec<u32>,
    bytes_received: u64,
) -> Exchange {
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
    Exchange {
        kind: UnitKind::Group,
        sent_at: Moment(now),
        first_reply_at: Moment(now + 100_000),
        last_reply_at: Moment(now + 110_000),
        bytes_received,
        starts_trip: true,
        status: TransactionStatus::Idle,
        statements: vec![statement],
        parameters,
        results,
        ..Exchange::default()
    }
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

/// Bytes for each of many open connections, after so many reads of eight statements on each.
fn bytes_for_each(reads: u32) -> isize {
    const OPEN: u32 = 2_000;
    let mut analyzer = Analyzer::new();
    let mut half = 0;
    for number in 1..=OPEN {
        let mut stream = StreamEncoder::default();
        let mut now = u64::from(number) * 1_000;
        stream.opened(Moment(now), [(&b"user"[..], &b"ann"[..]), (&b"database"[..], &b"shop"[..])]);
        let names = ["id", "customer_id", "state", "amount", "title", "changed_at"];
        stream.columns(1, names[..2].iter().map(|name| name.as_bytes()));
        stream.columns(2, names.iter().map(|name| name.as_bytes()));
        for template in 1..=8 {
            stream.template(template, format!("SELECT * FROM t{template} WHERE id = $1").as_bytes());
        }
        for step in 0..reads {
            now += 500_000;
            let value = number * 1_000 + step;
            stream.exchange(&read(now, (1 + step % 8, 1), vec![value.into()], vec![value, 1], 100));
        }
        analyzer.block(number, &stream.take_block()).unwrap();
        drop(stream);
        if number == OPEN / 2 {
            half = LIVE.get();
        }
    }
    // What all have in common was there by then.
    (LIVE.get() - half) / (OPEN / 2) as isize
}

#[test]
fn an_open_connection_takes_few_bytes() {
    let found = [0, 1, 8, 24].map(bytes_for_each);
    let most = [2_500, 3_750, 7_050, 11_800];
    assert!(found.iter().zip(&most).all(|(found, most)| found <= most), "{found:?}, {most:?} at most");
}
