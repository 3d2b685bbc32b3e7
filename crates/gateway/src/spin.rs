//! Spin, then park.
//!
//! Waking a parked thread costs more than the wait that it saves while replies come within microseconds. So a
//! connection asks again for a bounded time before it parks, as long as waits have lately been that short. Others
//! must not pay for it: only as many threads spin as leave a core for the client and the server, and none where
//! there is one core, or where a thread has several busy connections, which keep it awake anyway.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Threads that spin right now, and how many may.
#[derive(Debug)]
pub(crate) struct SpinLimit {
    spinning: AtomicUsize,
    most: usize,
    longest: Duration,
}

impl SpinLimit {
    /// `longest` is the bound of one wait; zero turns spinning off.
    pub(crate) fn new(longest: Duration) -> Self {
        let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let most = if longest.is_zero() { 0 } else { cores / 2 };
        Self { spinning: AtomicUsize::new(0), most, longest }
    }
}

/// A thread on which two connections moved within this time is kept awake by them.
const COMPANY: Duration = Duration::from_millis(1);

/// Which connection of a thread moved last, and when another one did.
#[derive(Debug, Default)]
pub(crate) struct Busy {
    last: Cell<u32>,
    other_at: Cell<Option<Instant>>,
}

impl Busy {
    fn moved(&self, connection: u32, now: Instant) {
        if self.last.replace(connection) != connection {
            self.other_at.set(Some(now));
        }
    }

    fn is_alone(&self, connection: u32, now: Instant) -> bool {
        let in_company = |other: Instant| now.saturating_duration_since(other) < COMPANY;
        self.last.get() == connection && !self.other_at.get().is_some_and(in_company)
    }
}

/// Waits count as no longer than this, so that a pause is soon forgotten.
const WAIT_MAX_NS: u64 = 1_000_000;

/// How one connection waits.
#[derive(Debug)]
pub(crate) struct Spinner {
    connection: u32,
    /// A running mean of its waits, in nanoseconds.
    mean_wait_ns: u64,
    waiting_since: Option<Instant>,
    is_spinning: bool,
}

impl Spinner {
    pub(crate) fn new(connection: u32) -> Self {
        Self { connection, mean_wait_ns: WAIT_MAX_NS, waiting_since: None, is_spinning: false }
    }

    /// Something came: the wait is over.
    pub(crate) fn moved(&mut self, now: Instant, limit: &SpinLimit, busy: &Busy) {
        if let Some(since) = self.waiting_since.take() {
            let wait_ns = now.saturating_duration_since(since).as_nanos().min(WAIT_MAX_NS.into()) as u64;
            self.mean_wait_ns = (self.mean_wait_ns * 7 + wait_ns) / 8;
        }
        self.stop(limit);
        busy.moved(self.connection, now);
    }

    /// Nothing came: whether to ask again at once instead of parking.
    pub(crate) fn may_spin(&mut self, limit: &SpinLimit, busy: &Busy) -> bool {
        if limit.most == 0 {
            return false;
        }
        let now = Instant::now();
        let since = *self.waiting_since.get_or_insert(now);
        let waited = now.saturating_duration_since(since);
        let worth_it =
            u128::from(self.mean_wait_ns) < limit.longest.as_nanos() && busy.is_alone(self.connection, now);
        if !worth_it || waited >= limit.longest {
            self.stop(limit);
            return false;
        }
        if !self.is_spinning {
            if limit.spinning.fetch_add(1, Ordering::Relaxed) >= limit.most {
                limit.spinning.fetch_sub(1, Ordering::Relaxed);
                return false;
            }
            self.is_spinning = true;
        }
        true
    }

    /// The connection parks or is over: another may spin.
    pub(crate) fn stop(&mut self, limit: &SpinLimit) {
        if std::mem::take(&mut self.is_spinning) {
            limit.spinning.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
