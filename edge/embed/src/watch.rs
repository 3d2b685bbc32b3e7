//! What ends a statement before it is done: a cancel request, its timeout, or the limit of a replay.
//!
//! SQLite checks it every thousand steps of its virtual machine; `pg_sleep`, and a statement that waits for a lock,
//! whenever it wakes up. Functions of this crate that read long values check it by [`spend`].

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::blocking;
use crate::error::{SqlError, SqlResult};

/// Steps of SQLite's virtual machine between two questions.
pub(crate) const STEPS: i32 = 1_000;

/// Bytes of a value that a function reads between two questions.
const BYTES: usize = 64 << 10;

thread_local! {
    /// Who watches over what this thread runs.
    static WATCHED: RefCell<Option<Arc<Watch>>> = const { RefCell::new(None) };
    static BYTES_READ: Cell<usize> = const { Cell::new(0) };
}

/// Until this is dropped, what this thread runs is watched over.
pub(crate) struct Watching(());

impl Watching {
    pub(crate) fn start(watch: Arc<Watch>) -> Self {
        WATCHED.set(Some(watch));
        Self(())
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        WATCHED.set(None);
    }
}

/// Says that so many more bytes of a value are about to be read; an error where the statement has to end instead.
#[inline]
pub(crate) fn spend(bytes: usize) -> SqlResult<()> {
    let read = BYTES_READ.get().saturating_add(bytes);
    if read < BYTES {
        BYTES_READ.set(read);
        return Ok(());
    }
    BYTES_READ.set(0);
    let must_stop = WATCHED.with_borrow(|watch| watch.as_ref().is_some_and(|watch| watch.must_stop()));
    if must_stop { Err(SqlError::cancelled()) } else { Ok(()) }
}

/// Milliseconds to wait for another session's lock, one after the other; the last one again and again. As SQLite's own.
const LOCK_PAUSES_MS: [u64; 12] = [1, 2, 5, 10, 15, 20, 25, 25, 25, 50, 50, 100];

/// SQLite's busy handler: waits a while for another session's lock, which it has done so many times; false where that
/// was long enough.
pub(crate) fn wait_for_lock(waits: i32) -> bool {
    WATCHED.with_borrow(|watch| watch.as_ref().is_some_and(|watch| watch.wait_for_lock(waits)))
}

/// Nothing runs, so that nothing can be ended.
const IDLE: u8 = 0;
const RUNNING: u8 = 1;
const CANCELLED: u8 = 2;
const TIMED_OUT: u8 = 3;

/// Watches over one session's statements, one after the other.
pub(crate) struct Watch {
    state: AtomicU8,
    origin: Instant,
    /// When the statement has to end, in microseconds since `origin`; 0 is never.
    deadline_us: AtomicU64,
    /// Questions that a replay may still answer with "go on".
    looks_left: Option<AtomicU32>,
    /// How long a statement waits for another session's lock.
    lock_timeout: Duration,
    /// Held while a cancel request is carried out, so that it cannot hit a later statement.
    cancelling: Mutex<()>,
    cancelled: Condvar,
}

impl Watch {
    /// `looks_max` bounds what all statements together take, in units of [`STEPS`]; nobody sleeps then.
    pub(crate) fn new(looks_max: Option<u32>) -> Self {
        Self {
            state: AtomicU8::new(IDLE),
            origin: Instant::now(),
            deadline_us: AtomicU64::new(0),
            looks_left: looks_max.map(AtomicU32::new),
            lock_timeout: Duration::ZERO,
            cancelling: Mutex::default(),
            cancelled: Condvar::new(),
        }
    }

    pub(crate) fn with_lock_timeout(self, lock_timeout: Duration) -> Self {
        Self { lock_timeout, ..self }
    }

    /// From now on there is something to end, without a limit of time.
    pub(crate) fn start(&self) {
        self.deadline_us.store(0, Ordering::Relaxed);
        self.state.store(RUNNING, Ordering::Relaxed);
    }

    /// Gives what runs so much time from now on.
    pub(crate) fn limit(&self, timeout: Option<Duration>) {
        let deadline = timeout.map(|timeout| self.origin.elapsed().saturating_add(timeout).as_micros());
        self.deadline_us.store(deadline.map_or(0, |at| u64::try_from(at).unwrap_or(0)), Ordering::Relaxed);
    }

    /// From now on there is nothing to end; whether a timeout had ended it.
    pub(crate) fn finish(&self) -> bool {
        match self.state.compare_exchange(RUNNING, IDLE, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) | Err(IDLE) => false,
            Err(ended) => {
                drop(self.lock());
                self.state.store(IDLE, Ordering::Relaxed);
                ended == TIMED_OUT
            }
        }
    }

    /// Ends what runs, if anything does; `interrupt` is told then, before anything else can run.
    pub(crate) fn cancel(&self, interrupt: impl FnOnce()) {
        let _cancelling = self.lock();
        if self.ends_as(CANCELLED) {
            interrupt();
            self.cancelled.notify_all();
        }
    }

    /// Whether what runs has to end.
    pub(crate) fn must_stop(&self) -> bool {
        match self.state.load(Ordering::Relaxed) {
            IDLE => return false,
            RUNNING => {}
            _ => return true,
        }
        if let Some(looks_left) = &self.looks_left {
            let one_less = |looks: u32| looks.checked_sub(1);
            if looks_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_err() {
                return true;
            }
        }
        self.time_left().is_some_and(|left| left.is_zero()) && {
            self.ends_as(TIMED_OUT);
            true
        }
    }

    /// Waits; false where what runs has to end before.
    pub(crate) fn sleep(&self, time: Duration) -> bool {
        if self.looks_left.is_some() {
            return false;
        }
        let start = Instant::now();
        if !time.is_zero() {
            blocking::announce();
        }
        let mut lock = self.lock();
        loop {
            if self.must_stop() {
                return false;
            }
            let left = time.saturating_sub(start.elapsed());
            if left.is_zero() {
                return true;
            }
            let pause = self.time_left().map_or(left, |until_timeout| until_timeout.min(left));
            lock = self.cancelled.wait_timeout(lock, pause).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn wait_for_lock(&self, waits: i32) -> bool {
        let waits = usize::try_from(waits).unwrap_or(0);
        let listed: u64 = LOCK_PAUSES_MS.iter().take(waits).sum();
        let [.., last] = LOCK_PAUSES_MS;
        let waited_ms = listed + last * waits.saturating_sub(LOCK_PAUSES_MS.len()) as u64;
        let left = self.lock_timeout.saturating_sub(Duration::from_millis(waited_ms));
        let pause = Duration::from_millis(*LOCK_PAUSES_MS.get(waits).unwrap_or(&last)).min(left);
        !pause.is_zero() && self.sleep(pause)
    }

    fn ends_as(&self, state: u8) -> bool {
        self.state.compare_exchange(RUNNING, state, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    fn time_left(&self) -> Option<Duration> {
        let deadline_us = self.deadline_us.load(Ordering::Relaxed);
        (deadline_us > 0).then(|| Duration::from_micros(deadline_us).saturating_sub(self.origin.elapsed()))
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.cancelling.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cancel_ends_what_runs_and_nothing_later() {
        let watch = Watch::new(None);
        watch.cancel(|| panic!("nothing runs"));
        watch.start();
        assert!(!watch.must_stop());
        let mut is_interrupted = false;
        watch.cancel(|| is_interrupted = true);
        assert!(is_interrupted && watch.must_stop());
        assert!(!watch.sleep(Duration::from_secs(60)));
        assert!(!watch.finish());
        watch.start();
        assert!(!watch.must_stop());
    }

    #[test]
    fn a_sleep_is_announced_and_a_question_is_not() {
        thread_local! { static ANNOUNCED: Cell<u32> = const { Cell::new(0) }; }
        let announcing = blocking::Announcing::start(|| ANNOUNCED.set(ANNOUNCED.get() + 1));
        let watch = Watch::new(None).with_lock_timeout(Duration::from_millis(1));
        watch.start();
        assert!(!watch.must_stop() && watch.sleep(Duration::ZERO));
        assert_eq!(ANNOUNCED.get(), 0);
        assert!(watch.sleep(Duration::from_millis(1)) && watch.wait_for_lock(0));
        assert_eq!(ANNOUNCED.get(), 2);
        drop(announcing);
        assert!(watch.sleep(Duration::from_millis(1)));
        assert_eq!(ANNOUNCED.get(), 2);
    }

    #[test]
    fn a_timeout_ends_a_sleep_and_says_so() {
        let watch = Watch::new(None);
        watch.start();
        watch.limit(Some(Duration::from_millis(5)));
        assert!(!watch.sleep(Duration::from_secs(60)));
        assert!(watch.finish());
        watch.start();
        watch.limit(None);
        assert!(watch.sleep(Duration::from_millis(1)));
    }

    #[test]
    fn a_lock_is_waited_for_until_its_timeout_or_a_cancel() {
        let watch = Watch::new(None).with_lock_timeout(Duration::from_millis(10));
        watch.start();
        // 1, 2, 5, and what is left of 10.
        assert_eq!(
            [0, 1, 2, 3, 4, 100].map(|waits| watch.wait_for_lock(waits)),
            [true, true, true, true, false, false]
        );
        watch.cancel(|| {});
        assert!(!watch.wait_for_lock(0));
    }

    #[test]
    fn a_function_that_reads_long_values_ends_with_its_statement() {
        let watch = Arc::new(Watch::new(None));
        let watching = Watching::start(Arc::clone(&watch));
        watch.start();
        assert!((0..3).all(|_| spend(BYTES).is_ok()));
        watch.cancel(|| {});
        assert_eq!(spend(BYTES).map_err(|error| error.sqlstate), Err(SqlError::CANCELLED));
        drop(watching);
        assert!(spend(BYTES).is_ok());
    }

    #[test]
    fn a_replay_ends_after_so_many_looks() {
        let watch = Watch::new(Some(2));
        watch.start();
        assert!([watch.must_stop(), watch.must_stop(), watch.must_stop()] == [false, false, true]);
        assert!(!watch.sleep(Duration::ZERO));
    }
}
