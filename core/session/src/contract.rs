//! The words of the contract between a session and its driver, and the limits of messages: what a remedy may say, too.

use onetrip_wire::WireError;
use smallvec::SmallVec;

/// A message is looked into as far as this, in bytes; what is longer passes by its header.
pub const INSPECT_BYTES_MAX: usize = 64 * 1024;
/// Longest message before authentication, in bytes, as in PostgreSQL (`PG_MAX_AUTH_TOKEN_LENGTH`).
pub(crate) const LENGTH_BEFORE_AUTH_MAX: u32 = 65_535;
/// Longest message after it, in bytes, as in PostgreSQL (`PQ_LARGE_MESSAGE_LIMIT`).
pub(crate) const LENGTH_MAX: u32 = 0x3fff_fffe;
/// Longest text that is kept for remedies, in bytes.
pub(crate) const SOURCE_BYTES_MAX: usize = 16 * 1024;

/// What the backend calls itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendKey {
    /// Its process id.
    pub process_id: u32,
    /// Its secret.
    pub key: SmallVec<[u8; 4]>,
}

/// What to do with the bytes at the front of what came, once there is a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing yet: more bytes must come first.
    Wait,
    /// Send this many bytes on as they are.
    Forward(usize),
    /// Drop this many bytes; what goes in their place, if anything, is in the session's outboxes.
    Replace(usize),
    /// Nothing until the server has said more: the message is there, and must wait.
    Hold,
}

/// What to do with the bytes at the front of what came from the client before there is a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// Nothing yet: more bytes must come first.
    Wait,
    /// Drop this many bytes: they ask for encryption. The answer is in the outbox for the client; where both sides are only
    /// watched, the server gives it.
    Answer(usize),
    /// Drop this many bytes and connect to the database; the startup packet for it is in the outbox.
    Connect(usize),
    /// Drop this many bytes: they ask to cancel what another session runs.
    Cancel {
        /// Length of the request.
        bytes: usize,
        /// Process id that the request names.
        process_id: u32,
        /// Key that it shows.
        key: [u8; 4],
    },
}

/// The conversation cannot go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// The client's framing is broken. What PostgreSQL would answer is in the outbox for it.
    #[error("client broke the protocol")]
    Client(#[source] WireError),
    /// The server's framing is broken: it may not be a PostgreSQL server.
    #[error("the upstream broke the protocol; is it a PostgreSQL server?")]
    Server(#[source] WireError),
    /// The client says that it could have bound its login to TLS, had it been offered; the database did offer it.
    #[error("the client speaks TLS with the gateway, the database too, and the client's SCRAM shows it")]
    BindingMissed,
    /// The server offers no way of authentication that works through this gateway. The client has been told.
    #[error(
        "the database offers only SCRAM-SHA-256-PLUS, which binds to a TLS connection that ends at the gateway"
    )]
    ChannelBindingOnly,
    /// A BEGIN failed after it was answered. The client has been told, and nothing behind the BEGIN was run.
    #[error("the server refused a BEGIN that was answered early")]
    BeginRefused,
    /// What was read ahead could not be taken back. The client has been told.
    #[error("the server did not roll back what onetrip had prefetched")]
    ShieldBroken,
    /// The server failed at what had been answered from memory. The client has been told.
    #[error("the server failed at a statement that was answered from memory")]
    VerifyFailed,
    /// A COMMIT or ROLLBACK failed after it was answered, or the server has not confirmed it for 5 s. The client has been told; the transaction had only read.
    #[error("the server refused the end of a transaction that was answered early")]
    CommitRefused,
    /// The server answered a setting or reset otherwise than before, after it was answered. The client has been told.
    #[error("the server answered a setting or reset differently than onetrip had answered it")]
    ChatterRefused,
    /// A statement whose Parse was answered is not there, and the client cannot be told so. The client has been told.
    #[error("the server refused a statement whose Parse was answered early")]
    StatementRefused,
    /// The program needs to know where a cursor stands that was read ahead, or the server did not do as expected. The
    /// client has been told.
    #[error("cannot continue reading a prefetched result")]
    CursorsBroke,
    /// The server did not do with a large object that was read ahead as was expected. The client has been told.
    #[error("cannot continue reading a prefetched large object")]
    LobsBroke,
    /// More came unasked than is kept while a transaction begins. The client has been told.
    #[error("too many notifications came while a transaction began")]
    TooMuchKept,
    /// A login to a MySQL server does not go on, for this reason. The client has been told.
    #[error("a login ended at the gateway: {0}")]
    PasswordKept(&'static str),
}
