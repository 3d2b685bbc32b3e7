//! Patterns in made-up traffic: what must be found, with its exact count, and what must not.

use onetrip_ledger::{
    Analyzer, Code, Evidence, Exchange, Finding, Moment, Mutes, Statement, Steps, StreamEncoder, Summary,
    TransactionStatus, UnitKind,
};

const MILLISECOND: u64 = 1_000_000;

/// One connection's traffic, written as its program would think of it.
struct Traffic {
    stream: StreamEncoder,
    templates: Vec<String>,
    now: u64,
    think: u64,
    status: TransactionStatus,
    shares: bool,
}

impl Traffic {
    fn new() -> Self {
        let mut stream = StreamEncoder::default();
        stream.opened(Moment(0), [(&b"user"[..], &b"ann"[..])]);
        stream.columns(1, [&b"id"[..], &b"flag"[..]]);
        let status = TransactionStatus::Idle;
        Self { stream, templates: Vec::new(), now: 0, think: MILLISECOND / 10, status, shares: false }
    }

    fn template(&mut self, text: &str) -> u32 {
        let known = self.templates.iter().position(|known| known == text);
        let position = known.unwrap_or_else(|| {
            self.templates.push(text.into());
            self.stream.template(self.templates.len() as u32, text.as_bytes());
            self.templates.len() - 1
        });
        position as u32 + 1
    }

    fn exchange(&mut self, statement: Statement, parameters: &[u64], results: &[u32]) {
        self.now += self.think;
        let exchange = Exchange {
            kind: UnitKind::Query,
            sent_at: Moment(self.now),
            first_reply_at: Moment(self.now + MILLISECOND / 2),
            last_reply_at: Moment(self.now + MILLISECOND),
            starts_trip: !self.shares,
            status: self.status,
            statements: vec![statement],
            parameters: parameters.to_vec(),
            results: results.to_vec(),
            ..Exchange::default()
        };
        self.now += MILLISECOND;
        self.stream.exchange(&exchange);
    }

    /// A query whose rows have an id and a flag that is always the same.
    fn list(&mut self, text: &str, ids: &[u64]) {
        let template = self.template(text);
        let results: Vec<u32> = ids.iter().flat_map(|id| [*id as u32, 1]).collect();
        let statement = Statement {
            template,
            steps: Steps::EXECUTE,
            rows: ids.len() as u64,
            columns: 1,
            key_columns: 2,
            results: results.len() as u32,
            result_digest: 2,
            ..Statement::default()
        };
        self.exchange(statement, &[], &results);
    }

    fn run(&mut self, text: &str, parameters: &[u64]) {
        let statement = Statement {
            template: self.template(text),
            steps: Steps::EXECUTE,
            rows: 1,
            parameters: parameters.len() as u16,
            result_digest: 2,
            ..Statement::default()
        };
        self.exchange(statement, parameters, &[]);
    }

    fn begin(&mut self) {
        self.status = TransactionStatus::Active;
        self.run("BEGIN", &[]);
    }

    fn commit(&mut self) {
        self.status = TransactionStatus::Idle;
        self.run("COMMIT", &[]);
    }

    fn summary(mut self) -> Summary {
        self.stream.closed(Moment(self.now), 0, 0, 0);
        let mut analyzer = Analyzer::new();
        analyzer.block(1, &self.stream.take_block()).unwrap();
        analyzer.finish(&Mutes::default()).summary
    }

    fn findings(self) -> Vec<Finding> {
        self.summary().findings
    }
}

fn found(findings: &[Finding]) -> Vec<(Code, u64)> {
    findings.iter().map(|finding| (finding.code, finding.avoidable)).collect()
}

const CHILD: &str = "SELECT * FROM books WHERE author_id = $1";

#[test]
fn a_loop_over_an_earlier_result_is_proven_with_its_rows() {
    let mut traffic = Traffic::new();
    let ids: Vec<u64> = (0..10).map(|n| 700 + 13 * n).collect();
    traffic.list("SELECT id, flag FROM authors", &ids);
    for id in &ids {
        traffic.run(CHILD, &[*id]);
    }
    let findings = traffic.findings();
    assert_eq!(found(&findings), [(Code::Loop, 9)]);
    assert_eq!(findings[0].evidence, Evidence::Walk { sources: vec![(1, "id".into())], rows: (1, 10) });
    assert_eq!(findings[0].statements[1], "SELECT id, flag FROM authors");
}

#[test]
fn a_loop_that_skips_rows_is_still_a_loop() {
    let mut traffic = Traffic::new();
    let ids: Vec<u64> = (0..30).map(|n| 700 + 13 * n).collect();
    traffic.list("SELECT id, flag FROM authors", &ids);
    for id in ids.iter().step_by(3) {
        traffic.run(CHILD, &[*id]);
    }
    assert_eq!(found(&traffic.findings()), [(Code::Loop, 9)]);
}

#[test]
fn an_unvarying_parameter_beside_the_key_does_not_hide_a_loop() {
    let mut traffic = Traffic::new();
    traffic.list("SELECT id, flag FROM authors", &[7, 9, 12, 15]);
    for id in [7, 9, 12, 15] {
        traffic.run("SELECT * FROM books WHERE author_id = $1 AND shop = $2", &[id, 4711]);
    }
    assert_eq!(found(&traffic.findings()), [(Code::Loop, 3)]);
}

#[test]
fn all_parameters_that_vary_must_come_from_the_same_row() {
    let mut traffic = Traffic::new();
    traffic.list("SELECT id, flag FROM authors", &[7, 9, 12, 15]);
    for (id, other) in [(7, 12), (9, 15), (12, 7), (15, 9)] {
        traffic.run("SELECT * FROM books WHERE author_id = $1 AND editor_id = $2", &[id, other]);
    }
    assert_eq!(found(&traffic.findings()), []);
}

#[test]
fn ids_in_no_order_are_no_proof() {
    let mut traffic = Traffic::new();
    let ids: Vec<u64> = (0..100).collect();
    traffic.list("SELECT id, flag FROM authors", &ids);
    let mut id = 17;
    for _ in 0..60 {
        id = (id * 31 + 7) % 100;
        traffic.run(CHILD, &[id + 1]);
    }
    // No loop over the list; but many values, one query each.
    assert_eq!(found(&traffic.findings()), [(Code::OnePerValue, 19)]);
}

#[test]
fn two_rows_are_no_proof() {
    let mut traffic = Traffic::new();
    traffic.list("SELECT id, flag FROM authors", &[7, 9]);
    traffic.run(CHILD, &[7]);
    traffic.run(CHILD, &[9]);
    assert_eq!(found(&traffic.findings()), []);
}

#[test]
fn runs_that_shared_a_trip_are_no_loop() {
    let mut traffic = Traffic::new();
    traffic.list("SELECT id, flag FROM authors", &[7, 9, 12, 15]);
    traffic.shares = true;
    for id in [7, 9, 12, 15] {
        traffic.run(CHILD, &[id]);
    }
    assert_eq!(found(&traffic.findings()), []);
}

#[test]
fn nested_loops_are_two_findings() {
    let mut traffic = Traffic::new();
    let authors: Vec<u64> = (0..5).map(|n| 100 + 7 * n).collect();
    traffic.list("SELECT id, flag FROM authors", &authors);
    for author in &authors {
        let books: Vec<u64> = (0..4).map(|n| author * 1000 + 3 * n).collect();
        let template = traffic.template(CHILD);
        let results: Vec<u32> = books.iter().flat_map(|id| [*id as u32, 1]).collect();
        let statement = Statement {
            template,
            steps: Steps::EXECUTE,
            rows: 4,
            parameters: 1,
            columns: 1,
            key_columns: 2,
            results: 8,
            ..Statement::default()
        };
        traffic.exchange(statement, &[*author], &results);
        for book in books {
            traffic.run("SELECT * FROM reviews WHERE book_id = $1", &[book]);
        }
    }
    let mut codes = found(&traffic.findings());
    codes.sort();
    assert_eq!(codes, [(Code::Loop, 4), (Code::Loop, 15)]);
}

#[test]
fn rows_written_one_by_one_in_one_transaction() {
    let mut traffic = Traffic::new();
    traffic.begin();
    for n in 0..20 {
        traffic.run("INSERT INTO log VALUES ($1)", &[1000 + n]);
    }
    traffic.commit();
    assert_eq!(found(&traffic.findings()), [(Code::RowByRow, 19)]);
}

#[test]
fn rows_that_commit_one_by_one_count_their_begin_and_commit_once() {
    let mut traffic = Traffic::new();
    for n in 0..20 {
        traffic.begin();
        traffic.run("INSERT INTO log VALUES ($1)", &[1000 + n]);
        traffic.commit();
    }
    assert_eq!(found(&traffic.findings()), [(Code::CommitPerRow, 57)]);
}

#[test]
fn four_rows_are_not_worth_a_batch() {
    let mut traffic = Traffic::new();
    for n in 0..4 {
        traffic.run("INSERT INTO log VALUES ($1)", &[1000 + n]);
    }
    assert_eq!(found(&traffic.findings()), []);
}

#[test]
fn the_same_row_again_is_a_retry() {
    let mut traffic = Traffic::new();
    for _ in 0..20 {
        traffic.run("UPDATE jobs SET taken = $1", &[5]);
    }
    assert_eq!(found(&traffic.findings()), []);
}

#[test]
fn requests_that_write_with_one_statement_are_no_loop() {
    let mut traffic = Traffic::new();
    traffic.think = 10 * MILLISECOND;
    for n in 0..50 {
        traffic.run("INSERT INTO log VALUES ($1)", &[1000 + n]);
    }
    assert_eq!(found(&traffic.findings()), []);
}

#[test]
fn one_question_asked_again_is_counted_until_something_is_written() {
    let mut traffic = Traffic::new();
    traffic.begin();
    for _ in 0..4 {
        traffic.run("SELECT * FROM settings WHERE id = $1", &[5]);
    }
    traffic.run("UPDATE settings SET v = $1", &[6]);
    for _ in 0..2 {
        traffic.run("SELECT * FROM settings WHERE id = $1", &[5]);
    }
    traffic.commit();
    assert_eq!(found(&traffic.findings()), [(Code::Repeated, 3)]);
}

#[test]
fn pings_and_polls_are_not_repeats() {
    let mut traffic = Traffic::new();
    for _ in 0..10 {
        traffic.run("SELECT 1", &[]);
    }
    traffic.think = 50 * MILLISECOND;
    for _ in 0..10 {
        traffic.run("SELECT state FROM jobs WHERE id = $1", &[5]);
    }
    assert_eq!(found(&traffic.findings()), [(Code::SessionChatter, 10)]);
}

#[test]
fn a_transaction_of_one_statement_spends_two_trips_for_nothing() {
    let mut traffic = Traffic::new();
    for n in 0..10 {
        traffic.begin();
        traffic.run("SELECT * FROM books WHERE id = $1", &[100 - n]);
        traffic.commit();
    }
    let findings = traffic.findings();
    assert_eq!(found(&findings), [(Code::TransactionAlone, 20)]);
    assert_eq!(findings[0].evidence, Evidence::Alone { begins: 10, commits: 10, transactions: 10 });
}

#[test]
fn muted_findings_are_gone_and_others_stay() {
    let mut traffic = Traffic::new();
    traffic.begin();
    for n in 0..20 {
        traffic.run("INSERT INTO log VALUES ($1)", &[1000 + n]);
    }
    for n in 0..20 {
        traffic.run("INSERT INTO audit VALUES ($1)", &[2000 + n]);
    }
    traffic.commit();
    traffic.stream.closed(Moment(traffic.now), 0, 0, 0);
    let block = traffic.stream.take_block();
    let with = |rules: &str| {
        let mut analyzer = Analyzer::new();
        analyzer.block(1, &block).unwrap();
        analyzer.finish(&Mutes::parse(rules).unwrap()).summary.findings.len()
    };
    assert_eq!(with(""), 2);
    assert_eq!(with("[[mute]]\nstatement = \"into AUDIT\"\nwhy = \"small\""), 1);
    assert_eq!(with("[[mute]]\ncode = \"ot002\""), 0);
    assert!(Mutes::parse("[[mute]]\nwhy = \"all\"").is_err());
    assert!(Mutes::parse("[[mute]]\ncode = \"OT999\"").is_err());
    assert!(Mutes::parse("[[mute]]\ncolour = \"red\"").is_err());
}

#[test]
fn a_row_that_is_read_and_then_written_by_the_same_key_is_a_pair() {
    let read_then_write = |key_of_write: u64| {
        let mut traffic = Traffic::new();
        traffic.begin();
        for id in 0..5 {
            traffic.run("SELECT balance FROM accounts WHERE id = $1", &[900 + id]);
            traffic.run("UPDATE accounts SET balance = $1 WHERE id = $2", &[7, 900 + id + key_of_write]);
        }
        traffic.commit();
        let findings = traffic.findings();
        findings.iter().find(|finding| finding.code == Code::ReadBeforeWrite).map(|finding| finding.avoidable)
    };
    assert_eq!(read_then_write(0), Some(5));
    assert_eq!(read_then_write(1), None, "another row is written");
}

#[test]
fn no_trip_is_avoidable_twice() {
    let mut traffic = Traffic::new();
    let ids: Vec<u64> = (0..20).map(|n| 700 + 13 * n).collect();
    traffic.list("SELECT id, flag FROM accounts", &ids);
    for id in &ids {
        traffic.begin();
        traffic.run("SELECT balance FROM accounts WHERE id = $1", &[*id]);
        traffic.run("UPDATE accounts SET balance = $1 WHERE id = $2", &[7, *id]);
        traffic.commit();
    }
    let summary = traffic.summary();
    let avoidable: u64 = summary.findings.iter().map(|finding| finding.avoidable).sum();
    assert!(avoidable <= summary.trips.total, "{avoidable} of {}", summary.trips.total);
}
