//! The data of a COPY: rows as its text and binary formats write them, and back.

use std::sync::{Arc, Mutex, OnceLock};

use onetrip_client::core::put_copy_text;
use onetrip_client::types::{Kind, Type};
use onetrip_client::{Format, Oid, Written};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyIterator, PyList, PyMemoryView, PyString, PyTuple};

use crate::adapters::{Functions, has_own_dumper, has_own_dumpers};
use crate::arrow::{ArrowRow, ArrowRows};
use crate::binary;
use crate::dumping::{self, Plain};
use crate::encoding;
use crate::errors::misuse;
use crate::loading::{Loader, Session};
use crate::locked::locked;

/// Data waits until there is so much of it, in bytes.
const DUE_BYTES: usize = 64 * 1024;

/// No built-in type has an id from here on.
const BUILT_IN_MAX: Oid = 16_384;

/// What binary data begins with; a word of flags and the length of what else the beginning has follow.
const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";

/// What it ends with, in place of a row's number of values.
const TRAILER: [u8; 2] = [0xff; 2];

/// The length of NULL.
const NULL: i32 = -1;

/// Data on its way to a COPY. What is due is to be sent.
#[pyclass(frozen, module = "onetrip._native")]
pub(crate) struct CopyBuffer {
    is_binary: bool,
    /// The session's encoding, where that is not UTF-8.
    encoding: Option<String>,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    data: Vec<u8>,
    columns: Arc<Columns>,
    has_begun: bool,
    /// Whether rows were written, so that the data's beginning and end are ours to write.
    is_by_row: bool,
}

#[derive(Default)]
struct Columns {
    /// Their types; none where nobody has said them.
    types: Box<[Type]>,
    /// How their values are written in binary; none where a type among them has no such way.
    plain: Box<[Plain]>,
}

#[pymethods]
impl CopyBuffer {
    #[new]
    #[pyo3(signature = (is_binary, encoding = None))]
    fn new(is_binary: bool, encoding: Option<&str>) -> Self {
        let encoding = encoding::foreign(encoding).map(str::to_owned);
        Self { is_binary, encoding, waiting: Mutex::default() }
    }

    /// Takes the columns' types, by name or id.
    fn set_types(&self, types: Vec<Bound<'_, PyAny>>) -> PyResult<()> {
        let types = types.iter().map(type_of).collect::<PyResult<Box<[Type]>>>()?;
        let is_plain = self.is_binary && self.encoding.is_none() && i16::try_from(types.len()).is_ok();
        let plain = is_plain.then(|| types.iter().map(Plain::of).collect()).flatten().unwrap_or_default();
        locked(&self.waiting).columns = Arc::new(Columns { types, plain });
        Ok(())
    }

    /// Adds data; says whether it is due.
    fn write(&self, data: &Bound<'_, PyAny>) -> PyResult<bool> {
        if let Ok(text) = data.cast::<PyString>() {
            if self.is_binary {
                return Err(PyTypeError::new_err("data of a binary COPY is bytes, not str"));
            }
            let text = text.to_cow()?;
            return Ok(match self.in_encoding(data.py(), text.as_bytes())? {
                Some(text) => self.add(&text),
                None => self.add(text.as_bytes()),
            });
        }
        if let Ok(bytes) = data.cast::<PyBytes>() {
            return Ok(self.add(bytes.as_bytes()));
        }
        if let Ok(bytes) = data.cast::<PyByteArray>() {
            return Ok(self.add(&bytes.to_vec()));
        }
        if data.is_instance_of::<PyMemoryView>() {
            return Ok(self.add(data.call_method0("tobytes")?.cast::<PyBytes>()?.as_bytes()));
        }
        let problem = format!("data of COPY is bytes or str, not {}", data.get_type().name()?);
        Err(PyTypeError::new_err(problem))
    }

    /// Adds a row; says whether data is due.
    pub(crate) fn write_row(&self, row: &Bound<'_, PyAny>) -> PyResult<bool> {
        let (mut data, columns) = self.begin_rows();
        let put = self.put_row(row, &columns, &mut data);
        let is_due = self.end_rows(data);
        put.map(|()| is_due)
    }

    /// Adds rows until data is due: false at their end.
    fn write_rows(&self, mut rows: Bound<'_, PyIterator>) -> PyResult<bool> {
        let (mut data, columns) = self.begin_rows();
        let mut put = || {
            while data.len() < DUE_BYTES {
                let Some(row) = rows.next() else { return Ok(false) };
                self.put_row(&row?, &columns, &mut data)?;
            }
            Ok(true)
        };
        let put = put();
        self.end_rows(data);
        put
    }

    /// Adds rows of Arrow's until data is due: false at their end.
    fn write_arrow(&self, py: Python<'_>, rows: &ArrowRows) -> PyResult<bool> {
        let (mut data, columns) = self.begin_rows();
        let put = self.put_arrow(py, rows, &columns.types, &mut data);
        self.end_rows(data);
        put
    }
}

impl Waiting {
    /// Adds data; says whether it is due.
    fn add(&mut self, data: &[u8]) -> bool {
        self.has_begun |= !data.is_empty();
        self.data.extend_from_slice(data);
        self.data.len() >= DUE_BYTES
    }
}

impl CopyBuffer {
    /// Takes what waits, to add rows to it, and the columns. Python must not run while the lock is held: another thread may
    /// wait for it and hold the interpreter.
    #[inline]
    fn begin_rows(&self) -> (Vec<u8>, Arc<Columns>) {
        let mut waiting = locked(&self.waiting);
        waiting.is_by_row = true;
        if self.is_binary && !waiting.has_begun {
            put_beginning(&mut waiting.data);
        }
        waiting.has_begun = true;
        (std::mem::take(&mut waiting.data), Arc::clone(&waiting.columns))
    }

    /// Gives it back; says whether data is due.
    fn end_rows(&self, mut data: Vec<u8>) -> bool {
        let mut waiting = locked(&self.waiting);
        // What another thread has added meanwhile.
        data.append(&mut waiting.data);
        waiting.data = data;
        waiting.data.len() >= DUE_BYTES
    }

    /// Adds a row to `data`, or nothing of one that is refused.
    #[inline]
    fn put_row(&self, row: &Bound<'_, PyAny>, columns: &Columns, data: &mut Vec<u8>) -> PyResult<()> {
        let start = data.len();
        if put_plain_row(row, &columns.plain, data) {
            return Ok(());
        }
        data.truncate(start);
        let put = if self.is_binary {
            self.put_binary_row(row, &columns.types, data)
        } else {
            put_text_row(row, &columns.types, data).and_then(|()| self.encode_from(row.py(), start, data))
        };
        put.inspect_err(|_| data.truncate(start))
    }

    fn put_arrow(
        &self,
        py: Python<'_>,
        rows: &ArrowRows,
        types: &[Type],
        data: &mut Vec<u8>,
    ) -> PyResult<bool> {
        if !types.is_empty() && types.len() != rows.width() {
            let problem =
                format!("{} types were set, and the rows have {} columns", types.len(), rows.width());
            return Err(misuse(py, "data", &problem));
        }
        while data.len() < DUE_BYTES {
            let Some(row) = rows.next(py)? else { return Ok(false) };
            let start = data.len();
            let put = if self.is_binary {
                self.put_binary_arrow(py, &row, types, data)
            } else {
                put_text_arrow(py, &row, data).and_then(|()| self.encode_from(py, start, data))
            };
            put.inspect_err(|_| data.truncate(start))?;
        }
        Ok(true)
    }

    fn put_binary_arrow(
        &self,
        py: Python<'_>,
        row: &ArrowRow,
        types: &[Type],
        data: &mut Vec<u8>,
    ) -> PyResult<()> {
        let width = i16::try_from(row.width()).map_err(|_| too_wide(py))?;
        data.extend(width.to_be_bytes());
        for at in 0..row.width() {
            let start = data.len();
            data.extend(NULL.to_be_bytes());
            if !row.put_copy_binary(py, at, types.get(at), data)? {
                continue;
            }
            if let Some(encoding) = &self.encoding {
                let convert = |text: &[u8]| encoding::encoded(py, encoding, str_of(text)?);
                // What has no type of its own is text, as far as it is not ASCII.
                let ty = types.get(at).unwrap_or_else(|| row.text_type(at));
                if let Some(other) = encoding::converted(ty, Format::Binary, &data[start + 4..], convert)? {
                    data.truncate(start + 4);
                    data.extend(other);
                }
            }
            end_value(py, at, start, data)?;
        }
        Ok(())
    }

    /// Writes what was added from a position on in the session's encoding.
    fn encode_from(&self, py: Python<'_>, start: usize, data: &mut Vec<u8>) -> PyResult<()> {
        if let Some(text) = self.in_encoding(py, &data[start..])? {
            data.truncate(start);
            data.extend(text);
        }
        Ok(())
    }

    /// Python must not run while the lock is held: another thread may wait for it and hold the interpreter.
    fn add(&self, data: &[u8]) -> bool {
        locked(&self.waiting).add(data)
    }

    /// Text in the session's encoding, if that makes a difference.
    fn in_encoding(&self, py: Python<'_>, text: &[u8]) -> PyResult<Option<Vec<u8>>> {
        match &self.encoding {
            Some(encoding) if !text.is_ascii() => encoding::encoded(py, encoding, str_of(text)?).map(Some),
            _ => Ok(None),
        }
    }

    fn put_binary_row(&self, row: &Bound<'_, PyAny>, types: &[Type], data: &mut Vec<u8>) -> PyResult<()> {
        let py = row.py();
        let Some(encoding) = &self.encoding else { return put_binary_row(row, types, None, data) };
        let encode = |ty: &Type, value: &[u8]| {
            let convert = |text: &[u8]| encoding::encoded(py, encoding, str_of(text)?);
            encoding::converted(ty, Format::Binary, value, convert)
        };
        put_binary_row(row, types, Some(&encode), data)
    }

    /// Takes what waits.
    pub(crate) fn take(&self) -> Vec<u8> {
        std::mem::take(&mut locked(&self.waiting).data)
    }

    /// Takes what waits and what ends the data.
    pub(crate) fn take_last(&self) -> Vec<u8> {
        let mut waiting = locked(&self.waiting);
        if self.is_binary && !waiting.has_begun {
            put_beginning(&mut waiting.data);
        }
        // Data that the program writes has an end of its own.
        if self.is_binary && (waiting.is_by_row || !waiting.has_begun) {
            waiting.data.extend(TRAILER);
        }
        std::mem::take(&mut waiting.data)
    }
}

fn put_beginning(data: &mut Vec<u8>) {
    data.extend_from_slice(SIGNATURE);
    data.extend([0; 8]);
}

/// Calls with each value of a row, whose width has to be that of the types, if there are any.
fn each_value(
    row: &Bound<'_, PyAny>,
    types: &[Type],
    mut put: impl FnMut(usize, &Bound<'_, PyAny>) -> PyResult<()>,
) -> PyResult<()> {
    let width = row.len()?;
    if !types.is_empty() && types.len() != width {
        let problem = format!("{} types were set, and the row has {width} values", types.len());
        return Err(misuse(row.py(), "data", &problem));
    }
    let mut count = 0;
    let mut next = |value: &Bound<'_, PyAny>| {
        count += 1;
        put(count - 1, value)
    };
    if let Ok(row) = row.cast::<PyTuple>() {
        row.iter_borrowed().try_for_each(|value| next(&value))?;
    } else if let Ok(row) = row.cast::<PyList>() {
        row.iter().try_for_each(|value| next(&value))?;
    } else if row.is_instance_of::<PyString>() || row.is_instance_of::<PyBytes>() {
        return Err(PyTypeError::new_err("a row has to be a sequence: write (value,) for one"));
    } else if !row.is_instance_of::<PyDict>() {
        row.try_iter()?.try_for_each(|value| next(&value?))?;
    }
    if count != width {
        let problem = format!("the row says that it has {width} values, and gave {count}");
        return Err(misuse(row.py(), "data", &problem));
    }
    Ok(())
}

fn put_text_row(row: &Bound<'_, PyAny>, types: &[Type], data: &mut Vec<u8>) -> PyResult<()> {
    let mut text = Vec::new();
    each_value(row, types, |at, value| {
        if at > 0 {
            data.push(b'\t');
        }
        if let Ok(value) = value.cast_exact::<PyString>() {
            if !has_own_dumper(value)? {
                put_copy_text(dumping::without_nul(row.py(), &value.to_cow()?)?, data);
                return Ok(());
            }
        }
        text.clear();
        match dumping::put_text(value, &mut text)? {
            None => data.extend_from_slice(b"\\N"),
            Some((_, Format::Text)) => put_copy_text(&text, data),
            Some((type_oid, Format::Binary)) => {
                // What has only a binary form, by a dumper of the program's.
                let mut written = String::new();
                let ty = Type::from_oid(type_oid);
                match ty.map(|ty| binary::put_text(&ty, &text, &mut written)) {
                    Some(Ok(())) => put_copy_text(written.as_bytes(), data),
                    _ => {
                        let problem = format!("value {} has no text form, which COPY needs", at + 1);
                        return Err(misuse(value.py(), "data", &problem));
                    }
                }
            }
        }
        Ok(())
    })?;
    data.push(b'\n');
    Ok(())
}

fn put_text_arrow(py: Python<'_>, row: &ArrowRow, data: &mut Vec<u8>) -> PyResult<()> {
    for at in 0..row.width() {
        if at > 0 {
            data.push(b'\t');
        }
        row.put_copy_text(py, at, data)?;
    }
    data.push(b'\n');
    Ok(())
}

/// What makes text of another encoding of a value of a type.
type Encode<'a> = &'a dyn Fn(&Type, &[u8]) -> PyResult<Option<Vec<u8>>>;

fn put_binary_row(
    row: &Bound<'_, PyAny>,
    types: &[Type],
    encode: Option<Encode<'_>>,
    data: &mut Vec<u8>,
) -> PyResult<()> {
    let py = row.py();
    let place = data.len();
    data.extend([0; 2]);
    let mut own = Vec::new();
    let mut count = 0_usize;
    each_value(row, types, |at, value| {
        count += 1;
        let start = data.len();
        data.extend(NULL.to_be_bytes());
        if value.is_none() {
            return Ok(());
        }
        let is_direct = match types.get(at) {
            Some(ty) => dumping::put_as(ty, value, data)?,
            None => false,
        };
        if !is_direct {
            own.clear();
            // A column of another type reads what Python's class writes, as it does in the text format.
            let dumped = match types.get(at) {
                Some(_) => dumping::put_text(value, &mut own)?,
                None => dumping::put_binary_form(value, &mut own)?,
            };
            let Some((type_oid, format)) = dumped else { return Ok(()) };
            let written = Written { type_oid, format, bytes: Some(&own) };
            put_binary(&written, &own, types.get(at), data).map_err(|error| {
                // A type that nobody can write is no fault of the value.
                let kind = if types.get(at).is_none_or(binary::is_known) { "data" } else { "usage" };
                misuse(py, kind, &format!("value {}: {}", at + 1, error.value(py)))
            })?;
        }
        let ty = types.get(at).unwrap_or(&Type::TEXT);
        if let Some(other) = encode.map_or(Ok(None), |encode| encode(ty, &data[start + 4..]))? {
            data.truncate(start + 4);
            data.extend(other);
        }
        end_value(py, at, start, data)
    })?;
    let count = i16::try_from(count).map_err(|_| too_wide(py))?;
    data[place..place + 2].copy_from_slice(&count.to_be_bytes());
    Ok(())
}

/// Writes the length of a value before it.
fn end_value(py: Python<'_>, at: usize, start: usize, data: &mut [u8]) -> PyResult<()> {
    let length = i32::try_from(data.len() - start - 4)
        .map_err(|_| misuse(py, "data", &format!("value {} is too long", at + 1)))?;
    data[start..start + 4].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

fn too_wide(py: Python<'_>) -> PyErr {
    misuse(py, "data", "a row has too many values")
}

/// Writes a value in the binary form of the column's type, or of its own.
fn put_binary(
    value: &Written<'_>,
    bytes: &[u8],
    column: Option<&Type>,
    data: &mut Vec<u8>,
) -> Result<(), PyErr> {
    let own = type_by_id(value.type_oid);
    // What has no type is text, and what a dumper of the program's has made for its own type is right.
    let ty = column.or_else(|| Type::from_oid(value.type_oid).is_some().then_some(&own));
    let Some(ty) = ty.filter(|ty| value.format == Format::Text || ty.oid() != own.oid()) else {
        data.extend_from_slice(bytes);
        return Ok(());
    };
    let mut text = String::new();
    match value.format {
        Format::Text => text.push_str(str_of(bytes)?),
        Format::Binary => binary::put_text(&own, bytes, &mut text)?,
    }
    binary::put(ty, &text, data)
}

/// Adds a row in binary all of whose values are [plain](Plain); false for another one, of which perhaps something is added.
#[inline]
fn put_plain_row(row: &Bound<'_, PyAny>, plain: &[Plain], data: &mut Vec<u8>) -> bool {
    let Ok(row) = row.cast::<PyTuple>() else { return false };
    if plain.is_empty() || plain.len() != row.len() || has_own_dumpers(row.py()) {
        return false;
    }
    // There are so few: `set_types` has looked.
    data.extend_from_slice(&(row.len() as i16).to_be_bytes());
    row.as_slice().iter().zip(plain).all(|(value, plain)| {
        if value.is_none() {
            data.extend_from_slice(&NULL.to_be_bytes());
            return true;
        }
        plain.put(value, data).is_some()
    })
}

fn str_of(bytes: &[u8]) -> PyResult<&str> {
    std::str::from_utf8(bytes).map_err(|_| PyValueError::new_err("a value is not UTF-8"))
}

/// Makes rows of COPY's data.
#[pyclass(frozen, module = "onetrip._native")]
pub(crate) struct CopyRows {
    is_binary: bool,
    /// One for each column; none where nobody has said the types.
    columns: Vec<(Type, Loader)>,
    /// What values are without types.
    plain: Loader,
    /// The session's encoding, where that is not UTF-8.
    encoding: Option<String>,
}

#[pymethods]
impl CopyRows {
    /// With these types, by name or id. Without any, values are text, or bytes in binary. `setting` tells the session's
    /// settings by their names.
    #[new]
    #[pyo3(signature = (is_binary, types, texts, binaries, setting, encoding = None))]
    fn new(
        is_binary: bool,
        types: Vec<Bound<'_, PyAny>>,
        texts: &Bound<'_, PyDict>,
        binaries: &Bound<'_, PyDict>,
        setting: &Bound<'_, PyAny>,
        encoding: Option<&str>,
    ) -> PyResult<Self> {
        let py = texts.py();
        let session = Session::of(|name| setting.call1((name,)).ok()?.extract().ok()?);
        let session = Session { is_raw: encoding::is_unknown(encoding), ..session };
        let column = |ty: &Bound<'_, PyAny>| {
            let ty = type_of(ty)?;
            // A loader of text is for the binary form, too, where the program has no other one.
            let is_by_text = texts.contains(ty.oid())? && !binaries.contains(ty.oid())?;
            let loader = if is_binary && !is_by_text {
                Loader::of_binary(py, &ty, &Functions { texts, binaries }, &session)?
            } else {
                Loader::of(py, &ty, texts, &session)?
            };
            Ok((ty, loader))
        };
        Ok(Self {
            is_binary,
            columns: types.iter().map(column).collect::<PyResult<_>>()?,
            plain: if session.is_raw { Loader::Raw } else { Loader::Text },
            encoding: encoding::foreign(encoding).map(str::to_owned),
        })
    }

    /// The values of a piece of data; None where it has no row, as the end of binary data.
    fn row<'py>(&self, py: Python<'py>, piece: &[u8]) -> PyResult<Option<Bound<'py, PyTuple>>> {
        if self.is_binary {
            return self.binary_row(py, piece);
        }
        match &self.encoding {
            Some(encoding) if !piece.is_ascii() => {
                let line = encoding::decoded(py, encoding, piece)?;
                self.text_row(py, line.as_bytes()).map(Some)
            }
            _ => self.text_row(py, piece).map(Some),
        }
    }
}

impl CopyRows {
    fn text_row<'py>(&self, py: Python<'py>, line: &[u8]) -> PyResult<Bound<'py, PyTuple>> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let mut values = Vec::with_capacity(self.columns.len());
        let mut unescaped = Vec::new();
        for (at, written) in line.split(|byte| *byte == b'\t').enumerate() {
            if written == b"\\N" {
                values.push(py.None().into_bound(py));
                continue;
            }
            let value = if written.contains(&b'\\') { unescape(written, &mut unescaped) } else { written };
            let loader = self.column(py, at)?.map_or(&self.plain, |(_, loader)| loader);
            values.push(loader.load(py, value)?);
        }
        self.check_width(py, values.len())?;
        PyTuple::new(py, values)
    }

    fn binary_row<'py>(&self, py: Python<'py>, piece: &[u8]) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let broken = || misuse(py, "data", "data of a binary COPY that is not what it says");
        let mut rest = piece;
        if let Some(after) = piece.strip_prefix(SIGNATURE) {
            let (_flags, after) = after.split_first_chunk::<4>().ok_or_else(broken)?;
            let (length, after) = after.split_first_chunk::<4>().ok_or_else(broken)?;
            rest = after.get(u32::from_be_bytes(*length) as usize..).ok_or_else(broken)?;
        }
        if rest.is_empty() || rest == TRAILER {
            return Ok(None);
        }
        let (count, mut rest) = rest.split_first_chunk::<2>().ok_or_else(broken)?;
        let mut values = Vec::with_capacity(self.columns.len());
        for at in 0..usize::from(u16::from_be_bytes(*count)) {
            let (length, after) = rest.split_first_chunk::<4>().ok_or_else(broken)?;
            rest = after;
            let length = i32::from_be_bytes(*length);
            if length == NULL {
                values.push(py.None().into_bound(py));
                continue;
            }
            let length = usize::try_from(length).map_err(|_| broken())?;
            let (value, after) = rest.split_at_checked(length).ok_or_else(broken)?;
            rest = after;
            let Some((ty, loader)) = self.column(py, at)? else {
                values.push(PyBytes::new(py, value).into_any());
                continue;
            };
            let other = match &self.encoding {
                Some(encoding) => {
                    let convert = |text: &[u8]| Ok(encoding::decoded(py, encoding, text)?.into_bytes());
                    encoding::converted(ty, Format::Binary, value, convert)?
                }
                None => None,
            };
            values.push(loader.load_binary(py, ty, other.as_deref().unwrap_or(value))?);
        }
        self.check_width(py, values.len())?;
        PyTuple::new(py, values).map(Some)
    }

    fn check_width(&self, py: Python<'_>, width: usize) -> PyResult<()> {
        let types = self.columns.len();
        if types == 0 || types == width {
            return Ok(());
        }
        Err(misuse(py, "usage", &format!("{types} types were set, and a row has {width} columns")))
    }

    /// The type of a column; `None` where none were set.
    fn column(&self, py: Python<'_>, at: usize) -> PyResult<Option<&(Type, Loader)>> {
        let column = self.columns.get(at);
        if column.is_none() {
            self.check_width(py, at + 1)?;
        }
        Ok(column)
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
        return Ok(type_by_id(oid));
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

fn type_by_id(oid: Oid) -> Type {
    Type::from_oid(oid).unwrap_or_else(|| Type::new(String::new(), oid, Kind::Simple, String::new()))
}

fn built_in(name: &str) -> Option<Type> {
    static TYPES: OnceLock<Vec<Type>> = OnceLock::new();
    let types = TYPES.get_or_init(|| (1..BUILT_IN_MAX).filter_map(Type::from_oid).collect());
    types.iter().find(|ty| ty.name() == name).cloned()
}
