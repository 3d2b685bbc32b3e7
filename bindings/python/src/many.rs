//! One statement with many rows of parameters, all of them written before the first leaves.

use std::sync::Mutex;

use bytes::Bytes;
use onetrip_client::core::{Connection, Many, ManyStep, Sets};
use onetrip_client::types::Type;
use onetrip_client::{Bulk, BulkError, Error, Format, Oid, Param};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::encoding;
use crate::errors::{exception, misuse, of_row};
use crate::locked::locked;
use crate::parameters::Parameters;
use crate::query::Query;

/// Unsent bytes above which an event loop is given the time to send.
const UNSENT_BYTES: usize = 128 * 1024;

/// The way that a caller names.
pub(crate) fn way(name: &str) -> PyResult<Bulk> {
    Ok(match name {
        "auto" => Bulk::Auto,
        "pipeline" => Bulk::Pipeline,
        "unnest" => Bulk::Unnest,
        "copy" => Bulk::Copy,
        _ => {
            let problem = format!("by has to be 'auto', 'pipeline', 'unnest' or 'copy', not {name:?}");
            return Err(PyValueError::new_err(problem));
        }
    })
}

/// A value that lasts as long as its rows.
#[derive(Debug)]
pub(crate) struct Value {
    pub(crate) type_oid: Oid,
    pub(crate) format: Format,
    /// `None` is NULL.
    pub(crate) bytes: Option<Bytes>,
}

impl Param for Value {
    fn declared(&self) -> Oid {
        self.type_oid
    }

    fn put(&self, _: Oid, out: &mut Vec<u8>) -> Result<Option<Format>, String> {
        let Some(bytes) = &self.bytes else { return Ok(None) };
        out.extend_from_slice(bytes);
        Ok(Some(self.format))
    }
}

/// Rows of parameters.
#[derive(Debug)]
pub(crate) struct Rows {
    values: Vec<Value>,
    count: usize,
    width: usize,
}

impl Sets for Rows {
    fn count(&self) -> usize {
        self.count
    }

    fn width(&self, _: usize) -> usize {
        self.width
    }

    fn value(&self, set: usize, column: usize) -> &dyn Param {
        &self.values[set * self.width + column]
    }
}

impl Rows {
    /// Writes them in the session's encoding, where that is not UTF-8.
    pub(crate) fn encode(&mut self, encoding: Option<&str>) -> Result<(), Error> {
        let Some(encoding) = encoding::foreign(encoding) else { return Ok(()) };
        encoding::raising(|py| {
            let convert = |text: &[u8]| encoding::encoded(py, encoding, &String::from_utf8_lossy(text));
            for value in &mut self.values {
                let ty = Type::from_oid(value.type_oid).unwrap_or(Type::UNKNOWN);
                let Some(bytes) = &value.bytes else { continue };
                if let Some(other) = encoding::converted(&ty, value.format, bytes, convert)? {
                    value.bytes = Some(other.into());
                }
            }
            Ok(())
        })
    }

    /// Writes the parameters of each row.
    ///
    /// # Errors
    /// A row that does not fit the placeholders, or has values that stand for none of the server's.
    pub(crate) fn of(query: &Query, rows: &Bound<'_, PyAny>, way: Bulk) -> PyResult<Self> {
        let is_copy = way == Bulk::Copy;
        let mut parameters = if is_copy { Parameters::as_text() } else { Parameters::default() };
        let mut count = 0;
        let mut width = None;
        for row in rows.try_iter()? {
            let before = parameters.count();
            let added = parameters.add(query, &row?);
            let checked = added.and_then(|()| same_width(rows.py(), &mut width, parameters.count() - before));
            checked.map_err(|error| of_row(rows.py(), error, Some(count)))?;
            count += 1;
        }
        let width = width.unwrap_or_default();
        parameters.unify(&mut Vec::new(), width);
        if is_copy {
            parameters.untype();
        }
        Ok(Self { values: parameters.into_values(), count, width })
    }
}

/// Refuses a row that has more or fewer values than those before it.
pub(crate) fn same_width(py: Python<'_>, known: &mut Option<usize>, width: usize) -> PyResult<()> {
    match *known {
        Some(first) if first != width => {
            let problem = format!("a row has {width} values, and those before it have {first}");
            Err(misuse(py, "usage", &problem))
        }
        _ => {
            *known = Some(width);
            Ok(())
        }
    }
}

/// The exception for what many rows failed with.
pub(crate) fn failure(py: Python<'_>, failed: &BulkError) -> PyErr {
    of_row(py, exception(py, &failed.error), failed.set)
}

/// A call under way in an event loop.
#[pyclass(frozen, module = "onetrip._native")]
pub(crate) struct ManyRows {
    many: Mutex<Many>,
    rows: Rows,
}

/// What the loop has to wait for before the next step.
pub(crate) enum Wait {
    /// That the other side takes what was written.
    Room,
    /// An operation's answer.
    Answer(u64),
    /// All answers.
    All,
    /// Nothing: all is done, with so many rows and the last statement's tag.
    Done(u64, Option<String>),
}

impl ManyRows {
    pub(crate) fn new(
        core: &Connection,
        way: Bulk,
        statement: &str,
        rows: Rows,
        begins: bool,
    ) -> Result<Self, Error> {
        let many = Many::new(core, way, statement, &rows, begins)?;
        Ok(Self { many: Mutex::new(many), rows })
    }

    /// Goes on until something has to be waited for.
    pub(crate) fn step(&self, core: &mut Connection) -> Result<Wait, BulkError> {
        let mut many = locked(&self.many);
        loop {
            match many.step(core, &self.rows)? {
                ManyStep::Send if core.depth() > core.limits().depth => {
                    core.request_replies();
                    return Ok(Wait::Answer(core.last_operation().number()));
                }
                ManyStep::Send if core.output_bytes() > UNSENT_BYTES => return Ok(Wait::Room),
                ManyStep::Send => {}
                ManyStep::Answer(operation) => {
                    core.request_replies();
                    return Ok(Wait::Answer(operation.number()));
                }
                ManyStep::Settle => return Ok(Wait::All),
                ManyStep::Done(done) => {
                    return Ok(Wait::Done(done.rows, done.tag.map(|tag| tag.as_str().to_owned())));
                }
            }
        }
    }

    /// Ends the block; what was pushed is not kept.
    pub(crate) fn give_up(&self, core: &mut Connection) {
        if core.is_in_block() {
            locked(&self.many).give_up(core);
        }
    }
}
