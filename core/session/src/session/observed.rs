//! A conversation that is only watched: both sides speak for themselves, and some of what they said may not be known.
//!
//! A packet capture feeds a session by [`Session::observe_client`] and [`Session::observe_server`] in place of the
//! `handle_*` of a gateway. What the capture missed is said by [`Session::miss_client`] and [`Session::miss_server`]; the
//! books go on at [`Session::resume`]. What was not seen is booked as unknown, never guessed.

use onetrip_ledger::{Moment, TransactionStatus, UnitKind};
use onetrip_wire::pg::{FrameHeader, HEADER_BYTES, backend};

use super::Session;
use super::core::{Capture, Phase};
use crate::config::{Remedies, SessionConfig};
use crate::contract::{INSPECT_BYTES_MAX, LENGTH_MAX, Opening, SessionError, Verdict};
use crate::reply_queue::{Due, Expect};

/// What became of the bytes at the front.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Observed {
    /// More must come first.
    Wait,
    /// So many are booked.
    Booked(usize),
    /// They ask to cancel what another session runs; nothing more belongs to this one.
    Cancel,
}

impl From<Verdict> for Observed {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Wait | Verdict::Hold => Self::Wait,
            Verdict::Forward(bytes) | Verdict::Replace(bytes) => Self::Booked(bytes),
        }
    }
}

impl Session {
    /// A session that is watched from its first byte on. It has no remedies, whatever it is told.
    pub fn observed(config: SessionConfig) -> Self {
        let mut session = Self::new(SessionConfig { remedies: Remedies::default(), ..config });
        (session.core.is_observed, session.core.is_passive) = (true, true);
        session
    }

    /// A session that is watched from its middle on: what it has prepared and set is unknown.
    pub fn joined(config: SessionConfig, now: Moment) -> Self {
        let mut session = Self::observed(config);
        session.begin_unseen(now);
        session
    }

    /// Books the message at the front of `input`, which the client sent; `is_cut` where the rest of `input` is missing.
    ///
    /// # Errors
    ///
    /// Its framing is broken: the books can go on at [`Self::resume`].
    pub fn observe_client(
        &mut self,
        now: Moment,
        input: &[u8],
        is_cut: bool,
    ) -> Result<Observed, SessionError> {
        if self.is_opening() {
            return self.observe(now, input, is_cut, |session, now, input| {
                Ok(match session.handle_opening(now, input)? {
                    Opening::Wait => Observed::Wait,
                    Opening::Answer(bytes) | Opening::Connect(bytes) => Observed::Booked(bytes),
                    Opening::Cancel { .. } => Observed::Cancel,
                })
            });
        }
        self.observe(now, input, is_cut, |session, now, input| {
            session.handle_client(now, input).map(Observed::from)
        })
    }

    /// The same for a message of the server.
    ///
    /// # Errors
    ///
    /// As [`Self::observe_client`].
    pub fn observe_server(
        &mut self,
        now: Moment,
        input: &[u8],
        is_cut: bool,
    ) -> Result<Observed, SessionError> {
        self.observe(now, input, is_cut, |session, now, input| {
            session.handle_server(now, input).map(Observed::from)
        })
    }

    /// Books the whole rows of a result at the front of `input`, which the server sent: as [`Self::observe_server`] does, and
    /// with less work for each. Returns how many bytes they have; what is left is for that.
    pub fn observe_rows(&mut self, now: Moment, input: &[u8]) -> usize {
        let is_between =
            self.core.is_passive && self.core.phase == Phase::Serving && self.core.server_passing == 0;
        if is_between { self.whole_rows(now, input) } else { 0 }
    }

    /// The same between two messages of a server that has let the client in, where no remedy wants to hear of rows.
    pub(super) fn whole_rows(&mut self, now: Moment, input: &[u8]) -> usize {
        let is_of_client = |due: &Due| matches!(due.expect, Expect::Query | Expect::Execute) && !due.is_own();
        if input.first() != Some(&backend::DATA_ROW) {
            return 0;
        }
        let Some(due) = self.core.queue.front().filter(is_of_client) else { return 0 };
        let mut used = 0;
        while let Some(mut body) = row_in(&input[used..]) {
            let mut rows = self.next_rows(due);
            loop {
                used += HEADER_BYTES + body.len();
                let goes_on = rows.as_mut().is_none_or(|rows| rows.add(body, true));
                match row_in(&input[used..]).filter(|_| goes_on) {
                    Some(next) => body = next,
                    None => break,
                }
            }
        }
        if used > 0 {
            self.core.last_reply_unit = due.unit;
            self.core.units.bytes_received(due.unit, used, now);
        }
        used
    }

    /// The client had not received the last reply when it sent what is booked next: that shares the trip.
    pub fn client_has_read(&mut self, has_read: bool) {
        self.core.units.reads(has_read);
    }

    /// Bytes of the client's are not known. Returns how many of them are outside the message that is passing by; with any,
    /// the framing is lost.
    pub fn miss_client(&mut self, now: Moment, bytes: u64) -> u64 {
        let inside = bytes.min(self.core.client_passing as u64);
        self.core.client_passing -= inside as usize;
        if bytes > inside {
            // Whatever it was, it begins or belongs to a unit.
            let kind = if self.core.queue.is_copying_in() { UnitKind::CopyIn } else { UnitKind::Query };
            self.core.units.open(now, kind);
        }
        self.core.units.bytes_sent(bytes as usize);
        bytes - inside
    }

    /// The same for bytes of the server.
    pub fn miss_server(&mut self, now: Moment, bytes: u64) -> u64 {
        let inside = bytes.min(self.core.server_passing as u64);
        self.core.server_passing -= inside as usize;
        let unit = if bytes > inside { self.core.units.oldest() } else { self.core.last_reply_unit };
        self.core.units.bytes_received(unit, bytes as usize, now);
        self.core.lost_results |= bytes > inside;
        bytes - inside
    }

    /// Everything that the client sent is answered, `now`, and the next bytes of either side begin a message. `knows_names`
    /// where no byte of the client's was missed, so that what is prepared is still known. `status` is what the server's
    /// last ReadyForQuery said, if it was seen.
    pub fn resume(&mut self, now: Moment, knows_names: bool, status: Option<TransactionStatus>) {
        (self.core.client_passing, self.core.server_passing, self.core.server_dropping) = (0, 0, false);
        self.core.queue = Default::default();
        self.core.capture = Capture::default();
        self.core.skipped.clear();
        self.core.in_group = false;
        self.core.portals.clear();
        if !knows_names {
            self.core.prepared.clear();
        }
        if let Some(status) = status {
            self.core.status = status;
        }
        let (values, is_lost) = (&self.core.values, self.core.lost_results || !knows_names);
        self.core.units.for_each(|number, exchange| {
            if is_lost {
                exchange.results.clear();
                for statement in &mut exchange.statements {
                    statement.results = 0;
                    // A result whose end is not seen is like no other.
                    statement.result_digest =
                        values.digest(statement.result_digest, &number.to_le_bytes()) & !1;
                }
            }
        });
        self.core.lost_results = false;
        self.core.units.end_all();
        self.book_answered(now);
        if self.core.phase != Phase::Serving {
            let is_unseen = self.core.phase == Phase::Opening;
            self.core.phase = Phase::Serving;
            if is_unseen {
                self.begin_unseen(now);
            }
        }
    }

    /// Whether the server reads COPY data.
    pub fn is_copying_in(&self) -> bool {
        self.core.queue.is_copying_in()
    }

    /// Whether one statement is all that the server has yet to answer: what is missing of its reply is missing there.
    pub fn owes_one_statement(&self) -> bool {
        self.core.queue.owes_one_statement()
    }

    /// After a gap in the COPY data of the client, its next byte begins a message. What is prepared is unknown: the gap may
    /// hold more than data.
    pub fn find_client(&mut self) {
        self.core.client_passing = 0;
        self.core.prepared.clear();
    }

    /// After a gap in the COPY data of the server, its next byte begins a message.
    pub fn find_server(&mut self) {
        (self.core.server_passing, self.core.server_dropping) = (0, false);
        self.core.lost_results = false; // COPY data is no result that is compared
    }

    /// Units that were sent and not answered.
    pub fn unanswered(&self) -> u32 {
        self.core.units.unanswered()
    }

    /// Whether a message of the server is passing by whose rest is still to come.
    pub fn is_server_passing(&self) -> bool {
        self.core.server_passing > 0
    }

    /// Replies that nobody asked for, so far: with more of them, what is booked is not what was said.
    pub fn unasked_replies(&self) -> u64 {
        self.core.unasked_replies
    }

    fn begin_unseen(&mut self, now: Moment) {
        self.core.phase = Phase::Serving;
        self.core.stream.opened(now, []);
        self.config.common.tally.opened();
    }

    /// What `handle` makes of the message at the front of `input`, as someone sees it who cannot change anything.
    fn observe(
        &mut self,
        now: Moment,
        input: &[u8],
        is_cut: bool,
        handle: impl FnOnce(&mut Self, Moment, &[u8]) -> Result<Observed, SessionError>,
    ) -> Result<Observed, SessionError> {
        self.core.is_cut = is_cut && !is_whole(input);
        let observed = handle(self, now, input);
        self.core.is_cut = false;
        self.core.to_client.clear();
        self.core.to_server.clear();
        observed
    }
}

/// The body of the row at the front, if that is there, whole and not too long to be looked into.
fn row_in(input: &[u8]) -> Option<&[u8]> {
    let Ok(header) = FrameHeader::peek(input, LENGTH_MAX)? else { return None };
    let is_row = header.tag == backend::DATA_ROW && header.frame_len() <= INSPECT_BYTES_MAX;
    input.get(HEADER_BYTES..header.frame_len()).filter(|_| is_row)
}

/// Whether all of the message at the front is there.
fn is_whole(input: &[u8]) -> bool {
    matches!(FrameHeader::peek(input, LENGTH_MAX), Some(Ok(header)) if header.frame_len() <= input.len())
}
