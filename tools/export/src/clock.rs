use serde::{Serialize, Serializer};

const NANOS_PER_MICRO: u64 = 1_000;
const MICROS_PER_SECOND: u64 = 1_000_000;
const SECONDS_PER_DAY: u64 = 86_400;

/// Microseconds since 1970, as Parquet, Spark and DuckDB have timestamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// The moment `nanos` after one that is given in nanoseconds since 1970.
    pub(crate) fn after(started_unix_nanos: u64, nanos: u64) -> Self {
        Self(started_unix_nanos.saturating_add(nanos) / NANOS_PER_MICRO)
    }

    /// `2026-11-26`.
    pub fn day(self) -> String {
        let (year, month, day) = date(self.0 / MICROS_PER_SECOND / SECONDS_PER_DAY);
        format!("{year:04}-{month:02}-{day:02}")
    }

    /// `2026-11-26T21:38:30.000001Z`.
    pub fn text(self) -> String {
        let seconds = self.0 / MICROS_PER_SECOND % SECONDS_PER_DAY;
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        format!("{}T{hour:02}:{minute:02}:{second:02}.{:06}Z", self.day(), self.0 % MICROS_PER_SECOND)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text())
    }
}

/// Year, month and day of a day since 1970. Years are counted from March, so that the day that leap years add is the last.
fn date(days: u64) -> (u64, u64, u64) {
    const FROM_MARCH_OF_YEAR_0: u64 = 719_468;
    const DAYS_OF_400_YEARS: u64 = 146_097;
    let days = days + FROM_MARCH_OF_YEAR_0;
    let (cycle, day) = (days / DAYS_OF_400_YEARS, days % DAYS_OF_400_YEARS);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (cycle * 400 + year + next, month, day_of_month)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        let of = |seconds: u64| Timestamp(seconds * MICROS_PER_SECOND).text();
        assert_eq!(of(0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(of(951_782_399), "2000-02-28T23:59:59.000000Z");
        assert_eq!(of(951_782_400), "2000-02-29T00:00:00.000000Z");
        assert_eq!(of(951_868_800), "2000-03-01T00:00:00.000000Z");
        assert_eq!(of(1_767_225_599), "2025-12-31T23:59:59.000000Z");
        assert_eq!(of(4_107_542_400), "2100-03-01T00:00:00.000000Z");
    }

    #[test]
    fn days_follow_each_other() {
        let mut before = date(0);
        for day in 1..200_000 {
            let (year, month, of_month) = date(day);
            let follows = match (month, of_month) {
                (1, 1) => before == (year - 1, 12, 31),
                (_, 1) => before.0 == year && before.1 == month - 1 && before.2 >= 28,
                _ => before == (year, month, of_month - 1),
            };
            assert!(follows, "{before:?} {year}-{month}-{of_month}");
            before = (year, month, of_month);
        }
    }
}
