//! Arrays as the server writes them: `{1,NULL,"a \"b\""}`, perhaps with bounds in front.

use std::borrow::Cow;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

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

/// What is said of text that is no array.
pub(crate) fn wrong() -> PyErr {
    PyValueError::new_err("an array that does not end, or is nested too deeply")
}
