//! Lists of arrays' elements.

use onetrip_client::types::Type;
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::{Loaded, Loader};
use crate::arrays::{Sink, read, wrong};
use crate::binary::ArrayReader as Reader;

/// The list, of lists for more than one dimension.
///
/// # Errors
/// Text that is no array, or elements that are not of the type.
pub(crate) fn load<'py>(
    py: Python<'py>,
    element: &Loader,
    sign: u8,
    bytes: &[u8],
) -> PyResult<Bound<'py, PyAny>> {
    if let Some(list) = load_flat(py, element, sign, bytes)? {
        return Ok(list.into_any());
    }
    let mut lists = Lists { py, element, open: Vec::new(), whole: None };
    read(bytes, sign, &mut lists)?;
    lists.whole.map(Bound::into_any).ok_or_else(wrong)
}

/// The list of an array of one dimension whose elements need no quotes: most are. `None` for others.
fn load_flat<'py>(
    py: Python<'py>,
    element: &Loader,
    sign: u8,
    bytes: &[u8],
) -> PyResult<Option<Bound<'py, PyList>>> {
    let Some(body) = bytes.strip_prefix(b"{").and_then(|rest| rest.strip_suffix(b"}")) else {
        return Ok(None);
    };
    if body.is_empty() {
        return Ok(Some(PyList::empty(py)));
    }
    let mut count = 1;
    for byte in body {
        match byte {
            b'"' | b'{' | b'\\' | b' ' | b'\t'..=b'\r' => return Ok(None),
            byte if *byte == sign => count += 1,
            _ => {}
        }
    }
    let mut parts = body.split(|byte| *byte == sign);
    if parts.clone().any(<[u8]>::is_empty) {
        return Ok(None);
    }
    let elements = (0..count).map(|_| {
        let part = parts.next().filter(|part| *part != b"NULL");
        Loaded(element, part)
    });
    PyList::new(py, elements).map(Some)
}

/// Makes Python's lists.
struct Lists<'py, 'l> {
    py: Python<'py>,
    element: &'l Loader,
    open: Vec<Bound<'py, PyList>>,
    whole: Option<Bound<'py, PyList>>,
}

impl Sink for Lists<'_, '_> {
    fn open(&mut self) -> PyResult<()> {
        self.open.push(PyList::empty(self.py));
        Ok(())
    }

    fn close(&mut self) -> PyResult<()> {
        let list = self.open.pop();
        match (self.open.last(), list) {
            (Some(outer), Some(list)) => outer.append(list),
            (_, list) => {
                self.whole = list;
                Ok(())
            }
        }
    }

    fn value(&mut self, text: Option<&[u8]>) -> PyResult<()> {
        let Some(list) = self.open.last() else { return Err(wrong()) };
        list.append(Loaded(self.element, text))
    }
}

/// The list, of lists for more than one dimension, of an array in binary.
///
/// # Errors
/// Bytes that are no array, or elements that are not of the type.
pub(super) fn load_binary<'py>(
    py: Python<'py>,
    loader: &Loader,
    element: &Type,
    bytes: &[u8],
) -> PyResult<Bound<'py, PyAny>> {
    let mut reader = Reader::new(bytes);
    let lengths = reader.lengths()?;
    if lengths.is_empty() {
        return Ok(PyList::empty(py).into_any());
    }
    listed(py, &mut reader, loader, element, &lengths)
}

fn listed<'py>(
    py: Python<'py>,
    reader: &mut Reader<'_>,
    loader: &Loader,
    element: &Type,
    lengths: &[i32],
) -> PyResult<Bound<'py, PyAny>> {
    let Some((length, inner)) = lengths.split_first() else {
        return match reader.value()? {
            Some(value) => loader.load_binary(py, element, value),
            None => Ok(py.None().into_bound(py)),
        };
    };
    let list = PyList::empty(py);
    for _ in 0..*length {
        list.append(listed(py, reader, loader, element, inner)?)?;
    }
    Ok(list.into_any())
}
