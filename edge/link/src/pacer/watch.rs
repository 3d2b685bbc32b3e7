use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::Moment;
use crate::stats::Pauses;

/// The pacer's clock. It is read all the time while the pacer runs, so a gap between two readings means that the
/// pacer did not run; the kernel's account of who had the processor tells a busy machine from one that was stopped.
#[derive(Debug)]
pub(super) struct Watch {
    origin: Instant,
    last: Moment,
    /// Until when the thread sleeps of its own will.
    asleep_until: Moment,
    run_delay: RunDelay,
    run_delay_known: Option<Duration>,
    last_stall_end: Moment,
    last_stall_start: Moment,
    pub(super) stalls: Pauses,
    pub(super) preemptions: Pauses,
}

impl Watch {
    /// Belongs to the calling thread.
    pub(super) fn new() -> Self {
        let mut run_delay = RunDelay::of_this_thread();
        Self {
            origin: Instant::now(),
            last: Moment::ZERO,
            asleep_until: Moment::ZERO,
            run_delay_known: run_delay.read(),
            run_delay,
            last_stall_end: Moment::ZERO,
            last_stall_start: Moment::ZERO,
            stalls: Pauses::default(),
            preemptions: Pauses::default(),
        }
    }

    /// Reads the clock.
    pub(super) fn now(&mut self) -> Moment {
        let now = self.origin.elapsed();
        let expected = self.last.max(self.asleep_until);
        if now > expected + GAP_MIN {
            self.note_gap(expected, now);
        }
        self.last = now;
        self.asleep_until = Moment::ZERO;
        now
    }

    /// When bytes came for which the kernel's stamp (CLOCK_REALTIME) is `stamp`: so a read that comes late, because
    /// this thread had to be woken, does not lengthen the path. Never more than [`AGE_MAX`] ago, as that clock may be
    /// set meanwhile.
    pub(super) fn arrival(&mut self, stamp: Option<Duration>) -> Moment {
        let now = self.now();
        let Some(stamp) = stamp else { return now };
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        now.saturating_sub(wall.saturating_sub(stamp).min(AGE_MAX))
    }

    /// The thread will sleep until `until` unless something happens; `None`: until something happens.
    pub(super) fn sleep_until(&mut self, until: Option<Moment>) {
        self.asleep_until = until.unwrap_or(Moment::MAX - GAP_MIN);
        self.run_delay_known = self.run_delay.read();
    }

    /// Whether a release due at `at` fell into a stall.
    pub(super) fn was_stalled(&self, at: Moment) -> bool {
        at >= self.last_stall_start && at < self.last_stall_end
    }

    fn note_gap(&mut self, start: Moment, end: Moment) {
        let gap = end - start;
        let run_delay = self.run_delay.read();
        let waited = run_delay.zip(self.run_delay_known).map(|(after, before)| after.saturating_sub(before));
        self.run_delay_known = run_delay;
        if waited.is_none_or(|waited| waited > gap / 2) {
            self.preemptions.note(gap);
        } else {
            self.stalls.note(gap);
            (self.last_stall_start, self.last_stall_end) = (start, end);
        }
    }
}

/// How long this thread was ready to run while others had the processor, as the kernel counts it.
#[derive(Debug)]
struct RunDelay {
    schedstat: Option<File>,
}

impl RunDelay {
    fn of_this_thread() -> Self {
        Self { schedstat: File::open("/proc/thread-self/schedstat").ok() }
    }

    /// `None` where the kernel keeps no such account; then no gap is called a stall, and none is left out.
    fn read(&mut self) -> Option<Duration> {
        let mut text = [0u8; 64];
        let length = self.schedstat.as_ref()?.read_at(&mut text, 0).ok()?;
        let field = text.get(..length)?.split(|byte| *byte == b' ').nth(1)?;
        std::str::from_utf8(field).ok()?.parse().ok().map(Duration::from_nanos)
    }
}

/// Shorter gaps are the ordinary work of a kernel.
const GAP_MIN: Duration = Duration::from_millis(1);

/// Reads that come later than this count as arriving later.
const AGE_MAX: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::sleep;

    const NAP: Duration = Duration::from_millis(50);

    #[test]
    fn a_gap_that_nobody_announced_is_a_stall() {
        let mut watch = Watch::new();
        let before = watch.now();
        sleep(NAP); // stands for a hypervisor: the kernel does not count it as waiting for a processor
        let after = watch.now();
        if watch.run_delay_known.is_none() {
            assert_eq!((watch.stalls.count, watch.preemptions.count), (0, 1), "a kernel without the account");
            return;
        }
        assert_eq!((watch.stalls.count, watch.preemptions.count), (1, 0));
        assert!(watch.stalls.longest >= NAP);
        assert!(watch.was_stalled(before + NAP / 2));
        assert!(!watch.was_stalled(after));
    }

    #[test]
    fn an_announced_sleep_is_no_gap() {
        let mut watch = Watch::new();
        let before = watch.now();
        watch.sleep_until(Some(before + NAP));
        sleep(NAP / 2);
        watch.now();
        watch.sleep_until(None);
        sleep(NAP / 2);
        watch.now();
        assert_eq!((watch.stalls, watch.preemptions), (Pauses::default(), Pauses::default()));
    }

    #[test]
    fn a_stamp_dates_an_arrival_back_but_not_beyond_reason() {
        let mut watch = Watch::new();
        sleep(2 * AGE_MAX);
        let wall = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let now = watch.now();
        let dated = watch.arrival(Some(wall() - AGE_MAX / 2));
        assert!(dated < now && dated >= now - AGE_MAX / 2, "{dated:?} at {now:?}");
        assert!(watch.arrival(Some(wall() - 1000 * AGE_MAX)) >= now - AGE_MAX, "the clock was set forward");
        assert!(watch.arrival(Some(wall() + AGE_MAX)) >= now, "the clock was set back");
        assert!(watch.arrival(None) >= now);
    }
}
