//! What the sessions of one gateway know together of its databases.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use foldhash::fast::RandomState;
use onetrip_ledger::Moment;
use onetrip_sql::purity::Catalogue;

use super::changes::{Changes, Everywhere};

/// What was found out longer ago is not relied on.
const FRESH: Duration = Duration::from_secs(60);
/// Databases that are kept.
const DATABASES_MAX: usize = 64;

/// What all sessions of a gateway know together.
#[derive(Debug, Default)]
pub struct Knowledge {
    /// By identity: the cluster's system identifier and the database's number.
    databases: Mutex<HashMap<Box<[u8]>, Arc<Database>, RandomState>>,
    /// By the name by which sessions ask for a database: it is known before its identity.
    changes: Mutex<HashMap<Vec<u8>, Arc<Changes>, RandomState>>,
    everywhere: Arc<Everywhere>,
    /// The last session that has begun a transaction has begun its first with a read.
    begins_with_reads: AtomicBool,
    /// A [`Backends`].
    backends: AtomicU8,
}

/// Whom the gateway's sessions talk to (rule C5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backends {
    /// No session has asked.
    Unknown,
    /// Each session that has asked has a process of the server for itself.
    Own,
    /// One found that a pooler stands between.
    Pooled,
}

/// What is known of one database.
#[derive(Debug, Default)]
pub(crate) struct Database {
    catalogue: Mutex<Catalogue<Stamp>>,
}

/// When the server was asked, and at which epoch of the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) at: Moment,
    pub(crate) epoch: u64,
}

impl Stamp {
    /// Whether what was found out then may be relied on.
    pub(crate) fn is_fresh(self, now: Moment, epoch: u64) -> bool {
        self.epoch == epoch && now.since(self.at) < FRESH.as_nanos() as u64
    }

    /// Whether it is about to be too old.
    pub(crate) fn is_aging(self, now: Moment) -> bool {
        3 * now.since(self.at) > 2 * FRESH.as_nanos() as u64
    }
}

impl Knowledge {
    /// A session has run the first statement of its first transaction.
    pub(crate) fn session_begins(&self, with_a_read: bool) {
        self.begins_with_reads.store(with_a_read, Ordering::Relaxed);
    }

    /// Whether the next session is likely to begin with a transaction that reads.
    pub(crate) fn begins_with_reads(&self) -> bool {
        self.begins_with_reads.load(Ordering::Relaxed)
    }

    /// A session has asked whether it has a process of the server for itself. One that has not speaks for all.
    pub(crate) fn backend_told(&self, is_own: bool) {
        let told = if is_own { Backends::Own } else { Backends::Pooled } as u8;
        self.backends.fetch_max(told, Ordering::Relaxed);
    }

    /// What the sessions have found.
    pub(crate) fn backends(&self) -> Backends {
        match self.backends.load(Ordering::Relaxed) {
            0 => Backends::Unknown,
            1 => Backends::Own,
            _ => Backends::Pooled,
        }
    }

    /// Changes of this database's catalogue; those of databases that come when there are too many are told together.
    pub(crate) fn changes_of(&self, database: &[u8]) -> Arc<Changes> {
        let mut changes = lock(&self.changes);
        let has_own = changes.contains_key(database) || changes.len() < DATABASES_MAX;
        let name = if has_own { database } else { b"" };
        let made = || Arc::new(Changes::of(&self.everywhere));
        Arc::clone(changes.entry(name.to_vec()).or_insert_with(made))
    }

    /// The database of this identity.
    pub(crate) fn database(&self, identity: &[u8]) -> Arc<Database> {
        let mut databases = lock(&self.databases);
        if databases.len() >= DATABASES_MAX && !databases.contains_key(identity) {
            databases.clear();
        }
        Arc::clone(databases.entry(identity.into()).or_default())
    }
}

impl Database {
    /// What is known of its names.
    pub(crate) fn catalogue(&self) -> MutexGuard<'_, Catalogue<Stamp>> {
        lock(&self.catalogue)
    }
}

/// A panic elsewhere leaves what is inside whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_has_the_same_changes_however_many_come_later() {
        let knowledge = Knowledge::default();
        let first = knowledge.changes_of(b"shop");
        for number in 0..2 * DATABASES_MAX {
            knowledge.changes_of(number.to_string().as_bytes());
        }
        assert!(Arc::ptr_eq(&first, &knowledge.changes_of(b"shop")));
        let (late, later) = (knowledge.changes_of(b"late"), knowledge.changes_of(b"later"));
        assert!(Arc::ptr_eq(&late, &later) && !Arc::ptr_eq(&late, &first));
    }
}
