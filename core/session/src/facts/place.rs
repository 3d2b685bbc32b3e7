//! Where names are resolved.

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
