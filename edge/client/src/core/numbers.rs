//! Operations by their numbers, for bindings whose other side cannot hold an [`OperationId`].

use super::{Connection, OperationId, Outcome};

impl Connection {
    /// The operation of the block with a number.
    pub(crate) fn operation_of_block(&self, number: u64) -> Option<OperationId> {
        let id = OperationId::of_number(number);
        self.outcome(id).map(|_| id)
    }

    /// Whether an operation of the block has been answered for good.
    pub fn is_answered_number(&self, number: u64) -> bool {
        self.is_answered(OperationId::of_number(number))
    }

    /// Takes the outcome of an operation that was answered; `None` for one that is not of the block.
    pub fn take_outcome_number(&mut self, number: u64) -> Option<Outcome> {
        self.take_outcome(OperationId::of_number(number))
    }

    /// The operation of the last block that failed, or else the first that did not run or was undone; `but` for those
    /// that somebody else looks after, by their numbers in order.
    pub fn first_failed(&self, but: &[u64]) -> Option<OperationId> {
        let is_failed = |outcome: &Outcome| matches!(outcome, Outcome::Failed(_));
        let is_bad = |outcome: &Outcome| matches!(outcome, Outcome::Aborted { .. } | Outcome::Undone { .. });
        let counts = |id: OperationId| but.binary_search(&id.number()).is_err();
        let first =
            |is: &dyn Fn(&Outcome) -> bool| self.outcomes().find(|(id, outcome)| counts(*id) && is(outcome));
        first(&is_failed).or_else(|| first(&is_bad)).map(|(id, _)| id)
    }
}
