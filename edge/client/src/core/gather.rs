//! Results of statements outside blocks, kept whole.

use super::{Connection, Event, Request};
use crate::{CommandTag, Done, Error, OperationId, ResultSet};
use onetrip_wire::pg::TransactionStatus;

/// Takes a call's events and keeps what its statements did, one [`Done`] for each.
#[derive(Debug, Default)]
pub struct Gather {
    done: Vec<Done>,
    coming: Option<Box<ResultSet>>,
    failed: Option<Error>,
    /// The last operation of the calls before.
    before: Option<OperationId>,
}

impl Gather {
    /// Of what is asked from now on: answers to earlier calls, which nobody waited for, are thrown away.
    pub fn from_here(core: &Connection) -> Self {
        Self { before: Some(core.last_operation()), ..Self::default() }
    }

    /// Takes the next event of `core`. Rows are copied out of the input buffer.
    pub fn take(&mut self, core: &mut Connection, event: Event) {
        if self.before.is_some_and(|before| event.operation().is_some_and(|operation| operation <= before)) {
            return;
        }
        match event {
            Event::Bound { .. } => {
                let columns = core.front_columns().clone();
                let has_rows = columns.is_result();
                self.coming = has_rows.then(|| Box::new(ResultSet::new(columns, core.front_format())));
            }
            Event::Row { row, .. } => {
                if let Some(rows) = &mut self.coming {
                    rows.push(core.row(row).body());
                    core.take_rows(rows);
                }
            }
            Event::Complete { tag, .. } => self.complete(tag, false),
            Event::Suspended { .. } => self.complete(CommandTag::new(b""), true),
            Event::Failed { error, .. } => {
                // The first tells most: the others did not run because of it.
                self.failed.get_or_insert(error);
            }
            // Only a script can get here with a COPY: other calls refuse it before it is sent.
            Event::CopyIn { .. } => core.copy_fail("this call has no data for COPY"),
            Event::CopyData { .. } | Event::Ready(_) => {}
        }
    }

    /// Whether a statement has failed already.
    pub fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Takes the rows that have come of the statement under way, before it is known whether it succeeds.
    pub fn take_rows(&mut self) -> Option<Box<ResultSet>> {
        let coming = self.coming.as_mut().filter(|rows| !rows.is_empty())?;
        let next = Box::new(ResultSet::new(coming.columns().clone(), coming.format()));
        Some(std::mem::replace(coming, next))
    }

    /// Memory of the rows that [`take_rows`](Self::take_rows) would take, in bytes.
    pub fn rows_bytes(&self) -> usize {
        self.coming.as_ref().filter(|rows| !rows.is_empty()).map_or(0, |rows| rows.memory())
    }

    /// What the statements did, in their order.
    ///
    /// # Errors
    /// The first that failed.
    pub fn finish(self) -> Result<Vec<Done>, Error> {
        self.failed.map_or(Ok(self.done), Err)
    }

    fn complete(&mut self, tag: CommandTag, has_more: bool) {
        self.done.push(Done { tag, rows: self.coming.take(), has_more });
    }
}

impl Connection {
    /// Asks for one statement, with BEGIN in the same flight if asked for and no transaction is open. Says whether
    /// BEGIN was sent: its [`Done`] comes first then.
    ///
    /// # Errors
    /// As [`submit`](Self::submit). A BEGIN that was written by then is rolled back again, along with the next call.
    pub fn submit_in_transaction(
        &mut self,
        request: &Request<'_>,
        begins: bool,
    ) -> Result<(bool, OperationId), Error> {
        self.check_submit(request)?;
        let begins = self.submit_begin(begins)?;
        let operation = self.submit(request);
        if begins && operation.is_err() {
            self.submit(&Request::new("ROLLBACK", &[]))?;
        }
        self.sync();
        Ok((begins, operation?))
    }

    /// The same for a COPY, whose data follows or comes; [`sync`](Self::sync) has to follow.
    ///
    /// # Errors
    /// As [`submit_copy`](Self::submit_copy).
    pub fn submit_copy_in_transaction(
        &mut self,
        request: &Request<'_>,
        begins: bool,
    ) -> Result<(bool, OperationId), Error> {
        self.check_copy(request)?;
        let begins = self.submit_begin(begins)?;
        Ok((begins, self.submit_copy(request)?))
    }

    /// The same for statements by the simple protocol.
    ///
    /// # Errors
    /// As [`submit_script`](Self::submit_script).
    pub fn submit_script_in_transaction(
        &mut self,
        text: &str,
        begins: bool,
    ) -> Result<(bool, OperationId), Error> {
        let begins = self.submit_begin(begins)?;
        Ok((begins, self.submit_script(text)?))
    }

    fn submit_begin(&mut self, begins: bool) -> Result<bool, Error> {
        let begins = begins && self.transaction_status() == TransactionStatus::Idle;
        if begins {
            let begin = self.begin_statement();
            self.submit(&Request::new(&begin, &[]))?;
        }
        Ok(begins)
    }

    /// Whether a block is open.
    pub fn is_in_block(&self) -> bool {
        self.block.is_open
    }

    /// How the values of the operation at the front are written.
    fn front_format(&self) -> onetrip_wire::pg::Format {
        self.queue.front().map_or_else(Default::default, |front| front.format)
    }
}
