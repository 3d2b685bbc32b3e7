/// Where a script's choices come from: a seed, or a list that a property test can shrink.
#[derive(Debug)]
pub(crate) enum Random {
    Seeded(fastrand::Rng),
    /// Choices in order; when they have run out, every choice is the simplest.
    Listed {
        choices: Vec<u32>,
        at: usize,
    },
}

impl Random {
    pub(crate) fn seeded(seed: u64) -> Self {
        Self::Seeded(fastrand::Rng::with_seed(seed))
    }

    pub(crate) fn listed(choices: Vec<u32>) -> Self {
        Self::Listed { choices, at: 0 }
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    /// True once in `times`.
    pub(crate) fn once_in(&mut self, times: u64) -> bool {
        times > 0 && self.below(times) == times - 1
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }

    fn next(&mut self) -> u64 {
        match self {
            Self::Seeded(random) => random.u64(..),
            Self::Listed { choices, at } => {
                let choice = choices.get(*at).copied().unwrap_or(0);
                *at += 1;
                u64::from(choice)
            }
        }
    }
}
