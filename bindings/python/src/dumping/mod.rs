//! Python's values as the server's: which type a value has, and how it is written.
//!
//! A Python function is called for a value only where the program has registered one for its class, or where the class is
//! none of those that are known here.

mod arrays;
mod plain;
mod texts;

use onetrip_client::types::Type;
use onetrip_client::{Format, Oid};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyBytes, PyDate, PyDateAccess, PyDateTime, PyDelta, PyDeltaAccess, PyFloat, PyInt, PyList,
    PyString, PyTime, PyTimeAccess, PyType, PyTzInfo, PyTzInfoAccess,
};

use crate::adapters::{self, has_own_dumper};
use crate::binary::{self, DAY, HOUR, MINUTE, SECOND, days_of};
use crate::errors::misuse;
use crate::query::Form;

pub(crate) use plain::Plain;

/// How a value was written, and as which type; 0 leaves that to the server. `None` is NULL.
pub(crate) type Dumped = Option<(Oid, Format)>;

/// What a value is, by its class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Bool,
    Int,
    Float,
    Text,
    Bytes,
    Date,
    Timestamp,
    Time,
    Interval,
    Uuid,
    Numeric,
    List,
    Other,
}

impl Class {
    fn of(value: &Bound<'_, PyAny>) -> Self {
        let class = Self::exact(value);
        if class == Self::Other { Self::derived(value) } else { class }
    }

    /// By the very class, the most frequent ones first.
    #[inline]
    fn exact(value: &Bound<'_, PyAny>) -> Self {
        if value.is_exact_instance_of::<PyString>() {
            Self::Text
        } else if value.is_exact_instance_of::<PyInt>() {
            Self::Int
        } else if value.is_exact_instance_of::<PyFloat>() {
            Self::Float
        } else if value.is_exact_instance_of::<PyBool>() {
            Self::Bool
        } else if value.is_exact_instance_of::<PyDateTime>() {
            Self::Timestamp
        } else if value.is_exact_instance_of::<PyDate>() {
            Self::Date
        } else if value.is_exact_instance_of::<PyBytes>() {
            Self::Bytes
        } else if value.is_exact_instance_of::<PyList>() {
            Self::List
        } else if is_of(value, &UUID, "uuid", "UUID") {
            Self::Uuid
        } else if is_of(value, &DECIMAL, "decimal", "Decimal") {
            Self::Numeric
        } else if value.is_exact_instance_of::<PyTime>() {
            Self::Time
        } else if value.is_exact_instance_of::<PyDelta>() {
            Self::Interval
        } else {
            Self::Other
        }
    }

    /// Classes under the plain ones are written as those.
    fn derived(value: &Bound<'_, PyAny>) -> Self {
        if value.is_instance_of::<PyString>() {
            Self::Text
        } else if value.is_instance_of::<PyInt>() {
            Self::Int
        } else if value.is_instance_of::<PyFloat>() {
            Self::Float
        } else if value.is_instance_of::<PyBytes>() {
            Self::Bytes
        } else {
            Self::Other
        }
    }
}

static UUID: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static DECIMAL: PyOnceLock<Py<PyType>> = PyOnceLock::new();

fn is_of(value: &Bound<'_, PyAny>, class: &PyOnceLock<Py<PyType>>, module: &str, name: &str) -> bool {
    class.import(value.py(), module, name).is_ok_and(|class| value.get_type().is(class))
}

/// Appends a value as a parameter, in whichever form is the faster.
///
/// # Errors
/// A value that stands for none of the server's.
pub(crate) fn put(value: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> PyResult<Dumped> {
    put_any(value, Form::Any, out)
}

fn put_str(text: &Bound<'_, PyString>, out: &mut Vec<u8>) -> PyResult<()> {
    let text_of_it = text.to_cow()?;
    out.extend_from_slice(without_nul(text.py(), &text_of_it)?);
    Ok(())
}

/// The bytes of text, in which the server has no NUL.
pub(crate) fn without_nul<'a>(py: Python<'_>, text: &'a str) -> PyResult<&'a [u8]> {
    if text.as_bytes().contains(&0) {
        return Err(misuse(py, "data", "text cannot contain NUL (0x00): write such data as bytes"));
    }
    Ok(text.as_bytes())
}

fn put_any(value: &Bound<'_, PyAny>, form: Form, out: &mut Vec<u8>) -> PyResult<Dumped> {
    if value.is_none() {
        return Ok(None);
    }
    let class = Class::of(value);
    if has_own_dumper(value)? {
        return put_by_python(value, form, out);
    }
    if class == Class::Text {
        put_str(value.cast()?, out)?;
        return Ok(Some((0, Format::Text)));
    }
    if let Some(type_oid) = put_binary(class, value, out)? {
        return Ok(Some((type_oid, Format::Binary)));
    }
    match class {
        Class::Int | Class::Numeric => {
            let text = value.str()?;
            out.extend_from_slice(texts::plain_number(&text.to_cow()?).as_bytes());
            Ok(Some((Type::NUMERIC.oid(), Format::Text)))
        }
        _ => put_by_python(value, form, out),
    }
}

/// Appends a value in the binary form of its type, where that is known here; as text otherwise.
///
/// # Errors
/// As [`put`].
pub(crate) fn put_binary_form(value: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> PyResult<Dumped> {
    let start = out.len();
    let dumped = put_any(value, Form::Binary, out)?;
    let Some((type_oid, Format::Text)) = dumped else { return Ok(dumped) };
    let ty = match Type::from_oid(type_oid) {
        None if value.is_instance_of::<PyString>() => Type::TEXT,
        // Which type it is, and so its binary form, is for the server to say: an empty list, an enum's member.
        None => return Ok(dumped),
        Some(ty) => ty,
    };
    let text = out.split_off(start);
    let is_written = std::str::from_utf8(&text).is_ok_and(|text| binary::put(&ty, text, out).is_ok());
    if is_written {
        return Ok(Some((ty.oid(), Format::Binary)));
    }
    out.truncate(start);
    out.extend_from_slice(&text);
    Ok(dumped)
}

/// Appends a value as text of its type.
///
/// # Errors
/// As [`put`]. What a dumper of the program's writes in binary stays so.
pub(crate) fn put_text(value: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> PyResult<Dumped> {
    if value.is_none() {
        return Ok(None);
    }
    let class = Class::of(value);
    if !has_own_dumper(value)? {
        if let Some(type_oid) = texts::put(class, value, out)? {
            return Ok(Some((type_oid, Format::Text)));
        }
    }
    put_by_python(value, Form::Text, out)
}

/// Appends a value in the binary form of a type, if it has one that needs no conversion; says whether it did.
///
/// # Errors
/// As [`put`].
pub(crate) fn put_as(ty: &Type, value: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> PyResult<bool> {
    if has_own_dumper(value)? {
        return Ok(false);
    }
    put_known_as(ty, Class::of(value), value, out)
}

fn put_known_as(ty: &Type, class: Class, value: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> PyResult<bool> {
    let start = out.len();
    match class {
        Class::Text if binary::is_text(ty) => {
            put_str(value.cast()?, out)?;
            return Ok(true);
        }
        Class::Int => match (ty, value.extract::<i64>()) {
            (&Type::INT4, Ok(value)) => match i32::try_from(value) {
                Ok(value) => out.extend_from_slice(&value.to_be_bytes()),
                Err(_) => return Ok(false),
            },
            (&Type::INT2, Ok(value)) => match i16::try_from(value) {
                Ok(value) => out.extend_from_slice(&value.to_be_bytes()),
                Err(_) => return Ok(false),
            },
            (&Type::INT8, Ok(value)) => out.extend_from_slice(&value.to_be_bytes()),
            _ => return Ok(false),
        },
        _ => {
            if put_binary(class, value, out)? != Some(ty.oid()) {
                out.truncate(start);
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// A value as it is written where the program has said nothing about its class: in the binary form of a type, or as text.
/// `None` where it has none here.
///
/// # Errors
/// A value that is not of its type.
#[pyfunction]
pub(crate) fn dumped<'py>(
    value: &Bound<'py, PyAny>,
    oid: Oid,
    is_binary: bool,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let (class, mut out) = (Class::of(value), Vec::new());
    let is_written = match (is_binary, Type::from_oid(oid)) {
        (false, _) => texts::put(class, value, &mut out)?.is_some(),
        (true, Some(ty)) => {
            let mut text = Vec::new();
            put_known_as(&ty, class, value, &mut out)?
                || texts::put(class, value, &mut text)?.is_some()
                    && std::str::from_utf8(&text).is_ok_and(|text| binary::put(&ty, text, &mut out).is_ok())
        }
        (true, None) => false,
    };
    Ok(is_written.then(|| PyBytes::new(value.py(), &out)))
}

fn put_by_python(value: &Bound<'_, PyAny>, form: Form, out: &mut Vec<u8>) -> PyResult<Dumped> {
    let Some((type_oid, written)) = adapters::dump(value, form)? else { return Ok(None) };
    let format = match written.cast::<PyBytes>() {
        Ok(bytes) => {
            out.extend_from_slice(bytes.as_bytes());
            Format::Binary
        }
        Err(_) => {
            put_str(written.cast()?, out)?;
            Format::Text
        }
    };
    Ok(Some((type_oid, format)))
}

/// Appends a value in binary; its type, or `None` where it has no binary form here.
#[inline]
fn put_binary(class: Class, value: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> PyResult<Option<Oid>> {
    let ty = match class {
        Class::Bool => {
            out.push(u8::from(value.cast::<PyBool>()?.is_true()));
            Type::BOOL
        }
        // The narrowest of int4, int8 and numeric that holds it, so that functions and operators are found.
        Class::Int => match value.extract::<i64>() {
            Ok(value) => match i32::try_from(value) {
                Ok(value) => {
                    out.extend_from_slice(&value.to_be_bytes());
                    Type::INT4
                }
                Err(_) => {
                    out.extend_from_slice(&value.to_be_bytes());
                    Type::INT8
                }
            },
            Err(_) => return Ok(None),
        },
        Class::Float => {
            out.extend_from_slice(&value.cast::<PyFloat>()?.value().to_be_bytes());
            Type::FLOAT8
        }
        Class::Bytes => {
            out.extend_from_slice(value.cast::<PyBytes>()?.as_bytes());
            Type::BYTEA
        }
        Class::Date => {
            // Python's years are four digits long.
            out.extend_from_slice(&(days(value.cast::<PyDate>()?) as i32).to_be_bytes());
            Type::DATE
        }
        Class::Timestamp => {
            let value = value.cast::<PyDateTime>()?;
            let micros = days(value.cast::<PyDate>()?) * DAY + micros(value);
            let Some(offset) = offset_of(value.as_any(), value.get_tzinfo())? else { return Ok(None) };
            out.extend_from_slice(&(micros - offset.unwrap_or(0)).to_be_bytes());
            if offset.is_some() { Type::TIMESTAMPTZ } else { Type::TIMESTAMP }
        }
        Class::Time => {
            let value = value.cast::<PyTime>()?;
            let Some(offset) = offset_of(value.as_any(), value.get_tzinfo())? else { return Ok(None) };
            let seconds = offset.map(|offset| i32::try_from(offset / SECOND));
            match (offset, seconds) {
                (None, _) => out.extend_from_slice(&micros(value).to_be_bytes()),
                (Some(offset), Some(Ok(seconds))) if offset % SECOND == 0 => {
                    out.extend_from_slice(&micros(value).to_be_bytes());
                    // Counted towards the west.
                    out.extend_from_slice(&(-seconds).to_be_bytes());
                }
                _ => return Ok(None),
            }
            if offset.is_some() { Type::TIMETZ } else { Type::TIME }
        }
        Class::Interval => {
            out.extend_from_slice(&interval(value.cast::<PyDelta>()?));
            Type::INTERVAL
        }
        Class::Uuid => {
            out.extend_from_slice(&uuid(value)?.to_be_bytes());
            Type::UUID
        }
        Class::List => return arrays::put(value.cast::<PyList>()?, out),
        Class::Text | Class::Numeric | Class::Other => return Ok(None),
    };
    Ok(Some(ty.oid()))
}

fn uuid(value: &Bound<'_, PyAny>) -> PyResult<u128> {
    value.getattr(pyo3::intern!(value.py(), "int"))?.extract()
}

/// Microseconds, days and months.
fn interval(delta: &Bound<'_, PyDelta>) -> [u8; 16] {
    let micros = i64::from(delta.get_seconds()) * SECOND + i64::from(delta.get_microseconds());
    let mut parts = [0; 16];
    parts[..8].copy_from_slice(&micros.to_be_bytes());
    parts[8..12].copy_from_slice(&delta.get_days().to_be_bytes());
    parts
}

/// Days since 2000-01-01.
fn days(date: &Bound<'_, PyDate>) -> i64 {
    days_of(date.get_year().into(), date.get_month().into(), date.get_day().into())
}

/// Microseconds since midnight.
fn micros(time: &impl PyTimeAccess) -> i64 {
    i64::from(time.get_hour()) * HOUR
        + i64::from(time.get_minute()) * MINUTE
        + i64::from(time.get_second()) * SECOND
        + i64::from(time.get_microsecond())
}

/// Whether a zone is one of the two objects that most programs have for UTC. Another may be UTC, too.
fn is_utc(zone: &Bound<'_, PyTzInfo>) -> PyResult<bool> {
    static NAMED: PyOnceLock<Option<Py<PyAny>>> = PyOnceLock::new();
    let py = zone.py();
    if zone.is(&*PyTzInfo::utc(py)?) {
        return Ok(true);
    }
    // As long as somebody has it, ZoneInfo gives no second one; without the data of time zones there is none.
    let named = NAMED.get_or_init(py, || {
        let class = py.import("zoneinfo").and_then(|module| module.getattr("ZoneInfo"));
        class.and_then(|class| class.call1(("UTC",))).ok().map(Bound::unbind)
    });
    Ok(named.as_ref().is_some_and(|named| zone.is(named)))
}

/// Microseconds to the east, if there is a zone. `None` for a zone that does not say it.
fn offset_of<'py>(
    value: &Bound<'py, PyAny>,
    zone: Option<Bound<'py, PyTzInfo>>,
) -> PyResult<Option<Option<i64>>> {
    let Some(zone) = zone else { return Ok(Some(None)) };
    if is_utc(&zone)? {
        return Ok(Some(Some(0)));
    }
    let offset = value.call_method0(pyo3::intern!(value.py(), "utcoffset"))?;
    let Ok(offset) = offset.cast::<PyDelta>() else { return Ok(None) };
    let seconds = i64::from(offset.get_days()) * 86_400 + i64::from(offset.get_seconds());
    Ok(Some(Some(seconds * SECOND + i64::from(offset.get_microseconds()))))
}
