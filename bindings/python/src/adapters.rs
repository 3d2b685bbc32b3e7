//! Which Python values stand for which values of the server.

use onetrip_client::Oid;
use onetrip_client::types::{Kind, Type};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

use crate::loading::{Loader, Session};
use crate::query::Form;
use crate::{arrays, binary};

static DUMP: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static LOADERS: PyOnceLock<(Py<PyDict>, Py<PyDict>)> = PyOnceLock::new();
static OWN: PyOnceLock<(Py<PyDict>, Py<PyAny>)> = PyOnceLock::new();

/// Takes the Python side of the conversions: `dump(value, format)`, which returns a type's id and the value as text or
/// bytes, for what is not converted here; the functions, by type id, that make values from text and from bytes; and which
/// classes the program has dumpers of its own for: those that were asked for, and a function that says it of a class. It
/// is empty as long as the program has none.
#[pyfunction]
pub(crate) fn set_adapters(
    py: Python<'_>,
    dump: Py<PyAny>,
    loaders: (Py<PyDict>, Py<PyDict>),
    own: Py<PyDict>,
    find_own: Py<PyAny>,
) {
    // Set by the package's first import; a second one would bring the same.
    let _ = DUMP.set(py, dump);
    let _ = LOADERS.set(py, loaders);
    let _ = OWN.set(py, (own, find_own));
}

/// Whether the program itself has said how values of this one's class are written.
#[inline]
pub(crate) fn has_own_dumper(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = value.py();
    let Some((own, find)) = OWN.get(py) else { return Ok(false) };
    let own = own.bind(py);
    if own.is_empty() {
        return Ok(false);
    }
    match own.get_item(value.get_type())? {
        Some(known) => known.extract(),
        None => find.bind(py).call1((value.get_type(),))?.extract(),
    }
}

/// What the Python side makes of a value: its type and text or bytes; `None` for NULL.
pub(crate) fn dump<'py>(value: &Bound<'py, PyAny>, form: Form) -> PyResult<Option<(Oid, Bound<'py, PyAny>)>> {
    let py = value.py();
    let dump = DUMP.get(py).ok_or_else(|| PyRuntimeError::new_err("the package onetrip is not imported"))?;
    dump.bind(py).call1((value, form.sign()))?.extract()
}

/// The functions that make values: of one connection or cursor, or of the whole process. Those of text and those of a
/// type's binary form are apart.
#[derive(Debug)]
pub(crate) struct Functions<'a, 'py> {
    pub(crate) texts: &'a Bound<'py, PyDict>,
    pub(crate) binaries: &'a Bound<'py, PyDict>,
}

/// The function that the program has registered for the text of a type's values.
pub(crate) fn registered(py: Python<'_>, oid: Oid) -> PyResult<Option<Py<PyAny>>> {
    let Some((texts, _)) = LOADERS.get(py) else { return Ok(None) };
    Ok(texts.bind(py).get_item(oid)?.map(Bound::unbind))
}

/// The function that the program has registered for the binary form of a type's values.
pub(crate) fn registered_binary(py: Python<'_>, oid: Oid) -> PyResult<Option<Py<PyAny>>> {
    let Some((_, binaries)) = LOADERS.get(py) else { return Ok(None) };
    Ok(binaries.bind(py).get_item(oid)?.map(Bound::unbind))
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

/// The types that every server has: the type of arrays by that of their elements, and the type by its name.
#[pyfunction]
pub(crate) fn known_types(py: Python<'_>) -> PyResult<(Bound<'_, PyDict>, Bound<'_, PyDict>)> {
    let (arrays, names) = (PyDict::new(py), PyDict::new(py));
    for ty in (1..FIRST_OWN_OID).filter_map(Type::from_oid) {
        names.set_item(ty.name(), ty.oid())?;
        if let Some(element) = binary::element_of(&ty) {
            arrays.set_item(element.oid(), ty.oid())?;
        }
    }
    Ok((arrays, names))
}

/// Ids from here on are given to what is made in a database; `FirstGenbkiObjectId` in PostgreSQL's `transam.h`.
const FIRST_OWN_OID: Oid = 10_000;

/// A value of a type, of its text; by a connection's own loaders, if they are given.
///
/// # Errors
/// Text that is not of the type.
#[pyfunction]
#[pyo3(signature = (oid, text, own = None))]
pub(crate) fn loaded<'py>(
    py: Python<'py>,
    oid: Oid,
    text: Option<&str>,
    own: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let Some(text) = text else { return Ok(py.None().into_bound(py)) };
    let ty =
        Type::from_oid(oid).unwrap_or_else(|| Type::new(String::new(), oid, Kind::Simple, String::new()));
    let none = PyDict::new(py);
    Loader::of(py, &ty, own.unwrap_or(&none), &Session::default())?.load(py, text.as_bytes())
}

/// A value of a type, of its binary form; by a connection's own loaders, if they are given.
///
/// # Errors
/// Bytes that are not of the type.
#[pyfunction]
#[pyo3(signature = (oid, data, texts = None, binaries = None))]
pub(crate) fn loaded_binary<'py>(
    py: Python<'py>,
    oid: Oid,
    data: Option<&[u8]>,
    texts: Option<&Bound<'py, PyDict>>,
    binaries: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let Some(data) = data else { return Ok(py.None().into_bound(py)) };
    let ty =
        Type::from_oid(oid).unwrap_or_else(|| Type::new(String::new(), oid, Kind::Simple, String::new()));
    let none = PyDict::new(py);
    let functions = Functions { texts: texts.unwrap_or(&none), binaries: binaries.unwrap_or(&none) };
    Loader::of_binary(py, &ty, &functions, &Session::default())?.load_binary(py, &ty, data)
}

/// The list of an array's text, whose elements are what a function makes of theirs.
///
/// # Errors
/// Text that is no array, and what the function raises.
#[pyfunction]
pub(crate) fn loaded_array<'py>(
    py: Python<'py>,
    text: &str,
    delimiter: &str,
    element: Py<PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let sign = delimiter.bytes().next().unwrap_or(b',');
    arrays::load(py, &Loader::Call(element), sign, text.as_bytes())
}
