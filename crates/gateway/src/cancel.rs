//! Cancel requests: found by the gateway's own keys, and never able to hit a later statement.
//!
//! A cancel interrupts whatever the backend runs when it arrives. Directly connected, a client that goes on before
//! its cancel has arrived may see its next statement cancelled. Here the next unit waits until the cancel connection
//! has closed upstream: PostgreSQL closes it after the signal was sent, and a backend drops a signal that finds it
//! idle (`DoingCommandRead` in `postgres.c`).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

use onetrip_session::BackendKey;

use crate::dial::Upstream;
use crate::notice::notice;

/// What a client shows to cancel: process id and the gateway's key.
type Shown = (u32, [u8; 4]);

/// All sessions that can be cancelled.
#[derive(Debug, Default)]
pub(crate) struct Cancels {
    sessions: Mutex<HashMap<Shown, Arc<Target>>>,
}

/// One session, as a cancel request sees it.
#[derive(Debug)]
pub(crate) struct Target {
    key: BackendKey,
    upstream: Upstream,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The client waits for an answer.
    is_waiting: bool,
    /// Cancel requests on their way.
    on_their_way: u32,
    /// A cancel was sent and nobody knows whether it has arrived.
    lost: bool,
    /// The session's task, while it holds a unit back.
    waker: Option<Waker>,
}

/// Whether the next unit may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gate {
    Open,
    /// A cancel is on its way.
    Held,
    /// A cancel was lost on its way: the session cannot be trusted with another unit.
    Lost,
}

impl Cancels {
    /// Lets a session be cancelled by `shown`.
    pub(crate) fn add(&self, shown: Shown, key: BackendKey, upstream: Upstream) -> Arc<Target> {
        let target = Arc::new(Target { key, upstream, state: Mutex::default() });
        lock(&self.sessions).insert(shown, Arc::clone(&target));
        target
    }

    pub(crate) fn remove(&self, shown: Shown) {
        lock(&self.sessions).remove(&shown);
    }

    /// Carries a request to the database and waits until it has arrived. One that names no session, or one whose
    /// client waits for nothing, is dropped.
    pub(crate) async fn carry(&self, shown: Shown) {
        let Some(target) = lock(&self.sessions).get(&shown).map(Arc::clone) else { return };
        {
            let mut state = lock(&target.state);
            if !state.is_waiting {
                return;
            }
            state.on_their_way += 1;
        }
        let arrived = target.upstream.cancel(target.key.process_id, &target.key.key).await;
        let mut state = lock(&target.state);
        state.on_their_way -= 1;
        if let Err(error) = arrived {
            state.lost |= error.may_have_been_sent;
            notice(&format!("a cancel request did not reach the database: {}", error.reason));
        }
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }
}

impl Target {
    /// Notes whether the client waits for an answer.
    pub(crate) fn set_waiting(&self, is_waiting: bool) {
        lock(&self.state).is_waiting = is_waiting;
    }

    /// Whether the next unit may go; if it is held, the task is woken when that changes.
    pub(crate) fn gate(&self, cx: &Context<'_>) -> Gate {
        let mut state = lock(&self.state);
        if state.lost {
            Gate::Lost
        } else if state.on_their_way > 0 {
            state.waker = Some(cx.waker().clone());
            Gate::Held
        } else {
            Gate::Open
        }
    }
}

/// A panic elsewhere leaves these maps whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
