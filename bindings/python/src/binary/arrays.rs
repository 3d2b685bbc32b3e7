//! Arrays: number of dimensions, whether there are NULLs, type of the elements; length and first index of each dimension;
//! the elements.

use onetrip_client::types::Type;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrays::{DEPTH_MAX, Sink, read};

/// What is written of an array so far.
struct Written<'t> {
    element: &'t Type,
    /// The length of each dimension, once a list of it has ended.
    lengths: Vec<Option<u32>>,
    /// How many elements each open list has.
    open: Vec<u32>,
    /// The dimension that has values.
    depth: usize,
    has_null: bool,
    elements: Vec<u8>,
}

impl Sink for Written<'_> {
    fn open(&mut self) -> PyResult<()> {
        self.count();
        self.open.push(0);
        if self.open.len() > self.lengths.len() {
            self.lengths.push(None);
        }
        Ok(())
    }

    fn close(&mut self) -> PyResult<()> {
        let length = self.open.pop().unwrap_or_default();
        let known = &mut self.lengths[self.open.len()];
        if known.is_some_and(|known| known != length) {
            return Err(uneven());
        }
        *known = Some(length);
        Ok(())
    }

    fn value(&mut self, text: Option<&[u8]>) -> PyResult<()> {
        self.count();
        if self.depth == 0 {
            self.depth = self.open.len();
        }
        if self.depth != self.open.len() {
            return Err(uneven());
        }
        let Some(text) = text else {
            self.has_null = true;
            self.elements.extend(NULL.to_be_bytes());
            return Ok(());
        };
        let text = std::str::from_utf8(text).map_err(|_| PyValueError::new_err("a value is not UTF-8"))?;
        let start = self.elements.len();
        self.elements.extend([0; 4]);
        super::put(self.element, text, &mut self.elements)?;
        let length = i32::try_from(self.elements.len() - start - 4);
        let length = length.map_err(|_| PyValueError::new_err("an element is too long"))?;
        self.elements[start..start + 4].copy_from_slice(&length.to_be_bytes());
        Ok(())
    }
}

impl Written<'_> {
    fn count(&mut self) {
        if let Some(count) = self.open.last_mut() {
            *count += 1;
        }
    }
}

/// The length of NULL.
const NULL: i32 = -1;

fn uneven() -> PyErr {
    PyValueError::new_err("nested lists have inconsistent depths or lengths")
}

pub(super) fn put(element: &Type, text: &str, out: &mut Vec<u8>) -> PyResult<()> {
    let mut written = Written {
        element,
        lengths: Vec::new(),
        open: Vec::new(),
        depth: 0,
        has_null: false,
        elements: Vec::new(),
    };
    // Bounds of its own are not kept: nothing that a program can have here has any.
    read(text.as_bytes(), b',', &mut written)?;
    let lengths: &[Option<u32>] = if written.elements.is_empty() { &[] } else { &written.lengths };
    out.extend((lengths.len() as i32).to_be_bytes());
    out.extend(i32::from(written.has_null).to_be_bytes());
    out.extend(element.oid().to_be_bytes());
    for length in lengths {
        out.extend(length.unwrap_or_default().to_be_bytes());
        out.extend(1_i32.to_be_bytes());
    }
    out.extend(written.elements);
    Ok(())
}

pub(super) fn put_text(element: &Type, bytes: &[u8], out: &mut String) -> PyResult<()> {
    let mut reader = Reader::new(bytes);
    let lengths = reader.lengths()?;
    if lengths.is_empty() {
        out.push_str("{}");
        return Ok(());
    }
    reader.list(element, &lengths, out)
}

/// Reads an array in binary.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    fn number(&mut self) -> PyResult<i32> {
        let (number, rest) = self.rest.split_first_chunk::<4>().ok_or_else(broken)?;
        self.rest = rest;
        Ok(i32::from_be_bytes(*number))
    }

    /// The length of each dimension.
    ///
    /// # Errors
    /// Bytes that are no array.
    pub(crate) fn lengths(&mut self) -> PyResult<Vec<i32>> {
        let (depth, _, _) = (self.number()?, self.number()?, self.number()?);
        let depth = usize::try_from(depth).unwrap_or(usize::MAX);
        if depth > DEPTH_MAX {
            return Err(broken());
        }
        let mut lengths = Vec::with_capacity(depth);
        for _ in 0..depth {
            // A dimension without elements is none, and would have no end of lists for the bytes that it takes.
            lengths.push(Some(self.number()?).filter(|length| *length > 0).ok_or_else(broken)?);
            self.number()?;
        }
        Ok(lengths)
    }

    /// The next element; `None` is NULL.
    ///
    /// # Errors
    /// Bytes that end before it does.
    pub(crate) fn value(&mut self) -> PyResult<Option<&'a [u8]>> {
        let length = self.number()?;
        if length == NULL {
            return Ok(None);
        }
        let length = usize::try_from(length).map_err(|_| broken())?;
        let (value, rest) = self.rest.split_at_checked(length).ok_or_else(broken)?;
        self.rest = rest;
        Ok(Some(value))
    }

    fn list(&mut self, element: &Type, lengths: &[i32], out: &mut String) -> PyResult<()> {
        let Some((length, inner)) = lengths.split_first() else { return self.element(element, out) };
        out.push('{');
        for at in 0..*length {
            if at > 0 {
                out.push(',');
            }
            self.list(element, inner, out)?;
        }
        out.push('}');
        Ok(())
    }

    fn element(&mut self, element: &Type, out: &mut String) -> PyResult<()> {
        let Some(value) = self.value()? else {
            out.push_str("NULL");
            return Ok(());
        };
        let mut text = String::new();
        super::put_text(element, value, &mut text)?;
        let is_odd = |sign: char| matches!(sign, '{' | '}' | ',' | '"' | '\\' | ' ' | '\t'..='\r');
        if !text.is_empty() && !text.eq_ignore_ascii_case("NULL") && !text.contains(is_odd) {
            out.push_str(&text);
            return Ok(());
        }
        out.push('"');
        for sign in text.chars() {
            if matches!(sign, '"' | '\\') {
                out.push('\\');
            }
            out.push(sign);
        }
        out.push('"');
        Ok(())
    }
}

fn broken() -> PyErr {
    PyValueError::new_err("an array that is shorter than it says")
}
