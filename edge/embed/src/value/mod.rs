//! Values between PostgreSQL's formats and SQLite's storage classes.
//!
//! | type | stored as |
//! |---|---|
//! | bool | INTEGER 0 or 1 |
//! | int2, int4, int8, oid | INTEGER |
//! | float4, float8 | REAL |
//! | numeric | INTEGER where it is one, else REAL of at most 15 digits; see [`Decimal`] |
//! | text, varchar, char(n), name, json, jsonb, uuid, interval | TEXT |
//! | date, time, timestamp, timestamptz | TEXT, ISO 8601, the last one in UTC with `+00` |
//! | bytea | BLOB |
//! | arrays (one dimension) | TEXT, a JSON array |

mod array;
mod decimal;
mod inline;
mod input;
mod moment;
mod output;

use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, ValueRef};

pub(crate) use array::{Elements as JsonElements, Json};
pub(crate) use decimal::Decimal;
pub(crate) use inline::InlineText;
pub(crate) use input::{check_integer, decode, hex_digit, read_text, stored_decimal, uuid_text};
pub(crate) use moment::{
    DAY_MICROS, Moment, civil_of, date_text, days_of, month_days, now_micros, parse_time, time_text,
    timestamp_text,
};
pub(crate) use output::{put_integer, put_text_form, put_value};

/// A value as SQLite is given it.
#[derive(Debug)]
pub(crate) enum Stored<'a> {
    Null,
    Integer(i64),
    Real(f64),
    Text(&'a str),
    Short(InlineText),
    OwnedText(String),
    Blob(&'a [u8]),
    OwnedBlob(Vec<u8>),
}

impl Stored<'_> {
    pub(crate) fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Self::Null => ValueRef::Null,
            Self::Integer(integer) => ValueRef::Integer(*integer),
            Self::Real(real) => ValueRef::Real(*real),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Short(text) => ValueRef::Text(text.as_str().as_bytes()),
            Self::OwnedText(text) => ValueRef::Text(text.as_bytes()),
            Self::Blob(blob) => ValueRef::Blob(blob),
            Self::OwnedBlob(blob) => ValueRef::Blob(blob),
        }
    }
}

impl ToSql for Stored<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(self.as_ref()))
    }
}
