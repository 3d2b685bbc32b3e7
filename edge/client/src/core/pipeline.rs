//! Blocks of operations that travel together.
//!
//! What is sent for one operation, outside a transaction (`op` is Parse, Bind and Execute, as far as needed):
//!
//! ```text
//!   Abort      op op op … Sync                        one implicit transaction: all of it or nothing
//!   Continue   op Sync  op Sync  op Sync …            each its own transaction
//! ```
//!
//! and in a transaction, where the server forgives no error before a ROLLBACK:
//!
//! ```text
//!   Abort      op op op … Sync
//!   Continue   SAVEPOINT  op RELEASE SAVEPOINT Sync  ROLLBACK-TO op RELEASE SAVEPOINT Sync  ROLLBACK-TO … RELEASE Sync
//! ```
//!
//! If `op` succeeds, RELEASE keeps it and the new savepoint comes after it. So ROLLBACK TO undoes nothing. If
//! `op` fails, the server skips RELEASE and SAVEPOINT, and ROLLBACK TO undoes `op` alone. Savepoints do not accumulate.

use super::block::Outcome;
use super::control::Control;
use super::queue::Kind;
use super::statements::{Slot, Standing};
use super::{Connection, OnError, OperationId, Request};
use crate::error::Usage;
use crate::{Done, Error};

const SAVEPOINT: &str = "SAVEPOINT onetrip_pipeline";
const RELEASE: &str = "RELEASE SAVEPOINT onetrip_pipeline";
const ROLLBACK_TO: &str = "ROLLBACK TO SAVEPOINT onetrip_pipeline";

impl Connection {
    /// Opens a block. Everything asked before has to be answered.
    ///
    /// # Errors
    /// A connection without pipelining, with a block that is open already, or that is closed.
    pub fn begin_block(&mut self, on_error: OnError) -> Result<(), Error> {
        if self.is_lost() {
            return Err(Error::Closed);
        }
        if !self.limits().pipelining {
            return Err(Usage::PipeliningOff.into());
        }
        if self.block.is_open {
            return Err(Usage::InsideBlock.into());
        }
        if !self.is_settled() {
            return Err(Usage::Barrier.into());
        }
        let in_transaction = self.status != onetrip_wire::pg::TransactionStatus::Idle;
        self.block.begin(on_error, self.last_id + 1, in_transaction);
        Ok(())
    }

    /// Whether the operations before have to be answered before one of this kind can be pushed. Only a change of
    /// mode outside of a transaction asks for that: the server itself could not say which of them shall still run.
    pub fn needs_barrier(&self, on_error: Option<OnError>) -> bool {
        let block = &self.block;
        if block.in_transaction || block.stopped_by.is_some() {
            return false;
        }
        let goes_on = on_error.unwrap_or(block.on_error) == OnError::Continue;
        let is_open = block.forgettable.is_some_and(|id| !self.is_answered(OperationId(id)));
        is_open || (goes_on && block.abortable.is_some())
    }

    /// Adds an operation to the block. Nothing is waited for.
    ///
    /// # Errors
    /// No open block; [`Usage::Barrier`] where [`needs_barrier`](Self::needs_barrier) says so; parameters that cannot
    /// be written; COPY without data; a connection that is closed. The operation is not part of the block then.
    pub fn push(&mut self, request: &Request<'_>, on_error: Option<OnError>) -> Result<OperationId, Error> {
        let control = Control::of(request.text);
        if request.copy.is_none() && control == Control::Copy {
            return Err(Usage::UseCopy.into());
        }
        self.push_with(on_error, control, |core, id, kind| core.put_operation(id, kind, request))
    }

    /// Adds an operation with something of our own before it, without which it fails.
    pub(super) fn push_after(
        &mut self,
        request: &Request<'_>,
        on_error: Option<OnError>,
        before: impl FnOnce(&mut Self, u64),
    ) -> Result<OperationId, Error> {
        self.push_with(on_error, Control::None, |core, id, kind| {
            before(core, id);
            core.put_operation(id, kind, request)
        })
    }

    /// Adds the fetching of more rows of a portal to the block: `request` is the one that made it.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn push_fetch(
        &mut self,
        request: &Request<'_>,
        row_limit: Option<std::num::NonZeroU32>,
        on_error: Option<OnError>,
    ) -> Result<OperationId, Error> {
        self.push_with(on_error, Control::None, |core, id, kind| {
            core.put_fetch(id, kind, request, row_limit);
            Ok(())
        })
    }

    fn push_with(
        &mut self,
        on_error: Option<OnError>,
        control: Control,
        put: impl FnOnce(&mut Self, u64, Kind) -> Result<(), Error>,
    ) -> Result<OperationId, Error> {
        let goes_on = on_error.unwrap_or(self.block.on_error) == OnError::Continue;
        self.check_push(on_error, goes_on, control)?;
        let id = self.next_id();
        if let Some(by) = self.block.stopped_by {
            self.block.add(Outcome::Aborted { by });
            return Ok(id);
        }
        self.block.add(Outcome::Waiting(None));
        let put = self.put_pushed(id.0, goes_on, control, put);
        if put.is_err() {
            self.block.remove_last();
            self.last_id -= 1;
        }
        put.map(|()| id)
    }

    fn check_push(&self, on_error: Option<OnError>, goes_on: bool, control: Control) -> Result<(), Error> {
        match () {
            () if !self.block.is_open => Err(Usage::OutsideBlock.into()),
            () if self.is_lost() => Err(Error::Closed),
            () if self.needs_barrier(on_error) => Err(Usage::Barrier.into()),
            () if goes_on && self.block.in_transaction && control == Control::Savepoint => {
                Err(Usage::Savepoint.into())
            }
            () if self.block.bytes > self.limits.bytes => {
                Err(Error::TooLarge { what: "the results of the block", limit: self.limits.bytes })
            }
            () => Ok(()),
        }
    }

    fn put_pushed(
        &mut self,
        id: u64,
        goes_on: bool,
        control: Control,
        put: impl FnOnce(&mut Self, u64, Kind) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let ends = matches!(control, Control::Commit | Control::Rollback);
        match (self.block.in_transaction, goes_on) {
            (true, true) if !ends => {
                self.put_shield(id)?;
                put(self, id, Kind::Operation { shielded: true })?;
                self.put_seal(id)?;
            }
            (true, _) => {
                if !ends {
                    self.drop_shield(id)?;
                }
                put(self, id, Kind::Operation { shielded: goes_on && ends })?;
                if ends {
                    self.block.in_transaction = false;
                    self.block.is_shielded = false;
                }
                self.book_mode(id, goes_on && ends);
            }
            (false, _) if control == Control::Begin => {
                put(self, id, Kind::Operation { shielded: false })?;
                self.block.in_transaction = true;
                self.block.abortable = Some(id);
            }
            (false, _) => {
                put(self, id, Kind::Operation { shielded: goes_on })?;
                self.book_mode(id, goes_on);
            }
        }
        Ok(())
    }

    /// After an operation that goes on comes a Sync; one that does not is remembered.
    fn book_mode(&mut self, id: u64, goes_on: bool) {
        if goes_on {
            self.put_block_sync(id);
        } else {
            self.block.abortable = Some(id);
        }
    }

    fn put_block_sync(&mut self, id: u64) {
        self.put_sync(id);
        self.block.forgettable = self.block.abortable.take().or(self.block.forgettable);
    }

    /// Makes sure that the savepoint is set before the next operation.
    fn put_shield(&mut self, id: u64) -> Result<(), Error> {
        if self.block.is_shielded {
            return Ok(());
        }
        // The three are prepared where no error of an operation can keep the server from it.
        for slot in self.shield_slots() {
            if self.statements[slot].standing == Standing::Absent && self.statements.is_caching() {
                self.statements.hold(slot);
                self.put_prepare(id, slot);
            }
        }
        self.put_operation(id, Kind::Own, &Request::new(SAVEPOINT, &[]))?;
        self.block.is_shielded = true;
        Ok(())
    }

    fn put_seal(&mut self, id: u64) -> Result<(), Error> {
        self.put_operation(id, Kind::Seal, &Request::new(RELEASE, &[]))?;
        self.put_operation(id, Kind::Seal, &Request::new(SAVEPOINT, &[]))?;
        self.put_block_sync(id);
        self.put_operation(id + 1, Kind::Own, &Request::new(ROLLBACK_TO, &[]))
    }

    fn drop_shield(&mut self, id: u64) -> Result<(), Error> {
        if !self.block.is_shielded {
            return Ok(());
        }
        self.block.is_shielded = false;
        self.put_operation(id, Kind::Own, &Request::new(RELEASE, &[]))
    }

    fn shield_slots(&mut self) -> [Slot; 3] {
        let Self { shield_slots, statements, .. } = self;
        *shield_slots.get_or_insert_with(|| {
            [SAVEPOINT, RELEASE, ROLLBACK_TO].map(|text| statements.acquire(text, &[]))
        })
    }

    /// Makes the server send what it has for the operations so far, without ending their transaction.
    pub fn request_replies(&mut self) {
        self.flush();
    }

    /// Ends the implicit transaction of the operations so far: [`needs_barrier`](Self::needs_barrier) asks for this,
    /// and for waiting until all of them are answered.
    pub fn put_barrier(&mut self) {
        let id = self.last_id;
        self.sync_if_needed(id);
        self.block.abortable = None;
        self.block.forgettable = None;
    }

    /// Ends the block: commits what is outside of a transaction. The outcomes are final once
    /// [`is_settled`](Self::is_settled).
    ///
    /// # Errors
    /// No open block.
    pub fn end_block(&mut self) -> Result<(), Error> {
        if !self.block.is_open {
            return Err(Usage::OutsideBlock.into());
        }
        self.block.is_open = false;
        if self.block.is_shielded && !self.is_lost() {
            let id = self.next_id().0;
            self.drop_shield(id)?;
        }
        let id = self.last_id;
        self.sync_if_needed(id);
        if !self.is_lost() {
            self.put_lines(id);
        }
        Ok(())
    }

    /// Whether a transaction will be open once everything pushed to the block has run.
    pub fn block_in_transaction(&self) -> bool {
        self.block.in_transaction
    }

    /// Whether an operation of the block has been answered for good.
    pub fn is_answered(&self, operation: OperationId) -> bool {
        self.queue.front().is_none_or(|awaited| awaited.id > operation.0)
    }

    /// The last operation that was asked for.
    pub fn last_operation(&self) -> OperationId {
        OperationId(self.last_id)
    }

    /// What became of an operation of the block, or of the one before if none is open.
    pub fn outcome(&self, operation: OperationId) -> Option<&Outcome> {
        self.block.get(operation.0)
    }

    /// What became of all operations of the block, in their order.
    pub fn outcomes(&self) -> impl Iterator<Item = (OperationId, &Outcome)> {
        self.block.outcomes()
    }

    /// Takes the outcome of an operation that was answered; the memory of its rows is the caller's then.
    pub fn take_outcome(&mut self, operation: OperationId) -> Option<Outcome> {
        if !self.is_answered(operation) {
            return self.block.get(operation.0).map(|_| Outcome::Waiting(None));
        }
        self.block.take(operation.0)
    }

    /// Takes the result of an operation that was answered.
    ///
    /// # Errors
    /// The operation's own, or that it has not been answered or is not of the block.
    pub(crate) fn take_result(&mut self, operation: OperationId) -> Result<Done, Error> {
        self.take_outcome(operation).ok_or(Error::Usage(Usage::UnknownOperation))?.into_result()
    }

    /// Says that every operation of the block ran.
    ///
    /// # Errors
    /// The first error of an operation.
    pub fn check_outcomes(&self) -> Result<(), Error> {
        let is_bad = |outcome: &Outcome| !matches!(outcome, Outcome::Done(_) | Outcome::Taken);
        let failed = self.outcomes().find(|(_, outcome)| matches!(outcome, Outcome::Failed(_)));
        let bad = failed.or_else(|| self.outcomes().find(|(_, outcome)| is_bad(outcome)));
        match bad.map(|(_, outcome)| outcome.clone()) {
            Some(outcome) => outcome.into_result().map(drop),
            None => Ok(()),
        }
    }
}
