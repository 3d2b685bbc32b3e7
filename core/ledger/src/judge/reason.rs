//! Why something could not be judged.

use std::fmt;

/// Of [`Allow::no_connections`](super::Allow::no_connections).
pub(super) const NO_CONNECTIONS: &str = "--allow-no-connections";
/// Of [`Allow::missing_scopes`](super::Allow::missing_scopes).
pub(super) const MISSING_SCOPES: &str = "--allow-missing-scopes";
/// Of [`Allow::open`](super::Allow::open).
pub(super) const OPEN: &str = "--allow-open";
/// Of [`Allow::loss`](super::Allow::loss).
pub(super) const LOSS: &str = "--allow-loss";

/// Why a rule could not be judged, and what takes that as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// For people.
    pub text: String,
    /// The option that judges all the same, if there is one.
    pub option: Option<&'static str>,
}

impl Reason {
    /// One that an option takes as it is.
    pub fn unless(option: &'static str, text: impl Into<String>) -> Self {
        Self { text: text.into(), option: Some(option) }
    }

    /// One that no option takes as it is.
    pub fn always(text: impl Into<String>) -> Self {
        Self { text: text.into(), option: None }
    }

    /// Missing records.
    pub fn loss(text: impl Into<String>) -> Self {
        Self::unless(LOSS, text)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
