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
//! Where the gateway itself speaks TLS with the server, bytes differ until the login is over: `secured.rs` has it.
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
mod secured;
mod texts;
mod values;

use std::sync::Arc;

use onetrip_ledger::{Moment, StreamEncoder};
use onetrip_wire::mysql::dialogue::{Dialogue, Settings, Side};
use onetrip_wire::mysql::{ErrPacket, HEADER_BYTES, Handshake, PacketHeader, packet};

use crate::contract::{INSPECT_BYTES_MAX, SessionError, Verdict};
use books::Books;
use secured::{Secured, Step};

pub use books::Unseen;
pub use config::MysqlConfig;
pub use secured::{Hello, PasswordKey, TlsOffer};

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

/// SQLSTATE of a login that the gateway ends.
const STATE: &[u8] = b"HY000";

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
    /// What the server is told in the client's place.
    to_server: Vec<u8>,
    /// The gateway speaks TLS with the server, or reaches it by a Unix socket.
    secured: Option<Secured>,
    /// The number of what answers the client's login, which has come and not passed.
    hello_answer: Option<u8>,
}

impl MysqlSession {
    /// A session whose client has just connected.
    pub fn new(config: MysqlConfig) -> Self {
        Self {
            dialogue: Dialogue::new(SETTINGS),
            books: Books::new(config),
            to_client: Vec::new(),
            to_server: Vec::new(),
            secured: None,
            hello_answer: None,
        }
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

    /// What a server's first bytes say of TLS.
    pub fn tls_offer(input: &[u8]) -> TlsOffer {
        secured::offer(input)
    }

    /// The gateway will speak TLS with the server: from the greeting on, a client without TLS needs this key for its password.
    pub fn secure(&mut self, key: Arc<dyn PasswordKey>) {
        self.dialogue.is_given_decrypted();
        self.books.is_decrypted = true;
        self.secured = Some(Secured::new(key, true));
    }

    /// The server is reached by a Unix socket, and the client comes by another way: it needs this key for its password.
    pub fn lend_key(&mut self, key: Arc<dyn PasswordKey>) {
        self.secured = Some(Secured::new(key, false));
    }

    /// Whether the server's greeting names a way to log in that may need the key.
    pub fn may_need_key(&self) -> bool {
        self.secured.as_ref().is_some_and(Secured::may_need_key)
    }

    /// What the client's first bytes ask for, before TLS is there. They are given again to [`Self::handle_client`] afterwards.
    pub fn hello(&mut self, now: Moment, input: &[u8]) -> Hello {
        let Some(request) = secured::request(input) else { return Hello::Wait };
        self.books.client_begins(now);
        self.hello_answer = PacketHeader::peek(input).map(|header| header.sequence.wrapping_add(1));
        match request {
            Ok(request) => Hello::Request(request),
            Err(why) => {
                self.refuse(Refused::Other, why);
                Hello::Refused
            }
        }
    }

    /// TLS with the server is there, after this request.
    pub fn tls_began(&mut self, now: Moment, request: &[u8]) {
        self.hello_answer = None;
        self.see(now, Side::Client, request);
        if let Some(secured) = &mut self.secured {
            secured.began();
        }
    }

    /// Decides about bytes of the client's: all are passed on as they are, but for a login by the gateway's TLS or its Unix socket.
    pub fn handle_client(&mut self, now: Moment, input: &[u8]) -> Result<Verdict, SessionError> {
        let step = self.secured.as_mut().map_or(Step::Pass(input.len()), |secured| secured.client(input));
        Ok(match step {
            Step::Wait => Verdict::Wait,
            Step::Pass(bytes) => {
                self.see_client(now, &input[..bytes]);
                Verdict::Forward(bytes)
            }
            Step::Instead(bytes, mut own) => {
                self.see_client(now, &own);
                self.to_server.append(&mut own);
                Verdict::Replace(bytes)
            }
            Step::Answer(bytes, mut own) => {
                self.to_client.append(&mut own);
                Verdict::Replace(bytes)
            }
            Step::Refuse(_, sequence, why) => {
                self.say_error(sequence, Refused::Other, why);
                return Err(SessionError::PasswordKept(why));
            }
        })
    }

    /// Decides about bytes of the server's: all are passed on as they are, but for a greeting out of which TLS is to be taken,
    /// and such a login.
    pub fn handle_server(&mut self, now: Moment, input: &[u8]) -> Verdict {
        if self.books.hides_tls() {
            let Some(header) = PacketHeader::peek(input) else { return Verdict::Wait };
            if header.packet_len() <= INSPECT_BYTES_MAX {
                let Some(greeting) = input.get(..header.packet_len()) else { return Verdict::Wait };
                if let Ok(greeting) = Handshake::decode(&greeting[HEADER_BYTES..]) {
                    packet(&mut self.to_client, header.sequence, |out| greeting.without_tls().encode(out));
                    self.see_server(now, &input[..header.packet_len()]);
                    return Verdict::Replace(header.packet_len());
                }
            }
        }
        match self.secured.as_mut().map(|secured| secured.server(input)) {
            Some(Step::Wait) => Verdict::Wait,
            Some(Step::Instead(bytes, mut own)) => {
                self.see_server(now, &input[..bytes]);
                self.to_client.append(&mut own);
                Verdict::Replace(bytes)
            }
            Some(Step::Pass(bytes)) => {
                self.see_server(now, &input[..bytes]);
                Verdict::Forward(bytes)
            }
            Some(Step::Answer(..) | Step::Refuse(..)) | None => {
                self.see_server(now, input);
                Verdict::Forward(input.len())
            }
        }
    }

    /// The server sent these bytes, which are passed on.
    pub fn see_server(&mut self, now: Moment, bytes: &[u8]) {
        self.books.server_speaks(now);
        self.see(now, Side::Server, bytes);
    }

    fn see(&mut self, now: Moment, side: Side, bytes: &[u8]) {
        let Self { dialogue, books, secured, .. } = self;
        if books.is_over() {
            return books.pass_unseen(bytes.len());
        }
        let capabilities = dialogue.capabilities();
        books.set_capabilities(capabilities);
        books.count_raw(now, side, bytes.len());
        let mut logs_in_again = false;
        dialogue.take(side, bytes, |event| {
            if let Some(secured) = secured {
                secured.note(&event);
                logs_in_again |= secured.begins_again(&event, capabilities);
            }
            books.on(now, event);
        });
        books.count_compressed(side, bytes.len());
        books.pass_unseen(bytes.len()); // where it was lost, what of it was understood does not matter
        let is_inside = |side| dialogue.is_inside(side);
        if let (Some(secured), true) = (secured, logs_in_again) {
            // What is compressed, or does not end here, is left alone.
            secured.begin_again(
                !books::is_compressed(capabilities) && !is_inside(Side::Client) && !is_inside(Side::Server),
            );
        }
    }

    /// Why nothing more is understood, if that has been noticed since the last call.
    pub fn take_unseen(&mut self) -> Option<Unseen> {
        self.books.take_unseen()
    }

    /// Tells a client that has not been greeted why it will not be, or one whose login waits for TLS why it is not passed on.
    pub fn refuse(&mut self, why: Refused, message: &str) {
        if self.books.refused_by_gateway(message) {
            let error = ErrPacket { code: why as u16, state: None, message: message.as_bytes() };
            packet(&mut self.to_client, 0, |out| error.encode(out));
        } else if let Some(sequence) = self.hello_answer.take() {
            self.books.login_refused(message);
            self.say_error(sequence, why, message);
        }
    }

    fn say_error(&mut self, sequence: u8, why: Refused, message: &str) {
        let error = ErrPacket { code: why as u16, state: Some(STATE), message: message.as_bytes() };
        packet(&mut self.to_client, sequence, |out| error.encode(out));
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
        for own in [&mut self.to_client, &mut self.to_server] {
            if own.is_empty() {
                *own = Vec::new();
            }
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
