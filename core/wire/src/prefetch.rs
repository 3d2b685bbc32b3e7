//! How much of a large value comes along before anybody reads it.

use std::fmt;
use std::str::FromStr;

/// What is fetched of a large value along with knowing that it is there, in the words that the settings of clients and
/// gateways have in common. Bytes; of text, characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Prefetch {
    /// Nothing (−1).
    Locator,
    /// Its length (0).
    Length,
    /// Its first part, at most so large.
    First(u32),
    /// As much as whoever fetches takes for right.
    #[default]
    Auto,
}

/// The text says no [`Prefetch`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is neither -1 (nothing comes along), 0 (the length), a number of bytes below 4294967296, nor auto"
)]
pub struct BadPrefetch(pub String);

impl Prefetch {
    /// By the number that configuration files use: −1, 0, or a size. `None` for other numbers.
    pub fn from_number(number: i64) -> Option<Self> {
        match number {
            -1 => Some(Self::Locator),
            0 => Some(Self::Length),
            size => u32::try_from(size).ok().map(Self::First),
        }
    }

    /// What holds where several levels may say something, the widest first: of a client, connection, statement, column.
    pub fn narrowest<const LEVELS: usize>(levels: [Option<Self>; LEVELS]) -> Self {
        levels.into_iter().flatten().last().unwrap_or_default()
    }
}

/// A number, or `auto`.
impl FromStr for Prefetch {
    type Err = BadPrefetch;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.eq_ignore_ascii_case("auto") {
            return Ok(Self::Auto);
        }
        let number = text.parse().ok().and_then(Self::from_number);
        number.ok_or_else(|| BadPrefetch(text.to_owned()))
    }
}

/// As [`FromStr`] reads it.
impl fmt::Display for Prefetch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Locator => f.write_str("-1"),
            Self::Length => f.write_str("0"),
            Self::First(size) => write!(f, "{size}"),
            Self::Auto => f.write_str("auto"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_narrower_level_wins() {
        let (wide, narrow) = (Some(Prefetch::Length), Some(Prefetch::First(10)));
        assert_eq!(Prefetch::narrowest([wide, narrow, None]), Prefetch::First(10));
        assert_eq!(Prefetch::narrowest([narrow, None, None, wide]), Prefetch::Length);
        assert_eq!(Prefetch::narrowest([None; 3]), Prefetch::Auto);
    }

    #[test]
    fn numbers_are_those_of_configuration_files() {
        let read = [-2, -1, 0, 7].map(Prefetch::from_number);
        assert_eq!(read, [None, Some(Prefetch::Locator), Some(Prefetch::Length), Some(Prefetch::First(7))]);
    }

    #[test]
    fn what_is_shown_is_read_again() {
        for one in [Prefetch::Locator, Prefetch::Length, Prefetch::First(u32::MAX), Prefetch::Auto] {
            assert_eq!(one.to_string().parse(), Ok(one));
        }
        for bad in ["", "-2", "4294967296", "4kB", "all", "1.5", " 1"] {
            assert_eq!(bad.parse::<Prefetch>(), Err(BadPrefetch(bad.to_owned())));
        }
    }
}
