//! Values, their types, and how they are written.

use std::cmp::Ordering;
use std::sync::Arc;

use onetrip_wire::pg::Format;

use super::failure::Failure;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    Int4,
    Int8,
    Text,
    Boolean,
    /// A time in January 2024; its values count minutes from the first one on.
    Time,
}

/// Minutes from where PostgreSQL's times begin to where the model's do.
const JANUARY_2024: i64 = 8_766 * MINUTES_OF_DAY;
const MINUTES_OF_DAY: i64 = 24 * 60;

impl Type {
    pub(crate) fn oid(self) -> u32 {
        match self {
            Self::Boolean => 16,
            Self::Int8 => 20,
            Self::Int4 => 23,
            Self::Text => 25,
            Self::Time => 1184,
        }
    }

    pub(crate) fn of_oid(oid: u32) -> Option<Self> {
        [Self::Boolean, Self::Int8, Self::Int4, Self::Text].into_iter().find(|one| one.oid() == oid)
    }

    /// Length in bytes as descriptions tell it.
    pub(crate) fn length(self) -> i16 {
        match self {
            Self::Boolean => 1,
            Self::Int8 | Self::Time => 8,
            Self::Int4 => 4,
            Self::Text => -1,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Boolean => "boolean",
            Self::Int8 => "bigint",
            Self::Int4 => "integer",
            Self::Text => "text",
            Self::Time => "timestamp with time zone",
        }
    }

    pub(crate) fn is_integer(self) -> bool {
        matches!(self, Self::Int4 | Self::Int8)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Value {
    Null,
    Integer(i64),
    Text(Arc<str>),
    Boolean(bool),
}

impl Value {
    /// Reads what a Bind holds.
    pub(crate) fn decode(bytes: &[u8], kind: Type, format: Format) -> Result<Self, Failure> {
        match (format, kind) {
            (Format::Binary, Type::Int4) => match bytes.try_into() {
                Ok(bytes) => Ok(Self::Integer(i32::from_be_bytes(bytes).into())),
                Err(_) => Err(wrong_length(bytes.len() < 4)),
            },
            (Format::Binary, Type::Int8) => match bytes.try_into() {
                Ok(bytes) => Ok(Self::Integer(i64::from_be_bytes(bytes))),
                Err(_) => Err(wrong_length(bytes.len() < 8)),
            },
            _ => Self::parse(&String::from_utf8_lossy(bytes), kind),
        }
    }

    /// Reads a text.
    pub(crate) fn parse(text: &str, kind: Type) -> Result<Self, Failure> {
        let bad =
            || Failure::new("22P02", format!("invalid input syntax for type {}: \"{text}\"", kind.name()));
        match kind {
            Type::Text => Ok(Self::Text(text.into())),
            Type::Boolean | Type::Time => Err(bad()),
            Type::Int4 | Type::Int8 => {
                let number: i64 = text.trim().parse().map_err(|_| bad())?;
                Self::Integer(number).fits(kind)
            }
        }
    }

    /// An integer of a type; 22003 if it is none.
    pub(crate) fn fits(self, kind: Type) -> Result<Self, Failure> {
        match self {
            Self::Integer(number) if kind == Type::Int4 && i32::try_from(number).is_err() => {
                Err(Failure::new("22003", "integer out of range"))
            }
            other => Ok(other),
        }
    }

    pub(crate) fn text(&self) -> Option<String> {
        match self {
            Self::Null => None,
            Self::Integer(number) => Some(number.to_string()),
            Self::Text(text) => Some(text.to_string()),
            Self::Boolean(is) => Some(if *is { "t" } else { "f" }.to_owned()),
        }
    }

    /// As DataRow holds it; times are written in a zone, so many hours east.
    pub(crate) fn encode(&self, kind: Type, format: Format, zone_hours: i64) -> Option<Vec<u8>> {
        match (self, format, kind) {
            (Self::Integer(minutes), Format::Text, Type::Time) => {
                Some(time(*minutes, zone_hours).into_bytes())
            }
            (Self::Integer(minutes), Format::Binary, Type::Time) => {
                let micros = (JANUARY_2024 + minutes) * 60_000_000;
                Some(micros.to_be_bytes().to_vec())
            }
            (Self::Integer(number), Format::Binary, Type::Int4) => {
                Some((*number as i32).to_be_bytes().to_vec())
            }
            (Self::Integer(number), Format::Binary, _) => Some(number.to_be_bytes().to_vec()),
            (Self::Boolean(is), Format::Binary, _) => Some(vec![u8::from(*is)]),
            _ => self.text().map(String::into_bytes),
        }
    }

    /// `None` with NULL.
    pub(crate) fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Integer(one), Self::Integer(two)) => Some(one.cmp(two)),
            (Self::Text(one), Self::Text(two)) => Some(one.cmp(two)),
            (Self::Boolean(one), Self::Boolean(two)) => Some(one.cmp(two)),
            _ => None,
        }
    }
}

/// A time of the model's, as text in a zone so many hours east.
pub(crate) fn time(minutes: i64, zone_hours: i64) -> String {
    let minutes = minutes + zone_hours * 60;
    let (day, minute) = (1 + minutes / MINUTES_OF_DAY, minutes % MINUTES_OF_DAY);
    format!("2024-01-{day:02} {:02}:{:02}:00+{zone_hours:02}", minute / 60, minute % 60)
}

fn wrong_length(is_short: bool) -> Failure {
    match is_short {
        true => Failure::new("08P01", "insufficient data left in message"),
        false => Failure::new("22P03", "incorrect binary data format in bind parameter 1"),
    }
}
