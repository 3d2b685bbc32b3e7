//! How much a worker has to do.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Share of a core, in thousandths, from which on a worker is busy.
const BUSY: u64 = 700;
/// Share up to which one has room for another's connections.
const FREE: u64 = if cfg!(test) { 1000 } else { 350 };
/// What was measured longer ago than this is not so any more.
const FRESH_MS: u64 = 200;
const SHARE_BITS: u32 = 16;

/// One worker's load, for all to see.
#[derive(Debug)]
pub(super) struct Load {
    started: Instant,
    /// Milliseconds since `started`, above the share of a core that was measured then.
    measured: AtomicU64,
    connections: AtomicUsize,
}

/// What measures it, from time to time, in the worker's own thread.
#[derive(Debug)]
pub(super) struct Meter {
    measured_at: Instant,
    cpu: Duration,
}

impl Load {
    pub(super) fn new() -> Self {
        Self { started: Instant::now(), measured: AtomicU64::new(0), connections: AtomicUsize::new(0) }
    }

    pub(super) fn comes(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn goes(&self) {
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }

    /// For comparing workers: what they have to do, then whom they serve.
    pub(super) fn at(&self, now: Instant) -> (bool, usize) {
        (is_busy(self.share(now)), self.connections.load(Ordering::Relaxed))
    }

    /// Whether it has room for connections of a busy one.
    pub(super) fn is_free(&self, now: Instant) -> bool {
        self.share(now) <= FREE
    }

    fn share(&self, now: Instant) -> u64 {
        let measured = self.measured.load(Ordering::Relaxed);
        let age = self.millis(now).saturating_sub(measured >> SHARE_BITS);
        if age > FRESH_MS { 0 } else { measured & ((1 << SHARE_BITS) - 1) }
    }

    fn millis(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.started).as_millis() as u64
    }
}

impl Meter {
    pub(super) fn start(now: Instant) -> Self {
        Self { measured_at: now, cpu: cpu_time() }
    }

    /// Measures since the last time. Returns whether the worker is busy.
    pub(super) fn measure(&mut self, now: Instant, load: &Load) -> bool {
        let cpu = cpu_time();
        let wall = now.saturating_duration_since(self.measured_at).as_micros().max(1);
        let share = (cpu.saturating_sub(self.cpu).as_micros() * 1000 / wall).min(1000) as u64;
        (self.measured_at, self.cpu) = (now, cpu);
        load.measured.store((load.millis(now) << SHARE_BITS) | share, Ordering::Relaxed);
        is_busy(share)
    }
}

/// In tests all workers always are.
fn is_busy(share: u64) -> bool {
    cfg!(test) || share >= BUSY
}

/// What this thread has used.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_known_while_it_is_fresh() {
        let load = Load::new();
        let mut meter = Meter::start(Instant::now());
        let until = Instant::now() + Duration::from_millis(5);
        while Instant::now() < until {}
        let now = Instant::now();
        meter.measure(now, &load);
        assert!(load.share(now) > 0, "it has computed");
        assert_eq!(load.share(now + Duration::from_millis(FRESH_MS + 2)), 0);
        load.comes();
        assert_eq!(load.at(now).1, 1);
        load.goes();
        assert_eq!(load.at(now).1, 0);
    }
}
