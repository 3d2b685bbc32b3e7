//! Python's values as parameters: written to bytes while the GIL is held, sent without it.

use bytes::Bytes;
use onetrip_client::types::Type;
use onetrip_client::{Format, Oid, Param, Written};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyMapping, PyString, PyTuple};

use crate::arrow::ArrowRow;
use crate::binary;
use crate::dumping::{self, Dumped};
use crate::encoding;
use crate::errors::misuse;
use crate::many::Value;
use crate::query::{Form, Placeholders, Query};

/// The parameters of one or more executions of a statement.
#[derive(Debug, Default)]
pub(crate) struct Parameters {
    bytes: Vec<u8>,
    spans: Vec<Span>,
    /// Whether values are written as text.
    is_text: bool,
}

#[derive(Debug, Clone, Copy)]
struct Span {
    type_oid: Oid,
    format: Format,
    start: usize,
    end: usize,
    is_null: bool,
}

impl Parameters {
    /// The parameters of one execution.
    ///
    /// # Errors
    /// Parameters that do not fit the placeholders, or values that stand for none of the server's.
    pub(crate) fn of(query: &Query, given: &Bound<'_, PyAny>) -> PyResult<Self> {
        let mut parameters = Self::default();
        parameters.add(query, given)?;
        Ok(parameters)
    }

    /// For values that are to be written as text.
    pub(crate) fn as_text() -> Self {
        Self { is_text: true, ..Self::default() }
    }

    /// Whether there is nothing in them but ASCII.
    pub(crate) fn is_ascii(&self) -> bool {
        self.bytes.is_ascii()
    }

    /// Writes their text in another encoding.
    ///
    /// # Errors
    /// Signs that it has not.
    pub(crate) fn encode(&mut self, py: Python<'_>, encoding: &str) -> PyResult<()> {
        let convert = |text: &[u8]| encoding::encoded(py, encoding, &String::from_utf8_lossy(text));
        for span in &mut self.spans {
            let ty = Type::from_oid(span.type_oid).unwrap_or(Type::UNKNOWN);
            let value = &self.bytes[span.start..span.end];
            if let Some(other) = encoding::converted(&ty, span.format, value, convert)? {
                (span.start, span.end) = (self.bytes.len(), self.bytes.len() + other.len());
                self.bytes.extend(other);
            }
        }
        Ok(())
    }

    /// How many parameters there are of all executions.
    pub(crate) fn count(&self) -> usize {
        self.spans.len()
    }

    /// Forgets all executions; the memory stays.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.spans.clear();
    }

    /// Adds the parameters of an execution.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub(crate) fn add(&mut self, query: &Query, given: &Bound<'_, PyAny>) -> PyResult<()> {
        match &query.placeholders {
            Placeholders::Positions(count) => self.add_positions(Some(*count), &query.forms, given),
            Placeholders::Names(names) => self.add_names(names, &query.forms, given),
            Placeholders::Numbers if given.is_instance_of::<PyDict>() => {
                let problem = "a statement with $1, $2, … takes a sequence of parameters, not a mapping";
                Err(pyo3::exceptions::PyTypeError::new_err(problem))
            }
            Placeholders::Numbers => self.add_positions(None, &[], given),
        }
    }

    fn add_positions(
        &mut self,
        count: Option<usize>,
        forms: &[Form],
        given: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let before = self.spans.len();
        let mut forms = forms.iter().copied();
        let mut add = |value: &Bound<'_, PyAny>| self.add_value(value, forms.next().unwrap_or_default());
        if let Ok(values) = given.cast::<PyTuple>() {
            values.iter_borrowed().try_for_each(|value| add(&value))?;
        } else if let Ok(values) = given.cast::<PyList>() {
            values.iter().try_for_each(|value| add(&value))?;
        } else if let Ok(row) = given.cast::<ArrowRow>() {
            let mut forms = forms;
            (0..row.get().width()).try_for_each(|at| {
                self.add_of_arrow(given.py(), row.get(), at, forms.next().unwrap_or_default())
            })?;
        } else if given.is_instance_of::<PyString>() || given.is_instance_of::<PyBytes>() {
            let problem = "parameters have to be a sequence or a mapping: write (value,) for one";
            return Err(pyo3::exceptions::PyTypeError::new_err(problem));
        } else if given.is_instance_of::<PyDict>() && count != Some(0) {
            let problem = "the statement has placeholders by position, and parameters by name were given";
            return Err(pyo3::exceptions::PyTypeError::new_err(problem));
        } else if !given.is_instance_of::<PyDict>() {
            given.try_iter()?.try_for_each(|value| add(&value?))?;
        }
        let got = self.spans.len() - before;
        if let Some(count) = count.filter(|count| *count != got) {
            let problem = format!("the statement has {count} placeholders, and {got} parameters were given");
            return Err(misuse(given.py(), "usage", &problem));
        }
        Ok(())
    }

    fn add_names(&mut self, names: &[String], forms: &[Form], given: &Bound<'_, PyAny>) -> PyResult<()> {
        if let Ok(row) = given.cast::<ArrowRow>() {
            for (at, name) in names.iter().enumerate() {
                let Some(column) = row.get().column(name) else {
                    let problem =
                        format!("the statement has a placeholder {name}, and the rows have no such column");
                    return Err(misuse(given.py(), "usage", &problem));
                };
                self.add_of_arrow(given.py(), row.get(), column, forms.get(at).copied().unwrap_or_default())?;
            }
            return Ok(());
        }
        let Ok(values) = given.cast::<PyMapping>() else {
            let problem = "the statement has placeholders by name: parameters have to be a mapping";
            return Err(pyo3::exceptions::PyTypeError::new_err(problem));
        };
        for (at, name) in names.iter().enumerate() {
            let Ok(value) = values.get_item(name) else {
                let problem =
                    format!("the statement has a placeholder {name}, for which no parameter was given");
                return Err(misuse(given.py(), "usage", &problem));
            };
            self.add_value(&value, forms.get(at).copied().unwrap_or_default())?;
        }
        Ok(())
    }

    fn add_of_arrow(&mut self, py: Python<'_>, row: &ArrowRow, column: usize, form: Form) -> PyResult<()> {
        let start = self.bytes.len();
        let dumped = row.put_parameter(py, column, form, self.is_text, &mut self.bytes)?;
        self.add_span(start, dumped);
        Ok(())
    }

    fn add_value(&mut self, value: &Bound<'_, PyAny>, form: Form) -> PyResult<()> {
        let start = self.bytes.len();
        let dumped = match form {
            _ if self.is_text => dumping::put_text(value, &mut self.bytes)?,
            Form::Any => dumping::put(value, &mut self.bytes)?,
            Form::Text => dumping::put_text(value, &mut self.bytes)?,
            Form::Binary => dumping::put_binary_form(value, &mut self.bytes)?,
        };
        self.add_span(start, dumped);
        Ok(())
    }

    /// Adds what was written from a position on.
    fn add_span(&mut self, start: usize, dumped: Dumped) {
        let (type_oid, format) = dumped.unwrap_or((0, Format::Text));
        self.spans.push(Span { type_oid, format, start, end: self.bytes.len(), is_null: dumped.is_none() });
    }

    /// Gives executions of one statement the same types, so that one prepared statement serves all: `known` are those
    /// of the executions before, and becomes those of these. A type that says nothing (NULL) yields to one that does.
    pub(crate) fn unify(&mut self, known: &mut Vec<Oid>, width: usize) {
        if width == 0 {
            return;
        }
        known.resize(width, 0);
        for row in self.spans.chunks(width) {
            for (known, span) in known.iter_mut().zip(row) {
                *known = common(*known, span.type_oid);
            }
        }
        for at in 0..self.spans.len() {
            let (span, wanted) = (self.spans[at], known[at % width]);
            if span.type_oid != wanted && (span.is_null || is_widened(span.type_oid, wanted)) {
                self.retype(at, wanted);
            }
        }
    }

    fn retype(&mut self, at: usize, wanted: Oid) {
        let span = self.spans[at];
        self.spans[at].type_oid = wanted;
        if span.is_null || span.format == Format::Text {
            return;
        }
        let value = self.int(span);
        let start = self.bytes.len();
        if wanted == Type::INT8.oid() {
            self.bytes.extend_from_slice(&value.to_be_bytes());
        } else {
            self.bytes.extend_from_slice(value.to_string().as_bytes());
            self.spans[at].format = Format::Text;
        }
        (self.spans[at].start, self.spans[at].end) = (start, self.bytes.len());
    }

    fn int(&self, span: Span) -> i64 {
        let bytes = &self.bytes[span.start..span.end];
        if let Ok(bytes) = <[u8; 4]>::try_from(bytes) {
            return i32::from_be_bytes(bytes).into();
        }
        <[u8; 8]>::try_from(bytes).map_or(0, i64::from_be_bytes)
    }

    /// Writes all values as text without a type, as COPY wants them: the column's type says how they are read. What has
    /// only a binary form stays as it is.
    pub(crate) fn untype(&mut self) {
        for at in 0..self.spans.len() {
            let span = self.spans[at];
            if span.format == Format::Binary {
                let Some(ty) = Type::from_oid(span.type_oid) else { continue };
                let mut text = String::new();
                if binary::put_text(&ty, &self.bytes[span.start..span.end], &mut text).is_err() {
                    continue;
                }
                let start = self.bytes.len();
                self.bytes.extend_from_slice(text.as_bytes());
                (self.spans[at].start, self.spans[at].end) = (start, self.bytes.len());
            }
            (self.spans[at].format, self.spans[at].type_oid) = (Format::Text, 0);
        }
    }

    /// All of them, to be kept.
    pub(crate) fn into_values(self) -> Vec<Value> {
        let bytes = Bytes::from(self.bytes);
        let value = |span: &Span| Value {
            type_oid: span.type_oid,
            format: span.format,
            bytes: (!span.is_null).then(|| bytes.slice(span.start..span.end)),
        };
        self.spans.iter().map(value).collect()
    }

    /// All of them as the client wants them.
    pub(crate) fn written(&self) -> Vec<Written<'_>> {
        let written = |span: &Span| Written {
            type_oid: span.type_oid,
            format: span.format,
            bytes: (!span.is_null).then(|| &self.bytes[span.start..span.end]),
        };
        self.spans.iter().map(written).collect()
    }
}

/// References to parameters, as requests hold them.
pub(crate) fn references<'a>(written: &'a [Written<'a>]) -> Vec<&'a dyn Param> {
    written.iter().map(|written| written as &dyn Param).collect()
}

fn rank(oid: Oid) -> Option<usize> {
    [Type::INT4, Type::INT8, Type::NUMERIC].iter().position(|ty| ty.oid() == oid)
}

fn common(one: Oid, other: Oid) -> Oid {
    match (rank(one), rank(other)) {
        (Some(first), Some(second)) if second > first => other,
        _ if one == 0 => other,
        _ => one,
    }
}

fn is_widened(from: Oid, to: Oid) -> bool {
    matches!((rank(from), rank(to)), (Some(from), Some(to)) if from < to && from < 2)
}
