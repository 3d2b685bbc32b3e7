//! How much of each of many large values is fetched together.

use onetrip_wire::Prefetch;

/// Longest first part that an automatic prefetch asks for: a longer value is better read in pieces.
const AUTO_MAX: usize = 1 << 20;

/// Shortest: below this a trip costs more than the bytes.
const AUTO_MIN: usize = 2048;

/// The size of the first part, where `values` share `room` bytes of memory. It never exceeds that share; automatic is as
/// large as it allows.
pub(super) fn first_part(prefetch: Prefetch, values: usize, room: usize) -> u32 {
    let share = room / values.max(1);
    let size = match prefetch {
        Prefetch::Locator | Prefetch::Length => 0,
        Prefetch::First(size) => (size as usize).min(share),
        Prefetch::Auto if share < AUTO_MIN => 0,
        Prefetch::Auto => share.min(AUTO_MAX),
    };
    u32::try_from(size).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_parts_fit_into_memory_together() {
        assert_eq!(first_part(Prefetch::Auto, 1000, 8 << 20), 8388);
        assert_eq!(first_part(Prefetch::Auto, 1, 8 << 20), 1 << 20);
        assert_eq!(first_part(Prefetch::Auto, 100_000, 8 << 20), 0);
        assert_eq!(first_part(Prefetch::First(4000), 1000, 1 << 20), 1048);
        assert_eq!(first_part(Prefetch::Locator, 1, 1 << 20), 0);
    }
}
