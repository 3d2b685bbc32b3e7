use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use onetrip_wire::pg::{CancelRequest, TransactionStatus, encode_cancel_request};

use super::block::Block;
use super::bulk::Tables;
use super::codec::Codec;
use super::distance::Distance;
use super::event::Notification;
use super::lines::Lines;
use super::queue::Awaited;
use super::receive::Skipping;
use super::request::{Limits, Request};
use super::statements::{Slot, Statements};
use super::stream::Stream;
use crate::{Columns, Error, OperationId, ServerError};

/// What interrupts a session's work from another connection.
#[derive(Clone, PartialEq, Eq)]
pub struct CancelKey {
    pub(crate) process_id: u32,
    pub(crate) key: Vec<u8>,
}

impl CancelKey {
    /// The packet to send on a connection of its own, which the server then closes.
    pub fn packet(&self) -> Vec<u8> {
        let mut out = Vec::new();
        encode_cancel_request(&mut out, CancelRequest { process_id: self.process_id, key: &self.key });
        out
    }

    /// Process id of the backend.
    pub fn process_id(&self) -> u32 {
        self.process_id
    }
}

impl fmt::Debug for CancelKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("CancelKey").field("process_id", &self.process_id).finish_non_exhaustive()
    }
}

/// Settings that a server reports, by name.
///
/// Source: <https://www.postgresql.org/docs/18/protocol-flow.html#PROTOCOL-ASYNC>
pub type Settings = BTreeMap<String, String>;

/// One session with a server.
#[derive(Debug)]
pub struct Connection {
    pub(super) stream: Stream,
    pub(super) limits: Limits,
    pub(super) queue: VecDeque<Awaited>,
    /// Trips of work so far.
    pub(super) trips: u64,
    pub(super) distance: Distance,
    /// The open transaction has changed tables.
    pub(super) has_changed_tables: bool,
    pub(super) statements: Statements,
    pub(super) tables: Tables,
    /// The statements that shield the operations of a pipeline; they stay prepared.
    pub(super) shield_slots: Option<[Slot; 3]>,
    pub(super) portals_to_close: Vec<String>,
    pub(super) block: Block,
    pub(super) status: TransactionStatus,
    /// What begins a transaction.
    pub(super) begin: Cow<'static, str>,
    pub(super) last_id: u64,
    /// Set from an error until the server is ready again: who failed.
    pub(super) skipping: Option<Skipping>,
    /// Something was sent that no Sync follows.
    pub(super) is_unsynced: bool,
    /// Something was sent whose reply the server may keep back.
    pub(super) is_unflushed: bool,
    pub(super) lost: Option<Error>,
    pub(super) simple_columns: Columns,
    /// Shared with who reads them while a call is under way.
    pub(super) settings: Arc<Settings>,
    pub(super) codec: Option<Codec>,
    pub(super) key: Option<CancelKey>,
    pub(super) notices: VecDeque<ServerError>,
    /// Notices that have come since the connection began.
    pub(super) notices_heard: u64,
    pub(super) lines: Lines,
    pub(super) notifications: VecDeque<Notification>,
    /// Notices and notifications that were dropped because nobody took them.
    pub(super) unheard: u64,
}

impl Connection {
    pub(crate) fn new(stream: Stream, limits: Limits) -> Self {
        Self {
            stream,
            queue: VecDeque::new(),
            trips: 0,
            distance: Distance::default(),
            has_changed_tables: false,
            statements: Statements::new(limits.statements),
            tables: Tables::default(),
            limits,
            shield_slots: None,
            portals_to_close: Vec::new(),
            block: Block::default(),
            status: TransactionStatus::Idle,
            begin: Cow::Borrowed("BEGIN"),
            last_id: 0,
            skipping: None,
            is_unsynced: false,
            is_unflushed: false,
            lost: None,
            simple_columns: Columns::default(),
            settings: Arc::default(),
            codec: None,
            key: None,
            notices: VecDeque::new(),
            notices_heard: 0,
            lines: Lines::default(),
            notifications: VecDeque::new(),
            unheard: 0,
        }
    }

    /// Says what begins a transaction from now on, where one is begun along with something else: BEGIN, perhaps with
    /// an isolation level and the like.
    pub fn set_begin(&mut self, statement: impl Into<Cow<'static, str>>) {
        self.begin = statement.into();
    }

    /// Adds BEGIN to the block.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn push_begin(&mut self) -> Result<OperationId, Error> {
        let begin = self.begin_statement();
        self.push(&Request::new(&begin, &[]), None)
    }

    /// What begins a transaction.
    pub fn begin_statement(&self) -> Cow<'static, str> {
        self.begin.clone()
    }

    /// What is to be sent now; tell [`sent`](Self::sent) how much of it was.
    pub fn output(&mut self) -> &[u8] {
        self.stream.output()
    }

    /// Whether [`output`](Self::output) has something.
    pub fn has_output(&self) -> bool {
        self.stream.has_output()
    }

    /// Bytes of requests that wait to be sent.
    pub fn output_bytes(&self) -> usize {
        self.stream.pending()
    }

    /// The operating system took this many bytes of the output.
    pub fn sent(&mut self, count: usize) {
        self.stream.sent(count);
    }

    /// Where to put what arrives; tell [`received`](Self::received) how much it was. Rows given out before are void.
    pub fn input_space(&mut self) -> &mut [u8] {
        self.stream.input_space()
    }

    /// This many bytes arrived.
    ///
    /// # Errors
    /// TLS that does not check; the connection is lost then.
    pub fn received(&mut self, count: usize) -> Result<(), Error> {
        self.stream.received(count).map_err(|error| {
            let cause = std::io::Error::new(std::io::ErrorKind::InvalidData, error);
            self.lost(Some(cause));
            Error::Protocol("TLS does not check")
        })
    }

    /// The connection has ended: every operation that was not answered fails, each with what is known about it.
    pub fn lost(&mut self, cause: Option<std::io::Error>) {
        if self.lost.is_none() {
            self.lost = Some(Error::Lost { retry: crate::Retry::Unknown, cause: cause.map(Into::into) });
        }
    }

    /// Whether the connection has ended.
    pub fn is_lost(&self) -> bool {
        self.lost.is_some()
    }

    /// Whether all that was asked has been answered.
    pub fn is_settled(&self) -> bool {
        self.queue.is_empty() && self.skipping.is_none()
    }

    /// How many replies are awaited.
    pub fn depth(&self) -> usize {
        self.queue.len()
    }

    /// The limits of this connection.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Where the session stood when the server was last ready.
    pub fn transaction_status(&self) -> TransactionStatus {
        self.status
    }

    /// A setting that the server reports, such as `server_version`.
    pub fn setting(&self, name: &str) -> Option<&str> {
        self.settings.get(name).map(String::as_str)
    }

    /// All settings that the server has reported so far, by name. A later report makes another map: who keeps this one
    /// can read it at any time, and sees that it is old by [`Arc::ptr_eq`].
    pub fn settings(&self) -> &Arc<Settings> {
        &self.settings
    }

    /// What interrupts this session's work; `None` with servers that have no such thing.
    pub fn cancel_key(&self) -> Option<&CancelKey> {
        self.key.as_ref()
    }

    /// The oldest notice that nobody took.
    pub fn take_notice(&mut self) -> Option<ServerError> {
        self.notices.pop_front()
    }

    /// The oldest notification that nobody took.
    pub fn take_notification(&mut self) -> Option<Notification> {
        self.notifications.pop_front()
    }

    /// Notices and notifications that were dropped since the connection began, because too many waited.
    pub fn unheard(&self) -> u64 {
        self.unheard
    }

    pub(super) fn next_id(&mut self) -> OperationId {
        self.last_id += 1;
        OperationId(self.last_id)
    }
}
