//! Arrays as the server writes them: `{1,NULL,"a \"b\""}`, perhaps with bounds in front.

use std::borrow::Cow;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::loading::{Loaded, Loader};

/// Deepest nesting: PostgreSQL's MAXDIM.
pub(crate) const DEPTH_MAX: usize = 6;

/// What takes the parts of an array as they are read.
pub(crate) trait Sink {
    /// A list begins, within the one before it.
    fn open(&mut self) -> PyResult<()>;
    /// It ends.
    fn close(&mut self) -> PyResult<()>;
    /// An element of the list that is open, as text; `None` is NULL.
    fn value(&mut self, text: Option<&[u8]>) -> PyResult<()>;
}

/// Reads an array, whose elements have `sign` between them.
///
/// # Errors
/// Text that is no array, and what the sink says.
pub(crate) fn read(bytes: &[u8], sign: u8, sink: &mut dyn Sink) -> PyResult<()> {
    let body = match bytes {
        [b'[', ..] => bytes.iter().position(|byte| *byte == b'=').map(|at| &bytes[at + 1..]),
        _ => Some(bytes),
    };
    let mut reader = Reader { rest: body.unwrap_or_default().trim_ascii(), sign };
    reader.list(1, sink)?;
    if reader.rest.is_empty() { Ok(()) } else { Err(wrong()) }
}

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

struct Reader<'a> {
    rest: &'a [u8],
    sign: u8,
}

impl<'a> Reader<'a> {
    fn list(&mut self, depth: usize, sink: &mut dyn Sink) -> PyResult<()> {
        if !self.takes(b'{') || depth > DEPTH_MAX {
            return Err(wrong());
        }
        sink.open()?;
        self.skip_blanks();
        if self.takes(b'}') {
            return sink.close();
        }
        loop {
            self.skip_blanks();
            match self.rest.first() {
                Some(b'{') => self.list(depth + 1, sink)?,
                Some(b'"') => sink.value(Some(&self.quoted()?))?,
                _ => match self.plain()? {
                    b"NULL" => sink.value(None)?,
                    value => sink.value(Some(value))?,
                },
            }
            self.skip_blanks();
            if self.takes(b'}') {
                return sink.close();
            }
            let sign = self.sign;
            if !self.takes(sign) {
                return Err(wrong());
            }
        }
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_ascii_start();
    }

    fn takes(&mut self, sign: u8) -> bool {
        let rest = self.rest.strip_prefix(&[sign]);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// An element without quotes: blanks around it are not its own, and the server writes none that is empty or has a
    /// backslash.
    fn plain(&mut self) -> PyResult<&'a [u8]> {
        let ends = |byte: &u8| *byte == self.sign || *byte == b'}';
        let end = self.rest.iter().position(ends).ok_or_else(wrong)?;
        let (value, rest) = self.rest.split_at(end);
        self.rest = rest;
        let value = value.trim_ascii_end();
        if value.is_empty() || value.contains(&b'\\') { Err(wrong()) } else { Ok(value) }
    }

    fn quoted(&mut self) -> PyResult<Cow<'a, [u8]>> {
        let inside = &self.rest[1..];
        let end = inside.iter().position(|byte| matches!(byte, b'"' | b'\\')).ok_or_else(wrong)?;
        if inside[end] == b'"' {
            self.rest = &inside[end + 1..];
            return Ok(Cow::Borrowed(&inside[..end]));
        }
        let mut value = inside[..end].to_vec();
        let mut rest = &inside[end..];
        loop {
            match rest {
                [b'"', after @ ..] => {
                    self.rest = after;
                    return Ok(Cow::Owned(value));
                }
                [b'\\', sign, after @ ..] | [sign, after @ ..] => {
                    value.push(*sign);
                    rest = after;
                }
                [] => return Err(wrong()),
            }
        }
    }
}

fn wrong() -> PyErr {
    PyValueError::new_err("an array that does not end, or is nested too deeply")
}
