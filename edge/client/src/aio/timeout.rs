use std::io;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use super::Client;
use crate::blocking::{CANCEL_GRACE, Canceller};

/// How long a call may take.
#[derive(Debug, Default)]
pub(super) struct Patience {
    /// Longest wait of one call.
    longest: Option<Duration>,
    deadline: Option<Instant>,
    /// The deadline has passed, and a cancel request was sent.
    is_cancelling: bool,
    /// The cancel request, until the server has taken it.
    request: Option<JoinHandle<io::Result<()>>>,
}

impl Patience {
    /// Whether a cancel request is under way, which could hit whatever is asked next.
    pub(super) fn has_request(&self) -> bool {
        self.request.is_some()
    }

    /// A call begins. Waits for a cancel request that one before has sent, so that it hits nothing of this.
    ///
    /// # Errors
    /// Nobody knows whether the server has taken that request: the connection has to be given up.
    pub(super) async fn begin(&mut self) -> io::Result<()> {
        self.heard().await?;
        self.deadline = self.longest.map(|longest| Instant::now() + longest);
        self.is_cancelling = false;
        Ok(())
    }

    /// The call may wait for as long as it likes.
    pub(super) fn forget(&mut self) {
        self.deadline = None;
    }

    /// Has the server cancel, and leaves it some time for its answer.
    async fn ask_to_stop(&mut self, canceller: Option<&Canceller>) -> io::Result<()> {
        let Some(canceller) = canceller.filter(|_| !self.is_cancelling).cloned() else {
            return Err(io::ErrorKind::TimedOut.into());
        };
        self.is_cancelling = true;
        let deadline = Instant::now() + CANCEL_GRACE;
        self.deadline = Some(deadline);
        let cancel = move || canceller.cancel_before(Some(deadline.into_std()));
        self.request = Some(tokio::task::spawn_blocking(cancel));
        self.heard().await
    }

    /// Waits until the server has taken the cancel request. A future of it that is dropped leaves it to the next.
    async fn heard(&mut self) -> io::Result<()> {
        let Some(request) = &mut self.request else { return Ok(()) };
        let done = request.await;
        self.request = None;
        // The task ends early only where the runtime does.
        done.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl Client {
    /// Longest wait of one call, from now on. When it has passed, the server is asked to cancel; the call then fails
    /// with the server's error (SQLSTATE 57014), and with [`Error::TimedOut`](crate::Error::TimedOut) if even that does
    /// not come. It needs the runtime's timers.
    pub fn set_timeout(&mut self, timeout: Option<Duration>) {
        self.patience.longest = timeout;
    }

    pub(super) async fn try_exchange(&mut self, wants_answers: bool) -> io::Result<()> {
        loop {
            let exchange = self.socket.exchange(&mut self.core, wants_answers);
            let Some(deadline) = self.patience.deadline else { return exchange.await };
            match timeout_at(deadline, exchange).await {
                Ok(done) => return done,
                Err(_) => self.patience.ask_to_stop(self.canceller.as_ref()).await?,
            }
        }
    }
}
