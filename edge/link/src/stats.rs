use std::fmt;
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::units::HumanDuration;

/// What a relay carried, and how well it kept the schedule.
#[derive(Debug, Clone)]
pub struct LinkStats {
    /// Connections accepted.
    pub connections: u64,
    /// Connections that the target refused or that could not be made.
    pub refused: u64,
    /// Bytes delivered to the target.
    pub bytes_up: u64,
    /// Bytes delivered to the clients.
    pub bytes_down: u64,
    /// Releases that fell due while their receiver was not reading; their lateness is not the link's.
    pub blocked: u64,
    /// Releases that fell due during a stall; left out of the errors.
    pub stalled: u64,
    /// Times in which the machine did not run this thread although nobody else had its processor: the hypervisor
    /// had taken it. Longer than 1 ms each.
    pub stalls: Pauses,
    /// Times in which other threads had the processor while this one was ready, longer than 1 ms each. Releases
    /// that fell due meanwhile count among the errors.
    pub preemptions: Pauses,
    /// How the kernel schedules the pacer.
    pub scheduling: Scheduling,
    errors: Histogram<u64>,
}

/// How the kernel schedules the pacer's thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scheduling {
    /// Like any thread: where all processors are busy, some releases come milliseconds late.
    #[default]
    Ordinary,
    /// Before ordinary threads; the kernel allowed it.
    RealTime,
}

/// Times in which the pacer was not running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pauses {
    /// How many.
    pub count: u64,
    /// Their sum.
    pub total: Duration,
    /// The longest of them.
    pub longest: Duration,
}

impl Pauses {
    pub(crate) fn note(&mut self, length: Duration) {
        self.count += 1;
        self.total += length;
        self.longest = self.longest.max(length);
    }
}

impl Default for LinkStats {
    fn default() -> Self {
        Self {
            connections: 0,
            refused: 0,
            bytes_up: 0,
            bytes_down: 0,
            blocked: 0,
            stalled: 0,
            stalls: Pauses::default(),
            preemptions: Pauses::default(),
            scheduling: Scheduling::default(),
            errors: Histogram::new_with_max(ERROR_NANOS_MAX, SIGNIFICANT_DIGITS)
                .unwrap_or_else(|_| unreachable!("a minute, and 2 digits of at most 5")),
        }
    }
}

impl LinkStats {
    /// Releases whose error was recorded: all but the blocked and the stalled.
    pub fn releases(&self) -> u64 {
        self.errors.len()
    }

    /// Release error at a quantile between 0 and 1: how long after its moment a release was handed to the kernel.
    /// Never negative: nothing is released early. Zero when there was no release.
    pub fn error_at(&self, quantile: f64) -> Duration {
        Duration::from_nanos(self.errors.value_at_quantile(quantile))
    }

    /// The largest release error.
    pub fn error_max(&self) -> Duration {
        Duration::from_nanos(self.errors.max())
    }

    pub(crate) fn note_error(&mut self, error: Duration) {
        self.errors.saturating_record(u64::try_from(error.as_nanos()).unwrap_or(u64::MAX));
    }
}

impl fmt::Display for LinkStats {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "link: {} connections ({} refused), {} bytes up, {} bytes down",
            self.connections, self.refused, self.bytes_up, self.bytes_down
        )?;
        let scheduling = match self.scheduling {
            Scheduling::Ordinary => "ordinary priority",
            Scheduling::RealTime => "real-time priority",
        };
        writeln!(
            out,
            "pacing: {} releases at {scheduling}, error median {}, p99 {}, max {}",
            self.releases(),
            short(self.error_at(0.5)),
            short(self.error_at(0.99)),
            short(self.error_max())
        )?;
        write!(
            out,
            "left out: {} releases in {} stalls of the machine (longest {}), {} where the receiver was busy; \
             preempted {} times (longest {})",
            self.stalled,
            self.stalls.count,
            short(self.stalls.longest),
            self.blocked,
            self.preemptions.count,
            short(self.preemptions.longest)
        )
    }
}

/// At most three significant digits are meant to be read here.
fn short(duration: Duration) -> HumanDuration {
    let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    let grain = 10u64.pow(nanos.checked_ilog10().unwrap_or(0).saturating_sub(2));
    HumanDuration(Duration::from_nanos(nanos / grain * grain))
}

const SIGNIFICANT_DIGITS: u8 = 2;

/// Larger errors are recorded as this: a minute.
const ERROR_NANOS_MAX: u64 = 60_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_told_by_quantile() {
        let mut stats = LinkStats::default();
        (1..=100).for_each(|micros| stats.note_error(Duration::from_micros(micros)));
        assert_eq!(stats.releases(), 100);
        let median = stats.error_at(0.5);
        assert!(median >= Duration::from_micros(50) && median < Duration::from_micros(51), "{median:?}");
        assert!(stats.error_max() >= Duration::from_micros(100));
        assert_eq!(LinkStats::default().error_at(0.99), Duration::ZERO);
    }

    #[test]
    fn a_summary_names_what_was_left_out() {
        let mut stats = LinkStats { connections: 2, stalled: 3, ..LinkStats::default() };
        stats.stalls.note(Duration::from_micros(7_654));
        let text = stats.to_string();
        assert!(text.contains("2 connections (0 refused)"), "{text}");
        assert!(text.contains("3 releases in 1 stalls of the machine (longest 7.65ms)"), "{text}");
    }
}
