use std::time::Duration;

/// A replayable stream of extra delays, uniform between zero and a maximum.
#[derive(Debug, Clone)]
pub(crate) struct Jitter {
    max: Duration,
    random: fastrand::Rng,
}

impl Jitter {
    /// Delays up to `max`; `stream` tells apart the lanes of one link, which share its `seed`.
    pub(crate) fn new(max: Duration, seed: u64, stream: u64) -> Self {
        let own = fastrand::Rng::with_seed(stream).u64(..);
        Self { max, random: fastrand::Rng::with_seed(seed ^ own) }
    }

    pub(crate) fn delay(&mut self) -> Duration {
        let max = u64::try_from(self.max.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(self.random.u64(..=max))
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
