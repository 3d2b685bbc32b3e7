//! OT006 and OT016: BEGIN, COMMIT and ROLLBACK with a trip of their own.
//!
//! A BEGIN can always go with the first statement. The end of a transaction can be spared where there was at most one
//! statement, because that needs no transaction block. Where there were more, the program decides after the last.
//! A ROLLBACK after reads only undoes nothing: it can be spared, however many there were (OT016).

use onetrip_sql::StatementKind;

use super::book::{Book, Fate, Key, Sighting};
use super::client::Client;
use super::event::Event;
use super::spots::Spots;
use crate::findings::{Code, Evidence, Spot, Would};
use crate::{TransactionStatus, UnitKind};

/// Transactions that make a pattern.
const TRANSACTIONS_MIN: u64 = 5;

/// Transactions of one connection.
#[derive(Debug, Default)]
pub(super) struct Transactions {
    open: Option<Open>,
    /// A statement has ended outside a transaction. From here on, the beginning of each is seen: a statement is the first
    /// of a transaction, whether BEGIN opened it or the server did by itself (MySQL's `autocommit = 0`).
    has_rested: bool,
    /// What was set for the next transaction, and for all: that its reads see the same state.
    next_is_snapshot: bool,
    all_are_snapshots: bool,
    begins: u64,
    commits: u64,
    transactions: u64,
    waited_ns: u64,
    wire_ns: u64,
    scope: u32,
    spots: Spots,
    fate: Fate,
    check_ins: CheckIns,
}

/// ROLLBACKs of transactions that only read.
#[derive(Debug, Default)]
struct CheckIns {
    spots: Spots,
    rollbacks: u64,
    reads: u64,
    waited_ns: u64,
    wire_ns: u64,
    would: Would,
}

#[derive(Debug, Default)]
struct Open {
    begin_alone: bool,
    begin_would: Would,
    begin_waited_ns: u64,
    begin_wire_ns: u64,
    begin_spot: Option<Spot>,
    statements: u64,
    failed: bool,
    /// Its begin was seen, and it leaves the choice of when to end to the program.
    is_plain: bool,
    /// Statements that only read.
    reads: u64,
}

/// A transaction block that ended, and which of its ends travelled alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) begin_alone: bool,
    pub(super) commit_alone: bool,
    /// Nothing of it is left.
    pub(super) is_undone: bool,
    /// What remedies would have removed of these trips.
    pub(super) would: Would,
    pub(super) waited_ns: u64,
}

impl Transactions {
    /// Takes one exchange; returns the transaction that it ended.
    pub(super) fn take(&mut self, event: &Event<'_>) -> Option<Ended> {
        let control = event.sole_control();
        let exchange = event.exchange;
        self.fate.removed += u64::from(event.is_control_by_remedy());
        if self.open.is_none() {
            self.set_levels(event);
        }
        let begins = event.runs.iter().any(|run| run.facts.kind == StatementKind::Begin);
        if self.open.is_none() && (begins || exchange.status != TransactionStatus::Idle) {
            let alone = control == Some(StatementKind::Begin);
            self.open = Some(Open {
                begin_alone: alone,
                begin_would: if alone { event.would.trip() } else { Would::default() },
                begin_waited_ns: if alone { exchange.duration() } else { 0 },
                begin_wire_ns: if alone { event.wire_ns } else { 0 },
                begin_spot: alone.then(|| event.spot()),
                is_plain: (begins || self.has_rested) && !self.next_is_snapshot,
                ..Open::default()
            });
        }
        self.has_rested |= exchange.status == TransactionStatus::Idle;
        let open = self.open.as_mut()?;
        open.count(event);
        if exchange.status != TransactionStatus::Idle {
            return None;
        }
        let open = self.open.take()?;
        self.next_is_snapshot = self.all_are_snapshots;
        let commit_alone = matches!(control, Some(StatementKind::Commit | StatementKind::Rollback));
        let is_undone = event.runs.iter().any(|run| run.facts.kind == StatementKind::Rollback);
        let begin_alone = open.begin_alone;
        let mut waited_ns = open.begin_waited_ns;
        let mut would = open.begin_would;
        if open.failed {
            return Some(Ended { begin_alone, commit_alone, is_undone, would, waited_ns });
        }
        self.fate.would.add(open.begin_would);
        self.transactions += 1;
        self.begins += u64::from(open.begin_alone);
        self.spots.extend(open.begin_spot);
        self.waited_ns += open.begin_waited_ns;
        self.wire_ns += open.begin_wire_ns;
        if commit_alone {
            waited_ns += exchange.duration();
            would.add(event.would.trip());
        }
        let checks_in = control == Some(StatementKind::Rollback) && open.only_reads();
        if checks_in {
            self.check_ins.rollbacks += 1;
            self.check_ins.spots.add(event.spot());
            self.check_ins.reads += open.reads;
            self.check_ins.would.add(event.would.trip());
            self.check_ins.waited_ns += exchange.duration();
            self.check_ins.wire_ns += event.wire_ns;
        } else if commit_alone && open.statements <= 1 {
            self.commits += 1;
            self.fate.would.add(event.would.trip());
            self.spots.add(event.spot());
            self.fate.leave(event.obstacle);
            self.waited_ns += exchange.duration();
            self.wire_ns += event.wire_ns;
        }
        if self.scope == 0 {
            self.scope = event.scope;
        }
        Some(Ended { begin_alone, commit_alone, is_undone, would, waited_ns })
    }

    /// Levels that are set between transactions. One that is set for the session holds for the next one, too.
    fn set_levels(&mut self, event: &Event<'_>) {
        for set in event.runs.iter().filter_map(|run| run.facts.sets_level) {
            self.next_is_snapshot = set.is_snapshot;
            if set.of_session {
                self.all_are_snapshots = set.is_snapshot;
            }
        }
    }

    /// Takes trips away that another finding is booked for.
    pub(super) fn claim(&mut self, begins: u64, commits: u64, transactions: u64, would: Would) {
        self.fate.would.take_away(would);
        let before = self.begins + self.commits;
        self.begins = self.begins.saturating_sub(begins);
        self.commits = self.commits.saturating_sub(commits);
        self.transactions = self.transactions.saturating_sub(transactions);
        let after = self.begins + self.commits;
        if before > 0 {
            let share = |time: u64| (u128::from(time) * u128::from(after) / u128::from(before)) as u64;
            self.waited_ns = share(self.waited_ns);
            self.wire_ns = share(self.wire_ns);
        }
    }

    /// Books what the connection did.
    pub(super) fn book(&self, client: Client, book: &mut Book) {
        self.check_ins.book(self.scope, client, book);
        let trips = self.begins + self.commits;
        if self.begins.max(self.commits) < TRANSACTIONS_MIN {
            return;
        }
        book.add(
            Key { code: Code::TransactionAlone, template: 0, source: 0, client },
            Sighting {
                scope: self.scope,
                spots: self.spots.clone(),
                occurrences: self.transactions,
                trips,
                avoidable: trips,
                waited_ns: self.waited_ns,
                wire_ns: self.wire_ns,
                fate: self.fate.clone(),
                evidence: Evidence::Alone {
                    begins: self.begins,
                    commits: self.commits,
                    transactions: self.transactions,
                },
            },
        );
    }
}

impl Open {
    fn count(&mut self, event: &Event<'_>) {
        self.failed |= event.failed();
        // Data of a COPY, and functions called outside SQL.
        self.is_plain &=
            matches!(event.exchange.kind, UnitKind::Query | UnitKind::Group | UnitKind::FlushedGroup);
        for run in &event.runs {
            // Such a transaction is there for its reads: to show them one state, or to keep their portals open.
            self.is_plain &= !run.facts.snapshot && !run.continues();
            if !run.facts.kind.is_transaction_control() {
                self.statements += 1;
                self.reads += u64::from(run.facts.purpose.only_reads());
            }
        }
    }

    fn only_reads(&self) -> bool {
        self.is_plain && self.reads > 0 && self.reads == self.statements
    }
}

impl CheckIns {
    fn book(&self, scope: u32, client: Client, book: &mut Book) {
        let Self { rollbacks, reads, waited_ns, wire_ns, would, ref spots } = *self;
        if rollbacks == 0 {
            return;
        }
        book.add(
            Key { code: Code::RollbackOfRead, template: 0, source: 0, client },
            Sighting {
                scope,
                spots: spots.clone(),
                occurrences: rollbacks,
                trips: rollbacks,
                avoidable: rollbacks,
                waited_ns,
                wire_ns,
                fate: Fate { would, ..Fate::default() },
                evidence: Evidence::CheckIns { rollbacks, reads },
            },
        );
    }
}
