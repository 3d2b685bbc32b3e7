//! What the server says to a message of the session's own, and what becomes of it.

use onetrip_ledger::Moment;
use onetrip_wire::pg::HEADER_BYTES;

use crate::reply_queue::Reply;

/// A message of the server, as far as it is looked into.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Said<'a> {
    pub(crate) now: Moment,
    pub(crate) tag: u8,
    pub(crate) reply: Reply,
    pub(crate) message: &'a [u8],
    /// It is all there.
    pub(crate) is_whole: bool,
}

impl<'a> Said<'a> {
    /// What follows the header.
    pub(crate) fn body(&self) -> &'a [u8] {
        &self.message[HEADER_BYTES..]
    }

    /// Whether it is an error that answers the message.
    pub(crate) fn is_failure(&self) -> bool {
        matches!(self.reply, Reply::Failed(_))
    }

    /// Whether it is all that the message owed.
    pub(crate) fn is_last(&self) -> bool {
        matches!(self.reply, Reply::Last(_))
    }
}

/// What becomes of a reply to a remedy's own message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Own {
    /// It is the remedy's alone.
    Dropped,
    /// It goes to the client as it is.
    PassedOn,
    /// The client's unit fails with this error; the reply is the ReadyForQuery behind it.
    Fails { unit: u64, error: Vec<u8> },
}
