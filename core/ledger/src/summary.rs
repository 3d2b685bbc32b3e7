use std::collections::BTreeMap;

use serde::Serialize;

use crate::{Driver, Finding, Gaps, Remedy, Would};

/// Everything that a report says, counted from one trace or one live gateway.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Trips by what they were for.
    pub trips: TripTotals,
    /// Sessions that clients opened, or tried to.
    pub connections: u64,
    /// Sessions that the server let in.
    pub sessions: u64,
    /// Why the others did not come about, most frequent first, at most [`Summary::REFUSALS_MAX`].
    pub refusals: Vec<Refusal>,
    /// Sessions still open when the summary was made.
    pub open_connections: u64,
    /// Units sent.
    pub units: u64,
    /// Statements run.
    pub statements: u64,
    /// Statements that failed.
    pub errors: u64,
    /// How often each SQLSTATE came, most frequent first, at most [`Summary::ERRORS_MAX`].
    pub errors_by_state: Vec<(String, u64)>,
    /// Rows returned or changed.
    pub rows: u64,
    /// Bytes from clients.
    pub bytes_sent: u64,
    /// Bytes to clients.
    pub bytes_received: u64,
    /// From the first byte of the first connection to the last reply, in nanoseconds.
    pub elapsed_ns: u64,
    /// Where the time went, summed over all connections.
    pub times: PathTimes,
    /// Smallest round-trip time to the database that the kernel has seen, in microseconds; `None` on a Unix socket.
    pub rtt_min_us: Option<u32>,
    /// Replies that nobody asked for: forwarded and counted.
    pub unasked_replies: u64,
    /// Message bodies that did not decode: forwarded and counted.
    pub undecoded: u64,
    /// Units that were never answered, because a connection ended first.
    pub unanswered: u64,
    /// What is missing from the records.
    pub gaps: Gaps,
    /// The database's address.
    pub upstream: String,
    /// How long replies were held, in nanoseconds.
    pub settle_ns: u64,
    /// Drivers and ORMs that were recognised, with their connections.
    pub drivers: BTreeMap<Driver, u64>,
    /// Round trips that remedies took out of the run.
    pub removed: BTreeMap<Remedy, u64>,
    /// Round trips that remedies would have taken out, at least; empty where they were on.
    pub would: BTreeMap<Remedy, Would>,
    /// Answers from memory that were run for real as well.
    pub verified: u64,
    /// Those of them that differed: wrong answers.
    pub differed: u64,
    /// The statements that differed and where, at most [`Summary::DIFFERENCES_MAX`].
    pub differences: Vec<Difference>,
    /// Statements that may never end at the level that `--isolation` sets, at most [`Summary::MAY_NOT_END_MAX`].
    pub may_not_end: Vec<MayNotEnd>,
    /// Statements, most trips first.
    pub templates: Vec<TemplateTotals>,
    /// Scopes, most trips first; work without a scope has the empty label.
    pub scopes: Vec<ScopeTotals>,
    /// Findings, most avoidable time first.
    pub findings: Vec<Finding>,
}

impl Summary {
    /// Most wrong answers that a summary names.
    pub const DIFFERENCES_MAX: usize = 10;
    /// Most statements that a summary names because they may never end.
    pub const MAY_NOT_END_MAX: usize = 10;
    /// Most reasons for refused sessions that a summary names.
    pub const REFUSALS_MAX: usize = 10;
    /// Most SQLSTATEs that a summary names.
    pub const ERRORS_MAX: usize = 20;

    /// Why no session was opened; `None` where one was.
    pub fn no_session(&self) -> Option<NoSession<'_>> {
        if self.sessions > 0 {
            return None;
        }
        Some(match (self.refusals.first(), self.connections, self.trips.total) {
            (Some(refusal), ..) => NoSession::Refused(refusal),
            (None, 0, 0) if self.gaps.is_partial() => NoSession::Unreadable,
            (None, 0, 0) => NoSession::Unreached,
            (None, 0, _) => NoSession::AskedForEncryption,
            // They may have been let in where it was not seen.
            (None, ..) if self.gaps.has_loss() => NoSession::Unreadable,
            (None, clients, _) => NoSession::Left { clients },
        })
    }

    /// Round trips that all remedies together would have taken out, at least.
    pub fn would_remove(&self) -> Would {
        let mut all = Would::default();
        self.would.values().for_each(|would| all.add(*would));
        all
    }

    /// Books that a statement may never end.
    pub(crate) fn may_not_end(&mut self, statement: String, failures: u64) {
        let list = &mut self.may_not_end;
        let has_room = list.len() < Self::MAY_NOT_END_MAX;
        match list.iter_mut().find(|known| known.statement == statement) {
            Some(known) => known.failures = known.failures.max(failures),
            None if has_room => list.push(MayNotEnd { statement, failures }),
            None => {}
        }
    }
}

/// A statement that may never end at the level that `--isolation` sets, and would at the program's own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct MayNotEnd {
    /// The statement, its literals lifted; empty where that is not known.
    pub statement: String,
    /// How often in a row it has failed with 23505 or 40001, at most; zero where it ran for longer than ten seconds.
    pub failures: u64,
}

/// Why sessions did not come about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// SQLSTATE of the error.
    pub sqlstate: String,
    /// The server's words, or the gateway's where it did not reach the server.
    pub message: String,
    /// How many sessions.
    pub sessions: u64,
}

/// Why a run has no session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoSession<'s> {
    /// The first reason that clients were told.
    Refused(&'s Refusal),
    /// Clients left before the server had let them in.
    Left {
        /// How many.
        clients: u64,
    },
    /// Clients asked for encryption, and left.
    AskedForEncryption,
    /// What could be read, or was understood of connections, holds none.
    Unreadable,
    /// Nobody came.
    Unreached,
}

/// An answer from memory that was not what the server answered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The statement, its literals lifted.
    pub statement: String,
    /// Bytes up to the first difference.
    pub at: u64,
}

/// Trips by what they were for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct TripTotals {
    /// All trips.
    pub total: u64,
    /// Trips that opened sessions: encryption request, startup, authentication. TCP's own handshake is not among them.
    pub connect: u64,
    /// Trips that may have shared the trip before: with any, `total` is an upper bound.
    pub may_share: u64,
}

impl TripTotals {
    /// Trips after sessions were open.
    pub fn work(&self) -> u64 {
        self.total - self.connect
    }

    /// Fewest trips that there can have been.
    pub fn at_least(&self) -> u64 {
        self.total - self.may_share
    }
}

/// Where trips' wall time went, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct PathTimes {
    /// The database.
    pub server_ns: u64,
    /// The path to it.
    pub wire_ns: u64,
    /// The application, between a reply and its next unit.
    pub think_ns: u64,
}

/// What one template spent.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct TemplateTotals {
    /// Statement text with its literals lifted.
    pub text: String,
    /// Trips that it started.
    pub trips: u64,
    /// Times it was run.
    pub executions: u64,
    /// Rows returned or changed.
    pub rows: u64,
    /// Time spent in its trips, in nanoseconds.
    pub waited_ns: u64,
    /// The slowest of them, in nanoseconds.
    pub waited_max_ns: u64,
    /// Bytes sent and received.
    pub bytes: u64,
}

/// What one scope spent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ScopeTotals {
    /// The scope's name.
    pub label: String,
    /// Trips of its work.
    pub trips: u64,
    /// Statements run.
    pub statements: u64,
    /// Time spent in its trips, in nanoseconds.
    pub waited_ns: u64,
    /// Distinct requests seen in it (from `traceparent`), zero where none were told apart.
    pub requests: u64,
    /// Trips of the request in the middle, by trips: half of the requests have no fewer. Zero without requests.
    pub request_trips_median: u64,
    /// Trips of the request that had most.
    pub request_trips_max: u64,
}
