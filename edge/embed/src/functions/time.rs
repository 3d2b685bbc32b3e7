//! Dates and times.

use std::sync::Arc;

use rusqlite::functions::Context;

use super::{Outcome, Registry, SessionFacts, integer_arg, or_null, real_arg, text_arg};
use crate::error::{SqlError, SqlResult};
use crate::types::{Base, SqlType};
use crate::value::{
    DAY_MICROS, Moment, Stored, civil_of, date_text, days_of, month_days, now_micros, time_text,
    timestamp_text,
};

pub(super) fn register(registry: &Registry<'_>, facts: &Arc<SessionFacts>) -> rusqlite::Result<()> {
    let facts = Arc::clone(facts);
    registry.volatile("onetrip_now", 1, move |context| {
        let kind = or_null!(text_arg(context, 0));
        let micros = if kind == "clock" { now_micros() } else { facts.transaction_start() };
        Ok(Stored::Short(match &*kind {
            "date" => date_text(micros.div_euclid(DAY_MICROS)),
            "time" => time_text(micros.rem_euclid(DAY_MICROS)),
            "timestamp" => timestamp_text(micros, ""),
            _ => timestamp_text(micros, "+00"),
        }))
    })?;
    registry.pure("onetrip_add_days", 2, |context| {
        let day = Moment::parse(&or_null!(text_arg(context, 0)), "date")?.days;
        let days = or_null!(integer_arg(context, 1));
        Ok(Stored::Short(date_text(
            in_range(day.saturating_add(days).saturating_mul(DAY_MICROS))? / DAY_MICROS,
        )))
    })?;
    registry.pure("onetrip_days_between", 2, |context| {
        let left = Moment::parse(&or_null!(text_arg(context, 0)), "date")?.days;
        let right = Moment::parse(&or_null!(text_arg(context, 1)), "date")?.days;
        Ok(Stored::Integer(left - right))
    })?;
    registry.pure("onetrip_add_interval", 3, add_interval)?;
    registry.pure("onetrip_at_time_zone", 3, at_time_zone)?;
    registry.pure("onetrip_extract", 2, extract)?;
    registry.pure("date_trunc", 2, date_trunc)?;
    registry.pure("to_char", 2, to_char)?;
    registry.pure("to_timestamp", 1, |context| {
        let seconds = or_null!(real_arg(context, 0));
        let micros = (seconds * 1e6).round() as i64;
        Ok(Stored::Short(timestamp_text(in_range(micros.saturating_add(unix_epoch()))?, "+00")))
    })
}

/// Microseconds from 2000-01-01 to 1970-01-01.
fn unix_epoch() -> i64 {
    days_of(1970, 1, 1) * DAY_MICROS
}

fn in_range(micros: i64) -> SqlResult<i64> {
    let (first, last) = (days_of(1, 1, 1) * DAY_MICROS, days_of(294_277, 1, 1) * DAY_MICROS);
    if (first..last).contains(&micros) {
        Ok(micros)
    } else {
        Err(SqlError::new("22008", "timestamp out of range"))
    }
}

/// Months, days and microseconds.
#[derive(Debug, Default, PartialEq)]
struct Interval {
    months: i64,
    days: i64,
    micros: i64,
}

impl Interval {
    /// Reads `1 year 2 mons -3 days 04:05:06` and the like.
    fn parse(text: &str) -> SqlResult<Self> {
        let invalid =
            || SqlError::new("22007", format!("invalid input syntax for type interval: \"{text}\""));
        let mut interval = Self::default();
        let mut words = text.split_whitespace().peekable();
        while let Some(word) = words.next() {
            if word.contains(':') {
                let (sign, clock) = match word.strip_prefix('-') {
                    Some(clock) => (-1, clock),
                    None => (1, word),
                };
                interval.micros += sign * crate::value::parse_time(clock).map_err(|_| invalid())?;
                continue;
            }
            let digits = word.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(word.len());
            let number: f64 = word[..digits].parse().map_err(|_| invalid())?;
            let unit = if digits < word.len() { &word[digits..] } else { words.next().unwrap_or("second") };
            interval.add(number, unit).ok_or_else(invalid)?;
        }
        Ok(interval)
    }

    fn add(&mut self, number: f64, unit: &str) -> Option<()> {
        let unit = unit.to_ascii_lowercase();
        let unit = unit.trim_end_matches('s');
        let micros_each = match unit {
            "year" | "yr" | "y" => {
                self.months += (number * 12.0).round() as i64;
                return Some(());
            }
            "month" | "mon" => {
                self.months += number.trunc() as i64;
                self.days += (number.fract() * 30.0).round() as i64;
                return Some(());
            }
            "week" | "w" => 7.0 * DAY_MICROS as f64,
            "day" | "d" => DAY_MICROS as f64,
            "hour" | "hr" | "h" => 3.6e9,
            "minute" | "min" | "m" => 6e7,
            "second" | "sec" | "" => 1e6,
            "millisecond" | "m_" => 1e3,
            "microsecond" => 1.0,
            _ => return None,
        };
        let micros = (number * micros_each).round() as i64;
        if micros_each >= DAY_MICROS as f64 {
            self.days += micros / DAY_MICROS;
            self.micros += micros % DAY_MICROS;
        } else {
            self.micros += micros;
        }
        Some(())
    }
}

fn add_months(micros: i64, months: i64) -> SqlResult<i64> {
    let (year, month, day) = civil_of(micros.div_euclid(DAY_MICROS));
    let total = year.saturating_mul(12).saturating_add(i64::from(month) - 1).saturating_add(months);
    if !(12..=294_276 * 12).contains(&total) {
        return Err(SqlError::new("22008", "timestamp out of range"));
    }
    let (year, month) = (total.div_euclid(12), (total.rem_euclid(12) + 1) as u32);
    let day = day.min(month_days(year, month));
    Ok(days_of(year, month, day) * DAY_MICROS + micros.rem_euclid(DAY_MICROS))
}

fn add_interval(context: &Context<'_>) -> Outcome {
    let text = or_null!(text_arg(context, 0));
    let sign = if or_null!(text_arg(context, 1)) == "-" { -1 } else { 1 };
    let interval = Interval::parse(&or_null!(text_arg(context, 2)))?;
    let moment = Moment::parse(&text, "timestamp")?;
    let micros = add_months(moment.utc_micros(), sign * interval.months)?
        .saturating_add((sign * interval.days).saturating_mul(DAY_MICROS))
        .saturating_add(sign * interval.micros);
    let suffix = if moment.zone.is_some() { "+00" } else { "" };
    Ok(Stored::Short(timestamp_text(in_range(micros)?, suffix)))
}

fn at_time_zone(context: &Context<'_>) -> Outcome {
    let moment = Moment::parse(&or_null!(text_arg(context, 0)), "timestamp")?;
    let from = or_null!(integer_arg(context, 1));
    let zone = or_null!(text_arg(context, 2));
    if !is_utc(&zone) {
        return Err(SqlError::unsupported(format!("time zone \"{zone}\" is not supported, only UTC is")));
    }
    let has_zone = u32::try_from(from).ok().and_then(SqlType::of_oid) == Some(SqlType::of(Base::Timestamptz));
    Ok(Stored::Short(timestamp_text(moment.utc_micros(), if has_zone { "" } else { "+00" })))
}

/// Whether a zone's name means UTC.
pub(crate) fn is_utc(zone: &str) -> bool {
    [
        "utc",
        "gmt",
        "etc/utc",
        "etc/gmt",
        "z",
        "zulu",
        "universal",
        "0",
        "+0",
        "+00",
        "+00:00",
        "etc/uct",
        "uct",
    ]
    .contains(&zone.trim().to_ascii_lowercase().as_str())
}

fn extract(context: &Context<'_>) -> Outcome {
    let field = or_null!(text_arg(context, 0)).to_ascii_lowercase();
    let text = or_null!(text_arg(context, 1));
    let micros = if text.contains('-') {
        Moment::parse(&text, "timestamp")?.utc_micros()
    } else {
        crate::value::parse_time(&text)?
    };
    let days = micros.div_euclid(DAY_MICROS);
    let clock = micros.rem_euclid(DAY_MICROS);
    let (year, month, day) = civil_of(days);
    let weekday = (days + 6).rem_euclid(7); // 2000-01-01 was a Saturday
    let seconds = clock % 60_000_000;
    Ok(match field.as_str() {
        "year" => Stored::Integer(year),
        "month" => Stored::Integer(i64::from(month)),
        "day" => Stored::Integer(i64::from(day)),
        "quarter" => Stored::Integer(i64::from(month - 1) / 3 + 1),
        "hour" => Stored::Integer(clock / 3_600_000_000),
        "minute" => Stored::Integer(clock / 60_000_000 % 60),
        "second" => Stored::Real(seconds as f64 / 1e6),
        "milliseconds" => Stored::Real(seconds as f64 / 1e3),
        "microseconds" => Stored::Integer(seconds),
        "dow" => Stored::Integer(weekday),
        "isodow" => Stored::Integer(if weekday == 0 { 7 } else { weekday }),
        "doy" => Stored::Integer(days - days_of(year, 1, 1) + 1),
        "epoch" => Stored::Real((micros - unix_epoch()) as f64 / 1e6),
        other => return Err(SqlError::new("22023", format!("unit \"{other}\" not recognized"))),
    })
}

fn date_trunc(context: &Context<'_>) -> Outcome {
    let unit = or_null!(text_arg(context, 0)).to_ascii_lowercase();
    let moment = Moment::parse(&or_null!(text_arg(context, 1)), "timestamp")?;
    let micros = moment.utc_micros();
    let days = micros.div_euclid(DAY_MICROS);
    let (year, month, _) = civil_of(days);
    let to = |unit: i64| micros.div_euclid(unit) * unit;
    let cut = match unit.as_str() {
        "microseconds" => micros,
        "milliseconds" => to(1_000),
        "second" => to(1_000_000),
        "minute" => to(60_000_000),
        "hour" => to(3_600_000_000),
        "day" => to(DAY_MICROS),
        "week" => (days - (days + 5).rem_euclid(7)) * DAY_MICROS,
        "month" => days_of(year, month, 1) * DAY_MICROS,
        "quarter" => days_of(year, (month - 1) / 3 * 3 + 1, 1) * DAY_MICROS,
        "year" => days_of(year, 1, 1) * DAY_MICROS,
        other => return Err(SqlError::new("22023", format!("unit \"{other}\" not recognized"))),
    };
    let suffix = if moment.zone.is_some() { "+00" } else { "" };
    Ok(Stored::Short(timestamp_text(cut, suffix)))
}

/// The patterns of `to_char` for dates and times that are made of digits.
fn to_char(context: &Context<'_>) -> Outcome {
    let moment = Moment::parse(&or_null!(text_arg(context, 0)), "timestamp")?;
    let pattern = or_null!(text_arg(context, 1));
    let micros = moment.utc_micros();
    let (year, month, day) = civil_of(micros.div_euclid(DAY_MICROS));
    let clock = micros.rem_euclid(DAY_MICROS);
    let (hour, minute, second) = (clock / 3_600_000_000, clock / 60_000_000 % 60, clock / 1_000_000 % 60);
    let mut out = String::new();
    let mut rest: &str = &pattern;
    while let Some(first) = rest.chars().next() {
        let pieces: [(&str, String); 9] = [
            ("YYYY", format!("{year:04}")),
            ("HH24", format!("{hour:02}")),
            ("HH12", format!("{:02}", (hour + 11) % 12 + 1)),
            ("MI", format!("{minute:02}")),
            ("MM", format!("{month:02}")),
            ("DD", format!("{day:02}")),
            ("SS", format!("{second:02}")),
            ("MS", format!("{:03}", clock / 1_000 % 1_000)),
            ("US", format!("{:06}", clock % 1_000_000)),
        ];
        match pieces.iter().find(|(name, _)| rest.starts_with(name)) {
            Some((name, text)) => {
                out.push_str(text);
                rest = &rest[name.len()..];
            }
            None if first.is_ascii_alphabetic() && first != 'T' => {
                return Err(SqlError::unsupported(
                    "to_char knows YYYY, MM, DD, HH24, HH12, MI, SS, MS and US",
                ));
            }
            None => {
                out.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    Ok(Stored::OwnedText(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_read_in_words() {
        assert_eq!(
            Interval::parse("1 year 2 mons -3 days 04:05:06").unwrap(),
            Interval { months: 14, days: -3, micros: 14_706_000_000 }
        );
        assert_eq!(Interval::parse("90 minutes").unwrap().micros, 5_400_000_000);
        assert_eq!(
            Interval::parse("1.5 days").unwrap(),
            Interval { months: 0, days: 1, micros: DAY_MICROS / 2 }
        );
        assert!(Interval::parse("soon").is_err());
    }

    #[test]
    fn a_month_later_ends_at_the_months_end() {
        let january = days_of(2024, 1, 31) * DAY_MICROS;
        assert_eq!(add_months(january, 1).unwrap(), days_of(2024, 2, 29) * DAY_MICROS);
        assert_eq!(add_months(january, -11).unwrap(), days_of(2023, 2, 28) * DAY_MICROS);
    }
}
