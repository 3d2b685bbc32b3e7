//! The trace: an append-only file of blocks, each whole or absent, described in `docs/trace-format.md`.

mod decode;
mod encode;
mod header;
mod reader;
mod writer;

pub use decode::{Records, decode_block};
pub use encode::StreamEncoder;
pub use header::{BLOCK_BYTES_MAX, TraceHeader};
pub use reader::{Block, TraceReader};
pub use writer::TraceWriter;

use crate::{Exchange, Moment};

/// Version of the format that this crate writes, and the newest that it reads.
pub const FORMAT_VERSION: u16 = 2;

/// Stream of facts about the trace itself; connections count from one.
pub const TRACE_STREAM: u32 = 0;

/// Tags of the records in a block.
pub(crate) mod tags {
    pub(crate) const OPENED: u8 = 1;
    pub(crate) const TEMPLATE: u8 = 2;
    pub(crate) const SCOPE: u8 = 3;
    pub(crate) const COLUMNS: u8 = 4;
    pub(crate) const EXCHANGE: u8 = 5;
    pub(crate) const PATH: u8 = 6;
    pub(crate) const STATEMENT_NAME: u8 = 7;
    pub(crate) const CLOSED: u8 = 8;
    pub(crate) const ORIGIN: u8 = 9;
    pub(crate) const LOST: u8 = 10;
    pub(crate) const IMPURE: u8 = 11;
    pub(crate) const DIFFERED: u8 = 12;
    pub(crate) const VERIFIED: u8 = 13;
    pub(crate) const END: u8 = 14;
    pub(crate) const CUT: u8 = 15;
    pub(crate) const ENTERED: u8 = 16;
    pub(crate) const REFUSED: u8 = 17;
    pub(crate) const MAY_NOT_END: u8 = 18;
}

/// One fact of a stream. Ids are the stream's own and are defined before they are used.
#[derive(Debug, Clone, PartialEq)]
pub enum Record<'a> {
    /// A client opened a session.
    Opened {
        /// When its first byte arrived.
        at: Moment,
        /// Its startup parameters: user, database, settings. Never a password.
        parameters: Vec<(&'a [u8], &'a [u8])>,
    },
    /// The server let the client in.
    Entered,
    /// The session did not come about: the server refused it, or could not be reached.
    Refused {
        /// SQLSTATE of the error.
        sqlstate: [u8; 5],
        /// The error's primary message.
        message: &'a [u8],
    },
    /// A template's text.
    Template {
        /// Its id.
        id: u32,
        /// The text, literals lifted.
        text: &'a [u8],
    },
    /// Why statements of a template are not known to only read.
    Impure {
        /// The template's id.
        id: u32,
        /// One phrase, without any constant of the statement.
        because: &'a [u8],
    },
    /// An answer from memory that was not what the server answered.
    Differed {
        /// The statement's template.
        template: u32,
        /// Bytes up to the first difference.
        at: u64,
        /// The unit, the answer from memory, and the server's; empty where the trace keeps no values.
        texts: [&'a [u8]; 3],
    },
    /// Answers from memory that were run for real as well, in the whole session.
    Verified {
        /// How many.
        answers: u64,
        /// How many of them differed.
        differed: u64,
    },
    /// A statement that may never end at the level that the gateway has set.
    MayNotEnd {
        /// Its template, or zero.
        template: u32,
        /// How often in a row it has failed with 23505 or 40001; zero where it ran for long.
        failures: u64,
    },
    /// A scope's label.
    Scope {
        /// Its id.
        id: u32,
        /// The label.
        label: &'a [u8],
    },
    /// Names of a result's key-like columns.
    Columns {
        /// Their id.
        id: u32,
        /// The names in order.
        names: Vec<&'a [u8]>,
    },
    /// A unit and its reply.
    Exchange(&'a Exchange),
    /// What the kernel knows of the path to the database.
    Path {
        /// When it was asked.
        at: Moment,
        /// Smoothed round-trip time in microseconds.
        rtt_us: u32,
        /// Smallest round-trip time in microseconds.
        rtt_min_us: u32,
    },
    /// Name of the first named statement: drivers are known by it.
    StatementName(&'a [u8]),
    /// The session ended.
    Closed {
        /// When.
        at: Moment,
        /// Replies that nobody asked for.
        unasked_replies: u64,
        /// Bodies that did not decode.
        undecoded: u64,
        /// Units that were never answered.
        unanswered: u64,
    },
    /// Who wrote the trace and how; in stream zero.
    Origin {
        /// The program and its version.
        program: &'a [u8],
        /// The database's address.
        upstream: &'a [u8],
        /// How long replies were held, in nanoseconds.
        settle: u64,
        /// Names of the program that was run and of its first arguments, empty where a gateway served whoever came.
        command: &'a [u8],
    },
    /// Blocks that could not be kept because the disk or the reader was too slow, or the disk was full; in stream zero.
    Lost {
        /// Bytes of records.
        bytes: u64,
    },
    /// The writer ended the trace; in stream zero.
    End {
        /// Bytes of the trace before the block of this record; `None` where the writer did not say.
        place: Option<u64>,
    },
}

/// Why a trace cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be opened, read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// Not a trace at all.
    #[error(
        "{0} is not a onetrip trace (it does not begin with the trace mark); record one with --trace FILE"
    )]
    NotATrace(String),
    /// Written by a newer onetrip.
    #[error(
        "{path} has trace format {found}; this onetrip reads up to {FORMAT_VERSION}: use the onetrip that wrote it"
    )]
    NewerVersion {
        /// The file.
        path: String,
        /// Its version.
        found: u16,
    },
    /// Something else would be overwritten.
    #[error(
        "{path} is there and is not a trace: it is not overwritten. Name another file, or remove it first"
    )]
    NotReplaced {
        /// The file.
        path: String,
    },
    /// Two writers on one file.
    #[error("{path} is being written by another onetrip: name another file")]
    Taken {
        /// The file.
        path: String,
    },
    /// A block that no reader takes.
    #[error("a block of stream {stream} has {bytes} bytes: that is too long for a trace")]
    TooLong {
        /// The block's stream.
        stream: u32,
        /// Bytes of its payload.
        bytes: usize,
    },
    /// A block's checksum is right and its content is not: the writer had a bug, or the file was made by hand.
    #[error("a block of stream {stream} holds a malformed record: {reason}")]
    Malformed {
        /// The block's stream.
        stream: u32,
        /// What is wrong.
        reason: &'static str,
    },
}
