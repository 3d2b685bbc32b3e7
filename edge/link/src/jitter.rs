use std::time::Duration;

/// A replayable stream of extra delays, uniform between zero and a maximum (SplitMix64, as public domain code by
/// Sebastiano Vigna).
#[derive(Debug, Clone)]
pub(crate) struct Jitter {
    max: Duration,
    state: u64,
}

impl Jitter {
    /// Delays up to `max`; `stream` tells apart the lanes of one link, which share its `seed`.
    pub(crate) fn new(max: Duration, seed: u64, stream: u64) -> Self {
        let mut start = Self { max, state: stream };
        let state = seed ^ start.next();
        Self { max, state }
    }

    pub(crate) fn delay(&mut self) -> Duration {
        if self.max.is_zero() {
            return Duration::ZERO;
        }
        let span = u64::try_from(self.max.as_nanos()).unwrap_or(u64::MAX - 1).min(u64::MAX - 1);
        let scaled = (u128::from(self.next()) * u128::from(span + 1)) >> 64;
        Duration::from_nanos(scaled as u64)
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: Duration = Duration::from_micros(500);

    fn delays(seed: u64, stream: u64) -> Vec<Duration> {
        let mut jitter = Jitter::new(MAX, seed, stream);
        (0..1000).map(|_| jitter.delay()).collect()
    }

    #[test]
    fn the_same_seed_replays_the_same_delays() {
        assert_eq!(delays(7, 3), delays(7, 3));
        assert_ne!(delays(7, 3), delays(8, 3));
        assert_ne!(delays(7, 3), delays(7, 4));
    }

    #[test]
    fn delays_fill_the_range_evenly() {
        let delays = delays(1, 0);
        assert!(delays.iter().all(|delay| *delay <= MAX));
        let mean = delays.iter().sum::<Duration>() / 1000;
        assert!(mean > MAX * 45 / 100 && mean < MAX * 55 / 100, "mean {mean:?}");
        assert!(*delays.iter().max().unwrap() > MAX * 95 / 100);
    }
}
