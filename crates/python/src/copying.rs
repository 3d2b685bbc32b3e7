//! The data of a COPY: rows as its text format writes them, and back.

use std::sync::{Mutex, OnceLock};

use onetrip_client::core::put_copy_text;
use onetrip_client::types::{Kind, Type};
use onetrip_client::{Format, Oid};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyMemoryView, PyString, PyTuple};

use crate::adapters::Loader;
use crate::errors::misuse;
use crate::parameters::Parameters;
use crate::query::{Placeholders, Query};
use crate::session::locked;

/// Data waits until there is so much of it, in bytes.
const DUE_BYTES: usize = 64 * 1024;

/// No built-in type has an id from here on.
const BUILT_IN_MAX: Oid = 16_384;

/// Data on its way to a COPY. What is due is to be sent.
#[pyclass(frozen, module = "onetrip._native")]
pub(crate) struct CopyBuffer {
    data: Mutex<Vec<u8>>,
}

#[pymethods]
impl CopyBuffer {
    #[new]
    fn new() -> Self {
        Self { data: Mutex::new(Vec::new()) }
    }

    /// Adds data; says whether it is due.
    fn write(&self, data: &Bound<'_, PyAny>) -> PyResult<bool> {
        let mut waiting = locked(&self.data);
        if let Ok(text) = data.cast::<PyString>() {
            waiting.extend_from_slice(text.to_cow()?.as_bytes());
        } else if let Ok(bytes) = data.cast::<PyBytes>() {
            waiting.extend_from_slice(bytes.as_bytes());
        } else if let Ok(bytes) = data.cast::<PyByteArray>() {
            waiting.extend_from_slice(&bytes.to_vec());
        } else if data.is_instance_of::<PyMemoryView>() {
            waiting.extend_from_slice(data.call_method0("tobytes")?.cast::<PyBytes>()?.as_bytes());
        } else {
            let problem = format!("data of COPY is bytes or str, not {}", data.get_type().name()?);
            return Err(PyTypeError::new_err(problem));
        }
        Ok(waiting.len() >= DUE_BYTES)
    }

    /// Adds a row, in COPY's text format; says whether data is due.
    fn write_row(&self, row: &Bound<'_, PyAny>) -> PyResult<bool> {
        let width = row.len()?;
        let query = Query { text: String::new(), placeholders: Placeholders::Positions(width) };
        let mut values = Parameters::of(&query, row)?;
        values.untype();
        let mut waiting = locked(&self.data);
        let start = waiting.len();
        for (at, value) in values.written().iter().enumerate() {
            if at > 0 {
                waiting.push(b'\t');
            }
            match (value.bytes, value.format) {
                (None, _) => waiting.extend_from_slice(b"\\N"),
                (Some(bytes), Format::Text) => put_copy_text(bytes, &mut waiting),
                (Some(_), Format::Binary) => {
                    waiting.truncate(start);
                    let problem = format!("value {} has no text form, which COPY needs", at + 1);
                    return Err(misuse(row.py(), "data", &problem));
                }
            }
        }
        waiting.push(b'\n');
        Ok(waiting.len() >= DUE_BYTES)
    }
}

impl CopyBuffer {
    /// Takes what waits.
    pub(crate) fn take(&self) -> Vec<u8> {
        std::mem::take(&mut locked(&self.data))
    }
}

/// Makes rows of COPY's text format.
#[pyclass(frozen, module = "onetrip._native")]
pub(crate) struct CopyRows {
    /// One for each column; none where all are text.
    loaders: Vec<Loader>,
}

#[pymethods]
impl CopyRows {
    /// With these types, by name or id; text without any.
    #[new]
    fn new(types: Vec<Bound<'_, PyAny>>, own: &Bound<'_, PyDict>) -> PyResult<Self> {
        let loader = |ty: &Bound<'_, PyAny>| Loader::of(own.py(), &type_of(ty)?, own);
        Ok(Self { loaders: types.iter().map(loader).collect::<PyResult<_>>()? })
    }

    /// The values of a line.
    fn row<'py>(&self, py: Python<'py>, line: &[u8]) -> PyResult<Bound<'py, PyTuple>> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let mut values = Vec::with_capacity(self.loaders.len());
        let mut unescaped = Vec::new();
        for (at, written) in line.split(|byte| *byte == b'\t').enumerate() {
            if written == b"\\N" {
                values.push(py.None().into_bound(py));
                continue;
            }
            let value = if written.contains(&b'\\') { unescape(written, &mut unescaped) } else { written };
            let loader = match self.loaders.get(at) {
                Some(loader) => loader,
                None if self.loaders.is_empty() => &Loader::Text,
                None => return Err(PyValueError::new_err("a row has more columns than types were set")),
            };
            values.push(loader.load(py, value)?);
        }
        PyTuple::new(py, values)
    }
}

/// What stands for a value in COPY's text format, by the manual of COPY.
fn unescape<'v>(written: &[u8], value: &'v mut Vec<u8>) -> &'v [u8] {
    value.clear();
    let mut bytes = written.iter();
    while let Some(byte) = bytes.next() {
        let byte = if *byte == b'\\' { bytes.next().map_or(b'\\', unescaped) } else { *byte };
        value.push(byte);
    }
    value
}

/// Servers write no octal or hexadecimal forms; they only read them.
fn unescaped(sign: &u8) -> u8 {
    match sign {
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 0x0b,
        other => *other,
    }
}

/// A type by its name, as the catalog or as SQL has it for arrays, or by its id.
fn type_of(given: &Bound<'_, PyAny>) -> PyResult<Type> {
    if let Ok(oid) = given.extract::<Oid>() {
        return Ok(
            Type::from_oid(oid).unwrap_or_else(|| Type::new(String::new(), oid, Kind::Simple, String::new()))
        );
    }
    let name: String = given.extract()?;
    let found = match name.strip_suffix("[]") {
        Some(element) => built_in(&format!("_{element}")),
        None => built_in(&name),
    };
    found.ok_or_else(|| {
        misuse(given.py(), "usage", &format!("no built-in type is called {name:?}: use its id"))
    })
}

fn built_in(name: &str) -> Option<Type> {
    static TYPES: OnceLock<Vec<Type>> = OnceLock::new();
    let types = TYPES.get_or_init(|| (1..BUILT_IN_MAX).filter_map(Type::from_oid).collect());
    types.iter().find(|ty| ty.name() == name).cloned()
}
