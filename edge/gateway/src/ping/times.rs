use std::time::Duration;

use crate::socket::PathTime;

/// What the kernel has seen of a path (`TCP_INFO`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathTimes {
    /// Smallest round trip, `tcpi_min_rtt`: the path with no server behind it, because a SYN is answered by the
    /// server's kernel.
    pub smallest: Duration,
    /// Smoothed round trip, `tcpi_rtt`. It holds the server's time too wherever the acknowledgement came with the
    /// answer.
    pub smoothed: Duration,
}

/// How times are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spread {
    /// The shortest.
    pub min: Duration,
    /// Their sum by their number.
    pub mean: Duration,
    /// The middle one; of two the mean.
    pub median: Duration,
    /// The smallest that at least 99 of 100 do not exceed.
    pub p99: Duration,
    /// The longest.
    pub max: Duration,
}

impl PathTimes {
    pub(super) fn new(path: PathTime) -> Option<Self> {
        // Until there is a sample, the kernel's minimum is the largest number there is.
        let is_known = path.rtt_min_us != 0 && path.rtt_min_us != u32::MAX;
        is_known.then(|| Self {
            smallest: Duration::from_micros(path.rtt_min_us.into()),
            smoothed: Duration::from_micros(path.rtt_us.into()),
        })
    }

    /// Splits a trip into the time on the wire and the rest, which is the server's. No trip is shorter than its wire.
    pub fn split(&self, trip: Duration) -> (Duration, Duration) {
        let wire = self.smallest.min(trip);
        (wire, trip - wire)
    }
}

impl Spread {
    /// `None` of no times.
    pub fn of(times: impl IntoIterator<Item = Duration>) -> Option<Self> {
        let mut times: Vec<Duration> = times.into_iter().collect();
        times.sort_unstable();
        let (min, max) = (*times.first()?, *times.last()?);
        let count = times.len();
        let sum: u128 = times.iter().map(Duration::as_nanos).sum();
        let mean = sum / count as u128;
        Some(Self {
            min,
            // A mean is not above the largest, which fits.
            mean: Duration::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX)),
            median: (times[(count - 1) / 2] + times[count / 2]) / 2,
            p99: times[(count * 99).div_ceil(100) - 1],
            max,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(value: u64) -> Duration {
        Duration::from_millis(value)
    }

    #[test]
    fn a_spread_is_that_of_the_sorted_times() {
        let spread = Spread::of((1..=200).rev().map(ms)).unwrap();
        assert_eq!((spread.min, spread.max, spread.p99), (ms(1), ms(200), ms(198)));
        assert_eq!(spread.median, Duration::from_micros(100_500));
        assert_eq!(spread.mean, Duration::from_micros(100_500));
        let one = Spread::of([ms(7)]).unwrap();
        assert_eq!([one.min, one.mean, one.median, one.p99, one.max], [ms(7); 5]);
        assert_eq!(Spread::of([]), None);
    }

    #[test]
    fn wire_and_server_add_up_to_the_trip() {
        let path = PathTimes::new(PathTime { rtt_us: 25_000, rtt_min_us: 20_000 }).unwrap();
        assert_eq!(path.split(ms(23)), (ms(20), ms(3)));
        assert_eq!(path.split(ms(19)), (ms(19), ms(0)));
    }

    #[test]
    fn a_path_without_a_sample_is_unknown() {
        assert_eq!(PathTimes::new(PathTime { rtt_us: 0, rtt_min_us: u32::MAX }), None);
    }
}
