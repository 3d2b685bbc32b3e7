//! Single values for the Python side, made as those of results are.

use onetrip_client::Oid;
use onetrip_client::types::{Kind, Type};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::adapters::Functions;
use crate::loading::{FIRST_OWN_OID, Loader, Session, session_within};
use crate::{binary, loading};

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
    Loader::of(py, &ty, own.unwrap_or(&none), &session_within())?.load(py, text.as_bytes())
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
    Loader::of_binary(py, &ty, &functions, &session_within())?.load_binary(py, &ty, data)
}

/// A value of a type as it is made where the program has registered nothing: of text, or of the binary form.
///
/// # Errors
/// Bytes that are not of the type.
#[pyfunction]
pub(crate) fn built_in<'py>(
    py: Python<'py>,
    oid: Oid,
    data: &[u8],
    is_binary: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let ty =
        Type::from_oid(oid).unwrap_or_else(|| Type::new(String::new(), oid, Kind::Simple, String::new()));
    let loader = Loader::built_in(py, &ty, &PyDict::new(py), &Session::default())?;
    if is_binary { loader.load_binary(py, &ty, data) } else { loader.load(py, data) }
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
    loading::load_array(py, &Loader::Call(element, None), sign, text.as_bytes())
}
