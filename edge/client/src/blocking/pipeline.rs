// Made from aio/pipeline.rs by tests/twins.rs: change that one.
use std::num::NonZeroU32;

use super::{Client, Request};
use crate::core::{OnError, Outcome, SendPace, call_of};
use crate::{Done, Error, OperationId, Outcomes, Param};

/// A block of independent operations that travel together. It ends by [`end`](Self::end); dropped without that, it is
/// ended by the client's next call, and what was pushed still runs.
///
/// ```no_run
/// # use onetrip_client::{OnError, Error, blocking::Client};
/// # fn transfer(client: &mut Client) -> Result<(), Error> {
/// let mut pipeline = client.pipeline(OnError::Abort)?;
/// pipeline.begin()?;
/// pipeline.execute("UPDATE account SET balance = balance - $1 WHERE id = $2", &[&100, &1])?;
/// pipeline.execute("UPDATE account SET balance = balance + $1 WHERE id = $2", &[&100, &2])?;
/// let commit = pipeline.commit()?;
/// let mut outcomes = pipeline.end()?; // one trip for all four
/// outcomes.take(commit)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Pipeline<'c> {
    pub(super) client: &'c mut Client,
    pace: SendPace,
}

impl<'c> Pipeline<'c> {
    pub(super) fn new(client: &'c mut Client) -> Self {
        Self { client, pace: SendPace::default() }
    }

    /// Adds a statement. Rows that it returns are kept for its outcome.
    ///
    /// # Errors
    /// Parameters that cannot be written, a block whose results have grown too large, a statement that does not fit
    /// into a pipeline: then it is not part of the block. Errors of the server show in the outcome.
    pub fn execute(&mut self, statement: &str, parameters: &[&dyn Param]) -> Result<OperationId, Error> {
        self.push(&Request::new(statement, parameters), None)
    }

    /// Adds a statement with what its failure does to those after it, other than the block says.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub fn execute_with(
        &mut self,
        statement: &str,
        parameters: &[&dyn Param],
        on_error: Option<OnError>,
    ) -> Result<OperationId, Error> {
        self.push(&Request::new(statement, parameters), on_error)
    }

    /// Adds a statement as the request says, with what its failure does to those after it.
    ///
    /// Outside of a transaction, an operation that goes on after those that do not makes this call wait for their
    /// answers: only then is it known whether it may run.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub fn push(&mut self, request: &Request<'_>, on_error: Option<OnError>) -> Result<OperationId, Error> {
        if self.client.core.needs_barrier(on_error) {
            self.client.core.put_barrier();
            self.wait_settled()?;
        }
        let id = self.client.core.push(request, on_error)?;
        self.send()?;
        Ok(id)
    }

    /// Adds the fetching of more rows of a portal that an operation with a portal's name has opened; `request` is that
    /// operation's. Portals live until the end of the transaction, so there has to be one.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub fn fetch(
        &mut self,
        request: &Request<'_>,
        row_limit: Option<NonZeroU32>,
    ) -> Result<OperationId, Error> {
        let core = &mut self.client.core;
        let id = core.push_fetch(request, row_limit, None)?;
        self.send()?;
        Ok(id)
    }

    /// Adds a call of a function of the server, by its name as it would be written in a statement.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub fn call(&mut self, function: &str, arguments: &[&dyn Param]) -> Result<OperationId, Error> {
        self.execute(&call_of(function, arguments.len()), arguments)
    }

    /// Adds a `COPY … FROM STDIN` with its data.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub fn copy_in(&mut self, statement: &str, data: &[u8]) -> Result<OperationId, Error> {
        self.push(&Request { copy: Some(data), ..Request::new(statement, &[]) }, None)
    }

    /// Adds BEGIN.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub fn begin(&mut self) -> Result<OperationId, Error> {
        let begin = self.client.core.begin_statement();
        self.execute(&begin, &[])
    }

    /// Adds COMMIT. Its outcome is an error where the transaction was rolled back instead.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub fn commit(&mut self) -> Result<OperationId, Error> {
        self.execute("COMMIT", &[])
    }

    /// Adds ROLLBACK.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub fn rollback(&mut self) -> Result<OperationId, Error> {
        self.execute("ROLLBACK", &[])
    }

    /// Waits until an operation and those before it are answered. The block goes on, and so does its transaction.
    ///
    /// # Errors
    /// A connection that is lost; what is known of each operation is in its outcome.
    pub fn process(&mut self, up_to: OperationId) -> Result<(), Error> {
        if !self.client.core.is_answered(up_to) {
            self.client.core.request_replies();
        }
        while !self.client.core.is_answered(up_to) {
            self.step()?;
        }
        Ok(())
    }

    /// What became of an operation so far.
    pub fn outcome(&self, operation: OperationId) -> Option<&Outcome> {
        self.client.core.outcome(operation)
    }

    /// Takes the result of an operation that was answered, and with it the memory of its rows.
    ///
    /// # Errors
    /// The operation's own, or [`Error::Usage`] where it has not been answered.
    pub fn take(&mut self, operation: OperationId) -> Result<Done, Error> {
        self.client.core.take_result(operation)
    }

    /// Ends the block: outside of a transaction what ran is committed. Waits for all answers.
    ///
    /// # Errors
    /// A connection that is lost; the outcomes are to be had from [`Client::outcomes`] even then.
    pub fn end(mut self) -> Result<Outcomes<'c>, Error> {
        self.client.core.end_block()?;
        self.wait_settled()?;
        Ok(self.client.outcomes())
    }

    pub(super) fn wait_settled(&mut self) -> Result<(), Error> {
        while !self.client.core.is_settled() {
            self.step()?;
        }
        Ok(())
    }

    /// Takes what has come, then waits for more.
    fn step(&mut self) -> Result<(), Error> {
        let before = self.client.core.depth();
        while self.client.core.next_event()?.is_some() {}
        if self.client.core.depth() == before && !self.client.core.is_settled() {
            self.client.exchange();
        }
        Ok(())
    }

    /// Sends once enough is there, and bounds what is unanswered.
    pub(super) fn send(&mut self) -> Result<(), Error> {
        if self.pace.is_due(&self.client.core) {
            self.client.exchange_now();
            while self.client.core.next_event()?.is_some() {}
        }
        while SendPace::must_wait(&self.client.core) {
            self.client.send_some();
            while self.client.core.next_event()?.is_some() {}
        }
        if SendPace::is_too_deep(&self.client.core) {
            self.client.core.request_replies();
            while SendPace::is_deep(&self.client.core) {
                self.step()?;
            }
        }
        Ok(())
    }
}

impl Client {
    /// What became of the operations of the last block, also after the connection was lost.
    pub fn outcomes(&mut self) -> Outcomes<'_> {
        Outcomes::of(&mut self.core)
    }
}
