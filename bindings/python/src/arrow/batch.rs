//! Rows by columns: the buffers of Arrow's memory format (arrow.apache.org/docs/format/Columnar.html).

use std::borrow::Cow;
use std::sync::Arc;

use onetrip_client::types::Type;
use onetrip_client::{Columns, Format, Place, ResultSet};
use onetrip_wire::calendar::{self, POSTGRES_EPOCH_DAYS};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::aligned::Aligned;
use crate::binary::{self, DAY, SECOND};
use crate::bytea::bytes_of;
use crate::errors::misuse;
use crate::loading::uuid_number;

/// Digits that Arrow's `decimal128` has.
const DECIMAL_DIGITS: u32 = 38;

/// What a column's values are in Arrow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Bool,
    Int16,
    Int32,
    Int64,
    Float32,
    Float64,
    Text,
    Bytes,
    Date,
    Time,
    Timestamp,
    TimestampTz,
    Uuid,
    Decimal {
        precision: u32,
        scale: u32,
    },
    /// Nothing but NULL.
    Null,
}

impl Kind {
    /// Of a type that always is the same; `None` for `numeric` and for those that have no form of their own here.
    pub(super) fn of(ty: &Type) -> Option<Self> {
        Some(match *ty {
            Type::BOOL => Self::Bool,
            Type::INT2 => Self::Int16,
            Type::INT4 => Self::Int32,
            Type::INT8 | Type::OID => Self::Int64,
            Type::FLOAT4 => Self::Float32,
            Type::FLOAT8 => Self::Float64,
            Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME => Self::Text,
            Type::BYTEA => Self::Bytes,
            Type::DATE => Self::Date,
            Type::TIME => Self::Time,
            Type::TIMESTAMP => Self::Timestamp,
            Type::TIMESTAMPTZ => Self::TimestampTz,
            Type::UUID => Self::Uuid,
            _ => return None,
        })
    }

    /// Of `numeric` with so many digits; `None` where there are too many.
    pub(super) fn decimal(precision: u32, scale: u32) -> Option<Self> {
        let fits = (1..=DECIMAL_DIGITS).contains(&precision) && scale <= precision;
        fits.then_some(Self::Decimal { precision, scale })
    }

    /// Of `numeric(precision, scale)`, by its modifier: the server keeps it so.
    fn of_numeric(modifier: i32) -> Option<Self> {
        let modifier = u32::try_from(modifier.checked_sub(4)?).ok()?;
        let (precision, scale) = (modifier >> 16, modifier & 0x7ff);
        if scale < 1024 {
            // A fraction of more digits than there are, such as 0.00123 of numeric(3, 5).
            return Self::decimal(precision.max(scale), scale);
        }
        // A negative scale, by two's complement of 11 bits, is so many zeros at the end.
        Self::decimal(precision.checked_add(2048 - scale)?, 0)
    }

    /// How the C data interface calls it.
    pub(super) fn format(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Bool => "b",
            Self::Int16 => "s",
            Self::Int32 => "i",
            Self::Int64 => "l",
            Self::Float32 => "f",
            Self::Float64 => "g",
            // With offsets of 64 bits: more than two gigabytes of text are no error.
            Self::Text => "U",
            Self::Bytes => "Z",
            Self::Date => "tdD",
            Self::Time => "ttu",
            Self::Timestamp => "tsu:",
            Self::TimestampTz => "tsu:UTC",
            Self::Uuid => "w:16",
            Self::Decimal { precision, scale } => return Cow::Owned(format!("d:{precision},{scale}")),
            Self::Null => "n",
        })
    }

    /// What else there is to say: names of extension types, encoded as the C data interface has it.
    pub(super) fn metadata(self) -> Option<Vec<u8>> {
        if self != Self::Uuid {
            return None;
        }
        let mut encoded = 2_i32.to_ne_bytes().to_vec();
        for text in ["ARROW:extension:name", "arrow.uuid", "ARROW:extension:metadata", ""] {
            encoded.extend((text.len() as i32).to_ne_bytes());
            encoded.extend(text.as_bytes());
        }
        Some(encoded)
    }

    /// The name by which messages call it.
    fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Int16 => "int16",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Float32 => "float32",
            Self::Float64 => "float64",
            Self::Text => "text",
            Self::Bytes => "bytes",
            Self::Date => "date",
            Self::Time => "time",
            Self::Timestamp => "timestamp",
            Self::TimestampTz => "timestamptz",
            Self::Uuid => "uuid",
            Self::Decimal { .. } => "decimal",
            Self::Null => "null",
        }
    }

    /// Bytes that a value takes, but for those of text.
    fn room(self) -> usize {
        if self.has_offsets() { 8 } else { self.width() }
    }

    fn has_offsets(self) -> bool {
        matches!(self, Self::Text | Self::Bytes)
    }

    fn width(self) -> usize {
        match self {
            Self::Bool | Self::Text | Self::Bytes | Self::Null => 0,
            Self::Int16 => 2,
            Self::Int32 | Self::Float32 | Self::Date => 4,
            Self::Int64 | Self::Float64 | Self::Time | Self::Timestamp | Self::TimestampTz => 8,
            Self::Uuid | Self::Decimal { .. } => 16,
        }
    }
}

/// A column's name and types.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    pub(super) name: String,
    pub(super) kind: Kind,
    /// The server's type.
    pub(super) ty: Type,
    /// Whether its type has no form of its own in Arrow, so that its text stands for it.
    pub(super) is_other: bool,
}

impl Field {
    /// The columns of a result. `numeric` without a modifier is text.
    pub(super) fn of(columns: &Columns, format: Format) -> Vec<Self> {
        let field = |column: &onetrip_client::Column| {
            let ty = column.ty.clone();
            let kind = match ty {
                Type::NUMERIC => Kind::of_numeric(column.type_modifier),
                _ => Kind::of(&ty),
            };
            let is_readable = format == Format::Text || binary::is_known(&ty);
            let instead = if is_readable { Kind::Text } else { Kind::Bytes };
            let is_other = kind.is_none();
            Self { name: column.name.to_string(), kind: kind.unwrap_or(instead), ty, is_other }
        };
        columns.iter().map(field).collect()
    }
}

/// The buffers of one column, as they grow.
pub(super) struct Column {
    pub(super) kind: Kind,
    length: usize,
    pub(super) nulls: usize,
    validity: Aligned,
    offsets: Aligned,
    data: Aligned,
}

impl Column {
    pub(super) fn new(kind: Kind) -> Self {
        let mut offsets = Aligned::default();
        if kind.has_offsets() {
            offsets.extend_zeros(8);
        }
        let (validity, data) = (Aligned::default(), Aligned::default());
        Self { kind, length: 0, nulls: 0, validity, offsets, data }
    }

    /// Where its buffers are, as Arrow orders them; `None` for one that is left out.
    pub(super) fn buffers(&self) -> impl Iterator<Item = Option<*const u8>> {
        let validity = (self.nulls > 0).then(|| self.validity.pointer());
        let offsets = self.kind.has_offsets().then(|| self.offsets.pointer());
        let buffers = [Some(validity), offsets.map(Some), Some(Some(self.data.pointer()))];
        buffers.into_iter().flatten().filter(move |_| self.kind != Kind::Null)
    }

    /// Its name, length, number of NULLs, validity and data, where values have one width.
    pub(super) fn parts(&self) -> (&'static str, usize, usize, &[u8], &[u8]) {
        (self.kind.name(), self.length, self.nulls, self.validity.bytes(), self.data.bytes())
    }

    fn memory(&self) -> usize {
        self.validity.len() + self.offsets.len() + self.data.len()
    }

    /// Makes room for so many values; how long text is, nobody knows.
    fn reserve(&mut self, count: usize) {
        if self.kind == Kind::Null {
            return;
        }
        self.validity.reserve(count.div_ceil(8));
        match self.kind {
            Kind::Bool => self.data.reserve(count.div_ceil(8)),
            kind if kind.has_offsets() => self.offsets.reserve(8 * count),
            kind => self.data.reserve(kind.width() * count),
        }
    }

    fn finish(&mut self) {
        for buffer in [&mut self.validity, &mut self.offsets, &mut self.data] {
            buffer.finish();
        }
    }

    /// Adds a value; `text` is a place for what has to be written as text first.
    fn push(&mut self, ty: &Type, value: Option<&[u8]>, format: Format, text: &mut String) -> PyResult<()> {
        let at = self.length;
        self.length += 1;
        let is_null = value.is_none() || self.kind == Kind::Null;
        self.nulls += usize::from(is_null);
        if self.kind == Kind::Null {
            return Ok(());
        }
        self.validity.push_bit(at, value.is_some());
        match (value, format) {
            (None, _) if self.kind == Kind::Bool => self.data.push_bit(at, false),
            (None, _) => self.data.extend_zeros(self.kind.width()),
            (Some(value), Format::Text) => self.put(at, value)?,
            (Some(value), Format::Binary) => {
                if !self.put_binary(at, ty, value)? {
                    text.clear();
                    binary::put_text(ty, value, text)?;
                    self.put(at, text.as_bytes())?;
                }
            }
        }
        if self.kind.has_offsets() {
            self.offsets.extend_from_slice(&(self.data.len() as i64).to_ne_bytes());
        }
        Ok(())
    }

    fn put(&mut self, at: usize, value: &[u8]) -> PyResult<()> {
        let text = || std::str::from_utf8(value).map_err(|_| wrong(value));
        let data = &mut self.data;
        match self.kind {
            Kind::Null => {}
            Kind::Bool => data.push_bit(at, value == b"t"),
            Kind::Int16 => data.extend_from_slice(&parsed::<i16>(value)?.to_ne_bytes()),
            Kind::Int32 => data.extend_from_slice(&parsed::<i32>(value)?.to_ne_bytes()),
            Kind::Int64 => data.extend_from_slice(&parsed::<i64>(value)?.to_ne_bytes()),
            Kind::Float32 => data.extend_from_slice(&parsed::<f32>(value)?.to_ne_bytes()),
            Kind::Float64 => data.extend_from_slice(&parsed::<f64>(value)?.to_ne_bytes()),
            Kind::Text => data.extend_from_slice(text()?.as_bytes()),
            Kind::Bytes => data.extend_from_slice(&bytes_of(value)?),
            Kind::Date => {
                let days = days(text()?).and_then(|days| i32::try_from(days).ok());
                data.extend_from_slice(&days.ok_or_else(|| wrong(value))?.to_ne_bytes());
            }
            Kind::Time => {
                let micros = time(text()?).ok_or_else(|| wrong(value))?;
                data.extend_from_slice(&micros.to_ne_bytes());
            }
            Kind::Timestamp | Kind::TimestampTz => {
                let micros = micros(text()?).ok_or_else(|| wrong(value))?;
                data.extend_from_slice(&micros.to_ne_bytes());
            }
            Kind::Uuid => {
                let number = uuid_number(value).ok_or_else(|| wrong(value))?;
                data.extend_from_slice(&number.to_be_bytes());
            }
            Kind::Decimal { precision, scale } => {
                let unscaled = decimal(value, precision, scale).ok_or_else(|| wrong(value))?;
                data.extend_from_slice(&unscaled.to_ne_bytes());
            }
        }
        Ok(())
    }

    /// Adds a value from its type's binary form, where that needs no text in between; says whether it did.
    fn put_binary(&mut self, at: usize, ty: &Type, value: &[u8]) -> PyResult<bool> {
        fn array<const N: usize>(value: &[u8]) -> PyResult<[u8; N]> {
            value
                .try_into()
                .map_err(|_| PyValueError::new_err(format!("{} bytes instead of {N}", value.len())))
        }
        let data = &mut self.data;
        match (self.kind, ty) {
            (Kind::Bool, _) => data.push_bit(at, array::<1>(value)? != [0]),
            (Kind::Int16, _) => data.extend_from_slice(&i16::from_be_bytes(array(value)?).to_ne_bytes()),
            (Kind::Int32, _) => data.extend_from_slice(&i32::from_be_bytes(array(value)?).to_ne_bytes()),
            (Kind::Int64, &Type::OID) => {
                let oid = i64::from(u32::from_be_bytes(array(value)?));
                data.extend_from_slice(&oid.to_ne_bytes());
            }
            (Kind::Int64, _) => data.extend_from_slice(&i64::from_be_bytes(array(value)?).to_ne_bytes()),
            (Kind::Float32, _) => data.extend_from_slice(&f32::from_be_bytes(array(value)?).to_ne_bytes()),
            (Kind::Float64, &Type::FLOAT8) => {
                data.extend_from_slice(&f64::from_be_bytes(array(value)?).to_ne_bytes());
            }
            (Kind::Text, ty) if binary::is_text(ty) => {
                std::str::from_utf8(value).map_err(|_| wrong(value))?;
                data.extend_from_slice(value);
            }
            (Kind::Bytes, _) => data.extend_from_slice(value),
            (Kind::Uuid, _) => data.extend_from_slice(&array::<16>(value)?),
            (Kind::Date, _) => {
                let days = i32::from_be_bytes(array(value)?);
                if days == i32::MIN || days == i32::MAX {
                    return Ok(false); // the text of infinity is what the error says
                }
                let days = i32::try_from(i64::from(days) + POSTGRES_EPOCH_DAYS);
                data.extend_from_slice(&days.map_err(|_| wrong(value))?.to_ne_bytes());
            }
            (Kind::Timestamp | Kind::TimestampTz, _) => {
                let micros = i64::from_be_bytes(array(value)?);
                if micros == i64::MIN || micros == i64::MAX {
                    return Ok(false);
                }
                let Some(micros) = micros.checked_add(POSTGRES_EPOCH_DAYS * DAY) else { return Ok(false) };
                data.extend_from_slice(&micros.to_ne_bytes());
            }
            (Kind::Time, _) => {
                let micros = i64::from_be_bytes(array(value)?);
                if !(0..DAY).contains(&micros) {
                    return Ok(false);
                }
                data.extend_from_slice(&micros.to_ne_bytes());
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Rows by columns.
pub(crate) struct Batch {
    pub(super) rows: usize,
    pub(super) columns: Vec<Column>,
    pub(super) fields: Arc<[Field]>,
}

impl Batch {
    pub(super) fn empty(fields: &Arc<[Field]>) -> Self {
        let columns = fields.iter().map(|field| Column::new(field.kind)).collect();
        Self { rows: 0, columns, fields: Arc::clone(fields) }
    }

    /// Makes room for so many rows, or for so many bytes of them.
    pub(super) fn reserve(&mut self, rows: usize, bytes_max: usize) {
        let width: usize = self.columns.iter().map(|column| column.kind.room()).sum();
        let rows = rows.min(bytes_max / width.max(1));
        self.columns.iter_mut().for_each(|column| column.reserve(rows));
    }

    /// Gives back memory that was for more rows.
    pub(super) fn finish(&mut self) {
        self.columns.iter_mut().for_each(Column::finish);
    }

    /// Adds rows until there are so many, or so many bytes; says whether that is so.
    pub(super) fn add(
        &mut self,
        py: Python<'_>,
        rows: &ResultSet,
        place: &mut Place,
        rows_max: usize,
        bytes_max: usize,
    ) -> PyResult<bool> {
        let mut text = String::new();
        while self.rows < rows_max {
            let Some(row) = rows.next_row(place) else { return Ok(false) };
            let mut values = row.values();
            for (column, field) in self.columns.iter_mut().zip(&*self.fields) {
                let Some(value) = values.next() else {
                    return Err(misuse(py, "operational", "a row has fewer values than it has columns"));
                };
                column.push(&field.ty, value, row.format(), &mut text).map_err(|error| {
                    PyValueError::new_err(format!("column {:?}: {}", field.name, error.value(py)))
                })?;
            }
            self.rows += 1;
            // Looked at from time to time: rows of one batch are alike, mostly.
            if self.rows % 64 == 0 && self.memory() >= bytes_max {
                return Ok(true);
            }
        }
        Ok(true)
    }

    pub(super) fn memory(&self) -> usize {
        self.columns.iter().map(Column::memory).sum()
    }
}

/// The kinds of columns of `numeric` without a modifier, by the values that are left; `None` for a column that has more
/// digits than Arrow's type, or what is no number.
pub(super) fn decimals(rows: &ResultSet, mut place: Place, fields: &[Field]) -> PyResult<Vec<Option<Kind>>> {
    let is_numeric = |field: &Field| field.is_other && field.ty == Type::NUMERIC;
    // Digits before the point and after it.
    let mut digits: Vec<Option<(u32, u32)>> =
        fields.iter().map(|field| is_numeric(field).then_some((0, 0))).collect();
    let mut text = String::new();
    while let Some(row) = rows.next_row(&mut place).filter(|_| digits.iter().any(Option::is_some)) {
        for (digits, value) in digits.iter_mut().zip(row.values()) {
            let (Some(most), Some(value)) = (*digits, value) else { continue };
            let value = if row.format() == Format::Binary {
                text.clear();
                binary::put_text(&Type::NUMERIC, value, &mut text)?;
                text.as_bytes()
            } else {
                value
            };
            *digits = digits_of(value).map(|(whole, scale)| (most.0.max(whole), most.1.max(scale)));
        }
    }
    // A column without a value has a digit all the same: the type has to have one.
    Ok(digits
        .into_iter()
        .map(|digits| digits.and_then(|(whole, scale)| Kind::decimal((whole + scale).max(1), scale)))
        .collect())
}

/// How many digits a number has before its point, but for zeros at its beginning, and after it.
fn digits_of(value: &[u8]) -> Option<(u32, u32)> {
    let value = value.strip_prefix(b"-").unwrap_or(value);
    let point = value.iter().position(|sign| *sign == b'.');
    let (whole, fraction) = match point {
        Some(at) => (&value[..at], &value[at + 1..]),
        None => (value, &value[..0]),
    };
    if value.is_empty() || !whole.iter().chain(fraction).all(u8::is_ascii_digit) {
        return None;
    }
    let zeros = whole.iter().take_while(|digit| **digit == b'0').count();
    Some((u32::try_from(whole.len() - zeros).ok()?, u32::try_from(fraction.len()).ok()?))
}

/// A number times ten to the `scale`, if that is whole and has no more digits than it may.
fn decimal(value: &[u8], precision: u32, scale: u32) -> Option<i128> {
    let (digits, is_negative) = match value.strip_prefix(b"-") {
        Some(digits) => (digits, true),
        None => (value, false),
    };
    let mut unscaled = 0_i128;
    let mut fraction: Option<u32> = None;
    for sign in digits {
        match (sign, fraction) {
            (b'.', None) => fraction = Some(0),
            (b'0', Some(digits)) if digits == scale => {}
            (b'0'..=b'9', fraction) if fraction != Some(scale) => {
                unscaled = unscaled.checked_mul(10)?.checked_add(i128::from(sign - b'0'))?;
            }
            _ => return None,
        }
        if *sign != b'.' {
            fraction = fraction.map(|digits| (digits + 1).min(scale));
        }
    }
    let missing = scale - fraction.unwrap_or_default();
    unscaled = unscaled.checked_mul(10_i128.checked_pow(missing)?)?;
    if digits.is_empty() || unscaled >= 10_i128.checked_pow(precision)? {
        return None;
    }
    Some(if is_negative { -unscaled } else { unscaled })
}

fn wrong(value: &[u8]) -> PyErr {
    PyValueError::new_err(format!(
        "{:?} is beyond what Arrow's type can hold",
        String::from_utf8_lossy(value)
    ))
}

fn parsed<T: std::str::FromStr>(value: &[u8]) -> PyResult<T> {
    let text = std::str::from_utf8(value).ok();
    text.and_then(|text| text.parse().ok()).ok_or_else(|| wrong(value))
}

/// Days since 1970 of `2001-02-03`, by the proleptic Gregorian calendar, perhaps with BC behind it.
fn days(text: &str) -> Option<i64> {
    let (text, is_before) = without_era(text);
    days_of(text.as_bytes(), is_before)
}

/// Microseconds since 1970 of `2001-02-03 04:05:06.789+01`, without offset as if it were UTC.
fn micros(text: &str) -> Option<i64> {
    let (text, is_before) = without_era(text);
    let (date, time) = text.split_once(' ')?;
    let at = time.bytes().position(|sign| matches!(sign, b'+' | b'-')).unwrap_or(time.len());
    let (clock, offset) = time.split_at(at);
    let offset = match offset.split_at_checked(1) {
        Some(("-", west)) => -seconds(west.as_bytes())?,
        Some((_, east)) => seconds(east.as_bytes())?,
        None => 0,
    };
    let days = days_of(date.as_bytes(), is_before)?;
    days.checked_mul(DAY)?.checked_add(clock_of(clock)?)?.checked_sub(offset * SECOND)
}

/// Microseconds of a day's time; the end of the day is none of it.
fn time(text: &str) -> Option<i64> {
    clock_of(text).filter(|micros| *micros < DAY)
}

fn without_era(text: &str) -> (&str, bool) {
    match text.strip_suffix(" BC") {
        Some(text) => (text, true),
        None => (text, false),
    }
}

fn days_of(date: &[u8], is_before: bool) -> Option<i64> {
    let (rest, day) = last_part(date, b'-')?;
    let (year, month) = last_part(rest, b'-')?;
    // A day or a month is what comes first in other styles.
    if year.len() < 4 {
        return None;
    }
    let year = number(year)?;
    // The year before year 1 is year 0.
    Some(calendar::days_of(if is_before { 1 - year } else { year }, number(month)?, number(day)?))
}

fn clock_of(text: &str) -> Option<i64> {
    let Some((whole, fraction)) = text.split_once('.') else {
        return Some(seconds(text.as_bytes())? * SECOND);
    };
    let missing = 6_u32.checked_sub(u32::try_from(fraction.len()).ok()?)?;
    Some(seconds(whole.as_bytes())? * SECOND + number(fraction.as_bytes())? * 10_i64.pow(missing))
}

/// Seconds of `hours:minutes:seconds`, of which the last may be missing.
fn seconds(text: &[u8]) -> Option<i64> {
    let mut total = 0;
    let mut units = [3600, 60, 1].into_iter();
    for part in text.split(|sign| *sign == b':') {
        total += number(part)? * units.next()?;
    }
    Some(total)
}

/// What stands before the last sign, and after it.
fn last_part(text: &[u8], sign: u8) -> Option<(&[u8], &[u8])> {
    let at = text.iter().rposition(|other| *other == sign)?;
    Some((&text[..at], &text[at + 1..]))
}

fn number(digits: &[u8]) -> Option<i64> {
    if digits.is_empty() || digits.len() > 9 {
        return None;
    }
    digits
        .iter()
        .try_fold(0, |number, digit| digit.is_ascii_digit().then(|| number * 10 + i64::from(digit - b'0')))
}
