//! Whose turn it is: threads share a connection, and each call has it for itself.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use onetrip_client::blocking::{Client, Ender};
use onetrip_client::core::Settings;
use onetrip_client::{Error, TransactionStatus};
use pyo3::prelude::*;

use crate::encoding::take_raised;
use crate::errors::exception;
use crate::held::Held;
use crate::locked::locked;
use crate::spent::spent;

/// A wait for another thread is cut, so that signals have their turn.
const TURN: Duration = Duration::from_millis(500);

/// What a call takes that does not wait for the server.
const BRIEF: Duration = Duration::from_millis(5);

thread_local! {
    /// What a signal's handler raised while this thread waited for the server.
    static INTERRUPT: Cell<Option<PyErr>> = const { Cell::new(None) };
}

/// Runs Python's handlers of the signals that came, KeyboardInterrupt's among them; whether one of them raised.
pub(crate) fn is_interrupted() -> bool {
    let raised = Python::attach(|py| py.check_signals().err());
    let is_raised = raised.is_some();
    INTERRUPT.set(raised);
    is_raised
}

/// A connection that calls have in turn. What needs no conversation with the server waits for no call.
pub(crate) struct Turns {
    state: Mutex<State>,
    /// Nobody has the connection for several calls any more.
    is_free: Condvar,
    trips: AtomicU64,
    /// What the server had reported when the last call ended.
    settings: Mutex<Arc<Settings>>,
}

/// What calls have in turn.
struct State {
    /// `None` once it is closed.
    client: Option<Held>,
    /// The thread that has it for several calls: for the rows of a stream, or a COPY.
    holder: Option<ThreadId>,
}

/// Where a session stands, by libpq's numbers.
fn number_of(client: Option<&Held>) -> i32 {
    let status = client.filter(|client| !client.is_closed()).map(|client| client.transaction_status());
    match status {
        Some(TransactionStatus::Idle) => 0,
        Some(TransactionStatus::Active) => 2,
        Some(TransactionStatus::Failed) => 3,
        None => 4,
    }
}

impl Turns {
    pub(crate) fn of(client: Held) -> Self {
        Self {
            trips: AtomicU64::new(client.core().trips()),
            settings: Mutex::new(client.core().settings().clone()),
            state: Mutex::new(State { client: Some(client), holder: None }),
            is_free: Condvar::new(),
        }
    }

    /// Calls with the client and without the GIL; with `waits`, once no other thread has it for several calls.
    pub(crate) fn called<T: Send>(
        &self,
        py: Python<'_>,
        waits: bool,
        call: impl FnOnce(&mut Client) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        let done = py.detach(|| {
            let mut state = locked(&self.state);
            if waits && state.holder.is_some() {
                state = self.free(state)?;
            }
            match state.client.as_mut() {
                Some(client) => {
                    let before = client.core().trips();
                    let done = call(client);
                    let trips = client.core().trips();
                    self.trips.store(trips, Ordering::Relaxed);
                    spent(trips - before);
                    let mut known = locked(&self.settings);
                    if !Arc::ptr_eq(&known, client.core().settings()) {
                        known.clone_from(client.core().settings());
                    }
                    done
                }
                None => Err(Error::Closed),
            }
        });
        // What a signal's handler raised goes before the error of the statement that it cancelled.
        match INTERRUPT.take() {
            Some(raised) => Err(raised),
            None => done.map_err(|error| take_raised().unwrap_or_else(|| exception(py, &error))),
        }
    }

    /// Makes several calls between which no other thread makes one.
    pub(crate) fn alone<T>(&self, py: Python<'_>, calls: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
        let is_held = self.hold(py)?;
        let done = calls();
        if is_held {
            self.release(py);
        }
        done
    }

    /// From now on, other threads wait until [`release`](Self::release) is called; false where that was so already.
    pub(crate) fn hold(&self, py: Python<'_>) -> PyResult<bool> {
        let held = py.detach(|| {
            let mut state = self.free(locked(&self.state))?;
            Ok(state.holder.replace(thread::current().id()).is_none())
        });
        held.map_err(|error| INTERRUPT.take().unwrap_or_else(|| exception(py, &error)))
    }

    /// Other threads need not wait any more.
    pub(crate) fn release(&self, py: Python<'_>) {
        py.detach(|| locked(&self.state).holder = None);
        self.is_free.notify_all();
    }

    /// Waits until no other thread has the client for several calls. A signal's handler may end the wait.
    fn free<'a>(&'a self, mut state: MutexGuard<'a, State>) -> Result<MutexGuard<'a, State>, Error> {
        let own = thread::current().id();
        while state.holder.is_some_and(|holder| holder != own) {
            state = self.is_free.wait_timeout(state, TURN).unwrap_or_else(PoisonError::into_inner).0;
            if is_interrupted() {
                return Err(Error::Closed);
            }
        }
        Ok(state)
    }

    /// The client, unless a call has it.
    fn idle(&self) -> Option<MutexGuard<'_, State>> {
        match self.state.try_lock() {
            Ok(state) => Some(state),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The settings that the server has reported, without waiting for a call.
    pub(crate) fn known(&self, py: Python<'_>) -> PyResult<Arc<Settings>> {
        match self.idle() {
            Some(state) if state.client.is_none() => Err(exception(py, &Error::Closed)),
            _ => Ok(locked(&self.settings).clone()),
        }
    }

    /// Where the session stands: libpq's numbers for idle, in a transaction, in a failed one, unknown.
    pub(crate) fn status(&self, py: Python<'_>) -> i32 {
        py.detach(|| number_of(locked(&self.state).client.as_ref()))
    }

    /// As [`status`](Self::status), and libpq's number for active while a call is under way.
    pub(crate) fn status_now(&self) -> i32 {
        self.idle().map_or(1, |state| number_of(state.client.as_ref()))
    }

    /// Round trips when the last call ended.
    pub(crate) fn trips(&self) -> u64 {
        self.trips.load(Ordering::Relaxed)
    }

    /// Whether the connection has ended; it has not while a call is under way.
    pub(crate) fn is_closed(&self) -> bool {
        self.idle().is_some_and(|state| state.client.as_ref().is_none_or(|client| client.is_closed()))
    }

    /// Ends the session; a call that waits for the server is ended by `ender`, and fails.
    pub(crate) fn close(&self, py: Python<'_>, ender: &Ender) {
        py.detach(|| {
            let mut state = self.idle().unwrap_or_else(|| {
                thread::sleep(BRIEF);
                self.idle().unwrap_or_else(|| {
                    ender.end();
                    locked(&self.state)
                })
            });
            state.holder = None;
            self.is_free.notify_all();
            if let Some(client) = state.client.take() {
                client.close();
            }
        });
    }
}
