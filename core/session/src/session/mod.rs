//! All of a session: its core, what it knows, its services, and each remedy once. The top layer: what the driver and both
//! sides' messages do to it, and how each remedy is asked.

mod asking;
mod client;
pub(crate) mod core;
mod cursors;
mod effects;
mod fence;
mod flights;
mod functions;
mod list;
mod lobs;
mod loops;
mod observed;
mod obstacles;
mod server;
mod startup;
mod statements;
mod texts;

use std::sync::Arc;
use std::time::Duration;

use onetrip_ledger::{Moment, Remedy, StreamEncoder, TransactionStatus};
use onetrip_wire::WireError;
use onetrip_wire::pg::{FrameHeader, frontend};

use crate::config::SessionConfig;
use crate::contract::{BackendKey, Opening, SessionError, Verdict};
use crate::events::Event;
use crate::facts::Facts;
use crate::lazy::Lazy;
use crate::own_names::OwnNames;
use crate::remedies::{Chatter, Commit, Cursors, EarlyBegin, Lobs, Loops, Statements};
use crate::rules::Rule;
use crate::services::{Endless, Flights, Inquiries, Raised, Shadow, Unseen};
use crate::unrun::UnrunTexts;

use self::core::{Core, Phase};
pub use self::observed::Observed;
use self::startup::is_taken_when_serving;

/// Longest message that holds a name and a number at most, in bytes, as in PostgreSQL (`PQ_SMALL_MESSAGE_LIMIT`).
const SMALL_LENGTH_MAX: u32 = 10_000;
/// Parameters of one statement whose hashes are kept.
const PARAMETERS_MAX: usize = 256;
/// Messages that may be unanswered; a client that sends on without reading waits.
const DUE_MAX: usize = 65_536;
/// Packets that may be unanswered before the client is let in.
const PACKETS_MAX: usize = 64;

/// One client's conversation: decides what each message becomes and counts its trips.
///
/// Contract: call one `handle_*` with the bytes at the front, do what it says, send what the outboxes hold, repeat
/// until it says [`Verdict::Wait`].
#[derive(Debug)]
pub struct Session {
    core: Core,
    own_names: OwnNames,
    config: SessionConfig,
    facts: Facts,
    acting: Lazy<Acting>,
    unrun: UnrunTexts,
    commit: Commit,
    #[cfg(test)]
    pub(crate) example: crate::remedies::Example,
    raised: Raised,
}

/// What acts in a session where some remedy is on: the remedies, and their services.
#[derive(Debug, Default)]
struct Acting {
    begin: EarlyBegin,
    inquiries: Inquiries,
    shadow: Shadow,
    unseen: Unseen,
    flights: Flights,
    loops: Loops,
    chatter: Chatter,
    statements: Statements,
    cursors: Cursors,
    lobs: Lobs,
}

impl Session {
    /// A session whose client has just connected.
    pub fn new(config: SessionConfig) -> Self {
        let mut core = Core::new(config.hasher.clone(), Arc::clone(&config.texts));
        // A level that the gateway sets is looked after.
        core.is_passive = config.remedies.is_none() && config.isolation.is_none();
        Self {
            core,
            facts: Facts::default(),
            acting: Lazy::default(),
            own_names: OwnNames::new(config.private),
            unrun: UnrunTexts::default(),
            commit: Commit::new(&config.common),
            #[cfg(test)]
            example: Default::default(),
            raised: Raised::default(),
            config,
        }
    }

    /// Decides about the packet at the front of `input`, which came from a client that has not yet sent its startup
    /// packet ([`Self::is_opening`]).
    ///
    /// # Errors
    ///
    /// [`SessionError::Client`] when it is none; the outbox for the client then holds the error that PostgreSQL would send.
    pub fn handle_opening(&mut self, now: Moment, input: &[u8]) -> Result<Opening, SessionError> {
        self.see_opening(now, input)
    }

    /// Whether the client has not yet sent its startup packet.
    pub fn is_opening(&self) -> bool {
        self.core.phase == Phase::Opening
    }

    /// Decides about the message at the front of `input`, which came from a client that has sent its startup packet.
    ///
    /// # Errors
    ///
    /// [`SessionError::Client`] when its framing is broken; the outbox for the client then holds the error that
    /// PostgreSQL would send.
    pub fn handle_client(&mut self, now: Moment, input: &[u8]) -> Result<Verdict, SessionError> {
        if let Some(verdict) = passing(&mut self.core.client_passing, input) {
            if let Verdict::Forward(bytes) = verdict {
                self.core.units.bytes_sent(bytes);
            }
            return Ok(verdict);
        }
        match self.core.phase {
            // The startup packet comes first, by the other way.
            Phase::Opening => Ok(Verdict::Wait),
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
        if let Some(verdict) = passing(&mut self.core.server_passing, input) {
            if let Verdict::Forward(bytes) = verdict {
                if self.core.server_dropping {
                    self.acting.cursors.long_row_passes(&mut self.core, &self.config, &input[..bytes])?;
                    return Ok(Verdict::Replace(bytes));
                }
                self.core.units.bytes_received(self.core.last_reply_unit, bytes, now);
            }
            return Ok(verdict);
        }
        match self.core.phase {
            Phase::Opening | Phase::Entering => self.handle_entering_server(now, input),
            Phase::Serving => self.handle_reply(now, input),
        }
    }

    /// Bytes of the session's own for the client; the driver empties it.
    pub fn to_client(&mut self) -> &mut Vec<u8> {
        &mut self.core.to_client
    }

    /// Bytes of the session's own for the server; the driver empties it.
    pub fn to_server(&mut self) -> &mut Vec<u8> {
        &mut self.core.to_server
    }

    /// The records of this session, for the driver to take.
    pub fn stream(&mut self) -> &mut StreamEncoder {
        &mut self.core.stream
    }

    /// Whether the client has sent anything worth a record.
    pub fn has_records(&self) -> bool {
        self.core.phase != Phase::Opening || !self.core.stream.is_empty()
    }

    /// What the backend calls itself, once it has said so.
    pub fn backend_key(&self) -> Option<&BackendKey> {
        self.core.backend_key.as_ref()
    }

    /// Whether the client waits for an answer: only then does a cancel have anything to cancel.
    pub fn is_waiting(&self) -> bool {
        self.core.queue.owes_client()
            || self.core.units.unanswered() > 0
            || (!self.core.is_passive
                && (self.acting.cursors.holds_client() || self.acting.lobs.holds_client()))
            || self.is_delivering()
    }

    /// Whether a cancel would hit what the client waits for, and not something that was answered before it ran
    /// (rule B9).
    pub fn may_cancel(&self) -> bool {
        Rule::Cancel.requires(self.core.queue.front().is_none_or(|due| !due.is_own()))
    }

    /// Whether nothing is under way: no transaction, nothing to be answered, no half of a message.
    pub fn is_at_rest(&self) -> bool {
        self.is_serving()
            && self.is_between_units()
            && !self.is_waiting()
            && self.core.units.len() == 0
            && self.core.status == TransactionStatus::Idle
            && self.core.server_passing == 0
    }

    /// Whether the next byte for the client begins a message.
    pub fn is_between_replies(&self) -> bool {
        (self.core.server_passing == 0 || self.core.server_dropping) && !self.is_delivering()
    }

    /// Whether the next byte from the client begins a unit: the place to hold it at.
    pub fn is_between_units(&self) -> bool {
        self.core.client_passing == 0 && !self.core.units.is_open()
    }

    /// Whether so much is unanswered that no more should be read from the client.
    pub fn is_full(&self) -> bool {
        let has_many_packets = !self.is_serving() && self.core.units.len() >= PACKETS_MAX;
        self.core.units.is_full() || self.core.queue.len() >= DUE_MAX || has_many_packets
    }

    /// Nothing has moved for a while: gives back what is kept for speed only.
    pub fn rest(&mut self) {
        self.core.units.rest();
        self.core.queue.rest();
        self.core.lifter = Lazy::default(); // it holds nothing but the room that its last text took
        for buffer in [&mut self.core.to_client, &mut self.core.to_server, &mut self.core.scratch] {
            if buffer.is_empty() {
                *buffer = Vec::new();
            }
        }
        if self.core.stream.is_empty() {
            drop(self.core.stream.take_block());
        }
    }

    /// The driver tells, before each message of the client's, whether the client has yet to take what was sent to it.
    pub fn set_behind(&mut self, client_is_behind: bool) {
        self.core.client_is_behind = client_is_behind;
    }

    /// Whether an answer from memory is on its way to the client, of which that has not yet got all.
    fn is_delivering(&self) -> bool {
        !self.core.is_passive && self.acting.cursors.is_delivering()
    }

    /// Whether the client has been let in.
    pub fn is_serving(&self) -> bool {
        self.core.phase == Phase::Serving
    }

    /// Whether this remedy is on and can be of use here.
    pub(crate) fn may_remedy(&self, remedy: Remedy) -> bool {
        self.config.remedies.has(remedy) && self.facts.path.is_worth_it()
    }

    /// Whether nothing of the client's is under way in either direction.
    pub(crate) fn is_quiet(&self) -> bool {
        self.is_answered() && !self.core.in_group
    }

    /// Whether all that the client has sent is answered; a Flush may have left its group open.
    pub(crate) fn is_answered(&self) -> bool {
        self.core.queue.owes_session_only()
            && self.core.units.unanswered() == 0
            && !self.core.units.is_open()
            && !self.core.is_server_passing()
            && !self.core.is_ending()
            && !self.acting.begin.is_followed_by_client()
    }

    /// Tells the client that the session ends, in the words of PostgreSQL.
    pub fn refuse(&mut self, sqlstate: &str, message: &str, hint: Option<&str>) {
        self.core.refuse(sqlstate, message, hint);
    }

    /// What the kernel knows of the path to the database.
    pub fn path_measured(&mut self, now: Moment, rtt_us: u32, rtt_min_us: u32) {
        let distance = Duration::from_micros(rtt_min_us.into());
        self.tell(&Event::PathMeasured(distance));
        self.core.stream.path(now, rtt_us, rtt_min_us);
    }

    /// The client is gone, or will send nothing more.
    pub fn client_left(&mut self, now: Moment) {
        self.core.client_left_at.get_or_insert(now);
    }

    /// Ends the books; the stream holds the last record afterwards.
    pub fn close(&mut self, now: Moment) {
        self.commit.leave(&self.config.common);
        self.core.is_ending = true;
        self.tell(&Event::TransactionOver); // what it may have defined may be there
        let unanswered = self.core.units.unanswered().into();
        if !self.core.is_passive {
            self.acting.shadow.close(&mut self.core);
        }
        self.core.stream.closed(
            self.core.client_left_at.unwrap_or(now),
            self.core.unasked_replies,
            self.core.undecoded,
            unanswered,
        );
    }

    /// What may never end, if that was noticed since the last call.
    pub fn take_endless(&mut self) -> Option<Endless> {
        self.raised.take_endless()
    }

    /// When the session is to be looked at, if nothing happens before.
    pub fn deadline(&self) -> Option<Moment> {
        [self.commit.confirmed_by(), self.raised.runs_long_at(&self.core, &self.facts)]
            .into_iter()
            .flatten()
            .min()
    }

    /// Looks at the session when its [`Self::deadline`] has come.
    ///
    /// # Errors
    ///
    /// [`SessionError::CommitRefused`] where the server has not confirmed an end for too long that was answered: other
    /// sessions wait for it. The outbox for the client says so.
    pub fn meet_deadline(&mut self, now: Moment) -> Result<(), SessionError> {
        let Self { core, facts, config, raised, .. } = self;
        raised.look_at_long((core, facts), config, now);
        if self.commit.confirmed_by().is_none_or(|at| now < at) || !Rule::Fence.is_kept() {
            return Ok(());
        }
        let message = "the server did not confirm for 5 s the end of a transaction that had only read, and that onetrip \
             had answered";
        let hint =
            "Nothing was written in it. Connect again; leave the remedy out by --remedies exact,-commit.";
        self.refuse("08006", message, Some(hint));
        Err(SessionError::CommitRefused)
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
                self.core.to_client.extend_from_slice(format!("EFATAL:  {message}\n\0").as_bytes());
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
        let is_small = self.core.phase == Phase::Serving && input.first().is_some_and(|tag| is_small(*tag));
        match FrameHeader::peek(input, if is_small { SMALL_LENGTH_MAX } else { length_max }) {
            None => Ok(None),
            Some(Ok(header)) => Ok(Some(header)),
            Some(Err(error)) => Err(match input.first() {
                // PostgreSQL looks at the tag before it reads the length.
                Some(tag) if self.core.phase == Phase::Serving && !is_taken_when_serving(*tag) => {
                    self.refuse("08P01", &format!("invalid frontend message type {tag}"), None);
                    SessionError::Client(error)
                }
                _ => self.client_broke(error),
            }),
        }
    }

    /// Passes the message at the front, and those behind it as long as they may go on. Only the first can fail.
    fn pass_all(
        &mut self,
        input: &[u8],
        pass: impl Fn(&mut Self, &[u8]) -> Result<Verdict, SessionError>,
        goes_on: impl Fn(&Self, &[u8]) -> bool,
    ) -> Result<Verdict, SessionError> {
        let mut passed = 0;
        loop {
            match pass(self, &input[passed..])? {
                Verdict::Forward(bytes) => passed += bytes,
                other if passed == 0 => return Ok(other),
                _ => return Ok(Verdict::Forward(passed)),
            }
            // What a capture says of a message is said of one.
            if self.core.is_observed || !goes_on(self, &input[passed..]) {
                return Ok(Verdict::Forward(passed));
            }
        }
    }

    /// Encodes the exchanges that are answered in full.
    pub(crate) fn book_answered(&mut self, now: Moment) {
        while let Some(mut exchange) = self.core.units.next_answered(now) {
            exchange.status = self.core.status;
            let tally = &self.config.common.tally;
            tally.book(&exchange);
            let Core { scopes, names, stream, units, .. } = &mut self.core;
            scopes.answered(units.oldest() - 1, exchange.outcome);
            scopes.settle(&mut exchange, tally, names, stream);
            self.core.stream.exchange(&exchange);
            self.core.units.recycle(exchange);
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
