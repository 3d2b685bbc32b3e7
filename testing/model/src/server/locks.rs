//! Locks of tables, in the order in which they were asked for.

use super::schema::Table;

/// How strong a lock is; only the last conflicts with the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mode {
    AccessShare,
    RowShare,
    RowExclusive,
    AccessExclusive,
}

impl Mode {
    fn conflicts(self, other: Self) -> bool {
        self == Self::AccessExclusive || other == Self::AccessExclusive
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Lock {
    table: Table,
    backend: usize,
    mode: Mode,
    /// How many savepoints its transaction had.
    depth: usize,
}

/// All locks of tables.
#[derive(Debug, Default)]
pub(crate) struct Locks {
    held: Vec<Lock>,
    waiting: Vec<Lock>,
}

impl Locks {
    /// Takes a lock, or says who is in the way and waits.
    pub(crate) fn take(
        &mut self,
        backend: usize,
        table: Table,
        mode: Mode,
        depth: usize,
    ) -> Result<(), Vec<usize>> {
        let wanted = Lock { table, backend, mode, depth };
        let has = |lock: &Lock| lock.backend == backend && lock.table == table;
        if self.held.iter().any(|lock| has(lock) && lock.mode == mode) {
            return Ok(());
        }
        let conflicts =
            |lock: &&Lock| lock.table == table && lock.backend != backend && lock.mode.conflicts(mode);
        let mut ahead: Vec<usize> = self.held.iter().filter(conflicts).map(|lock| lock.backend).collect();
        // Who holds a lock of the table already goes ahead of those who wait for it.
        if !self.held.iter().any(has) {
            let queue = self.waiting.iter().take_while(|lock| lock.backend != backend);
            ahead.extend(queue.filter(conflicts).map(|lock| lock.backend));
        }
        if ahead.is_empty() {
            self.waiting.retain(|lock| lock.backend != backend);
            self.held.push(wanted);
            return Ok(());
        }
        if !self.waiting.iter().any(|lock| lock.backend == backend) {
            self.waiting.push(wanted);
        }
        Err(ahead)
    }

    /// Whether a session waits that such a lock would be in the way of.
    pub(crate) fn is_awaited(&self, backend: usize, table: Table, mode: Mode) -> bool {
        let is_in_the_way = |lock: &Lock| lock.table == table && lock.mode.conflicts(mode);
        self.waiting.iter().any(|lock| lock.backend != backend && is_in_the_way(lock))
    }

    /// Whether a session has such a lock.
    pub(crate) fn has(&self, backend: usize, table: Table, mode: Mode) -> bool {
        self.held.iter().any(|lock| lock.backend == backend && lock.table == table && lock.mode == mode)
    }

    /// The session does not wait any more.
    pub(crate) fn give_up(&mut self, backend: usize) {
        self.waiting.retain(|lock| lock.backend != backend);
    }

    /// Locks taken with more savepoints than this are gone.
    pub(crate) fn release_above(&mut self, backend: usize, depth: usize) {
        self.held.retain(|lock| lock.backend != backend || lock.depth <= depth);
    }

    pub(crate) fn release_all(&mut self, backend: usize) {
        self.held.retain(|lock| lock.backend != backend);
    }

    /// Locks of a savepoint that is released are those of what is around it.
    pub(crate) fn keep_at(&mut self, backend: usize, depth: usize) {
        for lock in self.held.iter_mut().filter(|lock| lock.backend == backend) {
            lock.depth = lock.depth.min(depth);
        }
    }

    /// A session's locks, as lines.
    pub(crate) fn shown(&self, backend: usize) -> Vec<String> {
        let held = self.held.iter().filter(|lock| lock.backend == backend);
        let mut lines: Vec<_> = held.map(|lock| format!("lock {} {:?}", lock.table, lock.mode)).collect();
        lines.sort();
        lines
    }
}
