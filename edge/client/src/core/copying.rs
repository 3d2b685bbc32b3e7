//! COPY, without its waiting.

use super::{Connection, Event, RowSpan};
use crate::{CommandTag, Error};

/// Data is handed to the socket in pieces of this size, in bytes.
const SEND_BYTES: usize = 64 * 1024;

/// A `COPY … FROM STDIN` that takes data. For every piece:
///
/// ```text
///   push --(is_due)--> send, hear --(must_wait)--> send what there is room for, hear …
/// ```
#[derive(Debug, Default)]
pub(crate) struct CopyingIn {
    failed: Option<Error>,
    is_finished: bool,
}

impl CopyingIn {
    /// The pieces that data is pushed in.
    pub(crate) fn pieces(data: &[u8]) -> impl Iterator<Item = &[u8]> {
        data.chunks(SEND_BYTES)
    }

    /// Adds a piece.
    ///
    /// # Errors
    /// What the server has said about the statement or the data before.
    pub(crate) fn push(&self, core: &mut Connection, piece: &[u8]) -> Result<(), Error> {
        match &self.failed {
            Some(error) => Err(error.clone()),
            None => {
                core.copy_data(piece);
                Ok(())
            }
        }
    }

    /// Whether enough is there to be sent.
    pub(crate) fn is_due(core: &Connection) -> bool {
        core.output_bytes() >= SEND_BYTES
    }

    /// Whether the network takes less than is written, and the server still wants it.
    pub(crate) fn must_wait(&self, core: &Connection) -> bool {
        core.output_bytes() > 4 * SEND_BYTES && self.failed.is_none()
    }

    /// Takes what has come: an error may come while data is still being sent.
    ///
    /// # Errors
    /// A connection that has ended.
    pub(crate) fn hear(&mut self, core: &mut Connection) -> Result<(), Error> {
        while let Some(event) = core.next_event()? {
            if let Event::Failed { error, .. } = event {
                self.failed.get_or_insert(error);
            }
        }
        Ok(())
    }

    /// There is no more data.
    pub(crate) fn finish(&mut self, core: &mut Connection) {
        self.is_finished = true;
        core.copy_done();
        core.sync();
    }

    /// There is a reason why none of it is to be kept, which the server repeats in its error.
    pub(crate) fn give_up(&mut self, core: &mut Connection, why: &str) {
        self.is_finished = true;
        core.copy_fail(why);
        core.sync();
    }

    /// What goes on later in place of this one.
    pub(crate) fn pause(&mut self) -> Self {
        let later = std::mem::take(self);
        self.is_finished = true;
        later
    }

    /// How many rows were copied, once all is answered.
    ///
    /// # Errors
    /// The first thing that the server has said against it.
    pub(crate) fn result(&mut self, done: Result<CommandTag, Error>) -> Result<u64, Error> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => done.map(|tag| tag.rows()),
        }
    }

    /// Nobody adds data any more: without [`finish`](Self::finish), none of it is kept.
    pub(crate) fn leave(&self, core: &mut Connection) {
        if !self.is_finished {
            core.copy_fail("the client gave up");
        }
    }
}

/// The data of a `COPY … TO STDOUT`, as it arrives.
#[derive(Debug, Default)]
pub(crate) struct CopyingOut {
    tag: Option<CommandTag>,
    is_over: bool,
    /// What is left of a piece that was taken in parts.
    pub(crate) rest: Vec<u8>,
}

/// What an event means to somebody who reads a COPY's data.
#[derive(Debug)]
pub(crate) enum Copied {
    /// The next piece.
    Data(RowSpan),
    /// The statement failed: all that was asked for has to be answered, and there are no more pieces.
    Failed(Error),
    /// Nothing.
    Other,
}

impl CopyingOut {
    /// Takes the next event.
    pub(crate) fn take(&mut self, core: &mut Connection, event: Event) -> Copied {
        match event {
            Event::CopyData { data, .. } => return Copied::Data(data),
            Event::Complete { tag, .. } => self.tag = Some(tag),
            Event::CopyIn { .. } => core.copy_refuse("this call takes data, and has none to give"),
            Event::Failed { error, .. } => {
                self.is_over = true;
                return Copied::Failed(error);
            }
            Event::Ready(_) => self.is_over = true,
            Event::Bound { .. } | Event::Row { .. } | Event::Suspended { .. } => {}
        }
        Copied::Other
    }

    /// Whether no more pieces come.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// How many rows were copied, once all data is read.
    pub(crate) fn rows(&self) -> Option<u64> {
        self.tag.map(|tag| tag.rows())
    }
}
