use onetrip_wire::pg::{Format, TransactionStatus};

use super::OperationId;
use super::statements::Slot;
use crate::{CommandTag, Error};

/// What the server said about an operation outside of a block; in a block it becomes the operation's
/// [`Outcome`](super::Outcome).
#[derive(Debug)]
pub enum Event {
    /// The operation's first reply: from here on its columns are known.
    Bound {
        /// The operation.
        operation: OperationId,
    },
    /// A row; [`Connection::row`](super::Connection::row) reads it.
    Row {
        /// Whose.
        operation: OperationId,
        /// Where it is.
        row: RowSpan,
    },
    /// The operation is done. If it was outside of a transaction, it holds once [`Ready`](Self::Ready) has come.
    Complete {
        /// The operation.
        operation: OperationId,
        /// What it did.
        tag: CommandTag,
    },
    /// The operation has returned as many rows as were asked for, and has more.
    Suspended {
        /// The operation.
        operation: OperationId,
    },
    /// The operation failed, or did not run.
    Failed {
        /// The operation.
        operation: OperationId,
        /// Why.
        error: Error,
    },
    /// The server waits for the data of a COPY.
    CopyIn {
        /// The operation.
        operation: OperationId,
    },
    /// A piece of a COPY's data.
    CopyData {
        /// Whose.
        operation: OperationId,
        /// Where it is; [`Connection::copied`](super::Connection::copied) reads it.
        data: RowSpan,
    },
    /// The server has done everything up to a Sync.
    Ready(TransactionStatus),
}

impl Event {
    /// The operation that it is about.
    pub fn operation(&self) -> Option<OperationId> {
        match self {
            Self::Bound { operation }
            | Self::Row { operation, .. }
            | Self::Complete { operation, .. }
            | Self::Suspended { operation }
            | Self::Failed { operation, .. }
            | Self::CopyIn { operation }
            | Self::CopyData { operation, .. } => Some(*operation),
            Self::Ready(_) => None,
        }
    }
}

/// Where a row stands in the input buffer. It holds until the buffer takes in more.
#[derive(Debug, Clone, Copy)]
pub struct RowSpan {
    pub(crate) slot: Option<Slot>,
    pub(crate) format: Format,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// Somebody used NOTIFY on a channel that this session listens to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    /// Process id of the backend that notified.
    pub process_id: u32,
    /// The channel.
    pub channel: String,
    /// What was passed along.
    pub payload: String,
}
