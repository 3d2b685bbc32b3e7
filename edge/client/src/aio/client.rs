//! What a client does, but for connecting and the waiting itself.

use std::borrow::Cow;

use onetrip_target::Host;

use super::{Client, Pipeline, Request, Rows, with_request};
use crate::core::{Codec, Connection, Event, Finish, Notification, OnError, OperationId, OutputSource};
use crate::{CommandTag, Config, Error, Param, ServerError, TransactionStatus};

impl Client {
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

    /// Says what begins a transaction from now on, where one is begun along with something else.
    pub fn set_begin(&mut self, statement: impl Into<Cow<'static, str>>) {
        self.core.set_begin(statement);
    }

    /// Says who converts text under another `client_encoding`; [`Connection::set_codec`].
    pub fn set_codec(&mut self, codec: Codec) {
        self.core.set_codec(codec);
    }

    /// Says how often a statement runs before it stays prepared; [`Limits::prepare_after`].
    ///
    /// [`Limits::prepare_after`]: crate::core::Limits::prepare_after
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

    /// The oldest notification that has come and that nobody took.
    pub fn take_notification(&mut self) -> Option<Notification> {
        self.core.take_notification()
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
    pub(super) async fn settle(&mut self) -> Result<(), Error> {
        self.begin_call().await;
        self.core.finish_requests();
        while !self.core.is_settled() {
            if self.routed_event()?.is_none() && !self.core.is_settled() {
                self.exchange().await;
            }
        }
        Ok(())
    }

    /// Waits until all of one call is answered.
    pub(super) async fn finish(&mut self, mut finish: Finish) -> Result<CommandTag, Error> {
        loop {
            let event = self.event().await?;
            finish.take(&mut self.core, event);
            if self.core.is_settled() {
                return finish.result().map_err(Error::or_timed_out);
            }
        }
    }

    /// Waits until the operation's columns are known; on an error, until the server is ready again.
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

    /// The next event; waits for it.
    pub(super) async fn event(&mut self) -> Result<Event, Error> {
        loop {
            if let Some(event) = self.routed_event()? {
                return Ok(event);
            }
            self.exchange().await;
        }
    }

    /// The next event that has come and is of no cursor.
    pub(super) fn routed_event(&mut self) -> Result<Option<Event>, Error> {
        while let Some(event) = self.core.next_event()? {
            if let Some(event) = self.cursors.route(&self.core, event) {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    /// Sends what can be sent and waits until something has come, or until there is room to send. A connection that
    /// breaks is told to the core.
    pub(super) async fn exchange(&mut self) {
        if let Err(error) = self.try_exchange(true).await {
            self.core.lost(Some(error));
        }
    }

    /// Sends what can be sent; where there is no room, waits for some and reads meanwhile. It does not wait for
    /// answers: the server may keep them back until it is asked for them.
    pub(super) async fn send_some(&mut self) {
        if let Err(error) = self.try_exchange(false).await {
            self.core.lost(Some(error));
        }
    }
}
