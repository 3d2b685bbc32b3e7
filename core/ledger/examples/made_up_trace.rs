//! Writes a trace of made-up traffic, as many exchanges as are wanted, for measuring reports on large traces:
//!
//! ```text
//! cargo run --release -p onetrip-ledger --example made_up_trace -- 10000000 FILE
//! ```
//!
//! 64 connections at a time, 1,000 in all, do what programs do: loops over the rows of a list, pages of several reads,
//! transactions of writes, repeated questions, pings, and statements of 400 templates in no order.

use std::path::Path;
use std::process::ExitCode;

use onetrip_ledger::trace::TraceHeader;
use onetrip_ledger::{
    Exchange, Moment, Statement, Steps, StreamEncoder, TraceError, TraceWriter, TransactionStatus, UnitKind,
};

/// Connections open at once, and how often each is replaced by a new one.
const CONNECTIONS: u32 = 64;
const GENERATIONS: u64 = 16;
/// Templates that are run in no order.
const OTHERS: u64 = 400;
/// Scopes that work is booked on.
const SCOPES: u64 = 40;
/// A block is written when it holds as many bytes, as the gateway does.
const BLOCK_BYTES: usize = 32 * 1024;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (Some(Ok(exchanges)), Some(path)) = (arguments.next().map(|count| count.parse()), arguments.next())
    else {
        eprintln!("usage: made_up_trace EXCHANGES FILE");
        return ExitCode::from(2);
    };
    match write(exchanges, Path::new(&path)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("made_up_trace: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write(exchanges: u64, path: &Path) -> Result<(), TraceError> {
    let mut writer = TraceWriter::create(path, TraceHeader::now(false))?;
    let mut origin = StreamEncoder::default();
    origin.origin(b"made_up_trace", b"db.example:5432", 0, b"");
    writer.append(0, &origin.take_block())?;
    let per_life = exchanges.div_ceil(u64::from(CONNECTIONS) * GENERATIONS);
    let mut numbers = 1..;
    let mut sent = 0;
    let mut clients: Vec<Client> =
        numbers.by_ref().take(CONNECTIONS as usize).map(|number| Client::connect(number, 0)).collect();
    while sent < exchanges {
        for client in &mut clients {
            let before = client.sent;
            client.work();
            sent += client.sent - before;
            let is_over = client.sent >= per_life;
            if is_over {
                client.stream.closed(Moment(client.now), 0, 0, 0);
            }
            if is_over || client.stream.len() >= BLOCK_BYTES {
                writer.append(client.number, &client.stream.take_block())?;
            }
            if is_over {
                *client = Client::connect(numbers.next().unwrap_or_default(), client.now);
            }
        }
    }
    for client in &mut clients {
        writer.append(client.number, &client.stream.take_block())?;
    }
    Ok(())
}

/// One connection.
struct Client {
    number: u32,
    stream: StreamEncoder,
    templates: Vec<String>,
    now: u64,
    sent: u64,
    status: TransactionStatus,
    scope: u32,
    noise: u64,
}

impl Client {
    fn connect(number: u32, now: u64) -> Self {
        let mut stream = StreamEncoder::default();
        stream.opened(Moment(now), [(&b"user"[..], &b"shop"[..]), (b"database", b"shop")]);
        stream.path(Moment(now), 400, 350);
        stream.columns(1, [&b"id"[..], &b"owner_id"[..]]);
        for scope in 1..=SCOPES {
            stream.scope(scope as u32, format!("GET /page/{scope}").as_bytes());
        }
        Self {
            number,
            stream,
            templates: Vec::new(),
            now,
            sent: 0,
            status: TransactionStatus::Idle,
            scope: 0,
            noise: number.into(),
        }
    }

    /// Some piece of a program.
    fn work(&mut self) {
        self.scope = 1 + self.random(SCOPES) as u32;
        match self.random(16) {
            0 => self.walk(),
            1..=4 => self.page(),
            5 | 6 => self.transaction(),
            7 => self.repeat(),
            8 => (0..5).for_each(|_| self.run("SELECT 1", &[], 1)),
            _ => self.others(),
        }
    }

    /// A list and a loop over its rows.
    fn walk(&mut self) {
        let table = self.random(20);
        let ids: Vec<u64> = (0..20 + self.random(60)).map(|row| 1_000 + 17 * row).collect();
        self.list(&format!("SELECT id, owner_id FROM lists{table} ORDER BY id"), &ids);
        let child = format!("SELECT a, b, c FROM children{table} WHERE list_id = $1 AND state = $2");
        for id in ids {
            self.run(&child, &[id, 3], 2);
        }
    }

    fn page(&mut self) {
        let (page, id) = (self.random(30), 100 + self.random(5_000));
        for part in 0..4 {
            self.run(&format!("SELECT * FROM parts{page}_{part} WHERE page_id = $1"), &[id], 5);
        }
    }

    fn transaction(&mut self) {
        self.status = TransactionStatus::Active;
        self.run("BEGIN", &[], 0);
        for _ in 0..8 {
            let row = self.random(1 << 40);
            self.run("INSERT INTO log (at, message) VALUES ($1, $2)", &[row, row + 1], 1);
        }
        self.status = TransactionStatus::Idle;
        self.run("COMMIT", &[], 0);
    }

    fn repeat(&mut self) {
        let user = 1 + self.random(500);
        (0..4).for_each(|_| self.run("SELECT * FROM users WHERE id = $1", &[user], 1));
    }

    fn others(&mut self) {
        for _ in 0..10 {
            let (template, first, second) = (self.random(OTHERS), self.random(1 << 40), self.random(1 << 40));
            let text = format!("SELECT x FROM t{template} WHERE a = $1 AND b > $2 ORDER BY c LIMIT $3");
            self.run(&text, &[first, second, 10], 10);
        }
    }

    fn run(&mut self, text: &str, parameters: &[u64], rows: u64) {
        let statement = Statement {
            template: self.template(text),
            steps: Steps::BIND | Steps::EXECUTE,
            rows,
            parameters: parameters.len() as u16,
            result_digest: 2,
            ..Statement::default()
        };
        self.exchange(statement, parameters, &[]);
    }

    fn list(&mut self, text: &str, ids: &[u64]) {
        let results: Vec<u32> = ids.iter().flat_map(|id| [*id as u32, 1]).collect();
        let statement = Statement {
            template: self.template(text),
            steps: Steps::BIND | Steps::EXECUTE,
            rows: ids.len() as u64,
            columns: 1,
            key_columns: 2,
            results: results.len() as u32,
            ..Statement::default()
        };
        self.exchange(statement, &[], &results);
    }

    fn exchange(&mut self, statement: Statement, parameters: &[u64], results: &[u32]) {
        self.now += 20_000 + self.random(30_000);
        let took = 400_000 + self.random(300_000);
        self.stream.exchange(&Exchange {
            kind: UnitKind::Group,
            sent_at: Moment(self.now),
            first_reply_at: Moment(self.now + took),
            last_reply_at: Moment(self.now + took + 10_000),
            bytes_sent: 90,
            bytes_received: 60 + 30 * statement.rows,
            starts_trip: true,
            status: self.status,
            scope: self.scope,
            statements: vec![statement],
            parameters: parameters.to_vec(),
            results: results.to_vec(),
            ..Exchange::default()
        });
        self.now += took + 10_000;
        self.sent += 1;
    }

    fn template(&mut self, text: &str) -> u32 {
        let known = self.templates.iter().position(|known| known == text);
        let position = known.unwrap_or_else(|| {
            self.templates.push(text.to_owned());
            self.stream.template(self.templates.len() as u32, text.as_bytes());
            self.templates.len() - 1
        });
        position as u32 + 1
    }

    /// Between 0 and `below`, the same in each run.
    fn random(&mut self, below: u64) -> u64 {
        self.noise =
            self.noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.noise >> 24) % below
    }
}
