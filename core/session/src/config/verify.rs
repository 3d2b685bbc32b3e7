//! `--verify`: how often an answer from memory is verified.

use std::num::NonZeroU32;
use std::str::FromStr;

/// How many of the answers from memory are verified: one in so many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verify(NonZeroU32);

/// The text is not `1/n`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not 1/n: 1/1 verifies every answer from memory, 1/100 one in a hundred")]
pub struct BadVerify(String);

impl FromStr for Verify {
    type Err = BadVerify;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let every = text.strip_prefix("1/").and_then(|every| every.parse().ok());
        every.map(Self).ok_or_else(|| BadVerify(text.to_owned()))
    }
}

impl Verify {
    /// Counts one more answer; whether it is one that is verified.
    pub(crate) fn is_turn(self, answers: &mut u32) -> bool {
        *answers = answers.wrapping_add(1);
        *answers % self.0 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_n_is_written_as_a_fraction() {
        assert!("1/1".parse::<Verify>().is_ok() && "1/4294967295".parse::<Verify>().is_ok());
        for bad in ["", "1", "1/0", "2/3", "1/-1", "1/x", "0.1"] {
            assert_eq!(bad.parse::<Verify>(), Err(BadVerify(bad.to_owned())));
        }
    }
}
