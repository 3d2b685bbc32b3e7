//! What a call makes of the events that it waits for, in whatever way it waits.

use super::{Connection, Event, OperationId, RowSpan};
use crate::{Columns, CommandTag, Error};

/// A call that keeps no rows, until all of it is answered.
#[derive(Debug)]
pub(crate) struct Finish {
    done: CommandTag,
    failed: Option<Error>,
    /// The data of a COPY was sent without waiting to be asked for it.
    has_data: bool,
}

impl Default for Finish {
    fn default() -> Self {
        Self { done: CommandTag::new(b""), failed: None, has_data: false }
    }
}

impl Finish {
    /// Of a COPY whose data was sent.
    pub(crate) fn of_copy() -> Self {
        Self { has_data: true, ..Self::default() }
    }

    /// Takes an event of the call.
    pub(crate) fn take(&mut self, core: &mut Connection, event: Event) {
        match event {
            Event::Complete { tag, .. } => self.done = tag,
            // The first tells most: those after it say that what followed was not answered either.
            Event::Failed { error, .. } => self.failed = self.failed.take().or(Some(error)),
            // Only a script gets here with one: other calls refuse it before it is sent.
            Event::CopyIn { .. } if !self.has_data => core.copy_fail("this call has no data for COPY"),
            _ => {}
        }
    }

    /// What the last statement did.
    pub(crate) fn result(self) -> Result<CommandTag, Error> {
        self.failed.map_or(Ok(self.done), Err)
    }
}

/// The rows of one statement, while they arrive.
#[derive(Debug)]
pub(crate) struct Reading {
    operation: OperationId,
    columns: Columns,
    tag: Option<CommandTag>,
    is_over: bool,
}

/// What an event means to somebody who reads rows.
#[derive(Debug)]
pub(crate) enum Read {
    /// The next row.
    Row(RowSpan),
    /// The statement failed: there are no more rows.
    Failed(Error),
    /// Nothing.
    Other,
}

impl Reading {
    /// Of a statement that is bound.
    pub(crate) fn new(core: &Connection, operation: OperationId) -> Self {
        Self { operation, columns: core.front_columns().clone(), tag: None, is_over: false }
    }

    pub(crate) fn columns(&self) -> &Columns {
        &self.columns
    }

    /// What the statement did, once all rows are read.
    pub(crate) fn tag(&self) -> Option<CommandTag> {
        self.tag
    }

    /// Whether no more rows come.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Takes the next event; a connection that has ended has no more rows either.
    pub(crate) fn take(&mut self, event: Result<Event, Error>) -> Result<Read, Error> {
        match event {
            Ok(Event::Row { operation, row }) if operation == self.operation => return Ok(Read::Row(row)),
            Ok(Event::Complete { tag, .. }) => self.tag = Some(tag),
            Ok(Event::Failed { error, .. }) => {
                self.is_over = true;
                return Ok(Read::Failed(error));
            }
            Ok(Event::Ready(_)) => self.is_over = true,
            Ok(_) => {}
            Err(error) => {
                self.is_over = true;
                return Err(error);
            }
        }
        Ok(Read::Other)
    }
}
