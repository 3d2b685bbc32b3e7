//! The connection with a socket around it, for programs that wait.
//!
//! A [`Client`] reads whenever it writes, so that no depth of a pipeline can block both ends.
//!
//! Files that say so are made from those of the shell for programs that await, by `tests/twins.rs`.

mod bulk;
mod client;
mod connect;
mod copy;
mod cursor;
mod lob;
mod paused;
mod permits;
mod pipeline;
mod pool;
mod portal;
mod readers;
mod rows;
mod run;
mod socket;
mod stream;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::str::FromStr;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use onetrip_target::Host;
use onetrip_target::address::Address;

pub use crate::Outcomes;
pub use crate::core::{Cursor, Lob, LobSource};
pub use copy::{CopyIn, CopyOut};
pub use lob::{LobReader, LobWriter};
pub use pipeline::Pipeline;
pub use pool::{Pool, Pooled};
pub use rows::Rows;

use crate::core::{CancelKey, Connection, Cursors, Notification, Request};
use crate::{Config, ConnectError, Error, Retry};
#[cfg(feature = "aio")]
pub(crate) use socket::Socket as RawSocket;
use socket::{Interrupt, Socket};

/// How long the server has for its answer to a cancel request, before the connection is given up.
pub(crate) const CANCEL_GRACE: Duration = Duration::from_secs(5);

/// A session with a server.
///
/// ```no_run
/// # fn main() -> Result<(), onetrip_client::Error> {
/// let mut client = onetrip_client::blocking::Client::connect("postgres://ann@db.example/shop")?;
/// let changed = client.execute("UPDATE item SET price = price * $1 WHERE id = $2", &[&1.1, &7])?;
/// let mut rows = client.query("SELECT id, name FROM item ORDER BY id", &[])?;
/// while let Some(row) = rows.next_row()? {
///     println!("{} {}", row.get::<i32>(0)?, row.get::<&str>(1)?);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Client {
    core: Connection,
    socket: Arc<Socket>,
    config: Arc<Config>,
    host: Host,
    address: Address,
    /// Longest wait of one call.
    timeout: Option<Duration>,
    deadline: Option<Instant>,
    /// The deadline has passed, or a signal came, and a cancel request was sent.
    is_cancelling: bool,
    interrupt: Interrupt,
    cursors: Cursors,
    paused: Option<paused::Paused>,
}

/// The socket, for programs that wait for notifications by means of their own. Nothing may be read from it or written.
impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.fd()
    }
}

impl Client {
    /// Connects by a URL or keyword/value text; what it leaves open comes from PG* variables, as with libpq.
    ///
    /// # Errors
    /// [`Error::Connect`].
    pub fn connect(text: &str) -> Result<Self, Error> {
        Self::connect_with(Config::from_str(text)?)
    }

    /// Connects by settings.
    ///
    /// # Errors
    /// [`Error::Connect`].
    pub fn connect_with(config: impl Into<Arc<Config>>) -> Result<Self, Error> {
        connect::connect(config.into())
    }

    fn new(config: &Arc<Config>, host: &Host, address: &Address, socket: Socket, core: Connection) -> Self {
        Self {
            core,
            socket: Arc::new(socket),
            config: Arc::clone(config),
            host: host.clone(),
            address: address.clone(),
            timeout: None,
            deadline: None,
            is_cancelling: false,
            interrupt: None,
            cursors: Cursors::default(),
            paused: None,
        }
    }

    /// Longest wait of one call, from now on. When it has passed, the server is asked to cancel; the call then fails
    /// with the server's error (SQLSTATE 57014), and with [`Error::TimedOut`] if even that does not come.
    pub fn set_timeout(&mut self, timeout: Option<Duration>) {
        self.timeout = timeout;
    }

    /// What is asked when a signal interrupts a wait. If it says true, the server is asked to cancel, and the call fails
    /// with the server's error (SQLSTATE 57014); for the second time in one call the connection is given up. Without
    /// it, signals interrupt no wait.
    pub fn set_interrupt(&mut self, gives_up: fn() -> bool) {
        self.interrupt = Some(gives_up);
    }

    /// The next notification; waits for one, at most this long.
    ///
    /// # Errors
    /// A connection that has ended.
    pub fn notification(&mut self, wait: Duration) -> Result<Option<Notification>, Error> {
        self.settle()?;
        let deadline = Instant::now() + wait;
        loop {
            while self.core.next_event()?.is_some() {}
            if let Some(notification) = self.core.take_notification() {
                return Ok(Some(notification));
            }
            if !self.wait_readable(deadline)? {
                return Ok(None);
            }
            self.receive(false);
        }
    }

    /// What interrupts this session from another thread.
    pub fn canceller(&self) -> Option<Canceller> {
        let key = self.core.cancel_key()?.clone();
        Some(Canceller { key, address: self.address.clone() })
    }

    /// The address at which the server answered.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// What ends this session from another thread.
    pub fn ender(&self) -> Ender {
        Ender { socket: Arc::downgrade(&self.socket) }
    }

    /// The connection and its socket, for another way of waiting; `None` while an [`Ender`] uses the socket.
    #[cfg(feature = "aio")]
    pub(crate) fn into_parts(self) -> Option<(Connection, Socket, Host)> {
        Some((self.core, Arc::into_inner(self.socket)?, self.host))
    }

    /// A call begins: nobody goes on with a COPY.
    fn begin_call(&mut self) {
        self.leave_copy();
        self.start_clock();
    }

    /// A call begins, or goes on with what another has begun.
    fn start_clock(&mut self) {
        self.deadline = self.timeout.map(|timeout| Instant::now() + timeout);
        self.is_cancelling = false;
    }

    fn try_exchange(&mut self, wants_answers: bool) -> io::Result<()> {
        let is_sent = self.try_send()?;
        if is_sent && !wants_answers {
            return Ok(());
        }
        if is_sent && self.deadline.is_none() {
            match self.try_receive(true) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => self.ask_to_stop()?,
                done => return done,
            }
        }
        loop {
            match self.socket.wait(!is_sent, self.deadline, self.interrupt) {
                Ok(true) => return self.try_receive(false),
                Ok(false) => self.ask_to_stop()?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => self.ask_to_stop()?,
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends a cancel request, and leaves the server some time for its answer.
    fn ask_to_stop(&mut self) -> io::Result<()> {
        let Some(canceller) = self.canceller().filter(|_| !self.is_cancelling) else {
            return Err(io::ErrorKind::TimedOut.into());
        };
        self.is_cancelling = true;
        self.deadline = Some(Instant::now() + CANCEL_GRACE);
        canceller.cancel_before(self.deadline)
    }

    /// Sends what fits now, without waiting. Says whether that was all.
    fn try_send(&mut self) -> io::Result<bool> {
        while self.core.has_output() {
            self.core.leaves(Instant::now);
            match self.socket.send(self.core.output())? {
                Some(count) => self.core.sent(count),
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    fn try_receive(&mut self, waits: bool) -> io::Result<()> {
        let received = match waits {
            true => self.socket.receive_next(self.core.input_space(), self.interrupt),
            false => self.socket.receive(self.core.input_space()),
        };
        match received? {
            None => {}
            Some(0) => self.core.lost(None),
            // A failure is kept by the core, which tells every operation of it.
            Some(count) => {
                drop(self.core.received(count));
                self.core.heard(Instant::now);
            }
        }
        Ok(())
    }

    /// Sends what fits now, and takes nothing in.
    fn send_soon(&mut self) {
        if let Err(error) = self.try_send() {
            self.core.lost(Some(error));
        }
    }

    /// Sends and receives what is possible without waiting.
    fn exchange_now(&mut self) {
        let done = self.try_send().and_then(|_| self.try_receive(false));
        if let Err(error) = done {
            self.core.lost(Some(error));
        }
    }

    fn receive(&mut self, waits: bool) {
        if let Err(error) = self.try_receive(waits) {
            self.core.lost(Some(error));
        }
    }

    fn wait_readable(&mut self, deadline: Instant) -> Result<bool, Error> {
        self.socket.wait(false, Some(deadline), None).map_err(|error| {
            self.core.lost(Some(error));
            Error::Lost { retry: Retry::Safe, cause: None }
        })
    }
}

/// What a pool asks and tells.
impl Client {
    /// Whether the server has not said goodbye meanwhile. Asks nobody.
    fn is_usable(&mut self) -> bool {
        self.exchange_now();
        self.core.is_usable()
    }

    /// Makes the session ready for somebody else, without waiting; false where that cannot be.
    fn put_back(&mut self) -> bool {
        self.timeout = None;
        self.cursors = Cursors::default();
        let is_ready = self.core.hand_over().is_ok();
        if self.core.has_output() {
            self.exchange_now();
        }
        is_ready && !self.core.is_lost()
    }
}

/// Ends a session from any thread, without waiting: what another thread waits for there fails.
#[derive(Debug, Clone)]
pub struct Ender {
    /// Not the owner, so that the socket is closed with its client.
    socket: Weak<Socket>,
}

impl Ender {
    /// Ends the session, if it has not ended. The client closes its socket as ever.
    pub fn end(&self) {
        if let Some(socket) = self.socket.upgrade() {
            socket.shut_down();
        }
    }
}

/// Interrupts what a session runs, from any thread. A cancel that comes too late hits nothing of another session, but
/// it may hit the same session's next statement: cancel only what is surely still under way.
#[derive(Debug, Clone)]
pub struct Canceller {
    key: CancelKey,
    address: Address,
}

impl Canceller {
    /// Asks the server to interrupt, and waits until it has taken the request.
    ///
    /// # Errors
    /// [`Error::Connect`] where the server cannot be reached.
    pub fn cancel(&self) -> Result<(), Error> {
        let host = format!("{:?}", self.address);
        self.cancel_before(None).map_err(|source| ConnectError::Unreachable { host, source }.into())
    }

    /// As [`Self::cancel`], for so long at most: `false` where the server has not taken the request by then.
    ///
    /// # Errors
    /// [`Error::Connect`] where the server cannot be reached.
    pub fn cancel_within(&self, limit: Duration) -> Result<bool, Error> {
        let deadline = Instant::now().checked_add(limit);
        match self.cancel_before(deadline) {
            Ok(()) => Ok(deadline.is_none_or(|deadline| Instant::now() < deadline)),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Ok(false),
            Err(source) => {
                Err(ConnectError::Unreachable { host: format!("{:?}", self.address), source }.into())
            }
        }
    }

    pub(crate) fn cancel_before(&self, deadline: Option<Instant>) -> io::Result<()> {
        let socket = Socket::connect(&self.address, deadline)?;
        let packet = self.key.packet();
        let mut sent = 0;
        while sent < packet.len() {
            match socket.send(&packet[sent..])? {
                Some(count) => sent += count,
                None if socket.wait(true, deadline, None)? => {}
                None => return Err(io::ErrorKind::TimedOut.into()),
            }
        }
        // The server closes the connection once it has passed the request on.
        while socket.wait(false, deadline, None)? {
            match socket.receive(&mut [0; 16]) {
                Ok(Some(0)) | Err(_) => break,
                Ok(_) => {}
            }
        }
        Ok(())
    }
}
