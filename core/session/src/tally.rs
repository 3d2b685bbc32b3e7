//! What all sessions of a gateway have counted so far, for whoever asks while it goes on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use onetrip_ledger::{Exchange, UnitKind};

use crate::scopes::LABEL_BYTES_MAX;

/// What all sessions of a gateway have spent so far, and the scope of work that names none: a test runner reads the one
/// and sets the other between two tests.
///
/// A unit is counted before its reply leaves for the client, so that a program which has its answer is in the counts.
#[derive(Debug, Default)]
pub struct Tally {
    work_trips: AtomicU64,
    connect_trips: AtomicU64,
    statements: AtomicU64,
    connections: AtomicU64,
    endless: AtomicU64,
    /// Goes up with each label.
    version: AtomicU64,
    label: Mutex<Vec<u8>>,
}

/// What was counted since the gateway began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Trips after sessions were open.
    pub work_trips: u64,
    /// Trips that opened sessions.
    pub connect_trips: u64,
    /// Statements run.
    pub statements: u64,
    /// Sessions opened, or tried to.
    pub connections: u64,
    /// How often something was told that may never end at the level that the gateway sets.
    pub endless: u64,
}

impl Tally {
    /// What was counted so far.
    pub fn counts(&self) -> Counts {
        Counts {
            work_trips: self.work_trips.load(Ordering::Acquire),
            connect_trips: self.connect_trips.load(Ordering::Acquire),
            statements: self.statements.load(Ordering::Acquire),
            connections: self.connections.load(Ordering::Acquire),
            endless: self.endless.load(Ordering::Acquire),
        }
    }

    /// From now on, what names no scope itself is booked on this one; an empty label ends that.
    pub fn set_scope(&self, label: &[u8]) {
        let mut current = self.label.lock().unwrap_or_else(PoisonError::into_inner);
        current.clear();
        current.extend_from_slice(&label[..label.len().min(LABEL_BYTES_MAX)]);
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Something may never end at the level that the gateway sets.
    pub(crate) fn may_never_end(&self) {
        self.endless.fetch_add(1, Ordering::Release);
    }

    /// A session's startup packet came.
    pub(crate) fn opened(&self) {
        self.connections.fetch_add(1, Ordering::Release);
    }

    /// A unit was answered.
    pub(crate) fn book(&self, exchange: &Exchange) {
        let trips = match exchange.kind {
            UnitKind::Connect => &self.connect_trips,
            _ => &self.work_trips,
        };
        trips.fetch_add(u64::from(exchange.starts_trip), Ordering::Release);
        let run = exchange.statements.iter().filter(|statement| statement.is_run()).count() as u64;
        self.statements.fetch_add(run + exchange.cut.statements, Ordering::Release);
    }

    /// The label, if it is another than that of the version.
    pub(crate) fn label_after(&self, version: &mut u64) -> Option<Vec<u8>> {
        let now = self.version.load(Ordering::Acquire);
        if now == *version {
            return None;
        }
        *version = now;
        Some(self.label.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

#[cfg(test)]
mod tests {
    use onetrip_ledger::{Cut, Outcome, Statement, Steps};

    use super::*;

    #[test]
    fn a_session_hears_of_each_label_once() {
        let (tally, mut version) = (Tally::default(), 0);
        assert_eq!(tally.label_after(&mut version), None);
        tally.set_scope(b"test_one");
        assert_eq!(tally.label_after(&mut version).as_deref(), Some(&b"test_one"[..]));
        assert_eq!(tally.label_after(&mut version), None);
        tally.set_scope(b"");
        assert_eq!(tally.label_after(&mut version).as_deref(), Some(&b""[..]));
    }

    #[test]
    fn only_units_that_start_a_trip_are_trips() {
        let tally = Tally::default();
        let unit = |kind, starts_trip| Exchange { kind, starts_trip, ..Exchange::default() };
        tally.opened();
        tally.book(&unit(UnitKind::Connect, true));
        tally.book(&unit(UnitKind::Query, true));
        tally.book(&unit(UnitKind::Query, false));
        let counted = Counts { work_trips: 1, connect_trips: 1, statements: 0, connections: 1, endless: 0 };
        assert_eq!(tally.counts(), counted);
    }

    #[test]
    fn statements_that_are_not_kept_are_counted_too() {
        let tally = Tally::default();
        let cut = Cut { statements: 1_990, ..Cut::default() };
        let run = Statement { steps: Steps::EXECUTE, ..Statement::default() };
        tally.book(&Exchange { statements: vec![run; 10], cut, ..Exchange::default() });
        assert_eq!(tally.counts().statements, 2_000);
    }

    #[test]
    fn statements_that_were_not_run_are_not_counted() {
        let tally = Tally::default();
        let prepared = Statement { steps: Steps::PREPARE | Steps::DESCRIBE, ..Statement::default() };
        let run = Statement { steps: Steps::BIND | Steps::EXECUTE, ..Statement::default() };
        let failed = Statement { outcome: Outcome::Failed(*b"22012"), ..run };
        let skipped = Statement { outcome: Outcome::Skipped, ..run };
        tally.book(&Exchange { statements: vec![prepared, run, failed, skipped], ..Exchange::default() });
        assert_eq!(tally.counts().statements, 1);
    }
}
