//! Text under a `client_encoding` other than UTF8, by Python's codecs.

use std::cell::Cell;

use onetrip_client::core::Codec;
use onetrip_client::types::Type;
use onetrip_client::{Done, Error, Format, Usage};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyString};

use crate::binary;

/// For the client: statements, names and messages.
pub(crate) fn codec() -> Codec {
    Codec {
        encode: |encoding, text| Python::attach(|py| encoded(py, encoding, text).ok()),
        decode: |encoding, said| Python::attach(|py| decoded(py, encoding, said).ok()),
    }
}

/// A session's encoding, where it is neither UTF-8 nor one in which nobody converts.
pub(crate) fn foreign(encoding: Option<&str>) -> Option<&str> {
    encoding.filter(|encoding| !matches!(*encoding, "UTF8" | "SQL_ASCII"))
}

/// Whether a session's text is in no encoding that anybody knows.
pub(crate) fn is_unknown(encoding: Option<&str>) -> bool {
    encoding == Some("SQL_ASCII")
}

/// Text in an encoding, by the server's name of it.
///
/// # Errors
/// Signs that it has not, and encodings that Python does not know.
pub(crate) fn encoded(py: Python<'_>, encoding: &str, text: &str) -> PyResult<Vec<u8>> {
    PyString::new(py, text).call_method1("encode", (name(py, encoding)?,))?.extract()
}

/// Text of bytes in an encoding.
///
/// # Errors
/// Bytes that are none, and encodings that Python does not know.
pub(crate) fn decoded(py: Python<'_>, encoding: &str, said: &[u8]) -> PyResult<String> {
    PyBytes::new(py, said).call_method1("decode", (name(py, encoding)?,))?.extract()
}

fn name<'py>(py: Python<'py>, encoding: &str) -> PyResult<Bound<'py, PyAny>> {
    static NAME: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let find = || PyModule::import(py, "onetrip.info")?.getattr("codec_of").map(Bound::unbind);
    NAME.get_or_try_init(py, find)?.bind(py).call1((encoding,))
}

thread_local! {
    /// What a codec raised, for the call that it raised it in.
    static RAISED: Cell<Option<PyErr>> = const { Cell::new(None) };
}

/// Calls with the interpreter where only the client's errors can be returned; [`take_raised`] has what it raised.
pub(crate) fn raising<T>(call: impl FnOnce(Python<'_>) -> PyResult<T>) -> Result<T, Error> {
    Python::attach(call).map_err(|raised| {
        RAISED.set(Some(raised));
        Usage::Encoding.into()
    })
}

/// What a call that has failed raised.
pub(crate) fn take_raised() -> Option<PyErr> {
    RAISED.take()
}

/// What a statement did, with its rows in UTF-8.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) done: Done,
    /// Whether its text is in no encoding that anybody knows.
    pub(crate) is_raw: bool,
}

impl Checked {
    /// Makes UTF-8 of its rows.
    ///
    /// # Errors
    /// Bytes that are not what the encoding says.
    pub(crate) fn of(mut done: Done, encoding: Option<&str>) -> Result<Self, Error> {
        if let (Some(encoding), Some(rows)) = (foreign(encoding), &mut done.rows) {
            if !rows.is_ascii() {
                raising(|py| {
                    let convert = |text: &[u8]| Ok(decoded(py, encoding, text)?.into_bytes());
                    rows.convert(|column, format, value| converted(&column.ty, format, value, convert))
                })?;
            }
        }
        Ok(Self { done, is_raw: is_unknown(encoding) })
    }
}

/// A value whose text is converted; `None` for one that has none beyond ASCII.
///
/// # Errors
/// What the conversion raises.
pub(crate) fn converted(
    ty: &Type,
    format: Format,
    value: &[u8],
    convert: impl Fn(&[u8]) -> PyResult<Vec<u8>> + Copy,
) -> PyResult<Option<Vec<u8>>> {
    if value.is_ascii() {
        return Ok(None);
    }
    if format == Format::Text || binary::is_text(ty) {
        return convert(value).map(Some);
    }
    match (ty, value) {
        // A byte for the version goes before it.
        (&Type::JSONB, [version, text @ ..]) => {
            let mut made = vec![*version];
            made.extend(convert(text)?);
            Ok(Some(made))
        }
        _ => match binary::element_of(ty) {
            Some(element) => Ok(array(element, value, convert)),
            None => Ok(None),
        }
        .and_then(Option::transpose),
    }
}

/// An array in binary with other elements; `None` for bytes that are none.
fn array(
    element: &Type,
    value: &[u8],
    convert: impl Fn(&[u8]) -> PyResult<Vec<u8>> + Copy,
) -> Option<PyResult<Vec<u8>>> {
    let dimensions = usize::try_from(i32::from_be_bytes(value.get(..4)?.try_into().ok()?)).ok()?;
    let (head, mut rest) = value.split_at_checked(12 + dimensions.checked_mul(8)?)?;
    let mut made = head.to_vec();
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        rest = after;
        let Ok(size) = usize::try_from(i32::from_be_bytes(*length)) else {
            made.extend_from_slice(length);
            continue;
        };
        let (one, after) = rest.split_at_checked(size)?;
        rest = after;
        match converted(element, Format::Binary, one, convert) {
            Ok(other) => {
                let one = other.as_deref().unwrap_or(one);
                made.extend_from_slice(&u32::try_from(one.len()).ok()?.to_be_bytes());
                made.extend_from_slice(one);
            }
            Err(raised) => return Some(Err(raised)),
        }
    }
    Some(Ok(made))
}
