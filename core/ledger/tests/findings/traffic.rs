//! Made-up traffic, written as its program would think of it.

use onetrip_ledger::{
    Analyzer, Code, Exchange, Finding, Moment, Mutes, Outcome, Remedy, Statement, Steps, StreamEncoder,
    Summary, TransactionStatus, UnitKind,
};

pub(crate) const MILLISECOND: u64 = 1_000_000;

/// What a program takes for the proof of its password, where a test does not say it.
const PROOF_NS: u64 = 4 * MILLISECOND;

/// A query by the parent's key, as loops send it.
pub(crate) const CHILD: &str = "SELECT * FROM books WHERE author_id = $1";

/// One connection's traffic.
pub(crate) struct Traffic {
    stream: StreamEncoder,
    templates: Vec<String>,
    now: u64,
    status: TransactionStatus,
    /// Time between a reply and the next unit.
    pub(crate) think: u64,
    /// What comes next shares the trip under way.
    pub(crate) shares: bool,
    /// The request that what comes next belongs to; zero is none.
    pub(crate) request: u64,
    pub(crate) kind: UnitKind,
    /// What answers what comes next.
    pub(crate) remedy: Option<Remedy>,
    /// Time between a unit and its reply.
    pub(crate) reply_after: u64,
}

impl Traffic {
    pub(crate) fn new() -> Self {
        Self::logged_in(PROOF_NS)
    }

    /// Of a program that took so long for the proof of its password, in nanoseconds.
    pub(crate) fn logged_in(proof_ns: u64) -> Self {
        let mut traffic = Self::of_unseen_login();
        // The startup packet, the name of the method, the proof.
        for (bytes_sent, think_ns) in [(40, 0), (55, 0), (109, proof_ns)] {
            traffic.now += think_ns;
            traffic.stream.exchange(&Exchange {
                kind: UnitKind::Connect,
                sent_at: Moment(traffic.now),
                first_reply_at: Moment(traffic.now + MILLISECOND),
                last_reply_at: Moment(traffic.now + MILLISECOND),
                bytes_sent,
                starts_trip: true,
                ..Exchange::default()
            });
            traffic.now += MILLISECOND;
        }
        traffic
    }

    /// Of a connection that was open before anybody looked.
    pub(crate) fn of_unseen_login() -> Self {
        let mut stream = StreamEncoder::default();
        stream.opened(Moment(0), [(&b"user"[..], &b"ann"[..])]);
        stream.columns(1, [&b"id"[..], &b"flag"[..]]);
        stream.columns(2, [&b"value"[..]]);
        Self {
            stream,
            templates: Vec::new(),
            now: 0,
            status: TransactionStatus::Idle,
            think: MILLISECOND / 10,
            shares: false,
            request: 0,
            kind: UnitKind::Query,
            remedy: None,
            reply_after: MILLISECOND,
        }
    }

    /// The kernel has measured the way to the database and back, in microseconds.
    pub(crate) fn distance_us(&mut self, rtt_us: u32) {
        self.stream.path(Moment(self.now), rtt_us, rtt_us);
    }

    /// The program does something else for a time, in nanoseconds.
    pub(crate) fn wait(&mut self, time: u64) {
        self.now += time;
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
        self.exchange_of(vec![statement], parameters, results);
    }

    fn exchange_of(&mut self, statements: Vec<Statement>, parameters: &[u64], results: &[u32]) {
        self.now += self.think;
        let exchange = Exchange {
            kind: self.kind,
            sent_at: Moment(self.now),
            first_reply_at: Moment(self.now + self.reply_after / 2),
            last_reply_at: Moment(self.now + self.reply_after),
            starts_trip: !self.shares && self.remedy.is_none(),
            remedy: self.remedy,
            status: self.status,
            request: self.request,
            outcome: statements.first().map_or(Outcome::Done, |first| first.outcome),
            statements,
            parameters: parameters.to_vec(),
            results: results.to_vec(),
            ..Exchange::default()
        };
        self.now += self.reply_after;
        self.stream.exchange(&exchange);
    }

    /// A query whose rows have an id and a flag that is always the same.
    pub(crate) fn list(&mut self, text: &str, ids: &[u64]) {
        self.list_of(text, &[], ids);
    }

    pub(crate) fn list_of(&mut self, text: &str, parameters: &[u64], ids: &[u64]) {
        let results: Vec<u32> = ids.iter().flat_map(|id| [*id as u32, 1]).collect();
        let statement = Statement {
            template: self.template(text),
            steps: Steps::EXECUTE,
            rows: ids.len() as u64,
            parameters: parameters.len() as u16,
            columns: 1,
            key_columns: 2,
            results: results.len() as u32,
            result_digest: 2,
            ..Statement::default()
        };
        self.exchange(statement, parameters, &results);
    }

    /// A statement that returns or changes one row, of which nothing is kept.
    pub(crate) fn run(&mut self, text: &str, parameters: &[u64]) {
        self.run_for(text, parameters, 1);
    }

    /// The same for any number of rows.
    pub(crate) fn run_for(&mut self, text: &str, parameters: &[u64], rows: u64) {
        let statement = Statement {
            template: self.template(text),
            steps: Steps::EXECUTE,
            rows,
            parameters: parameters.len() as u16,
            result_digest: 2,
            ..Statement::default()
        };
        self.exchange(statement, parameters, &[]);
    }

    /// A statement whose result has this digest; zero says nothing of it.
    pub(crate) fn answered(&mut self, text: &str, parameters: &[u64], (rows, result_digest): (u64, u64)) {
        let statement = Statement {
            template: self.template(text),
            steps: Steps::EXECUTE,
            rows,
            parameters: parameters.len() as u16,
            result_digest,
            ..Statement::default()
        };
        self.exchange(statement, parameters, &[]);
    }

    /// A statement that returns one row with one value.
    pub(crate) fn value(&mut self, text: &str, parameters: &[u64], value: u64) {
        let statement = Statement {
            template: self.template(text),
            steps: Steps::EXECUTE,
            rows: 1,
            parameters: parameters.len() as u16,
            columns: 2,
            key_columns: 1,
            results: 1,
            ..Statement::default()
        };
        self.exchange(statement, parameters, &[value as u32]);
    }

    /// The next pieces of as many results of one text, in one trip, each of as many rows as were asked for.
    pub(crate) fn pieces(&mut self, text: &str, size: u32, is_first: bool, is_last: bool, pieces: usize) {
        let piece = Statement {
            template: self.template(text),
            steps: if is_first { Steps::BIND | Steps::EXECUTE } else { Steps::EXECUTE },
            rows: size.into(),
            row_limit: size,
            suspended: !is_last,
            ..Statement::default()
        };
        self.exchange_of(vec![piece; pieces], &[], &[]);
    }

    /// A statement that fails.
    pub(crate) fn fail(&mut self, text: &str) {
        let statement = Statement {
            template: self.template(text),
            steps: Steps::EXECUTE,
            outcome: Outcome::Failed(*b"23505"),
            ..Statement::default()
        };
        self.exchange(statement, &[], &[]);
    }

    /// A trip that only gives a statement its parameters.
    pub(crate) fn bind(&mut self, text: &str, parameters: &[u64]) {
        let statement = Statement {
            template: self.template(text),
            steps: Steps::BIND,
            parameters: parameters.len() as u16,
            ..Statement::default()
        };
        self.kind = UnitKind::FlushedGroup;
        self.exchange(statement, parameters, &[]);
    }

    /// A trip that runs what was bound.
    pub(crate) fn execute(&mut self, text: &str) {
        self.kind = UnitKind::Group;
        self.run(text, &[]);
    }

    /// A trip that only prepares.
    pub(crate) fn prepare(&mut self, text: &str) {
        let steps = Steps::PREPARE | Steps::DESCRIBE;
        let statement = Statement { template: self.template(text), steps, ..Statement::default() };
        self.exchange(statement, &[], &[]);
    }

    pub(crate) fn begin(&mut self) {
        self.begin_as("BEGIN");
    }

    pub(crate) fn begin_as(&mut self, text: &str) {
        self.status = TransactionStatus::Active;
        self.run(text, &[]);
    }

    /// The next statement begins a transaction, without a BEGIN.
    pub(crate) fn begin_by_itself(&mut self) {
        self.status = TransactionStatus::Active;
    }

    pub(crate) fn commit(&mut self) {
        self.status = TransactionStatus::Idle;
        self.run("COMMIT", &[]);
    }

    pub(crate) fn rollback(&mut self) {
        self.status = TransactionStatus::Idle;
        self.run("ROLLBACK", &[]);
    }

    /// The whole of it, encoded.
    pub(crate) fn block(mut self) -> Vec<u8> {
        self.stream.closed(Moment(self.now), 0, 0, 0);
        self.stream.take_block()
    }

    pub(crate) fn summary(self) -> Summary {
        let mut analyzer = Analyzer::new();
        analyzer.block(1, &self.block()).unwrap();
        analyzer.finish(&Mutes::default()).summary
    }

    pub(crate) fn findings(self) -> Vec<Finding> {
        self.summary().findings
    }

    /// Codes and avoidable trips of all findings.
    pub(crate) fn found(self) -> Vec<(Code, u64)> {
        found(&self.findings())
    }

    /// Avoidable trips of one code.
    pub(crate) fn avoidable(self, code: Code) -> u64 {
        let of_code = self.findings().into_iter().filter(|finding| finding.code == code);
        of_code.map(|finding| finding.avoidable).sum()
    }
}

/// Codes and avoidable trips of findings.
pub(crate) fn found(findings: &[Finding]) -> Vec<(Code, u64)> {
    findings.iter().map(|finding| (finding.code, finding.avoidable)).collect()
}
