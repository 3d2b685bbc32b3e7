use onetrip_wire::calendar::date_of;
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
        let (year, month, day) = date_of((self.0 / MICROS_PER_SECOND / SECONDS_PER_DAY) as i64);
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
}
