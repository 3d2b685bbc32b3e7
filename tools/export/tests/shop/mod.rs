//! Made-up traffic of a shop's program, for tests of what reads an export.

use std::path::Path;

use onetrip_ledger::trace::{TRACE_STREAM, TraceHeader};
use onetrip_ledger::{
    Exchange, Moment, Outcome, Remedy, Statement, Steps, StreamEncoder, TraceWriter, TransactionStatus,
    UnitKind,
};

/// 23:59:59 of 26 November 2026: a trace that begins then goes on for two days.
const STARTED_UNIX_NANOS: u64 = 1_795_737_599_000_000_000;
const MILLISECOND: u64 = 1_000_000;
const BOOKS: &str = "SELECT title FROM books WHERE author_id = $1";

/// Writes a trace of so many connections. The same seed makes the same trace.
pub(crate) fn write(path: &Path, seed: u64, connections: u32) {
    let header = TraceHeader { started_unix_nanos: STARTED_UNIX_NANOS, ..TraceHeader::now(false) };
    let mut writer = TraceWriter::create(path, header).unwrap();
    let mut origin = StreamEncoder::default();
    origin.origin(b"test", b"db.example:5432", 0, b"");
    writer.append(TRACE_STREAM, &origin.take_block()).unwrap();
    for number in 1..=connections {
        let mut client = Client::connect(number, seed);
        for _ in 0..12 {
            client.work();
        }
        client.stream.closed(Moment(client.now), 0, 0, 0);
        writer.append(number, &client.stream.take_block()).unwrap();
    }
    writer.finish(0).unwrap();
}

/// One connection.
struct Client {
    stream: StreamEncoder,
    templates: Vec<String>,
    now: u64,
    think: u64,
    status: TransactionStatus,
    request: u64,
    scope: u32,
    shares: bool,
    remedy: Option<Remedy>,
    /// Values of this connection are those of no other, because a list of one connection can prove a loop on another.
    base: u64,
    noise: u64,
}

impl Client {
    fn connect(number: u32, seed: u64) -> Self {
        let mut stream = StreamEncoder::default();
        stream.opened(Moment(0), [(&b"user"[..], &b"ann"[..])]);
        stream.columns(1, [&b"id"[..], &b"flag"[..]]);
        stream.scope(1, "GET /\"authors\", all".as_bytes());
        let mut client = Self {
            stream,
            templates: Vec::new(),
            now: u64::from(number) * 1_000,
            think: MILLISECOND / 10,
            status: TransactionStatus::Idle,
            request: 0,
            scope: 0,
            shares: false,
            remedy: None,
            base: u64::from(number) << 20,
            noise: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(number),
        };
        client.exchange(Exchange { kind: UnitKind::Connect, ..Exchange::default() });
        client
    }

    /// Some piece of a program.
    fn work(&mut self) {
        self.scope = self.random(2) as u32;
        self.request = if self.random(4) == 0 { 1 + self.random(1 << 40) } else { 0 };
        self.think = if self.random(6) == 0 { 9 * MILLISECOND } else { MILLISECOND / 10 };
        match self.random(20) {
            0..=4 => self.walk(),
            5 => self.in_transaction(Self::walk),
            6 => self.nested(),
            7 => self.pages(),
            8 => self.small_numbers(),
            9 => self.in_transaction(Self::writes),
            10 | 11 => self.writes(),
            12 => self.transaction_per_row(),
            13 => self.remembered(),
            14 => self.pool(),
            15 => self.pipeline(),
            16 => self.failure(),
            17 => self.unread(),
            18 => self.noise(),
            _ => self.now += self.random(1 << 46),
        }
        self.request = 0;
    }

    /// A list and a loop over some of its rows, now and then over all once more.
    fn walk(&mut self) {
        let ids = self.ids();
        self.list("SELECT id, flag FROM authors ORDER BY id", &[], &ids);
        for _ in 0..self.random(6) {
            self.noise();
        }
        let (step, again) = (1 + self.random(3) as usize, self.random(3));
        let child = match self.random(3) {
            0 => BOOKS,
            1 => "SELECT * FROM books WHERE author_id = $1 AND shop = $2",
            // Its name tells nothing.
            _ => "SELECT balance FROM accounts WHERE number = $1",
        };
        for _ in 0..=again {
            for id in ids.iter().step_by(step) {
                let values = if child.contains("$2") { vec![*id, 4711] } else { vec![*id] };
                self.run(child, &values);
                if self.random(8) == 0 {
                    self.noise();
                }
            }
        }
    }

    fn nested(&mut self) {
        let ids = self.ids();
        self.list("SELECT id, flag FROM authors", &[], &ids);
        for id in ids.iter().take(6) {
            let books: Vec<u64> = (0..self.random(6)).map(|book| id + 500_000 + 7 * book).collect();
            self.list(BOOKS, &[*id], &books);
            for book in books {
                self.run("SELECT * FROM reviews WHERE book_id = $1", &[book]);
            }
        }
    }

    /// Pages prove no loop.
    fn pages(&mut self) {
        let ids = self.ids();
        self.list("SELECT id, flag FROM authors WHERE id > $1 LIMIT $2", &[self.base, 20], &ids);
        for id in ids {
            self.run("SELECT title FROM books WHERE author_id > $1 LIMIT 5", &[id]);
        }
    }

    fn small_numbers(&mut self) {
        let ids: Vec<u64> = (1..30).map(|id| self.base + id).collect();
        self.list("SELECT id, flag FROM posts", &[], &ids);
        for _ in 0..5 {
            self.run("SELECT count(*) FROM audits", &[]);
        }
        for id in &ids[..6] {
            self.run("SELECT balance FROM accounts WHERE id = $1", &[*id]);
        }
    }

    /// Rows one by one, some of them twice, now and then with a long thought.
    fn writes(&mut self) {
        let text = match self.random(3) {
            0 => "INSERT INTO visits (author_id, books) VALUES ($1, $2)",
            1 => "UPDATE stock SET amount = $1 WHERE book_id = $2",
            _ => "DELETE FROM carts WHERE id = $1 AND shop = $2",
        };
        let slow = self.random(4);
        for row in 0..self.random(14) {
            let value = self.base + 700_000 + row / 2 * 2 + self.random(3);
            self.run(text, &[value, 7]);
            match self.random(10) {
                0 => self.run("SELECT count(*) FROM visits", &[]),
                1 if slow == 0 => self.now += 1_200 * MILLISECOND,
                2 | 3 if slow == 1 => self.now += 20 * MILLISECOND,
                _ => {}
            }
        }
    }

    fn transaction_per_row(&mut self) {
        for row in 0..4 + self.random(8) {
            self.in_transaction(|client| {
                client.run("INSERT INTO log (at, message) VALUES ($1, $2)", &[client.base + row, 9]);
                if client.random(6) == 0 {
                    client.run("UPDATE counters SET logged = $1", &[row]);
                }
            });
        }
    }

    fn in_transaction(&mut self, work: impl FnOnce(&mut Self)) {
        if self.status != TransactionStatus::Idle {
            return work(self);
        }
        self.status = TransactionStatus::Active;
        self.run("BEGIN", &[]);
        work(self);
        self.status = TransactionStatus::Idle;
        let end = if self.random(5) == 0 { "ROLLBACK" } else { "COMMIT" };
        self.run(end, &[]);
    }

    /// A loop of which a remedy answers the later part.
    fn remembered(&mut self) {
        let ids = self.ids();
        self.list("SELECT id, flag FROM authors", &[], &ids);
        for (row, id) in ids.iter().enumerate() {
            self.remedy = (row >= 4).then_some(Remedy::Loops);
            self.run(BOOKS, &[*id]);
        }
        self.remedy = None;
    }

    /// Writes, each on a connection that a pool resets afterwards.
    fn pool(&mut self) {
        let sets = self.random(3) == 0;
        for row in 0..8 {
            if sets {
                self.run("SET search_path TO shop", &[]);
            }
            self.run("INSERT INTO tags (name) VALUES ($1)", &[self.base + 800_000 + row]);
            self.run("DISCARD ALL", &[]);
        }
    }

    fn pipeline(&mut self) {
        let ids = self.ids();
        self.list("SELECT id, flag FROM authors", &[], &ids);
        for (row, id) in ids.iter().enumerate() {
            self.shares = row > 0;
            self.run(BOOKS, &[*id]);
        }
        self.shares = false;
    }

    /// Rows in the middle of which one fails.
    fn failure(&mut self) {
        for row in 0..9 {
            let text = "INSERT INTO tags (name) VALUES ($1)";
            let mut statement = self.statement(text, 1);
            if row == 6 {
                statement.outcome = Outcome::Failed(*b"23505");
            }
            let outcome = statement.outcome;
            let parameters = vec![self.base + 900_000 + row];
            self.exchange(Exchange {
                statements: vec![statement],
                parameters,
                outcome,
                ..Exchange::default()
            });
        }
    }

    /// A result in pieces, then a loop over all of it.
    fn unread(&mut self) {
        let ids = self.ids();
        for (piece, part) in ids.chunks(4).enumerate() {
            let mut statement = self.statement("SELECT id, flag FROM shelves", 0);
            statement.steps = if piece == 0 { Steps::BIND | Steps::EXECUTE } else { Steps::EXECUTE };
            statement.row_limit = 4;
            self.results(statement, &[], part);
        }
        for id in &ids {
            self.run("SELECT * FROM books WHERE shelf_id = $1", &[*id]);
        }
    }

    /// Something else: several statements in one trip, or one that is only prepared, or NULL, or nothing at all.
    fn noise(&mut self) {
        match self.random(5) {
            0 => self.run("SELECT 1", &[]),
            1 => {
                let mut statement = self.statement(BOOKS, 0);
                statement.steps = Steps::PREPARE | Steps::DESCRIBE;
                self.exchange(Exchange { statements: vec![statement], ..Exchange::default() });
            }
            2 => {
                let statements =
                    vec![self.statement("SELECT name FROM tags", 0), self.statement("SELECT a FROM b", 1)];
                self.exchange(Exchange { statements, parameters: vec![3], ..Exchange::default() });
            }
            3 => self.run("SELECT id FROM tags WHERE name = $1", &[0]),
            _ => self.exchange(Exchange::default()),
        }
    }

    fn ids(&mut self) -> Vec<u64> {
        let (count, step) = (2 + self.random(18), 1 + self.random(20));
        (0..count).map(|row| self.base + 1 + step * row).collect()
    }

    fn list(&mut self, text: &str, parameters: &[u64], ids: &[u64]) {
        let statement = self.statement(text, parameters.len());
        self.results(statement, parameters, ids);
    }

    fn results(&mut self, statement: Statement, parameters: &[u64], ids: &[u64]) {
        let results: Vec<u32> = ids.iter().flat_map(|id| [*id as u32, 1]).collect();
        let statement = Statement {
            rows: ids.len() as u64,
            columns: 1,
            key_columns: 2,
            results: results.len() as u32,
            ..statement
        };
        let parameters = parameters.to_vec();
        self.exchange(Exchange { statements: vec![statement], parameters, results, ..Exchange::default() });
    }

    fn run(&mut self, text: &str, parameters: &[u64]) {
        let statement = self.statement(text, parameters.len());
        let parameters = parameters.to_vec();
        self.exchange(Exchange { statements: vec![statement], parameters, ..Exchange::default() });
    }

    fn statement(&mut self, text: &str, parameters: usize) -> Statement {
        let known = self.templates.iter().position(|known| known == text);
        let position = known.unwrap_or_else(|| {
            self.templates.push(text.into());
            self.stream.template(self.templates.len() as u32, text.as_bytes());
            self.templates.len() - 1
        });
        Statement {
            template: position as u32 + 1,
            steps: Steps::BIND | Steps::EXECUTE,
            rows: 1,
            parameters: parameters as u16,
            ..Statement::default()
        }
    }

    fn exchange(&mut self, exchange: Exchange) {
        self.now += self.think;
        let took = MILLISECOND + self.random(MILLISECOND);
        let is_removed = self.remedy.is_some();
        self.stream.exchange(&Exchange {
            sent_at: Moment(self.now),
            first_reply_at: Moment(self.now + took / 2),
            last_reply_at: Moment(self.now + took),
            bytes_sent: 60,
            bytes_received: 200,
            starts_trip: !self.shares && !is_removed,
            may_share: !self.shares && !is_removed && self.noise % 40 == 0,
            remedy: self.remedy,
            status: self.status,
            request: self.request,
            scope: self.scope,
            ..exchange
        });
        self.now += took;
    }

    fn random(&mut self, below: u64) -> u64 {
        self.noise ^= self.noise << 13;
        self.noise ^= self.noise >> 7;
        self.noise ^= self.noise << 17;
        (self.noise >> 11) % below.max(1)
    }
}
