use serde::Serialize;

/// Why a trip is left where remedies could not take it out, or were not on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Obstacle {
    /// Outside of a transaction: each statement sees a state of its own.
    NoTransaction,
    /// The transaction's level is READ COMMITTED: each statement sees a state of its own.
    ReadCommitted,
    /// The transaction's level is SERIALIZABLE: what is read ahead would count as read.
    Serializable,
    /// The server had not yet told the transaction's level.
    LevelUnknown,
    /// The session may have temporary objects, settings or a role of which nothing is known.
    StateUnknown,
    /// The statement is not known to only read: see [`Record::Impure`](crate::Record::Impure).
    Impure,
    /// The transaction did more than read.
    Wrote,
    /// Nothing had foreseen it: the first rows of a loop, or one that it skipped.
    Unforeseen,
    /// The database is so near that remedies rest.
    Near,
    /// A pooler stands between the gateway and the server: the session has no server session of its own.
    Pooler,
    /// The connection is only watched: remedies do not speak its protocol.
    WatchedOnly,
    /// Remedies were off, outside of a transaction.
    OffOutside,
    /// Remedies were off, in a transaction of the session's level, whichever that is.
    OffAtItsLevel,
    /// Remedies were off, in a transaction whose statements all see one state.
    Off,
}

impl Obstacle {
    /// Those that a gateway tells, each at the number that it has in a trace, less one; the others are seen from
    /// the traffic.
    pub(crate) const TOLD: [Self; 11] = [
        Self::NoTransaction,
        Self::ReadCommitted,
        Self::Serializable,
        Self::LevelUnknown,
        Self::StateUnknown,
        Self::Impure,
        Self::Wrote,
        Self::Unforeseen,
        Self::Near,
        Self::Pooler,
        Self::WatchedOnly,
    ];

    /// Its name in exports and in the report's JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoTransaction => "no-transaction",
            Self::ReadCommitted => "read-committed",
            Self::Serializable => "serializable",
            Self::LevelUnknown => "level-unknown",
            Self::StateUnknown => "state-unknown",
            Self::Impure => "impure",
            Self::Wrote => "wrote",
            Self::Unforeseen => "unforeseen",
            Self::Near => "near",
            Self::Pooler => "pooler",
            Self::WatchedOnly => "watched-only",
            Self::OffOutside => "off-outside",
            Self::OffAtItsLevel => "off-at-its-level",
            Self::Off => "off",
        }
    }
}
