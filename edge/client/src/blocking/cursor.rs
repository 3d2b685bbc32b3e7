// Made from aio/cursor.rs by tests/twins.rs: change that one.
use super::Client;
use crate::core::{Cursor, Fetch, Next};
use crate::{Error, Param, Row};

impl Client {
    /// Opens a cursor. Its rows can be read side by side with those of others; each is fetched in parts.
    ///
    /// # Errors
    /// [`Usage::NoTransaction`](crate::Usage::NoTransaction) outside of a transaction; errors of the server show when
    /// rows are read.
    pub fn open_cursor(
        &mut self,
        statement: &str,
        parameters: &[&dyn Param],
        fetch: Fetch,
    ) -> Result<Cursor, Error> {
        self.settle()?;
        let Self { core, cursors, .. } = self;
        cursors.open(core, statement, parameters, fetch)
    }

    /// The next row of a cursor; `None` is its end. It waits only where no row has been fetched ahead.
    ///
    /// # Errors
    /// The statement's error, or a cursor that was closed.
    pub fn next_row(&mut self, cursor: &Cursor) -> Result<Option<Row<'_>>, Error> {
        loop {
            match self.cursors.next(&mut self.core, cursor)? {
                Next::Here => return self.cursors.take(cursor),
                Next::Asked => self.exchange_now(),
                Next::Coming => {
                    if self.routed_event()?.is_none() {
                        self.exchange();
                    }
                }
            }
        }
    }

    /// Closes a cursor: rows that were fetched ahead are thrown away.
    ///
    /// # Errors
    /// A connection that has ended.
    pub fn close_cursor(&mut self, cursor: Cursor) -> Result<(), Error> {
        if let Some(portal) = self.cursors.close(&cursor) {
            self.settle()?;
            self.core.close_portal(&portal);
        }
        Ok(())
    }

    /// Bytes of rows that cursors have fetched ahead.
    pub fn cursor_memory(&self) -> usize {
        self.cursors.memory()
    }
}
