//! Values of others as the server's: as parameters, and as a COPY's data.

use std::fmt::Write;

use onetrip_client::Format;
use onetrip_client::core::put_copy_text as put_escaped;
use onetrip_client::types::Type;
use onetrip_wire::calendar::POSTGRES_EPOCH_DAYS;
use pyo3::prelude::*;

use super::read::Value;
use crate::binary::{self, DAY};
use crate::dumping::Dumped;
use crate::query::Form;

/// Appends a value as a parameter, as the Python value that is the same would be written.
///
/// # Errors
/// What is wrong with the value, as for the other functions here.
pub(super) fn put_parameter(
    value: Option<Value<'_>>,
    form: Form,
    is_text: bool,
    out: &mut Vec<u8>,
) -> Result<Dumped, String> {
    let Some(value) = value else { return Ok(None) };
    let ty = match value {
        Value::Text(_) if form == Form::Binary && !is_text => Some(Type::TEXT),
        Value::Text(_) => None,
        // The narrowest, as for Python's integers.
        Value::Int(number, _) if i32::try_from(number).is_ok() => Some(Type::INT4),
        Value::Int(..) => Some(Type::INT8),
        _ => Some(type_of(&value)),
    };
    let oid = ty.as_ref().map_or(0, Type::oid);
    let is_text = is_text || form == Form::Text || matches!(value, Value::Text(_)) && ty.is_none();
    // As Python's numbers that are no integers of the server's.
    let is_text = is_text || (form == Form::Any && ty == Some(Type::NUMERIC));
    if is_text {
        put_text(&value, out)?;
        return Ok(Some((oid, Format::Text)));
    }
    put_binary(&value, ty.as_ref(), out)?;
    Ok(Some((oid, Format::Binary)))
}

/// Appends a value in COPY's text format.
pub(super) fn put_copy_text(value: Option<Value<'_>>, out: &mut Vec<u8>) -> Result<(), String> {
    match value {
        None => out.extend_from_slice(b"\\N"),
        Some(Value::Text(text)) => put_escaped(without_nul(text)?.as_bytes(), out),
        Some(Value::Bytes(_)) => {
            let mut text = Vec::new();
            value.map_or(Ok(()), |value| put_text(&value, &mut text))?;
            put_escaped(&text, out);
        }
        // Nothing in them has to be escaped.
        Some(value) => put_text(&value, out)?,
    }
    Ok(())
}

/// The server's type that holds all values of the Arrow type that a value is of.
fn type_of(value: &Value<'_>) -> Type {
    match value {
        Value::Bool(_) => Type::BOOL,
        Value::Int(_, 2) => Type::INT2,
        Value::Int(_, 4) => Type::INT4,
        Value::Int(..) => Type::INT8,
        Value::Unsigned(_) | Value::Decimal(..) => Type::NUMERIC,
        Value::Float32(_) => Type::FLOAT4,
        Value::Float64(_) => Type::FLOAT8,
        Value::Text(_) => Type::TEXT,
        Value::Bytes(_) => Type::BYTEA,
        Value::Uuid(_) => Type::UUID,
        Value::Date(_) => Type::DATE,
        Value::Time(_) => Type::TIME,
        Value::Timestamp(_, false) => Type::TIMESTAMP,
        Value::Timestamp(_, true) => Type::TIMESTAMPTZ,
        Value::Duration(_) => Type::INTERVAL,
    }
}

/// Appends a value in the binary form of a type, or of its own.
pub(super) fn put_binary(value: &Value<'_>, ty: Option<&Type>, out: &mut Vec<u8>) -> Result<(), String> {
    let own = type_of(value);
    let ty = ty.unwrap_or(&own);
    match (value, ty) {
        (Value::Text(text), ty) if binary::is_text(ty) => {
            out.extend_from_slice(without_nul(text)?.as_bytes());
            return Ok(());
        }
        (Value::Int(number, _), &Type::INT2) => {
            let number = i16::try_from(*number).map_err(|_| out_of_range(number, ty))?;
            out.extend_from_slice(&number.to_be_bytes());
            return Ok(());
        }
        (Value::Int(number, _), &Type::INT4) => {
            let number = i32::try_from(*number).map_err(|_| out_of_range(number, ty))?;
            out.extend_from_slice(&number.to_be_bytes());
            return Ok(());
        }
        (Value::Int(number, _), &Type::INT8) => {
            out.extend_from_slice(&number.to_be_bytes());
            return Ok(());
        }
        _ if *ty == own && own != Type::NUMERIC => return put_own(value, out),
        _ => {}
    }
    // A column of another type reads the text, as it does in the text format.
    let mut text = Vec::new();
    put_text(value, &mut text)?;
    let text = String::from_utf8_lossy(&text);
    raised(binary::put(ty, &text, out))
}

fn out_of_range(number: &i64, ty: &Type) -> String {
    format!("{number} is out of the range of {ty}")
}

/// Appends the binary form of a value's own type, which is none of `text`, `numeric` and the integers.
fn put_own(value: &Value<'_>, out: &mut Vec<u8>) -> Result<(), String> {
    match *value {
        Value::Bool(is_true) => out.push(is_true.into()),
        Value::Float32(number) => out.extend_from_slice(&number.to_be_bytes()),
        Value::Float64(number) => out.extend_from_slice(&number.to_be_bytes()),
        Value::Bytes(bytes) | Value::Uuid(bytes) => out.extend_from_slice(bytes),
        Value::Date(days) => {
            let shifted = days.checked_sub(POSTGRES_EPOCH_DAYS).and_then(|days| i32::try_from(days).ok());
            // The last two stand for infinity.
            let shifted = shifted.filter(|days| *days != i32::MIN && *days != i32::MAX);
            let shifted = shifted.ok_or_else(|| format!("day {days} is out of the range of date"))?;
            out.extend_from_slice(&shifted.to_be_bytes());
        }
        Value::Time(micros) => out.extend_from_slice(&micros.to_be_bytes()),
        Value::Timestamp(micros, _) => {
            let shifted = micros.checked_sub(POSTGRES_EPOCH_DAYS * DAY);
            let shifted = shifted.filter(|micros| *micros != i64::MIN && *micros != i64::MAX);
            let shifted = shifted.ok_or("a time that is out of range")?;
            out.extend_from_slice(&shifted.to_be_bytes());
        }
        Value::Duration(micros) => {
            out.extend_from_slice(&micros.to_be_bytes());
            out.extend_from_slice(&[0; 8]); // days and months
        }
        Value::Int(..) | Value::Unsigned(_) | Value::Decimal(..) | Value::Text(_) => {
            return Err("a value without a form of its own".to_owned());
        }
    }
    Ok(())
}

/// Appends the server's text of a value.
fn put_text(value: &Value<'_>, out: &mut Vec<u8>) -> Result<(), String> {
    match *value {
        Value::Text(text) => out.extend_from_slice(without_nul(text)?.as_bytes()),
        Value::Bool(is_true) => out.push(if is_true { b't' } else { b'f' }),
        Value::Int(number, _) => put_number(number, out),
        Value::Unsigned(number) => put_number(number, out),
        Value::Decimal(bytes, scale) => put_decimal(bytes, scale, out),
        _ => {
            let (mut own, mut text) = (Vec::new(), String::new());
            put_own(value, &mut own)?;
            raised(binary::put_text(&type_of(value), &own, &mut text))?;
            out.extend_from_slice(text.as_bytes());
        }
    }
    Ok(())
}

fn put_number(number: impl std::fmt::Display, out: &mut Vec<u8>) {
    // Writing to memory does not fail.
    let _ = std::io::Write::write_fmt(out, format_args!("{number}"));
}

/// Appends an integer, whose lowest byte is the first, with its point moved.
fn put_decimal(bytes: &[u8], scale: i32, out: &mut Vec<u8>) {
    let is_negative = bytes.last().is_some_and(|byte| byte & 0x80 != 0);
    // The absolute value, by the rule of two's complement.
    let mut carry = u16::from(is_negative);
    let mut rest: Vec<u8> = Vec::with_capacity(bytes.len());
    for byte in bytes {
        let sum = u16::from(if is_negative { !byte } else { *byte }) + carry;
        rest.push(sum as u8);
        carry = sum >> 8;
    }
    let digits = digits_of(&rest);
    if is_negative {
        out.push(b'-');
    }
    let Ok(scale) = usize::try_from(scale) else {
        out.extend_from_slice(digits.as_bytes());
        out.resize(out.len() + scale.unsigned_abs() as usize, b'0');
        return;
    };
    let (whole, fraction) = digits.split_at(digits.len().saturating_sub(scale));
    out.extend_from_slice(if whole.is_empty() { b"0" } else { whole.as_bytes() });
    if scale > 0 {
        out.push(b'.');
        out.resize(out.len() + scale - fraction.len(), b'0');
        out.extend_from_slice(fraction.as_bytes());
    }
}

/// The decimal digits of a number without a sign.
fn digits_of(bytes: &[u8]) -> String {
    let mut text = String::new();
    if bytes.len() <= 16 {
        let mut wide = [0; 16];
        wide[..bytes.len()].copy_from_slice(bytes);
        let _ = write!(text, "{}", u128::from_le_bytes(wide));
        return text;
    }
    // From the highest byte on, as with paper: nine digits at a time.
    let mut rest = bytes.to_vec();
    let mut parts = Vec::new();
    while rest.iter().any(|byte| *byte != 0) {
        let mut left = 0_u64;
        for byte in rest.iter_mut().rev() {
            left = left << 8 | u64::from(*byte);
            *byte = (left / 1_000_000_000) as u8;
            left %= 1_000_000_000;
        }
        parts.push(left);
    }
    let _ = write!(text, "{}", parts.pop().unwrap_or_default());
    for part in parts.iter().rev() {
        let _ = write!(text, "{part:09}");
    }
    text
}

/// The text, in which the server has no NUL.
fn without_nul(text: &str) -> Result<&str, String> {
    if text.as_bytes().contains(&0) {
        return Err("text cannot contain NUL (0x00): write such data as binary".to_owned());
    }
    Ok(text)
}

fn raised<T>(done: PyResult<T>) -> Result<T, String> {
    done.map_err(|error| Python::attach(|py| error.value(py).to_string()))
}
