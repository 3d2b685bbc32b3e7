/// Bits of a value that tell buckets of one octave apart: 32 buckets, each within 3.2 % of its values.
const PRECISION: u32 = 5;
const PER_OCTAVE: u64 = 1 << PRECISION;
const BUCKETS: usize = ((64 - PRECISION as usize) + 1) << PRECISION;

/// How often trips took how long. 15 KiB, whatever the number of trips.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram {
    counts: Box<[u64]>,
    total: u64,
    most: u64,
}

/// Trips that took between `from_ns` and `to_ns`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bar {
    /// From this time, in nanoseconds.
    pub from_ns: u64,
    /// To just below this one.
    pub to_ns: u64,
    /// That many trips.
    pub trips: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS].into(), total: 0, most: 0 }
    }
}

impl Histogram {
    /// A trip took `nanoseconds`.
    pub fn add(&mut self, nanoseconds: u64) {
        self.counts[bucket(nanoseconds)] += 1;
        self.total += 1;
        self.most = self.most.max(nanoseconds);
    }

    /// Trips in all.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The longest time, exactly.
    pub fn max(&self) -> u64 {
        self.most
    }

    /// The time that a share of the trips did not exceed, such as 0.99: at most 3.2 % too long.
    pub fn quantile(&self, share: f64) -> u64 {
        let rank = ((share.clamp(0.0, 1.0) * self.total as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return end(bucket).saturating_sub(1).min(self.most);
            }
        }
        self.most
    }

    /// The trips in at most `bars_max` bars of equal width on a logarithmic scale, from the first to the last
    /// that is not empty.
    pub fn bars(&self, bars_max: usize) -> Vec<Bar> {
        let used = |count: &u64| *count > 0;
        let (Some(first), Some(last)) =
            (self.counts.iter().position(used), self.counts.iter().rposition(used))
        else {
            return Vec::new();
        };
        let group = (last - first + 1).div_ceil(bars_max.max(1));
        let groups = self.counts[first..=last].chunks(group).zip((first..).step_by(group));
        groups
            .map(|(counts, bucket)| Bar {
                from_ns: start(bucket),
                to_ns: start(bucket + group),
                trips: counts.iter().sum(),
            })
            .collect()
    }
}

/// Values below one octave's buckets have one each; above, buckets of an octave are of equal width.
fn bucket(value: u64) -> usize {
    let octave = (u64::BITS - value.leading_zeros()).saturating_sub(PRECISION + 1);
    ((u64::from(octave) << PRECISION) + (value >> octave)) as usize
}

/// The first value of a bucket; that of the one after the last is the largest value.
fn start(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < 2 * PER_OCTAVE {
        return bucket;
    }
    let octave = (bucket >> PRECISION) - 1;
    let within = u128::from(bucket - (octave << PRECISION));
    u64::try_from(within << octave.min(64)).unwrap_or(u64::MAX)
}

fn end(bucket: usize) -> u64 {
    start(bucket + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quantiles_and_bars_of_known_trips() {
        let mut histogram = Histogram::default();
        for microseconds in 1..=1_000 {
            histogram.add(microseconds * 1_000);
        }
        let near = |found: u64, exact: u64| found >= exact && found * 1000 <= exact * 1032;
        assert!(near(histogram.quantile(0.5), 500_000), "{}", histogram.quantile(0.5));
        assert!(near(histogram.quantile(0.99), 990_000), "{}", histogram.quantile(0.99));
        assert_eq!(
            (histogram.quantile(1.0), histogram.max(), histogram.total()),
            (1_000_000, 1_000_000, 1_000)
        );
        let bars = histogram.bars(40);
        assert!(bars.len() <= 40 && bars.windows(2).all(|pair| pair[0].to_ns == pair[1].from_ns));
        assert_eq!(bars.iter().map(|bar| bar.trips).sum::<u64>(), 1_000);
        assert_eq!((Histogram::default().bars(9), Histogram::default().quantile(0.5)), (Vec::new(), 0));
    }

    proptest! {
        #[test]
        fn a_value_lies_in_its_bucket(value: u64, shift in 0_u32..64) {
            let value = value >> shift;
            let bucket = bucket(value);
            prop_assert!(bucket < BUCKETS);
            prop_assert!(start(bucket) <= value);
            prop_assert!(value < end(bucket) || end(bucket) == u64::MAX);
            prop_assert!(end(bucket) - start(bucket) <= 1 + start(bucket) / PER_OCTAVE);
        }
    }
}
