//! The isolation level that `--isolation` raises transactions to.

use std::str::FromStr;

/// A level that a gateway may set for programs which do not choose one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IsolationLevel {
    /// All reads of a transaction see one snapshot.
    RepeatableRead,
}

impl IsolationLevel {
    /// The server's setting for it.
    pub(crate) const SETTING: &'static str = "default_transaction_isolation";

    /// The value of that setting.
    pub(crate) fn value(self) -> &'static str {
        match self {
            Self::RepeatableRead => "repeatable read",
        }
    }
}

/// The text names no level that can be set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no level that can be set; write repeatable-read")]
pub struct UnknownIsolation(pub String);

impl FromStr for IsolationLevel {
    type Err = UnknownIsolation;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "repeatable-read" => Ok(Self::RepeatableRead),
            _ => Err(UnknownIsolation(text.to_owned())),
        }
    }
}
