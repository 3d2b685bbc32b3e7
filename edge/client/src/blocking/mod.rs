//! The connection with a socket around it, for programs that wait.
//!
//! A [`Client`] reads whenever it writes, so that no depth of a pipeline can block both ends.

mod bulk;
mod connect;
mod copy;
mod cursor;
mod lob;
mod pipeline;
mod pool;
mod portal;
mod rows;
mod run;
mod socket;
mod stream;

use std::io;
use std::str::FromStr;
use std::sync::Arc;
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

use crate::core::{
    CancelKey, Connection, Cursors, Event, Finish, Notification, OnError, OutputSource, Request,
};
use crate::{CommandTag, Config, ConnectError, Error, Param, Retry, ServerError, TransactionStatus};
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
    socket: Socket,
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
    paused: Option<copy::Paused>,
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
            socket,
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

    /// Runs one statement and returns how many rows it returned or changed. Its rows are not kept.
    ///
    /// # Errors
    /// [`Error::Server`] where the server refuses it; see [`Error::retry`] for all.
    pub fn execute(&mut self, statement: &str, parameters: &[&dyn Param]) -> Result<u64, Error> {
        self.execute_request(&Request::new(statement, parameters)).map(|tag| tag.rows())
    }

    /// Runs one statement and returns what it did.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub fn execute_request(&mut self, request: &Request<'_>) -> Result<CommandTag, Error> {
        let mut may_repeat = true;
        loop {
            self.settle()?;
            let repeats = may_repeat && self.core.transaction_status() == TransactionStatus::Idle;
            self.core.submit(request)?;
            self.core.sync();
            match self.finish(Finish::default()) {
                Err(error) if repeats && error.is_about_a_stale_statement() => may_repeat = false,
                done => return done,
            }
        }
    }

    /// Runs one statement; its rows come in binary, as they arrive, without being kept.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub fn query(&mut self, statement: &str, parameters: &[&dyn Param]) -> Result<Rows<'_>, Error> {
        self.query_request(&Request::new(statement, parameters))
    }

    /// Runs one statement as the request says.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub fn query_request(&mut self, request: &Request<'_>) -> Result<Rows<'_>, Error> {
        self.settle()?;
        let repeats = self.core.transaction_status() == TransactionStatus::Idle;
        let mut operation = self.core.submit(request)?;
        self.core.sync();
        if let Err(error) = self.bound() {
            if !(repeats && error.is_about_a_stale_statement()) {
                return Err(error);
            }
            self.settle()?;
            operation = self.core.submit(request)?;
            self.core.sync();
            self.bound()?;
        }
        Ok(Rows::new(self, operation))
    }

    /// Runs statements without parameters, separated by semicolons; they are one transaction unless they say
    /// otherwise. Rows are thrown away.
    ///
    /// # Errors
    /// The first error of a statement.
    pub fn script(&mut self, statements: &str) -> Result<(), Error> {
        self.settle()?;
        self.core.submit_script(statements)?;
        self.finish(Finish::default()).map(drop)
    }

    /// Opens a block of operations that travel together.
    ///
    /// # Errors
    /// [`Error::Usage`] on a connection whose option `pipelining` is off.
    pub fn pipeline(&mut self, on_error: OnError) -> Result<Pipeline<'_>, Error> {
        self.settle()?;
        self.core.begin_block(on_error)?;
        Ok(Pipeline::new(self))
    }

    /// Begins a transaction. It is a trip of its own; in a pipeline it is none.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub fn begin(&mut self) -> Result<(), Error> {
        self.execute("BEGIN", &[]).map(drop)
    }

    /// Commits the transaction.
    ///
    /// # Errors
    /// [`Error::RolledBack`] where a statement in it had failed.
    pub fn commit(&mut self) -> Result<(), Error> {
        self.execute("COMMIT", &[]).map(drop)
    }

    /// Rolls the transaction back.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub fn rollback(&mut self) -> Result<(), Error> {
        self.execute("ROLLBACK", &[]).map(drop)
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

    /// Says what begins a transaction from now on, where one is begun along with something else.
    pub fn set_begin(&mut self, statement: impl Into<std::borrow::Cow<'static, str>>) {
        self.core.set_begin(statement);
    }

    /// Says how often a statement runs before it stays prepared; [`Limits::prepare_after`].
    pub fn set_prepare_after(&mut self, runs: u32) {
        self.core.set_prepare_after(runs);
    }

    /// Where the session stood when the server was last ready.
    pub fn transaction_status(&self) -> TransactionStatus {
        self.core.transaction_status()
    }

    /// A setting that the server reports, such as `server_version`.
    pub fn setting(&self, name: &str) -> Option<&str> {
        self.core.setting(name)
    }

    /// The server of this session.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The settings that the connection was made with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.core.is_lost()
    }

    /// The connection without its socket, to look at.
    pub fn core(&self) -> &Connection {
        &self.core
    }

    /// The oldest notice that nobody took.
    pub fn take_notice(&mut self) -> Option<ServerError> {
        self.core.take_notice()
    }

    /// From now on, what statements print into the session's buffer travels with the answer of the call that printed it.
    /// False where the server has no such buffer. It is one trip.
    ///
    /// # Errors
    /// As [`pipeline`](Self::pipeline).
    pub fn collect_output(&mut self, source: OutputSource) -> Result<bool, Error> {
        // In a transaction a server without it fails this operation alone.
        let mut pipeline = self.pipeline(OnError::Continue)?;
        let opening = pipeline.execute(source.opening(), &[])?;
        let found = match pipeline.end()?.take(opening) {
            Ok(_) => true,
            // No such function, no such schema.
            Err(error) if matches!(error.sqlstate(), Some("42883" | "3F000")) => false,
            Err(error) => return Err(error),
        };
        self.core.collect_output(found.then_some(source));
        Ok(found)
    }

    /// What statements have printed since the last call, a line each: the texts of all notices and, after
    /// [`collect_output`](Self::collect_output), the session's output. They came along with the answers, so that this
    /// takes no trip.
    ///
    /// # Errors
    /// A connection that has ended before what was asked for had come.
    pub fn lines(&mut self) -> Result<Vec<String>, Error> {
        self.settle()?;
        Ok(std::iter::from_fn(|| self.core.take_line()).collect())
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

    /// The connection and its socket, for another way of waiting.
    #[cfg(feature = "aio")]
    pub(crate) fn into_parts(self) -> (Connection, Socket, Host) {
        (self.core, self.socket, self.host)
    }

    /// Ends the session.
    pub fn close(mut self) {
        self.core.terminate();
        // The server notices the end of the stream as well.
        let _ = self.socket.send(self.core.output());
    }

    /// Waits for the answers to what was left half done, and throws them away.
    pub(crate) fn settle(&mut self) -> Result<(), Error> {
        self.leave_copy();
        self.start_clock();
        self.core.finish_requests();
        while !self.core.is_settled() {
            if self.routed_event()?.is_none() && !self.core.is_settled() {
                self.exchange();
            }
        }
        Ok(())
    }

    /// A call begins, or goes on with what another has begun.
    fn start_clock(&mut self) {
        self.deadline = self.timeout.map(|timeout| Instant::now() + timeout);
        self.is_cancelling = false;
    }

    /// Waits until all of one call is answered.
    fn finish(&mut self, mut finish: Finish) -> Result<CommandTag, Error> {
        loop {
            let event = self.event()?;
            finish.take(&mut self.core, event);
            if self.core.is_settled() {
                return finish.result().map_err(Error::or_timed_out);
            }
        }
    }

    /// Waits until the operation's columns are known; on an error, until the server is ready again.
    fn bound(&mut self) -> Result<(), Error> {
        match self.event()? {
            Event::Failed { error, .. } => {
                while !self.core.is_settled() && !self.core.is_lost() {
                    self.event()?;
                }
                Err(error.or_timed_out())
            }
            _ => Ok(()),
        }
    }

    /// The next event; waits for it.
    pub(crate) fn event(&mut self) -> Result<Event, Error> {
        loop {
            if let Some(event) = self.routed_event()? {
                return Ok(event);
            }
            self.exchange();
        }
    }

    /// The next event that has come and is of no cursor.
    fn routed_event(&mut self) -> Result<Option<Event>, Error> {
        while let Some(event) = self.core.next_event()? {
            if let Some(event) = self.cursors.route(&self.core, event) {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    /// Sends what can be sent and waits until something has come, or until there is room to send. A connection that
    /// breaks is told to the core.
    pub(crate) fn exchange(&mut self) {
        if let Err(error) = self.try_exchange(true) {
            self.core.lost(Some(error));
        }
    }

    /// Sends what can be sent; where there is no room, waits for some and reads meanwhile. It does not wait for
    /// answers: the server may keep them back until it is asked for them.
    pub(crate) fn send_some(&mut self) {
        if let Err(error) = self.try_exchange(false) {
            self.core.lost(Some(error));
        }
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
            match self.socket.send(self.core.output())? {
                Some(count) => {
                    self.core.sent(count);
                    self.core.left(Instant::now);
                }
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
    pub(crate) fn send_soon(&mut self) {
        if let Err(error) = self.try_send() {
            self.core.lost(Some(error));
        }
    }

    /// Sends and receives what is possible without waiting.
    pub(crate) fn exchange_now(&mut self) {
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
