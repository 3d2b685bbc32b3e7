//! Errors of the client as exceptions of `onetrip.errors`.

use onetrip_client::{ConnectError, Error, Retry, ServerError, Usage};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

static MAKER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Letters of the fields that the server may send; the manual's "Error and Notice Message Fields".
const FIELDS: &[u8] = b"SVCMDHPpqWstcdnFLR";

/// Takes `onetrip.errors.from_native`, which makes the exceptions.
#[pyfunction]
pub(crate) fn set_errors(py: Python<'_>, maker: Py<PyAny>) {
    // Set by the package's first import; a second one would bring the same.
    let _ = MAKER.set(py, maker);
}

/// The exception for an error.
pub(crate) fn exception(py: Python<'_>, error: &Error) -> PyErr {
    match make(py, error) {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

/// The exception for a call that the package itself refuses.
pub(crate) fn misuse(py: Python<'_>, kind: &str, message: &str) -> PyErr {
    let made = maker(py).and_then(|maker| maker.call1((kind, message, py.None(), "safe", py.None())));
    made.map_or_else(|error| error, PyErr::from_value)
}

/// The same exception with the row of `executemany` that it is about, where it is one of `onetrip.errors`.
pub(crate) fn of_row(py: Python<'_>, exception: PyErr, row: Option<usize>) -> PyErr {
    let value = exception.value(py);
    // Others have no place for it.
    if value.hasattr("row").unwrap_or(false) {
        let _ = value.setattr("row", row);
    }
    exception
}

/// The fields of what the server said, by their letters.
pub(crate) fn fields<'py>(py: Python<'py>, error: &ServerError) -> PyResult<Bound<'py, PyDict>> {
    let fields = PyDict::new(py);
    for letter in FIELDS {
        if let Some(value) = error.field(*letter) {
            fields.set_item(char::from(*letter), value)?;
        }
    }
    Ok(fields)
}

fn maker(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    let maker = MAKER.get(py).map(|maker| maker.bind(py));
    maker.ok_or_else(|| PyRuntimeError::new_err("the package onetrip is not imported"))
}

fn make<'py>(py: Python<'py>, error: &Error) -> PyResult<Bound<'py, PyAny>> {
    let (kind, by) = kind_of(error);
    let fields = match error {
        Error::Connect(connect) => match &**connect {
            ConnectError::Refused { source, .. } => Some(fields(py, source)?),
            _ => None,
        },
        _ => error.server().map(|error| fields(py, error)).transpose()?,
    };
    let message = error.server().map_or_else(|| error.to_string(), |error| error.message().to_owned());
    let retry = match error.retry() {
        Retry::Safe => "safe",
        Retry::Ran => "ran",
        Retry::Unknown => "unknown",
    };
    maker(py)?.call1((kind, message, fields, retry, by))
}

/// Which exception, and the operation that is to blame.
fn kind_of(error: &Error) -> (&'static str, Option<u64>) {
    match error {
        Error::Server(_) => ("server", None),
        Error::Aborted { by } => ("aborted", Some(by.number())),
        Error::Undone { by } => ("undone", Some(by.number())),
        Error::Parameter { .. } | Error::Column { .. } => ("data", None),
        Error::Usage(Usage::PipeliningOff | Usage::Encoding) => ("unsupported", None),
        Error::Usage(_) => ("usage", None),
        Error::RolledBack => ("rolled_back", None),
        Error::Connect(connect) if matches!(**connect, ConnectError::TimedOut { .. }) => {
            ("connect_timeout", None)
        }
        _ => ("operational", None),
    }
}
