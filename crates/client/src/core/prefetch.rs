//! How much of a large value comes along before anybody reads it.

/// What is fetched of a large value along with knowing that it is there. Bytes; of text, characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Prefetch {
    /// Nothing (−1).
    Locator,
    /// Its length (0).
    Length,
    /// Its first part, at most so large.
    First(u32),
    /// Its first part, as large as the memory for reading ahead allows for all that are asked for together.
    #[default]
    Auto,
}

/// Longest first part that an automatic prefetch asks for: a longer value is better read in pieces.
const AUTO_MAX: usize = 1 << 20;

/// Shortest: below this a trip costs more than the bytes.
const AUTO_MIN: usize = 2048;

impl Prefetch {
    /// By the number that configuration files use: −1, 0, or a size. `None` for other numbers.
    pub fn from_number(number: i64) -> Option<Self> {
        match number {
            -1 => Some(Self::Locator),
            0 => Some(Self::Length),
            size => u32::try_from(size).ok().map(Self::First),
        }
    }

    /// What holds where several levels may say something, the widest first: connection, statement, column.
    pub fn narrowest(levels: [Option<Self>; 3]) -> Self {
        levels.into_iter().flatten().last().unwrap_or_default()
    }

    /// The size of the first part, where `values` share `room` bytes of memory. It never exceeds that share.
    pub fn first_part(self, values: usize, room: usize) -> u32 {
        let share = room / values.max(1);
        let size = match self {
            Self::Locator | Self::Length => 0,
            Self::First(size) => (size as usize).min(share),
            Self::Auto if share < AUTO_MIN => 0,
            Self::Auto => share.min(AUTO_MAX),
        };
        u32::try_from(size).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_narrower_level_wins() {
        let (wide, narrow) = (Some(Prefetch::Length), Some(Prefetch::First(10)));
        assert_eq!(Prefetch::narrowest([wide, narrow, None]), Prefetch::First(10));
        assert_eq!(Prefetch::narrowest([narrow, None, wide]), Prefetch::Length);
        assert_eq!(Prefetch::narrowest([None; 3]), Prefetch::Auto);
    }

    #[test]
    fn the_first_parts_fit_into_memory_together() {
        assert_eq!(Prefetch::Auto.first_part(1000, 8 << 20), 8388);
        assert_eq!(Prefetch::Auto.first_part(1, 8 << 20), 1 << 20);
        assert_eq!(Prefetch::Auto.first_part(100_000, 8 << 20), 0);
        assert_eq!(Prefetch::First(4000).first_part(1000, 1 << 20), 1048);
        assert_eq!(Prefetch::Locator.first_part(1, 1 << 20), 0);
    }

    #[test]
    fn numbers_are_those_of_configuration_files() {
        let read = [-2, -1, 0, 7].map(Prefetch::from_number);
        assert_eq!(read, [None, Some(Prefetch::Locator), Some(Prefetch::Length), Some(Prefetch::First(7))]);
    }
}
