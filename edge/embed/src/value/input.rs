//! Parameters and literals: PostgreSQL's text and binary input to what SQLite stores.

use onetrip_wire::pg::Format;

use super::array;
use super::decimal::{Decimal, StoredDecimal};
use super::moment::{self, DAY_MICROS, Moment};
use super::{InlineText, Stored};
use crate::error::{SqlError, SqlResult};
use crate::types::{Base, SqlType};

/// Reads a parameter of this type.
pub(crate) fn decode(ty: SqlType, format: Format, bytes: &[u8]) -> SqlResult<Stored<'_>> {
    match format {
        Format::Text => read_text(ty, utf8(bytes)?),
        Format::Binary if ty.is_array => array::binary_to_json(ty, bytes).map(Stored::OwnedText),
        Format::Binary => read_binary(ty, bytes),
    }
}

/// Checks that bytes are text as PostgreSQL takes it.
pub(crate) fn utf8(bytes: &[u8]) -> SqlResult<&str> {
    if memchr::memchr(0, bytes).is_some() {
        return Err(SqlError::new("22021", "invalid byte sequence for encoding \"UTF8\": 0x00"));
    }
    std::str::from_utf8(bytes)
        .map_err(|_| SqlError::new("22021", "invalid byte sequence for encoding \"UTF8\""))
}

/// Reads a type's text form.
pub(crate) fn read_text(ty: SqlType, text: &str) -> SqlResult<Stored<'_>> {
    if ty.is_array {
        return array::text_to_json(ty, text).map(Stored::OwnedText);
    }
    Ok(match ty.base {
        Base::Bool => Stored::Integer(i64::from(parse_bool(text)?)),
        base if base.is_integer() => {
            let integer = text.trim().parse().map_err(|_| integer_error(base, text))?;
            Stored::Integer(check_integer(base, integer)?)
        }
        Base::Float4 | Base::Float8 => Stored::Real(parse_float(ty.base, text)?),
        Base::Numeric => stored_decimal(ty, Decimal::parse(text)?)?,
        Base::Date => Stored::Short(moment::date_text(Moment::parse(text, "date")?.days)),
        Base::Time => Stored::Short(moment::time_text(round_micros(ty, moment::parse_time(text)?))),
        Base::Timestamp => {
            let micros = Moment::parse(text, "timestamp")?.local_micros();
            Stored::Short(moment::timestamp_text(round_micros(ty, micros), ""))
        }
        Base::Timestamptz => {
            let micros = Moment::parse(text, "timestamp with time zone")?.utc_micros();
            Stored::Short(moment::timestamp_text(round_micros(ty, micros), "+00"))
        }
        Base::Bytea => Stored::OwnedBlob(parse_bytea(text)?),
        Base::Uuid => Stored::Short(parse_uuid(text)?),
        Base::Varchar | Base::Bpchar => Stored::Text(fit_length(ty, text)?),
        _ => Stored::Text(text),
    })
}

fn read_binary(ty: SqlType, bytes: &[u8]) -> SqlResult<Stored<'_>> {
    Ok(match ty.base {
        Base::Bool => Stored::Integer(i64::from(fixed::<1>(bytes)?[0] != 0)),
        Base::Int2 => Stored::Integer(i64::from(i16::from_be_bytes(fixed(bytes)?))),
        Base::Int4 => Stored::Integer(i64::from(i32::from_be_bytes(fixed(bytes)?))),
        Base::Int8 => Stored::Integer(i64::from_be_bytes(fixed(bytes)?)),
        Base::Oid | Base::Regclass | Base::Regtype | Base::Regproc => {
            Stored::Integer(i64::from(u32::from_be_bytes(fixed(bytes)?)))
        }
        Base::Float4 => Stored::Real(f64::from(f32::from_be_bytes(fixed(bytes)?))),
        Base::Float8 => Stored::Real(f64::from_be_bytes(fixed(bytes)?)),
        Base::Numeric => stored_decimal(ty, Decimal::from_binary(bytes)?)?,
        Base::Date => {
            let days = i64::from(i32::from_be_bytes(fixed(bytes)?));
            check_moment(days.saturating_mul(DAY_MICROS))?;
            Stored::Short(moment::date_text(days))
        }
        Base::Time => {
            let micros = i64::from_be_bytes(fixed(bytes)?);
            if !(0..=DAY_MICROS).contains(&micros) {
                return Err(SqlError::new("22008", "time out of range"));
            }
            Stored::Short(moment::time_text(round_micros(ty, micros)))
        }
        Base::Timestamp | Base::Timestamptz => {
            let micros = i64::from_be_bytes(fixed(bytes)?);
            check_moment(micros)?;
            let micros = round_micros(ty, micros);
            let suffix = if ty.base == Base::Timestamptz { "+00" } else { "" };
            Stored::Short(moment::timestamp_text(micros, suffix))
        }
        Base::Interval => return Err(SqlError::unsupported("binary intervals are not supported")),
        Base::Bytea => Stored::Blob(bytes),
        Base::Uuid => Stored::Short(uuid_text(fixed(bytes)?)),
        Base::Jsonb => match bytes {
            [1, text @ ..] => Stored::Text(utf8(text)?),
            _ => return Err(SqlError::new("22P03", "unsupported jsonb version number")),
        },
        Base::Varchar | Base::Bpchar => Stored::Text(fit_length(ty, utf8(bytes)?)?),
        _ => Stored::Text(utf8(bytes)?),
    })
}

fn fixed<const N: usize>(bytes: &[u8]) -> SqlResult<[u8; N]> {
    bytes.try_into().map_err(|_| SqlError::new("22P03", "incorrect binary data format in bind parameter"))
}

/// Rounds a numeric to its declared precision and scale, then to what SQLite stores.
pub(crate) fn stored_decimal(ty: SqlType, decimal: Decimal) -> SqlResult<Stored<'static>> {
    let fitted = match ty.limits() {
        Some((precision, scale)) => decimal.fit(precision, scale)?,
        None => decimal,
    };
    Ok(match fitted.stored()? {
        StoredDecimal::Integer(integer) => Stored::Integer(integer),
        StoredDecimal::Real(real) => Stored::Real(real),
        StoredDecimal::NaN => Stored::Text("NaN"),
    })
}

pub(crate) fn parse_bool(text: &str) -> SqlResult<bool> {
    let word = text.trim().to_ascii_lowercase();
    let is_prefix = |whole: &str, len_min: usize| word.len() >= len_min && whole.starts_with(word.as_str());
    if is_prefix("true", 1) || is_prefix("yes", 1) || word == "on" || word == "1" {
        Ok(true)
    } else if is_prefix("false", 1) || is_prefix("no", 1) || is_prefix("off", 2) || word == "0" {
        Ok(false)
    } else {
        Err(SqlError::invalid_text("boolean", text))
    }
}

fn integer_error(base: Base, text: &str) -> SqlError {
    let trimmed = text.trim();
    let digits = trimmed.strip_prefix(['-', '+']).unwrap_or(trimmed);
    let name = base.facts().sql_name;
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        SqlError::new("22003", format!("value \"{trimmed}\" is out of range for type {name}"))
    } else {
        SqlError::invalid_text(name, text)
    }
}

/// Refuses an integer that the type is too small for.
pub(crate) fn check_integer(base: Base, integer: i64) -> SqlResult<i64> {
    let fits = match base {
        Base::Int2 => i16::try_from(integer).is_ok(),
        Base::Int4 => i32::try_from(integer).is_ok(),
        Base::Int8 => true,
        _ => u32::try_from(integer).is_ok(),
    };
    if fits { Ok(integer) } else { Err(SqlError::out_of_range(base.facts().sql_name)) }
}

pub(crate) fn parse_float(base: Base, text: &str) -> SqlResult<f64> {
    let name = base.facts().sql_name;
    let word = text.trim();
    let invalid = || SqlError::invalid_text(name, text);
    // Rust also reads words such as "infinity"; the rest of its syntax is PostgreSQL's.
    let real: f64 = match base {
        Base::Float4 => f64::from(word.parse::<f32>().map_err(|_| invalid())?),
        _ => word.parse().map_err(|_| invalid())?,
    };
    let names_infinity = word.bytes().any(|byte| matches!(byte, b'i' | b'I'));
    if real.is_infinite() && !names_infinity {
        return Err(SqlError::new("22003", format!("\"{word}\" is out of range for type {name}")));
    }
    if real.is_nan() {
        // SQLite turns a NaN into NULL, which would be another value.
        return Err(SqlError::unsupported("NaN cannot be stored in a floating-point column"));
    }
    Ok(real)
}

fn round_micros(ty: SqlType, micros: i64) -> i64 {
    let Some((digits, _)) = ty.limits() else { return micros };
    let unit = 10i64.pow(6 - digits.min(6));
    micros.saturating_add(unit / 2).div_euclid(unit) * unit
}

fn check_moment(micros: i64) -> SqlResult<()> {
    // 4713 BC to AD 294276, PostgreSQL's own range; years before 1 have no stored form here.
    let first = moment::days_of(1, 1, 1) * DAY_MICROS;
    let last = moment::days_of(294_277, 1, 1) * DAY_MICROS;
    if (first..last).contains(&micros) {
        Ok(())
    } else {
        Err(SqlError::new("22008", "timestamp out of range"))
    }
}

/// PostgreSQL's hex and escape formats.
fn parse_bytea(text: &str) -> SqlResult<Vec<u8>> {
    let invalid = || SqlError::invalid_text("bytea", text);
    if let Some(hex) = text.strip_prefix("\\x") {
        let digits: Vec<u8> = hex.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        if digits.len() % 2 != 0 {
            return Err(SqlError::new("22023", "invalid hexadecimal data: odd number of digits"));
        }
        return digits
            .chunks_exact(2)
            .map(|pair| Some((hex_digit(pair[0])? << 4) | hex_digit(pair[1])?))
            .collect::<Option<_>>()
            .ok_or_else(|| SqlError::new("22023", "invalid hexadecimal digit"));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        rest = match (byte, behind) {
            (b'\\', [b'\\', behind @ ..]) => {
                bytes.push(b'\\');
                behind
            }
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', behind @ ..]) => {
                bytes.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                behind
            }
            (b'\\', _) => return Err(invalid()),
            _ => {
                bytes.push(byte);
                behind
            }
        };
    }
    Ok(bytes)
}

pub(crate) fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

fn parse_uuid(text: &str) -> SqlResult<InlineText> {
    let invalid = || SqlError::invalid_text("uuid", text);
    let inner = text.trim().trim_start_matches('{').trim_end_matches('}');
    let mut bytes = [0u8; 16];
    let mut count = 0;
    for byte in inner.bytes().filter(|byte| *byte != b'-') {
        let digit = hex_digit(byte).ok_or_else(invalid)?;
        let slot = bytes.get_mut(count / 2).ok_or_else(invalid)?;
        *slot = *slot << 4 | digit;
        count += 1;
    }
    if count == 32 { Ok(uuid_text(bytes)) } else { Err(invalid()) }
}

pub(crate) fn uuid_text(bytes: [u8; 16]) -> InlineText {
    use std::fmt::Write;
    let mut text = InlineText::new();
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            let _ = text.write_char('-');
        }
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Refuses text that is longer than declared, but for blanks at its end, which are cut.
pub(crate) fn fit_length(ty: SqlType, text: &str) -> SqlResult<&str> {
    let Some((length_max, _)) = ty.limits() else { return Ok(text) };
    match text.char_indices().nth(length_max as usize) {
        None => Ok(text),
        Some((end, _)) if text[end..].bytes().all(|byte| byte == b' ') => Ok(&text[..end]),
        Some(_) => Err(SqlError::new("22001", format!("value too long for type {}", ty.sql_name()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text_of(base: Base, text: &str) -> Result<String, &'static str> {
        read_text(SqlType::of(base), text).map(|stored| format!("{stored:?}")).map_err(|error| error.sqlstate)
    }

    #[test]
    fn text_input_follows_postgresql() {
        assert_eq!(text_of(Base::Bool, "t").unwrap(), "Integer(1)");
        assert_eq!(text_of(Base::Bool, "o"), Err("22P02"));
        assert_eq!(text_of(Base::Int2, "32768"), Err("22003"));
        assert_eq!(text_of(Base::Int4, "2147483648"), Err("22003"));
        assert_eq!(text_of(Base::Int4, "five"), Err("22P02"));
        assert_eq!(text_of(Base::Int8, "99999999999999999999"), Err("22003"));
        assert_eq!(text_of(Base::Float8, "1e400"), Err("22003"));
        assert_eq!(text_of(Base::Bytea, "\\x6f7A").unwrap(), "OwnedBlob([111, 122])");
        assert_eq!(text_of(Base::Bytea, "a\\001").unwrap(), "OwnedBlob([97, 1])");
        assert_eq!(
            text_of(Base::Uuid, "{A0EEBC999C0B4EF8BB6D6BB9BD380A11}").unwrap(),
            "Short(\"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11\")"
        );
        let short = SqlType { modifier: 4 + 3, ..SqlType::of(Base::Varchar) };
        assert!(matches!(read_text(short, "äbc  "), Ok(Stored::Text("äbc"))));
        assert_eq!(read_text(short, "abcd").unwrap_err().sqlstate, "22001");
    }

    proptest! {
        #[test]
        fn no_bytes_panic(index in 0usize..crate::types::TYPES.len(), bytes in proptest::collection::vec(any::<u8>(), 0..24)) {
            let ty = SqlType::of(crate::types::TYPES[index].base);
            for ty in [ty, SqlType { is_array: true, ..ty }] {
                let _ = decode(ty, Format::Binary, &bytes);
                let _ = decode(ty, Format::Text, &bytes);
            }
        }
    }
}
