//! Cancel requests: found by the gateway's own keys, and never able to hit a later statement.
//!
//! A cancel interrupts whatever the backend runs when it arrives. Directly connected, a client that goes on before
//! its cancel has arrived may see its next statement cancelled. Here the next unit waits until the cancel connection
//! has closed upstream. PostgreSQL closes it after the signal was sent, and a backend drops a signal that finds it
//! idle (`DoingCommandRead` in `postgres.c`).

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use onetrip_session::BackendKey;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;

use crate::dial::{CancelError, Upstream};
use crate::notice::{Kind, Peer, notice};

/// Longest wait until a session has looked at what its sockets hold.
const LOOK_MAX: Duration = Duration::from_secs(1);

/// Longest wait of a cancel for something that was answered before it ran: a server that takes longer is lost.
const EARLY_MAX: Duration = Duration::from_secs(30);

/// Cancel requests of a stop that are on their way at once.
const AT_ONCE: usize = 32;
/// A request that finds its statement ended does not hit the one behind it: what still runs so much later is asked again.
const AGAIN: Duration = Duration::from_millis(20);

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
    /// [`WAITING`], [`EARLY`], [`LOST`], and how many requests are on their way, in steps of [`ON_ITS_WAY`]. One number, so
    /// that a request sets out only for what is still waited for.
    state: AtomicU64,
    /// Looks at the session's sockets that were asked for so far, and those that were taken.
    looks_asked: AtomicU64,
    looks_taken: AtomicU64,
    looked: Notify,
    /// Whether a cancel would hit what the client waits for has changed.
    changed: Notify,
    /// Has the session look at its sockets.
    session: Waker,
}

/// The client waits for an answer.
const WAITING: u64 = 1;
/// What runs now was answered before it ran: a cancel meant for what is behind it waits.
const EARLY: u64 = 2;
/// A cancel was sent and nobody knows whether it has arrived.
const LOST: u64 = 4;
/// One more request is on its way.
const ON_ITS_WAY: u64 = 8;

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
    /// Lets a session be cancelled by `shown`; `session` has it look at its sockets.
    pub(crate) fn add(
        &self,
        shown: Shown,
        key: BackendKey,
        upstream: Upstream,
        session: Waker,
    ) -> Arc<Target> {
        let target = Arc::new(Target {
            key,
            upstream,
            state: AtomicU64::new(0),
            looks_asked: AtomicU64::new(0),
            looks_taken: AtomicU64::new(0),
            looked: Notify::new(),
            changed: Notify::new(),
            session,
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
        target.await_look().await;
        if let Some(Err(error)) = target.cancel().await {
            tell_failure(Some(peer), &error);
        }
    }

    /// Cancels what runs in all sessions, and what is behind it, until no client waits any more; gives up after `limit`. The
    /// sessions are to take nothing more from their clients by now.
    pub(crate) fn cancel_all(&self, limit: Duration) {
        let targets: Vec<_> = lock(&self.sessions).values().map(Arc::clone).collect();
        if targets.is_empty() {
            return;
        }
        match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime.block_on(async {
                // What is late is given up.
                let _ = tokio::time::timeout(limit, cancel_each(targets)).await;
            }),
            Err(error) => notice(Kind::Cancel, None, &format!("what runs is not cancelled: {error}")),
        }
    }
}

async fn cancel_each(targets: Vec<Arc<Target>>) {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut all = JoinSet::new();
    for target in targets {
        let places = Arc::clone(&places);
        all.spawn(async move { target.cancel_until_idle(&places).await });
    }
    all.join_all().await;
}

fn tell_failure(peer: Option<Peer>, error: &CancelError) {
    let text = format!("a cancel request did not reach the database: {}", error.reason);
    notice(Kind::Cancel, peer, &text);
}

/// A request on its way, however it ends: a session whose cancel is given up must not wait for it for ever.
struct OnItsWay<'t> {
    target: &'t Target,
    may_be_lost: bool,
}

impl Drop for OnItsWay<'_> {
    fn drop(&mut self) {
        let lost = if self.may_be_lost { LOST } else { 0 };
        // It cannot fail, since there is always something to store.
        let _ = self.target.update(|state| Some((state - ON_ITS_WAY) | lost));
        self.target.session.wake_by_ref();
    }
}

impl Target {
    /// Lets the session read what its client has sent: a statement may have arrived and not been seen.
    async fn await_look(&self) {
        let mine = self.looks_asked.fetch_add(1, Ordering::SeqCst) + 1;
        self.session.wake_by_ref();
        let taken = async {
            loop {
                let mut looked = std::pin::pin!(self.looked.notified());
                looked.as_mut().enable();
                if self.looks_taken.load(Ordering::SeqCst) >= mine {
                    return;
                }
                looked.await;
            }
        };
        // A session that is busy for so long has long seen what came before.
        let _ = tokio::time::timeout(LOOK_MAX, taken).await;
    }

    /// The looks that are asked for, if some are. To be asked for before the sockets are looked at.
    pub(crate) fn look_asked(&self) -> Option<u64> {
        let asked = self.looks_asked.load(Ordering::SeqCst);
        (asked != self.looks_taken.load(Ordering::Relaxed)).then_some(asked)
    }

    /// Everything was read that was there when so many looks were asked for.
    pub(crate) fn look_taken(&self, looks: u64) {
        self.looks_taken.store(looks, Ordering::SeqCst);
        self.looked.notify_waiters();
    }

    /// Carries a request to the database, once it can hit what the client waits for; `None` if the client waits for nothing.
    async fn cancel(&self) -> Option<Result<(), CancelError>> {
        if !self.await_its_turn().await {
            return None;
        }
        let mut on_its_way = OnItsWay { target: self, may_be_lost: true };
        let arrived = self.upstream.cancel(self.key.process_id, &self.key.key).await;
        on_its_way.may_be_lost = arrived.as_ref().is_err_and(|error| error.may_have_been_sent);
        Some(arrived)
    }

    /// Cancels until the client waits for nothing, or a request fails; as many at once as there are `places`.
    async fn cancel_until_idle(&self, places: &Semaphore) {
        self.await_look().await;
        loop {
            let place = places.acquire().await;
            let arrived = self.cancel().await;
            drop(place);
            match arrived {
                None => return,
                Some(Err(error)) => return tell_failure(None, &error),
                Some(Ok(())) => {}
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// Waits while a cancel would hit what was answered before it ran. Returns whether there is something to cancel,
    /// and notes that the request is on its way.
    async fn await_its_turn(&self) -> bool {
        let deadline = tokio::time::Instant::now() + EARLY_MAX;
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            // Until `OnItsWay` is dropped.
            let set_out = |state| (state & (WAITING | EARLY) == WAITING).then_some(state + ON_ITS_WAY);
            match self.update(set_out) {
                Ok(_) => return true,
                Err(state) if state & WAITING == 0 => return false,
                Err(_) => {}
            }
            if tokio::time::timeout_at(deadline, changed).await.is_err() {
                return false;
            }
        }
    }

    /// Notes whether the client waits for an answer, and whether a cancel would hit that.
    pub(crate) fn set_waiting(&self, is_waiting: bool, may_cancel: bool) {
        let now = if is_waiting { WAITING } else { 0 } | if may_cancel { 0 } else { EARLY };
        let before = self.update(|state| Some((state & !(WAITING | EARLY)) | now));
        if before.is_ok_and(|before| (before ^ now) & EARLY != 0) {
            self.changed.notify_waiters();
        }
    }

    /// The session is over: nobody waits for it any more.
    pub(crate) fn ended(&self) {
        self.look_taken(u64::MAX);
        self.set_waiting(false, true);
    }

    /// Whether the next unit may go; if it is held, the session is woken when that changes.
    pub(crate) fn gate(&self) -> Gate {
        let state = self.state.load(Ordering::SeqCst);
        if state & LOST != 0 {
            Gate::Lost
        } else if state >= ON_ITS_WAY {
            Gate::Held
        } else {
            Gate::Open
        }
    }

    /// Changes the state at once; returns what it was.
    fn update(&self, change: impl Fn(u64) -> Option<u64>) -> Result<u64, u64> {
        self.state.fetch_update(Ordering::SeqCst, Ordering::SeqCst, change)
    }
}

/// A panic elsewhere leaves these maps whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

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
        let key = BackendKey { process_id: 7, key: (*b"keys").into() };
        let shown = (7, *b"mine");
        let target = cancels.add(shown, key, upstream, Waker::noop().clone());
        target.set_waiting(true, true);
        let peer = Peer { number: 1, address: None };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let carried = tokio::time::timeout(Duration::from_secs(3), cancels.carry(shown, peer));
            let session = async {
                loop {
                    if let Some(looks) = target.look_asked() {
                        target.look_taken(looks);
                    }
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    if target.gate() == Gate::Held {
                        return;
                    }
                }
            };
            let (carried, ()) = tokio::join!(carried, session);
            assert!(carried.is_err(), "the server never answers");
        });
        assert_eq!(target.gate(), Gate::Lost, "the request may still arrive");
    }
}
