//! Values as text, as Python's own classes write it: a column of another type reads it by its own rules.

use std::io::Write;

use onetrip_client::Oid;
use onetrip_client::types::Type;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyBytes, PyDate, PyDateAccess, PyDateTime, PyDelta, PyDeltaAccess, PyFloat, PyTime, PyTimeAccess,
    PyTzInfoAccess,
};

use super::{Class, offset_of, uuid};
use crate::binary::{self, SECOND};

/// Appends a value as text; its type, or `None` where that is not known here.
pub(super) fn put(class: Class, value: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> PyResult<Option<Oid>> {
    let ty = match class {
        Class::Text => {
            super::put_str(value.cast()?, out)?;
            return Ok(Some(0));
        }
        Class::Bool => {
            out.push(if value.cast::<PyBool>()?.is_true() { b't' } else { b'f' });
            Type::BOOL
        }
        Class::Int => match value.extract::<i64>() {
            Ok(value) => {
                put_int(value, out);
                if i32::try_from(value).is_ok() { Type::INT4 } else { Type::INT8 }
            }
            Err(_) => put_str(value, out)?,
        },
        Class::Float => {
            let mut text = String::new();
            binary::put_text(&Type::FLOAT8, &value.cast::<PyFloat>()?.value().to_be_bytes(), &mut text)?;
            out.extend_from_slice(text.as_bytes());
            Type::FLOAT8
        }
        Class::Bytes => {
            out.extend_from_slice(b"\\x");
            for byte in value.cast::<PyBytes>()?.as_bytes() {
                out.extend_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
            }
            Type::BYTEA
        }
        Class::Date => {
            put_date(value.cast::<PyDate>()?, out);
            Type::DATE
        }
        Class::Timestamp => {
            let value = value.cast::<PyDateTime>()?;
            let Some(offset) = offset_of(value.as_any(), value.get_tzinfo())? else { return Ok(None) };
            put_date(value.cast::<PyDate>()?, out);
            out.push(b' ');
            put_clock(value, out);
            put_offset(offset, out);
            if offset.is_some() { Type::TIMESTAMPTZ } else { Type::TIMESTAMP }
        }
        Class::Time => {
            let value = value.cast::<PyTime>()?;
            let Some(offset) = offset_of(value.as_any(), value.get_tzinfo())? else { return Ok(None) };
            put_clock(value, out);
            put_offset(offset, out);
            if offset.is_some() { Type::TIMETZ } else { Type::TIME }
        }
        Class::Interval => {
            let value = value.cast::<PyDelta>()?;
            let (days, seconds, micros) = (value.get_days(), value.get_seconds(), value.get_microseconds());
            // With a sign of its own: behind a sign in front, IntervalStyle sql_standard takes all for negative. Writing to a
            // Vec cannot fail.
            let _ = write!(out, "{days} days +{seconds}.{micros:06} seconds");
            Type::INTERVAL
        }
        Class::Uuid => {
            put_uuid(uuid(value)?, out);
            Type::UUID
        }
        Class::Numeric => put_str(value, out)?,
        Class::List | Class::Other => return Ok(None),
    };
    Ok(Some(ty.oid()))
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// A number as SQL has it, which knows one NaN only: Python's may signal, and carry digits.
pub(super) fn plain_number(text: &str) -> &str {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    if unsigned.starts_with("NaN") || unsigned.starts_with("sNaN") { "NaN" } else { text }
}

fn put_str(value: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> PyResult<Type> {
    out.extend_from_slice(plain_number(&value.str()?.to_cow()?).as_bytes());
    Ok(Type::NUMERIC)
}

fn put_int(value: i64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = value.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[at..]);
}

fn two(value: u8) -> [u8; 2] {
    [b'0' + value / 10, b'0' + value % 10]
}

fn put_date(date: &Bound<'_, PyDate>, out: &mut Vec<u8>) {
    // A year of Python's has four digits at most.
    let year = date.get_year();
    out.extend_from_slice(&two((year / 100) as u8));
    out.extend_from_slice(&two((year % 100) as u8));
    for part in [date.get_month(), date.get_day()] {
        out.push(b'-');
        out.extend_from_slice(&two(part));
    }
}

fn put_clock(time: &impl PyTimeAccess, out: &mut Vec<u8>) {
    out.extend_from_slice(&two(time.get_hour()));
    for part in [time.get_minute(), time.get_second()] {
        out.push(b':');
        out.extend_from_slice(&two(part));
    }
    put_fraction(time.get_microsecond(), out);
}

fn put_fraction(micros: u32, out: &mut Vec<u8>) {
    if micros > 0 {
        out.push(b'.');
        for unit in [10_000, 100, 1] {
            out.extend_from_slice(&two((micros / unit % 100) as u8));
        }
    }
}

fn put_offset(offset: Option<i64>, out: &mut Vec<u8>) {
    let Some(offset) = offset else { return };
    out.push(if offset < 0 { b'-' } else { b'+' });
    let (seconds, micros) = (offset.unsigned_abs() / SECOND as u64, offset.unsigned_abs() % SECOND as u64);
    out.extend_from_slice(&two((seconds / 3600) as u8));
    out.push(b':');
    out.extend_from_slice(&two((seconds / 60 % 60) as u8));
    if seconds % 60 > 0 || micros > 0 {
        out.push(b':');
        out.extend_from_slice(&two((seconds % 60) as u8));
        put_fraction(micros as u32, out);
    }
}

fn put_uuid(number: u128, out: &mut Vec<u8>) {
    for (at, byte) in number.to_be_bytes().into_iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        out.extend_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
}
