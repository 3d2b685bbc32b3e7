//! What of a COPY's rows needs no Python: each goes straight into the data.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple};

use crate::copying::CopyBuffer;

/// A COPY that rows are written to. Python's class of it builds on this one: a row that needs nothing but to be added costs
/// no call within Python.
#[pyclass(frozen, subclass, module = "onetrip._native")]
pub(crate) struct RowWriter {
    buffer: PyOnceLock<Py<CopyBuffer>>,
    /// Whether rows go straight into the buffer.
    is_direct: AtomicBool,
}

#[pymethods]
impl RowWriter {
    /// What Python's class is made of is for its own `__init__`.
    #[new]
    #[pyo3(signature = (*_given, **_named))]
    fn new(_given: &Bound<'_, PyTuple>, _named: Option<&Bound<'_, PyDict>>) -> Self {
        Self { buffer: PyOnceLock::new(), is_direct: AtomicBool::new(false) }
    }

    /// Adds a row, in the text or the binary format. In text, the server reads each value as text of the column's
    /// type. In binary it converts nothing: a value has the type that `set_types` has said, or else the one that it has
    /// as a parameter.
    fn write_row(slf: &Bound<'_, Self>, row: &Bound<'_, PyAny>) -> PyResult<()> {
        let (py, writer) = (slf.py(), slf.get());
        let is_due = match writer.buffer.get(py) {
            Some(buffer) if writer.is_direct.load(Ordering::Relaxed) => buffer.get().write_row(row)?,
            _ => slf.call_method1(pyo3::intern!(py, "_add_row"), (row,))?.extract()?,
        };
        if is_due {
            slf.call_method0(pyo3::intern!(py, "_send_due"))?;
        }
        Ok(())
    }

    /// Takes rows straight into a buffer from now on; with `None`, by `_add_row`.
    fn _write_into(&self, py: Python<'_>, buffer: Option<Py<CopyBuffer>>) {
        self.is_direct.store(buffer.is_some(), Ordering::Relaxed);
        if let Some(buffer) = buffer {
            // A COPY has one buffer only.
            let _ = self.buffer.set(py, buffer);
        }
    }
}
