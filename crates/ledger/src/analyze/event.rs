use std::sync::Arc;

use onetrip_sql::StatementKind;

use crate::{Exchange, Outcome, Statement, Steps};

/// What detectors need to know of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TemplateFacts {
    pub(super) kind: StatementKind,
    /// It reads from a table that is not part of the system catalogue.
    pub(super) reads_table: bool,
}

/// One statement that was run to its end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run<'e> {
    pub(super) statement: &'e Statement,
    /// Template, by the analyzer's own ids.
    pub(super) template: u32,
    pub(super) facts: TemplateFacts,
    pub(super) parameters: &'e [u64],
    pub(super) results: &'e [u32],
    pub(super) columns: Option<&'e Arc<[String]>>,
}

impl Run<'_> {
    /// Whether this run goes on with a result that was begun before.
    pub(super) fn continues(&self) -> bool {
        !self.statement.steps.has(Steps::BIND)
            && (self.statement.row_limit > 0)
            && self.facts.kind != StatementKind::Fetch
    }
}

/// One exchange as detectors see it.
#[derive(Debug)]
pub(super) struct Event<'e> {
    pub(super) exchange: &'e Exchange,
    /// Scope, by the analyzer's own ids.
    pub(super) scope: u32,
    /// Time between the connection's last reply and this unit, in nanoseconds.
    pub(super) think_ns: u64,
    /// The path's part of the exchange's time, in nanoseconds.
    pub(super) wire_ns: u64,
    /// The statements that ran to their end, in order.
    pub(super) runs: Vec<Run<'e>>,
}

impl<'e> Event<'e> {
    /// The exchange took a trip of its own for certain.
    pub(super) fn is_own_trip(&self) -> bool {
        self.exchange.starts_trip && !self.exchange.may_share
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

    /// The one transaction-control statement that had this trip for itself.
    pub(super) fn sole_control(&self) -> Option<StatementKind> {
        match self.runs.as_slice() {
            [only] if self.is_own_trip() && only.facts.kind.is_transaction_control() => Some(only.facts.kind),
            _ => None,
        }
    }

    /// Some statement failed or was skipped.
    pub(super) fn failed(&self) -> bool {
        self.exchange.outcome != Outcome::Done
    }
}
