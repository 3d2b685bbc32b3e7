/// Where a script's choices come from: a seed, or a list that a property test can shrink.
#[derive(Debug)]
pub(crate) enum Random {
    Seeded(u64),
    /// Choices in order; when they have run out, every choice is the simplest.
    Listed {
        choices: Vec<u32>,
        at: usize,
    },
}

impl Random {
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
            // SplitMix64.
            Self::Seeded(state) => {
                *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mut mixed = *state;
                mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                mixed ^ (mixed >> 31)
            }
            Self::Listed { choices, at } => {
                let choice = choices.get(*at).copied().unwrap_or(0);
                *at += 1;
                u64::from(choice)
            }
        }
    }
}
