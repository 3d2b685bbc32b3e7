// Made from aio/run.rs by tests/twins.rs: change that one.
//! Statements whose results are kept whole, with the transaction begun in the same trip.

use super::{Client, Pipeline, Request};
use crate::core::Gather;
use crate::{Done, Error, OperationId, TransactionStatus, Usage};

impl Client {
    /// Runs one statement and keeps its rows. With `begins`, BEGIN travels along if no transaction is open.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub fn run(&mut self, request: &Request<'_>, begins: bool) -> Result<Done, Error> {
        self.settle()?;
        let is_idle = self.core.transaction_status() == TransactionStatus::Idle;
        let done = match self.run_once(request, begins) {
            // Nothing has run: the server no longer had the statement.
            Err(error) if is_idle && error.is_about_a_stale_statement() => {
                if begins {
                    self.rollback()?;
                }
                self.run_once(request, begins)
            }
            done => done,
        };
        done?.pop().ok_or(Error::Protocol("it completes nothing where it must"))
    }

    /// Runs statements without parameters, separated by semicolons, and keeps the rows of each. Values come as text.
    ///
    /// # Errors
    /// The first error of a statement.
    pub fn run_script(&mut self, text: &str, begins: bool) -> Result<Vec<Done>, Error> {
        self.settle()?;
        let (begins, _) = self.core.submit_script_in_transaction(text, begins)?;
        let mut done = self.gather()?;
        done.drain(..usize::from(begins));
        Ok(done)
    }

    /// The block that is open, for callers that cannot keep the [`Pipeline`] which [`pipeline`](Self::pipeline) gave.
    ///
    /// # Errors
    /// [`Usage::OutsideBlock`].
    pub fn open_pipeline(&mut self) -> Result<Pipeline<'_>, Error> {
        if !self.core.is_in_block() {
            return Err(Usage::OutsideBlock.into());
        }
        Ok(Pipeline::new(self))
    }

    fn run_once(&mut self, request: &Request<'_>, begins: bool) -> Result<Vec<Done>, Error> {
        self.core.submit_in_transaction(request, begins)?;
        self.gather()
    }

    /// Waits until all is answered.
    fn gather(&mut self) -> Result<Vec<Done>, Error> {
        let mut gather = Gather::default();
        while !self.core.is_settled() {
            let event = self.event()?;
            gather.take(&mut self.core, event);
        }
        gather.finish().map_err(Error::or_timed_out)
    }
}

impl Pipeline<'_> {
    /// The operation of this block with a number.
    pub fn operation(&self, number: u64) -> Option<OperationId> {
        self.client.core.operation_of_block(number)
    }
}
