//! Tables and streams of other packages, as rows to be written.

use std::sync::{Arc, Mutex};

use onetrip_client::types::Type;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::ffi::{Node, Schema, Stream};
use super::read::{Field, Table, Value};
use super::write;
use crate::dumping::Dumped;
use crate::errors::misuse;
use crate::locked::locked;
use crate::query::Form;

/// The rows of a table, a batch or a stream, in their order. There is one batch of them in memory, as far as this side
/// goes.
#[pyclass(frozen, module = "onetrip._native")]
pub(crate) struct ArrowRows {
    fields: Arc<[Field]>,
    source: Mutex<Source>,
    /// How many there are, where the source knows.
    length: Option<usize>,
}

#[derive(Default)]
struct Source {
    stream: Option<Stream>,
    /// The batch that is being read, and the next row of it.
    table: Option<(Arc<Batch>, usize)>,
}

/// Rows with their columns' names.
struct Batch {
    table: Table,
    fields: Arc<[Field]>,
}

impl Batch {
    fn of(py: Python<'_>, fields: &Arc<[Field]>, node: &Node) -> PyResult<Arc<Self>> {
        let table = Table::of(fields, node).map_err(|problem| misuse(py, "data", &problem))?;
        Ok(Arc::new(Self { table, fields: Arc::clone(fields) }))
    }

    /// Calls with a value; what it finds wrong is said with the column's name.
    fn with_value<T>(
        &self,
        py: Python<'_>,
        row: usize,
        column: usize,
        call: impl FnOnce(Option<Value<'_>>) -> Result<T, String>,
    ) -> PyResult<T> {
        let done = self.table.value(row, column).and_then(call);
        done.map_err(|problem| {
            let (name, of) = match self.fields.get(column) {
                Some(field) => (&*field.name, &*field.type_name),
                None => ("", "none"),
            };
            misuse(py, "data", &format!("column {name:?} of type {of}: {problem}"))
        })
    }
}

#[pymethods]
impl ArrowRows {
    /// Of an object with `__arrow_c_stream__` or `__arrow_c_array__`.
    #[new]
    fn new(data: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = data.py();
        let fields = |schema: &Schema| {
            let fields = Field::of_table(schema);
            fields.map(Arc::<[Field]>::from).map_err(|(problem, is_known)| {
                misuse(py, if is_known { "unsupported" } else { "data" }, &problem)
            })
        };
        let length = data.len().ok();
        if let Some(export) = data.getattr_opt("__arrow_c_stream__")? {
            let mut stream = Stream::taken(&export.call0()?)?;
            let fields = fields(&stream.schema(py)?)?;
            let source = Source { stream: Some(stream), table: None };
            return Ok(Self { fields, source: Mutex::new(source), length });
        }
        let Some(export) = data.getattr_opt("__arrow_c_array__")? else {
            let problem = format!("{} is no data of Arrow", data.get_type().name()?);
            return Err(PyTypeError::new_err(problem));
        };
        let capsules = export.call0()?;
        let capsules = capsules.cast::<PyTuple>()?;
        let fields = fields(&Schema::taken(&capsules.get_item(0)?)?)?;
        let node = Node::taken(&capsules.get_item(1)?)?;
        let batch = Batch::of(py, &fields, &node)?;
        let source = Source { stream: None, table: Some((batch, 0)) };
        Ok(Self { fields, source: Mutex::new(source), length })
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<ArrowRow>> {
        self.next(py)
    }

    /// Raises where nobody knows.
    fn __len__(&self) -> PyResult<usize> {
        self.length.ok_or_else(|| PyTypeError::new_err("a stream does not say how many rows it has"))
    }
}

impl ArrowRows {
    /// How many columns there are.
    pub(crate) fn width(&self) -> usize {
        self.fields.len()
    }

    /// The next row.
    pub(crate) fn next(&self, py: Python<'_>) -> PyResult<Option<ArrowRow>> {
        loop {
            // Python may run while a stream is asked, and must not while the lock is held.
            let mut stream = {
                let mut source = locked(&self.source);
                if let Some((batch, at)) = &mut source.table {
                    if *at < batch.table.rows() {
                        let row = ArrowRow { batch: Arc::clone(batch), at: *at };
                        *at += 1;
                        return Ok(Some(row));
                    }
                }
                source.table = None;
                match source.stream.take() {
                    Some(stream) => stream,
                    None => return Ok(None),
                }
            };
            let Some(node) = stream.next(py)? else { return Ok(None) };
            let batch = Batch::of(py, &self.fields, &node)?;
            *locked(&self.source) = Source { stream: Some(stream), table: Some((batch, 0)) };
        }
    }
}

/// One of the rows: parameters of a statement.
#[pyclass(frozen, module = "onetrip._native")]
pub(crate) struct ArrowRow {
    batch: Arc<Batch>,
    at: usize,
}

impl ArrowRow {
    /// How many values there are.
    pub(crate) fn width(&self) -> usize {
        self.batch.fields.len()
    }

    /// The position of a column.
    pub(crate) fn column(&self, name: &str) -> Option<usize> {
        self.batch.fields.iter().position(|field| field.name == name)
    }

    /// Appends a value as a parameter: as text only, or in a form.
    ///
    /// # Errors
    /// A value that no type of the server can hold.
    pub(crate) fn put_parameter(
        &self,
        py: Python<'_>,
        column: usize,
        form: Form,
        is_text: bool,
        out: &mut Vec<u8>,
    ) -> PyResult<Dumped> {
        self.batch.with_value(py, self.at, column, |value| write::put_parameter(value, form, is_text, out))
    }

    /// `text` for a column of text, and `bytea` for others, whose bytes no encoding changes.
    pub(crate) fn text_type(&self, column: usize) -> &'static Type {
        let is_text = self.batch.fields.get(column).is_some_and(Field::is_text);
        if is_text { &Type::TEXT } else { &Type::BYTEA }
    }

    /// Appends a value in COPY's text format.
    ///
    /// # Errors
    /// As [`put_parameter`](Self::put_parameter).
    pub(crate) fn put_copy_text(&self, py: Python<'_>, column: usize, out: &mut Vec<u8>) -> PyResult<()> {
        self.batch.with_value(py, self.at, column, |value| write::put_copy_text(value, out))
    }

    /// Appends a value in the binary form of a column's type, or of its own; false for NULL.
    ///
    /// # Errors
    /// As [`put_parameter`](Self::put_parameter).
    pub(crate) fn put_copy_binary(
        &self,
        py: Python<'_>,
        column: usize,
        ty: Option<&Type>,
        out: &mut Vec<u8>,
    ) -> PyResult<bool> {
        self.batch.with_value(py, self.at, column, |value| match value {
            Some(value) => write::put_binary(&value, ty, out).map(|()| true),
            None => Ok(false),
        })
    }
}
