//! Summaries of what was measured.

/// Statistics of a list of numbers, such as times in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    /// How many there are.
    pub count: u64,
    /// All together.
    pub sum: u64,
    /// The least.
    pub min: u64,
    /// Sum by count.
    pub mean: u64,
    /// Half are not more.
    pub median: u64,
    /// 99 in 100 are not more.
    pub p99: u64,
    /// The most.
    pub max: u64,
}

impl Summary {
    /// Of these numbers; all zero where there is none.
    pub fn of(numbers: &[u64]) -> Self {
        let mut sorted = numbers.to_vec();
        sorted.sort_unstable();
        let (Some(&min), Some(&max)) = (sorted.first(), sorted.last()) else { return Self::default() };
        let sum: u64 = sorted.iter().fold(0, |sum, number| sum.saturating_add(*number));
        let count = sorted.len() as u64;
        Self {
            count,
            sum,
            min,
            mean: sum / count,
            median: quantile(&sorted, 50),
            p99: quantile(&sorted, 99),
            max,
        }
    }
}

/// The least number that so many per cent are not above.
fn quantile(sorted: &[u64], percent: usize) -> u64 {
    sorted[(sorted.len() * percent).div_ceil(100).max(1) - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_numbers_that_were_measured() {
        let hundred: Vec<u64> = (1..=100).rev().collect();
        let summary = Summary::of(&hundred);
        assert_eq!((summary.min, summary.median, summary.p99, summary.max), (1, 50, 99, 100));
        assert_eq!((summary.count, summary.sum, summary.mean), (100, 5050, 50));
        assert_eq!(Summary::of(&[7]).p99, 7);
        assert_eq!(Summary::of(&[]), Summary::default());
    }
}
