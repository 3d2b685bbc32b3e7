//! Spin, then park.
//!
//! Waking a parked thread costs more than the wait that it saves while replies come within microseconds. So a worker
//! asks again for a bounded time before it parks, as long as its waits have lately been that short. Others must not pay for
//! it: a connection that is in use keeps two cores busy, one that spins and one for its client and its server in turn, so
//! nothing spins while more connections are in use than there are pairs of cores. Spinning beyond that would starve the
//! other connections of the core that they need to be seen in use.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Who may spin right now.
#[derive(Debug)]
pub(crate) struct SpinLimit {
    spinning: AtomicUsize,
    most: usize,
    longest: Duration,
    in_use: InUse,
}

impl SpinLimit {
    /// `longest` is the bound of one wait; zero turns spinning off.
    pub(crate) fn new(longest: Duration) -> Self {
        let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let most = if longest.is_zero() { 0 } else { cores / 2 };
        Self { spinning: AtomicUsize::new(0), most, longest, in_use: InUse::new() }
    }

    /// A connection moved that did so last in this period.
    pub(crate) fn note_in_use(&self, period: &mut u64, now: Instant) {
        if self.most == 0 {
            return;
        }
        let this = self.in_use.period(now);
        if *period != this {
            *period = this;
            self.in_use.add(this);
        }
    }
}

/// How many connections of the gateway moved something lately: in this period or in the one before.
#[derive(Debug)]
struct InUse {
    started: Instant,
    /// Of even and of odd periods: the period above [`COUNT_BITS`], and how many connections moved in it below.
    periods: [AtomicU64; 2],
}

/// As a power of two of nanoseconds (34 ms): long enough for every runnable thread of a full machine to get its turn.
const PERIOD_BITS: u32 = 25;
const COUNT_BITS: u32 = 24;

impl InUse {
    fn new() -> Self {
        Self { started: Instant::now(), periods: [AtomicU64::new(0), AtomicU64::new(0)] }
    }

    /// Counted from one.
    fn period(&self, now: Instant) -> u64 {
        (now.saturating_duration_since(self.started).as_nanos() as u64 >> PERIOD_BITS) + 1
    }

    /// One more connection moved in this period.
    fn add(&self, period: u64) {
        let first = (period << COUNT_BITS) + 1;
        let add = |old: u64| Some(if old >> COUNT_BITS == period { old + 1 } else { first });
        // It cannot fail, since `add` always says what to store.
        let _ = self.slot(period).fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    fn count(&self, period: u64) -> usize {
        let of = |period: u64| {
            let slot = self.slot(period).load(Ordering::Relaxed);
            if slot >> COUNT_BITS == period { slot & ((1 << COUNT_BITS) - 1) } else { 0 }
        };
        of(period).max(of(period - 1)) as usize
    }

    fn slot(&self, period: u64) -> &AtomicU64 {
        &self.periods[(period % 2) as usize]
    }
}

/// Waits count as no longer than this, so that a pause is soon forgotten.
const WAIT_MAX_NS: u64 = 1_000_000;

/// How one worker waits.
#[derive(Debug)]
pub(crate) struct Spinner {
    /// A running mean of its waits, in nanoseconds.
    mean_wait_ns: u64,
    waiting_since: Option<Instant>,
    is_spinning: bool,
}

impl Spinner {
    pub(crate) fn new() -> Self {
        Self { mean_wait_ns: WAIT_MAX_NS, waiting_since: None, is_spinning: false }
    }

    /// Something came: the wait is over.
    pub(crate) fn moved(&mut self, now: Instant, limit: &SpinLimit) {
        if let Some(since) = self.waiting_since.take() {
            let wait_ns = now.saturating_duration_since(since).as_nanos().min(WAIT_MAX_NS.into()) as u64;
            self.mean_wait_ns = (self.mean_wait_ns * 7 + wait_ns) / 8;
        }
        self.stop(limit);
    }

    /// Nothing came: whether to ask again at once instead of parking.
    pub(crate) fn may_spin(&mut self, now: Instant, limit: &SpinLimit) -> bool {
        if limit.most == 0 {
            return false;
        }
        let since = *self.waiting_since.get_or_insert(now);
        let waited = now.saturating_duration_since(since);
        let worth_it = u128::from(self.mean_wait_ns) < limit.longest.as_nanos()
            && limit.in_use.count(limit.in_use.period(now)) <= limit.most;
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

    /// The worker parks or is over: another may spin.
    pub(crate) fn stop(&mut self, limit: &SpinLimit) {
        if std::mem::take(&mut self.is_spinning) {
            limit.spinning.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_nanos(1 << PERIOD_BITS);

    /// Two pairs of cores.
    fn limit() -> SpinLimit {
        let longest = Duration::from_micros(100);
        SpinLimit { spinning: AtomicUsize::new(0), most: 2, longest, in_use: InUse::new() }
    }

    /// A worker whose waits have lately been short.
    fn eager() -> Spinner {
        Spinner { mean_wait_ns: 1_000, ..Spinner::new() }
    }

    #[test]
    fn a_connection_counts_once_in_a_period_and_is_forgotten_after_the_next() {
        let limit = limit();
        let start = limit.in_use.started;
        let mut period = 0;
        for _ in 0..3 {
            limit.note_in_use(&mut period, start);
        }
        let count = |at| limit.in_use.count(limit.in_use.period(at));
        assert_eq!([count(start), count(start + PERIOD), count(start + 2 * PERIOD)], [1, 1, 0]);
    }

    #[test]
    fn nothing_spins_while_more_connections_are_in_use_than_pairs_of_cores() {
        let limit = limit();
        let now = Instant::now();
        let mut spinner = eager();
        for period in &mut [0, 0] {
            limit.note_in_use(period, now);
        }
        assert!(spinner.may_spin(now, &limit), "two connections have a pair of cores each");
        spinner.stop(&limit);
        limit.note_in_use(&mut 0, now);
        assert!(!spinner.may_spin(now, &limit), "the third needs the core that would be spun on");
    }

    #[test]
    fn no_more_workers_spin_than_there_are_pairs_of_cores() {
        let limit = limit();
        let now = Instant::now();
        let mut spinners = [eager(), eager(), eager()];
        assert_eq!(spinners.each_mut().map(|spinner| spinner.may_spin(now, &limit)), [true, true, false]);
        spinners[0].moved(now, &limit);
        assert!(spinners[2].may_spin(now, &limit), "one of them has something to do");
        assert!(!spinners[1].may_spin(now + Duration::from_micros(100), &limit), "its time is over");
    }
}
