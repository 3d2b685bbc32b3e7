//! Parameters: values in the form that the server reads.
//!
//! No trip is spent on asking for a statement's types. The first time a statement runs, its parameters travel in
//! their text form, and the server infers their types from the statement. After its answer, they travel in binary.

use std::io::Write;

use bytes::BytesMut;
use onetrip_wire::pg::{Format, Oid};
use postgres_types::{IsNull, ToSql, Type};

/// A value for a `$n` of a statement.
pub trait Param {
    /// The type that the statement shall be prepared with; 0 leaves it to the server, which most values do.
    fn declared(&self) -> Oid {
        0
    }

    /// Appends the value in the format that is returned; `None` is NULL, for which nothing is appended.
    ///
    /// `type_oid` is the parameter's type, or 0 while the server has not told it yet. The text form, which the
    /// server reads by the rules for literals of that type, is right in every case.
    ///
    /// # Errors
    /// What keeps the value from being written.
    fn put(&self, type_oid: Oid, out: &mut Vec<u8>) -> Result<Option<Format>, String>;
}

/// A value with its type, for everything that `postgres_types` can write: times, numerics, arrays, JSON.
#[derive(Debug, Clone, Copy)]
pub struct Typed<'a>(pub &'a Type, pub &'a (dyn ToSql + Sync));

/// A value as the caller wrote it: for bindings to other languages.
#[derive(Debug, Clone, Copy)]
pub struct Written<'a> {
    /// The type to prepare with; 0 leaves it to the server.
    pub type_oid: Oid,
    /// How the bytes are written.
    pub format: Format,
    /// The value; `None` is NULL.
    pub bytes: Option<&'a [u8]>,
}

impl Param for Typed<'_> {
    fn declared(&self) -> Oid {
        self.0.oid()
    }

    fn put(&self, _: Oid, out: &mut Vec<u8>) -> Result<Option<Format>, String> {
        let mut bytes = BytesMut::new();
        match self.1.to_sql_checked(self.0, &mut bytes).map_err(|error| error.to_string())? {
            IsNull::Yes => Ok(None),
            IsNull::No => {
                out.extend_from_slice(&bytes);
                Ok(Some(Format::Binary))
            }
        }
    }
}

impl Param for Written<'_> {
    fn declared(&self) -> Oid {
        self.type_oid
    }

    fn put(&self, _: Oid, out: &mut Vec<u8>) -> Result<Option<Format>, String> {
        let Some(bytes) = self.bytes else { return Ok(None) };
        out.extend_from_slice(bytes);
        Ok(Some(self.format))
    }
}

impl Param for i64 {
    fn put(&self, type_oid: Oid, out: &mut Vec<u8>) -> Result<Option<Format>, String> {
        Ok(Some(put_integer(*self, type_oid, out)))
    }
}

impl Param for i32 {
    fn put(&self, type_oid: Oid, out: &mut Vec<u8>) -> Result<Option<Format>, String> {
        Ok(Some(put_integer(i64::from(*self), type_oid, out)))
    }
}

impl Param for i16 {
    fn put(&self, type_oid: Oid, out: &mut Vec<u8>) -> Result<Option<Format>, String> {
        Ok(Some(put_integer(i64::from(*self), type_oid, out)))
    }
}

impl Param for u32 {
    fn put(&self, type_oid: Oid, out: &mut Vec<u8>) -> Result<Option<Format>, String> {
        Ok(Some(put_integer(i64::from(*self), type_oid, out)))
    }
}

impl Param for f64 {
    fn put(&self, type_oid: Oid, out: &mut Vec<u8>) -> Result<Option<Format>, String> {
        if type_oid == Type::FLOAT8.oid() {
            out.extend_from_slice(&self.to_be_bytes());
            return Ok(Some(Format::Binary));
        }
        Ok(Some(put_display(format_args!("{self:?}"), out)))
    }
}

impl Param for f32 {
    fn put(&self, type_oid: Oid, out: &mut Vec<u8>) -> Result<Option<Format>, String> {
        if type_oid == Type::FLOAT4.oid() {
            out.extend_from_slice(&self.to_be_bytes());
            return Ok(Some(Format::Binary));
        }
        Ok(Some(put_display(format_args!("{self:?}"), out)))
    }
}

impl Param for bool {
    fn put(&self, type_oid: Oid, out: &mut Vec<u8>) -> Result<Option<Format>, String> {
        if type_oid == Type::BOOL.oid() {
            out.push(u8::from(*self));
            return Ok(Some(Format::Binary));
        }
        out.push(if *self { b't' } else { b'f' });
        Ok(Some(Format::Text))
    }
}

/// In text form for every type, so that a literal's rules hold: `"2026-11-21"` is a date where one is wanted.
impl Param for str {
    fn put(&self, _: Oid, out: &mut Vec<u8>) -> Result<Option<Format>, String> {
        out.extend_from_slice(self.as_bytes());
        Ok(Some(Format::Text))
    }
}

impl Param for String {
    fn put(&self, type_oid: Oid, out: &mut Vec<u8>) -> Result<Option<Format>, String> {
        self.as_str().put(type_oid, out)
    }
}

/// As they are: what a `bytea` holds, or another type's binary form.
impl Param for [u8] {
    fn put(&self, _: Oid, out: &mut Vec<u8>) -> Result<Option<Format>, String> {
        out.extend_from_slice(self);
        Ok(Some(Format::Binary))
    }
}

impl Param for Vec<u8> {
    fn put(&self, type_oid: Oid, out: &mut Vec<u8>) -> Result<Option<Format>, String> {
        self.as_slice().put(type_oid, out)
    }
}

impl<T: Param> Param for Option<T> {
    fn declared(&self) -> Oid {
        self.as_ref().map_or(0, Param::declared)
    }

    fn put(&self, type_oid: Oid, out: &mut Vec<u8>) -> Result<Option<Format>, String> {
        self.as_ref().map_or(Ok(None), |value| value.put(type_oid, out))
    }
}

impl<T: Param + ?Sized> Param for &T {
    fn declared(&self) -> Oid {
        (**self).declared()
    }

    fn put(&self, type_oid: Oid, out: &mut Vec<u8>) -> Result<Option<Format>, String> {
        (**self).put(type_oid, out)
    }
}

/// In binary where the type is an integer that holds the value, else as text: then the server judges.
fn put_integer(value: i64, type_oid: Oid, out: &mut Vec<u8>) -> Format {
    match Type::from_oid(type_oid) {
        Some(Type::INT8) => out.extend_from_slice(&value.to_be_bytes()),
        Some(Type::INT4) => match i32::try_from(value) {
            Ok(value) => out.extend_from_slice(&value.to_be_bytes()),
            Err(_) => return put_display(format_args!("{value}"), out),
        },
        Some(Type::INT2) => match i16::try_from(value) {
            Ok(value) => out.extend_from_slice(&value.to_be_bytes()),
            Err(_) => return put_display(format_args!("{value}"), out),
        },
        Some(Type::OID) => match u32::try_from(value) {
            Ok(value) => out.extend_from_slice(&value.to_be_bytes()),
            Err(_) => return put_display(format_args!("{value}"), out),
        },
        _ => return put_display(format_args!("{value}"), out),
    }
    Format::Binary
}

fn put_display(value: std::fmt::Arguments<'_>, out: &mut Vec<u8>) -> Format {
    // Writing to a Vec cannot fail.
    let _ = out.write_fmt(value);
    Format::Text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(value: &dyn Param, type_oid: Oid) -> (Option<Format>, Vec<u8>) {
        let mut out = Vec::new();
        (value.put(type_oid, &mut out).unwrap(), out)
    }

    #[test]
    fn a_value_is_text_until_its_type_is_known() {
        assert_eq!(put(&7, 0), (Some(Format::Text), b"7".to_vec()));
        assert_eq!(put(&7, Type::INT8.oid()), (Some(Format::Binary), vec![0, 0, 0, 0, 0, 0, 0, 7]));
        assert_eq!(put(&7, Type::NUMERIC.oid()), (Some(Format::Text), b"7".to_vec()));
        assert_eq!(put(&true, 0), (Some(Format::Text), b"t".to_vec()));
        assert_eq!(put(&1e300, 0), (Some(Format::Text), b"1e300".to_vec()));
        assert_eq!(put(&None::<i32>, 0), (None, vec![]));
        assert_eq!(put(&"seven", Type::INT4.oid()), (Some(Format::Text), b"seven".to_vec()));
    }

    #[test]
    fn an_integer_that_its_type_cannot_hold_is_left_for_the_server_to_refuse() {
        assert_eq!(put(&70_000, Type::INT2.oid()), (Some(Format::Text), b"70000".to_vec()));
        assert_eq!(put(&-1, Type::OID.oid()), (Some(Format::Text), b"-1".to_vec()));
    }
}
