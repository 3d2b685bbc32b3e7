use super::Client;
use crate::core::{Event, Finish, Request};
use crate::{CommandTag, Error};

/// Data is handed to the socket in pieces of this size, in bytes.
const SEND_BYTES: usize = 64 * 1024;

/// A `COPY … FROM STDIN` that takes data. Nothing is kept before [`finish`](Self::finish); dropped without that, the
/// COPY fails and keeps nothing.
#[derive(Debug)]
pub struct CopyIn<'c> {
    client: &'c mut Client,
    failed: Option<Error>,
    is_finished: bool,
}

impl CopyIn<'_> {
    /// Adds data, in the format that the statement asks for. What fails it shows here or at the end. A future of it that
    /// is dropped may have added a part.
    ///
    /// # Errors
    /// The server has refused the statement or data before.
    pub async fn send(&mut self, data: &[u8]) -> Result<(), Error> {
        for piece in data.chunks(SEND_BYTES) {
            if let Some(error) = &self.failed {
                return Err(error.clone());
            }
            self.client.core.copy_data(piece);
            if self.client.core.output_bytes() >= SEND_BYTES {
                self.client.exchange_now();
                self.hear()?;
            }
            while self.client.core.output_bytes() > 4 * SEND_BYTES && self.failed.is_none() {
                self.client.send_some().await;
                self.hear()?;
            }
        }
        Ok(())
    }

    /// Ends the data and returns how many rows were copied.
    ///
    /// # Errors
    /// The server has refused the statement or its data: then no row of it is kept.
    pub async fn finish(mut self) -> Result<u64, Error> {
        self.is_finished = true;
        self.client.core.copy_done();
        self.client.core.sync();
        let done = self.client.finish(Finish::of_copy()).await;
        match self.failed.take() {
            Some(error) => Err(error),
            None => done.map(|tag| tag.rows()),
        }
    }

    /// An error may come while data is still being sent.
    fn hear(&mut self) -> Result<(), Error> {
        while let Some(event) = self.client.core.next_event()? {
            if let Event::Failed { error, .. } = event {
                self.failed.get_or_insert(error);
            }
        }
        Ok(())
    }
}

impl Drop for CopyIn<'_> {
    fn drop(&mut self) {
        if !self.is_finished {
            self.client.core.copy_fail("the client gave up");
        }
    }
}

/// The data of a `COPY … TO STDOUT`, as it arrives. Dropping it leaves the rest to be read and thrown away by the next
/// call.
#[derive(Debug)]
pub struct CopyOut<'c> {
    client: &'c mut Client,
    tag: Option<CommandTag>,
    is_over: bool,
}

impl CopyOut<'_> {
    /// The next piece of data: a row, in the text formats. `None` is the end.
    ///
    /// # Errors
    /// The server fails, perhaps after data has come.
    pub async fn next_piece(&mut self) -> Result<Option<&[u8]>, Error> {
        while !self.is_over {
            match self.client.event().await? {
                Event::CopyData { data, .. } => return Ok(Some(self.client.core.copied(data))),
                Event::Complete { tag, .. } => self.tag = Some(tag),
                Event::CopyIn { .. } => {
                    self.client.core.copy_refuse("this call takes data, and has none to give");
                }
                Event::Failed { error, .. } => {
                    self.is_over = true;
                    self.client.settle().await?;
                    return Err(error);
                }
                Event::Ready(_) => self.is_over = true,
                _ => {}
            }
        }
        Ok(None)
    }

    /// How many rows were copied, once all data is read.
    pub fn rows(&self) -> Option<u64> {
        self.tag.map(|tag| tag.rows())
    }
}

impl Client {
    /// Begins a `COPY … FROM STDIN`. No trip is spent on asking whether the server is willing: data follows at once.
    ///
    /// # Errors
    /// A statement that is not COPY, or a connection that has ended.
    pub async fn copy_in(&mut self, statement: &str) -> Result<CopyIn<'_>, Error> {
        self.start_copy(statement).await?;
        Ok(CopyIn { client: self, failed: None, is_finished: false })
    }

    /// Runs a `COPY … TO STDOUT`.
    ///
    /// # Errors
    /// As [`copy_in`](Self::copy_in).
    pub async fn copy_out(&mut self, statement: &str) -> Result<CopyOut<'_>, Error> {
        self.start_copy(statement).await?;
        self.core.sync();
        Ok(CopyOut { client: self, tag: None, is_over: false })
    }

    async fn start_copy(&mut self, statement: &str) -> Result<(), Error> {
        self.settle().await?;
        self.core.submit_copy(&Request::new(statement, &[])).map(drop)
    }
}
