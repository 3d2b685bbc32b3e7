//! MySQL's bytes to a [`MysqlSession`]. What was not captured is said. Packets are understood again from the client's next
//! turn that holds commands only, and that the server answers as such.

use std::sync::Arc;

use onetrip_ledger::{Moment, StreamEncoder};
use onetrip_session::{MysqlConfig, MysqlSession};
use onetrip_wire::mysql::dialogue::Side;
use onetrip_wire::mysql::{Capabilities, ClientHello, HEADER_BYTES, Handshake, PacketHeader, server};

use crate::tcp::{Chunk, Way, is_after};
use crate::tls::{Closed, KeyLog, Tls, are_records};
use crate::turns::Turns;

/// Longest turn that is kept until it is answered, in bytes.
const HELD_BYTES_MAX: usize = 1 << 20;
/// Longest greeting that is believed of a server at a port that is not known for MySQL.
const GREETING_BYTES_MAX: usize = 512;

/// One connection's conversation.
#[derive(Debug)]
pub(crate) struct Mysql {
    pub(crate) session: MysqlSession,
    /// Bytes of the client's are unknown since the books last were whole.
    lost_client: bool,
    held: Option<Held>,
    /// The server has said something since the client last did.
    is_answered: bool,
    server_at: Moment,
    /// The number of the server's byte after its last whole reply.
    answered_until: Option<u32>,
    pub(crate) unknown_bytes: u64,
    keys: Option<Arc<KeyLog>>,
    /// What opens its TLS.
    tls: Option<Box<Tls>>,
    /// What followed a request for TLS that nothing opens.
    sealed: Vec<u8>,
    /// The session was opened in the books, without its login.
    is_joined: bool,
    /// What is read comes out of TLS: how many bytes of it are in a gap is not known.
    is_unsealed: bool,
}

/// Whether a server's first bytes are MySQL's; at a port that is known for it, an error may be as well.
pub(crate) fn is_greeting(bytes: &[u8], is_mysql_port: bool) -> bool {
    let Some(header) = PacketHeader::peek(bytes).filter(|header| header.sequence == 0) else { return false };
    let body = &bytes[HEADER_BYTES..];
    if is_mysql_port && body.first() == Some(&server::ERR) {
        return true;
    }
    let is_whole = header.packet_len() == bytes.len() && bytes.len() <= GREETING_BYTES_MAX;
    is_whole
        && Handshake::decode(body).is_ok_and(|greeting| greeting.capabilities.has(Capabilities::PROTOCOL_41))
}

/// A turn of the client's at which packets may be understood again, which its answer shows.
#[derive(Debug)]
struct Held {
    began_at: Moment,
    bytes: Vec<u8>,
}

impl Mysql {
    /// A conversation from its first byte; the client's connection was there at `connected_at`.
    pub(crate) fn new(config: MysqlConfig, keys: Option<Arc<KeyLog>>, connected_at: Moment) -> Self {
        let mut session = MysqlSession::decrypted(config);
        session.connected(connected_at);
        Self::with(session, keys, false)
    }

    /// One whose beginning was not captured.
    pub(crate) fn joined(config: MysqlConfig, now: Moment) -> Self {
        Self::with(MysqlSession::joined(config, now), None, true)
    }

    fn with(session: MysqlSession, keys: Option<Arc<KeyLog>>, lost_client: bool) -> Self {
        Self {
            session,
            is_joined: lost_client,
            is_unsealed: false,
            lost_client,
            held: None,
            is_answered: false,
            server_at: Moment::default(),
            answered_until: None,
            unknown_bytes: 0,
            keys,
            tls: None,
            sealed: Vec::new(),
        }
    }

    /// The client sent something, with an acknowledgement of what it had received; `server_next` is the number of the
    /// server's next byte.
    ///
    /// # Errors
    ///
    /// It is encrypted, and cannot be opened.
    pub(crate) fn client(
        &mut self,
        now: Moment,
        chunk: Chunk<'_>,
        acknowledged: u32,
        server_next: u32,
    ) -> Result<(), Closed> {
        if let Some(mut tls) = self.tls.take() {
            let has_read = !is_after(server_next, acknowledged);
            tls.client_turn(now, chunk, has_read, self.session.stream());
            let taken = tls.take(Way::Up, chunk, &mut |plain| {
                self.client_said(now, plain, acknowledged, server_next);
            });
            self.tls = Some(tls);
            return taken;
        }
        let may_be_tls = self.is_joined && self.session.is_lost();
        if let Some(records) = chunk.known().filter(|bytes| may_be_tls && are_records(bytes)) {
            self.seal(records);
            return Err(Closed);
        }
        let Some((request, rest)) = chunk.known().filter(|_| self.session.is_greeted()).and_then(tls_request)
        else {
            self.client_said(now, chunk, acknowledged, server_next);
            return Ok(());
        };
        self.client_said(now, Chunk::Known(request), acknowledged, server_next);
        let Some(keys) = self.keys.clone() else {
            self.sealed.extend_from_slice(rest);
            return Err(Closed);
        };
        self.tls = Some(Box::new(Tls::new(keys)));
        self.is_unsealed = true;
        match rest {
            [] => Ok(()),
            rest => self.client(now, Chunk::Known(rest), acknowledged, server_next),
        }
    }

    fn client_said(&mut self, now: Moment, chunk: Chunk<'_>, acknowledged: u32, server_next: u32) {
        if self.session.is_lost() && self.holds(now, chunk, !is_after(server_next, acknowledged)) {
            self.is_answered = false;
            return;
        }
        self.is_answered = false;
        let has_read = self.answered_until.is_none_or(|until| !is_after(until, acknowledged));
        self.session.client_has_read(has_read);
        self.said(now, Side::Client, chunk);
    }

    /// Keeps what the client says while nothing is understood, if that may be a turn at which it is again; `has_all` if the
    /// client had received all that the server had said.
    fn holds(&mut self, now: Moment, chunk: Chunk<'_>, has_all: bool) -> bool {
        if let Some(held) = &mut self.held {
            match chunk {
                Chunk::Known(bytes) if held.bytes.len() + bytes.len() <= HELD_BYTES_MAX => {
                    held.bytes.extend_from_slice(bytes);
                    return true;
                }
                _ => self.skip_held(),
            }
            return false;
        }
        let is_turn = self.is_answered && has_all;
        if is_turn {
            self.session.turn(self.server_at);
        }
        let may_begin = is_turn || self.server_at == Moment::default();
        let is_first = |bytes: &[u8]| PacketHeader::peek(bytes).is_some_and(|header| header.sequence == 0);
        let Some(bytes) = chunk.known().filter(|bytes| may_begin && is_first(bytes)) else { return false };
        self.session.client_has_read(true);
        self.held = Some(Held { began_at: now, bytes: bytes.to_vec() });
        true
    }

    /// The turn that is held was answered: packets are understood again, or it was nothing of the kind.
    fn settle_held(&mut self, answer: Option<&[u8]>) {
        let can_resume = |held: &Held| self.session.can_resume(&held.bytes, answer);
        if !self.held.as_ref().is_some_and(can_resume) {
            return self.skip_held();
        }
        let Some(held) = self.held.take() else { return };
        self.session.resume(!self.lost_client);
        (self.lost_client, self.answered_until) = (false, None);
        self.said(held.began_at, Side::Client, Chunk::Known(&held.bytes));
    }

    fn skip_held(&mut self) {
        let Some(held) = self.held.take() else { return };
        self.said(held.began_at, Side::Client, Chunk::Known(&held.bytes));
    }

    /// What the client says is encrypted, and was before the capture began.
    fn seal(&mut self, records: &[u8]) {
        if self.is_answered {
            self.session.turn(self.server_at);
        }
        self.sealed = self.held.take().map(|held| held.bytes).unwrap_or_default();
        self.sealed.extend_from_slice(records);
    }

    /// The server sent something; `server_next` is the number of the byte after it.
    ///
    /// # Errors
    ///
    /// As [`Self::client`].
    pub(crate) fn server(&mut self, now: Moment, chunk: Chunk<'_>, server_next: u32) -> Result<(), Closed> {
        let Some(mut tls) = self.tls.take() else {
            self.server_said(now, chunk, server_next);
            return Ok(());
        };
        tls.handshake.server(now, chunk.bytes());
        let taken = tls.take(Way::Down, chunk, &mut |plain| self.server_said(now, plain, server_next));
        self.tls = Some(tls);
        taken
    }

    fn server_said(&mut self, now: Moment, chunk: Chunk<'_>, server_next: u32) {
        self.settle_held(chunk.known());
        (self.is_answered, self.server_at) = (true, now);
        self.said(now, Side::Server, chunk);
        if self.session.unanswered() == 0 {
            self.answered_until = Some(server_next);
        }
    }

    fn said(&mut self, now: Moment, side: Side, chunk: Chunk<'_>) {
        let was_lost = self.session.is_lost();
        match (chunk, side) {
            (Chunk::Known(bytes), Side::Client) if !was_lost => self.session.see_client(now, bytes),
            (Chunk::Known(bytes), Side::Server) if !was_lost => self.session.see_server(now, bytes),
            (Chunk::Unknown(bytes), _) if self.is_unsealed => self.session.lose(now, side, bytes),
            _ => self.session.miss(now, side, chunk.bytes()),
        }
        let is_known = matches!(chunk, Chunk::Known(_));
        if is_known && !was_lost && self.session.is_lost() {
            self.session.miss(now, side, chunk.bytes());
        }
        if self.session.is_lost() || !is_known {
            self.unknown_bytes += chunk.bytes();
            self.lost_client |= side == Side::Client;
        }
    }

    /// Its records, what the client sent that is sealed, and the turns so far.
    pub(crate) fn into_sealed(mut self) -> (StreamEncoder, Vec<u8>, Turns) {
        let stream = std::mem::take(self.session.stream());
        let (hello, turns) = match self.tls.take() {
            Some(tls) => tls.into_unread(),
            None => (self.sealed, Turns::default()),
        };
        (stream, hello, turns)
    }

    /// Whether the books have opened a session whose login they have not.
    pub(crate) fn is_joined(&self) -> bool {
        self.is_joined
    }

    /// Whether it is read in spite of TLS.
    pub(crate) fn is_opened(&self) -> bool {
        self.tls.is_some()
    }

    /// Ends the books; `is_closed` where the connection has ended, and not the capture.
    pub(crate) fn close(&mut self, now: Moment, is_closed: bool) {
        self.settle_held(None);
        if self.session.is_lost() && self.is_answered {
            self.session.turn(self.server_at);
        }
        if is_closed && self.session.has_records() {
            self.session.close(now);
        }
    }
}

/// A client's request for TLS, and what it sent with it.
pub(crate) fn tls_request(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let header = PacketHeader::peek(bytes).filter(|header| header.sequence == 1)?;
    let (request, rest) = bytes.split_at_checked(header.packet_len())?;
    let hello = ClientHello::decode(&request[HEADER_BYTES..]);
    matches!(hello, Ok(ClientHello::Ssl(_))).then_some((request, rest))
}
