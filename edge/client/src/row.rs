use std::borrow::Cow;
use std::sync::Arc;

use onetrip_wire::Reader;
use onetrip_wire::pg::{Format, HEADER_BYTES, Oid, RowDescription, backend, frame};
use postgres_types::{FromSql, Kind, Type};

use crate::Error;

/// One column of a result.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Its name.
    pub name: Box<str>,
    /// Its type, with the name where it is one of PostgreSQL's own.
    pub ty: Type,
    /// Type modifier, such as the n of varchar(n) plus four.
    pub type_modifier: i32,
    /// Size of the type in bytes; negative is variable.
    pub type_len: i16,
    /// Table that it comes from, or zero.
    pub table: Oid,
    /// Attribute number in that table, or zero.
    pub attribute: i16,
}

/// The columns of a result; none for a statement that returns no rows, and for a `SELECT` of nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Columns {
    list: Arc<[Column]>,
    /// Whether they are those of a result, of which there may be none.
    is_result: bool,
}

impl Columns {
    /// `decoded` makes UTF-8 of names.
    pub(crate) fn of<'a>(
        description: &RowDescription<'a>,
        decoded: impl Fn(&'a [u8]) -> Cow<'a, [u8]>,
    ) -> Self {
        let column = |column: onetrip_wire::pg::Column<'a>| Column {
            name: String::from_utf8_lossy(&decoded(column.name)).into(),
            ty: type_of(column.type_oid),
            type_modifier: column.type_modifier,
            type_len: column.type_len,
            table: column.table,
            attribute: column.attribute,
        };
        Self { list: description.columns().map(column).collect(), is_result: true }
    }

    /// Whether the statement returns rows, though they may have no columns.
    pub fn is_result(&self) -> bool {
        self.is_result
    }

    /// The position of the first column with this name.
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.list.iter().position(|column| &*column.name == name)
    }
}

impl std::ops::Deref for Columns {
    type Target = [Column];

    fn deref(&self) -> &[Column] {
        &self.list
    }
}

/// One row, borrowed from where the bytes of the server arrived.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    columns: &'a Columns,
    format: Format,
    /// The body of a DataRow.
    body: &'a [u8],
}

impl<'a> Row<'a> {
    pub(crate) fn new(columns: &'a Columns, format: Format, body: &'a [u8]) -> Self {
        Self { columns, format, body }
    }

    pub(crate) fn body(&self) -> &'a [u8] {
        self.body
    }

    /// The columns of the result.
    pub fn columns(&self) -> &'a Columns {
        self.columns
    }

    /// How the values are written.
    pub fn format(&self) -> Format {
        self.format
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        Reader::new(self.body).count().map_or(0, usize::from)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All values in order, as they were sent; `None` is NULL.
    #[inline]
    pub fn values(&self) -> impl Iterator<Item = Option<&'a [u8]>> + use<'a> {
        let (count, mut rest) = match self.body.split_first_chunk::<2>() {
            Some((count, rest)) => (u16::from_be_bytes(*count), rest),
            None => (0, self.body),
        };
        (0..count).map_while(move |_| {
            let (length, after) = rest.split_first_chunk::<4>()?;
            // -1 is the only negative length there is.
            let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
                rest = after;
                return (*length == NULL).then_some(None);
            };
            let (value, after) = after.split_at_checked(length)?;
            rest = after;
            Some(Some(value))
        })
    }

    /// One value as it was sent; `None` is NULL.
    ///
    /// # Errors
    /// A position that the row does not have.
    pub fn value(&self, index: usize) -> Result<Option<&'a [u8]>, Error> {
        self.values().nth(index).ok_or_else(|| column_error(index, "the row has fewer columns"))
    }

    /// One value as a type of Rust.
    ///
    /// # Errors
    /// A position that the row does not have, NULL for a type without it, or a type that does not fit the column's.
    pub fn get<T: FromSql<'a>>(&self, index: usize) -> Result<T, Error> {
        let value = self.value(index)?;
        let ty = self.columns.get(index).map_or(&Type::UNKNOWN, |column| &column.ty);
        if !T::accepts(ty) {
            return Err(column_error(index, &format!("its type is {ty}, which the Rust type does not take")));
        }
        if self.format == Format::Text && *ty != Type::TEXT {
            return Err(column_error(
                index,
                "it came as text: take it by `text`, or ask for the binary format",
            ));
        }
        T::from_sql_nullable(ty, value).map_err(|error| column_error(index, &error.to_string()))
    }

    /// One value by the name of its column.
    ///
    /// # Errors
    /// As [`get`](Self::get), and a name that no column has.
    pub fn get_by_name<T: FromSql<'a>>(&self, name: &str) -> Result<T, Error> {
        let index = self.columns.index_of(name);
        self.get(index.ok_or_else(|| column_error(usize::MAX, &format!("no column is called {name}")))?)
    }

    /// One value that is text by its type or its format; `None` is NULL.
    ///
    /// # Errors
    /// A position that the row does not have, or bytes that are not UTF-8.
    pub fn text(&self, index: usize) -> Result<Option<&'a str>, Error> {
        let text = |bytes| std::str::from_utf8(bytes).map_err(|_| column_error(index, "it is not UTF-8"));
        self.value(index)?.map(text).transpose()
    }
}

/// The length that stands for NULL.
const NULL: [u8; 4] = [0xff; 4];

/// A result that is kept: the rows of a query in a pipeline.
#[derive(Debug, Clone, Default)]
pub struct ResultSet {
    columns: Columns,
    format: Format,
    /// Pieces that are full, each of whole DataRows as they came. One that was released is empty.
    full: Vec<Vec<u8>>,
    /// Memory of them.
    full_bytes: usize,
    /// The last piece.
    bytes: Vec<u8>,
    rows: usize,
}

/// A result that is longer is kept in pieces, so that it is not copied as it grows.
const PIECE_BYTES: usize = 1024 * 1024;

impl ResultSet {
    pub(crate) fn new(columns: Columns, format: Format) -> Self {
        Self { columns, format, full: Vec::new(), full_bytes: 0, bytes: Vec::new(), rows: 0 }
    }

    pub(crate) fn push(&mut self, body: &[u8]) {
        self.make_room(HEADER_BYTES + body.len());
        frame(&mut self.bytes, backend::DATA_ROW, |out| out.extend_from_slice(body));
        self.rows += 1;
    }

    /// Adds whole DataRows.
    pub(crate) fn push_messages(&mut self, messages: &[u8], count: usize) {
        self.make_room(messages.len());
        self.bytes.extend_from_slice(messages);
        self.rows += count;
    }

    fn make_room(&mut self, count: usize) {
        if self.bytes.len() + count > PIECE_BYTES && !self.bytes.is_empty() {
            self.begin_piece(count);
        }
    }

    #[cold]
    fn begin_piece(&mut self, count: usize) {
        let piece = std::mem::replace(&mut self.bytes, Vec::with_capacity(count.max(PIECE_BYTES)));
        self.full_bytes += piece.capacity();
        self.full.push(piece);
    }

    /// Gives back memory of rows before a place, which nobody may read again. It is all of it at the end.
    pub fn release(&mut self, until: Place) {
        let read = until.piece.min(self.full.len());
        for piece in self.full[..read].iter_mut().rev().take_while(|piece| piece.capacity() > 0) {
            self.full_bytes -= piece.capacity();
            *piece = Vec::new();
        }
        if self.is_end(until) {
            self.bytes = Vec::new();
        }
    }

    /// The columns.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// How the values are written.
    pub fn format(&self) -> Format {
        self.format
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Whether all values are ASCII.
    pub fn is_ascii(&self) -> bool {
        self.rows().all(|row| row.values().flatten().all(<[u8]>::is_ascii))
    }

    /// Replaces values: `converted` says by what, and leaves a value as it is by `None`.
    ///
    /// # Errors
    /// What `converted` fails with; the rows stay as they were.
    pub fn convert<E>(
        &mut self,
        mut converted: impl FnMut(&Column, Format, &[u8]) -> Result<Option<Vec<u8>>, E>,
    ) -> Result<(), E> {
        let mut made = Self::new(self.columns.clone(), self.format);
        let mut body = Vec::new();
        for row in self.rows() {
            body.clear();
            body.extend_from_slice(row.body().get(..2).unwrap_or_default());
            let described = self.columns.iter().map(Some).chain(std::iter::repeat(None));
            for (value, column) in row.values().zip(described) {
                let Some(value) = value else {
                    body.extend_from_slice(&NULL);
                    continue;
                };
                let replaced = column.map_or(Ok(None), |column| converted(column, self.format, value))?;
                let value = replaced.as_deref().unwrap_or(value);
                body.extend_from_slice(&(value.len() as u32).to_be_bytes());
                body.extend_from_slice(value);
            }
            made.push(&body);
        }
        *self = made;
        Ok(())
    }

    /// Memory that the rows take, in bytes.
    pub fn memory(&self) -> usize {
        self.full_bytes + self.bytes.capacity()
    }

    /// The rows in order.
    pub fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        let mut place = Place::default();
        std::iter::from_fn(move || self.next_row(&mut place))
    }

    /// The place behind the last row.
    pub fn end(&self) -> Place {
        Place { piece: self.full.len(), byte: self.bytes.len(), row: self.len() }
    }

    /// The row behind a place, which moves on behind it; `None` at the end.
    #[inline]
    pub fn next_row(&self, place: &mut Place) -> Option<Row<'_>> {
        let mut piece = self.full.get(place.piece).unwrap_or(&self.bytes);
        while place.byte >= piece.len() && place.piece < self.full.len() {
            (place.piece, place.byte) = (place.piece + 1, 0);
            piece = self.full.get(place.piece).unwrap_or(&self.bytes);
        }
        let (&[_, a, b, c, d], bytes) = piece.get(place.byte..)?.split_first_chunk::<HEADER_BYTES>()?;
        // The length counts itself.
        let body = bytes.get(..(u32::from_be_bytes([a, b, c, d]) as usize).checked_sub(4)?)?;
        place.byte += HEADER_BYTES + body.len();
        place.row += 1;
        Some(Row::new(&self.columns, self.format, body))
    }

    /// Whether no row follows a place.
    pub(crate) fn is_end(&self, place: Place) -> bool {
        place.row >= self.rows
    }
}

/// A place in a result that is kept, for readers that cannot keep an iterator.
#[derive(Debug, Clone, Copy, Default)]
pub struct Place {
    piece: usize,
    byte: usize,
    row: usize,
}

impl Place {
    /// How many rows stand before it.
    pub fn row(self) -> usize {
        self.row
    }
}

/// A type by its id; one that is not PostgreSQL's own has its id for a name.
fn type_of(oid: Oid) -> Type {
    Type::from_oid(oid).unwrap_or_else(|| Type::new(format!("type {oid}"), oid, Kind::Simple, String::new()))
}

fn column_error(index: usize, problem: &str) -> Error {
    Error::Column { index, problem: problem.into() }
}
