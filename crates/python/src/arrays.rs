//! Arrays as the server writes them: `{1,NULL,"a \"b\""}`, perhaps with bounds in front.

use std::borrow::Cow;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::adapters::Loader;

/// Deepest nesting: PostgreSQL's MAXDIM.
const DEPTH_MAX: usize = 6;

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
    let body = match bytes {
        [b'[', ..] => bytes.iter().position(|byte| *byte == b'=').map(|at| &bytes[at + 1..]),
        _ => Some(bytes),
    };
    let mut reader = Reader { rest: body.unwrap_or_default(), sign };
    reader.list(py, element, 1)
}

struct Reader<'a> {
    rest: &'a [u8],
    sign: u8,
}

impl<'a> Reader<'a> {
    fn list<'py>(&mut self, py: Python<'py>, element: &Loader, depth: usize) -> PyResult<Bound<'py, PyAny>> {
        if !self.takes(b'{') || depth > DEPTH_MAX {
            return Err(wrong());
        }
        let list = PyList::empty(py);
        if self.takes(b'}') {
            return Ok(list.into_any());
        }
        loop {
            match self.rest.first() {
                Some(b'{') => list.append(self.list(py, element, depth + 1)?)?,
                Some(b'"') => list.append(element.load(py, &self.quoted()?)?)?,
                _ => match self.plain()? {
                    b"NULL" => list.append(py.None())?,
                    value => list.append(element.load(py, value)?)?,
                },
            }
            if self.takes(b'}') {
                return Ok(list.into_any());
            }
            let sign = self.sign;
            if !self.takes(sign) {
                return Err(wrong());
            }
        }
    }

    fn takes(&mut self, sign: u8) -> bool {
        let rest = self.rest.strip_prefix(&[sign]);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn plain(&mut self) -> PyResult<&'a [u8]> {
        let ends = |byte: &u8| *byte == self.sign || *byte == b'}';
        let end = self.rest.iter().position(ends).ok_or_else(wrong)?;
        let (value, rest) = self.rest.split_at(end);
        self.rest = rest;
        Ok(value)
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
