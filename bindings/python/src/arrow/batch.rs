//! Results by columns, as the buffers of Arrow's memory format (arrow.apache.org/docs/format/Columnar.html).

use onetrip_client::types::Type;
use onetrip_client::{Format, Place, ResultSet};
use onetrip_wire::calendar;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::binary;
use crate::bytea::bytes_of;

/// What a column's values are in Arrow. Types that are not here come as Python's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bool,
    Int16,
    Int32,
    Int64,
    Float32,
    Float64,
    Text,
    Bytes,
    Date,
    Timestamp,
    TimestampTz,
}

impl Kind {
    fn of(ty: &Type) -> Option<Self> {
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
            Type::TIMESTAMP => Self::Timestamp,
            Type::TIMESTAMPTZ => Self::TimestampTz,
            _ => return None,
        })
    }

    /// Its name, as `onetrip.arrow` knows it.
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
            Self::Timestamp => "timestamp",
            Self::TimestampTz => "timestamptz",
        }
    }

    fn has_offsets(self) -> bool {
        matches!(self, Self::Text | Self::Bytes)
    }

    fn width(self) -> usize {
        match self {
            Self::Bool | Self::Text | Self::Bytes => 0,
            Self::Int16 => 2,
            Self::Int32 | Self::Float32 | Self::Date => 4,
            Self::Int64 | Self::Float64 | Self::Timestamp | Self::TimestampTz => 8,
        }
    }
}

/// The buffers of one column, as they grow.
struct Builder {
    kind: Kind,
    length: usize,
    nulls: usize,
    validity: Vec<u8>,
    /// 64 bits each: more than two gigabytes of text are no error.
    offsets: Vec<u8>,
    data: Vec<u8>,
}

impl Builder {
    fn new(kind: Kind) -> Self {
        let offsets = if kind.has_offsets() { 0_i64.to_le_bytes().to_vec() } else { Vec::new() };
        Self { kind, length: 0, nulls: 0, validity: Vec::new(), offsets, data: Vec::new() }
    }

    fn push(&mut self, value: Option<&[u8]>) -> PyResult<()> {
        let at = self.length;
        set_bit(&mut self.validity, at, value.is_some());
        self.length += 1;
        self.nulls += usize::from(value.is_none());
        match (self.kind, value) {
            (Kind::Bool, value) => set_bit(&mut self.data, at, value == Some(b"t")),
            (kind, None) => self.data.resize(self.data.len() + kind.width(), 0),
            (kind, Some(value)) => self.put(kind, value)?,
        }
        if self.kind.has_offsets() {
            self.offsets.extend_from_slice(&(self.data.len() as i64).to_le_bytes());
        }
        Ok(())
    }

    fn put(&mut self, kind: Kind, value: &[u8]) -> PyResult<()> {
        let text = || std::str::from_utf8(value).map_err(|_| wrong(value));
        match kind {
            Kind::Bool => {}
            Kind::Int16 => self.data.extend(parsed::<i16>(value)?.to_le_bytes()),
            Kind::Int32 => self.data.extend(parsed::<i32>(value)?.to_le_bytes()),
            Kind::Int64 => self.data.extend(parsed::<i64>(value)?.to_le_bytes()),
            Kind::Float32 => self.data.extend(parsed::<f32>(value)?.to_le_bytes()),
            Kind::Float64 => self.data.extend(parsed::<f64>(value)?.to_le_bytes()),
            Kind::Text => self.data.extend(text()?.as_bytes()),
            Kind::Bytes => self.data.extend(bytes_of(value)?),
            Kind::Date => {
                let days =
                    days(text()?).and_then(|days| i32::try_from(days).ok()).ok_or_else(|| wrong(value))?;
                self.data.extend(days.to_le_bytes());
            }
            Kind::Timestamp | Kind::TimestampTz => {
                let micros = micros(text()?).ok_or_else(|| wrong(value))?;
                self.data.extend(micros.to_le_bytes());
            }
        }
        Ok(())
    }
}

fn set_bit(bits: &mut Vec<u8>, at: usize, is_set: bool) {
    if at % 8 == 0 {
        bits.push(0);
    }
    if let Some(last) = bits.last_mut() {
        *last |= u8::from(is_set) << (at % 8);
    }
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

/// Days since 1970 of `2001-02-03`, by the proleptic Gregorian calendar.
fn days(text: &str) -> Option<i64> {
    let mut parts = text.splitn(3, '-').map(str::parse::<i64>);
    let (year, month, day) = (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
    Some(calendar::days_of(year, month, day))
}

/// Microseconds since 1970 of `2001-02-03 04:05:06.789+01`, without offset as if it were UTC.
fn micros(text: &str) -> Option<i64> {
    let (date, time) = text.split_once(' ')?;
    let at = time.find(['+', '-']).unwrap_or(time.len());
    let (clock, offset) = time.split_at(at);
    let (whole, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let fraction: i64 = format!("{fraction:0<6}").parse().ok()?;
    let offset = match offset.strip_prefix('-') {
        Some(behind) => -seconds(behind)?,
        None => seconds(offset.trim_start_matches('+'))?,
    };
    let seconds = days(date)?.checked_mul(86_400)? + seconds(whole)? - offset;
    seconds.checked_mul(1_000_000)?.checked_add(fraction)
}

/// Seconds of `hours:minutes:seconds`, of which the last may be missing.
fn seconds(text: &str) -> Option<i64> {
    if text.is_empty() {
        return Some(0);
    }
    let mut total = 0;
    for (part, unit) in text.split(':').zip([3600, 60, 1]) {
        total += part.parse::<i64>().ok()? * unit;
    }
    Some(total)
}

/// Kind, length, nulls, validity, offsets and data.
pub(crate) type Buffers<'py> =
    (&'static str, usize, usize, Bound<'py, PyBytes>, Option<Bound<'py, PyBytes>>, Bound<'py, PyBytes>);

/// The rows from a place on, by columns; `None` for a column whose type has no buffers here.
pub(crate) fn columns<'py>(
    py: Python<'py>,
    rows: &ResultSet,
    mut place: Place,
) -> PyResult<Vec<Option<Buffers<'py>>>> {
    let kinds = rows.columns().iter().map(|column| Kind::of(&column.ty));
    let mut builders: Vec<Option<Builder>> = kinds.map(|kind| kind.map(Builder::new)).collect();
    let mut text = String::new();
    while let Some(row) = rows.next_row(&mut place) {
        let columns = rows.columns().iter().map(|column| &column.ty);
        for ((builder, value), ty) in builders.iter_mut().zip(row.values()).zip(columns) {
            let Some(builder) = builder else { continue };
            match value.filter(|_| row.format() == Format::Binary) {
                Some(bytes) => {
                    text.clear();
                    binary::put_text(ty, bytes, &mut text)?;
                    builder.push(Some(text.as_bytes()))?;
                }
                None => builder.push(value)?,
            }
        }
    }
    let buffers = |builder: Builder| {
        let offsets = builder.kind.has_offsets().then(|| PyBytes::new(py, &builder.offsets));
        let (validity, data) = (PyBytes::new(py, &builder.validity), PyBytes::new(py, &builder.data));
        (builder.kind.name(), builder.length, builder.nulls, validity, offsets, data)
    };
    Ok(builders.into_iter().map(|builder| builder.map(buffers)).collect())
}
