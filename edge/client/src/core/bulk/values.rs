//! Many sets of parameters as one request: as arrays for `unnest`, or as the data of a COPY.

use onetrip_wire::pg::{Format, Oid};
use postgres_types::{Kind, Type};

use super::Sets;
use crate::Error;

/// A request grows until it has about this many bytes.
const CHUNK_BYTES: usize = 1 << 20;

/// What a chunk cannot be made of: the number of the set, and why.
pub(super) type Misfit = (usize, Error);

/// The values of one column, as an array that the server reads.
#[derive(Debug)]
pub(super) struct Array {
    pub(super) format: Format,
    pub(super) bytes: Vec<u8>,
    has_null: bool,
}

/// Bytes of a binary array before its values: dimensions, whether there are NULLs, the type, length and first index.
const ARRAY_HEADER_BYTES: usize = 20;

/// The arrays of the sets from `start` on, one for each column, and where the sets end that are in them.
pub(super) fn arrays(sets: &dyn Sets, start: usize, types: &[Type]) -> Result<(Vec<Array>, usize), Misfit> {
    let mut arrays: Vec<Array> = types.iter().map(|_| Array::new(Format::Binary)).collect();
    let mut set = start;
    while set < sets.count() {
        check_width(sets, set, types.len())?;
        let mut bytes = 0;
        for (column, (array, ty)) in arrays.iter_mut().zip(types).enumerate() {
            array.push(sets, start, set, column, ty).map_err(|error| (set, error))?;
            bytes += array.bytes.len();
        }
        set += 1;
        if bytes >= CHUNK_BYTES {
            break;
        }
    }
    for (array, ty) in arrays.iter_mut().zip(types) {
        array.finish(ty, set - start);
    }
    Ok((arrays, set))
}

/// Whether values of a type can be in an array that `unnest` takes apart again.
pub(super) fn has_plain_arrays(ty: &Type) -> bool {
    // The arrays of boxes are written with another separator, and those of arrays are flat.
    *ty != Type::BOX && !matches!(ty.kind(), Kind::Array(_) | Kind::Pseudo)
}

impl Array {
    fn new(format: Format) -> Self {
        let bytes = match format {
            Format::Binary => vec![0; ARRAY_HEADER_BYTES],
            Format::Text => b"{".to_vec(),
        };
        Self { format, bytes, has_null: false }
    }

    fn push(
        &mut self,
        sets: &dyn Sets,
        start: usize,
        set: usize,
        column: usize,
        ty: &Type,
    ) -> Result<(), Error> {
        let declared = sets.value(set, column).declared();
        if declared != 0 && declared != ty.oid() {
            return Err(misfit(column, "its type differs from that of the other sets"));
        }
        if self.format == Format::Binary && self.push_binary(sets, set, column, ty)? {
            return Ok(());
        }
        if self.format == Format::Binary {
            // One value that has no binary form here makes the whole column text.
            *self = Self::new(Format::Text);
            for before in start..set {
                self.push_text(sets, before, column)?;
            }
        }
        self.push_text(sets, set, column)
    }

    /// Appends a value in binary; false where it has no such form.
    fn push_binary(&mut self, sets: &dyn Sets, set: usize, column: usize, ty: &Type) -> Result<bool, Error> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        let length = match put(sets, set, column, ty.oid(), &mut self.bytes)? {
            None => {
                self.has_null = true;
                -1
            }
            Some(Format::Text) if !is_text_in_binary(ty) => {
                self.bytes.truncate(start);
                return Ok(false);
            }
            Some(_) => i32::try_from(self.bytes.len() - start - 4)
                .map_err(|_| misfit(column, "it is longer than the protocol allows"))?,
        };
        self.bytes[start..start + 4].copy_from_slice(&length.to_be_bytes());
        Ok(true)
    }

    fn push_text(&mut self, sets: &dyn Sets, set: usize, column: usize) -> Result<(), Error> {
        if self.bytes.len() > 1 {
            self.bytes.push(b',');
        }
        let mut value = Vec::new();
        match put(sets, set, column, 0, &mut value)? {
            None => self.bytes.extend_from_slice(b"NULL"),
            Some(Format::Binary) => return Err(misfit(column, "some values of it are text, others binary")),
            Some(Format::Text) => {
                self.bytes.push(b'"');
                for byte in value {
                    if matches!(byte, b'"' | b'\\') {
                        self.bytes.push(b'\\');
                    }
                    self.bytes.push(byte);
                }
                self.bytes.push(b'"');
            }
        }
        Ok(())
    }

    fn finish(&mut self, ty: &Type, count: usize) {
        if self.format == Format::Text {
            return self.bytes.push(b'}');
        }
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let header = [1, u32::from(self.has_null), ty.oid(), count, 1];
        for (place, number) in self.bytes.chunks_exact_mut(4).zip(header) {
            place.copy_from_slice(&number.to_be_bytes());
        }
    }
}

/// The sets from `start` on as data of a COPY in text format, and where the sets end that are in it. `types` are the
/// columns', where they are known.
pub(super) fn copy_data(
    sets: &dyn Sets,
    start: usize,
    width: usize,
    types: Option<&[Type]>,
) -> Result<(Vec<u8>, usize), Misfit> {
    let mut data = Vec::new();
    let mut value = Vec::new();
    let mut set = start;
    while set < sets.count() && data.len() < CHUNK_BYTES {
        check_width(sets, set, width)?;
        for column in 0..width {
            if column > 0 {
                data.push(b'\t');
            }
            value.clear();
            let ty = types.and_then(|types| types.get(column));
            put_copied(sets, set, column, ty, &mut value, &mut data).map_err(|error| (set, error))?;
        }
        data.push(b'\n');
        set += 1;
    }
    Ok((data, set))
}

/// Whether the first set has values with types of their own: they may be other than the columns'.
pub(super) fn has_types(sets: &dyn Sets) -> bool {
    (0..sets.width(0)).any(|column| sets.value(0, column).declared() != 0)
}

/// Whether the first set's values have no types but the columns'.
pub(super) fn has_types_of(sets: &dyn Sets, columns: &[Oid]) -> bool {
    let is_of = |(at, column): (usize, &Oid)| is_of_column(sets.value(0, at).declared(), *column);
    columns.len() == sets.width(0) && columns.iter().enumerate().all(is_of)
}

/// Whether a value of a type means in a column by COPY what it means by INSERT. A small number is made a larger one.
fn is_of_column(declared: Oid, column: Oid) -> bool {
    declared == 0 || declared == column || is_smaller_number(declared, column)
}

fn is_smaller_number(declared: Oid, column: Oid) -> bool {
    let bytes = |oid| [Type::INT2, Type::INT4, Type::INT8].iter().position(|ty| ty.oid() == oid);
    bytes(declared).zip(bytes(column)).is_some_and(|(declared, column)| declared < column)
}

/// What begins a COPY in binary format, by PostgreSQL's documentation of COPY: a signature, no flags, no extension.
const BINARY_COPY_BEGINS: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// And what ends it, in the place of a row's number of values.
const BINARY_COPY_ENDS: [u8; 2] = (-1_i16).to_be_bytes();

/// The sets from `start` on as data of a COPY in binary format into columns of these types, and where the sets end that are
/// in it.
pub(super) fn binary_copy_data(
    sets: &dyn Sets,
    start: usize,
    columns: &[Oid],
) -> Result<(Vec<u8>, usize), Misfit> {
    let mut data = BINARY_COPY_BEGINS.to_vec();
    // A table has fewer columns than that.
    let width = u16::try_from(columns.len()).unwrap_or(u16::MAX);
    let mut set = start;
    while set < sets.count() && data.len() < CHUNK_BYTES {
        check_width(sets, set, columns.len())?;
        data.extend_from_slice(&width.to_be_bytes());
        for (at, column) in columns.iter().enumerate() {
            put_binary_copied(sets, set, at, *column, &mut data).map_err(|error| (set, error))?;
        }
        set += 1;
    }
    data.extend_from_slice(&BINARY_COPY_ENDS);
    Ok((data, set))
}

fn put_binary_copied(
    sets: &dyn Sets,
    set: usize,
    at: usize,
    column: Oid,
    data: &mut Vec<u8>,
) -> Result<(), Error> {
    let declared = sets.value(set, at).declared();
    if !is_of_column(declared, column) {
        return Err(misfit(at, "its type is not the column's"));
    }
    let start = data.len();
    data.extend_from_slice(&[0; 4]);
    let length = match put(sets, set, at, if declared == 0 { column } else { declared }, data)? {
        None => -1,
        Some(Format::Text) if !Type::from_oid(column).is_some_and(|ty| is_text_in_binary(&ty)) => {
            return Err(misfit(at, "it has no binary form"));
        }
        Some(format) => {
            if format == Format::Binary && is_smaller_number(declared, column) {
                widen(data, start + 4, if column == Type::INT8.oid() { 8 } else { 4 });
            }
            i32::try_from(data.len() - start - 4)
                .map_err(|_| misfit(at, "it is longer than the protocol allows"))?
        }
    };
    data[start..start + 4].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

/// Makes the number that begins there one of so many bytes: its sign goes before it.
fn widen(data: &mut Vec<u8>, start: usize, bytes: usize) {
    let sign = if data.get(start).is_some_and(|byte| byte & 0x80 != 0) { 0xff } else { 0 };
    while data.len() < start + bytes {
        data.insert(start, sign);
    }
}

fn put_copied(
    sets: &dyn Sets,
    set: usize,
    column: usize,
    ty: Option<&Type>,
    value: &mut Vec<u8>,
    data: &mut Vec<u8>,
) -> Result<(), Error> {
    if sets.value(set, column).declared() != 0 {
        // COPY reads every value as the column's type: a cast from another would be left out.
        return Err(misfit(column, "it has a type of its own, which COPY cannot tell"));
    }
    match put(sets, set, column, 0, value)? {
        None => data.extend_from_slice(b"\\N"),
        Some(Format::Text) => put_copy_text(value, data),
        Some(Format::Binary) => match ty {
            Some(ty) if *ty == Type::BYTEA => {
                data.extend_from_slice(b"\\\\x");
                for byte in value {
                    data.extend(
                        [*byte >> 4, *byte & 15].map(|digit| b"0123456789abcdef"[usize::from(digit)]),
                    );
                }
            }
            Some(ty) if is_text_in_binary(ty) => put_copy_text(value, data),
            _ => return Err(misfit(column, "it has no text form, which COPY needs")),
        },
    }
    Ok(())
}

/// Writes a value's text as data of a COPY in text format: what COPY itself would read as something else is escaped.
pub fn put_copy_text(value: &[u8], data: &mut Vec<u8>) {
    let mut rest = value;
    while let Some(at) = rest.iter().position(|byte| matches!(byte, b'\\' | b'\n' | b'\r' | b'\t')) {
        let escaped = match rest[at] {
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            other => other,
        };
        data.extend_from_slice(&rest[..at]);
        data.extend_from_slice(&[b'\\', escaped]);
        rest = &rest[at + 1..];
    }
    data.extend_from_slice(rest);
}

fn put(
    sets: &dyn Sets,
    set: usize,
    column: usize,
    type_oid: u32,
    out: &mut Vec<u8>,
) -> Result<Option<Format>, Error> {
    sets.value(set, column)
        .put(type_oid, out)
        .map_err(|problem| Error::Parameter { number: column + 1, problem: problem.into() })
}

/// Types whose binary form is their text.
fn is_text_in_binary(ty: &Type) -> bool {
    [Type::TEXT, Type::VARCHAR, Type::BPCHAR, Type::NAME, Type::JSON].contains(ty)
}

fn check_width(sets: &dyn Sets, set: usize, width: usize) -> Result<(), Misfit> {
    if sets.width(set) == width {
        return Ok(());
    }
    let problem = format!("the statement has {width} parameters, and the set {}", sets.width(set));
    Err((set, Error::Parameter { number: width.min(sets.width(set)) + 1, problem: problem.into() }))
}

fn misfit(column: usize, problem: &str) -> Error {
    Error::Parameter { number: column + 1, problem: problem.into() }
}
