//! Where names are resolved.

use std::time::Duration;

use onetrip_ledger::Moment;

/// A configuration that is read anew changes what the session has not set itself: what depends on settings is relied on
/// for so long after the server was asked.
const SETTINGS_FRESH: Duration = Duration::from_secs(2);

/// Whether settings may be relied on `now` as they were `then`.
pub(crate) fn are_settings_fresh(then: Moment, now: Moment) -> bool {
    now.since(then) < SETTINGS_FRESH.as_nanos() as u64
}

/// Where names are resolved, and all else that an answer to a Parse depends on.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Place {
    /// The name by which the session has asked for its database.
    database: Vec<u8>,
    /// The search path as it works out, the role, the identity of the database, and a digest of the settings.
    rest: Vec<u8>,
}

impl Place {
    pub(super) fn new(database: Vec<u8>, rest: Vec<u8>) -> Self {
        Self { database, rest }
    }

    /// Whether it is in the database of this name.
    pub(crate) fn is_in_database(&self, name: &[u8]) -> bool {
        self.database == name
    }

    /// Its length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.database.len() + self.rest.len()
    }
}
