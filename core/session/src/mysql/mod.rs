//! A MySQL or MariaDB conversation that is only watched: every byte passes as it came, and exchanges are booked.
//!
//! ```text
//!              connected               greeting              login             done
//!  Opening ---------------> Greeting ------------> Greeted ---------> Login ----------> Serving
//!                              |                      |                 |                  |
//!                              +-- not understood, or TLS of the client's with the server: Unseen
//! ```
//!
//! Contract: [`MysqlSession::connected`] once the server is reached, then [`MysqlSession::see_client`] and
//! [`MysqlSession::handle_server`] with all bytes in the order in which they are passed on. Time is an argument. Nothing that a
//! side sends ends the conversation or holds it back. Where the [`Dialogue`] is lost, the bytes that follow are counted as lost
//! records, so that no budget is taken for kept.
//!
//! What is booked: a unit is a command; the greeting, the login and each further answer within a login are units of opening
//! the session. A file of LOAD DATA LOCAL is a unit of its own, as COPY's data are. Of commands without an answer the bytes
//! belong to the unit that goes on, or to the next one. Behind a compressed login, bytes are counted as they were before.
//!
//! Non-scope: answering anything before the server does.

mod books;
mod columns;
mod config;
mod login;
mod observed;
mod prepared;
mod replies;
mod requests;
mod texts;
mod values;

use onetrip_ledger::{Moment, StreamEncoder};
use onetrip_wire::mysql::dialogue::{Dialogue, Settings, Side};
use onetrip_wire::mysql::{ErrPacket, HEADER_BYTES, Handshake, PacketHeader, packet};

use crate::contract::{INSPECT_BYTES_MAX, Verdict};
use books::Books;

pub use books::Unseen;
pub use config::MysqlConfig;

/// Bytes of a payload that has to be known whole.
const CONTROL_BYTES_MAX: usize = 256 << 10;
/// Commands that may be unanswered; a client that sends on without reading waits.
const AWAITED_MAX: usize = 16_384;
/// Prepared statements of which the dialogue knows what prepared them.
const STATEMENTS_MAX: usize = 16_384;
const SETTINGS: Settings = Settings {
    command_bytes_max: INSPECT_BYTES_MAX,
    row_bytes_max: INSPECT_BYTES_MAX,
    control_bytes_max: CONTROL_BYTES_MAX,
    awaited_max: 2 * AWAITED_MAX,
    statements_max: STATEMENTS_MAX,
    is_decrypted: false,
};

/// Why a client is not greeted, by the servers' numbers.
///
/// Source: MariaDB Knowledge Base, "MariaDB Error Code Reference".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum Refused {
    /// There is no room for another connection (`ER_CON_COUNT_ERROR`).
    Full = 1040,
    /// The gateway ends (`ER_SERVER_SHUTDOWN`).
    Stopping = 1053,
    /// Another reason (`ER_UNKNOWN_ERROR`).
    Other = 1105,
}

/// One client's conversation with a MySQL or MariaDB server, watched.
#[derive(Debug)]
pub struct MysqlSession {
    dialogue: Dialogue,
    books: Books,
    /// What the client is told in the server's place.
    to_client: Vec<u8>,
}

impl MysqlSession {
    /// A session whose client has just connected.
    pub fn new(config: MysqlConfig) -> Self {
        Self { dialogue: Dialogue::new(SETTINGS), books: Books::new(config), to_client: Vec::new() }
    }

    /// The server was reached, `now`: it has to greet.
    pub fn connected(&mut self, now: Moment) {
        self.books.connected(now);
    }

    /// The client sent these bytes, which are passed on.
    pub fn see_client(&mut self, now: Moment, bytes: &[u8]) {
        if !self.dialogue.is_inside(Side::Client) {
            self.books.client_begins(now);
        }
        self.see(now, Side::Client, bytes);
    }

    /// Decides about bytes of the server's: all are passed on as they are, but for a greeting out of which TLS is to be taken.
    pub fn handle_server(&mut self, now: Moment, input: &[u8]) -> Verdict {
        let mut bytes = input.len();
        if self.books.hides_tls() {
            let Some(header) = PacketHeader::peek(input) else { return Verdict::Wait };
            if header.packet_len() <= INSPECT_BYTES_MAX {
                let Some(greeting) = input.get(..header.packet_len()) else { return Verdict::Wait };
                if let Ok(greeting) = Handshake::decode(&greeting[HEADER_BYTES..]) {
                    packet(&mut self.to_client, header.sequence, |out| greeting.without_tls().encode(out));
                    bytes = header.packet_len();
                }
            }
        }
        self.see_server(now, &input[..bytes]);
        if self.to_client.is_empty() { Verdict::Forward(bytes) } else { Verdict::Replace(bytes) }
    }

    /// The server sent these bytes, which are passed on.
    pub fn see_server(&mut self, now: Moment, bytes: &[u8]) {
        self.books.server_speaks(now);
        self.see(now, Side::Server, bytes);
    }

    fn see(&mut self, now: Moment, side: Side, bytes: &[u8]) {
        let Self { dialogue, books, .. } = self;
        if books.is_over() {
            return books.pass_unseen(bytes.len());
        }
        books.count_raw(side, bytes.len());
        let capabilities = dialogue.capabilities();
        books.set_capabilities(capabilities);
        dialogue.take(side, bytes, |event| books.on(now, event));
        books.pass_unseen(bytes.len()); // where it was lost, what of it was understood does not matter
    }

    /// Why nothing more is understood, if that has been noticed since the last call.
    pub fn take_unseen(&mut self) -> Option<Unseen> {
        self.books.take_unseen()
    }

    /// Tells a client that has not been greeted why it will not be.
    pub fn refuse(&mut self, why: Refused, message: &str) {
        if self.books.refused_by_gateway(message) {
            let error = ErrPacket { code: why as u16, state: None, message: message.as_bytes() };
            packet(&mut self.to_client, 0, |out| error.encode(out));
        }
    }

    /// Bytes of the session's own for the client; the driver empties it.
    pub fn to_client(&mut self) -> &mut Vec<u8> {
        &mut self.to_client
    }

    /// The records of this session, for the driver to take.
    pub fn stream(&mut self) -> &mut StreamEncoder {
        self.books.stream()
    }

    /// Whether there is anything worth a record.
    pub fn has_records(&self) -> bool {
        self.books.has_records()
    }

    /// Whether the client was let in, or passes unseen.
    pub fn is_serving(&self) -> bool {
        self.books.is_serving()
    }

    /// Whether nothing is under way: no transaction, nothing to be answered, no half of a packet.
    pub fn is_at_rest(&self) -> bool {
        let is_inside = |side| self.dialogue.is_inside(side);
        self.books.is_at_rest() && !is_inside(Side::Client) && !is_inside(Side::Server)
    }

    /// Whether so much is unanswered that no more should be read from the client.
    pub fn is_full(&self) -> bool {
        self.books.is_full(AWAITED_MAX)
    }

    /// Nothing has moved for a while: gives back what is kept for speed only.
    pub fn rest(&mut self) {
        self.books.rest();
        if self.to_client.is_empty() {
            self.to_client = Vec::new();
        }
    }

    /// What the kernel knows of the path to the database.
    pub fn path_measured(&mut self, now: Moment, rtt_us: u32, rtt_min_us: u32) {
        self.books.stream().path(now, rtt_us, rtt_min_us);
    }

    /// The client is gone, or will send nothing more.
    pub fn client_left(&mut self, now: Moment) {
        self.books.client_left(now);
    }

    /// Ends the books; the stream holds the last record afterwards.
    pub fn close(&mut self, now: Moment) {
        self.books.close(now);
    }
}
