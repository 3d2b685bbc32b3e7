//! Ranges: what its bounds are, then each bound that there is. Multiranges: how many ranges, then each of them.

use onetrip_client::types::{Kind, Type};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The bits that say what the bounds are; `RANGE_EMPTY` and so on in PostgreSQL's `rangetypes.h`.
const EMPTY: u8 = 1;
const LOWER_INCLUDED: u8 = 2;
const UPPER_INCLUDED: u8 = 4;
const LOWER_INFINITE: u8 = 8;
const UPPER_INFINITE: u8 = 16;

/// The type of the bounds.
pub(super) fn subtype(ty: &Type) -> Option<&Type> {
    match ty.kind() {
        Kind::Range(subtype) => Some(subtype),
        Kind::Multirange(range) => subtype_of_range(range),
        _ => None,
    }
}

fn subtype_of_range(range: &Type) -> Option<&Type> {
    // The types that every server has name the bounds' type here, and others the range.
    if let Kind::Range(subtype) = range.kind() { Some(subtype) } else { Some(range) }
}

/// Appends the binary form of a range or multirange.
pub(super) fn put(ty: &Type, subtype: &Type, text: &str, out: &mut Vec<u8>) -> PyResult<()> {
    let wrong = || PyValueError::new_err(format!("{text:?} is no {ty}"));
    let mut rest = text;
    if matches!(ty.kind(), Kind::Range(_)) {
        put_range(subtype, &mut rest, out)?.ok_or_else(wrong)?;
        return if rest.is_empty() { Ok(()) } else { Err(wrong()) };
    }
    rest = rest.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).ok_or_else(wrong)?;
    let start = out.len();
    let mut count = 0_i32;
    out.extend(count.to_be_bytes());
    while !rest.is_empty() {
        if count > 0 {
            rest = rest.strip_prefix(',').ok_or_else(wrong)?;
        }
        with_length(out, |out| put_range(subtype, &mut rest, out)?.ok_or_else(wrong))?;
        count += 1;
    }
    out[start..start + 4].copy_from_slice(&count.to_be_bytes());
    Ok(())
}

/// Takes a range off the front of some text.
fn put_range(subtype: &Type, rest: &mut &str, out: &mut Vec<u8>) -> PyResult<Option<()>> {
    if let Some(after) = rest.strip_prefix("empty") {
        *rest = after;
        out.push(EMPTY);
        return Ok(Some(()));
    }
    let mut flags = match rest.chars().next() {
        Some('[') => LOWER_INCLUDED,
        Some('(') => 0,
        _ => return Ok(None),
    };
    *rest = &rest[1..];
    let Some((lower, ',', after)) = bound(rest) else { return Ok(None) };
    let Some((upper, end, after)) = bound(after) else { return Ok(None) };
    *rest = after;
    match end {
        ']' => flags |= UPPER_INCLUDED,
        ')' => {}
        _ => return Ok(None),
    }
    if lower.is_none() {
        flags = flags & !LOWER_INCLUDED | LOWER_INFINITE;
    }
    if upper.is_none() {
        flags = flags & !UPPER_INCLUDED | UPPER_INFINITE;
    }
    out.push(flags);
    for text in [lower, upper].into_iter().flatten() {
        with_length(out, |out| super::put(subtype, &text, out))?;
    }
    Ok(Some(()))
}

/// The text of a bound, `None` for an infinite one; what ends it; what follows.
fn bound(text: &str) -> Option<(Option<String>, char, &str)> {
    let mut found = String::new();
    let (mut is_quoted, mut was_quoted) = (false, false);
    let mut signs = text.char_indices();
    while let Some((at, sign)) = signs.next() {
        match sign {
            '\\' => found.push(signs.next()?.1),
            '"' if is_quoted && signs.as_str().starts_with('"') => found.push(signs.next()?.1),
            '"' => (is_quoted, was_quoted) = (!is_quoted, true),
            ',' | ')' | ']' if !is_quoted => {
                let is_infinite = found.is_empty() && !was_quoted;
                return Some(((!is_infinite).then_some(found), sign, &text[at + 1..]));
            }
            sign => found.push(sign),
        }
    }
    None
}

fn with_length(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>) -> PyResult<()>) -> PyResult<()> {
    let start = out.len();
    out.extend([0; 4]);
    write(out)?;
    let length = i32::try_from(out.len() - start - 4);
    let length = length.map_err(|_| PyValueError::new_err("a bound is too long"))?;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

/// Appends the text of a range or multirange in binary.
pub(super) fn put_text(ty: &Type, subtype: &Type, bytes: &[u8], out: &mut String) -> PyResult<()> {
    let wrong = || PyValueError::new_err(format!("{} bytes that are no {ty}", bytes.len()));
    if matches!(ty.kind(), Kind::Range(_)) {
        return put_range_text(subtype, bytes, out)?.ok_or_else(wrong);
    }
    let (count, mut rest) = bytes.split_first_chunk::<4>().ok_or_else(wrong)?;
    out.push('{');
    for at in 0..i32::from_be_bytes(*count) {
        let (range, after) = sized(rest).ok_or_else(wrong)?;
        rest = after;
        if at > 0 {
            out.push(',');
        }
        put_range_text(subtype, range, out)?.ok_or_else(wrong)?;
    }
    out.push('}');
    if rest.is_empty() { Ok(()) } else { Err(wrong()) }
}

fn put_range_text(subtype: &Type, bytes: &[u8], out: &mut String) -> PyResult<Option<()>> {
    let Some((flags, mut rest)) = bytes.split_first() else { return Ok(None) };
    if flags & EMPTY != 0 {
        out.push_str("empty");
        return Ok(rest.is_empty().then_some(()));
    }
    out.push(if flags & LOWER_INCLUDED != 0 { '[' } else { '(' });
    for (is_infinite, end) in [(LOWER_INFINITE, ','), (UPPER_INFINITE, ')')] {
        if flags & is_infinite == 0 {
            let Some((value, after)) = sized(rest) else { return Ok(None) };
            rest = after;
            let mut text = String::new();
            super::put_text(subtype, value, &mut text)?;
            out.push('"');
            for sign in text.chars() {
                if matches!(sign, '"' | '\\') {
                    out.push('\\');
                }
                out.push(sign);
            }
            out.push('"');
        }
        let is_included = end == ')' && flags & UPPER_INCLUDED != 0;
        out.push(if is_included { ']' } else { end });
    }
    Ok(rest.is_empty().then_some(()))
}

/// Bytes with their length before them, and what follows.
fn sized(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    rest.split_at_checked(usize::try_from(i32::from_be_bytes(*length)).ok()?)
}
