//! What goes wrong: errors of the server, and errors that a client is told of.

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;

use onetrip_wire::pg::{Severity, backend, frame};
use rusqlite::ErrorCode;

/// Why the server cannot start or had to stop.
#[derive(Debug, thiserror::Error)]
pub enum EmbedError {
    /// The database file could not be opened or is not one.
    #[error("cannot open the SQLite database {}: {}", path.display(), reason(error))]
    Open {
        /// File as given in the options.
        path: PathBuf,
        /// SQLite's reason.
        error: rusqlite::Error,
    },
    /// The listening socket failed.
    #[error("cannot listen")]
    Listen(#[source] io::Error),
    /// The system refused something the server needs, such as a thread or random bytes.
    #[error("the system refused a resource")]
    System(#[source] io::Error),
}

/// Why a file could not be opened. SQLite says it twice, and names the file again.
fn reason(error: &rusqlite::Error) -> Cow<'static, str> {
    match error.sqlite_error_code() {
        Some(ErrorCode::CannotOpen) => {
            "the file cannot be opened or made. Does its directory exist, and may you write there?".into()
        }
        Some(ErrorCode::NotADatabase) => "the file is not an SQLite database".into(),
        _ => error.to_string().into(),
    }
}

/// An error as a client sees it: SQLSTATE and text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SqlError {
    pub(crate) sqlstate: &'static str,
    pub(crate) message: Cow<'static, str>,
    pub(crate) hint: Option<&'static str>,
    more: Option<Box<ErrorDetail>>,
    /// Byte offset in the statement's text.
    pub(crate) offset: Option<usize>,
    /// The offset in characters of the whole message, counted from one.
    pub(crate) position: Option<usize>,
}

/// What few errors have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ErrorDetail {
    pub(crate) detail: Option<String>,
    pub(crate) table: Option<String>,
    pub(crate) column: Option<String>,
    pub(crate) constraint: Option<String>,
}

pub(crate) type SqlResult<T> = Result<T, SqlError>;

impl SqlError {
    pub(crate) fn new(sqlstate: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self { sqlstate, message: message.into(), hint: None, more: None, offset: None, position: None }
    }

    /// Place for what few errors have.
    pub(crate) fn more(&mut self) -> &mut ErrorDetail {
        self.more.get_or_insert_default()
    }

    pub(crate) fn hint(mut self, hint: &'static str) -> Self {
        self.hint = Some(hint);
        self
    }

    pub(crate) fn at(mut self, offset: usize) -> Self {
        self.offset = Some(offset);
        self
    }

    /// The feature exists in PostgreSQL and not here.
    pub(crate) fn unsupported(what: impl Into<Cow<'static, str>>) -> Self {
        Self::new("0A000", what).hint("See docs/embedded-server.md for what works.")
    }

    /// Somebody or something ended the statement.
    pub(crate) fn cancelled() -> Self {
        Self::new(Self::CANCELLED, "canceling statement due to user request")
    }

    /// SQLSTATE of what [`crate::watch::Watch`] ended.
    pub(crate) const CANCELLED: &'static str = "57014";

    /// SQLSTATE of a lock that another session holds for longer than this one waits.
    pub(crate) const LOCKED: &'static str = "55P03";

    pub(crate) fn protocol(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new("08P01", message)
    }

    /// Text that is not a value of the type.
    pub(crate) fn invalid_text(type_name: &str, text: &str) -> Self {
        let shown: String = text.chars().take(100).collect();
        Self::new("22P02", format!("invalid input syntax for type {type_name}: \"{shown}\""))
    }

    pub(crate) fn out_of_range(type_name: &str) -> Self {
        Self::new("22003", format!("value out of range for type {type_name}"))
    }

    /// Turns the offset in `statement`, which begins `base` bytes into `whole`, into a position.
    pub(crate) fn positioned(mut self, whole: &str, base: usize) -> Self {
        let before = self.offset.take().and_then(|offset| whole.get(..base + offset));
        self.position = before.map(|before| before.chars().count() + 1);
        self
    }

    /// Appends the ErrorResponse.
    pub(crate) fn encode(&self, out: &mut Vec<u8>, severity: Severity) {
        let severity = severity.as_str();
        frame(out, backend::ERROR_RESPONSE, |out| {
            let mut put = |letter: u8, value: &str| {
                out.push(letter);
                out.extend(value.bytes().filter(|byte| *byte != 0));
                out.push(0);
            };
            put(b'S', severity);
            put(b'V', severity);
            put(b'C', self.sqlstate);
            put(b'M', &self.message);
            let more = self.more.as_deref();
            if let Some(detail) = more.and_then(|more| more.detail.as_ref()) {
                put(b'D', detail);
            }
            if let Some(hint) = self.hint {
                put(b'H', hint);
            }
            if let Some(position) = self.position {
                put(b'P', &position.to_string());
            }
            let Some(more) = more else {
                out.push(0);
                return;
            };
            for (letter, field) in [(b't', &more.table), (b'c', &more.column), (b'n', &more.constraint)] {
                if let Some(value) = field {
                    put(letter, value);
                }
            }
            out.push(0);
        });
    }
}

impl std::fmt::Display for SqlError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (SQLSTATE {})", self.message, self.sqlstate)
    }
}

impl std::error::Error for SqlError {}
