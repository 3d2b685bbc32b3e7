use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// The stable code of a pattern. A code is never given to another pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(into = "&'static str")]
pub enum Code {
    /// OT001: one query per row of an earlier result.
    Loop,
    /// OT002: one INSERT, UPDATE or DELETE per row.
    RowByRow,
    /// OT003: one transaction per written row.
    CommitPerRow,
    /// OT004: a result fetched in small pieces.
    TinyFetch,
    /// OT005: the same query with the same values.
    Repeated,
    /// OT006: BEGIN or COMMIT with a trip of its own.
    TransactionAlone,
    /// OT007: a statement prepared again for each run.
    PreparePerRun,
    /// OT008: a connection opened for each statement.
    ConnectionPerQuery,
}

impl Code {
    /// All codes in order.
    pub const ALL: [Self; 8] = [
        Self::Loop,
        Self::RowByRow,
        Self::CommitPerRow,
        Self::TinyFetch,
        Self::Repeated,
        Self::TransactionAlone,
        Self::PreparePerRun,
        Self::ConnectionPerQuery,
    ];

    /// `OT001` and so on.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Loop => "OT001",
            Self::RowByRow => "OT002",
            Self::CommitPerRow => "OT003",
            Self::TinyFetch => "OT004",
            Self::Repeated => "OT005",
            Self::TransactionAlone => "OT006",
            Self::PreparePerRun => "OT007",
            Self::ConnectionPerQuery => "OT008",
        }
    }

    /// A title of a few words.
    pub fn title(self) -> &'static str {
        match self {
            Self::Loop => "N+1 loop",
            Self::RowByRow => "row-by-row writes",
            Self::CommitPerRow => "autocommit per row",
            Self::TinyFetch => "tiny fetch size",
            Self::Repeated => "identical query repeated",
            Self::TransactionAlone => "BEGIN/COMMIT travelling alone",
            Self::PreparePerRun => "prepare trip per execution",
            Self::ConnectionPerQuery => "connection per query",
        }
    }
}

impl From<Code> for &'static str {
    fn from(code: Code) -> Self {
        code.as_str()
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text is no code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a finding's code; the codes are OT001 to OT008")]
pub struct UnknownCode(pub String);

impl FromStr for Code {
    type Err = UnknownCode;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let matches = |code: &Self| code.as_str().eq_ignore_ascii_case(text);
        Self::ALL.into_iter().find(matches).ok_or_else(|| UnknownCode(text.to_owned()))
    }
}
