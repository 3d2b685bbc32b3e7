//! Values in their binary form, and the text that stands for the same: a binary COPY has only the one, adapters know the
//! other. The text is the server's, dates in ISO style; times with a zone are UTC.

mod arrays;
mod network;
mod numbers;
mod ranges;
mod times;

pub(crate) use arrays::Reader as ArrayReader;
pub(crate) use times::{DAY, HOUR, MINUTE, SECOND, date_of, days_of, interval as interval_of, parts_of};

use onetrip_client::types::{Kind, Type};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::bytea::bytes_of;

/// Appends the binary form of what some text stands for.
///
/// # Errors
/// Text that is not of the type, and types whose binary form is not known here.
pub(crate) fn put(ty: &Type, text: &str, out: &mut Vec<u8>) -> PyResult<()> {
    let known = match *ty {
        _ if is_text(ty) => put_bytes(text.as_bytes(), out),
        Type::JSONB => {
            out.push(JSONB_VERSION);
            put_bytes(text.as_bytes(), out)
        }
        Type::BYTEA => put_bytes(&bytes_of(text.as_bytes())?, out),
        Type::BOOL => match text {
            "t" | "true" => put_bytes(&[1], out),
            "f" | "false" => put_bytes(&[0], out),
            _ => None,
        },
        Type::UUID => put_uuid(text, out),
        Type::INET | Type::CIDR => network::put(text, *ty == Type::CIDR, out),
        _ if numbers::is_number(ty) => numbers::put(ty, text, out),
        _ if times::is_time(ty) => times::put(ty, text, out),
        _ => match element_of(ty) {
            Some(element) => return arrays::put(element, text, out),
            None => match ranges::subtype(ty) {
                Some(subtype) => return ranges::put(ty, subtype, text, out),
                None => return Err(unknown(ty)),
            },
        },
    };
    known.ok_or_else(|| PyValueError::new_err(format!("{text:?} is no {ty} that has a binary form")))
}

/// Appends the text of a value in binary.
///
/// # Errors
/// Bytes that are not of the type, and types whose binary form is not known here.
pub(crate) fn put_text(ty: &Type, bytes: &[u8], out: &mut String) -> PyResult<()> {
    let known = match *ty {
        _ if is_text(ty) => put_utf8(bytes, out),
        Type::JSONB => match bytes {
            [JSONB_VERSION, text @ ..] => put_utf8(text, out),
            _ => None,
        },
        Type::BYTEA => {
            out.push_str("\\x");
            put_hex(bytes, out)
        }
        Type::BOOL => match bytes {
            [is_true] => put_utf8(if *is_true == 0 { b"f" } else { b"t" }, out),
            _ => None,
        },
        Type::UUID => put_uuid_text(bytes, out),
        Type::INET | Type::CIDR => network::put_text(bytes, out),
        _ if numbers::is_number(ty) => numbers::put_text(ty, bytes, out),
        _ if times::is_time(ty) => times::put_text(ty, bytes, out),
        _ => match element_of(ty) {
            Some(element) => return arrays::put_text(element, bytes, out),
            None => match ranges::subtype(ty) {
                Some(subtype) => return ranges::put_text(ty, subtype, bytes, out),
                None => return Err(unknown(ty)),
            },
        },
    };
    known.ok_or_else(|| PyValueError::new_err(format!("{} bytes that are no {ty}", bytes.len())))
}

/// Whether the binary form of a type is known here.
pub(crate) fn is_known(ty: &Type) -> bool {
    is_text(ty)
        || numbers::is_number(ty)
        || times::is_time(ty)
        || [Type::JSONB, Type::BYTEA, Type::BOOL, Type::UUID, Type::INET, Type::CIDR].contains(ty)
        || element_of(ty).is_some_and(is_known)
        || ranges::subtype(ty).is_some_and(is_known)
}

const JSONB_VERSION: u8 = 1;

/// Types whose binary form is their text.
pub(crate) fn is_text(ty: &Type) -> bool {
    [Type::TEXT, Type::VARCHAR, Type::BPCHAR, Type::NAME, Type::CHAR, Type::JSON, Type::XML, Type::UNKNOWN]
        .contains(ty)
}

pub(crate) fn element_of(ty: &Type) -> Option<&Type> {
    static RECORD: Type = Type::RECORD;
    match ty.kind() {
        _ if *ty == Type::RECORD_ARRAY => Some(&RECORD), // a pseudo-type by its kind
        // These are arrays by their kind, but not by how they are written.
        _ if [Type::INT2_VECTOR, Type::OID_VECTOR, Type::BOX_ARRAY].contains(ty) => None,
        Kind::Array(element) => Some(element),
        _ => None,
    }
}

/// The type of the elements of an array, whatever sign its text has between them.
pub(crate) fn element_of_any(ty: &Type) -> Option<&Type> {
    match ty.kind() {
        Kind::Array(element) if *ty == Type::BOX_ARRAY => Some(element),
        _ => element_of(ty),
    }
}

fn unknown(ty: &Type) -> PyErr {
    let name = if ty.name().is_empty() { ty.oid().to_string() } else { ty.name().to_owned() };
    PyValueError::new_err(format!("the binary form of type {name} is not known here: COPY it as text"))
}

fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) -> Option<()> {
    out.extend_from_slice(bytes);
    Some(())
}

fn put_utf8(bytes: &[u8], out: &mut String) -> Option<()> {
    out.push_str(std::str::from_utf8(bytes).ok()?);
    Some(())
}

fn put_hex(bytes: &[u8], out: &mut String) -> Option<()> {
    for byte in bytes {
        for half in [byte >> 4, byte & 15] {
            out.push(char::from_digit(half.into(), 16)?);
        }
    }
    Some(())
}

fn put_uuid(text: &str, out: &mut Vec<u8>) -> Option<()> {
    let digits: Vec<u8> = text
        .chars()
        .filter(|sign| !matches!(sign, '-' | '{' | '}'))
        .map(|sign| sign.to_digit(16).map(|digit| digit as u8))
        .collect::<Option<_>>()?;
    if digits.len() != 32 {
        return None;
    }
    out.extend(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]));
    Some(())
}

fn put_uuid_text(bytes: &[u8], out: &mut String) -> Option<()> {
    if bytes.len() != 16 {
        return None;
    }
    for (at, part) in
        [(0, 4), (4, 6), (6, 8), (8, 10), (10, 16)].map(|(start, end)| (start, &bytes[start..end]))
    {
        if at > 0 {
            out.push('-');
        }
        put_hex(part, out)?;
    }
    Some(())
}
