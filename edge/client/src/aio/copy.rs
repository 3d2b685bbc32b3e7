use super::Client;
use crate::Error;
use crate::core::{Copied, CopyingIn, CopyingOut, Finish, Request};

/// A `COPY … FROM STDIN` that takes data. Nothing is kept before [`finish`](Self::finish); dropped without that, the
/// COPY fails and keeps nothing.
#[derive(Debug)]
pub struct CopyIn<'c> {
    pub(super) client: &'c mut Client,
    pub(super) copying: CopyingIn,
}

impl CopyIn<'_> {
    /// Adds data, in the format that the statement asks for. What fails it shows here or at the end.
    /// A future that is dropped may have added a part.
    ///
    /// # Errors
    /// The server has refused the statement or data before.
    pub async fn send(&mut self, data: &[u8]) -> Result<(), Error> {
        for piece in CopyingIn::pieces(data) {
            self.copying.push(&mut self.client.core, piece)?;
            if CopyingIn::is_due(&self.client.core) {
                self.client.exchange_now();
                self.copying.hear(&mut self.client.core)?;
            }
            while self.copying.must_wait(&self.client.core) {
                self.client.send_some().await;
                self.copying.hear(&mut self.client.core)?;
            }
        }
        Ok(())
    }

    /// Ends the data and returns how many rows were copied.
    ///
    /// # Errors
    /// The server has refused the statement or its data: then no row of it is kept.
    pub async fn finish(mut self) -> Result<u64, Error> {
        self.copying.finish(&mut self.client.core);
        let done = self.client.finish(Finish::of_copy()).await;
        self.copying.result(done)
    }

    /// Ends it for a reason, which the server repeats in its error: nothing is kept.
    ///
    /// # Errors
    /// That of the server, in any case.
    pub async fn give_up(mut self, why: &str) -> Result<u64, Error> {
        self.copying.give_up(&mut self.client.core, why);
        let done = self.client.finish(Finish::of_copy()).await;
        self.copying.result(done)
    }
}

impl Drop for CopyIn<'_> {
    fn drop(&mut self) {
        self.copying.leave(&mut self.client.core);
    }
}

/// The data of a `COPY … TO STDOUT`, as it arrives. Dropping it leaves the rest to be read and thrown away by the next
/// call.
#[derive(Debug)]
pub struct CopyOut<'c> {
    pub(super) client: &'c mut Client,
    pub(super) copying: CopyingOut,
}

impl CopyOut<'_> {
    /// The next piece of data: a row, in the text formats. `None` is the end.
    ///
    /// # Errors
    /// The server fails, perhaps after data has come.
    pub async fn next_piece(&mut self) -> Result<Option<&[u8]>, Error> {
        self.piece(true).await
    }

    /// The next piece if it has come already, without waiting for it. `None` is the end too.
    ///
    /// # Errors
    /// As [`next_piece`](Self::next_piece).
    pub async fn piece_here(&mut self) -> Result<Option<&[u8]>, Error> {
        self.piece(false).await
    }

    async fn piece(&mut self, waits: bool) -> Result<Option<&[u8]>, Error> {
        while !self.copying.is_over() {
            let event = if waits { Some(self.client.event().await?) } else { self.client.routed_event()? };
            let Some(event) = event else { break };
            match self.copying.take(&mut self.client.core, event) {
                Copied::Data(data) => return Ok(Some(self.client.core.copied(data))),
                Copied::Failed(error) => {
                    self.client.settle().await?;
                    return Err(error.or_timed_out());
                }
                Copied::Other => {}
            }
        }
        Ok(None)
    }

    /// How many rows were copied, once all data is read.
    pub fn rows(&self) -> Option<u64> {
        self.copying.rows()
    }
}

impl Client {
    /// Begins a `COPY … FROM STDIN`. No trip is spent on asking whether the server is willing: data follows at once.
    ///
    /// # Errors
    /// A statement that is not COPY, or a connection that has ended.
    pub async fn copy_in(&mut self, statement: &str) -> Result<CopyIn<'_>, Error> {
        self.run_copy_in(statement, false).await
    }

    /// The same; with `begins`, BEGIN travels along where no transaction is open.
    ///
    /// # Errors
    /// As [`copy_in`](Self::copy_in).
    pub async fn run_copy_in(&mut self, statement: &str, begins: bool) -> Result<CopyIn<'_>, Error> {
        self.start_copy(statement, begins).await?;
        Ok(CopyIn { client: self, copying: CopyingIn::default() })
    }

    /// Runs a `COPY … TO STDOUT`.
    ///
    /// # Errors
    /// As [`copy_in`](Self::copy_in).
    pub async fn copy_out(&mut self, statement: &str) -> Result<CopyOut<'_>, Error> {
        self.run_copy_out(statement, false).await
    }

    /// The same; with `begins`, BEGIN travels along where no transaction is open.
    ///
    /// # Errors
    /// As [`copy_in`](Self::copy_in).
    pub async fn run_copy_out(&mut self, statement: &str, begins: bool) -> Result<CopyOut<'_>, Error> {
        self.start_copy(statement, begins).await?;
        self.core.sync();
        Ok(CopyOut { client: self, copying: CopyingOut::default() })
    }

    async fn start_copy(&mut self, statement: &str, begins: bool) -> Result<(), Error> {
        self.settle().await?;
        self.core.submit_copy_in_transaction(&Request::new(statement, &[]), begins).map(drop)
    }
}
