//! The books of a watched conversation: what happened, by unit.

use std::collections::VecDeque;
use std::fmt;

use onetrip_ledger::{
    Exchange, Moment, Obstacle, Outcome, Statement, StreamEncoder, TransactionStatus, UnitKind,
};
use onetrip_sql::{Lifter, MysqlMode};
use onetrip_wire::mysql::dialogue::{Event, LostReason, Side};
use onetrip_wire::mysql::{Capabilities, Status};

use super::columns::{Described, Describing};
use super::config::MysqlConfig;
use super::prepared::{Given, ModeAfter, Statements};
use crate::canonical::Values;
use crate::charset::Charset;
use crate::lazy::Lazy;
use crate::names::Names;
use crate::parameters::Parameters;
use crate::scopes::Scopes;
use crate::units::Units;

/// Longest text of the server that is kept of a refused session, in bytes.
const REFUSAL_BYTES_MAX: usize = 1024;
/// Where the server gave no state: as its manual says for errors without one.
const NO_STATE: [u8; 5] = *b"HY000";

/// Why nothing more of a connection is understood. It passes on as it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unseen {
    /// The client speaks TLS with the server.
    Tls,
    /// What a side said is not what the protocol says.
    Lost(LostReason),
}

impl fmt::Display for Unseen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tls => f.write_str(
                "the client speaks TLS with the database, so nothing of this connection is counted. To have it counted, \
                 let the gateway speak TLS: ssl-mode=REQUIRED in the upstream's URL",
            ),
            Self::Lost(reason) => write!(
                f,
                "from here on nothing of this connection is counted, and all of it is passed on: {reason}. Is it a MySQL \
                 or MariaDB server?"
            ),
        }
    }
}

/// How far the conversation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The server is not reached yet.
    Opening,
    /// It has to greet.
    Greeting,
    /// It has; it is the client's turn.
    Greeted,
    /// The client logs in.
    Login,
    Serving,
    /// The server has said that there will be no session.
    Refused,
    /// Nothing more is understood.
    Unseen,
}

/// A command, or the login, that waits for its answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent {
    /// Its unit; none while the client has yet to answer a question of the server's.
    pub(super) number: Option<u64>,
    /// Of that unit, its statement.
    pub(super) slot: Option<u16>,
    /// The unit of the dialogue that prepared the statement.
    pub(super) prepared_by: Option<u64>,
    /// The unit of the dialogue; zero is the login.
    pub(super) unit: u64,
    /// The command.
    pub(super) code: u8,
    /// Bytes of the server's that are booked of it.
    pub(super) bytes_booked: u64,
    pub(super) mode: ModeAfter,
}

/// Whose rows are being kept.
#[derive(Debug, Default)]
pub(super) struct Capture {
    pub(super) unit: u64,
    pub(super) described: Described,
    /// Keys are kept.
    pub(super) is_active: bool,
}

#[derive(Debug)]
pub(super) struct Books {
    pub(super) config: MysqlConfig,
    /// What follows a request for TLS is given decrypted.
    pub(super) is_decrypted: bool,
    pub(super) phase: Phase,
    pub(super) units: Units,
    pub(super) names: Names,
    pub(super) scopes: Scopes,
    pub(super) values: Values,
    pub(super) lifter: Lazy<Lifter>,
    pub(super) parameters: Parameters,
    /// Values of a run, by the position of their `?`.
    pub(super) given: Vec<Given>,
    pub(super) scratch: Vec<u8>,
    pub(super) stream: StreamEncoder,
    pub(super) status: TransactionStatus,
    /// Of the command at hand.
    pub(super) mode_after: ModeAfter,
    /// What the server says, and is not so, until something sets it.
    stale_mode: Option<MysqlMode>,
    /// What of the session's `sql_mode` decides where tokens end.
    pub(super) mode: MysqlMode,
    /// The character set of the client's texts, and the one that it logged in with.
    pub(super) charset: Charset,
    pub(super) charset_of_login: Charset,
    pub(super) capabilities: Capabilities,
    /// In the order of their answers.
    pub(super) awaited: VecDeque<Sent>,
    pub(super) statements: Statements,
    pub(super) describing: Describing,
    pub(super) capture: Capture,
    /// First byte of what the client is sending.
    pub(super) began_at: Moment,
    /// Bytes of commands without an answer that belong to the next unit.
    pub(super) carried_bytes: u64,
    /// Packets come within compressed ones: what passes is counted as it comes, and they are not.
    is_compressed: bool,
    /// Bytes of both sides that no packet is known of yet: those of the greeting and of the login.
    raw: [u64; 2],
    pub(super) undecoded: u64,
    unasked_replies: u64,
    /// Bytes that passed without being understood.
    unseen_bytes: u64,
    unseen: Option<Unseen>,
    client_left_at: Option<Moment>,
}

impl Books {
    pub(super) fn new(config: MysqlConfig) -> Self {
        Self {
            values: Values::new(config.hasher.clone()),
            names: Names::new(config.texts.clone()),
            config,
            is_decrypted: false,
            phase: Phase::Opening,
            units: Units::default(),
            scopes: Scopes::default(),
            lifter: Lazy::default(),
            parameters: Parameters::default(),
            given: Vec::new(),
            scratch: Vec::new(),
            stream: StreamEncoder::default(),
            status: TransactionStatus::Idle,
            mode_after: ModeAfter::default(),
            stale_mode: None,
            mode: MysqlMode::default(),
            charset: Charset::default(),
            charset_of_login: Charset::default(),
            capabilities: Capabilities::default(),
            awaited: VecDeque::new(),
            statements: Statements::default(),
            describing: Describing::default(),
            capture: Capture::default(),
            began_at: Moment(0),
            carried_bytes: 0,
            is_compressed: false,
            raw: [0; 2],
            undecoded: 0,
            unasked_replies: 0,
            unseen_bytes: 0,
            unseen: None,
            client_left_at: None,
        }
    }

    /// Takes what the dialogue tells.
    pub(super) fn on(&mut self, now: Moment, event: Event<'_>) {
        match event {
            Event::Greeting(greeting) => self.greeted(now, &greeting),
            Event::Tls(_) => self.encrypted(now),
            Event::Login(login) => self.logs_in(now, &login),
            Event::AuthData(Side::Client, data) => self.login_goes_on(now, data.len() as u64),
            Event::Asked(bytes) => self.asked(now, bytes),
            Event::Command(command) => self.command(now, &command),
            Event::CommandRest(bytes) => self.client_sent(self.own(bytes)),
            Event::FileSent(bytes) => self.file_sent(now, bytes),
            Event::Prepared(ok) => self.prepared(&ok),
            Event::Columns(count) => self.columns(count),
            Event::Column(column) => self.column(&column),
            Event::Row(row) => self.row(&row),
            Event::Done(ok) => self.status(ok.status),
            Event::RowsDone { status, .. } => self.status(status),
            Event::Failed(error) => self.failed(&error),
            Event::Unasked(error) => self.unasked(now, &error),
            Event::Replied(reply) => self.replied(now, &reply),
            Event::Streamed(side, bytes) => self.streamed(now, side, bytes),
            Event::Lost(lost) => self.ends_unseen(now, Unseen::Lost(lost.reason)),
            Event::AuthSwitch(_)
            | Event::AuthData(Side::Server, _)
            | Event::Progress(_)
            | Event::FileWanted(_)
            | Event::Text(_) => {}
        }
    }

    pub(super) fn set_capabilities(&mut self, capabilities: Capabilities) {
        self.capabilities = capabilities;
    }

    /// The client's next byte begins a packet.
    pub(super) fn client_begins(&mut self, now: Moment) {
        self.began_at = now;
    }

    /// Bytes of the server's come: the oldest unit is being answered.
    pub(super) fn server_speaks(&mut self, now: Moment) {
        if let Some(number) = self.awaited.front().and_then(|sent| sent.number) {
            self.units.bytes_received(number, 0, now);
        }
    }

    /// Counts bytes before the dialogue takes them apart.
    pub(super) fn count_raw(&mut self, now: Moment, side: Side, bytes: usize) {
        self.is_compressed = self.phase == Phase::Serving && is_compressed(self.capabilities);
        if self.phase != Phase::Serving {
            self.raw[side as usize] += bytes as u64;
        } else if self.is_compressed && side == Side::Server {
            self.units.bytes_received(self.units.oldest(), bytes, now);
        }
    }

    /// Counts them after that, where the unit that they belong to is known only then.
    pub(super) fn count_compressed(&mut self, side: Side, bytes: usize) {
        if std::mem::take(&mut self.is_compressed) && side == Side::Client {
            self.client_sent(bytes as u64);
        }
    }

    /// Bytes of packets, as far as these were not counted with the compressed ones that they came in.
    pub(super) fn own(&self, bytes: u64) -> u64 {
        if self.is_compressed { 0 } else { bytes }
    }

    /// Whether bytes of the greeting came.
    pub(super) fn has_greeting_begun(&self) -> bool {
        self.raw[Side::Server as usize] > 0
    }

    /// Bytes of a side that are not booked.
    pub(super) fn take_raw(&mut self, side: Side) -> u64 {
        std::mem::take(&mut self.raw[side as usize])
    }

    /// What of a session's state is known by its last packet.
    pub(super) fn status(&mut self, status: Status) {
        self.status = match status.has(Status::IN_TRANSACTION) {
            true => TransactionStatus::Active,
            false => TransactionStatus::Idle,
        };
        let told = MysqlMode {
            ansi_quotes: status.has(Status::ANSI_QUOTES),
            no_backslash_escapes: status.has(Status::NO_BACKSLASH_ESCAPES),
        };
        match self.awaited.front().map_or(ModeAfter::Set, |sent| sent.mode) {
            ModeAfter::Restored => self.stale_mode = Some(told).filter(|told| *told != self.mode),
            ModeAfter::Kept if self.stale_mode == Some(told) => {}
            ModeAfter::Kept | ModeAfter::Set => (self.mode, self.stale_mode) = (told, None),
        }
    }

    /// Nothing more of the connection is understood.
    pub(super) fn ends_unseen(&mut self, now: Moment, unseen: Unseen) {
        self.enter_unseen(now);
        self.unseen = Some(unseen);
    }

    /// Bytes pass, of which nothing is understood if the conversation is lost.
    pub(super) fn pass_unseen(&mut self, bytes: usize) {
        if self.phase == Phase::Unseen {
            self.unseen_bytes += bytes as u64;
        }
    }

    pub(super) fn take_unseen(&mut self) -> Option<Unseen> {
        self.unseen.take()
    }

    /// Whether TLS is to be taken out of what the server says now.
    pub(super) fn hides_tls(&self) -> bool {
        self.config.hides_tls && self.phase == Phase::Greeting && !self.has_greeting_begun()
    }

    /// From here on packets are not understood.
    pub(super) fn enter_unseen(&mut self, now: Moment) {
        if matches!(self.phase, Phase::Opening | Phase::Greeting | Phase::Greeted) {
            self.opened_unseen(now);
        }
        self.phase = Phase::Unseen;
    }

    /// Bytes of a side passed and were not seen, or not understood.
    pub(super) fn miss(&mut self, now: Moment, side: Side, bytes: u64) {
        self.enter_unseen(now);
        self.unseen_bytes = 0; // who says what was missed counts it
        match side {
            Side::Client => {
                if !self.units.is_open() {
                    let number = self.units.open(now, UnitKind::Query);
                    self.units.owes(number);
                }
                self.units.bytes_sent(bytes as usize);
            }
            Side::Server => self.units.bytes_received(self.units.oldest(), bytes as usize, now),
        }
    }

    /// All that the client sent was answered, at `now`. What was not seen of it stays unknown.
    pub(super) fn settle_unseen(&mut self, now: Moment) {
        let values = &self.values;
        self.units.for_each(|number, exchange| {
            exchange.results.clear();
            for statement in &mut exchange.statements {
                statement.results = 0;
                // A result whose end is not seen is like no other.
                statement.result_digest = values.digest(statement.result_digest, &number.to_le_bytes()) & !1;
            }
        });
        self.awaited.clear();
        self.capture.is_active = false;
        self.units.end_all();
        self.book_answered(now);
    }

    /// Packets are understood from here on.
    pub(super) fn resume(&mut self, knows_statements: bool) {
        if !knows_statements {
            self.statements.clear();
        }
        (self.phase, self.unseen) = (Phase::Serving, None);
    }

    pub(super) fn is_greeted(&self) -> bool {
        self.phase == Phase::Greeted
    }

    /// Whether packets are not understood.
    pub(super) fn is_lost(&self) -> bool {
        self.phase == Phase::Unseen
    }

    /// Whether nothing more is looked at.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Unseen | Phase::Refused)
    }

    pub(super) fn is_serving(&self) -> bool {
        matches!(self.phase, Phase::Serving | Phase::Unseen)
    }

    pub(super) fn is_at_rest(&self) -> bool {
        self.phase == Phase::Serving && self.units.len() == 0 && self.status == TransactionStatus::Idle
    }

    pub(super) fn is_full(&self, awaited_max: usize) -> bool {
        !self.is_over() && (self.units.is_full() || self.awaited.len() >= awaited_max)
    }

    pub(super) fn has_records(&self) -> bool {
        self.phase != Phase::Opening || !self.stream.is_empty()
    }

    pub(super) fn stream(&mut self) -> &mut StreamEncoder {
        &mut self.stream
    }

    pub(super) fn rest(&mut self) {
        self.units.rest();
        self.lifter = Lazy::default(); // it holds nothing but the room that its last text took
        (self.scratch, self.given) = (Vec::new(), Vec::new());
        self.describing.rest();
        if self.awaited.is_empty() {
            self.awaited = VecDeque::new();
        }
        if self.stream.is_empty() {
            drop(self.stream.take_block());
        }
    }

    pub(super) fn client_left(&mut self, now: Moment) {
        self.client_left_at.get_or_insert(now);
    }

    pub(super) fn close(&mut self, now: Moment) {
        if matches!(self.phase, Phase::Greeting | Phase::Greeted) {
            self.opened_unseen(now); // it left without a word
        }
        if self.unseen_bytes > 0 {
            self.stream.lost(std::mem::take(&mut self.unseen_bytes));
        }
        let unanswered = self.units.unanswered().into();
        let at = self.client_left_at.unwrap_or(now);
        self.stream.closed(at, self.unasked_replies, self.undecoded, unanswered);
    }

    /// Encodes the exchanges that are answered in full.
    pub(super) fn book_answered(&mut self, now: Moment) {
        while let Some(mut exchange) = self.units.next_answered(now) {
            exchange.status = self.status;
            exchange.obstacle = Some(Obstacle::WatchedOnly);
            let tally = &self.config.common.tally;
            tally.book(&exchange);
            self.scopes.settle(&mut exchange, tally, &mut self.names, &mut self.stream);
            self.stream.exchange(&exchange);
            self.units.recycle(exchange);
        }
    }

    /// A unit that owes one reply, and to which nothing more belongs.
    pub(super) fn open(&mut self, now: Moment, kind: UnitKind, bytes: u64) -> u64 {
        let number = self.units.open(now, kind);
        self.units.owes(number);
        self.units.bytes_sent(bytes as usize); // of what was carried, too
        self.units.close(None);
        number
    }

    /// A unit is answered.
    pub(super) fn answered(&mut self, now: Moment, number: u64) {
        self.units.settled(number);
        self.book_answered(now);
    }

    pub(super) fn exchange_mut(&mut self, number: u64) -> Option<&mut Exchange> {
        self.units.exchange_mut(number)
    }

    pub(super) fn statement_mut(&mut self, sent: Sent) -> Option<&mut Statement> {
        self.units.exchange_mut(sent.number?)?.statements.get_mut(usize::from(sent.slot?))
    }

    /// Notes in whose words the session did not come about.
    pub(super) fn refused(&mut self, state: [u8; 5], message: &[u8]) {
        self.stream.refused(state, &message[..message.len().min(REFUSAL_BYTES_MAX)]);
    }

    /// The server said something that nobody asked for.
    pub(super) fn count_unasked(&mut self) {
        self.unasked_replies += 1;
    }
}

/// Whether packets are within compressed ones once the client is let in.
pub(super) fn is_compressed(capabilities: Capabilities) -> bool {
    [Capabilities::COMPRESS, Capabilities::ZSTD_COMPRESSION].iter().any(|flag| capabilities.has(*flag))
}

/// What an error makes of a statement.
pub(super) fn failure(state: Option<&[u8]>) -> Outcome {
    Outcome::Failed(state_of(state))
}

/// SQLSTATE of an error.
pub(super) fn state_of(state: Option<&[u8]>) -> [u8; 5] {
    state.and_then(|state| state.try_into().ok()).unwrap_or(NO_STATE)
}
