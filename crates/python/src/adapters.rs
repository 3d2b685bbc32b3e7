//! Which Python values stand for which values of the server.

use onetrip_client::Oid;
use onetrip_client::types::{Kind, Type};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyString};

use crate::arrays;

static DUMP: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static LOADERS: PyOnceLock<Py<PyDict>> = PyOnceLock::new();

/// Takes the Python side of the conversions: `dump(value)`, which returns a type's id and the value as text or bytes,
/// for what is not converted here; and the functions, by type id, that make values from text.
#[pyfunction]
pub(crate) fn set_adapters(py: Python<'_>, dump: Py<PyAny>, loaders: Py<PyDict>) {
    // Set by the package's first import; a second one would bring the same.
    let _ = DUMP.set(py, dump);
    let _ = LOADERS.set(py, loaders);
}

/// What the Python side makes of a value.
pub(crate) fn dump<'py>(value: &Bound<'py, PyAny>) -> PyResult<(Oid, Bound<'py, PyAny>)> {
    let py = value.py();
    let dump = DUMP.get(py).ok_or_else(|| PyRuntimeError::new_err("the package onetrip is not imported"))?;
    dump.bind(py).call1((value,))?.extract()
}

/// How the values of a column become Python's.
#[derive(Debug)]
pub(crate) enum Loader {
    Bool,
    Int,
    Float,
    Text,
    Bytes,
    /// A function that takes the text.
    Call(Py<PyAny>),
    /// An array of such values; the sign stands between its elements.
    Array(Box<Loader>, u8),
}

impl Loader {
    /// The loader of a type; a registered function goes before what is built in, and one of the connection's own before
    /// that.
    pub(crate) fn of(py: Python<'_>, ty: &Type, own: &Bound<'_, PyDict>) -> PyResult<Self> {
        if let Some(function) = own.get_item(ty.oid())? {
            return Ok(Self::Call(function.unbind()));
        }
        let registered = LOADERS.get(py).map(|loaders| loaders.bind(py).get_item(ty.oid()));
        if let Some(function) = registered.transpose()?.flatten() {
            return Ok(Self::Call(function.unbind()));
        }
        Ok(match *ty {
            Type::BOOL => Self::Bool,
            Type::INT2 | Type::INT4 | Type::INT8 | Type::OID | Type::XID | Type::CID => Self::Int,
            Type::FLOAT4 | Type::FLOAT8 => Self::Float,
            Type::BYTEA => Self::Bytes,
            // Arrays by their kind, but not by how they are written.
            Type::INT2_VECTOR | Type::OID_VECTOR => Self::Text,
            _ => match ty.kind() {
                Kind::Array(element) => {
                    let sign = if *element == Type::BOX { b';' } else { b',' };
                    Self::Array(Box::new(Self::of(py, element, own)?), sign)
                }
                _ => Self::Text,
            },
        })
    }

    /// The value of some text of the server.
    ///
    /// # Errors
    /// Text that is not of the type, or what the registered function raises.
    pub(crate) fn load<'py>(&self, py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Self::Int => load_int(py, bytes),
            Self::Text => Ok(PyString::new(py, text(bytes)?).into_any()),
            Self::Bool => Ok(PyBool::new(py, bytes == b"t").to_owned().into_any()),
            Self::Float => {
                let value = text(bytes)?.parse().map_err(|_| PyValueError::new_err("not a number"))?;
                Ok(PyFloat::new(py, value).into_any())
            }
            Self::Bytes => Ok(PyBytes::new(py, &bytes_of(bytes)?).into_any()),
            Self::Call(function) => function.bind(py).call1((text(bytes)?,)),
            Self::Array(element, sign) => arrays::load(py, element, *sign, bytes),
        }
    }
}

fn text(bytes: &[u8]) -> PyResult<&str> {
    std::str::from_utf8(bytes).map_err(|_| PyValueError::new_err("a value is not UTF-8"))
}

/// Digits that surely fit into 64 bits.
const SHORT_DIGITS_MAX: usize = 18;

fn load_int<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let (negative, digits) = match bytes {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.len() > SHORT_DIGITS_MAX || digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return py.get_type::<PyInt>().call1((text(bytes)?,));
    }
    let value = digits.iter().fold(0_i64, |value, digit| value * 10 + i64::from(digit - b'0'));
    Ok((if negative { -value } else { value }).into_pyobject(py)?.into_any())
}

/// The bytes that `bytea` text stands for: hexadecimal, or the older form with octal escapes.
pub(crate) fn bytes_of(written: &[u8]) -> PyResult<Vec<u8>> {
    let wrong = || PyValueError::new_err("bytea that is written in neither of its forms");
    if let Some(digits) = written.strip_prefix(b"\\x") {
        let digit = |sign: u8| char::from(sign).to_digit(16).map(|digit| digit as u8);
        let byte = |pair: &[u8]| Some(digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?);
        return digits.chunks(2).map(byte).collect::<Option<_>>().ok_or_else(wrong);
    }
    let mut bytes = Vec::with_capacity(written.len());
    let mut rest = written;
    while let Some((sign, after)) = rest.split_first() {
        (rest, _) = match (*sign, after) {
            (b'\\', [b'\\', after @ ..]) => (after, bytes.push(b'\\')),
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..]) => {
                (after, bytes.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0')))
            }
            (b'\\', _) => return Err(wrong()),
            (sign, after) => (after, bytes.push(sign)),
        };
    }
    Ok(bytes)
}
