use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use onetrip_ledger::{Moment, StreamEncoder, TransactionStatus, ValueHasher};
use onetrip_sql::Lifter;
use onetrip_wire::WireError;
use onetrip_wire::pg::{ErrorFields, FrameHeader, Severity, encode_error, frontend};
use smallvec::SmallVec;

use crate::canonical::Values;
use crate::facts::Facts;
use crate::names::Names;
use crate::parameters::Parameters;
use crate::remedies::{
    Chatter, Common, Cursors, EarlyBegin, Inquiries, IsolationLevel, LobPolicy, Lobs, Loops, Overflow, Raised,
    Remedies, Rule, Surveying, Told, Verify, Watching,
};
use crate::reply_queue::{Due, ReplyQueue, Taker};
use crate::scopes::Scopes;
use crate::startup::is_taken_when_serving;
use crate::statements::{Lessons, Named, Portal, Prepared};
use crate::texts::Texts;
use crate::units::Units;

/// A message is looked into as far as this, in bytes; what is longer passes by its header.
pub const INSPECT_BYTES_MAX: usize = 64 * 1024;
/// Longest message before authentication, in bytes, as in PostgreSQL (`PG_MAX_AUTH_TOKEN_LENGTH`).
pub(crate) const LENGTH_BEFORE_AUTH_MAX: u32 = 65_535;
/// Longest message after it, in bytes, as in PostgreSQL (`PQ_LARGE_MESSAGE_LIMIT`).
pub(crate) const LENGTH_MAX: u32 = 0x3fff_fffe;
/// Longest message that holds a name and a number at most, in bytes, as in PostgreSQL (`PQ_SMALL_MESSAGE_LIMIT`).
const SMALL_LENGTH_MAX: u32 = 10_000;
/// Messages that may be unanswered; a client that sends on without reading waits.
const DUE_MAX: usize = 65_536;
/// Packets that may be unanswered before the client is let in.
const PACKETS_MAX: usize = 64;
/// Longest text of the server that is kept of a refused session, in bytes.
const REFUSAL_BYTES_MAX: usize = 1024;

/// What a session is told at its start.
#[derive(Debug, Clone)]
pub struct SessionConfig {
    /// Hashes values, with one key for the whole trace.
    pub hasher: ValueHasher,
    /// The key that this session's client gets for cancelling.
    pub cancel_key: [u8; 4],
    /// Parameters' texts are kept in the trace.
    pub keep_values: bool,
    /// What may answer before the server.
    pub remedies: Remedies,
    /// Which answers from memory are run for real as well.
    pub verify: Option<Verify>,
    /// How much of large objects is read ahead.
    pub lobs: Arc<LobPolicy>,
    /// What a BEGIN without a level gets, if the client did not choose in its startup packet.
    pub isolation: Option<IsolationLevel>,
    /// Time on the server that the session's own questions may take at once; over time, they take a twentieth of it.
    pub question_burst: Duration,
    /// What the sessions of one gateway share.
    pub common: Arc<Common>,
    /// Texts that they share.
    pub texts: Arc<Texts>,
    /// Random bytes that no program can guess: names of the session's own objects are made of them.
    pub private: [u8; 8],
    /// Where results go that are read ahead and do not fit into memory; without, they stay in memory.
    pub overflow: Option<Arc<dyn Overflow>>,
}

/// TLS with the client, which is the gateway's business but for its beginning and what it means for authentication.
#[derive(Debug, Default)]
pub(crate) struct ClientTls {
    /// A request for it is granted.
    pub(crate) is_offered: bool,
    /// A request was granted.
    pub(crate) begins: bool,
    /// The client sees the database's own certificate, so that what is bound to it holds there, too.
    pub(crate) has_same_certificate: bool,
    /// Mechanisms with channel binding were taken from the server's list.
    pub(crate) is_stripped: bool,
}

/// What the backend calls itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendKey {
    /// Its process id.
    pub process_id: u32,
    /// Its secret.
    pub key: SmallVec<[u8; 4]>,
}

/// What to do with the bytes at the front of what came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing yet: more bytes must come first.
    Wait,
    /// Send this many bytes on as they are.
    Forward(usize),
    /// Drop this many bytes; what goes in their place, if anything, is in the session's outboxes.
    Replace(usize),
    /// Nothing until the server has said more: the message is there, and must wait.
    Hold,
    /// Drop this many bytes and connect to the database; the startup packet for it is in the outbox.
    Connect(usize),
    /// Drop this many bytes: they ask to cancel what another session runs.
    Cancel {
        /// Length of the request.
        bytes: usize,
        /// Process id that the request names.
        process_id: u32,
        /// Key that it shows.
        key: [u8; 4],
    },
}

/// The conversation cannot go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// The client's framing is broken. What PostgreSQL would answer is in the outbox for it.
    #[error("client broke the protocol")]
    Client(#[source] WireError),
    /// The server's framing is broken: it may not be a PostgreSQL server.
    #[error("the upstream broke the protocol; is it a PostgreSQL server?")]
    Server(#[source] WireError),
    /// The client says that it could have bound its login to TLS, had it been offered; the database did offer it.
    #[error("the client speaks TLS with the gateway, the database too, and the client's SCRAM shows it")]
    BindingMissed,
    /// The server offers no way of authentication that works through this gateway. The client has been told.
    #[error(
        "the database offers only SCRAM-SHA-256-PLUS, which binds to a TLS connection that ends at the gateway"
    )]
    ChannelBindingOnly,
    /// A BEGIN failed after it was answered. The client has been told, and nothing behind the BEGIN was run.
    #[error("the server refused a BEGIN that had been answered")]
    BeginRefused,
    /// What was read ahead could not be taken back. The client has been told.
    #[error("the server did not take back what was read ahead")]
    ShieldBroken,
    /// The server failed at what had been answered from memory. The client has been told.
    #[error("the server failed at a statement that had been answered from memory")]
    VerifyFailed,
    /// A COMMIT or ROLLBACK failed after it was answered. The client has been told; the transaction had only read.
    #[error("the server refused the end of a transaction that had been answered")]
    CommitRefused,
    /// The server answered a setting or reset otherwise than before, after it was answered. The client has been told.
    #[error("the server answered a setting or reset otherwise than it had been answered")]
    ChatterRefused,
    /// A statement whose Parse was answered is not there, and the client cannot be told so. The client has been told.
    #[error("the server refused a statement whose Parse had been answered")]
    StatementRefused,
    /// The program needs to know where a cursor stands that was read ahead, or the server did not do as expected. The
    /// client has been told.
    #[error("a result that was read ahead cannot be gone on with")]
    CursorsBroke,
    /// The server did not do with a large object that was read ahead as was expected. The client has been told.
    #[error("a large object that was read ahead cannot be gone on with")]
    LobsBroke,
    /// More came unasked than is kept while a transaction begins. The client has been told.
    #[error("too many notifications came while a transaction began")]
    TooMuchKept,
}

/// One client's conversation: decides what each message becomes and counts its trips.
///
/// Contract: call one `handle_*` with the bytes at the front, do what it says, send what the outboxes hold, repeat
/// until it says [`Verdict::Wait`].
#[derive(Debug)]
pub struct Session {
    pub(crate) config: SessionConfig,
    pub(crate) phase: Phase,
    pub(crate) queue: ReplyQueue,
    pub(crate) units: Units,
    pub(crate) names: Names,
    pub(crate) scopes: Scopes,
    pub(crate) values: Values,
    pub(crate) lifter: Lifter,
    pub(crate) scratch: Vec<u8>,
    pub(crate) parameters: Parameters,
    /// Messages that an error made the server skip; empty between calls.
    pub(crate) skipped: Vec<Due>,
    pub(crate) prepared: Named<Prepared>,
    pub(crate) portals: Named<Portal>,
    /// The serial of the last statement that was prepared.
    pub(crate) last_serial: u64,
    /// By template.
    pub(crate) learned: Lessons,
    pub(crate) capture: Capture,
    pub(crate) stream: StreamEncoder,
    pub(crate) status: TransactionStatus,
    pub(crate) begin: EarlyBegin,
    pub(crate) facts: Facts,
    pub(crate) inquiries: Inquiries,
    /// What is being looked up in the catalogue.
    pub(crate) surveying: Option<Surveying>,
    pub(crate) loops: Loops,
    pub(crate) chatter: Chatter,
    /// What the server's last ReadyForQuery said, whoever it was for.
    pub(crate) server_status: u8,
    pub(crate) told: Told,
    pub(crate) watching: Watching,
    pub(crate) cursors: Cursors,
    pub(crate) lobs: Lobs,
    /// Its number in the fence.
    pub(crate) fence_member: u64,
    /// The last transaction that was answered when the unit in front came, if that waits for the fence.
    pub(crate) fenced_until: Option<u64>,
    /// When ends were answered that the server has not confirmed.
    pub(crate) ends_unconfirmed: VecDeque<Moment>,
    pub(crate) raised: Raised,
    /// Who takes the replies to what is being booked.
    pub(crate) taker: Taker,
    /// The client has sent messages of an extended group, and not the Sync that ends it: a Sync of the session's own would
    /// end it for the server. A Query does not end it as long as an error may have the server skip that, too.
    pub(crate) in_group: bool,
    /// Nothing of the client's was under way when the unit that it sends began.
    pub(crate) begins_unit_alone: bool,
    /// The server has said that it ends the session.
    pub(crate) is_ending: bool,
    pub(crate) named_seen: bool,
    pub(crate) to_client: Vec<u8>,
    /// The client has yet to take what was sent to it.
    pub(crate) client_is_behind: bool,
    pub(crate) to_server: Vec<u8>,
    /// Bytes of the message that is passing by, still to come from the client and from the server.
    pub(crate) client_passing: usize,
    pub(crate) server_passing: usize,
    /// What passes by from the server is dropped: it is the session's own.
    pub(crate) server_dropping: bool,
    pub(crate) backend_key: Option<BackendKey>,
    /// Requests for encryption that were answered.
    pub(crate) answered: Answered,
    pub(crate) client_tls: ClientTls,
    /// Passwords and like proofs that the server has asked for and the client has not sent; below zero when they were
    /// sent ahead. While one is due, the server takes any message for it.
    pub(crate) proofs_due: i32,
    pub(crate) unasked_replies: u64,
    pub(crate) undecoded: u64,
    pub(crate) last_reply_unit: u64,
    /// When the client said that it ends, or was gone.
    pub(crate) client_left_at: Option<Moment>,
    /// Both sides speak for themselves: nothing is answered or changed.
    pub(crate) is_observed: bool,
    /// The message that is being booked ends before its length: the rest was not captured.
    pub(crate) is_cut: bool,
    /// Bytes of replies were missed since the books last were whole.
    pub(crate) lost_results: bool,
}

/// Which requests for encryption were answered: each may be made once.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Answered {
    pub(crate) ssl: bool,
    pub(crate) gssapi: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The client has not sent its startup packet.
    Opening,
    /// The server decides whether to let the client in.
    Entering,
    /// Queries.
    Serving,
}

/// Which result's rows are being kept, and how.
#[derive(Debug, Default)]
pub(crate) struct Capture {
    pub(crate) unit: u64,
    pub(crate) statement: u16,
    pub(crate) layout: u32,
    pub(crate) active: bool,
}

impl Session {
    /// A session whose client has just connected.
    pub fn new(config: SessionConfig) -> Self {
        Self {
            values: Values::new(config.hasher.clone()),
            phase: Phase::Opening,
            queue: ReplyQueue::default(),
            units: Units::default(),
            names: Names::new(Arc::clone(&config.texts)),
            scopes: Scopes::default(),
            lifter: Lifter::new(),
            scratch: Vec::new(),
            parameters: Parameters::default(),
            skipped: Vec::new(),
            prepared: Named::default(),
            portals: Named::default(),
            last_serial: 0,
            learned: Lessons::default(),
            capture: Capture::default(),
            stream: StreamEncoder::default(),
            status: TransactionStatus::Idle,
            begin: EarlyBegin::default(),
            facts: Facts::default(),
            inquiries: Inquiries::new(config.private),
            surveying: None,
            loops: Loops::default(),
            chatter: Chatter::default(),
            server_status: b'I',
            told: Told::default(),
            watching: Watching::default(),
            cursors: Cursors::default(),
            lobs: Lobs::default(),
            fence_member: config.common.fence.join(),
            fenced_until: None,
            ends_unconfirmed: VecDeque::new(),
            raised: Raised::default(),
            taker: Taker::Client,
            in_group: false,
            begins_unit_alone: false,
            is_ending: false,
            named_seen: false,
            to_client: Vec::new(),
            client_is_behind: false,
            to_server: Vec::new(),
            client_passing: 0,
            server_passing: 0,
            server_dropping: false,
            backend_key: None,
            answered: Answered::default(),
            client_tls: ClientTls::default(),
            proofs_due: 0,
            unasked_replies: 0,
            undecoded: 0,
            last_reply_unit: 0,
            client_left_at: None,
            is_observed: false,
            is_cut: false,
            lost_results: false,
            config,
        }
    }

    /// Decides about the message at the front of `input`, which came from the client.
    ///
    /// # Errors
    ///
    /// [`SessionError::Client`] when its framing is broken; the outbox for the client then holds the error that
    /// PostgreSQL would send.
    pub fn handle_client(&mut self, now: Moment, input: &[u8]) -> Result<Verdict, SessionError> {
        if let Some(verdict) = passing(&mut self.client_passing, input) {
            if let Verdict::Forward(bytes) = verdict {
                self.units.bytes_sent(bytes);
            }
            return Ok(verdict);
        }
        match self.phase {
            Phase::Opening => self.handle_opening(now, input),
            Phase::Entering => self.handle_entering_client(now, input),
            Phase::Serving => self.handle_request(now, input),
        }
    }

    /// Decides about the message at the front of `input`, which came from the server.
    ///
    /// # Errors
    ///
    /// [`SessionError::Server`] when its framing is broken, [`SessionError::ChannelBindingOnly`] when no way of
    /// authentication is left; the outbox for the client then says so.
    pub fn handle_server(&mut self, now: Moment, input: &[u8]) -> Result<Verdict, SessionError> {
        if let Some(verdict) = passing(&mut self.server_passing, input) {
            if let Verdict::Forward(bytes) = verdict {
                if self.server_dropping {
                    self.long_row_passes(&input[..bytes])?;
                    return Ok(Verdict::Replace(bytes));
                }
                self.units.bytes_received(self.last_reply_unit, bytes, now);
            }
            return Ok(verdict);
        }
        match self.phase {
            Phase::Opening | Phase::Entering => self.handle_entering_server(now, input),
            Phase::Serving => self.handle_reply(now, input),
        }
    }

    /// Bytes of the session's own for the client; the driver empties it.
    pub fn to_client(&mut self) -> &mut Vec<u8> {
        &mut self.to_client
    }

    /// Bytes of the session's own for the server; the driver empties it.
    pub fn to_server(&mut self) -> &mut Vec<u8> {
        &mut self.to_server
    }

    /// The records of this session, for the driver to take.
    pub fn stream(&mut self) -> &mut StreamEncoder {
        &mut self.stream
    }

    /// Whether the client has sent anything worth a record.
    pub fn has_records(&self) -> bool {
        self.phase != Phase::Opening || !self.stream.is_empty()
    }

    /// What the backend calls itself, once it has said so.
    pub fn backend_key(&self) -> Option<&BackendKey> {
        self.backend_key.as_ref()
    }

    /// Whether the client waits for an answer: only then does a cancel have anything to cancel.
    pub fn is_waiting(&self) -> bool {
        self.queue.owes_client()
            || self.units.unanswered() > 0
            || self.cursors.holds_client()
            || self.cursors.is_delivering()
            || self.lobs.holds_client()
    }

    /// Whether a cancel would hit what the client waits for, and not something that was answered before it ran
    /// (rule B9).
    pub fn may_cancel(&self) -> bool {
        self.queue.front().is_none_or(|due| !due.is_own()) || !Rule::Cancel.is_kept()
    }

    /// Whether nothing is under way: no transaction, nothing to be answered, no half of a message.
    pub fn is_at_rest(&self) -> bool {
        self.is_serving()
            && self.is_between_units()
            && !self.is_waiting()
            && self.units.len() == 0
            && self.status == TransactionStatus::Idle
            && self.server_passing == 0
    }

    /// Whether the next byte for the client begins a message.
    pub fn is_between_replies(&self) -> bool {
        (self.server_passing == 0 || self.server_dropping) && !self.cursors.is_delivering()
    }

    /// Whether the next byte from the client begins a unit: the place to hold it at.
    pub fn is_between_units(&self) -> bool {
        self.client_passing == 0 && !self.units.is_open()
    }

    /// Whether so much is unanswered that no more should be read from the client.
    pub fn is_full(&self) -> bool {
        let has_many_packets = !self.is_serving() && self.units.len() >= PACKETS_MAX;
        self.units.is_full() || self.queue.len() >= DUE_MAX || has_many_packets
    }

    /// Nothing has moved for a while: gives back what is kept for speed only.
    pub fn rest(&mut self) {
        self.units.rest();
        self.queue.rest();
        self.lifter = Lifter::new(); // it holds nothing but the room that its last text took
        for buffer in [&mut self.to_client, &mut self.to_server, &mut self.scratch] {
            if buffer.is_empty() {
                *buffer = Vec::new();
            }
        }
        if self.stream.is_empty() {
            drop(self.stream.take_block());
        }
    }

    /// The driver tells, before each message of the client's, whether the client has yet to take what was sent to it.
    pub fn set_behind(&mut self, client_is_behind: bool) {
        self.client_is_behind = client_is_behind;
    }

    /// Whether the client has been let in.
    pub fn is_serving(&self) -> bool {
        self.phase == Phase::Serving
    }

    /// Tells the client that the session ends, in the words of PostgreSQL.
    pub fn refuse(&mut self, sqlstate: &str, message: &str, hint: Option<&str>) {
        if self.phase == Phase::Entering {
            self.refused(sqlstate.as_bytes().try_into().unwrap_or(*b"?????"), message.as_bytes());
        }
        encode_error(&mut self.to_client, ErrorFields { severity: Severity::Fatal, sqlstate, message, hint });
    }

    /// Notes in whose words the session did not come about.
    pub(crate) fn refused(&mut self, sqlstate: [u8; 5], message: &[u8]) {
        self.stream.refused(sqlstate, &message[..message.len().min(REFUSAL_BYTES_MAX)]);
    }

    /// What the kernel knows of the path to the database.
    pub fn path_measured(&mut self, now: Moment, rtt_us: u32, rtt_min_us: u32) {
        let distance = Duration::from_micros(rtt_min_us.into());
        self.facts.path.measured(distance);
        self.loops.set_distance(distance);
        self.stream.path(now, rtt_us, rtt_min_us);
    }

    /// The client is gone, or will send nothing more.
    pub fn client_left(&mut self, now: Moment) {
        self.client_left_at.get_or_insert(now);
    }

    /// Ends the books; the stream holds the last record afterwards.
    pub fn close(&mut self, now: Moment) {
        self.config.common.fence.leave(self.fence_member);
        self.is_ending = true;
        self.transaction_over(); // what it may have defined may be there
        let unanswered = self.units.unanswered().into();
        self.book_verified();
        self.stream.closed(
            self.client_left_at.unwrap_or(now),
            self.unasked_replies,
            self.undecoded,
            unanswered,
        );
    }

    /// Ends the session because of the client's bytes, with the words that PostgreSQL has for it. Of a length that cannot
    /// be it says nothing (`COMMERROR` in `pqcomm.c` and `backend_startup.c`): whoever sends such may not speak the
    /// protocol at all.
    pub(crate) fn client_broke(&mut self, error: WireError) -> SessionError {
        if let WireError::UnsupportedProtocol { major, minor } = error {
            let message =
                format!("unsupported frontend protocol {major}.{minor}: server supports 3.0 to 3.0");
            if major < 3 {
                // The error of protocol 2: no length, one text.
                self.to_client.extend_from_slice(format!("EFATAL:  {message}\n\0").as_bytes());
            } else {
                self.refuse("0A000", &message, None);
            }
        }
        SessionError::Client(error)
    }

    /// Ends the session because of the server's bytes.
    pub(crate) fn server_broke(&mut self, error: WireError) -> SessionError {
        let error = SessionError::Server(error);
        self.refuse("08P01", &error.to_string(), None);
        error
    }

    /// The header at the front of a client's message, and how much of the message is worth waiting for.
    pub(crate) fn client_frame(
        &mut self,
        input: &[u8],
        length_max: u32,
    ) -> Result<Option<FrameHeader>, SessionError> {
        let is_small = self.phase == Phase::Serving && input.first().is_some_and(|tag| is_small(*tag));
        match FrameHeader::peek(input, if is_small { SMALL_LENGTH_MAX } else { length_max }) {
            None => Ok(None),
            Some(Ok(header)) => Ok(Some(header)),
            Some(Err(error)) => Err(match input.first() {
                // PostgreSQL looks at the tag before it reads the length.
                Some(tag) if self.phase == Phase::Serving && !is_taken_when_serving(*tag) => {
                    self.refuse("08P01", &format!("invalid frontend message type {tag}"), None);
                    SessionError::Client(error)
                }
                _ => self.client_broke(error),
            }),
        }
    }

    /// Encodes the exchanges that are answered in full.
    pub(crate) fn book_answered(&mut self, now: Moment) {
        while let Some(mut exchange) = self.units.next_answered(now) {
            exchange.status = self.status;
            let tally = &self.config.common.tally;
            tally.book(&exchange);
            if exchange.scope == 0 {
                self.scopes.update(tally, &mut self.names, &mut self.stream);
                exchange.scope = self.scopes.current();
            }
            if exchange.scope == 0 && self.names.leaves_out_scopes() {
                exchange.cut.unscoped += exchange.statements.len() as u64 + exchange.cut.statements;
            }
            self.stream.exchange(&exchange);
            self.units.recycle(exchange);
        }
    }
}

/// Messages that PostgreSQL takes no more than a name and a number for.
fn is_small(tag: u8) -> bool {
    use frontend::{CLOSE, COPY_DONE, COPY_FAIL, DESCRIBE, EXECUTE, FLUSH, SYNC, TERMINATE};
    matches!(tag, CLOSE | COPY_DONE | COPY_FAIL | DESCRIBE | EXECUTE | FLUSH | SYNC | TERMINATE)
}

/// What of a long message is passing by.
fn passing(rest: &mut usize, input: &[u8]) -> Option<Verdict> {
    if *rest == 0 {
        return None;
    }
    if input.is_empty() {
        return Some(Verdict::Wait);
    }
    let bytes = input.len().min(*rest);
    *rest -= bytes;
    Some(Verdict::Forward(bytes))
}
