//! Exchanges to trips and findings, and the trace file that keeps them.
//!
//! The ledger knows units, exchanges, templates and parameters, never a protocol's messages: the session of a
//! gateway, a packet capture or any other protocol feeds it alike. Whoever watches a connection fills an
//! [`Exchange`] per unit and hands it to a [`StreamEncoder`]; blocks of encoded records go to a trace file, to an
//! [`Analyzer`], or to both. A report on a live gateway and one on a trace read years later are the same code.
//!
//! Non-scope: bytes of a protocol (`wire`), decisions about a live connection (`session`), and how a summary
//! looks (`report`).

pub mod findings;
pub mod judge;
pub mod network;
pub mod sides;
pub mod timeline;
pub mod trace;

mod analyze;
mod conversation;
mod exchange;
mod gaps;
mod obstacle;
mod remedy;
mod stacks;
mod summary;
mod value;

pub use analyze::{Analysis, Analyzer};
pub use conversation::{Arrival, Conversation};
pub use exchange::{
    EXCHANGE_BYTES_MAX, Exchange, Moment, Outcome, STATEMENT_BYTES_MAX, Statement, Steps, TransactionStatus,
    UnitKind,
};
pub use findings::{Code, Evidence, Finding, Mutes, Site, Spot, Would};
pub use gaps::{Cut, Gaps};
pub use obstacle::Obstacle;
pub use remedy::{Remedy, UnknownRemedy};
pub use stacks::Driver;
pub use summary::{
    Difference, MayNotEnd, NoSession, PathTimes, Refusal, ScopeTotals, Summary, TemplateTotals, TripTotals,
};
pub use trace::{Record, StreamEncoder, TraceError, TraceReader, TraceWriter};
pub use value::{ValueHash, ValueHasher};
