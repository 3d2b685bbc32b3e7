//! Asks the kernel to run the pacer as soon as it is ready.

use std::time::Duration;

use crate::Moment;
use crate::stats::Scheduling;

/// Moves the calling thread to the lowest real-time priority, above every ordinary thread. Needs CAP_SYS_NICE or a
/// limit on real-time priority (RLIMIT_RTPRIO); without, the thread stays as it is, and where all processors are busy
/// about one wake-up in a hundred comes some milliseconds late.
#[allow(unsafe_code)]
pub(super) fn raise() -> Scheduling {
    // The kernel's own call: musl's C library has none, and its structure is longer than the kernel's.
    let priority: libc::c_int = 1;
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: zero names the calling thread, and `priority`, all of `struct sched_param`, outlives the call, which only
    // reads it.
    let outcome = unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const priority) };
    if outcome == 0 { Scheduling::RealTime } else { Scheduling::Ordinary }
}

/// Keeps a real-time thread from being always awake: the kernel would stop it for 50 ms of each second, and ordinary
/// threads could starve until then.
#[derive(Debug, Default)]
pub(super) struct Duty {
    period_start: Moment,
    asleep: Duration,
}

impl Duty {
    /// Time slept of the thread's own will, ending at `now`.
    pub(super) fn slept(&mut self, time: Duration, now: Moment) {
        self.turn_over(now);
        self.asleep += time;
    }

    /// How long the thread must sleep before it goes on; usually zero.
    pub(super) fn sleep_owed(&mut self, now: Moment) -> Duration {
        self.turn_over(now);
        let elapsed = now - self.period_start;
        let awake = elapsed.saturating_sub(self.asleep);
        if awake > AWAKE_MAX { PERIOD.saturating_sub(elapsed) } else { Duration::ZERO }
    }

    fn turn_over(&mut self, now: Moment) {
        if now.saturating_sub(self.period_start) >= PERIOD {
            (self.period_start, self.asleep) = (now, Duration::ZERO);
        }
    }
}

const PERIOD: Duration = Duration::from_millis(10);
const AWAKE_MAX: Duration = Duration::from_millis(9);

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(value: u64) -> Moment {
        Moment::from_millis(value)
    }

    #[test]
    fn a_thread_that_never_sleeps_owes_a_tenth_of_its_time() {
        let mut duty = Duty::default();
        assert_eq!(duty.sleep_owed(ms(5)), ms(0));
        assert_eq!(duty.sleep_owed(ms(9)), ms(0));
        assert_eq!(duty.sleep_owed(Moment::from_micros(9_200)), Moment::from_micros(800));
        assert_eq!(duty.sleep_owed(ms(10)), ms(0), "a new period");
        assert_eq!(duty.sleep_owed(Moment::from_micros(19_500)), Moment::from_micros(500));
    }

    #[test]
    fn a_thread_that_slept_owes_nothing() {
        let mut duty = Duty::default();
        duty.slept(ms(1), ms(4));
        assert_eq!(duty.sleep_owed(Moment::from_micros(9_900)), ms(0));
    }
}
