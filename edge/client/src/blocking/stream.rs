//! Results that are taken by the piece, while they arrive.

use super::Client;
use super::paused::Paused;
use crate::core::{Gather, Request};
use crate::{Done, Error, Usage};

/// Rows that are given out at once, in bytes of memory.
const PIECE_BYTES: usize = 64 * 1024;

impl Client {
    /// Asks for a statement whose rows [`next_rows`](Self::next_rows) takes as they arrive; no more of them than of one
    /// piece wait in memory. With `begins`, BEGIN travels along if no transaction is open. Any other call of the client
    /// throws the rest away.
    ///
    /// # Errors
    /// Parameters that cannot be written, or a connection that has ended.
    pub fn begin_rows(&mut self, request: &Request<'_>, begins: bool) -> Result<(), Error> {
        self.settle()?;
        let gather = Gather::from_here(&self.core);
        self.core.submit_in_transaction(request, begins)?;
        self.paused = Some(Paused::Rows(Box::new(gather)));
        Ok(())
    }

    /// The next rows, as many as have come; waits for the first of them. The last piece has the statement's tag, and
    /// true beside it: then the statement holds.
    ///
    /// # Errors
    /// The statement fails, perhaps after rows of it were given out; or no statement is under way, because another call
    /// has ended it.
    pub fn next_rows(&mut self) -> Result<(Done, bool), Error> {
        let mut gather = match self.paused.take() {
            Some(Paused::Rows(gather)) => gather,
            other => {
                self.paused = other;
                return Err(Usage::UnknownOperation.into());
            }
        };
        self.start_clock();
        loop {
            while gather.rows_bytes() < PIECE_BYTES {
                let Some(event) = self.routed_event()? else { break };
                gather.take(&mut self.core, event);
            }
            let is_over = self.core.is_settled();
            if is_over && !gather.has_failed() {
                let mut done = gather.finish().map_err(Error::or_timed_out)?;
                let last = done.pop().ok_or(Error::Protocol("it completes nothing where it must"))?;
                return Ok((last, true));
            }
            // What came before an error is given out before the error.
            if let Some(rows) = gather.take_rows() {
                self.paused = Some(Paused::Rows(gather));
                return Ok((Done::part(rows), false));
            }
            if is_over {
                gather.finish().map_err(Error::or_timed_out)?;
                return Err(Error::Protocol("it fails without an error"));
            }
            self.exchange();
        }
    }

    /// Throws away what is left of such a result, and waits for its end: [cancel](super::Canceller) it before, where that
    /// is worth it.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn leave_rows(&mut self) -> Result<(), Error> {
        self.settle()
    }
}
