//! What the program has said about its own values: which Python values stand for which values of the server.

use onetrip_client::Oid;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

use crate::query::Form;

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

/// Whether the program has said how values of any class are written.
#[inline]
pub(crate) fn has_own_dumpers(py: Python<'_>) -> bool {
    OWN.get(py).is_some_and(|(own, _)| !own.bind(py).is_empty())
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
