//! Large values of which parts are fetched, as Python holds them. What to ask for, and what came, is the client core's.

use std::sync::Mutex;

use onetrip_client::core::{Limits, LobBuffer, LobPart, LobSource, Prefetch, Request};
use onetrip_client::{Done, Error, Oid, OperationId};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::errors::misuse;
use crate::locked::locked;
use crate::many::Value;
use crate::parameters::Parameters;
use crate::query::{Placeholders, Query};

/// What the statements that read a value in parts call their parameters.
const READ_NAMES: [&str; 3] = ["key", "position", "count"];

/// Where a large value is.
enum Source {
    Object(Oid),
    Value { read: String, length: Option<String>, key: Value },
}

impl Source {
    fn borrowed(&self) -> LobSource<'_> {
        match self {
            Self::Object(oid) => LobSource::Object(*oid),
            Self::Value { read, length: None, key } => LobSource::Value { read, key },
            Self::Value { read, length: Some(length), key } => LobSource::Measured { read, length, key },
        }
    }
}

/// A large value of which some has been fetched.
#[pyclass(frozen, module = "onetrip._native")]
pub(crate) struct Lob {
    source: Source,
    own: Option<Prefetch>,
    buffer: Mutex<LobBuffer>,
}

/// Parts of large values that were asked for together.
#[pyclass(frozen, module = "onetrip._native")]
pub(crate) struct LobFetch {
    lobs: Vec<Py<Lob>>,
    asked: Vec<(usize, LobPart, OperationId)>,
}

/// What to fetch, by the word for it.
pub(crate) fn level(py: Python<'_>, word: Option<&str>) -> PyResult<Option<Prefetch>> {
    let level = word.map(str::parse::<Prefetch>).transpose();
    level.map_err(|problem| misuse(py, "usage", &problem.to_string()))
}

#[pymethods]
impl Lob {
    /// A large object.
    #[staticmethod]
    fn object(py: Python<'_>, oid: Oid, prefetch: Option<&str>) -> PyResult<Self> {
        Self::new(py, Source::Object(oid), prefetch)
    }

    /// A value that `read` reads in parts and `length` measures.
    #[staticmethod]
    fn value(
        py: Python<'_>,
        read: &str,
        length: Option<&str>,
        key: &Bound<'_, PyAny>,
        prefetch: Option<&str>,
    ) -> PyResult<Self> {
        let query = |text: &str, names: &[&str]| {
            Query::with_names(text, names).map_err(|problem| misuse(py, "usage", &problem))
        };
        let read = query(read, &READ_NAMES)?;
        let length = length.map(|text| query(text, &READ_NAMES[..1])).transpose()?;
        let one = Query { text: String::new(), placeholders: Placeholders::Positions(1), forms: Vec::new() };
        let mut keys = Parameters::of(&one, &(key,).into_pyobject(py)?.into_any())?.into_values();
        let key = keys.pop().ok_or_else(|| PyValueError::new_err("a value has one key"))?;
        Self::new(py, Source::Value { read, length, key }, prefetch)
    }

    /// Its length in bytes, or characters of text, where it is known.
    #[getter]
    fn length(&self) -> Option<u64> {
        locked(&self.buffer).length()
    }

    /// Bytes of memory that it takes.
    #[getter]
    fn memory(&self) -> usize {
        locked(&self.buffer).memory()
    }

    /// Where reading goes on, counted from zero.
    #[getter]
    pub(crate) fn position(&self) -> u64 {
        locked(&self.buffer).position()
    }

    /// Goes elsewhere. What is here of it stays, what is before it is freed.
    pub(crate) fn seek(&self, position: u64) {
        locked(&self.buffer).seek(position);
    }

    /// Takes at most so many bytes or characters of what is here. What was taken is freed.
    fn take<'py>(&self, py: Python<'py>, most: u64) -> PyResult<Bound<'py, PyAny>> {
        let mut taken = Vec::new();
        let (_, is_text) = self.take_into(most, &mut taken);
        made(py, &taken, is_text)
    }
}

/// What a program gets to see of a part.
pub(crate) fn made<'py>(py: Python<'py>, bytes: &[u8], is_text: Option<bool>) -> PyResult<Bound<'py, PyAny>> {
    if is_text != Some(true) {
        return Ok(PyBytes::new(py, bytes).into_any());
    }
    let text = std::str::from_utf8(bytes).map_err(|_| PyValueError::new_err("a value is not UTF-8"))?;
    Ok(PyString::new(py, text).into_any())
}

impl Lob {
    fn new(py: Python<'_>, source: Source, prefetch: Option<&str>) -> PyResult<Self> {
        Ok(Self { source, own: level(py, prefetch)?, buffer: Mutex::default() })
    }

    /// Takes what is here into `taken`; says how many are still wanted, and whether its values are text.
    pub(crate) fn take_into(&self, most: u64, taken: &mut Vec<u8>) -> (u64, Option<bool>) {
        let mut buffer = locked(&self.buffer);
        let left = most - buffer.take(most, taken);
        let is_done = buffer.is_whole() && buffer.bytes().is_empty();
        (if is_done { 0 } else { left }, buffer.is_text())
    }
}

/// What one call fetches of large values: pairs of a value's place in the list and what of it.
pub(crate) struct Plan {
    parts: Vec<(usize, LobPart)>,
}

impl Plan {
    /// What comes along before anybody reads.
    pub(crate) fn first(lobs: &[Py<Lob>], limits: &Limits, prefetch: Option<Prefetch>) -> Self {
        let first = |(at, lob): (usize, &Py<Lob>)| {
            let lob = lob.get();
            let level = Prefetch::narrowest([Some(limits.prefetch), prefetch, lob.own]);
            let source = lob.source.borrowed();
            Some((at, locked(&lob.buffer).first(&source, level, lobs.len(), limits.read_ahead)?))
        };
        Self { parts: lobs.iter().enumerate().filter_map(first).collect() }
    }

    /// What is missing of the first value for so many bytes or characters to be here.
    pub(crate) fn more(lobs: &[Py<Lob>], limits: &Limits, most: u64) -> Self {
        let missing = |lob: &Py<Lob>| {
            let (lob, room) = (lob.get(), limits.read_ahead);
            let buffer = locked(&lob.buffer);
            buffer.more(&lob.source.borrowed(), room, most, buffer.end())
        };
        Self { parts: lobs.iter().take(1).flat_map(missing).map(|part| (0, part)).collect() }
    }

    /// Whether nothing is to be fetched.
    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Pushes the statements into a block.
    ///
    /// # Errors
    /// What the first that cannot be pushed says.
    pub(crate) fn push(
        self,
        lobs: Vec<Py<Lob>>,
        mut push: impl FnMut(&Request<'_>) -> Result<OperationId, Error>,
    ) -> Result<LobFetch, Error> {
        let mut asked = Vec::with_capacity(self.parts.len());
        for (at, part) in self.parts {
            asked.push((at, part, lobs[at].get().source.borrowed().asking(part, &mut push)?));
        }
        Ok(LobFetch { lobs, asked })
    }
}

impl LobFetch {
    /// Takes the answers.
    ///
    /// # Errors
    /// The first error of a statement.
    pub(crate) fn came(&self, mut take: impl FnMut(OperationId) -> Result<Done, Error>) -> Result<(), Error> {
        for (at, part, operation) in &self.asked {
            let done = take(*operation)?;
            locked(&self.lobs[*at].get().buffer).came(*part, &done)?;
        }
        Ok(())
    }
}
