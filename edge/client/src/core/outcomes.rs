use super::block::{Done, Outcome};
use super::connection::Connection;
use crate::{Error, OperationId};

/// What became of the operations of a block, after its end.
#[derive(Debug)]
pub struct Outcomes<'c> {
    core: &'c mut Connection,
}

impl<'c> Outcomes<'c> {
    /// Those of the last block of a connection.
    pub(crate) fn of(core: &'c mut Connection) -> Self {
        Self { core }
    }

    /// Every operation with its outcome, in the order of the block.
    pub fn iter(&self) -> impl Iterator<Item = (OperationId, &Outcome)> {
        self.core.outcomes()
    }

    /// What became of one operation.
    pub fn get(&self, operation: OperationId) -> Option<&Outcome> {
        self.core.outcome(operation)
    }

    /// The operation of this block with a number.
    pub fn operation(&self, number: u64) -> Option<OperationId> {
        self.core.operation_of_block(number)
    }

    /// Takes the result of one operation, and with it the memory of its rows.
    ///
    /// # Errors
    /// The operation's own.
    pub fn take(&mut self, operation: OperationId) -> Result<Done, Error> {
        self.core.take_result(operation)
    }

    /// Says that every operation ran.
    ///
    /// # Errors
    /// The first error of an operation.
    pub fn check(&self) -> Result<(), Error> {
        self.core.check_outcomes()
    }
}
