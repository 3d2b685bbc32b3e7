//! OT013 and OT015: a read that is there for the write behind it only.
//!
//! A row is read by its key and changed by the same key next; or it is looked for, not found, and inserted next. One
//! statement can do both: UPDATE ... RETURNING, INSERT ... ON CONFLICT. A queue's worker reads any row that is free
//! (SKIP LOCKED) and changes it by a key that the row has.

use onetrip_sql::StatementKind;

use super::claims::{Claims, Pattern, Share, TripNumber};
use super::event::{Event, Keys, Run, TableId};
use super::pace::Gap;
use crate::findings::Code;

/// The read that the next write may belong to.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    is_waiting: bool,
    trip: TripNumber,
    template: u32,
    table: TableId,
    keys: Keys,
    parameters: Vec<u64>,
    /// Values of the row, where any free one was taken.
    taken: Vec<u32>,
    found: bool,
    request: u64,
    /// The longest gap since the read, outside transactions and requests.
    gap: Gap,
}

impl Pairs {
    /// Takes one exchange of any sort; `trip` is its number if it is a reading trip.
    pub(super) fn take(&mut self, event: &Event<'_>, trip: Option<TripNumber>, claims: &mut Claims) {
        self.is_waiting &= event.exchange.request == self.request && !event.failed();
        self.gap = self.gap.max(event.gap());
        let Some(work) = event.first_work() else { return };
        if self.is_waiting && event.exchange.starts_trip {
            if let Some(code) = self.code(work) {
                let pattern = Pattern { code, template: self.template, other: work.template };
                claims.claim(self.trip, pattern, event.scope, Share::Avoidable);
                if self.gap >= Gap::Slow {
                    claims.slow(pattern);
                }
            }
        }
        self.is_waiting = false;
        if let (Some(trip), Some(run)) = (trip, event.sole_run()) {
            self.remember(event, run, trip);
        }
    }

    fn remember(&mut self, event: &Event<'_>, run: &Run<'_>, trip: TripNumber) {
        let facts = &run.facts;
        let may_pair = facts.kind == StatementKind::Select && facts.one_table && run.statement.rows <= 1;
        let is_looked_for = !run.parameters.is_empty() || facts.skips_locked;
        if !may_pair || facts.table.name == 0 || !is_looked_for || run.continues() {
            return;
        }
        self.is_waiting = true;
        self.trip = trip;
        self.template = run.template;
        self.table = facts.table;
        self.keys = facts.keys;
        self.parameters.clear();
        self.parameters.extend_from_slice(run.parameters);
        self.taken.clear();
        if facts.skips_locked {
            self.taken.extend_from_slice(run.results);
        }
        self.found = run.statement.rows == 1;
        self.request = event.exchange.request;
        self.gap = Gap::Short;
    }

    /// The pattern that the read and this write make.
    fn code(&self, write: &Run<'_>) -> Option<Code> {
        if !self.table.is(write.facts.table) {
            return None;
        }
        match write.facts.kind {
            StatementKind::Insert if !self.found && self.gives_all(write) => Some(Code::ExistsThenInsert),
            StatementKind::Update | StatementKind::Delete
                if self.found && (self.finds_same(write) || self.finds_taken(write)) =>
            {
                Some(Code::ReadBeforeWrite)
            }
            _ => None,
        }
    }

    /// Whether all values that the row was looked for by are written.
    fn gives_all(&self, write: &Run<'_>) -> bool {
        let is_written = |value: u64| value != 0 && write.parameters.contains(&value);
        if self.keys.is_empty() {
            return self.parameters.iter().all(|value| is_written(*value));
        }
        self.keys.iter().all(|(_, position)| value(&self.parameters, position).is_some_and(is_written))
    }

    /// Whether the write finds its row by the same columns with the same values; either may have more of them.
    fn finds_same(&self, write: &Run<'_>) -> bool {
        let read = |column: u32| key(&self.keys, &self.parameters, column);
        let written = |column: u32| key(&write.facts.keys, write.parameters, column);
        let agree = |keys: &Keys| {
            !keys.is_empty()
                && keys.iter().all(|(column, _)| {
                    read(column).is_some_and(|value| value != 0 && written(column) == Some(value))
                })
        };
        agree(&self.keys) || agree(&write.facts.keys)
    }

    /// Whether the write finds its row by values of the row that was free.
    fn finds_taken(&self, write: &Run<'_>) -> bool {
        let is_taken = |value: u64| value != 0 && self.taken.contains(&(value as u32));
        let keys = &write.facts.keys;
        !keys.is_empty()
            && keys.iter().all(|(_, position)| value(write.parameters, position).is_some_and(is_taken))
    }
}

fn value(parameters: &[u64], position: usize) -> Option<u64> {
    parameters.get(position).copied()
}

/// The value that a column has to equal.
fn key(keys: &Keys, parameters: &[u64], column: u32) -> Option<u64> {
    let (_, position) = keys.iter().find(|(name, _)| *name == column && column != 0)?;
    value(parameters, position)
}
