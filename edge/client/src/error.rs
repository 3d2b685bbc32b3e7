use std::fmt;
use std::io;
use std::sync::Arc;

use onetrip_login::LoginError;
use onetrip_target::address::AddressError;
use onetrip_target::passfile::PassfileError;
use onetrip_target::tls::TlsError;
use onetrip_target::{ConninfoError, Host};
use onetrip_wire::WireError;
use onetrip_wire::pg::ErrorResponse;

use crate::OperationId;

/// Whether what failed may be done again without doing it twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Retry {
    /// It surely did not take effect: the server never had all of it, refused it, or undid it.
    Safe,
    /// It surely ran; what failed came afterwards.
    Ran,
    /// It may have run: the connection was lost between asking and hearing.
    Unknown,
}

/// An error or a notice of the server, as it was sent.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerError {
    body: Box<[u8]>,
}

impl ServerError {
    pub(crate) fn new(body: &[u8]) -> Result<Self, WireError> {
        ErrorResponse::decode(body).map(|_| Self { body: body.into() })
    }

    fn response(&self) -> Option<ErrorResponse<'_>> {
        ErrorResponse::decode(&self.body).ok()
    }

    /// The field with this letter; the letters are those of the manual's "Error and Notice Message Fields".
    pub fn field(&self, letter: u8) -> Option<&str> {
        std::str::from_utf8(self.response()?.field(letter)?).ok()
    }

    /// The five characters of the manual's "PostgreSQL Error Codes"; empty where the server sent none.
    pub fn sqlstate(&self) -> &str {
        self.field(b'C').unwrap_or_default()
    }

    /// `ERROR`, `FATAL`, `PANIC`, or a kind of notice; never translated where the server says both.
    pub fn severity(&self) -> &str {
        self.field(b'V').or_else(|| self.field(b'S')).unwrap_or_default()
    }

    /// Whether the server ends the session with it.
    pub fn is_fatal(&self) -> bool {
        self.response().is_some_and(|response| response.is_fatal())
    }

    /// What went wrong.
    pub fn message(&self) -> &str {
        self.field(b'M').unwrap_or_default()
    }

    /// More about it.
    pub fn detail(&self) -> Option<&str> {
        self.field(b'D')
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<&str> {
        self.field(b'H')
    }

    /// Where in the statement, in characters counted from one.
    pub fn position(&self) -> Option<u32> {
        self.field(b'P')?.parse().ok()
    }

    /// The table that it is about.
    pub fn table(&self) -> Option<&str> {
        self.field(b't')
    }

    /// The column that it is about.
    pub fn column(&self) -> Option<&str> {
        self.field(b'c')
    }

    /// The constraint that was violated.
    pub fn constraint(&self) -> Option<&str> {
        self.field(b'n')
    }

    /// The server says that a prepared statement is not there, or that its result would have changed.
    pub(crate) fn is_about_a_stale_statement(&self) -> bool {
        // The routine is never translated; servers that are not PostgreSQL do not name it, and have the text.
        let is_changed_plan = self.field(b'R') == Some("RevalidateCachedQuery")
            || self.message() == "cached plan must not change result type";
        self.sqlstate() == "26000" || (self.sqlstate() == "0A000" && is_changed_plan)
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {} (SQLSTATE {})", self.severity(), self.message(), self.sqlstate())?;
        self.detail().map_or(Ok(()), |detail| write!(formatter, ": {detail}"))
    }
}

impl fmt::Debug for ServerError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl std::error::Error for ServerError {}

/// What can go wrong, by who failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The server refused an operation.
    #[error("{0}")]
    Server(Box<ServerError>),
    /// The connection ended before the answer.
    #[error("the connection was lost before the answer ({})", retry_words(*.retry))]
    Lost {
        /// Whether the operation may be done again.
        retry: Retry,
        /// What the operating system said; `None` where the server closed the connection.
        #[source]
        cause: Option<Arc<io::Error>>,
    },
    /// The connection had ended before the operation was asked for.
    #[error("the connection is closed: open a new one")]
    Closed,
    /// The server sent what the protocol does not allow; the connection is closed.
    #[error("the server broke the protocol: {0}")]
    Protocol(&'static str),
    /// The server sent a message that does not decode; the connection is closed.
    #[error("the server broke the protocol")]
    Wire(#[from] WireError),
    /// An operation of a pipeline did not run, because an earlier one had failed.
    #[error("not run: operation {by} failed before it")]
    Aborted {
        /// The one that failed.
        by: OperationId,
    },
    /// An operation of a pipeline ran and was undone, because a later one of its implicit transaction failed.
    #[error("undone: operation {by} failed in the same implicit transaction")]
    Undone {
        /// The one that failed.
        by: OperationId,
    },
    /// COMMIT found a transaction that had failed, and rolled it back.
    #[error("COMMIT rolled the transaction back, since a statement in it had failed")]
    RolledBack,
    /// A parameter cannot be written as the type that the server wants.
    #[error("parameter ${number} cannot be written: {problem}")]
    Parameter {
        /// Its number in the statement, counted from one.
        number: usize,
        /// What is wrong.
        problem: Arc<str>,
    },
    /// A column cannot be read as the type that was asked for.
    #[error("column {index} cannot be read: {problem}")]
    Column {
        /// Its position, counted from zero.
        index: usize,
        /// What is wrong.
        problem: Arc<str>,
    },
    /// The call does not fit what the connection is doing.
    #[error("{0}")]
    Usage(Usage),
    /// A limit that keeps memory bounded was reached.
    #[error("{what} would take more than the {limit} bytes that the connection allows")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// The limit, in bytes.
        limit: usize,
    },
    /// An operation of a pipeline ran, and its rows were more than the connection keeps. They were thrown away.
    #[error(
        "it ran, but its rows were more than the {limit} bytes that the connection keeps: use query or a cursor"
    )]
    RowsTooLarge {
        /// The limit, in bytes.
        limit: usize,
    },
    /// The wait took longer than was allowed, and so did the server's answer to the cancel request.
    #[error("no answer in time ({})", retry_words(*.retry))]
    TimedOut {
        /// Whether the operation may be done again.
        retry: Retry,
    },
    /// No connection came about.
    #[error("{0}")]
    Connect(Arc<ConnectError>),
}

/// A call at the wrong time or on the wrong thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Usage {
    /// A pipeline on a connection whose option `pipelining` is off.
    #[error("this connection does not pipeline: connect with the option pipelining turned on")]
    PipeliningOff,
    /// A pipeline's call outside of a block.
    #[error("no pipeline is open: begin a block first")]
    OutsideBlock,
    /// A call that waits by itself, inside of a block.
    #[error("a pipeline is open: end its block first, or use the call of the pipeline")]
    InsideBlock,
    /// COPY by a call for other statements.
    #[error("COPY moves data of its own: use copy_in or copy_out")]
    UseCopy,
    /// Many sets by unnest or COPY, of a statement that cannot be written so.
    #[error(
        "only INSERT INTO table (columns) VALUES ($1, $2, …), one row of parameters and nothing else, can be made \
         of arrays or COPY: use the pipeline"
    )]
    NotPlainInsert,
    /// Another statement by a call for COPY.
    #[error("this call is for COPY: use execute or query")]
    NotCopy,
    /// A savepoint statement in a pipeline that goes on after errors.
    #[error(
        "a pipeline that goes on after errors keeps savepoints of its own: savepoints of yours do not fit in"
    )]
    Savepoint,
    /// An operation that is not of this block, or whose result was taken.
    #[error("no such operation in this block, or its result was taken before")]
    UnknownOperation,
    /// Text of another encoding than the session's.
    #[error("text beyond ASCII needs client_encoding UTF8: SET client_encoding TO UTF8")]
    Encoding,
    /// A cursor outside of a transaction.
    #[error("a cursor lives in a transaction: begin one first")]
    NoTransaction,
    /// A result was asked of an operation that has not been answered.
    #[error("the operation has not been answered yet: process the pipeline up to it")]
    Unanswered,
    /// An operation was pushed while another waits for a barrier.
    #[error("the operations before this one have to be answered first")]
    Barrier,
}

/// Why no connection came about.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The settings cannot be understood.
    #[error(transparent)]
    Settings(#[from] ConninfoError),
    /// A host has no address.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The password file cannot be used.
    #[error(transparent)]
    Passfile(#[from] PassfileError),
    /// TLS cannot be set up, or the server fails its check.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// Nobody answers there.
    #[error("cannot connect to {host}: is a server running there, and does it accept connections?")]
    Unreachable {
        /// Where.
        host: String,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// The wait was longer than `connect_timeout`.
    #[error("cannot connect to {host}: no answer within connect_timeout")]
    TimedOut {
        /// Where.
        host: String,
    },
    /// The server refused us.
    #[error("{host} refused the connection: {source}")]
    Refused {
        /// Where.
        host: String,
        /// What it said.
        source: Box<ServerError>,
    },
    /// A password is needed, and there is none.
    #[error("{host} asks for a password ({method}): give one in the URL, PGPASSWORD or the password file")]
    NoPassword {
        /// Where.
        host: String,
        /// How it would be sent.
        method: &'static str,
    },
    /// `require_auth` or `channel_binding` forbid what the server asks for.
    #[error("{host} asks for {method}, which {setting} does not allow")]
    Forbidden {
        /// Where.
        host: String,
        /// What it asks for.
        method: String,
        /// The setting.
        setting: &'static str,
    },
    /// The server wants an authentication that does not exist here.
    #[error("{host} asks for {method}, which is not supported: use SCRAM, MD5 or a plain password")]
    Unsupported {
        /// Where.
        host: String,
        /// What it asks for.
        method: String,
    },
    /// The server could not prove that it knows the password.
    #[error("{host} does not know the password either: it may not be the server that you mean")]
    Impostor {
        /// Where.
        host: String,
    },
    /// It is not a server of this protocol.
    #[error("{host} broke the protocol while connecting: {what}")]
    Protocol {
        /// Where.
        host: String,
        /// What it did.
        what: String,
    },
    /// A server answered, but `target_session_attrs` asks for another kind.
    #[error("{host} is not what target_session_attrs={wanted} asks for")]
    Attributes {
        /// Where.
        host: String,
        /// What was asked for.
        wanted: &'static str,
    },
    /// A setting has a value that does not exist.
    #[error("{keyword} has to be {expected}, not {given:?}")]
    Value {
        /// The keyword.
        keyword: &'static str,
        /// What it may be.
        expected: &'static str,
        /// What it is.
        given: String,
    },
}

impl ConnectError {
    /// A failure at `host` to reach it.
    pub(crate) fn unreachable(host: &Host, source: io::Error) -> Self {
        Self::Unreachable { host: host.to_string(), source }
    }

    /// A failure at `host` to log in.
    pub(crate) fn login(host: &Host, error: LoginError) -> Self {
        let host = host.to_string();
        match error {
            LoginError::Refused { body } => match ServerError::new(&body) {
                Ok(said) => Self::Refused { host, source: Box::new(said) },
                Err(error) => Self::Protocol { host, what: error.to_string() },
            },
            LoginError::NoPassword { method } => Self::NoPassword { host, method },
            LoginError::Forbidden { method, setting } => {
                Self::Forbidden { host, method: method.to_owned(), setting }
            }
            LoginError::Unsupported { method } => Self::Unsupported { host, method },
            LoginError::Impostor => Self::Impostor { host },
            LoginError::Protocol(what) => Self::Protocol { host, what },
        }
    }
}

impl Error {
    /// The SQLSTATE, where the server refused.
    pub fn sqlstate(&self) -> Option<&str> {
        self.server().map(ServerError::sqlstate)
    }

    /// What the server said, where it refused.
    pub fn server(&self) -> Option<&ServerError> {
        match self {
            Self::Server(error) => Some(error),
            _ => None,
        }
    }

    /// A connection that was given up because it took too long says so.
    pub(crate) fn or_timed_out(self) -> Self {
        match self {
            Self::Lost { retry, cause: Some(cause) } if cause.kind() == io::ErrorKind::TimedOut => {
                Self::TimedOut { retry }
            }
            error => error,
        }
    }

    pub(crate) fn is_about_a_stale_statement(&self) -> bool {
        self.server().is_some_and(ServerError::is_about_a_stale_statement)
    }

    /// Whether the operation may be done again. About an operation in a transaction this speaks of the operation
    /// alone: a transaction that was lost or rolled back took its earlier operations with it.
    pub fn retry(&self) -> Retry {
        match self {
            Self::Lost { retry, .. } | Self::TimedOut { retry } => *retry,
            Self::Protocol(_) | Self::Wire(_) => Retry::Unknown,
            // The session has ended by it, perhaps while the operation was being finished.
            Self::Server(error) if error.is_fatal() => Retry::Unknown,
            Self::Column { .. } | Self::RowsTooLarge { .. } => Retry::Ran,
            _ => Retry::Safe,
        }
    }
}

impl From<ConnectError> for Error {
    fn from(error: ConnectError) -> Self {
        Self::Connect(Arc::new(error))
    }
}

impl From<Usage> for Error {
    fn from(usage: Usage) -> Self {
        Self::Usage(usage)
    }
}

impl From<ServerError> for Error {
    fn from(error: ServerError) -> Self {
        Self::Server(Box::new(error))
    }
}

fn retry_words(retry: Retry) -> &'static str {
    match retry {
        Retry::Safe => "it did not run",
        Retry::Ran => "it ran",
        Retry::Unknown => "it may have run",
    }
}
