//! Cancel requests: found by the gateway's own keys, and never able to hit a later statement.
//!
//! A cancel interrupts whatever the backend runs when it arrives. Directly connected, a client that goes on before
//! its cancel has arrived may see its next statement cancelled. Here the next unit waits until the cancel connection
//! has closed upstream: PostgreSQL closes it after the signal was sent, and a backend drops a signal that finds it
//! idle (`DoingCommandRead` in `postgres.c`).

use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};
use std::time::Duration;

use onetrip_session::BackendKey;
use tokio::sync::Notify;

use crate::dial::Upstream;
use crate::notice::{Kind, Peer, notice};

/// Turns of a session's task that surely show it what its socket held: in the first the runtime may not have looked yet.
const TURNS: u8 = 2;
/// Longest wait for them.
const TURN_MAX: Duration = Duration::from_secs(1);

/// Longest wait of a cancel for something that was answered before it ran: a server that takes longer is lost.
const EARLY_MAX: Duration = Duration::from_secs(30);

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
    /// Turns of the session's task that a cancel request waits for.
    turns: AtomicU8,
    turned: Notify,
    /// Whether a cancel would hit what the client waits for has changed.
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// The client waits for an answer.
    is_waiting: bool,
    /// What runs now was answered before it ran: a cancel meant for what is behind it waits.
    is_early: bool,
    /// Cancel requests on their way.
    on_their_way: u32,
    /// A cancel was sent and nobody knows whether it has arrived.
    lost: bool,
    /// The session's task.
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
    pub(crate) fn add(
        &self,
        shown: Shown,
        key: BackendKey,
        upstream: Upstream,
        cx: &Context<'_>,
    ) -> Arc<Target> {
        let state = Mutex::new(State { waker: Some(cx.waker().clone()), ..State::default() });
        let target = Arc::new(Target {
            key,
            upstream,
            state,
            turns: AtomicU8::new(0),
            turned: Notify::new(),
            changed: Notify::new(),
        });
        lock(&self.sessions).insert(shown, Arc::clone(&target));
        target
    }

    pub(crate) fn remove(&self, shown: Shown) {
        lock(&self.sessions).remove(&shown);
    }

    /// Carries a request to the database and waits until it has arrived. One that names no session, or one whose
    /// client waits for nothing, is dropped; what the client sent before it asked is seen first.
    pub(crate) async fn carry(&self, shown: Shown, peer: Peer) {
        let Some(target) = lock(&self.sessions).get(&shown).map(Arc::clone) else { return };
        target.await_turn().await;
        if !target.await_its_turn().await {
            return;
        }
        let mut on_its_way = OnItsWay { target: &target, may_be_lost: true };
        let arrived = target.upstream.cancel(target.key.process_id, &target.key.key).await;
        on_its_way.may_be_lost = false;
        if let Err(error) = arrived {
            on_its_way.may_be_lost = error.may_have_been_sent;
            let text = format!("a cancel request did not reach the database: {}", error.reason);
            notice(Kind::Cancel, Some(peer), &text);
        }
    }
}

/// A request on its way, however it ends: a session whose cancel is given up must not wait for it for ever.
struct OnItsWay<'t> {
    target: &'t Target,
    may_be_lost: bool,
}

impl Drop for OnItsWay<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.target.state);
        state.on_their_way -= 1;
        state.lost |= self.may_be_lost;
        state.wake();
    }
}

impl State {
    fn wake(&self) {
        if let Some(waker) = &self.waker {
            waker.wake_by_ref();
        }
    }
}

impl Target {
    /// Lets the session's task read what its client has sent: a statement may have arrived and not been seen.
    async fn await_turn(&self) {
        let mut turned = std::pin::pin!(self.turned.notified());
        turned.as_mut().enable();
        self.turns.store(TURNS, Ordering::Release);
        lock(&self.state).wake();
        // A task that is busy for so long has long seen what came before.
        let _ = tokio::time::timeout(TURN_MAX, turned).await;
    }

    /// The session's task had a turn.
    pub(crate) fn turn_taken(&self, cx: &Context<'_>) {
        match self.turns.load(Ordering::Acquire) {
            0 => {}
            1 => {
                self.turns.store(0, Ordering::Release);
                self.turned.notify_waiters();
            }
            more => {
                self.turns.store(more - 1, Ordering::Release);
                cx.waker().wake_by_ref();
            }
        }
    }

    /// Waits while a cancel would hit what was answered before it ran. Returns whether there is something to cancel,
    /// and notes that the request is on its way.
    async fn await_its_turn(&self) -> bool {
        let deadline = tokio::time::Instant::now() + EARLY_MAX;
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            {
                let mut state = lock(&self.state);
                if !state.is_waiting {
                    return false;
                }
                if !state.is_early {
                    state.on_their_way += 1; // until `OnItsWay` is dropped
                    return true;
                }
            }
            if tokio::time::timeout_at(deadline, changed).await.is_err() {
                return false;
            }
        }
    }

    /// Notes whether the client waits for an answer, and whether a cancel would hit that.
    pub(crate) fn set_waiting(&self, is_waiting: bool, may_cancel: bool) {
        let mut state = lock(&self.state);
        state.is_waiting = is_waiting;
        if state.is_early == may_cancel {
            state.is_early = !may_cancel;
            self.changed.notify_waiters();
        }
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

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::task::Waker;

    use onetrip_target::address::Address;
    use onetrip_target::{Conninfo, Environment, Host};

    use super::*;
    use crate::dial::Dialer;

    #[test]
    fn a_request_that_is_given_up_on_its_way_does_not_hold_its_session_for_ever() {
        let silent = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = silent.local_addr().unwrap();
        let conninfo = format!("postgres://ann@{address}/shop?sslmode=disable");
        let dialer = Dialer::new(Conninfo::parse(&conninfo, &Environment::default()).unwrap(), None).unwrap();
        let upstream = Upstream::reached(
            Arc::new(dialer),
            Host::tcp("127.0.0.1", address.port()),
            Address::Tcp(address),
        );
        let cancels = Cancels::default();
        let cx = Context::from_waker(Waker::noop());
        let key = BackendKey { process_id: 7, key: (*b"keys").into() };
        let shown = (7, *b"mine");
        let target = cancels.add(shown, key, upstream, &cx);
        target.set_waiting(true, true);
        let peer = Peer { number: 1, address: None };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let carried = tokio::time::timeout(Duration::from_secs(3), cancels.carry(shown, peer));
            let task = async {
                loop {
                    target.turn_taken(&cx);
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    if target.gate(&cx) == Gate::Held {
                        return;
                    }
                }
            };
            let (carried, ()) = tokio::join!(carried, task);
            assert!(carried.is_err(), "the server never answers");
        });
        assert_eq!(target.gate(&cx), Gate::Lost, "the request may still arrive");
    }
}
