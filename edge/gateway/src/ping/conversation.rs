use std::io;
use std::ops::Range;
use std::time::Duration;

use onetrip_wire::WireError;
use onetrip_wire::pg::{FrameHeader, HEADER_BYTES, backend};
use tokio::time::Instant;

use super::error::{PasswordOrigin, PingError, ServerMessage, printable};
use super::times::PathTimes;
use crate::dial::write_all;
use crate::leg::Leg;

/// Longest message of a server that we ask nothing but `SELECT 1`.
const MESSAGE_BYTES_MAX: u32 = 64 * 1024;
const READ_BYTES: usize = 8 * 1024;

/// Messages to and from a server, one question at a time.
#[derive(Debug)]
pub(super) struct Conversation {
    leg: Leg,
    host: String,
    input: Vec<u8>,
    /// How much of the input has been handed out.
    taken: usize,
    sent_at: Instant,
    /// Whether what came so far was PostgreSQL.
    is_postgres: bool,
}

/// A message; its body stands in the conversation until the next one is asked for.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) tag: u8,
    body: Range<usize>,
}

impl Conversation {
    pub(super) fn new(leg: Leg, host: String) -> Self {
        let sent_at = Instant::now();
        Self { leg, host, input: Vec::with_capacity(READ_BYTES), taken: 0, sent_at, is_postgres: false }
    }

    /// Sends a question.
    pub(super) async fn send(&mut self, bytes: &[u8]) -> Result<(), PingError> {
        self.sent_at = Instant::now();
        write_all(&mut self.leg, bytes).await.map_err(|error| self.lost(error))
    }

    /// Time since the last question was sent.
    pub(super) fn waited(&self) -> Duration {
        self.sent_at.elapsed()
    }

    /// The next message.
    pub(super) async fn message(&mut self) -> Result<Message, PingError> {
        loop {
            let unread = &self.input[self.taken..];
            match FrameHeader::peek(unread, MESSAGE_BYTES_MAX) {
                Some(Ok(header)) if unread.len() >= header.frame_len() => {
                    let start = self.taken + HEADER_BYTES;
                    self.taken += header.frame_len();
                    let opens = matches!(
                        header.tag,
                        backend::AUTHENTICATION
                            | backend::ERROR_RESPONSE
                            | backend::NOTICE_RESPONSE
                            | backend::NEGOTIATE_PROTOCOL_VERSION
                    );
                    if !self.is_postgres && !opens {
                        return Err(PingError::NotPostgres { host: self.host.clone() });
                    }
                    self.is_postgres = true;
                    return Ok(Message { tag: header.tag, body: start..self.taken });
                }
                Some(Err(error)) => return Err(self.broken(error)),
                Some(Ok(_)) | None => self.read().await?,
            }
        }
    }

    pub(super) fn body(&self, message: &Message) -> &[u8] {
        &self.input[message.body.clone()]
    }

    /// What an ErrorResponse means, with advice.
    pub(super) fn refusal(&self, message: &Message) -> PingError {
        PingError::refused(&self.host, self.body(message), PasswordOrigin::Nowhere)
    }

    /// A message that has no place here.
    pub(super) fn unexpected(&self, tag: u8) -> PingError {
        PingError::Protocol {
            host: self.host.clone(),
            what: format!("a message of kind '{}' that has no place there", tag.escape_ascii()),
        }
    }

    pub(super) fn late(&self, limit: Duration) -> PingError {
        PingError::Late { host: self.host.clone(), seconds: limit.as_secs(), silent: !self.is_postgres }
    }

    pub(super) fn path_times(&self) -> Option<PathTimes> {
        self.leg.path_time().and_then(PathTimes::new)
    }

    /// Sends a last message and closes.
    pub(super) async fn end(&mut self, farewell: &[u8]) -> io::Result<()> {
        write_all(&mut self.leg, farewell).await?;
        std::future::poll_fn(|cx| self.leg.poll_shutdown(cx)).await
    }

    async fn read(&mut self) -> Result<(), PingError> {
        self.input.drain(..self.taken);
        self.taken = 0;
        let filled = self.input.len();
        self.input.resize(filled + READ_BYTES, 0);
        let (leg, input) = (&mut self.leg, &mut self.input);
        let read = std::future::poll_fn(|cx| leg.poll_read(cx, &mut input[filled..])).await;
        self.input.truncate(filled + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => Err(self.lost(io::ErrorKind::UnexpectedEof.into())),
            Ok(_) => Ok(()),
            Err(error) => Err(self.lost(error)),
        }
    }

    fn lost(&self, source: io::Error) -> PingError {
        let host = self.host.clone();
        if self.is_postgres { PingError::Lost { host, source } } else { PingError::Silent { host, source } }
    }

    fn broken(&self, error: WireError) -> PingError {
        let host = self.host.clone();
        let unread = &self.input[self.taken..];
        if self.is_postgres {
            return PingError::Protocol { host, what: error.to_string() };
        }
        // A server that cannot even start a backend says so in words alone, without a frame.
        match unread.split_first() {
            Some((&backend::ERROR_RESPONSE, words)) if words.contains(&0) => {
                let words = words.split(|byte| *byte == 0).next().unwrap_or_default();
                PingError::Refused {
                    host,
                    said: Box::new(ServerMessage::words(printable(words))),
                    advice: None,
                }
            }
            _ => PingError::NotPostgres { host },
        }
    }
}
