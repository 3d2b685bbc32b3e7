//! How fast a program works, by its own measure.
//!
//! A gap is short or long only beside the other gaps of its connection: a slow machine stretches all of them, and a
//! program that works a while on each row has no short ones. So no gate is a number of milliseconds, and a run that is
//! replayed with all its gaps twenty times as long has the same findings.

/// Gaps that the usual one is taken from.
const GAPS_KEPT: usize = 64;
/// Before so many gaps were seen, none is long.
const GAPS_MIN: usize = 4;
/// How often the usual gap is computed anew, in gaps.
const RENEWED_EVERY: usize = 8;

/// So many usual gaps are longer than a loop's body takes: what follows may belong to another request.
const SLOW: u64 = 64;
/// So many are a program's that waits for something.
const WAITING: u64 = 160;
/// After so many, nothing goes on that was begun before.
const PAUSE: u64 = 8_192;

/// How a gap compares to those before it on its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum Gap {
    /// As programs take between two statements of one piece of work.
    #[default]
    Short,
    /// The program did something else, or a person did.
    Slow,
    /// The program waited for something to happen.
    Waiting,
    /// Whatever was done before is over.
    Pause,
}

/// The gaps of one connection.
#[derive(Debug)]
pub(super) struct Rhythm {
    gaps: [u64; GAPS_KEPT],
    seen: usize,
    usual: u64,
}

impl Default for Rhythm {
    fn default() -> Self {
        Self { gaps: [0; GAPS_KEPT], seen: 0, usual: 0 }
    }
}

impl Rhythm {
    /// Takes one more gap, and tells how it compares to those before it.
    pub(super) fn take(&mut self, gap_ns: u64) -> Gap {
        let gap = self.compare(gap_ns);
        self.gaps[self.seen % GAPS_KEPT] = gap_ns;
        self.seen += 1;
        if self.seen >= GAPS_MIN && (self.seen <= RENEWED_EVERY || self.seen % RENEWED_EVERY == 0) {
            let mut gaps = self.gaps;
            let known = &mut gaps[..self.seen.min(GAPS_KEPT)];
            let middle = (known.len() - 1) / 2;
            self.usual = *known.select_nth_unstable(middle).1;
        }
        gap
    }

    /// Where gaps are too short to be measured, or not known yet, none is long.
    fn compare(&self, gap_ns: u64) -> Gap {
        match gap_ns.checked_div(self.usual) {
            Some(PAUSE..) => Gap::Pause,
            Some(WAITING..) => Gap::Waiting,
            Some(SLOW..) => Gap::Slow,
            _ => Gap::Short,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn gaps_that_are_all_longer_by_one_factor_compare_alike(
            gaps in proptest::collection::vec(prop_oneof![0..1_000_u64, 0..10_000_000_000_u64], 0..300),
            factor in 1..50_u64,
        ) {
            let (mut once, mut stretched) = (Rhythm::default(), Rhythm::default());
            for gap in gaps {
                prop_assert_eq!(once.take(gap), stretched.take(gap * factor));
            }
        }
    }

    #[test]
    fn a_long_gap_is_one_beside_the_usual_ones() {
        let mut rhythm = Rhythm::default();
        (0..10).for_each(|_| assert_eq!(rhythm.take(100), Gap::Short));
        assert_eq!(rhythm.take(6_399), Gap::Short);
        assert_eq!(rhythm.take(6_400), Gap::Slow);
        assert_eq!(rhythm.take(16_000), Gap::Waiting);
        assert_eq!(rhythm.take(819_200), Gap::Pause);
        (0..64).for_each(|_| _ = rhythm.take(6_400));
        assert_eq!(rhythm.take(6_400), Gap::Short, "the program has another rhythm now");
    }
}
