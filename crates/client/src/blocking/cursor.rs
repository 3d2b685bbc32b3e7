//! Results that are read side by side, each by a portal of its own, with rows fetched ahead.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroU32;

use super::Client;
use crate::core::{Event, Fetch, Request, Window};
use crate::{Columns, Error, OperationId, Param, ResultSet, Row, TransactionStatus, Usage};

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
    at: usize,
    is_asked: bool,
    has_more: bool,
    failed: Option<Error>,
}

/// All cursors of a client.
#[derive(Debug, Default)]
pub(super) struct Cursors {
    open: HashMap<OperationId, State>,
}

impl Cursors {
    /// Takes what belongs to a cursor; gives back what does not.
    pub(super) fn route(&mut self, core: &crate::core::Connection, event: Event) -> Option<Event> {
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

    fn memory(&self) -> usize {
        self.open
            .values()
            .flat_map(|state| state.parts.iter().chain(&state.coming))
            .map(ResultSet::memory)
            .sum()
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

impl Client {
    /// Opens a cursor. Its rows can be read side by side with those of others; each is fetched in parts.
    ///
    /// # Errors
    /// [`Usage::NoTransaction`] outside of a transaction; errors of the server show when rows are read.
    pub fn open_cursor(
        &mut self,
        statement: &str,
        parameters: &[&dyn Param],
        fetch: Fetch,
    ) -> Result<Cursor, Error> {
        self.settle()?;
        if self.core.transaction_status() != TransactionStatus::Active {
            return Err(Usage::NoTransaction.into());
        }
        let portal = format!("onetrip_{}", self.core.last_operation().number() + 1);
        let window = Window::new(fetch);
        let request = Request {
            portal: &portal,
            row_limit: window.next_rows(self.cursor_room()),
            ..Request::new(statement, parameters)
        };
        let operation = self.core.submit(&request)?;
        self.core.sync();
        let state = State {
            statement: statement.to_owned(),
            portal,
            window,
            columns: Columns::default(),
            parts: VecDeque::new(),
            coming: None,
            at: 0,
            is_asked: true,
            has_more: true,
            failed: None,
        };
        self.cursors.open.insert(operation, state);
        Ok(Cursor { operation })
    }

    /// The next row of a cursor; `None` is its end. It waits only where no row has been fetched ahead.
    ///
    /// # Errors
    /// The statement's error, or a cursor that was closed.
    pub fn next_row(&mut self, cursor: &Cursor) -> Result<Option<Row<'_>>, Error> {
        let unknown = Error::Usage(Usage::UnknownOperation);
        loop {
            let state = self.cursors.open.get_mut(&cursor.operation).ok_or_else(|| unknown.clone())?;
            // A part that was read to its end makes room for the next.
            while state.parts.front().is_some_and(|part| part.is_end(state.at)) {
                state.parts.pop_front();
                state.at = 0;
            }
            if state.wants_more() {
                self.ask_for_more(cursor.operation)?;
                self.exchange_now();
                continue;
            }
            let has_row = !state.parts.is_empty();
            if has_row || !state.is_asked {
                break;
            }
            if let Some(event) = self.routed_event()? {
                drop(event);
            } else {
                self.exchange();
            }
        }
        let state = self.cursors.open.get_mut(&cursor.operation).ok_or(unknown)?;
        match state.parts.front() {
            Some(part) => Ok(part.row_at(&mut state.at)),
            None => state.failed.clone().map_or(Ok(None), Err),
        }
    }

    /// Closes a cursor: rows that were fetched ahead are thrown away.
    ///
    /// # Errors
    /// A connection that has ended.
    pub fn close_cursor(&mut self, cursor: Cursor) -> Result<(), Error> {
        if let Some(state) = self.cursors.open.remove(&cursor.operation) {
            self.settle()?;
            self.core.close_portal(&state.portal);
        }
        Ok(())
    }

    /// Bytes of rows that cursors have fetched ahead.
    pub fn cursor_memory(&self) -> usize {
        self.cursors.memory()
    }

    fn cursor_room(&self) -> usize {
        let open = self.cursors.open.len() + 1;
        self.core.limits().read_ahead / open
    }

    fn ask_for_more(&mut self, operation: OperationId) -> Result<(), Error> {
        let room = self.core.limits().read_ahead / self.cursors.open.len().max(1);
        let Some(state) = self.cursors.open.get_mut(&operation) else { return Ok(()) };
        state.is_asked = true;
        let request = Request { portal: &state.portal, ..Request::new(&state.statement, &[]) };
        let limit: Option<NonZeroU32> = state.window.next_rows(room);
        self.core.fetch(operation, &request, limit)?;
        self.core.sync();
        Ok(())
    }
}
