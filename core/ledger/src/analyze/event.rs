use std::ops::Deref;
use std::slice;
use std::sync::Arc;

use onetrip_sql::StatementKind;

use super::pace::{Gap, Gauge};
use super::purpose::Purpose;
use super::would::Verdict;
use crate::findings::Spot;
use crate::{Exchange, Moment, Obstacle, Outcome, Remedy, Statement, Steps, TransactionStatus};

/// What detectors need to know of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TemplateFacts {
    pub(super) kind: StatementKind,
    pub(super) purpose: Purpose,
    /// It reads from a table that is not part of the system catalogue.
    pub(super) reads_table: bool,
    /// Its table, the main one if there are several.
    pub(super) table: TableId,
    /// It reads this table and no other.
    pub(super) one_table: bool,
    /// It begins a transaction whose reads all see the same state.
    pub(super) snapshot: bool,
    /// It sets the level of transactions behind it.
    pub(super) sets_level: Option<SetLevel>,
    /// It begins, divides or ends a transaction in words that cannot fail, and begins no other.
    pub(super) is_plain_control: bool,
    /// Name of the savepoint that it makes or releases.
    pub(super) savepoint: u32,
    /// It names the level SERIALIZABLE.
    pub(super) names_serializable: bool,
    /// It reads tables by the server's most usual functions, or none.
    pub(super) is_plain_read: bool,
    /// It takes rows that no other session has taken, as a queue's worker does.
    pub(super) skips_locked: bool,
    /// It changes what the same text means later in the session: the database in use, or a variable's value.
    pub(super) changes_meaning: bool,
    pub(super) keys: Keys,
}

/// A level that is set outside a transaction, in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SetLevel {
    /// Reads of a transaction then see the same state.
    pub(super) is_snapshot: bool,
    /// For all transactions of the session, not only the next.
    pub(super) of_session: bool,
}

/// A table under the analyzer's own ids of names; zero is unknown, or not said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct TableId {
    pub(super) schema: u32,
    pub(super) name: u32,
}

impl TableId {
    /// Whether both are one table, as far as their names tell.
    pub(super) fn is(self, other: Self) -> bool {
        let one_schema = self.schema == other.schema || self.schema == 0 || other.schema == 0;
        self.name != 0 && self.name == other.name && one_schema
    }
}

/// Columns by which a statement finds its rows, and the parameters that they equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Keys {
    list: [(u32, u16); Self::MAX],
    count: u8,
}

impl Keys {
    const MAX: usize = 4;

    /// Keys by name of the column and position of the parameter, counted from zero.
    pub(super) fn new(keys: impl Iterator<Item = (u32, u16)>) -> Self {
        let mut all = Self::default();
        for (slot, key) in all.list.iter_mut().zip(keys) {
            *slot = key;
            all.count += 1;
        }
        all
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Name of the column and position of the parameter.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, usize)> + Clone + '_ {
        self.list.iter().take(self.count.into()).map(|(column, parameter)| (*column, usize::from(*parameter)))
    }
}

impl Default for TemplateFacts {
    fn default() -> Self {
        Self {
            kind: StatementKind::Other,
            purpose: Purpose::Work,
            reads_table: false,
            table: TableId::default(),
            one_table: false,
            snapshot: false,
            sets_level: None,
            is_plain_control: false,
            savepoint: 0,
            names_serializable: false,
            is_plain_read: false,
            skips_locked: false,
            changes_meaning: false,
            keys: Keys::default(),
        }
    }
}

/// One statement that was run to its end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run<'e> {
    pub(super) statement: &'e Statement,
    /// Template, by the analyzer's own ids.
    pub(super) template: u32,
    pub(super) facts: TemplateFacts,
    pub(super) parameters: &'e [u64],
    /// Its parameters came in an exchange before.
    pub(super) is_bound_before: bool,
    pub(super) results: &'e [u32],
    pub(super) columns: Option<&'e Arc<[String]>>,
}

/// Those of one exchange, in order. Mostly it is one, which takes no memory.
#[derive(Debug, Default)]
pub(super) enum Runs<'e> {
    #[default]
    None,
    One(Run<'e>),
    Many(Vec<Run<'e>>),
}

impl<'e> Runs<'e> {
    pub(super) fn push(&mut self, run: Run<'e>) {
        match self {
            Self::None => *self = Self::One(run),
            Self::One(first) => *self = Self::Many(vec![*first, run]),
            Self::Many(runs) => runs.push(run),
        }
    }
}

impl<'e> Deref for Runs<'e> {
    type Target = [Run<'e>];

    fn deref(&self) -> &Self::Target {
        match self {
            Self::None => &[],
            Self::One(run) => slice::from_ref(run),
            Self::Many(runs) => runs,
        }
    }
}

impl<'r, 'e> IntoIterator for &'r Runs<'e> {
    type Item = &'r Run<'e>;
    type IntoIter = slice::Iter<'r, Run<'e>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Run<'_> {
    /// Whether this run goes on with a result that was begun before.
    pub(super) fn continues(&self) -> bool {
        !self.statement.steps.has(Steps::BIND)
            && !self.is_bound_before
            && (self.statement.row_limit > 0)
            && self.facts.kind != StatementKind::Fetch
    }
}

/// Where an exchange stands in what its connection does: what is near each other, without a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Place {
    pub(super) connection: u32,
    /// Exchanges of the connection so far that were to run something.
    pub(super) count: u64,
    /// Transaction blocks of the connection so far, if it is within one; else zero.
    pub(super) transaction: u32,
}

impl Place {
    /// How many exchanges later this is than `earlier` of the same connection.
    pub(super) fn since(self, earlier: Self) -> u64 {
        self.count.saturating_sub(earlier.count)
    }

    /// Whether both are within one transaction block.
    pub(super) fn shares_transaction(self, other: Self) -> bool {
        self.connection == other.connection && self.transaction != 0 && self.transaction == other.transaction
    }
}

/// One exchange as detectors see it.
#[derive(Debug)]
pub(super) struct Event<'e> {
    pub(super) exchange: &'e Exchange,
    /// A trip was made for it for certain.
    pub(super) owns_trip: bool,
    pub(super) place: Place,
    /// Scope, by the analyzer's own ids.
    pub(super) scope: u32,
    /// When the connection was opened.
    pub(super) opened_at: Moment,
    /// Time between the connection's last reply and this unit, in nanoseconds.
    pub(super) think_ns: u64,
    /// The same of the exchanges before this one that only gave the connection back.
    pub(super) carried_ns: u64,
    /// Which of these times are long for this program.
    pub(super) gauge: Gauge,
    /// That time was within a transaction, or within one request of the program.
    pub(super) is_in_context: bool,
    /// The path's part of the exchange's time, in nanoseconds.
    pub(super) wire_ns: u64,
    /// What kept remedies from it, where that is known.
    pub(super) obstacle: Option<Obstacle>,
    /// What remedies would have done with it, where they were off.
    pub(super) would: Verdict,
    /// The statements that ran to their end, in order.
    pub(super) runs: Runs<'e>,
}

impl<'e> Event<'e> {
    /// The exchange, for finding out which line of the program has sent it.
    pub(super) fn spot(&self) -> Spot {
        Spot { opened_at: self.opened_at, sent_at: self.exchange.sent_at }
    }

    /// The think time that tells this exchange apart from the one before, in nanoseconds. Within a transaction or a request it is
    /// none: what is there belongs together, however long a program, or a busy machine, takes between two exchanges.
    pub(super) fn apart_ns(&self) -> u64 {
        self.carried_ns + if self.is_in_context { 0 } else { self.think_ns }
    }

    /// How long that is for this program.
    pub(super) fn gap(&self) -> Gap {
        self.gauge.compare(self.apart_ns())
    }

    /// Whether it only gives the connection back to a pool: a reset of a session in which nothing was set. A ping is something
    /// else: it tells that the connection is taken out again, for other work.
    pub(super) fn only_gives_back(&self, has_set: bool) -> bool {
        !has_set
            && self.exchange.status == TransactionStatus::Idle
            && !self.failed()
            && !self.runs.is_empty()
            && self.runs.iter().all(|run| run.facts.purpose == Purpose::Reset)
    }

    /// The exchange took a trip of its own for certain.
    pub(super) fn is_own_trip(&self) -> bool {
        self.owns_trip
    }

    /// The one statement, besides transaction control, that this trip was made for.
    pub(super) fn sole_run(&self) -> Option<&Run<'e>> {
        if !self.is_own_trip() {
            return None;
        }
        let mut work = self.runs.iter().filter(|run| !run.facts.kind.is_transaction_control());
        let first = work.next()?;
        work.next().is_none().then_some(first)
    }

    /// The one statement that a remedy answered out of what it had read ahead.
    pub(super) fn run_from_memory(&self) -> Option<&Run<'e>> {
        match &*self.runs {
            [only] if matches!(self.exchange.remedy, Some(Remedy::Loops | Remedy::Repeats)) => Some(only),
            _ => None,
        }
    }

    /// Whether a remedy answered a BEGIN, COMMIT or ROLLBACK.
    pub(super) fn is_control_by_remedy(&self) -> bool {
        let is_control = || self.runs.iter().all(|run| run.facts.kind.is_transaction_control());
        matches!(self.exchange.remedy, Some(Remedy::Begin | Remedy::Commit)) && is_control()
    }

    /// The first statement besides transaction control.
    pub(super) fn first_work(&self) -> Option<&Run<'e>> {
        self.runs.iter().find(|run| !run.facts.kind.is_transaction_control())
    }

    /// Nothing was run in it: statements were prepared, described or closed, or the connection's cache was tidied.
    pub(super) fn is_idle(&self) -> bool {
        self.runs.iter().all(|run| run.facts.kind == StatementKind::Deallocate)
    }

    /// The one transaction-control statement that had this trip for itself.
    pub(super) fn sole_control(&self) -> Option<StatementKind> {
        match &*self.runs {
            [only] if self.is_own_trip() && only.facts.kind.is_transaction_control() => Some(only.facts.kind),
            _ => None,
        }
    }

    /// Some statement failed or was skipped.
    pub(super) fn failed(&self) -> bool {
        self.exchange.outcome != Outcome::Done
    }
}
