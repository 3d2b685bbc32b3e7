use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The stable code of a pattern. A code is never given to another pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "&'static str", try_from = "String")]
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
    /// OT009: a query run once for each of many values.
    OnePerValue,
    /// OT010: a large object read by several calls.
    LobChatter,
    /// OT011: pings, settings and look-ups of the catalogue.
    SessionChatter,
    /// OT012: reads one after another that do not need each other's results.
    Sequence,
    /// OT013: a row read just before it is changed.
    ReadBeforeWrite,
    /// OT014: a key fetched before the INSERT that uses it.
    SequenceTrip,
    /// OT015: a row looked for, not found, and inserted.
    ExistsThenInsert,
    /// OT016: a transaction that only read, rolled back in a trip of its own.
    RollbackOfRead,
}

impl Code {
    /// All codes in order.
    pub const ALL: [Self; 16] = [
        Self::Loop,
        Self::RowByRow,
        Self::CommitPerRow,
        Self::TinyFetch,
        Self::Repeated,
        Self::TransactionAlone,
        Self::PreparePerRun,
        Self::ConnectionPerQuery,
        Self::OnePerValue,
        Self::LobChatter,
        Self::SessionChatter,
        Self::Sequence,
        Self::ReadBeforeWrite,
        Self::SequenceTrip,
        Self::ExistsThenInsert,
        Self::RollbackOfRead,
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
            Self::OnePerValue => "OT009",
            Self::LobChatter => "OT010",
            Self::SessionChatter => "OT011",
            Self::Sequence => "OT012",
            Self::ReadBeforeWrite => "OT013",
            Self::SequenceTrip => "OT014",
            Self::ExistsThenInsert => "OT015",
            Self::RollbackOfRead => "OT016",
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
            Self::OnePerValue => "one query per value",
            Self::LobChatter => "large object read in pieces",
            Self::SessionChatter => "session chatter",
            Self::Sequence => "independent statements in sequence",
            Self::ReadBeforeWrite => "SELECT then UPDATE of the same row",
            Self::SequenceTrip => "nextval with a trip of its own",
            Self::ExistsThenInsert => "look-up before INSERT",
            Self::RollbackOfRead => "ROLLBACK after reads only",
        }
    }
}

impl From<Code> for &'static str {
    fn from(code: Code) -> Self {
        code.as_str()
    }
}

impl TryFrom<String> for Code {
    type Error = UnknownCode;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text is no code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a finding's code; the codes are {first} to {last}", first = Code::ALL[0], last = Code::ALL[Code::ALL.len() - 1])]
pub struct UnknownCode(pub String);

impl FromStr for Code {
    type Err = UnknownCode;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let matches = |code: &Self| code.as_str().eq_ignore_ascii_case(text);
        Self::ALL.into_iter().find(matches).ok_or_else(|| UnknownCode(text.to_owned()))
    }
}
