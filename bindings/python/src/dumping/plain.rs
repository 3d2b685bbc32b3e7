//! Values that a COPY in binary takes as they are: of exactly the class that their column's type stands for.

use onetrip_client::types::Type;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyBytes, PyDate, PyDateTime, PyDelta, PyFloat, PyInt, PyString, PyTime, PyTzInfoAccess,
};

use super::{UUID, days, interval, is_of, is_utc, micros, uuid};
use crate::binary::{self, DAY};

/// How the values of a column are written, which its type says once for all of them.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Plain {
    Bool,
    Int2,
    Int4,
    Int8,
    Float,
    Text,
    Bytes,
    Date,
    Time,
    Timestamp,
    /// In UTC; another zone is asked for its offset.
    TimestampTz,
    Interval,
    Uuid,
}

impl Plain {
    /// `None` for a type whose values are not so simple.
    pub(crate) fn of(ty: &Type) -> Option<Self> {
        Some(match *ty {
            Type::BOOL => Self::Bool,
            Type::INT2 => Self::Int2,
            Type::INT4 => Self::Int4,
            Type::INT8 => Self::Int8,
            Type::FLOAT8 => Self::Float,
            Type::BYTEA => Self::Bytes,
            Type::DATE => Self::Date,
            Type::TIME => Self::Time,
            Type::TIMESTAMP => Self::Timestamp,
            Type::TIMESTAMPTZ => Self::TimestampTz,
            Type::INTERVAL => Self::Interval,
            Type::UUID => Self::Uuid,
            _ if binary::is_text(ty) => Self::Text,
            _ => return None,
        })
    }

    /// Appends a value with its length before it. `None` for one that is not so simple, of which perhaps something is
    /// appended.
    #[inline]
    pub(crate) fn put(self, value: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> Option<()> {
        match self {
            Self::Bool => put_sized(&[u8::from(value.cast_exact::<PyBool>().ok()?.is_true())], out),
            Self::Int2 => put_sized(&i16::try_from(int(value)?).ok()?.to_be_bytes(), out),
            Self::Int4 => put_sized(&i32::try_from(int(value)?).ok()?.to_be_bytes(), out),
            Self::Int8 => put_sized(&int(value)?.to_be_bytes(), out),
            Self::Float => put_sized(&value.cast_exact::<PyFloat>().ok()?.value().to_be_bytes(), out),
            Self::Text => {
                let text = value.cast_exact::<PyString>().ok()?.to_cow().ok()?;
                if text.as_bytes().contains(&0) {
                    return None;
                }
                put_long(text.as_bytes(), out)
            }
            Self::Bytes => put_long(value.cast_exact::<PyBytes>().ok()?.as_bytes(), out),
            Self::Date => put_sized(&(days(value.cast_exact::<PyDate>().ok()?) as i32).to_be_bytes(), out),
            Self::Time => {
                let time = value.cast_exact::<PyTime>().ok()?;
                if time.get_tzinfo().is_some() {
                    return None;
                }
                put_sized(&micros(time).to_be_bytes(), out)
            }
            Self::Timestamp | Self::TimestampTz => {
                let moment = value.cast_exact::<PyDateTime>().ok()?;
                let is_right = match moment.get_tzinfo() {
                    None => matches!(self, Self::Timestamp),
                    Some(zone) => matches!(self, Self::TimestampTz) && is_utc(&zone).ok()?,
                };
                if !is_right {
                    return None;
                }
                let days = days(moment.cast::<PyDate>().ok()?);
                put_sized(&(days * DAY + micros(moment)).to_be_bytes(), out)
            }
            Self::Interval => put_sized(&interval(value.cast_exact::<PyDelta>().ok()?), out),
            Self::Uuid if is_of(value, &UUID, "uuid", "UUID") => {
                put_sized(&uuid(value).ok()?.to_be_bytes(), out)
            }
            Self::Uuid => None,
        }
    }
}

#[inline]
fn int(value: &Bound<'_, PyAny>) -> Option<i64> {
    value.cast_exact::<PyInt>().ok()?.extract().ok()
}

#[inline]
fn put_sized<const N: usize>(bytes: &[u8; N], out: &mut Vec<u8>) -> Option<()> {
    out.reserve(4 + N);
    out.extend_from_slice(&(N as i32).to_be_bytes());
    out.extend_from_slice(bytes);
    Some(())
}

#[inline]
fn put_long(bytes: &[u8], out: &mut Vec<u8>) -> Option<()> {
    out.extend_from_slice(&i32::try_from(bytes.len()).ok()?.to_be_bytes());
    out.extend_from_slice(bytes);
    Some(())
}
