//! Chance that repeats.

/// What comes by chance: the same from the same seed, as long as `fastrand` stays at its version.
#[derive(Debug, Clone)]
pub struct Random(fastrand::Rng);

impl Random {
    /// The chance of a seed.
    pub fn new(seed: u64) -> Self {
        // Seeds are counted up, and the first numbers of neighbours would be alike.
        Self(fastrand::Rng::with_seed(seed).fork())
    }

    /// A number below `limit`, which is not zero.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0.usize(..limit)
    }

    /// A number of this range.
    pub fn within(&mut self, range: std::ops::Range<usize>) -> usize {
        self.0.usize(range)
    }

    /// True once in `n`, on average.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// One of these.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// The place in a list of weights.
    pub fn weighted(&mut self, weights: &[usize]) -> usize {
        let mut left = self.below(weights.iter().sum());
        for (place, weight) in weights.iter().enumerate() {
            if left < *weight {
                return place;
            }
            left -= weight;
        }
        unreachable!("the sum is that of the weights")
    }

    /// Puts them into any order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        self.0.shuffle(items);
    }
}
