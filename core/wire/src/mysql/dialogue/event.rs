//! What a [`Dialogue`](super::Dialogue) tells.

use crate::WireError;
use crate::mysql::{
    AuthSwitch, Capabilities, ColumnDefinition, ErrPacket, Handshake, HandshakeResponse, OkPacket,
    OutOfSequence, PrepareOk, Progress, Status,
};

/// Who sent bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// The client.
    Client,
    /// The server.
    Server,
}

/// Something that happened, in the order of the bytes that were given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// The server greets.
    Greeting(Handshake<'a>),
    /// The client starts TLS with these capabilities.
    Tls(Capabilities),
    /// The client logs in. It is unit 0.
    Login(HandshakeResponse<'a>),
    /// The server asks the client to log in another way.
    AuthSwitch(AuthSwitch<'a>),
    /// The server or the client says something in the named way's own form.
    AuthData(Side, &'a [u8]),
    /// The client sends a command.
    Command(Command<'a>),
    /// So many bytes more of a command that was told, and answered by an error, before all of it had come.
    CommandRest(u64),
    /// A statement is prepared; what is known of its parameters and columns follows.
    Prepared(PrepareOk),
    /// A result begins, and has so many columns.
    Columns(u64),
    /// A column of the result, or a parameter or column of the prepared statement.
    Column(ColumnDefinition<'a>),
    /// A row.
    Row(Row<'a>),
    /// The server reports progress of the command at hand.
    Progress(Progress<'a>),
    /// The server wants this file.
    FileWanted(&'a [u8]),
    /// The server has asked, within a login or for a file, and goes on once the client has answered: that is a trip of its own.
    /// So many bytes of its packets have come for the unit.
    Asked(u64),
    /// The client sent so many bytes of it; zero ends it.
    FileSent(u64),
    /// A result is done, or rows are.
    Done(OkPacket<'a>),
    /// Rows are done, or a cursor is open: an EOF packet that ends a result.
    RowsDone {
        /// Warnings of the command.
        warnings: u16,
        /// Of the session.
        status: Status,
    },
    /// A text answers the command.
    Text(&'a [u8]),
    /// The command failed, or the login did.
    Failed(ErrPacket<'a>),
    /// The server says this unasked; usually the connection is over.
    Unasked(ErrPacket<'a>),
    /// All that the server had to say to a unit has been said.
    Replied(Reply),
    /// A payload of replication, of so many bytes.
    Streamed(Side, u64),
    /// From here on nothing is understood.
    Lost(Lost),
}

/// A command as it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Command<'a> {
    /// Its number: 1 is the first one behind the login.
    pub unit: u64,
    /// Its first byte: one of [`command`](crate::mysql::command).
    pub code: u8,
    /// Its payload, or the first part of a long one that did not come in one piece.
    pub payload: &'a [u8],
    /// Bytes of the payload.
    pub payload_len: u64,
    /// Bytes of its packets.
    pub bytes: u64,
    /// The statement's text, cut as the payload is. `None` if it has none, or the payload does not decode.
    pub text: Option<&'a [u8]>,
    /// The prepared statement that it is for.
    pub statement: Option<Statement>,
    /// Whether the server answers it.
    pub is_answered: bool,
    /// The round trip that it is part of; `None` if it is sent without an answer between two trips.
    pub trip: Option<u64>,
}

/// A prepared statement, as a command names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statement {
    /// Its number, or [`LAST_STATEMENT`](crate::mysql::LAST_STATEMENT).
    pub id: u32,
    /// The unit that prepared it, if that was seen.
    pub prepared_by: Option<u64>,
    /// Its parameters, if its PREPARE_OK was seen.
    pub parameters: Option<u16>,
}

/// A row as it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row<'a> {
    /// Its payload, or of one that did not come in one piece as much as is kept.
    pub payload: &'a [u8],
    /// Bytes of the payload.
    pub payload_len: u64,
    /// Whether values are in binary form.
    pub is_binary: bool,
}

/// What became of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply {
    /// Number of the unit; 0 is the login.
    pub unit: u64,
    /// Its first byte; meaningless for unit 0.
    pub code: u8,
    /// The round trip that it was part of.
    pub trip: u64,
    /// What the server answered.
    pub kind: ReplyKind,
    /// Results: those with rows and those without.
    pub results: u64,
    /// Rows of all results.
    pub rows: u64,
    /// Rows changed, of all results.
    pub affected_rows: u64,
    /// Bytes of the server's packets.
    pub bytes: u64,
    /// Of the session, as the last packet says it.
    pub status: Option<Status>,
    /// Whether a cursor is open whose rows will be fetched.
    pub opened_cursor: bool,
}

/// The sort of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyKind {
    /// Done, without rows.
    Done,
    /// At least one result with columns.
    Rows,
    /// A statement is prepared.
    Prepared,
    /// Definitions of columns.
    Columns,
    /// A text.
    Text,
    /// Payloads of replication.
    Stream,
    /// An error with this code, possibly behind results.
    Failed(u16),
}

/// Where and why a dialogue was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("lost at byte {offset} of the {side:?}'s: {reason}")]
pub struct Lost {
    /// Whose bytes.
    pub side: Side,
    /// How many of them had been given before the piece that was not understood.
    pub offset: u64,
    /// Why.
    pub reason: LostReason,
}

/// Why a dialogue was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LostReason {
    /// A payload is not what it has to be.
    #[error(transparent)]
    Malformed(#[from] WireError),
    /// A packet does not have the number that it should.
    #[error(transparent)]
    OutOfSequence(#[from] OutOfSequence),
    /// The server answers and nothing was asked.
    #[error("the server answers with {0:#04x} and nothing was asked")]
    NothingAsked(u8),
    /// The server's answer begins with a byte that the command's answers never do.
    #[error("the answer to command {code:#04x} begins with {first:#04x}")]
    UnexpectedAnswer {
        /// The command.
        code: u8,
        /// The byte.
        first: u8,
    },
    /// The client speaks where it is the server's turn.
    #[error("the client speaks before the server has")]
    OutOfTurn,
    /// The server wants a file, and the client had sent further commands already.
    #[error("the server wants a file while further commands are on their way")]
    FileBehindCommands,
    /// A payload that must be known is longer than what is kept.
    #[error("a payload of {0} bytes is too long to be looked at")]
    TooLong(u64),
    /// More commands wait for their answers than are kept.
    #[error("more than {0} commands wait for their answers")]
    TooManyAwaited(usize),
    /// The stream is compressed, and is not what it claims to be.
    #[cfg(feature = "compression")]
    #[error(transparent)]
    Compression(#[from] crate::mysql::CompressionError),
    /// The stream is compressed, and this build has no codecs.
    #[cfg(not(feature = "compression"))]
    #[error("the stream is compressed")]
    Compressed,
}
