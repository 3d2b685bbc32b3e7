//! Large values of which parts are fetched: what to ask for next, and what came. Nothing here waits.

use std::collections::VecDeque;
use std::sync::Mutex;

use onetrip_client::core::{LENGTH_OBJECT, Limits, Prefetch, READ_OBJECT, Request, first_part};
use onetrip_client::types::Type;
use onetrip_client::{Done, Error, Oid, OperationId};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::errors::misuse;
use crate::many::Value;
use crate::parameters::Parameters;
use crate::query::{Placeholders, Query};
use crate::session::locked;

/// What the statements that read a value in parts call their parameters.
const READ_NAMES: [&str; 3] = ["key", "position", "count"];

/// What one statement reads, in bytes or characters.
const PIECE: u64 = 64 * 1024;

/// Pieces that are asked for together before it is known how many there are.
const FIRST_PIECES: u64 = 4;

/// Pieces that are fetched together for a program that reads a little at a time.
const AHEAD_PIECES: u64 = 16;

/// Longest character in bytes.
const CHARACTER_BYTES: u64 = 4;

/// Where a large value is.
enum Source {
    Object(Oid),
    Value { read: String, length: Option<String>, key: Value },
}

/// What is to be asked of a value.
#[derive(Debug, Clone, Copy)]
enum Want {
    Length,
    /// So many bytes or characters from a position on, counted from zero.
    Piece {
        at: u64,
        count: u64,
    },
}

/// A part that came and was not read to its end.
struct Piece {
    bytes: Vec<u8>,
    read: usize,
    /// Bytes or characters that are left.
    units: u64,
}

#[derive(Default)]
struct State {
    /// Whether it is counted in characters; `None` before anything came.
    is_text: Option<bool>,
    length: Option<u64>,
    pieces: VecDeque<Piece>,
    /// Bytes or characters in `pieces`.
    here: u64,
    /// Where the next piece begins.
    next: u64,
    /// Pieces that the next fetch may ask for, while the length is not known.
    window: u64,
    is_over: bool,
    /// Reading went on elsewhere, perhaps behind the end.
    has_jumped: bool,
}

/// A large value of which some has been fetched.
#[pyclass(frozen, module = "onetrip._native")]
pub(crate) struct Lob {
    source: Source,
    own: Option<Prefetch>,
    state: Mutex<State>,
}

/// Parts of large values that were asked for together.
#[pyclass(frozen, module = "onetrip._native")]
pub(crate) struct LobFetch {
    lobs: Vec<Py<Lob>>,
    asked: Vec<(usize, Want, OperationId)>,
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
        let one = Query { text: String::new(), placeholders: Placeholders::Positions(1) };
        let mut keys = Parameters::of(&one, &(key,).into_pyobject(py)?.into_any())?.into_values();
        let key = keys.pop().ok_or_else(|| PyValueError::new_err("a value has one key"))?;
        Self::new(py, Source::Value { read, length, key }, prefetch)
    }

    /// Its length in bytes, or characters of text, where it is known.
    #[getter]
    fn length(&self) -> Option<u64> {
        locked(&self.state).length
    }

    /// Bytes of memory that it takes.
    #[getter]
    fn memory(&self) -> usize {
        locked(&self.state).pieces.iter().map(|piece| piece.bytes.capacity()).sum()
    }

    /// Where reading goes on, counted from zero.
    #[getter]
    fn position(&self) -> u64 {
        let state = locked(&self.state);
        state.next - state.here
    }

    /// Goes elsewhere. What is here of it stays, what is before it is freed.
    fn seek(&self, position: u64) {
        locked(&self.state).seek(position);
    }

    /// Takes at most so many bytes or characters of what is here. What was taken is freed.
    fn take<'py>(&self, py: Python<'py>, most: u64) -> PyResult<Bound<'py, PyAny>> {
        let mut state = locked(&self.state);
        let mut taken = Vec::new();
        state.take(most, &mut taken);
        made(py, &taken, state.is_text)
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
        let state = State { window: 1, ..State::default() };
        Ok(Self { source, own: level(py, prefetch)?, state: Mutex::new(state) })
    }

    /// Takes what is here into `taken`; says how many are still wanted, and whether its values are text.
    pub(crate) fn take_into(&self, most: u64, taken: &mut Vec<u8>) -> (u64, Option<bool>) {
        let mut state = locked(&self.state);
        let count = state.take(most, taken);
        let is_done = state.is_over && state.pieces.is_empty();
        (if is_done { 0 } else { most - count }, state.is_text)
    }

    fn has_length(&self) -> bool {
        !matches!(&self.source, Source::Value { length: None, .. })
    }

    /// What is to be fetched before anybody reads, where so many values share the memory.
    fn first(&self, limits: &Limits, prefetch: Option<Prefetch>, values: usize) -> Option<Want> {
        let level = Prefetch::narrowest([Some(limits.prefetch), prefetch, self.own]);
        match first_part(level, values, limits.read_ahead) {
            0 if level == Prefetch::Length && self.has_length() => Some(Want::Length),
            0 => None,
            count => Some(Want::Piece { at: 0, count: count.into() }),
        }
    }

    /// What is to be fetched for so many bytes or characters to be here.
    fn more(&self, limits: &Limits, most: u64) -> Vec<Want> {
        let mut state = locked(&self.state);
        if state.is_over || state.here >= most {
            return Vec::new();
        }
        let wanted = (most - state.here).div_ceil(PIECE);
        let unit = if matches!(self.source, Source::Object(_)) || state.is_text == Some(false) {
            1
        } else {
            CHARACTER_BYTES
        };
        let room = (limits.read_ahead as u64 / (PIECE * unit)).max(1);
        let mut wants = Vec::new();
        let count = match state.length {
            Some(length) => {
                let left = length.saturating_sub(state.next).div_ceil(PIECE);
                wanted.max(state.window.min(AHEAD_PIECES)).min(left)
            }
            None => {
                if self.has_length() && (wanted > 1 || state.next > 0) {
                    wants.push(Want::Length);
                }
                state.window.max(wanted.min(FIRST_PIECES)).min(wanted.max(AHEAD_PIECES))
            }
        };
        state.window = (state.window * 2).min(room);
        let count = count.clamp(1, room);
        let next = state.next;
        wants.extend((0..count).map(|piece| Want::Piece { at: next + piece * PIECE, count: PIECE }));
        wants
    }

    /// Hands on the statement for something.
    fn asking<T>(&self, want: Want, ask: impl FnOnce(&Request<'_>) -> T) -> T {
        let (at, count) = match want {
            Want::Length => (0, 0),
            Want::Piece { at, count } => (at, count),
        };
        let (position, count) = (at as i64 + 1, count as i64);
        match (&self.source, want) {
            (Source::Object(oid), Want::Length) => ask(&Request::new(LENGTH_OBJECT, &[oid])),
            (Source::Object(oid), Want::Piece { .. }) => {
                ask(&Request::new(READ_OBJECT, &[oid, &position, &count]))
            }
            (Source::Value { length, key, .. }, Want::Length) => {
                ask(&Request::new(length.as_deref().unwrap_or_default(), &[key]))
            }
            (Source::Value { read, key, .. }, Want::Piece { .. }) => {
                ask(&Request::new(read, &[key, &position, &count]))
            }
        }
    }

    /// Something was answered.
    fn came(&self, want: Want, done: &Done) -> Result<(), Error> {
        let mut state = locked(&self.state);
        let Some(rows) = done.rows.as_deref() else { return Ok(()) };
        let row = rows.rows().next();
        match want {
            Want::Length => {
                let length = row.map(|row| integer(row.value(0)?.unwrap_or_default())).transpose()?;
                state.length = state.length.or(length.flatten());
            }
            Want::Piece { at, count } if at == state.next && !state.is_over => {
                let is_text = rows.columns().first().is_some_and(|column| column.ty != Type::BYTEA);
                let bytes = row.map(|row| row.value(0)).transpose()?.flatten().unwrap_or_default();
                state.came(bytes, is_text, count);
            }
            // Another thread has read it meanwhile, or it lies behind the end.
            Want::Piece { .. } => {}
        }
        Ok(())
    }
}

/// A number of four or eight bytes.
fn integer(bytes: &[u8]) -> Result<Option<u64>, Error> {
    let number = match *bytes {
        [] => return Ok(None),
        [a, b, c, d] => i64::from(i32::from_be_bytes([a, b, c, d])),
        [a, b, c, d, e, f, g, h] => i64::from_be_bytes([a, b, c, d, e, f, g, h]),
        _ => return Err(Error::Protocol("a length is no integer")),
    };
    Ok(u64::try_from(number).ok())
}

impl State {
    fn came(&mut self, bytes: &[u8], is_text: bool, asked: u64) {
        let units = if is_text { characters(bytes) } else { bytes.len() as u64 };
        self.is_text = Some(is_text);
        self.next += units;
        self.here += units;
        if units < asked {
            self.is_over = true;
            if units > 0 || !self.has_jumped {
                self.length = Some(self.next);
            }
        }
        self.is_over |= self.length.is_some_and(|length| self.next >= length);
        if units > 0 {
            self.pieces.push_back(Piece { bytes: bytes.to_vec(), read: 0, units });
        }
    }

    /// Takes at most so many bytes or characters; how many.
    fn take(&mut self, most: u64, taken: &mut Vec<u8>) -> u64 {
        let before = self.here;
        while let Some(piece) = self.pieces.front_mut() {
            let wanted = most - (before - self.here);
            let rest = &piece.bytes[piece.read..];
            if wanted < piece.units {
                let count = if self.is_text == Some(true) { prefix(rest, wanted) } else { wanted as usize };
                taken.extend_from_slice(&rest[..count]);
                piece.read += count;
                piece.units -= wanted;
                self.here -= wanted;
                break;
            }
            taken.extend_from_slice(rest);
            self.here -= piece.units;
            self.pieces.pop_front();
        }
        before - self.here
    }

    fn seek(&mut self, position: u64) {
        let start = self.next - self.here;
        if (start..=self.next).contains(&position) {
            self.take(position - start, &mut Vec::new());
            return;
        }
        self.pieces.clear();
        (self.here, self.next, self.has_jumped) = (0, position, true);
        self.is_over = self.length.is_some_and(|length| position >= length);
    }
}

fn is_first_byte(byte: &u8) -> bool {
    byte & 0xC0 != 0x80
}

fn characters(text: &[u8]) -> u64 {
    text.iter().filter(|byte| is_first_byte(byte)).count() as u64
}

/// Bytes of so many characters.
fn prefix(text: &[u8], count: u64) -> usize {
    let mut starts = text.iter().enumerate().filter(|(_, byte)| is_first_byte(byte));
    starts.nth(count as usize).map_or(text.len(), |(at, _)| at)
}

/// What one call fetches of large values: pairs of a value's place in the list and what of it.
pub(crate) struct Plan {
    wants: Vec<(usize, Want)>,
}

impl Plan {
    /// What comes along before anybody reads.
    pub(crate) fn first(lobs: &[Py<Lob>], limits: &Limits, prefetch: Option<Prefetch>) -> Self {
        let first = |(at, lob): (usize, &Py<Lob>)| Some((at, lob.get().first(limits, prefetch, lobs.len())?));
        Self { wants: lobs.iter().enumerate().filter_map(first).collect() }
    }

    /// What is missing of the first value for so many bytes or characters to be here.
    pub(crate) fn more(lobs: &[Py<Lob>], limits: &Limits, most: u64) -> Self {
        let wants = lobs.iter().take(1).flat_map(|lob| lob.get().more(limits, most));
        Self { wants: wants.map(|want| (0, want)).collect() }
    }

    /// Whether nothing is to be fetched.
    pub(crate) fn is_empty(&self) -> bool {
        self.wants.is_empty()
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
        let mut asked = Vec::with_capacity(self.wants.len());
        for (at, want) in self.wants {
            asked.push((at, want, lobs[at].get().asking(want, &mut push)?));
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
        for (at, want, operation) in &self.asked {
            self.lobs[*at].get().came(*want, &take(*operation)?)?;
        }
        Ok(())
    }
}
