//! One session's transaction: its snapshot, savepoints, and what has to be undone.

use std::collections::BTreeMap;

use super::rows::{Deed, Rows, Snapshot, Xid};
use super::schema::Table;
use super::settings::Before;
use super::syntax::Level;

/// Rows of a table that a serializable transaction notes one by one; with more, it notes the table
/// (`max_pred_locks_per_relation`). The model does without those.
const NOTED_ONE_BY_ONE: usize = 12;

/// How far a transaction goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Block {
    /// One statement, or what comes up to a Sync.
    Single,
    /// A simple query of several statements.
    Implicit,
    /// From BEGIN on.
    Explicit,
}

#[derive(Debug)]
pub(crate) struct Savepoint {
    pub(crate) name: String,
    deeds: usize,
    before: Before,
    read_only: bool,
}

/// A transaction that has begun.
#[derive(Debug)]
pub(crate) struct Transaction {
    pub(crate) block: Block,
    pub(crate) has_failed: bool,
    pub(crate) level: Level,
    pub(crate) read_only: bool,
    pub(crate) snapshot: Option<Snapshot>,
    pub(crate) xid: Option<Xid>,
    pub(crate) savepoints: Vec<Savepoint>,
    /// Settings when it began.
    pub(crate) before: Before,
    /// Of a serializable transaction: how many rows of a table it has fetched at once, at most.
    fetched: BTreeMap<Table, usize>,
    /// Level and whether it only reads, as it began: before BEGIN and SET TRANSACTION, or as the one before that it follows.
    began: (Level, bool),
    deeds: Vec<(Table, usize, Deed)>,
}

impl Transaction {
    pub(crate) fn new(block: Block, level: Level, read_only: bool, before: Before) -> Self {
        Self {
            block,
            has_failed: false,
            level,
            read_only,
            snapshot: None,
            xid: None,
            savepoints: Vec::new(),
            before,
            fetched: BTreeMap::new(),
            began: (level, read_only),
            deeds: Vec::new(),
        }
    }

    /// Goes on as the transaction that it was chained to.
    pub(crate) fn follow(&mut self, level: Level, read_only: bool) {
        (self.block, self.level, self.read_only) = (Block::Explicit, level, read_only);
        self.began = (level, read_only);
    }

    /// The snapshot of a statement that begins now.
    pub(crate) fn snapshot(&mut self, rows: &Rows) -> Snapshot {
        match self.level {
            Level::ReadCommitted => {
                self.snapshot = Some(0); // that there was one
                rows.now()
            }
            Level::RepeatableRead | Level::Serializable => *self.snapshot.get_or_insert_with(|| rows.now()),
        }
    }

    /// So many rows of a table have come to the client.
    pub(crate) fn fetched(&mut self, table: Table, rows: usize) {
        let most = self.fetched.entry(table).or_default();
        *most = rows.max(*most);
    }

    /// Whether the server finds that it may not have run one by one with others: at SERIALIZABLE, where more rows of a table
    /// were fetched than it notes one by one, and another transaction has written there since the snapshot.
    pub(crate) fn is_dangerous(&self, rows: &Rows) -> bool {
        let Some(snapshot) = self.snapshot.filter(|_| self.level == Level::Serializable) else {
            return false;
        };
        let is_changed = |table: &Table| rows.is_changed_since(*table, snapshot, self.xid);
        self.fetched.iter().any(|(table, count)| *count > NOTED_ONE_BY_ONE && is_changed(table))
    }

    pub(crate) fn xid(&mut self, backend: usize, rows: &mut Rows) -> Xid {
        *self.xid.get_or_insert_with(|| rows.begin(backend))
    }

    pub(crate) fn did(&mut self, table: Table, at: usize, deed: Deed) {
        self.deeds.push((table, at, deed));
    }

    /// The name of the innermost savepoint.
    pub(crate) fn innermost(&self) -> Option<&str> {
        self.savepoints.last().map(|savepoint| savepoint.name.as_str())
    }

    pub(crate) fn depth(&self) -> usize {
        self.savepoints.len()
    }

    pub(crate) fn save(&mut self, name: String, before: Before) {
        let (deeds, read_only) = (self.deeds.len(), self.read_only);
        self.savepoints.push(Savepoint { name, deeds, before, read_only });
    }

    /// The place of the savepoint of this name that was made last.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.savepoints.iter().rposition(|savepoint| savepoint.name == name)
    }

    /// Takes back what was done since the savepoint at this place, or all; the settings that were then.
    pub(crate) fn take_back(&mut self, place: Option<usize>, rows: &mut Rows) -> Before {
        let from = place.map_or(0, |place| self.savepoints[place].deeds);
        for (table, at, deed) in self.deeds.drain(from..).rev() {
            rows.take_back(table, at, deed);
        }
        match place {
            Some(place) => {
                self.read_only = self.savepoints[place].read_only;
                self.savepoints[place].before.clone()
            }
            None => {
                // A failure takes them back as the settings that they are, and AND CHAIN comes later.
                (self.level, self.read_only) = self.began;
                self.before.clone()
            }
        }
    }
}
