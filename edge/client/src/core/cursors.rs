//! Results that are read side by side, each by a portal of its own, with rows fetched ahead.

use onetrip_wire::pg::TransactionStatus;
use std::collections::{HashMap, VecDeque};
use std::num::NonZeroU32;

use super::{Connection, Event, Fetch, OperationId, Request, Window};
use crate::{Columns, Error, Param, Place, ResultSet, Row, Usage};

/// A result that is read in parts, next to others. It lives until the end of the transaction.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Cursor {
    operation: OperationId,
}

/// What a client keeps of a cursor.
#[derive(Debug)]
struct State {
    statement: String,
    portal: String,
    window: Window,
    columns: Columns,
    /// Parts that have come whole, oldest first.
    parts: VecDeque<ResultSet>,
    /// The part that is coming.
    coming: Option<ResultSet>,
    /// Position in the oldest part, in bytes.
    at: Place,
    is_asked: bool,
    has_more: bool,
    failed: Option<Error>,
}

/// What the reader of a cursor has to do first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing: the next row is there, or there is none.
    Here,
    /// More was asked for: send it.
    Asked,
    /// Wait for what was asked for.
    Coming,
}

/// All cursors of a client.
#[derive(Debug, Default)]
pub(crate) struct Cursors {
    open: HashMap<OperationId, State>,
}

impl Cursors {
    /// Takes what belongs to a cursor; gives back what does not.
    pub(crate) fn route(&mut self, core: &Connection, event: Event) -> Option<Event> {
        if self.open.is_empty() {
            return Some(event);
        }
        let Some(state) = event.operation().and_then(|operation| self.open.get_mut(&operation)) else {
            return Some(event);
        };
        match event {
            Event::Bound { .. } => state.columns = core.front_columns().clone(),
            Event::Row { row, .. } => {
                let row = core.row(row);
                let columns = &state.columns;
                state
                    .coming
                    .get_or_insert_with(|| ResultSet::new(columns.clone(), row.format()))
                    .push(row.body());
            }
            Event::Suspended { .. } => state.part_came(true),
            Event::Complete { .. } => state.part_came(false),
            Event::Failed { error, .. } => {
                state.part_came(false);
                state.failed = Some(error);
            }
            other => return Some(other),
        }
        None
    }

    /// Asks for the first rows of a statement.
    ///
    /// # Errors
    /// [`Usage::NoTransaction`] outside of a transaction; parameters that cannot be written.
    pub(crate) fn open(
        &mut self,
        core: &mut Connection,
        statement: &str,
        parameters: &[&dyn Param],
        fetch: Fetch,
    ) -> Result<Cursor, Error> {
        if core.transaction_status() != TransactionStatus::Active {
            return Err(Usage::NoTransaction.into());
        }
        let portal = format!("onetrip_{}", core.last_operation().number() + 1);
        let window = Window::new(fetch);
        let room = core.limits().read_ahead / (self.open.len() + 1);
        let row_limit = window.next_rows(room);
        let request = Request { portal: &portal, row_limit, ..Request::new(statement, parameters) };
        let operation = core.submit(&request)?;
        core.sync();
        let state = State {
            statement: statement.to_owned(),
            portal,
            window,
            columns: Columns::default(),
            parts: VecDeque::new(),
            coming: None,
            at: Place::default(),
            is_asked: true,
            has_more: true,
            failed: None,
        };
        self.open.insert(operation, state);
        Ok(Cursor { operation })
    }

    /// What the reader has to do before [`take`](Self::take).
    ///
    /// # Errors
    /// A cursor that was closed, or a connection that has ended.
    pub(crate) fn next(&mut self, core: &mut Connection, cursor: &Cursor) -> Result<Next, Error> {
        let state = self.state(cursor)?;
        // A part that was read to its end makes room for the next.
        while state.parts.front().is_some_and(|part| part.is_end(state.at)) {
            state.parts.pop_front();
            state.at = Place::default();
        }
        if state.wants_more() {
            self.ask_for_more(core, cursor)?;
            return Ok(Next::Asked);
        }
        let has_row = !state.parts.is_empty();
        Ok(if has_row || !state.is_asked { Next::Here } else { Next::Coming })
    }

    /// The next row, once it is there; `None` is the end.
    ///
    /// # Errors
    /// The statement's error.
    pub(crate) fn take(&mut self, cursor: &Cursor) -> Result<Option<Row<'_>>, Error> {
        let state = self.state(cursor)?;
        match state.parts.front() {
            Some(part) => Ok(part.next_row(&mut state.at)),
            None => state.failed.clone().map_or(Ok(None), Err),
        }
    }

    /// Throws away what was fetched ahead; the portal to close.
    pub(crate) fn close(&mut self, cursor: &Cursor) -> Option<String> {
        self.open.remove(&cursor.operation).map(|state| state.portal)
    }

    /// Bytes of rows that were fetched ahead.
    pub(crate) fn memory(&self) -> usize {
        self.open
            .values()
            .flat_map(|state| state.parts.iter().chain(&state.coming))
            .map(ResultSet::memory)
            .sum()
    }

    fn state(&mut self, cursor: &Cursor) -> Result<&mut State, Error> {
        self.open.get_mut(&cursor.operation).ok_or(Error::Usage(Usage::UnknownOperation))
    }

    fn ask_for_more(&mut self, core: &mut Connection, cursor: &Cursor) -> Result<(), Error> {
        let room = core.limits().read_ahead / self.open.len().max(1);
        let state = self.state(cursor)?;
        state.is_asked = true;
        let request = Request { portal: &state.portal, ..Request::new(&state.statement, &[]) };
        let limit: Option<NonZeroU32> = state.window.next_rows(room);
        core.fetch(cursor.operation, &request, limit)?;
        core.sync();
        Ok(())
    }
}

impl State {
    fn part_came(&mut self, has_more: bool) {
        self.is_asked = false;
        self.has_more = has_more;
        if let Some(part) = self.coming.take() {
            self.window.came(part.len(), part.memory());
            self.parts.push_back(part);
        }
    }

    /// Whether the next part should be on its way: the last one is being read.
    fn wants_more(&self) -> bool {
        self.has_more && !self.is_asked && self.parts.len() <= usize::from(self.window.reads_ahead())
    }
}
