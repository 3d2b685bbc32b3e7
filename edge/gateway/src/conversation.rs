//! What a connection asks of the session that it moves bytes for, whichever protocol that is of.

use std::fmt;

use onetrip_ledger::{Moment, StreamEncoder};
use onetrip_session::{BackendKey, MysqlSession, Refused, Session, SessionError, Verdict};
use onetrip_wire::pg::{ErrorResponse, FrameHeader, HEADER_BYTES, backend};

use crate::notice::Kind;

/// A message of a cancelled statement is not longer.
const ERROR_LENGTH_MAX: u32 = 1 << 16;
/// SQLSTATE of a statement that was cancelled, or ran into a timeout.
const QUERY_CANCELED: [u8; 5] = *b"57014";

/// A session of a protocol. What is not said here of a method is said of those of [`Session`].
pub(crate) trait Conversation: fmt::Debug + Send + 'static {
    /// Decides about bytes of the client's.
    fn handle_client(&mut self, now: Moment, input: &[u8]) -> Result<Verdict, SessionError>;
    /// Decides about bytes of the server's.
    fn handle_server(&mut self, now: Moment, input: &[u8]) -> Result<Verdict, SessionError>;
    /// Bytes of its own for the client.
    fn to_client(&mut self) -> &mut Vec<u8>;
    /// Bytes of its own for the server; `None` where it never has any.
    fn to_server(&mut self) -> Option<&mut Vec<u8>>;
    /// Its records.
    fn stream(&mut self) -> &mut StreamEncoder;
    fn has_records(&self) -> bool;
    fn is_serving(&self) -> bool;
    fn is_full(&self) -> bool;
    fn is_at_rest(&self) -> bool;
    /// The next byte of the client's begins a unit, so that a cancel can hold it.
    fn is_between_units(&self) -> bool;
    /// The client can be told that the connection ends.
    fn is_between_replies(&self) -> bool;
    /// Tells the client that the connection ends, as far as the protocol has words for that now.
    fn refuse(&mut self, sqlstate: &str, message: &str, hint: Option<&str>);
    fn rest(&mut self);
    fn path_measured(&mut self, now: Moment, rtt_us: u32, rtt_min_us: u32);
    fn client_left(&mut self, now: Moment);
    fn close(&mut self, now: Moment);
    /// Something that people should hear of.
    fn take_notice(&mut self) -> Option<(Kind, String)>;

    /// Whether what came waits for the server, however much of it there is.
    fn waits_for_entry(&self, _input: &[u8]) -> bool {
        false
    }

    fn set_behind(&mut self, _client_is_behind: bool) {}

    fn deadline(&self) -> Option<Moment> {
        None
    }

    fn meet_deadline(&mut self, _now: Moment) -> Result<(), SessionError> {
        Ok(())
    }

    /// By what a cancel request of the protocol's own names it.
    fn backend_key(&self) -> Option<&BackendKey> {
        None
    }

    fn is_waiting(&self) -> bool {
        false
    }

    fn may_cancel(&self) -> bool {
        false
    }

    /// Whether the server's next message says that the last of what the client has asked for was cancelled.
    fn says_last_cancelled(&self, _input: &[u8]) -> bool {
        false
    }
}

/// What a session of either protocol has by the same name.
macro_rules! by_the_same_name {
    () => {
        fn to_client(&mut self) -> &mut Vec<u8> {
            self.to_client()
        }

        fn stream(&mut self) -> &mut StreamEncoder {
            self.stream()
        }

        fn has_records(&self) -> bool {
            self.has_records()
        }

        fn is_serving(&self) -> bool {
            self.is_serving()
        }

        fn is_full(&self) -> bool {
            self.is_full()
        }

        fn is_at_rest(&self) -> bool {
            self.is_at_rest()
        }

        fn rest(&mut self) {
            self.rest();
        }

        fn path_measured(&mut self, now: Moment, rtt_us: u32, rtt_min_us: u32) {
            self.path_measured(now, rtt_us, rtt_min_us);
        }

        fn client_left(&mut self, now: Moment) {
            self.client_left(now);
        }

        fn close(&mut self, now: Moment) {
            self.close(now);
        }
    };
}

impl Conversation for Session {
    by_the_same_name!();

    fn handle_client(&mut self, now: Moment, input: &[u8]) -> Result<Verdict, SessionError> {
        self.handle_client(now, input)
    }

    fn handle_server(&mut self, now: Moment, input: &[u8]) -> Result<Verdict, SessionError> {
        self.handle_server(now, input)
    }

    fn to_server(&mut self) -> Option<&mut Vec<u8>> {
        Some(self.to_server())
    }

    fn is_between_units(&self) -> bool {
        self.is_between_units()
    }

    fn is_between_replies(&self) -> bool {
        self.is_between_replies()
    }

    fn refuse(&mut self, sqlstate: &str, message: &str, hint: Option<&str>) {
        self.refuse(sqlstate, message, hint);
    }

    fn take_notice(&mut self) -> Option<(Kind, String)> {
        self.take_endless().map(|endless| (Kind::Level, endless.to_string()))
    }

    fn waits_for_entry(&self, input: &[u8]) -> bool {
        self.waits_for_entry(input)
    }

    fn set_behind(&mut self, client_is_behind: bool) {
        self.set_behind(client_is_behind);
    }

    fn deadline(&self) -> Option<Moment> {
        self.deadline()
    }

    fn meet_deadline(&mut self, now: Moment) -> Result<(), SessionError> {
        self.meet_deadline(now)
    }

    fn backend_key(&self) -> Option<&BackendKey> {
        self.backend_key()
    }

    fn is_waiting(&self) -> bool {
        self.is_waiting()
    }

    fn may_cancel(&self) -> bool {
        self.may_cancel()
    }

    fn says_last_cancelled(&self, input: &[u8]) -> bool {
        let Some(Ok(header)) = FrameHeader::peek(input, ERROR_LENGTH_MAX) else { return false };
        let body = input.get(HEADER_BYTES..header.frame_len());
        let error = body.and_then(|body| ErrorResponse::decode(body).ok());
        header.tag == backend::ERROR_RESPONSE
            && self.is_between_replies()
            && self.unanswered() <= 1
            && error.is_some_and(|error| error.sqlstate() == Some(QUERY_CANCELED))
    }
}

/// It is only watched: all bytes pass, but for a login under the gateway's TLS.
impl Conversation for MysqlSession {
    by_the_same_name!();

    fn handle_client(&mut self, now: Moment, input: &[u8]) -> Result<Verdict, SessionError> {
        self.handle_client(now, input)
    }

    fn handle_server(&mut self, now: Moment, input: &[u8]) -> Result<Verdict, SessionError> {
        Ok(self.handle_server(now, input))
    }

    fn to_server(&mut self) -> Option<&mut Vec<u8>> {
        Some(self.to_server())
    }

    fn is_between_units(&self) -> bool {
        false // KILL goes to the server as any statement does
    }

    fn is_between_replies(&self) -> bool {
        true
    }

    fn refuse(&mut self, sqlstate: &str, message: &str, hint: Option<&str>) {
        // There is no place of its own for a hint.
        let message = hint.map_or_else(|| message.to_owned(), |hint| format!("{message}. {hint}"));
        let why = match sqlstate {
            "53300" => Refused::Full,
            "57P01" | "57P03" => Refused::Stopping,
            _ => Refused::Other,
        };
        self.refuse(why, &message);
    }

    fn take_notice(&mut self) -> Option<(Kind, String)> {
        self.take_unseen().map(|unseen| (Kind::Unseen, unseen.to_string()))
    }
}
