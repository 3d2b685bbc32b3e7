//! A conversation in a packet capture: its beginning may not be known, nor some of its bytes.
//!
//! What was not seen is said by [`MysqlSession::miss`]; the books go on at [`MysqlSession::resume`]. In between, turns are
//! counted: nothing else is known, and nothing is guessed.

use onetrip_ledger::Moment;
use onetrip_wire::mysql::dialogue::{Dialogue, Settings, Side};
use onetrip_wire::mysql::{Capabilities, HEADER_BYTES, command};

use super::{MysqlConfig, MysqlSession, SETTINGS};

/// What may hold for a connection whose login was not seen. The first one shows at the first rows that it is wrong, before
/// anything is booked of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Supposed(Capabilities);

impl Supposed {
    /// What every client asks for that is not older than MySQL 5.0, and every server has.
    const FIRST: Self = Self(Capabilities(
        Capabilities::PROTOCOL_41.0
            | Capabilities::TRANSACTIONS.0
            | Capabilities::MULTI_RESULTS.0
            | Capabilities::PS_MULTI_RESULTS.0,
    ));

    /// The other way to end definitions and rows.
    fn other(self) -> Self {
        Self(Capabilities(self.0.0 ^ Capabilities::DEPRECATE_EOF.0))
    }
}

impl MysqlSession {
    /// A session that is watched from its middle on: what it has prepared and set is unknown. It has to
    /// [resume](Self::resume) first.
    pub fn joined(config: MysqlConfig, now: Moment) -> Self {
        let mut session = Self::new(config);
        session.books.enter_unseen(now);
        session.suppose(Supposed::FIRST);
        session
    }

    /// A session of which what follows the client's request for TLS, if it makes one, is given decrypted.
    pub fn decrypted(config: MysqlConfig) -> Self {
        let mut session = Self::new(config);
        session.dialogue = Dialogue::new(Settings { is_decrypted: true, ..SETTINGS });
        session.books.is_decrypted = true;
        session
    }

    fn suppose(&mut self, supposed: Supposed) {
        self.dialogue = Dialogue::joined(SETTINGS, supposed.0);
        self.supposed = Some(supposed);
    }

    /// The client had not received the last reply when it sent what is seen next: that shares the trip.
    pub fn client_has_read(&mut self, has_read: bool) {
        self.books.units.reads(has_read);
    }

    /// Units that were sent and not answered.
    pub fn unanswered(&self) -> u32 {
        self.books.units.unanswered()
    }

    /// Whether the server has greeted, and the client has not said who it is.
    pub fn is_greeted(&self) -> bool {
        self.books.is_greeted()
    }

    /// Whether packets are within compressed ones.
    pub fn is_compressed(&self) -> bool {
        let capabilities = self.dialogue.capabilities();
        [Capabilities::COMPRESS, Capabilities::ZSTD_COMPRESSION].iter().any(|flag| capabilities.has(*flag))
    }

    /// Whether packets are not understood until [`Self::resume`].
    pub fn is_lost(&self) -> bool {
        self.books.is_lost()
    }

    /// Bytes of a side are not known, or belong to what is not understood. Of a packet that has begun, the rest may be missed;
    /// with more, the session [is lost](Self::is_lost).
    pub fn miss(&mut self, now: Moment, side: Side, bytes: u64) {
        let Self { dialogue, books, .. } = self;
        let outside = match books.is_over() {
            true => bytes,
            false => dialogue.miss(side, bytes, |event| books.on(now, event)),
        };
        if outside > 0 || books.is_lost() {
            books.miss(now, side, outside);
        }
    }

    /// All that the client sent was answered, at `now`. Where the session is lost, that is all that is known of it.
    pub fn turn(&mut self, now: Moment) {
        self.books.settle_unseen(now);
    }

    /// Goes on: nothing is unanswered, and the next byte of each side begins a packet; `next` are the client's. What is
    /// prepared is known as before if `knows_statements`.
    pub fn resume(&mut self, knows_statements: bool, next: &[u8]) {
        let supposed = match self.supposed {
            None => (self.dialogue.capabilities() == Capabilities::default()).then_some(Supposed::FIRST),
            Some(supposed) if self.dialogue.lost().is_some() => Some(supposed.other()),
            Some(supposed) => Some(supposed),
        };
        if let Some(Supposed(capabilities)) = supposed {
            let attributes =
                if has_attributes(next) { Capabilities::QUERY_ATTRIBUTES } else { Capabilities(0) };
            self.suppose(Supposed(capabilities | attributes));
        }
        let knows_statements = knows_statements && supposed.is_none();
        self.dialogue.resume(knows_statements);
        self.books.resume(knows_statements);
    }
}

/// Whether a statement says how many attributes it has: none, in one set. No text begins so.
fn has_attributes(bytes: &[u8]) -> bool {
    bytes.get(HEADER_BYTES..HEADER_BYTES + 3) == Some(&[command::QUERY, 0, 1])
}
