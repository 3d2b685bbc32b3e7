//! Results as batches of Arrow that any package takes.

use std::sync::Arc;

use onetrip_client::Place;
use onetrip_client::types::Type;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};

use super::batch::{Batch, Field, Kind, decimals};
use super::ffi::{Schema, array_capsule, schema_capsule, stream_capsule};
use crate::answer::Answer;

/// A batch ends at so many bytes, whatever its number of rows is.
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// Rows that are added at once; what of the result they have been taken of is given back after each such step.
const STEP_ROWS: usize = 4096;

/// Makes batches of results whose columns are the same.
#[pyclass(module = "onetrip._native")]
pub(crate) struct ArrowBuilder {
    fields: Arc<[Field]>,
    batch: Batch,
    rows_max: usize,
    /// The result that rows are taken of, and the next of them.
    answer: Option<(Py<Answer>, Place)>,
}

#[pymethods]
impl ArrowBuilder {
    /// For results with the columns of this one, so many rows a batch. With `scans`, a column of `numeric` has the digits
    /// that its values have. With `leaves`, what has no type of its own in Arrow is left out: nothing but NULL. `wanted`
    /// is a capsule of the schema that a consumer asks for; it is followed as far as `numeric` goes.
    #[new]
    #[pyo3(signature = (answer, rows_max, scans, leaves = false, wanted = None))]
    fn new(
        answer: &Bound<'_, Answer>,
        rows_max: usize,
        scans: bool,
        leaves: bool,
        wanted: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let whole = answer.try_borrow()?;
        let Some(rows) = whole.rows() else { return Err(PyValueError::new_err("a result without rows")) };
        let mut fields = Field::of(rows.columns(), rows.format());
        if scans {
            let found = decimals(rows, whole.place(), &fields)?;
            for (field, kind) in fields.iter_mut().zip(found) {
                if let Some(kind) = kind {
                    (field.kind, field.is_other) = (kind, false);
                }
            }
        }
        if let Some(wanted) = wanted.filter(|wanted| !wanted.is_none()) {
            follow(&Schema::taken(wanted)?, &mut fields).map_err(PyValueError::new_err)?;
        }
        if leaves {
            fields.iter_mut().filter(|field| field.is_other).for_each(|field| field.kind = Kind::Null);
        }
        let fields: Arc<[Field]> = fields.into();
        Ok(Self { batch: Batch::empty(&fields), fields, rows_max, answer: None })
    }

    /// The columns whose types have no form of their own in Arrow.
    #[getter]
    fn others(&self) -> Vec<usize> {
        let others = self.fields.iter().enumerate().filter(|(_, field)| field.is_other);
        others.map(|(at, _)| at).collect()
    }

    /// How many rows wait for their batch.
    fn __len__(&self) -> usize {
        self.batch.rows
    }

    /// Takes the rows that are left of a result; they count as read, and are gone once they are added.
    fn begin(&mut self, answer: &Bound<'_, Answer>) -> PyResult<()> {
        let place = answer.try_borrow_mut()?.leave();
        self.answer = Some((answer.clone().unbind(), place));
        Ok(())
    }

    /// Adds rows of that result until the batch is full: false where there are no more rows before that.
    fn add(&mut self, py: Python<'_>) -> PyResult<bool> {
        let Self { batch, rows_max, answer, .. } = self;
        let Some((answer, place)) = answer else { return Ok(false) };
        loop {
            let step_max = rows_max.saturating_sub(batch.rows).min(STEP_ROWS) + batch.rows;
            let is_full = match answer.bind(py).try_borrow()?.rows() {
                Some(rows) => {
                    if batch.rows == 0 {
                        batch.reserve((*rows_max).min(rows.len() - place.row()), BYTES_MAX);
                    }
                    batch.add(py, rows, place, step_max, BYTES_MAX)?
                }
                None => false,
            };
            answer.bind(py).try_borrow_mut()?.release(*place);
            if !is_full || batch.rows >= *rows_max || batch.memory() >= BYTES_MAX {
                return Ok(is_full);
            }
        }
    }

    /// The batch of what was added.
    fn batch(&mut self) -> ArrowBatch {
        self.batch.finish();
        ArrowBatch(Arc::new(std::mem::replace(&mut self.batch, Batch::empty(&self.fields))))
    }

    /// A capsule of the stream of what an iterator gives, which are batches of this builder.
    fn stream<'py>(&self, py: Python<'py>, batches: Py<PyAny>) -> PyResult<Bound<'py, PyCapsule>> {
        stream_capsule(py, Arc::clone(&self.fields), batches)
    }
}

/// Makes of columns what a consumer asks for, as far as that is a matter of taste: of `numeric`.
fn follow(wanted: &Schema, fields: &mut [Field]) -> Result<(), String> {
    let children = wanted.children()?;
    if children.len() != fields.len() {
        return Err(format!(
            "the schema that is asked for has {} columns, and the result has {}",
            children.len(),
            fields.len()
        ));
    }
    for (field, wanted) in fields.iter_mut().zip(children) {
        if field.ty == Type::NUMERIC {
            if let Some(kind) = numeric_as(wanted.format()?) {
                (field.kind, field.is_other) = (kind, false);
            }
        }
    }
    Ok(())
}

fn numeric_as(format: &str) -> Option<Kind> {
    match format {
        "g" => Some(Kind::Float64),
        "U" => Some(Kind::Text),
        _ => {
            let digits = format.strip_prefix("d:")?;
            let (precision, scale) = digits.strip_suffix(",128").unwrap_or(digits).split_once(',')?;
            Kind::decimal(precision.parse().ok()?, scale.parse().ok()?)
        }
    }
}

/// Rows by columns, which any package that knows Arrow takes.
#[pyclass(frozen, module = "onetrip.arrow")]
pub(crate) struct ArrowBatch(Arc<Batch>);

impl ArrowBatch {
    pub(super) fn batch(&self) -> Arc<Batch> {
        Arc::clone(&self.0)
    }
}

#[pymethods]
impl ArrowBatch {
    fn __len__(&self) -> usize {
        self.0.rows
    }

    fn __repr__(&self) -> String {
        format!("<onetrip.arrow.ArrowBatch [{} rows, {} columns]>", self.0.rows, self.0.columns.len())
    }

    /// The names of its columns.
    #[getter]
    fn column_names(&self) -> Vec<&str> {
        self.0.fields.iter().map(|field| &*field.name).collect()
    }

    /// Capsules of its schema and its data. It can be asked for them more than once; `requested_schema` is not followed.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        let _ = requested_schema;
        Ok((schema_capsule(py, &self.0.fields)?, array_capsule(py, &self.0)?))
    }

    /// A capsule of a stream of this one batch.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        slf: &Bound<'py, Self>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = PyList::new(slf.py(), [slf])?.try_iter()?;
        stream_capsule(slf.py(), Arc::clone(&slf.get().0.fields), batches.into_any().unbind())
    }
}
