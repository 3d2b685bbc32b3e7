//! Dates, times of day, timestamps and intervals: microseconds, and days since 2000-01-01.

use std::fmt::Write;

use onetrip_client::types::Type;
use onetrip_wire::calendar::{self, POSTGRES_EPOCH_DAYS};

pub(crate) const SECOND: i64 = 1_000_000;
pub(crate) const MINUTE: i64 = 60 * SECOND;
pub(crate) const HOUR: i64 = 60 * MINUTE;
pub(crate) const DAY: i64 = 24 * HOUR;

pub(super) fn is_time(ty: &Type) -> bool {
    [Type::DATE, Type::TIME, Type::TIMETZ, Type::TIMESTAMP, Type::TIMESTAMPTZ, Type::INTERVAL].contains(ty)
}

pub(super) fn put(ty: &Type, text: &str, out: &mut Vec<u8>) -> Option<()> {
    let text = text.trim();
    match *ty {
        Type::DATE => {
            let days = match text {
                "infinity" => i32::MAX,
                "-infinity" => i32::MIN,
                _ => i32::try_from(date(text)?).ok()?,
            };
            out.extend(days.to_be_bytes());
        }
        Type::TIME => out.extend(clock(text)?.0.to_be_bytes()),
        Type::TIMETZ => {
            let (micros, offset) = clock(text)?;
            out.extend(micros.to_be_bytes());
            // Counted towards the west.
            out.extend((-offset?).to_be_bytes());
        }
        Type::INTERVAL => {
            let (months, days, micros) = interval(text.as_bytes())?;
            out.extend(micros.to_be_bytes());
            out.extend(days.to_be_bytes());
            out.extend(months.to_be_bytes());
        }
        _ => out.extend(timestamp(text, *ty == Type::TIMESTAMPTZ)?.to_be_bytes()),
    }
    Some(())
}

pub(super) fn put_text(ty: &Type, bytes: &[u8], out: &mut String) -> Option<()> {
    match *ty {
        Type::DATE => match i32::from_be_bytes(bytes.try_into().ok()?) {
            i32::MAX => out.push_str("infinity"),
            i32::MIN => out.push_str("-infinity"),
            days => {
                let era = put_date(days.into(), out)?;
                out.push_str(era);
            }
        },
        Type::TIME => put_clock(i64::from_be_bytes(bytes.try_into().ok()?), out)?,
        Type::TIMETZ => {
            let (micros, offset) = bytes.split_first_chunk::<8>()?;
            put_clock(i64::from_be_bytes(*micros), out)?;
            put_offset(-i32::from_be_bytes(offset.try_into().ok()?), out)?;
        }
        Type::INTERVAL => {
            let (months, days, micros) = parts_of(bytes)?;
            put_interval(months, days, micros, out)?;
        }
        _ => match i64::from_be_bytes(bytes.try_into().ok()?) {
            i64::MAX => out.push_str("infinity"),
            i64::MIN => out.push_str("-infinity"),
            micros => {
                let era = put_date(micros.div_euclid(DAY), out)?;
                out.push(' ');
                put_clock(micros.rem_euclid(DAY), out)?;
                out.push_str(if *ty == Type::TIMESTAMPTZ { "+00" } else { "" });
                out.push_str(era);
            }
        },
    }
    Some(())
}

/// Months, days and microseconds of an interval in binary.
pub(crate) fn parts_of(bytes: &[u8]) -> Option<(i32, i32, i64)> {
    let (micros, rest) = bytes.split_first_chunk::<8>()?;
    let (days, months) = rest.split_first_chunk::<4>()?;
    let months = i32::from_be_bytes(months.try_into().ok()?);
    Some((months, i32::from_be_bytes(*days), i64::from_be_bytes(*micros)))
}

/// Days of `YYYY-MM-DD`, perhaps with BC behind it.
fn date(text: &str) -> Option<i64> {
    let (text, is_before) = match text.strip_suffix(" BC") {
        Some(text) => (text, true),
        None => (text, false),
    };
    let mut parts = text.as_bytes().split(|sign| *sign == b'-').map(number);
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    if year == 0 {
        return None; // 1 BC is followed by 1
    }
    let year = if is_before { 1 - year } else { year };
    if parts.next().is_some() || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let days = days_of(year, month, day);
    // A day that its month has.
    (date_of(days) == (year, month, day)).then_some(days)
}

fn number(digits: &[u8]) -> Option<i64> {
    leading(digits, DIGITS_MAX).filter(|(_, rest)| rest.is_empty()).map(|(number, _)| number)
}

/// Digits of the longest number of years or hours.
const DIGITS_MAX: usize = 7;

/// The number at the front, of at most so many digits, and what follows.
#[inline]
fn leading(text: &[u8], digits_max: usize) -> Option<(i64, &[u8])> {
    let (mut number, mut digits) = (0_i64, 0);
    while let Some(digit @ 0..=9) = text.get(digits).map(|sign| sign.wrapping_sub(b'0')) {
        // It is checked below whether so many digits can be too much.
        number = number.wrapping_mul(10).wrapping_add(digit.into());
        digits += 1;
    }
    if digits > DIGITS_SAFE {
        number = std::str::from_utf8(&text[..digits]).ok()?.parse().ok()?;
    }
    (1..=digits_max).contains(&digits).then(|| (number, &text[digits..]))
}

/// Every number of so many digits is an `i64`.
const DIGITS_SAFE: usize = 18;

/// Days since 2000-01-01 of a day of the Gregorian calendar.
pub(crate) fn days_of(year: i64, month: i64, day: i64) -> i64 {
    calendar::days_of(year, month, day) - POSTGRES_EPOCH_DAYS
}

pub(crate) fn date_of(days: i64) -> (i64, i64, i64) {
    calendar::date_of(days + POSTGRES_EPOCH_DAYS)
}

/// Microseconds of `HH:MM[:SS[.ffffff]]`, and the seconds to the east of an offset behind it.
fn clock(text: &str) -> Option<(i64, Option<i32>)> {
    let (text, offset) = match text.find(['+', '-', 'Z']) {
        Some(at) => (&text[..at], Some(offset(&text[at..])?)),
        None => (text, None),
    };
    let (micros, rest) = hours(text.as_bytes())?;
    (micros <= DAY && rest.is_empty()).then_some((micros, offset))
}

/// Microseconds of `HH:MM[:SS[.ffffff]]`, and what follows.
fn hours(text: &[u8]) -> Option<(i64, &[u8])> {
    let (hours, rest) = leading(text, DIGITS_MAX)?;
    let (minutes, rest) = leading(rest.strip_prefix(b":")?, DIGITS_MAX)?;
    let (micros, rest) = match rest {
        [b':', rest @ ..] => seconds(rest)?,
        _ => (0, rest),
    };
    (minutes < 60 && micros < MINUTE).then_some((hours * HOUR + minutes * MINUTE + micros, rest))
}

/// Microseconds of `SS[.ffffff]`, and what follows.
fn seconds(text: &[u8]) -> Option<(i64, &[u8])> {
    let (whole, rest) = leading(text, usize::MAX)?;
    let micros = whole.checked_mul(SECOND)?;
    let [b'.', fraction @ ..] = rest else { return Some((micros, rest)) };
    let (number, rest) = leading(fraction, 6)?;
    Some((micros.checked_add(number * SCALES[fraction.len() - rest.len()])?, rest))
}

/// Microseconds of the last of so many digits behind a point.
const SCALES: [i64; 7] = [SECOND, 100_000, 10_000, 1_000, 100, 10, 1];

/// As [`hours`], for `HH:MM:SS[.ffffff]` with two digits each, as nearly all are; `None` for all else.
#[inline]
fn usual_hours(text: &[u8]) -> Option<(i64, &[u8])> {
    let [a, b, b':', c, d, b':', e, f, rest @ ..] = text else { return None };
    let digits = [*a, *b, *c, *d, *e, *f].map(|sign| sign.wrapping_sub(b'0'));
    let [hours, minutes, seconds] =
        [0, 2, 4].map(|at| i64::from(digits[at]) * 10 + i64::from(digits[at + 1]));
    if digits.iter().any(|digit| *digit > 9) || minutes > 59 || seconds > 59 {
        return None;
    }
    let micros = hours * HOUR + minutes * MINUTE + seconds * SECOND;
    match rest {
        [b'.', fraction @ ..] => {
            let (number, rest) = leading(fraction, 6)?;
            Some((micros + number * SCALES[fraction.len() - rest.len()], rest))
        }
        [b'0'..=b'9', ..] => None,
        _ => Some((micros, rest)),
    }
}

/// The units that the server writes before the hours.
#[derive(Clone, Copy)]
enum Unit {
    Year,
    Month,
    Day,
}

/// A unit as the server writes it, and the next part; `None` for others, and for other signs in between.
#[inline]
fn usual_unit(text: &[u8]) -> Option<(Unit, &[u8])> {
    let (unit, rest) = match text {
        [b' ', b'd', b'a', b'y', rest @ ..] => (Unit::Day, rest),
        [b' ', b'm', b'o', b'n', rest @ ..] => (Unit::Month, rest),
        [b' ', b'y', b'e', b'a', b'r', rest @ ..] => (Unit::Year, rest),
        _ => return None,
    };
    match rest.strip_prefix(b"s").unwrap_or(rest) {
        [] => Some((unit, &[])),
        [b' ', rest @ ..] => Some((unit, rest.trim_ascii_start())),
        _ => None,
    }
}

/// Seconds to the east of `Z` or `±HH[:MM[:SS]]`.
fn offset(text: &str) -> Option<i32> {
    if text == "Z" {
        return Some(0);
    }
    let (sign, rest) = text.split_at(1);
    let mut parts = rest.as_bytes().split(|sign| *sign == b':').map(number);
    let hours = parts.next()??;
    let minutes = parts.next().unwrap_or(Some(0))?;
    let seconds = parts.next().unwrap_or(Some(0))?;
    let offset = i32::try_from(hours * 3600 + minutes * 60 + seconds).ok()?;
    (hours < 16 && minutes < 60 && seconds < 60).then_some(if sign == "-" { -offset } else { offset })
}

/// Microseconds since 2000-01-01, in UTC if it has a zone: then an offset has to say where that is.
fn timestamp(text: &str, has_zone: bool) -> Option<i64> {
    match text {
        "infinity" => return Some(i64::MAX),
        "-infinity" => return Some(i64::MIN),
        _ => {}
    }
    let (text, era) = match text.strip_suffix(" BC") {
        Some(text) => (text, " BC"),
        None => (text, ""),
    };
    let (day, time) = text.split_once([' ', 'T']).unwrap_or((text, "00:00"));
    let days = date(&format!("{day}{era}"))?;
    let (micros, offset) = clock(time)?;
    let offset = if has_zone { offset? } else { 0 };
    days.checked_mul(DAY)?.checked_add(micros - i64::from(offset) * SECOND)
}

/// Months, days and microseconds of `1 year 2 mons -3 days 04:05:06.7`, or with hours, minutes and seconds by name.
pub(crate) fn interval(text: &[u8]) -> Option<(i32, i32, i64)> {
    let (mut months, mut days, mut micros) = (0_i32, 0_i32, 0_i64);
    let mut rest = text.trim_ascii_start();
    while !rest.is_empty() {
        let (sign, digits) = match rest {
            [b'-', digits @ ..] => (-1, digits),
            [b'+', digits @ ..] | digits => (1, digits),
        };
        if let Some((clock, after)) = usual_hours(digits) {
            micros = micros.checked_add(sign * clock)?;
            rest = next_word(after)?;
            continue;
        }
        let (count, after) = leading(digits, usize::MAX)?;
        let of = |unit: i64| (sign * count).checked_mul(unit);
        let whole = |unit: i64| of(unit).and_then(|count| i32::try_from(count).ok());
        if let Some((unit, after)) = usual_unit(after) {
            match unit {
                Unit::Year => months = months.checked_add(whole(12)?)?,
                Unit::Month => months = months.checked_add(whole(1)?)?,
                Unit::Day => days = days.checked_add(whole(1)?)?,
            }
            rest = after;
            continue;
        }
        if after.starts_with(b":") {
            let (clock, after) = hours(digits)?;
            micros = micros.checked_add(sign * clock)?;
            rest = next_word(after)?;
            continue;
        }
        let is_whole = !after.starts_with(b".");
        let unit = next_word(if is_whole { after } else { seconds(digits)?.1 })?;
        let (unit, after) =
            unit.split_at(unit.iter().position(u8::is_ascii_whitespace).unwrap_or(unit.len()));
        match unit.strip_suffix(b"s").unwrap_or(unit) {
            _ if unit.starts_with(b"sec") => micros = micros.checked_add(sign * seconds(digits)?.0)?,
            _ if !is_whole => return None,
            b"year" => months = months.checked_add(whole(12)?)?,
            b"mon" | b"month" => months = months.checked_add(whole(1)?)?,
            b"day" => days = days.checked_add(whole(1)?)?,
            b"hour" => micros = micros.checked_add(of(HOUR)?)?,
            b"min" | b"minute" => micros = micros.checked_add(of(MINUTE)?)?,
            _ => return None,
        }
        rest = next_word(after)?;
    }
    Some((months, days, micros))
}

/// What follows the space at the front; nothing at the end. `None` where a word goes on.
fn next_word(text: &[u8]) -> Option<&[u8]> {
    let rest = text.trim_ascii_start();
    (text.is_empty() || rest.len() < text.len()).then_some(rest)
}

/// Writes a date; what has to stand behind it and its time.
fn put_date(days: i64, out: &mut String) -> Option<&'static str> {
    let (year, month, day) = date_of(days);
    let (year, era) = if year > 0 { (year, "") } else { (1 - year, " BC") };
    write!(out, "{year:04}-{month:02}-{day:02}").ok()?;
    Some(era)
}

fn put_clock(micros: i64, out: &mut String) -> Option<()> {
    let (hours, minutes, seconds) = (micros / HOUR, micros / MINUTE % 60, micros / SECOND % 60);
    write!(out, "{hours:02}:{minutes:02}:{seconds:02}").ok()?;
    let fraction = micros % SECOND;
    if fraction > 0 {
        let digits = format!("{fraction:06}");
        write!(out, ".{}", digits.trim_end_matches('0')).ok()?;
    }
    Some(())
}

fn put_offset(seconds: i32, out: &mut String) -> Option<()> {
    let (sign, seconds) = if seconds < 0 { ('-', -seconds) } else { ('+', seconds) };
    write!(out, "{sign}{:02}", seconds / 3600).ok()?;
    if seconds % 3600 > 0 {
        write!(out, ":{:02}", seconds / 60 % 60).ok()?;
    }
    if seconds % 60 > 0 {
        write!(out, ":{:02}", seconds % 60).ok()?;
    }
    Some(())
}

/// As `IntervalStyle` postgres has it.
fn put_interval(months: i32, days: i32, micros: i64, out: &mut String) -> Option<()> {
    let start = out.len();
    let mut is_after_negative = false;
    for (count, unit) in [(months / 12, "year"), (months % 12, "mon"), (days, "day")] {
        if count == 0 {
            continue;
        }
        let space = if out.len() == start { "" } else { " " };
        let plus = if is_after_negative && count > 0 { "+" } else { "" };
        let plural = if count == 1 { "" } else { "s" };
        write!(out, "{space}{plus}{count} {unit}{plural}").ok()?;
        is_after_negative = count < 0;
    }
    if micros == 0 && out.len() > start {
        return Some(());
    }
    let space = if out.len() == start { "" } else { " " };
    let sign = match () {
        () if micros < 0 => "-",
        () if is_after_negative => "+",
        () => "",
    };
    write!(out, "{space}{sign}").ok()?;
    put_clock(i64::try_from(micros.unsigned_abs()).ok()?, out)
}
