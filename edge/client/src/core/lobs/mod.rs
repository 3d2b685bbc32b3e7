//! Large values, read and written in pieces: large objects, and values of `bytea` and text.
//!
//! ```text
//!   LobBuffer    one value: what to ask for next, and what has come of it
//!   FirstParts   the beginnings of many values, in one block
//!   LobReading   the rest of one, piece by piece, with more on their way than are read
//!   LobWriting   pieces of one, in one block
//! ```

mod buffer;
mod first;
mod prefetch;
mod reading;
mod writing;

use onetrip_wire::pg::Oid;

use super::Request;
use crate::Param;

pub use buffer::{LobBuffer, LobParts};
pub(crate) use first::FirstParts;
pub(crate) use reading::LobReading;
pub(crate) use writing::LobWriting;

/// Makes an empty large object.
pub(crate) const CREATE_OBJECT: &str = "SELECT lo_create(0)";
/// Reads a part of a large object: `$1` its id, `$2` the position counted from one, `$3` how many bytes.
const READ_OBJECT: &str = "SELECT lo_get($1::oid, $2::int8 - 1, $3::int4)";
/// Reads the length of a large object, `$1` its id. It opens, goes to the end and closes, in this order: the inner query is
/// not pulled up because of OFFSET.
const LENGTH_OBJECT: &str = "SELECT lo_lseek64(fd, 0, 2), lo_close(fd) \
     FROM (SELECT lo_open($1::oid, 262144) AS fd OFFSET 0) AS opened";

/// Answers for what nobody can measure.
const NO_LENGTH: &str = "SELECT NULL::int8";

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
    /// Such a value that can be measured as well, which spares asking for more than there is.
    Measured {
        /// The statement, as of [`Value`](Self::Value).
        read: &'a str,
        /// A statement that counts its bytes, or the characters of text, `$1` the row's key, as in
        /// `SELECT length(body) FROM page WHERE id = $1`.
        length: &'a str,
        /// The row's key.
        key: &'a (dyn Param + Sync),
    },
}

/// What can be asked of a large value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LobPart {
    /// How long it is.
    Length,
    /// A part of it.
    Piece {
        /// Where it begins, counted from zero.
        at: u64,
        /// How many bytes, or characters of text.
        count: u32,
    },
}

impl LobSource<'_> {
    /// Whether the value can be measured.
    pub fn has_length(&self) -> bool {
        !matches!(self, Self::Value { .. })
    }

    /// Hands on the statement that asks for a part.
    pub fn asking<T>(&self, part: LobPart, ask: impl FnOnce(&Request<'_>) -> T) -> T {
        match (part, *self) {
            (LobPart::Piece { at, count }, source) => {
                let (position, count) = (at as i64 + 1, i64::from(count));
                match source {
                    Self::Object(oid) => ask(&Request::new(READ_OBJECT, &[&oid, &position, &count])),
                    Self::Value { read, key } | Self::Measured { read, key, .. } => {
                        ask(&Request::new(read, &[&key, &position, &count]))
                    }
                }
            }
            (LobPart::Length, Self::Object(oid)) => ask(&Request::new(LENGTH_OBJECT, &[&oid])),
            (LobPart::Length, Self::Measured { length, key, .. }) => ask(&Request::new(length, &[&key])),
            (LobPart::Length, Self::Value { .. }) => ask(&Request::new(NO_LENGTH, &[])),
        }
    }
}

impl std::fmt::Debug for LobSource<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Object(oid) => write!(formatter, "Object({oid})"),
            Self::Value { read, .. } => write!(formatter, "Value({read:?})"),
            Self::Measured { read, .. } => write!(formatter, "Measured({read:?})"),
        }
    }
}

/// A large value of which some has been fetched.
#[derive(Debug)]
pub struct Lob<'a> {
    source: LobSource<'a>,
    buffer: LobBuffer,
}

impl<'a> Lob<'a> {
    /// A value of which nothing is known yet.
    pub fn new(source: LobSource<'a>) -> Self {
        Self { source, buffer: LobBuffer::default() }
    }

    /// Its length in bytes, or characters of text, where it is known: by [`Prefetch::Length`](super::Prefetch::Length),
    /// or because its end has come.
    pub fn length(&self) -> Option<u64> {
        self.buffer.length()
    }

    /// What is here of what comes next.
    pub fn prefetched(&self) -> &[u8] {
        self.buffer.bytes()
    }

    /// Whether all that is left is here, so that reading takes no more trips.
    pub fn is_whole(&self) -> bool {
        self.buffer.is_whole()
    }

    /// Bytes of memory that it takes.
    pub fn memory(&self) -> usize {
        self.buffer.memory()
    }
}
