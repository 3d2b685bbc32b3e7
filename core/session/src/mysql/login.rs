//! From the greeting to the end of the login: each turn is a unit of opening the session.

use onetrip_ledger::{Moment, Statement, UnitKind};
use onetrip_wire::mysql::dialogue::Side;
use onetrip_wire::mysql::{ErrPacket, HEADER_BYTES, Handshake, HandshakeResponse, PAYLOAD_MAX};

use super::books::{Books, Phase, Sent, Unseen, failure, state_of};
use super::prepared::ModeAfter;
use crate::charset::Charset;

/// Tells sessions of this protocol from others by what they begin with.
const PROTOCOL: (&[u8], &[u8]) = (b"protocol", b"mysql");
/// What a client's library says of itself begins with it; anything else may be a program's secret.
const OF_LIBRARY: &[u8] = b"_";
const PROGRAM: &[u8] = b"program_name";
/// Longest attribute that is kept, in bytes.
const ATTRIBUTE_BYTES_MAX: usize = 200;
/// Attributes that are kept.
const ATTRIBUTES_MAX: usize = 16;

impl Books {
    /// The server was reached, and the client waits for its greeting.
    pub(super) fn connected(&mut self, now: Moment) {
        self.phase = Phase::Greeting;
        self.open(now, UnitKind::Connect, 0);
    }

    pub(super) fn greeted(&mut self, now: Moment, greeting: &Handshake<'_>) {
        self.status(greeting.status);
        self.phase = Phase::Greeted;
        self.answer_greeting(now);
    }

    fn answer_greeting(&mut self, now: Moment) {
        let (number, bytes) = (self.units.oldest(), self.take_raw(Side::Server));
        self.units.bytes_received(number, bytes as usize, now);
        self.answered(now, number);
    }

    /// The client starts TLS with the server.
    pub(super) fn encrypted(&mut self, now: Moment) {
        if self.is_decrypted {
            self.take_raw(Side::Client);
            return;
        }
        self.ends_unseen(now, Unseen::Tls);
    }

    /// A client connected, and nothing is known of who it is.
    pub(super) fn opened_unseen(&mut self, now: Moment) {
        self.stream.opened(now, [PROTOCOL]);
        self.config.common.tally.opened();
    }

    pub(super) fn logs_in(&mut self, now: Moment, login: &HandshakeResponse<'_>) {
        let attributes = login.attributes.into_iter().flat_map(|attributes| attributes.iter());
        let attributes = attributes.filter(|(name, _)| name.starts_with(OF_LIBRARY) || *name == PROGRAM);
        let cut = |text: &'_ [u8]| text.len().min(ATTRIBUTE_BYTES_MAX);
        let attributes = attributes.map(|(name, value)| (&name[..cut(name)], &value[..cut(value)]));
        let who = [(&b"user"[..], login.user), (b"database", login.database.unwrap_or_default())];
        let parameters = [PROTOCOL].into_iter().chain(who).chain(attributes.take(ATTRIBUTES_MAX));
        self.stream.opened(now, parameters);
        self.config.common.tally.opened();
        // MySQL 8 reads a second byte, which is zero for servers that read one.
        let high = login.head.reserved.first().copied().unwrap_or_default();
        self.logs_in_with(Charset::of_collation(u16::from_le_bytes([login.head.character_set, high])));
        let program = login.attributes.and_then(|all| all.iter().find(|(name, _)| *name == PROGRAM));
        if let Some((_, name)) = program {
            self.scopes.application(name, &mut self.names, &mut self.stream);
        }
        self.phase = Phase::Login;
        let bytes = self.take_raw(Side::Client);
        let number = self.open(self.began_at, UnitKind::Connect, bytes);
        self.awaited.push_back(Sent {
            number: Some(number),
            slot: None,
            prepared_by: None,
            unit: 0,
            code: 0,
            bytes_booked: 0,
            mode: ModeAfter::Set,
        });
    }

    pub(super) fn logs_in_with(&mut self, charset: Charset) {
        (self.charset, self.charset_of_login) = (charset, charset);
    }

    /// The client answers a question within a login.
    pub(super) fn login_goes_on(&mut self, now: Moment, bytes: u64) {
        self.take_raw(Side::Client);
        let Some(sent) = self.awaited.front().copied().filter(|sent| sent.number.is_none()) else { return };
        let kind = if sent.unit == 0 { UnitKind::Connect } else { UnitKind::Query };
        let number = self.open(self.began_at, kind, on_wire(bytes));
        self.began_at = now;
        if let Some(sent) = self.awaited.front_mut() {
            sent.number = Some(number);
        }
    }

    /// The server has asked the client for more: the unit so far is answered.
    pub(super) fn asked(&mut self, now: Moment, bytes: u64) {
        let own = self.own(bytes);
        let Some(sent) = self.awaited.front_mut() else { return };
        let Some(number) = sent.number else { return };
        let booked = std::mem::replace(&mut sent.bytes_booked, bytes);
        self.units.bytes_received(number, own.saturating_sub(booked) as usize, now);
        if is_login(*sent) {
            sent.number = None;
            return self.answered(now, number);
        }
        let sent = *sent;
        let template = self.statement_mut(sent).map(|asking| asking.template);
        let Some(data) = self.units.expect_copy(number) else { return };
        // What it comes to is booked where its data is: rows, an error, the statement that the trip was for.
        let statement = template.map(|template| Statement { template, ..Statement::default() });
        let slot = statement.and_then(|statement| self.units.add_statement(data, statement));
        if let Some(sent) = self.awaited.front_mut() {
            (sent.number, sent.slot) = (Some(data), slot);
        }
        self.answered(now, number);
    }

    /// The server says something unasked: usually that the connection is over.
    pub(super) fn unasked(&mut self, now: Moment, error: &ErrPacket<'_>) {
        if self.phase != Phase::Greeting {
            return self.count_unasked();
        }
        self.opened_unseen(now);
        self.phase = Phase::Refused;
        let outcome = failure(error.state);
        let number = self.units.oldest();
        if let Some(exchange) = self.exchange_mut(number) {
            exchange.outcome = outcome;
        }
        self.answer_greeting(now);
        self.refused(state_of(error.state), error.message);
    }

    /// The gateway tells a client that has not been greeted why it will not be. Returns whether it can.
    pub(super) fn refused_by_gateway(&mut self, message: &str) -> bool {
        if !matches!(self.phase, Phase::Opening | Phase::Greeting) || self.has_greeting_begun() {
            return false;
        }
        self.phase = Phase::Refused;
        self.refused(state_of(None), message.as_bytes());
        true
    }

    /// The gateway does not pass a login on, of which nothing was looked at.
    pub(super) fn login_refused(&mut self, message: &str) {
        self.opened_unseen(self.began_at);
        self.phase = Phase::Refused;
        self.refused(state_of(None), message.as_bytes());
    }
}

/// Whether the answer to this is a login's: it may have questions in it.
fn is_login(sent: Sent) -> bool {
    sent.unit == 0 || sent.code == onetrip_wire::mysql::command::CHANGE_USER
}

/// Bytes of the packets that carry so many.
pub(super) fn on_wire(bytes: u64) -> u64 {
    bytes + (bytes / PAYLOAD_MAX as u64 + 1) * HEADER_BYTES as u64
}
