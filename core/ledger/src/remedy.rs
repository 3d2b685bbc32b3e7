use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// What takes round trips out of a program that stays as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Remedy {
    /// A BEGIN, SAVEPOINT or RELEASE is answered when it arrives, while it is on its way to the server.
    Begin,
    /// A COMMIT or ROLLBACK of a transaction that only read is answered when it arrives.
    Commit,
    /// A statement of a loop inside REPEATABLE READ is answered by what was read ahead.
    Loops,
    /// A Parse, with its Describe, that the server has answered before is answered when it arrives.
    Statements,
    /// A piece of a result is answered from what was read ahead.
    Cursors,
    /// A read inside REPEATABLE READ is answered by what the same read has brought.
    Repeats,
    /// Housekeeping of a session that changes nothing is answered when it arrives.
    Chatter,
    /// A call that reads a large object is answered from what was read ahead.
    Lobs,
}

impl Remedy {
    /// All remedies, each at the number that it has in a trace, less one.
    pub const ALL: [Self; 8] = [
        Self::Begin,
        Self::Commit,
        Self::Loops,
        Self::Statements,
        Self::Cursors,
        Self::Repeats,
        Self::Chatter,
        Self::Lobs,
    ];

    /// Its name in options and reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Begin => "begin",
            Self::Commit => "commit",
            Self::Loops => "loops",
            Self::Statements => "statements",
            Self::Cursors => "cursors",
            Self::Repeats => "repeats",
            Self::Chatter => "chatter",
            Self::Lobs => "lobs",
        }
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text names no remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no remedy; there is: {all}", all = Remedy::ALL.map(Remedy::as_str).join(", "))]
pub struct UnknownRemedy(pub String);

impl FromStr for Remedy {
    type Err = UnknownRemedy;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let named = Self::ALL.into_iter().find(|remedy| remedy.as_str() == text);
        named.ok_or_else(|| UnknownRemedy(text.to_owned()))
    }
}
