//! How far the server is, as the shells' clocks see it.

use std::time::{Duration, Instant};

use super::Connection;

/// The first trips of a session are slow, since the server reads its catalogs: fewer say nothing.
const TRIPS_MIN: u32 = 8;

/// After so many measured trips one of as many is measured: a path changes seldom, and two looks at a clock are a part of
/// what a statement costs.
const TRIPS_FIRST: u32 = 16;

/// The shortest time from the first bytes of a trip to the first of its answer.
#[derive(Debug, Default)]
pub(super) struct Distance {
    phase: Phase,
    least: Option<Duration>,
    /// Trips that were begun since one was measured last.
    passed: u32,
    /// Trips that were measured.
    measured: u32,
}

/// ```text
///   Quiet --asked--> Asked --leaves--> Left --heard--> Quiet
/// ```
#[derive(Debug, Default)]
enum Phase {
    /// The trip that is under way was measured, or there is none.
    #[default]
    Quiet,
    /// A trip was begun, and nothing of it has left.
    Asked,
    /// It was about to leave at this moment, and nothing was answered.
    Left(Instant),
}

impl Distance {
    /// A trip begins.
    pub(super) fn asked(&mut self) {
        self.passed = self.passed.saturating_add(1);
        let is_measured = self.measured < TRIPS_FIRST || self.passed >= TRIPS_FIRST;
        self.phase = if is_measured { Phase::Asked } else { Phase::Quiet };
    }

    /// Whether a trip is being measured that nobody has answered.
    fn awaits(&self) -> bool {
        matches!(self.phase, Phase::Left(_))
    }

    fn leaves(&mut self, now: impl FnOnce() -> Instant) {
        if let Phase::Asked = self.phase {
            self.phase = Phase::Left(now());
        }
    }

    fn heard(&mut self, now: impl FnOnce() -> Instant) {
        if let Phase::Left(left) = self.phase {
            let took = now().saturating_duration_since(left);
            self.least = Some(self.least.map_or(took, |least| least.min(took)));
            self.measured = self.measured.saturating_add(1);
            self.passed = 0;
            self.phase = Phase::Quiet;
        }
    }

    fn round_trip(&self) -> Option<Duration> {
        self.least.filter(|_| self.measured >= TRIPS_MIN)
    }
}

impl Connection {
    /// To be told before what waits is sent, so that the connection knows how far its server is: a program that is held up
    /// between sending and reading its clock would take the server to be nearer than it is. The clock is read at most once
    /// in a trip.
    pub fn leaves(&mut self, now: impl FnOnce() -> Instant) {
        self.distance.leaves(now);
    }

    /// To be told after [`received`](Self::received). The clock is read at most once in a trip.
    pub fn heard(&mut self, now: impl FnOnce() -> Instant) {
        if self.distance.awaits() && self.stream.is_answered() {
            self.distance.heard(now);
        }
    }

    /// The shortest round trip of this session, with what the server did for it; `None` before it has made a few, and
    /// with a shell that tells no times.
    pub fn round_trip(&self) -> Option<Duration> {
        self.distance.round_trip()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_of_several_trips_counts() {
        let start = Instant::now();
        let at = |ms: u64| move || start + Duration::from_millis(ms);
        let mut distance = Distance::default();
        distance.leaves(at(0));
        distance.heard(at(1));
        for (begin, took) in [(100, 20), (200, 13), (300, 40), (400, 16), (500, 16), (600, 16), (700, 16)] {
            distance.asked();
            distance.leaves(at(begin));
            distance.leaves(at(begin + 5));
            distance.heard(at(begin + took));
            distance.heard(at(begin + 90));
            assert_eq!(distance.round_trip(), None, "so few say nothing");
        }
        distance.asked();
        distance.heard(at(800));
        distance.leaves(at(801));
        distance.heard(at(816));
        assert_eq!(distance.round_trip(), Some(Duration::from_millis(13)));
    }

    #[test]
    fn a_long_session_looks_at_the_clock_seldom() {
        let now = Instant::now();
        let mut distance = Distance::default();
        let mut looks = 0;
        let mut look = || {
            looks += 1;
            now
        };
        for _ in 0..16 + 160 {
            distance.asked();
            distance.leaves(&mut look);
            distance.heard(&mut look);
        }
        assert_eq!(looks, 2 * (16 + 10));
    }
}
