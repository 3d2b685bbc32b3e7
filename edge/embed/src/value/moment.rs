//! Dates and times. SQLite stores them as ISO 8601 text. PostgreSQL's wire counts days and microseconds, with zero at
//! 2000-01-01.

use onetrip_wire::calendar::{self, POSTGRES_EPOCH_DAYS};

use crate::error::{SqlError, SqlResult};
use crate::value::InlineText;

pub(crate) const DAY_MICROS: i64 = 86_400_000_000;

/// Days since 2000-01-01 of a day of the Gregorian calendar.
pub(crate) fn days_of(year: i64, month: u32, day: u32) -> i64 {
    calendar::days_of(year, month.into(), day.into()) - POSTGRES_EPOCH_DAYS
}

/// Year, month and day of a number of days since 2000-01-01.
pub(crate) fn civil_of(days: i64) -> (i64, u32, u32) {
    let (year, month, day) = calendar::date_of(days + POSTGRES_EPOCH_DAYS);
    // The calendar gives 1 to 12 and 1 to 31.
    (year, month as u32, day as u32)
}

pub(crate) fn month_days(year: i64, month: u32) -> u32 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// What a text says of a moment; the clock part is zero where it says none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Days since 2000-01-01.
    pub(crate) days: i64,
    /// Microseconds since midnight.
    pub(crate) micros: i64,
    /// Seconds east of Greenwich, where the text says so.
    pub(crate) zone: Option<i64>,
}

impl Moment {
    /// Reads `YYYY-MM-DD[( |T)HH:MM[:SS[.f]]][ zone]`, where zone is `Z`, `UTC` or `±HH[[:]MM[:SS]]`.
    pub(crate) fn parse(text: &str, type_name: &str) -> SqlResult<Self> {
        let mut scan = Scan { rest: text.trim().as_bytes() };
        scan.moment()
            .ok_or_else(|| {
                let shown: String = text.chars().take(60).collect();
                let message = format!("invalid input syntax for type {type_name}: \"{shown}\"");
                SqlError::new("22007", message)
            })?
            .checked(text)
    }

    fn checked(self, text: &str) -> SqlResult<Self> {
        // PostgreSQL's own last timestamp is in 294276.
        if self.days.abs() > 200_000_000 || self.micros > DAY_MICROS {
            return Err(SqlError::new("22008", format!("date/time field value out of range: \"{text}\"")));
        }
        Ok(self)
    }

    /// Microseconds since 2000-01-01 00:00, as a clock without zone shows them.
    pub(crate) fn local_micros(self) -> i64 {
        self.days.saturating_mul(DAY_MICROS).saturating_add(self.micros)
    }

    /// Microseconds since 2000-01-01 00:00 UTC; a text without zone is UTC, the zone of every session here.
    pub(crate) fn utc_micros(self) -> i64 {
        self.local_micros().saturating_sub(self.zone.unwrap_or(0) * 1_000_000)
    }
}

struct Scan<'a> {
    rest: &'a [u8],
}

impl Scan<'_> {
    fn moment(&mut self) -> Option<Moment> {
        let days = self.date()?;
        let mut moment = Moment { days, micros: 0, zone: None };
        if self.rest.is_empty() {
            return Some(moment);
        }
        if self.take(b" ") || self.take(b"T") || self.take(b"t") {
            moment.micros = self.clock()?;
        }
        moment.zone = self.zone()?;
        self.rest.is_empty().then_some(moment)
    }

    fn date(&mut self) -> Option<i64> {
        let year_digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let year = self.number(year_digits.clamp(4, 6))?;
        self.take(b"-").then_some(())?;
        let month = u32::try_from(self.number(2)?).ok()?;
        self.take(b"-").then_some(())?;
        let day = u32::try_from(self.number(2)?).ok()?;
        let is_valid = (1..=12).contains(&month) && (1..=month_days(year, month)).contains(&day);
        is_valid.then(|| days_of(year, month, day))
    }

    fn clock(&mut self) -> Option<i64> {
        let hour = self.number(2)?;
        self.take(b":").then_some(())?;
        let minute = self.number(2)?;
        let mut micros = 0;
        if self.take(b":") {
            let second = self.number(2)?;
            micros = second * 1_000_000;
            if self.take(b".") {
                micros += self.fraction()?;
            }
            (second <= 60).then_some(())?;
        }
        (hour <= 24 && minute < 60).then_some(())?;
        Some(micros + (hour * 60 + minute) * 60_000_000)
    }

    fn fraction(&mut self) -> Option<i64> {
        let digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            return None;
        }
        let mut micros = 0;
        for position in 0..6 {
            let digit = self.rest.get(position).filter(|_| position < digits).map_or(b'0', |byte| *byte);
            micros = micros * 10 + i64::from(digit - b'0');
        }
        let rounds_up = digits > 6 && self.rest[6] >= b'5';
        self.rest = &self.rest[digits..];
        Some(micros + i64::from(rounds_up))
    }

    fn zone(&mut self) -> Option<Option<i64>> {
        while self.take(b" ") {}
        if self.rest.is_empty() {
            return Some(None);
        }
        if self.rest.eq_ignore_ascii_case(b"z") || self.rest.eq_ignore_ascii_case(b"utc") {
            self.rest = &[];
            return Some(Some(0));
        }
        let sign = match self.rest.first()? {
            b'+' => 1,
            b'-' => -1,
            _ => return None,
        };
        self.rest = &self.rest[1..];
        let mut seconds = self.number(2)? * 3600;
        for unit in [60, 1] {
            let has_colon = self.take(b":");
            if has_colon || !self.rest.is_empty() {
                seconds += self.number(2)? * unit;
            }
        }
        Some(Some(sign * seconds))
    }

    fn number(&mut self, digits: usize) -> Option<i64> {
        let (head, rest) = self.rest.split_at_checked(digits)?;
        self.rest = rest;
        head.iter().try_fold(0, |number: i64, byte| {
            byte.is_ascii_digit().then(|| number * 10 + i64::from(byte - b'0'))
        })
    }

    fn take(&mut self, prefix: &[u8]) -> bool {
        let rest = self.rest.strip_prefix(prefix);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }
}

/// Microseconds since midnight of `HH:MM[:SS[.f]]`.
pub(crate) fn parse_time(text: &str) -> SqlResult<i64> {
    let mut scan = Scan { rest: text.trim().as_bytes() };
    match scan.clock() {
        Some(micros) if micros <= DAY_MICROS && scan.zone().is_some() && scan.rest.is_empty() => Ok(micros),
        _ => Err(SqlError::new("22007", format!("invalid input syntax for type time: \"{text}\""))),
    }
}

/// The stored form of a day: `YYYY-MM-DD`.
pub(crate) fn date_text(days: i64) -> InlineText {
    let (year, month, day) = civil_of(days);
    InlineText::format(format_args!("{year:04}-{month:02}-{day:02}"))
}

/// The stored form of a time of day: `HH:MM:SS`, with a fraction where there is one.
pub(crate) fn time_text(micros: i64) -> InlineText {
    let mut text = InlineText::new();
    put_clock(&mut text, micros);
    text
}

/// The stored form of microseconds since 2000-01-01; `suffix` is `+00` for timestamps with time zone.
pub(crate) fn timestamp_text(micros: i64, suffix: &str) -> InlineText {
    let mut text = date_text(micros.div_euclid(DAY_MICROS));
    let _ = std::fmt::Write::write_char(&mut text, ' ');
    put_clock(&mut text, micros.rem_euclid(DAY_MICROS));
    let _ = std::fmt::Write::write_str(&mut text, suffix);
    text
}

fn put_clock(text: &mut InlineText, micros: i64) {
    use std::fmt::Write;
    let (seconds, mut fraction) = (micros / 1_000_000, micros % 1_000_000);
    let _ = write!(text, "{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if fraction > 0 {
        let mut width = 6;
        while fraction % 10 == 0 {
            fraction /= 10;
            width -= 1;
        }
        let _ = write!(text, ".{fraction:0width$}");
    }
}

/// Microseconds since 2000-01-01 00:00 UTC, now.
pub(crate) fn now_micros() -> i64 {
    let since_1970 = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |elapsed| elapsed.as_micros() as i64);
    since_1970 - POSTGRES_EPOCH_DAYS * DAY_MICROS
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn texts_are_read_with_and_without_zone() {
        let utc = |text| timestamp_text(Moment::parse(text, "timestamptz").unwrap().utc_micros(), "+00");
        assert_eq!(utc("2024-02-29T23:59:59.5Z").as_str(), "2024-02-29 23:59:59.5+00");
        assert_eq!(utc("2024-01-01 01:30:00+02:30").as_str(), "2023-12-31 23:00:00+00");
        assert_eq!(utc("2024-01-01").as_str(), "2024-01-01 00:00:00+00");
        assert_eq!(utc("1999-12-31 23:59:59.123456-0100").as_str(), "2000-01-01 00:59:59.123456+00");
        for wrong in
            ["2023-02-29", "2024-13-01", "2024-01-01 25:00", "x", "2024-01-01 10:00 nowhere", "2024-1-1"]
        {
            assert_eq!(Moment::parse(wrong, "timestamp").unwrap_err().sqlstate, "22007", "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn every_day_reads_back(days in -700_000i64..3_000_000) {
            let (year, month, day) = civil_of(days);
            prop_assert_eq!(days_of(year, month, day), days);
            prop_assert_eq!(Moment::parse(date_text(days).as_str(), "date").unwrap().days, days);
        }

        #[test]
        fn every_microsecond_reads_back(micros in -60_000_000_000_000_000i64..200_000_000_000_000_000) {
            let text = timestamp_text(micros, "");
            prop_assert_eq!(Moment::parse(text.as_str(), "timestamp").unwrap().local_micros(), micros);
        }

        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = Moment::parse(&text, "timestamp");
            let _ = parse_time(&text);
        }
    }
}
