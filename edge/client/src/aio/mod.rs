//! The connection with a socket of tokio's around it, for programs that await.
//!
//! Every future may be dropped: what was sent stays sent, and the next call reads and throws away what nobody waits for.

mod bulk;
mod copy;
mod cursor;
mod lob;
mod pipeline;
mod pool;
mod portal;
mod rows;
mod run;
mod socket;
mod timeout;

use std::str::FromStr;
use std::sync::Arc;

use onetrip_target::Host;

use crate::core::{Connection, Cursors, Event, Finish, Notification, OnError, OperationId, OutputSource};
use crate::{CommandTag, Config, Error, Param, Retry, ServerError, TransactionStatus, blocking};
use blocking::Canceller;

pub use crate::Outcomes;
pub use crate::core::{Cursor, Lob, LobSource};
pub use copy::{CopyIn, CopyOut};
pub use lob::{LobReader, LobWriter};
pub use pipeline::Pipeline;
pub use pool::{Pool, Pooled};
pub use rows::Rows;

use socket::Socket;
use timeout::Patience;

/// A statement to run, whose parameters may cross threads: by [`Request::sync`](crate::core::Request::sync).
pub type Request<'a> = crate::core::Request<'a, dyn Param + Sync + 'a>;

/// A session with a server.
///
/// ```no_run
/// # async fn shop() -> Result<(), onetrip_client::Error> {
/// let mut client = onetrip_client::aio::Client::connect("postgres://ann@db.example/shop").await?;
/// let mut rows = client.query("SELECT id, name FROM item WHERE price < $1", &[&10]).await?;
/// while let Some(row) = rows.next_row().await? {
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
    canceller: Option<Canceller>,
    patience: Patience,
    cursors: Cursors,
}

impl Client {
    /// Connects by a URL or keyword/value text; what it leaves open comes from PG* variables, as with libpq.
    ///
    /// Looking names up, TLS and hashing passwords happen on a thread of tokio's for blocking work.
    ///
    /// # Errors
    /// [`Error::Connect`].
    pub async fn connect(text: &str) -> Result<Self, Error> {
        Self::connect_with(Config::from_str(text)?).await
    }

    /// Connects by settings.
    ///
    /// # Errors
    /// [`Error::Connect`].
    pub async fn connect_with(config: impl Into<Arc<Config>>) -> Result<Self, Error> {
        let config = config.into();
        let for_thread = Arc::clone(&config);
        let opened = tokio::task::spawn_blocking(move || blocking::Client::connect_with(for_thread)).await;
        // The task ends early only where the runtime does.
        let client = opened.map_err(|_| Error::Closed)??;
        let canceller = client.canceller();
        let (core, socket, host) = client.into_parts();
        let failed = |error: std::io::Error| Error::Lost { retry: Retry::Safe, cause: Some(error.into()) };
        Ok(Self {
            core,
            socket: Socket::new(socket).map_err(failed)?,
            config,
            host,
            canceller,
            patience: Patience::default(),
            cursors: Cursors::default(),
        })
    }

    /// Runs one statement and returns how many rows it returned or changed. Its rows are not kept.
    ///
    /// # Errors
    /// [`Error::Server`] where the server refuses it; see [`Error::retry`] for all.
    pub async fn execute(
        &mut self,
        statement: &str,
        parameters: &[&(dyn Param + Sync)],
    ) -> Result<u64, Error> {
        self.execute_request(&Request::sync(statement, parameters)).await.map(|tag| tag.rows())
    }

    /// Runs one statement and returns what it did.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub async fn execute_request(&mut self, request: &Request<'_>) -> Result<CommandTag, Error> {
        let mut may_repeat = true;
        loop {
            self.settle().await?;
            let repeats = may_repeat && self.core.transaction_status() == TransactionStatus::Idle;
            self.submit(request)?;
            match self.finish(Finish::default()).await {
                Err(error) if repeats && error.is_about_a_stale_statement() => may_repeat = false,
                done => return done,
            }
        }
    }

    /// Runs one statement; its rows come in binary, as they arrive, without being kept.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub async fn query(
        &mut self,
        statement: &str,
        parameters: &[&(dyn Param + Sync)],
    ) -> Result<Rows<'_>, Error> {
        self.query_request(&Request::sync(statement, parameters)).await
    }

    /// Runs one statement as the request says.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub async fn query_request(&mut self, request: &Request<'_>) -> Result<Rows<'_>, Error> {
        self.settle().await?;
        let repeats = self.core.transaction_status() == TransactionStatus::Idle;
        let mut operation = self.submit(request)?;
        if let Err(error) = self.bound().await {
            if !(repeats && error.is_about_a_stale_statement()) {
                return Err(error);
            }
            self.settle().await?;
            operation = self.submit(request)?;
            self.bound().await?;
        }
        Ok(Rows::new(self, operation))
    }

    /// Runs statements without parameters, separated by semicolons; they are one transaction unless they say
    /// otherwise. Rows are thrown away.
    ///
    /// # Errors
    /// The first error of a statement.
    pub async fn script(&mut self, statements: &str) -> Result<(), Error> {
        self.settle().await?;
        self.core.submit_script(statements)?;
        self.finish(Finish::default()).await.map(drop)
    }

    /// Opens a block of operations that travel together.
    ///
    /// # Errors
    /// [`Error::Usage`] on a connection whose option `pipelining` is off.
    pub async fn pipeline(&mut self, on_error: OnError) -> Result<Pipeline<'_>, Error> {
        self.settle().await?;
        self.core.begin_block(on_error)?;
        Ok(Pipeline::new(self))
    }

    /// The next notification; waits for one, however long that takes.
    ///
    /// # Errors
    /// A connection that has ended.
    pub async fn notification(&mut self) -> Result<Notification, Error> {
        self.settle().await?;
        self.patience.forget();
        loop {
            while self.core.next_event()?.is_some() {}
            if let Some(notification) = self.core.take_notification() {
                return Ok(notification);
            }
            self.exchange().await;
        }
    }

    /// Begins a transaction. It is a trip of its own; in a pipeline it is none.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub async fn begin(&mut self) -> Result<(), Error> {
        self.execute("BEGIN", &[]).await.map(drop)
    }

    /// Commits the transaction.
    ///
    /// # Errors
    /// [`Error::RolledBack`] where a statement in it had failed.
    pub async fn commit(&mut self) -> Result<(), Error> {
        self.execute("COMMIT", &[]).await.map(drop)
    }

    /// Rolls the transaction back.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub async fn rollback(&mut self) -> Result<(), Error> {
        self.execute("ROLLBACK", &[]).await.map(drop)
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

    /// The connection without its socket, to look at.
    pub fn core(&self) -> &Connection {
        &self.core
    }

    /// The settings that the connection was made with.
    pub fn config(&self) -> &Config {
        &self.config
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
    pub async fn collect_output(&mut self, source: OutputSource) -> Result<bool, Error> {
        // In a transaction a server without it fails this operation alone.
        let mut pipeline = self.pipeline(OnError::Continue).await?;
        let opening = pipeline.execute(source.opening(), &[]).await?;
        let found = match pipeline.end().await?.take(opening) {
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
    pub async fn lines(&mut self) -> Result<Vec<String>, Error> {
        self.settle().await?;
        Ok(std::iter::from_fn(|| self.core.take_line()).collect())
    }

    /// What interrupts this session; its call blocks until the server has taken the request.
    pub fn canceller(&self) -> Option<Canceller> {
        self.canceller.clone()
    }

    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.core.is_lost()
    }

    /// Ends the session.
    pub fn close(mut self) {
        self.core.terminate();
        // The server notices the end of the stream as well.
        self.send_soon();
    }

    fn submit(&mut self, request: &Request<'_>) -> Result<OperationId, Error> {
        let operation = with_request(request, |request| self.core.submit(request))?;
        self.core.sync();
        Ok(operation)
    }

    /// Waits for the answers to what was left half done, and throws them away.
    async fn settle(&mut self) -> Result<(), Error> {
        if let Err(error) = self.patience.begin().await {
            self.core.lost(Some(error));
        }
        self.core.finish_requests();
        while !self.core.is_settled() {
            if self.routed_event()?.is_none() && !self.core.is_settled() {
                self.exchange().await;
            }
        }
        Ok(())
    }

    async fn finish(&mut self, mut finish: Finish) -> Result<CommandTag, Error> {
        loop {
            let event = self.event().await?;
            finish.take(&mut self.core, event);
            if self.core.is_settled() {
                return finish.result().map_err(Error::or_timed_out);
            }
        }
    }

    async fn bound(&mut self) -> Result<(), Error> {
        match self.event().await? {
            Event::Failed { error, .. } => {
                while !self.core.is_settled() && !self.core.is_lost() {
                    self.event().await?;
                }
                Err(error.or_timed_out())
            }
            _ => Ok(()),
        }
    }

    async fn event(&mut self) -> Result<Event, Error> {
        loop {
            if let Some(event) = self.routed_event()? {
                return Ok(event);
            }
            self.exchange().await;
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
    async fn exchange(&mut self) {
        if let Err(error) = self.try_exchange(true).await {
            self.core.lost(Some(error));
        }
    }

    /// Sends what can be sent; where there is no room, waits for some and reads meanwhile. It does not wait for answers.
    async fn send_some(&mut self) {
        if let Err(error) = self.try_exchange(false).await {
            self.core.lost(Some(error));
        }
    }

    /// Sends what fits now, and takes nothing in.
    fn send_soon(&mut self) {
        if let Err(error) = self.socket.send(&mut self.core) {
            self.core.lost(Some(error));
        }
    }

    /// Sends and receives what is possible without waiting.
    fn exchange_now(&mut self) {
        if let Err(error) = self.socket.exchange_now(&mut self.core) {
            self.core.lost(Some(error));
        }
    }
}

/// A request whose parameters may cross threads is a request.
fn with_request<T>(request: &Request<'_>, work: impl FnOnce(&crate::core::Request<'_>) -> T) -> T {
    let Request { text, parameters, format, portal, row_limit, copy, keeps } = *request;
    with_params(parameters, |parameters| {
        work(&crate::core::Request { text, parameters, format, portal, row_limit, copy, keeps })
    })
}

/// Parameters that may cross threads are parameters.
fn with_params<T>(parameters: &[&(dyn Param + Sync)], work: impl FnOnce(&[&dyn Param]) -> T) -> T {
    const FEW: usize = 16;
    if parameters.len() <= FEW {
        let mut few: [&dyn Param; FEW] = [&0i32; FEW];
        for (place, parameter) in few.iter_mut().zip(parameters) {
            *place = *parameter;
        }
        return work(&few[..parameters.len()]);
    }
    let many: Vec<&dyn Param> = parameters.iter().map(|parameter| *parameter as &dyn Param).collect();
    work(&many)
}
