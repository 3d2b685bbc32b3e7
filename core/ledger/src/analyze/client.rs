//! Who sent what is booked.

use std::collections::HashMap;

use super::book::Key;
use crate::Driver;

/// A driver or ORM, or a connection of which nobody can say yet whose it is.
///
/// Clients show themselves by their statements, after patterns have begun. What is booked until then is under the connection,
/// and goes over to the driver when it is known, so that a pattern is one finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Client {
    Known(Driver),
    /// By the connection's number.
    Connection(u32),
}

impl Client {
    /// Who it is; unknown where it has not shown itself.
    pub(super) fn driver(self) -> Driver {
        match self {
            Self::Known(driver) => driver,
            Self::Connection(_) => Driver::UNKNOWN,
        }
    }
}

/// Keys that wait for their connection's driver.
#[derive(Debug, Default)]
pub(super) struct Unsettled(HashMap<u32, Vec<Key>>);

impl Unsettled {
    /// Something new is booked under `key`.
    pub(super) fn added(&mut self, key: &Key) {
        if let Client::Connection(number) = key.client {
            self.0.entry(number).or_default().push(*key);
        }
    }

    /// The keys that the connection's patterns are booked under, and those that they belong to.
    pub(super) fn settle(&mut self, number: u32, driver: Driver) -> impl Iterator<Item = (Key, Key)> + use<> {
        let keys = self.0.remove(&number).unwrap_or_default();
        keys.into_iter().map(move |key| (key, Key { client: Client::Known(driver), ..key }))
    }
}
