// Made from aio/rows.rs by tests/twins.rs: change that one.
use super::Client;
use crate::core::{Read, Reading};
use crate::{Columns, CommandTag, Error, OperationId, Row};

/// The rows of one statement, read as they arrive. Dropping it leaves the rest to be read and thrown away by the next
/// call.
#[derive(Debug)]
pub struct Rows<'c> {
    client: &'c mut Client,
    reading: Reading,
}

impl<'c> Rows<'c> {
    pub(super) fn new(client: &'c mut Client, operation: OperationId) -> Self {
        let reading = Reading::new(&client.core, operation);
        Self { client, reading }
    }

    /// The columns; none for a statement that returns no rows.
    pub fn columns(&self) -> &Columns {
        self.reading.columns()
    }

    /// What the statement did, once all rows are read.
    pub fn tag(&self) -> Option<CommandTag> {
        self.reading.tag()
    }

    /// The next row; it borrows the bytes as they came. `None` is the end: then the statement holds.
    ///
    /// # Errors
    /// The statement fails, perhaps after rows of it have come.
    pub fn next_row(&mut self) -> Result<Option<Row<'_>>, Error> {
        while !self.reading.is_over() {
            let event = self.client.event();
            match self.reading.take(event)? {
                Read::Row(row) => return Ok(Some(self.client.core.row(row))),
                Read::Failed(error) => {
                    self.client.settle()?;
                    return Err(error.or_timed_out());
                }
                Read::Other => {}
            }
        }
        Ok(None)
    }
}
