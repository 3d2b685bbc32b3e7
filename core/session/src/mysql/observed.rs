//! A conversation in a packet capture: its beginning may not be known, nor some of its bytes.
//!
//! What was not seen is said by [`MysqlSession::miss`]; the books go on at [`MysqlSession::resume`]. In between, turns are
//! counted: nothing else is known, and nothing is guessed.

use onetrip_ledger::Moment;
use onetrip_wire::mysql::dialogue::{Command, Dialogue, Event, Settings, Side};
use onetrip_wire::mysql::{Capabilities, HEADER_BYTES, PacketHeader, command, server};

use super::{MysqlConfig, MysqlSession, SETTINGS};

/// The last command but those of MariaDB.
const COMMAND_MAX: u8 = command::SUBSCRIBE_GROUP_REPLICATION_STREAM;
/// Commands within the server only.
const NEVER_SENT: [u8; 5] =
    [command::SLEEP, command::CONNECT, command::TIME, command::DELAYED_INSERT, command::CONNECT_OUT];
/// The first character that a text may begin with.
const FIRST_OF_TEXT: u8 = b'\t';
/// The number of the packet that answers a command of one packet.
const ANSWER: u8 = 1;

impl MysqlSession {
    /// A session that is watched from its middle on: what it has prepared and set is unknown. It has to
    /// [resume](Self::resume) first.
    pub fn joined(config: MysqlConfig, now: Moment) -> Self {
        let mut session = Self::new(config);
        session.books.enter_unseen(now);
        session
    }

    /// A session of which what follows the client's request for TLS, if it makes one, is given decrypted.
    pub fn decrypted(config: MysqlConfig) -> Self {
        let mut session = Self::new(config);
        session.dialogue = Dialogue::new(Settings { is_decrypted: true, ..SETTINGS });
        session.books.is_decrypted = true;
        session
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
        super::books::is_compressed(self.dialogue.capabilities())
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

    /// As [`Self::miss`], where it is not known to the byte what is missing: no packet's end is known after it.
    pub fn lose(&mut self, now: Moment, side: Side, bytes: u64) {
        self.books.miss(now, side, bytes);
    }

    /// Whether the client's bytes since it had received all replies are one or more whole commands, and what the server said
    /// then, if that was seen, begins an answer: only there may a session that is lost [resume](Self::resume).
    pub fn can_resume(&self, turn: &[u8], answer: Option<&[u8]>) -> bool {
        let mut trial = match self.dialogue.capabilities() {
            unknown if unknown == Capabilities::default() => Dialogue::supposed(SETTINGS),
            known => Dialogue::joined(SETTINGS, known),
        };
        let mut are_commands = true;
        trial.take(Side::Client, turn, |event| {
            if let Event::Command(command) = event {
                are_commands &= is_sent(&command);
            }
        });
        let answers = |answer: &[u8]| {
            let header = PacketHeader::peek(answer);
            let is_numbered = header.is_none_or(|header| header.sequence == ANSWER);
            self.is_compressed() || is_numbered || answer.get(HEADER_BYTES) == Some(&server::ERR)
        };
        are_commands && trial.lost().is_none() && !trial.is_inside(Side::Client) && answer.is_none_or(answers)
    }

    /// Goes on: nothing is unanswered, and the next byte of each side begins a packet. What is prepared is known as before
    /// if `knows_statements`.
    pub fn resume(&mut self, knows_statements: bool) {
        if self.dialogue.capabilities() == Capabilities::default() {
            self.dialogue = Dialogue::supposed(SETTINGS);
        }
        self.dialogue.resume(knows_statements);
        self.books.resume(knows_statements);
    }
}

/// Whether a command may be one that a client sent.
fn is_sent(command: &Command<'_>) -> bool {
    let rest = command.payload.get(1..).unwrap_or_default();
    match command.code {
        // Texts begin with no control character, attributes with how many they are in one set.
        command::QUERY => match rest {
            [count, 1, ..] if *count < FIRST_OF_TEXT => true,
            [first, ..] => *first >= FIRST_OF_TEXT,
            [] => true,
        },
        command::QUIT | command::PING | command::STATISTICS | command::RESET_CONNECTION => rest.is_empty(),
        command::STMT_EXECUTE
        | command::STMT_FETCH
        | command::STMT_CLOSE
        | command::STMT_RESET
        | command::STMT_SEND_LONG_DATA
        | command::STMT_BULK_EXECUTE => command.statement.is_some(),
        code => code <= COMMAND_MAX && !NEVER_SENT.contains(&code),
    }
}
