use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// Transactions that were answered before the server has ended them, of all sessions of one gateway: what takes strong
/// locks waits for them (rule C3).
#[derive(Debug, Default)]
pub struct Fence {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// How many of each session.
    open: HashMap<u64, usize>,
    next_session: u64,
    waiting: Vec<Waker>,
}

impl Fence {
    /// A number for one more session.
    pub(crate) fn join(&self) -> u64 {
        let mut state = self.lock();
        state.next_session += 1;
        state.next_session
    }

    /// A transaction of this session was answered.
    pub(crate) fn raise(&self, session: u64) {
        *self.lock().open.entry(session).or_default() += 1;
    }

    /// The server has ended a transaction of this session.
    pub(crate) fn lower(&self, session: u64) {
        let mut state = self.lock();
        if let Some(open) = state.open.get_mut(&session) {
            *open -= 1;
            if *open == 0 {
                state.open.remove(&session);
                state.wake();
            }
        }
    }

    /// The session is over, and its transactions with it.
    pub(crate) fn leave(&self, session: u64) {
        let mut state = self.lock();
        if state.open.remove(&session).is_some() {
            state.wake();
        }
    }

    /// Whether a transaction of another session is open.
    pub(crate) fn is_up_for(&self, session: u64) -> bool {
        self.lock().open.keys().any(|other| *other != session)
    }

    /// Wakes a task when a session has none left. Look again behind this call.
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
