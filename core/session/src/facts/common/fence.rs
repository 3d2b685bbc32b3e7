//! Where others wait for transactions whose end was answered before it happened (rule C3): one fence for all sessions of
//! a gateway.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

/// A session whose end was answered, and that the server has not confirmed for so long, is over: others do not wait for it
/// any longer.
pub(crate) const CONFIRMED_WITHIN: Duration = Duration::from_secs(5);

/// Transactions that were answered before the server has ended them, of all sessions of one gateway: what takes strong
/// locks in the same database waits for those that were answered before it came (rule C3).
#[derive(Debug, Default)]
pub struct Fence {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Of each session, in the order of their ends.
    open: HashMap<u64, VecDeque<Open>>,
    next_session: u64,
    /// How many were answered.
    answered: u64,
    waiting: Vec<Waker>,
}

/// A transaction that is over for its program, and may not be for the server.
#[derive(Debug)]
struct Open {
    /// Its number among all.
    number: u64,
    /// The name of its database.
    database: Box<[u8]>,
    /// Also those wait that only write rows: a trigger may run a function that takes strong locks.
    also_for_writes: bool,
}

impl Fence {
    /// A number for one more session.
    pub(crate) fn join(&self) -> u64 {
        let mut state = self.lock();
        state.next_session += 1;
        state.next_session
    }

    /// A transaction of this session was answered.
    pub(crate) fn raise(&self, session: u64, database: &[u8], also_for_writes: bool) {
        let mut state = self.lock();
        state.answered += 1;
        let open = Open { number: state.answered, database: database.into(), also_for_writes };
        state.open.entry(session).or_default().push_back(open);
    }

    /// The server has ended the oldest transaction of this session.
    pub(crate) fn lower(&self, session: u64) {
        let mut state = self.lock();
        let Some(open) = state.open.get_mut(&session) else { return };
        open.pop_front();
        if open.is_empty() {
            state.open.remove(&session);
        }
        state.wake();
    }

    /// The session is over, and its transactions with it.
    pub(crate) fn leave(&self, session: u64) {
        let mut state = self.lock();
        if state.open.remove(&session).is_some() {
            state.wake();
        }
    }

    /// The number of the last transaction that was answered.
    pub(crate) fn answered(&self) -> u64 {
        self.lock().answered
    }

    /// Whether a transaction of another session in this database is open that was answered before one of this number, and
    /// for which something waits that takes strong locks, or that only `writes`.
    pub(crate) fn is_up(&self, session: u64, database: &[u8], until: u64, writes: bool) -> bool {
        let state = self.lock();
        let others = state.open.iter().filter(|(other, _)| **other != session);
        others.flat_map(|(_, open)| open).any(|open| {
            open.number <= until && *open.database == *database && (open.also_for_writes || !writes)
        })
    }

    /// Whether none is open.
    pub(crate) fn is_down(&self) -> bool {
        self.lock().open.is_empty()
    }

    /// Wakes a task when a transaction has ended. Look again behind this call.
    pub fn wake(&self, waker: &Waker) {
        let mut state = self.lock();
        if !state.waiting.iter().any(|waiting| waiting.will_wake(waker)) {
            state.waiting.push(waker.clone());
        }
    }

    /// A panic elsewhere leaves the counts whole.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn wake(&mut self) {
        self.waiting.drain(..).for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_strong_locks_waits_for_those_that_were_answered_before_it_in_its_database() {
        let fence = Fence::default();
        let (reader, other) = (fence.join(), fence.join());
        fence.raise(reader, b"shop", false);
        let until = fence.answered();
        fence.raise(reader, b"shop", true);
        assert!(fence.is_up(other, b"shop", until, false));
        assert!(!fence.is_up(other, b"shop", until, true), "no function takes strong locks");
        assert!(fence.is_up(other, b"shop", until + 1, true));
        assert!(!fence.is_up(other, b"news", until, false), "another database");
        assert!(!fence.is_up(reader, b"shop", until, false), "its own");
        fence.lower(reader);
        assert!(!fence.is_up(other, b"shop", until, false) && !fence.is_down(), "the second came later");
        fence.leave(reader);
        assert!(fence.is_down());
    }
}
