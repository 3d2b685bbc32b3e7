//! Integers, floats and `numeric`.

use std::fmt::Write;
use std::str::FromStr;

use onetrip_client::types::Type;

pub(super) fn is_number(ty: &Type) -> bool {
    const INTEGERS: [Type; 4] = [Type::INT2, Type::INT4, Type::INT8, Type::OID];
    INTEGERS.contains(ty) || [Type::FLOAT4, Type::FLOAT8, Type::NUMERIC].contains(ty)
}

pub(super) fn put(ty: &Type, text: &str, out: &mut Vec<u8>) -> Option<()> {
    fn parsed<T: FromStr>(text: &str) -> Option<T> {
        text.trim().parse().ok()
    }
    match *ty {
        Type::INT2 => out.extend(parsed::<i16>(text)?.to_be_bytes()),
        Type::INT4 => out.extend(parsed::<i32>(text)?.to_be_bytes()),
        Type::INT8 => out.extend(parsed::<i64>(text)?.to_be_bytes()),
        Type::FLOAT4 => {
            let value: f32 = parsed(text)?;
            is_in_range(text, value.into()).then(|| out.extend(value.to_be_bytes()))?;
        }
        Type::FLOAT8 => {
            let value: f64 = parsed(text)?;
            is_in_range(text, value).then(|| out.extend(value.to_be_bytes()))?;
        }
        Type::NUMERIC => put_numeric(text.trim(), out)?,
        _ => out.extend(parsed::<u32>(text)?.to_be_bytes()),
    }
    Some(())
}

/// Whether a number neither is too large for its type, which makes it infinite, nor so small that nothing is left.
fn is_in_range(text: &str, value: f64) -> bool {
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    let has_digit = mantissa.bytes().any(|byte| (b'1'..=b'9').contains(&byte));
    !has_digit || (value.is_finite() && value != 0.0)
}

pub(super) fn put_text(ty: &Type, bytes: &[u8], out: &mut String) -> Option<()> {
    match *ty {
        Type::INT2 => write!(out, "{}", i16::from_be_bytes(bytes.try_into().ok()?)).ok(),
        Type::INT4 => write!(out, "{}", i32::from_be_bytes(bytes.try_into().ok()?)).ok(),
        Type::INT8 => write!(out, "{}", i64::from_be_bytes(bytes.try_into().ok()?)).ok(),
        Type::FLOAT4 => {
            let value = f32::from_be_bytes(bytes.try_into().ok()?);
            put_float(&shortest(value), value.into(), FLOAT4_DIGITS, out)
        }
        Type::FLOAT8 => {
            let value = f64::from_be_bytes(bytes.try_into().ok()?);
            put_float(&format!("{value:e}"), value, FLOAT8_DIGITS, out)
        }
        Type::NUMERIC => put_numeric_text(bytes, out),
        _ => write!(out, "{}", u32::from_be_bytes(bytes.try_into().ok()?)).ok(),
    }
}

/// Digits behind the first that tell any `float4` from all others.
const FLOAT4_DIGITS_MAX: usize = 9;

/// From these powers of ten on, floats are written with an exponent.
const FLOAT4_DIGITS: i32 = 6;
const FLOAT8_DIGITS: i32 = 15;
/// Below this one too.
const SMALL_EXPONENT: i32 = -4;

/// The shortest digits that lie nearer to the value than to its neighbours. Where they lie in the middle between two,
/// PostgreSQL takes more of them, though reading would round to the right one.
fn shortest(value: f32) -> String {
    let short = format!("{value:e}");
    let next = |step: i32| f64::from(f32::from_bits(value.to_bits().wrapping_add_signed(step)));
    let middles = [next(-1), next(1)].map(|other| (other + f64::from(value)) / 2.0);
    let is_between = |text: &str| text.parse().is_ok_and(|parsed: f64| middles.contains(&parsed));
    if value == 0.0 || !value.is_finite() || !is_between(&short) {
        return short;
    }
    let digits = |count: usize| format!("{value:.count$e}");
    let fits = |text: &String| text.parse() == Ok(value) && !is_between(text);
    (0..FLOAT4_DIGITS_MAX).map(digits).find(fits).unwrap_or(short)
}

/// A number without an exponent.
fn plain(mantissa: &str, exponent: i32) -> String {
    let (sign, unsigned) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let digits = unsigned.replace('.', "");
    match usize::try_from(exponent) {
        Ok(whole) if whole + 1 >= digits.len() => format!("{sign}{digits:0<width$}", width = whole + 1),
        Ok(whole) => format!("{sign}{}.{}", &digits[..=whole], &digits[whole + 1..]),
        Err(_) => format!(
            "{sign}0.{:0>width$}",
            digits,
            width = digits.len() - 1 + exponent.unsigned_abs() as usize
        ),
    }
}

/// Written with an exponent, or without where it is neither large nor small.
fn put_float(written: &str, wide: f64, digits: i32, out: &mut String) -> Option<()> {
    if !wide.is_finite() {
        out.push_str(match () {
            () if wide.is_nan() => "NaN",
            () if wide > 0.0 => "Infinity",
            () => "-Infinity",
        });
        return Some(());
    }
    let (mantissa, exponent) = written.split_once('e')?;
    let exponent: i32 = exponent.parse().ok()?;
    if (SMALL_EXPONENT..digits).contains(&exponent) {
        return write!(out, "{}", plain(mantissa, exponent)).ok();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    write!(out, "{mantissa}e{sign}{:02}", exponent.abs()).ok()
}

const NAN: u16 = 0xC000;
const INFINITY: u16 = 0xD000;
const NEGATIVE_INFINITY: u16 = 0xF000;
const NEGATIVE: u16 = 0x4000;

/// Digits of ten in one of ten thousand.
const GROUP: i32 = 4;

/// Most digits behind the point that `numeric` can show.
const SCALE_MAX: i32 = 16_383;

/// Number of digits to base 10,000, weight of the first, sign, digits to show behind the point, digits.
fn put_numeric(text: &str, out: &mut Vec<u8>) -> Option<()> {
    let (is_negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let special = match unsigned.to_ascii_lowercase().as_str() {
        "nan" => Some(NAN),
        "infinity" | "inf" if is_negative => Some(NEGATIVE_INFINITY),
        "infinity" | "inf" => Some(INFINITY),
        _ => None,
    };
    if let Some(sign) = special {
        out.extend([0, 0, sign, 0].iter().flat_map(|part: &u16| part.to_be_bytes()));
        return Some(());
    }
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (unsigned, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let scale = i32::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
    let groups = groups_of(&digits, scale);
    let (weight, groups) = trimmed(groups, scale)?;
    let sign = if is_negative && !groups.is_empty() { NEGATIVE } else { 0 };
    let shown = scale.max(0);
    if shown > SCALE_MAX {
        return None;
    }
    out.extend(u16::try_from(groups.len()).ok()?.to_be_bytes());
    out.extend(i16::try_from(weight).ok()?.to_be_bytes());
    out.extend(sign.to_be_bytes());
    out.extend((shown as u16).to_be_bytes());
    out.extend(groups.iter().flat_map(|group| group.to_be_bytes()));
    Some(())
}

/// The groups of a number whose last digit is `scale` places behind the point, the last group first.
fn groups_of(digits: &[u8], scale: i32) -> Vec<u16> {
    // Zeros behind the last digit fill its group.
    let fill = (-scale.rem_euclid(GROUP)).rem_euclid(GROUP) as usize;
    let filled: Vec<u8> = digits.iter().copied().chain(std::iter::repeat_n(b'0', fill)).collect();
    let group = |group: &[u8]| group.iter().fold(0, |value, digit| value * 10 + u16::from(digit - b'0'));
    filled.rchunks(GROUP as usize).map(group).collect()
}

/// The weight of the first group that is not zero, and the groups from there to the last that is not zero.
fn trimmed(mut groups: Vec<u16>, scale: i32) -> Option<(i32, Vec<u16>)> {
    let last = -scale.div_euclid(GROUP) - i32::from(scale.rem_euclid(GROUP) > 0);
    while groups.last() == Some(&0) {
        groups.pop();
    }
    let weight = last.checked_add(i32::try_from(groups.len()).ok()?)? - 1;
    groups.reverse();
    while groups.last() == Some(&0) {
        groups.pop();
    }
    Some(if groups.is_empty() { (0, groups) } else { (weight, groups) })
}

fn put_numeric_text(bytes: &[u8], out: &mut String) -> Option<()> {
    let mut parts = bytes.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
    let (count, weight, sign, scale) = (parts.next()?, parts.next()? as i16, parts.next()?, parts.next()?);
    let groups: Vec<u16> = parts.collect();
    match sign {
        NAN => out.push_str("NaN"),
        INFINITY => out.push_str("Infinity"),
        NEGATIVE_INFINITY => out.push_str("-Infinity"),
        _ if groups.len() != usize::from(count) => return None,
        _ => {
            let group = |weight_of: i32| {
                let at = usize::try_from(i32::from(weight) - weight_of).ok();
                at.and_then(|at| groups.get(at)).copied().unwrap_or(0)
            };
            if sign == NEGATIVE {
                out.push('-');
            }
            write!(out, "{}", group(i32::from(weight).max(0))).ok()?;
            for weight in (0..i32::from(weight)).rev() {
                write!(out, "{:04}", group(weight)).ok()?;
            }
            if scale > 0 {
                let end = out.len() + 1 + usize::from(scale);
                out.push('.');
                let mut weight = -1;
                while out.len() < end {
                    write!(out, "{:04}", group(weight)).ok()?;
                    weight -= 1;
                }
                out.truncate(end);
            }
        }
    }
    Some(())
}
