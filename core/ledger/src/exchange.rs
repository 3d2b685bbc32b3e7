use std::ops::{BitOr, BitOrAssign};

use crate::{Cut, Obstacle, Remedy, ValueHash};

/// Nanoseconds since the trace began, on a monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Moment(pub u64);

impl Moment {
    /// Nanoseconds from `earlier` to here; zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// What a client sent before it had to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum UnitKind {
    /// A step of opening the session: encryption request, startup packet, an authentication message.
    Connect,
    /// One text with one or more statements.
    #[default]
    Query,
    /// Prepared-statement messages up to the point where the client waits for all of them.
    Group,
    /// Prepared-statement messages whose replies were asked for without ending the group.
    FlushedGroup,
    /// A call of a server function outside SQL.
    FunctionCall,
    /// Data that the client streams in, up to its end.
    CopyIn,
}

impl UnitKind {
    pub(crate) const ALL: [Self; 6] =
        [Self::Connect, Self::Query, Self::Group, Self::FlushedGroup, Self::FunctionCall, Self::CopyIn];
}

/// Where the session stands after an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TransactionStatus {
    /// Outside a transaction block.
    #[default]
    Idle,
    /// Inside one.
    Active,
    /// Inside one that failed.
    Failed,
}

/// How an exchange or a statement ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Outcome {
    /// As asked.
    #[default]
    Done,
    /// With an error of this SQLSTATE (`?????` where the server gave none).
    Failed([u8; 5]),
    /// Never run, because an earlier error made the server skip it.
    Skipped,
}

/// What of a statement's life happened in one exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Steps(pub u8);

impl Steps {
    /// Its text was sent to be prepared.
    pub const PREPARE: Self = Self(1);
    /// Its parameters or columns were asked for.
    pub const DESCRIBE: Self = Self(2);
    /// It was given parameters.
    pub const BIND: Self = Self(4);
    /// It was run, or run on.
    pub const EXECUTE: Self = Self(8);
    /// It was closed.
    pub const CLOSE: Self = Self(16);

    /// Whether all of `steps` happened.
    pub fn has(self, steps: Self) -> bool {
        self.0 & steps.0 == steps.0
    }
}

impl BitOr for Steps {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Steps {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// One statement's part in an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Statement {
    /// Its template, an id of this stream; zero is unknown.
    pub template: u32,
    /// What happened to it here.
    pub steps: Steps,
    /// Rows returned or changed.
    pub rows: u64,
    /// Most rows that the client asked for at once, or zero for all.
    pub row_limit: u32,
    /// Whether rows were left when the limit was reached.
    pub suspended: bool,
    /// How it ended.
    pub outcome: Outcome,
    /// How many of [`Exchange::parameters`] are its own, in order.
    pub parameters: u16,
    /// Names of the key-like columns of its result, an id of this stream; zero is none.
    pub columns: u32,
    /// How many key-like columns each row of its result has.
    pub key_columns: u16,
    /// How many of [`Exchange::results`] are its own: `key_columns` per row, for as many rows as were kept.
    pub results: u32,
    /// Hash over all rows of its result, zero for none: tells whether two results were the same. The lowest bit says
    /// whether columns were binary; results that differ in it cannot be compared.
    pub result_digest: u64,
}

impl Statement {
    /// Whether it was run, to its end or to its limit of rows: these are counted as statements.
    pub fn is_run(&self) -> bool {
        self.steps.has(Steps::EXECUTE) && self.outcome == Outcome::Done
    }
}

/// A unit and its complete reply.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Exchange {
    /// What the client sent.
    pub kind: UnitKind,
    /// First byte of the unit.
    pub sent_at: Moment,
    /// First byte of the reply.
    pub first_reply_at: Moment,
    /// Last byte of the reply.
    pub last_reply_at: Moment,
    /// Bytes that the client sent.
    pub bytes_sent: u64,
    /// Bytes of the reply.
    pub bytes_received: u64,
    /// Whether nothing was unanswered when the unit arrived: it starts a trip.
    pub starts_trip: bool,
    /// Whether a trip that it starts may have shared the one before: see [`crate::Conversation`].
    pub may_share: bool,
    /// What answered it before the server did; such a unit starts no trip.
    pub remedy: Option<Remedy>,
    /// Why remedies that were on did not answer it, where that is known.
    pub obstacle: Option<Obstacle>,
    /// Where the session stands now.
    pub status: TransactionStatus,
    /// How the unit ended: the first error of its statements, if any.
    pub outcome: Outcome,
    /// Label of the work, an id of this stream; zero is none.
    pub scope: u32,
    /// Tells requests of one scope apart (from a `traceparent`), or zero.
    pub request: u64,
    /// The statements in order.
    pub statements: Vec<Statement>,
    /// Values given to the statements, all in a row.
    pub parameters: Vec<ValueHash>,
    /// Values that the key-like columns returned, low 32 bits of their [`ValueHash`], all in a row.
    pub results: Vec<u32>,
    /// The parameters' texts, where the trace keeps values; else empty.
    pub parameter_texts: Vec<Vec<u8>>,
    /// What of it is counted and not kept. A trace has it as a record of its own.
    pub cut: Cut,
}

/// Longest encoded exchange, in bytes. Whoever fills one leaves out what is beyond, and counts it as [`Exchange::cut`].
pub const EXCHANGE_BYTES_MAX: usize = 1 << 20;
/// Longest encoded statement, without its values.
pub const STATEMENT_BYTES_MAX: usize = 64;

impl Exchange {
    /// Empties it for the next unit; its buffers stay.
    pub fn clear(&mut self) {
        let Self { statements, parameters, results, parameter_texts, .. } = std::mem::take(self);
        *self = Self { statements, parameters, results, parameter_texts, ..Self::default() };
        self.statements.clear();
        self.parameters.clear();
        self.results.clear();
        self.parameter_texts.clear();
    }

    /// Wall time from the unit's first byte to the reply's last, in nanoseconds.
    pub fn duration(&self) -> u64 {
        self.last_reply_at.since(self.sent_at)
    }
}
