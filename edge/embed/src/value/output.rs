//! Results: what SQLite gives to PostgreSQL's text and binary formats, or an error where it does not fit the type
//! that was described.

use std::io::Write;

use onetrip_wire::pg::Format;
use rusqlite::types::ValueRef;

use super::array;
use super::decimal::Decimal;
use super::input::{check_integer, hex_digit, parse_bool, parse_float, utf8};
use super::moment::{self, Moment};
use crate::error::{SqlError, SqlResult};
use crate::types::{Base, SqlType};

/// Appends a value with its length in front; `scale` is the number of decimals that a numeric shows at least.
pub(crate) fn put_value(
    out: &mut Vec<u8>,
    ty: SqlType,
    scale: Option<u32>,
    format: Format,
    value: ValueRef<'_>,
) -> SqlResult<()> {
    if value == ValueRef::Null {
        out.extend_from_slice(&(-1i32).to_be_bytes());
        return Ok(());
    }
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    match format {
        Format::Text => put_text_form(out, ty, scale, value)?,
        Format::Binary if ty.is_array => array::json_to_binary(out, ty, text_of(ty, value)?)?,
        Format::Binary => put_binary(out, ty, scale, value)?,
    }
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

/// Appends a value's text form, without length.
pub(crate) fn put_text_form(
    out: &mut Vec<u8>,
    ty: SqlType,
    scale: Option<u32>,
    value: ValueRef<'_>,
) -> SqlResult<()> {
    if ty.is_array {
        return array::json_to_text(out, ty, text_of(ty, value)?);
    }
    match ty.base {
        Base::Bool => out.push(if bool_of(value)? { b't' } else { b'f' }),
        base if base.is_integer() => put_integer(out, integer_of(base, value)?),
        Base::Float4 => put_float(out, format_args!("{:e}", real_of(ty.base, value)? as f32), 6),
        Base::Float8 => put_float8(out, real_of(ty.base, value)?),
        Base::Numeric => decimal_of(ty, scale, value)?.put_text(out),
        Base::Date => {
            out.extend_from_slice(moment::date_text(moment_of(ty, value)?.days).as_str().as_bytes())
        }
        Base::Time => {
            let micros = moment::parse_time(text_of(ty, value)?)?;
            out.extend_from_slice(moment::time_text(micros).as_str().as_bytes());
        }
        Base::Timestamp => {
            let text = moment::timestamp_text(moment_of(ty, value)?.local_micros(), "");
            out.extend_from_slice(text.as_str().as_bytes());
        }
        Base::Timestamptz => {
            let text = moment::timestamp_text(moment_of(ty, value)?.utc_micros(), "+00");
            out.extend_from_slice(text.as_str().as_bytes());
        }
        Base::Bytea => {
            out.extend_from_slice(b"\\x");
            for byte in blob_of(value)? {
                const DIGITS: &[u8; 16] = b"0123456789abcdef";
                out.push(DIGITS[usize::from(byte >> 4)]);
                out.push(DIGITS[usize::from(byte & 15)]);
            }
        }
        _ => put_as_text(out, value)?,
    }
    Ok(())
}

fn put_binary(out: &mut Vec<u8>, ty: SqlType, scale: Option<u32>, value: ValueRef<'_>) -> SqlResult<()> {
    match ty.base {
        Base::Bool => out.push(u8::from(bool_of(value)?)),
        Base::Int2 => out.extend_from_slice(&(integer_of(ty.base, value)? as i16).to_be_bytes()),
        Base::Int8 => out.extend_from_slice(&integer_of(ty.base, value)?.to_be_bytes()),
        base if base.is_integer() => out.extend_from_slice(&(integer_of(base, value)? as u32).to_be_bytes()),
        Base::Float4 => out.extend_from_slice(&(real_of(ty.base, value)? as f32).to_be_bytes()),
        Base::Float8 => out.extend_from_slice(&real_of(ty.base, value)?.to_be_bytes()),
        Base::Numeric => decimal_of(ty, scale, value)?.put_binary(out),
        Base::Date => out.extend_from_slice(&(moment_of(ty, value)?.days as i32).to_be_bytes()),
        Base::Time => out.extend_from_slice(&moment::parse_time(text_of(ty, value)?)?.to_be_bytes()),
        Base::Timestamp => out.extend_from_slice(&moment_of(ty, value)?.local_micros().to_be_bytes()),
        Base::Timestamptz => out.extend_from_slice(&moment_of(ty, value)?.utc_micros().to_be_bytes()),
        Base::Interval => return Err(SqlError::unsupported("binary intervals are not supported")),
        Base::Bytea => out.extend_from_slice(blob_of(value)?),
        Base::Uuid => put_uuid(out, text_of(ty, value)?)?,
        Base::Jsonb => {
            out.push(1);
            put_as_text(out, value)?;
        }
        _ => put_as_text(out, value)?,
    }
    Ok(())
}

/// Any number or text as text; bytes are no text.
fn put_as_text(out: &mut Vec<u8>, value: ValueRef<'_>) -> SqlResult<()> {
    match value {
        ValueRef::Null => {}
        ValueRef::Integer(integer) => put_integer(out, integer),
        ValueRef::Real(real) => put_float8(out, real),
        ValueRef::Text(text) => out.extend_from_slice(utf8(text)?.as_bytes()),
        ValueRef::Blob(_) => {
            return Err(SqlError::new(
                "22P02",
                "the stored value is bytes, but its column is described as text",
            )
            .hint("Cast it: column::bytea."));
        }
    }
    Ok(())
}

/// Appends the digits.
pub(crate) fn put_integer(out: &mut Vec<u8>, integer: i64) {
    // 20 bytes hold i64::MIN; `write!` would go through the formatting machinery for each value.
    let mut digits = [0u8; 20];
    let mut start = digits.len();
    let mut rest = integer.unsigned_abs();
    loop {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if integer < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[start..]);
}

/// Appends the shortest text that reads back as the same double, in PostgreSQL's notation.
pub(crate) fn put_float8(out: &mut Vec<u8>, real: f64) {
    put_float(out, format_args!("{real:e}"), 15);
}

/// `scientific` is a number as Rust's `{:e}` prints it; exponents from `exponent_min` on are kept as such.
fn put_float(out: &mut Vec<u8>, scientific: std::fmt::Arguments<'_>, exponent_min: i32) {
    let text = super::InlineText::format(scientific);
    let text = text.as_str();
    let Some((mantissa, exponent)) = text.split_once('e') else {
        let name: &[u8] = match text {
            "NaN" => b"NaN",
            "-inf" => b"-Infinity",
            _ => b"Infinity",
        };
        out.extend_from_slice(name);
        return;
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= exponent_min {
        let sign = if exponent < 0 { '-' } else { '+' };
        // Writing to a Vec cannot fail.
        let _ = write!(out, "{mantissa}e{sign}{:02}", exponent.unsigned_abs());
        return;
    }
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    out.extend_from_slice(sign.as_bytes());
    let digits = mantissa.bytes().filter(|byte| *byte != b'.');
    let digit_count = digits.clone().count() as i32;
    if exponent < 0 {
        out.extend_from_slice(b"0.");
        out.extend(std::iter::repeat_n(b'0', (-exponent - 1) as usize));
        out.extend(digits);
    } else {
        for (index, digit) in digits.enumerate() {
            if index as i32 == exponent + 1 {
                out.push(b'.');
            }
            out.push(digit);
        }
        out.extend(std::iter::repeat_n(b'0', (exponent + 1 - digit_count).max(0) as usize));
    }
}

fn misfit(ty: SqlType, value: ValueRef<'_>) -> SqlError {
    let mut shown = Vec::new();
    match value {
        ValueRef::Blob(_) => shown.extend_from_slice(b"(bytes)"),
        other => {
            let _ = put_as_text(&mut shown, other);
        }
    }
    SqlError::invalid_text(ty.base.facts().sql_name, &String::from_utf8_lossy(&shown))
        .hint("SQLite stored a value that does not fit the column's declared type.")
}

fn text_of<'v>(ty: SqlType, value: ValueRef<'v>) -> SqlResult<&'v str> {
    match value {
        ValueRef::Text(text) => utf8(text),
        other => Err(misfit(ty, other)),
    }
}

fn bool_of(value: ValueRef<'_>) -> SqlResult<bool> {
    match value {
        ValueRef::Integer(0) => Ok(false),
        ValueRef::Integer(1) => Ok(true),
        ValueRef::Text(text) => parse_bool(utf8(text)?),
        other => Err(misfit(SqlType::BOOL, other)),
    }
}

fn integer_of(base: Base, value: ValueRef<'_>) -> SqlResult<i64> {
    let integer = match value {
        ValueRef::Integer(integer) => integer,
        // 2^63 is the first double beyond i64.
        ValueRef::Real(real) if real.fract() == 0.0 && real.abs() < 9.223_372_036_854_775e18 => real as i64,
        ValueRef::Text(text) => utf8(text)?.trim().parse().map_err(|_| misfit(SqlType::of(base), value))?,
        other => return Err(misfit(SqlType::of(base), other)),
    };
    check_integer(base, integer)
}

fn real_of(base: Base, value: ValueRef<'_>) -> SqlResult<f64> {
    let real = match value {
        ValueRef::Integer(integer) => integer as f64,
        ValueRef::Real(real) => real,
        ValueRef::Text(text) => parse_float(base, utf8(text)?)?,
        other => return Err(misfit(SqlType::of(base), other)),
    };
    if base == Base::Float4 && real.is_finite() && (real as f32).is_infinite() {
        return Err(SqlError::out_of_range("real"));
    }
    Ok(real)
}

fn decimal_of(ty: SqlType, scale: Option<u32>, value: ValueRef<'_>) -> SqlResult<Decimal> {
    let decimal = match value {
        ValueRef::Integer(integer) => Decimal::of_integer(integer),
        ValueRef::Real(real) => Decimal::of_real(real)?,
        ValueRef::Text(text) => Decimal::parse(utf8(text)?).map_err(|_| misfit(ty, value))?,
        other => return Err(misfit(ty, other)),
    };
    let digits = decimal.fraction_digits();
    match (ty.limits(), scale) {
        (Some((_, declared)), _) if digits > declared => Err(SqlError::out_of_range(&ty.sql_name())
            .hint("SQLite stored more decimals than the column's declared type has.")),
        (Some((precision, declared)), _) => decimal.fit(precision, declared),
        (None, Some(shown)) => decimal.rescale(shown.max(digits)),
        (None, None) => Ok(decimal),
    }
}

fn moment_of(ty: SqlType, value: ValueRef<'_>) -> SqlResult<Moment> {
    Moment::parse(text_of(ty, value)?, ty.base.facts().sql_name)
}

fn blob_of(value: ValueRef<'_>) -> SqlResult<&[u8]> {
    match value {
        ValueRef::Blob(blob) => Ok(blob),
        other => Err(misfit(SqlType::of(Base::Bytea), other)),
    }
}

fn put_uuid(out: &mut Vec<u8>, text: &str) -> SqlResult<()> {
    let start = out.len();
    let mut high = None;
    for byte in text.bytes().filter(|byte| *byte != b'-') {
        let digit = hex_digit(byte).ok_or_else(|| SqlError::invalid_text("uuid", text))?;
        match high.take() {
            None => high = Some(digit),
            Some(high) => out.push(high << 4 | digit),
        }
    }
    if out.len() - start == 16 && high.is_none() { Ok(()) } else { Err(SqlError::invalid_text("uuid", text)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(ty: SqlType, value: ValueRef<'_>) -> Result<String, &'static str> {
        let mut out = Vec::new();
        put_text_form(&mut out, ty, None, value).map_err(|error| error.sqlstate)?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn floats_print_as_postgresql_prints_them() {
        let float8 = |real| text(SqlType::of(Base::Float8), ValueRef::Real(real)).unwrap();
        for (real, wanted) in [
            (1.0, "1"),
            (0.1, "0.1"),
            (-12.5, "-12.5"),
            (1e15, "1e+15"),
            (123_456_789_012_345.0, "123456789012345"),
            (1e-5, "1e-05"),
            (0.0001, "0.0001"),
            (1.5e300, "1.5e+300"),
            (100.0, "100"),
            (-0.0, "-0"),
            (f64::INFINITY, "Infinity"),
        ] {
            assert_eq!(float8(real), wanted);
        }
        assert_eq!(text(SqlType::of(Base::Float4), ValueRef::Real(f64::from(0.1f32))).unwrap(), "0.1");
        assert_eq!(text(SqlType::of(Base::Float4), ValueRef::Real(1_000_000.0)).unwrap(), "1e+06");
    }

    #[test]
    fn a_value_that_does_not_fit_its_type_is_an_error_and_never_another_value() {
        assert_eq!(text(SqlType::INT4, ValueRef::Integer(1 << 40)), Err("22003"));
        assert_eq!(text(SqlType::INT4, ValueRef::Text(b"abc")), Err("22P02"));
        assert_eq!(text(SqlType::INT8, ValueRef::Real(1.5)), Err("22P02"));
        assert_eq!(text(SqlType::BOOL, ValueRef::Integer(7)), Err("22P02"));
        assert_eq!(text(SqlType::TEXT, ValueRef::Blob(b"abc")), Err("22P02"));
        assert_eq!(text(SqlType::TEXT, ValueRef::Text(b"\xff")), Err("22021"));
        assert_eq!(text(SqlType::of(Base::Timestamp), ValueRef::Integer(0)), Err("22P02"));
        assert_eq!(text(SqlType::of(Base::Float4), ValueRef::Real(1e300)), Err("22003"));
        let money = SqlType::of_words("numeric", &[8, 2], false).unwrap();
        assert_eq!(text(money, ValueRef::Real(1.239)), Err("22003"));
        assert_eq!(text(money, ValueRef::Real(12.5)).as_deref(), Ok("12.50"));
        assert_eq!(text(money, ValueRef::Integer(10_000_000)), Err("22003"));
    }
}
