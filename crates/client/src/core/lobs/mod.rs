//! Large values, read and written in pieces: large objects, and values of `bytea` and text.
//!
//! ```text
//!   FirstParts   the beginnings of many values, in one block
//!   LobReading   the rest of one, piece by piece, with more on their way than are read
//!   LobWriting   pieces of one, in one block
//! ```

mod first;
mod prefetch;
mod reading;
mod writing;

use onetrip_wire::pg::Oid;

use super::Request;
use crate::types::Type;
use crate::{Done, Error, Param, ResultSet, Row};

pub(crate) use first::FirstParts;
pub use prefetch::first_part;
pub(crate) use reading::LobReading;
pub(crate) use writing::LobWriting;

/// Makes an empty large object.
pub(crate) const CREATE_OBJECT: &str = "SELECT lo_create(0)";
/// Reads a part of a large object: `$1` its id, `$2` the position counted from one, `$3` how many bytes.
pub const READ_OBJECT: &str = "SELECT lo_get($1::oid, $2::int8 - 1, $3::int4)";
/// Reads the length of a large object, `$1` its id. It opens, goes to the end and closes, in this order: the inner query is
/// not pulled up because of OFFSET.
pub const LENGTH_OBJECT: &str = "SELECT lo_lseek64(fd, 0, 2), lo_close(fd) \
     FROM (SELECT lo_open($1::oid, 262144) AS fd OFFSET 0) AS opened";

/// A piece that is read or written at once, in bytes or characters. Larger ones cost the server more: its memory for
/// each would come fresh from the operating system.
const PIECE: u32 = 64 * 1024;

/// Where a large value is.
#[derive(Clone, Copy)]
pub enum LobSource<'a> {
    /// A large object.
    Object(Oid),
    /// A value of a row, read by a statement with three parameters: `$1` the row's key, `$2` the position counted from
    /// one, `$3` how much, as in `SELECT substr(body, $2, $3) FROM page WHERE id = $1`. Of a `bytea` these are bytes,
    /// of text characters.
    Value {
        /// The statement.
        read: &'a str,
        /// The row's key.
        key: &'a (dyn Param + Sync),
    },
}

impl std::fmt::Debug for LobSource<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Object(oid) => write!(formatter, "Object({oid})"),
            Self::Value { read, .. } => write!(formatter, "Value({read:?})"),
        }
    }
}

/// A large value of which some has been fetched.
#[derive(Debug)]
pub struct Lob<'a> {
    source: LobSource<'a>,
    length: Option<u64>,
    /// What was fetched and not read.
    buffer: Vec<u8>,
    /// How much of the buffer was read.
    read: usize,
    /// Where the next piece begins, counted from one.
    position: u64,
    is_over: bool,
}

impl<'a> Lob<'a> {
    /// A value of which nothing is known yet.
    pub fn new(source: LobSource<'a>) -> Self {
        Self { source, length: None, buffer: Vec::new(), read: 0, position: 1, is_over: false }
    }

    /// Its length in bytes, where it is known: by [`Prefetch::Length`](super::Prefetch::Length), or because all of it is
    /// here.
    pub fn length(&self) -> Option<u64> {
        self.length
    }

    /// What is here of what comes next.
    pub fn prefetched(&self) -> &[u8] {
        &self.buffer[self.read..]
    }

    /// Whether all that is left is here, so that reading takes no more trips.
    pub fn is_whole(&self) -> bool {
        self.is_over
    }

    /// Bytes of memory that it takes.
    pub fn memory(&self) -> usize {
        self.buffer.capacity()
    }

    /// Hands on the statement that reads `count` bytes or characters from a position on.
    fn asking<T>(&self, position: u64, count: u32, ask: impl FnOnce(&Request<'_>) -> T) -> T {
        let (position, count) = (position as i64, i64::from(count));
        match self.source {
            LobSource::Object(oid) => ask(&Request::new(READ_OBJECT, &[&oid, &position, &count])),
            LobSource::Value { read, key } => ask(&Request::new(read, &[&key, &position, &count])),
        }
    }

    /// A piece has been taken: so many bytes or characters came of those asked for, and so many bytes.
    fn came(&mut self, units: u64, asked: u32, bytes: usize) {
        let is_last = units < u64::from(asked);
        if self.position == 1 && is_last {
            self.length = Some(bytes as u64);
        }
        self.position += units;
        self.is_over |= is_last;
    }

    /// Takes a piece that was asked for.
    fn take_piece(&mut self, done: Done, asked: u32) -> Result<(), Error> {
        let rows: ResultSet = done.rows.map(|rows| *rows).unwrap_or_default();
        let Some(row) = rows.rows().next() else {
            self.came(0, asked, 0);
            return Ok(());
        };
        let (bytes, units) = piece(&row)?;
        self.buffer.extend_from_slice(bytes);
        self.came(units, asked, bytes.len());
        Ok(())
    }
}

/// The value of the only row, and how many bytes or characters it has.
fn piece<'r>(row: &Row<'r>) -> Result<(&'r [u8], u64), Error> {
    let bytes = row.value(0)?.unwrap_or_default();
    if row.columns().first().is_some_and(|column| column.ty == Type::BYTEA) {
        return Ok((bytes, bytes.len() as u64));
    }
    Ok((bytes, row.text(0)?.unwrap_or_default().chars().count() as u64))
}
