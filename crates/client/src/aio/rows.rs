use super::Client;
use crate::core::Event;
use crate::{Columns, CommandTag, Error, Row};

/// The rows of one statement, read as they arrive. Dropping it leaves the rest to be read and thrown away by the next
/// call.
#[derive(Debug)]
pub struct Rows<'c> {
    client: &'c mut Client,
    columns: Columns,
    tag: Option<CommandTag>,
    is_over: bool,
}

impl<'c> Rows<'c> {
    pub(super) fn new(client: &'c mut Client) -> Self {
        let columns = client.core.front_columns().clone();
        Self { client, columns, tag: None, is_over: false }
    }

    /// The columns; none for a statement that returns no rows.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// What the statement did, once all rows are read.
    pub fn tag(&self) -> Option<CommandTag> {
        self.tag
    }

    /// The next row; it borrows the bytes as they came. `None` is the end: then the statement holds.
    ///
    /// # Errors
    /// The statement fails, perhaps after rows of it have come.
    pub async fn next_row(&mut self) -> Result<Option<Row<'_>>, Error> {
        while !self.is_over {
            match self.client.event().await {
                Ok(Event::Row { row, .. }) => return Ok(Some(self.client.core.row(row))),
                Ok(Event::Complete { tag, .. }) => self.tag = Some(tag),
                Ok(Event::Failed { error, .. }) => {
                    self.is_over = true;
                    self.client.settle().await?;
                    return Err(error);
                }
                Ok(Event::Ready(_)) => self.is_over = true,
                Ok(_) => {}
                Err(error) => {
                    self.is_over = true;
                    return Err(error);
                }
            }
        }
        Ok(None)
    }
}
