//! Large values, read and written in pieces: large objects, and values of `bytea` and text.

mod reader;

use std::io::{self, Write};

use super::{Client, Pipeline};
use crate::core::{OnError, Prefetch, Request, first_part};
use crate::types::Type;
use crate::{Done, Error, Oid, Param, ResultSet, Row};

pub use reader::LobReader;

const READ_OBJECT: &str = "SELECT lo_get($1::oid, $2::int8 - 1, $3::int4)";
const WRITE_OBJECT: &str = "SELECT lo_put($1::oid, $2::int8, $3::bytea)";
/// Opens, goes to the end and closes, in this order: the inner query is not pulled up because of OFFSET.
const LENGTH_OBJECT: &str = "SELECT lo_lseek64(fd, 0, 2), lo_close(fd) \
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

    /// Its length in bytes, where it is known: by [`Prefetch::Length`], or because all of it is here.
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

impl Client {
    /// Fetches what is wanted of many large values, in one trip. Each says for itself (as a column would) or leaves it
    /// to `prefetch` (as a statement would), and that to the connection's default; the narrower wins.
    ///
    /// # Errors
    /// A large object that does not exist, and whatever a statement of [`LobSource::Value`] fails with.
    pub fn prefetch<'a>(
        &mut self,
        sources: &[(LobSource<'a>, Option<Prefetch>)],
        prefetch: Option<Prefetch>,
    ) -> Result<Vec<Lob<'a>>, Error> {
        let default = self.core.limits().prefetch;
        let room = self.core.limits().read_ahead;
        let mut lobs: Vec<Lob<'a>> = sources.iter().map(|(source, _)| Lob::new(*source)).collect();
        let mut asked = Vec::new();
        let mut pipeline = self.pipeline(OnError::Abort)?;
        for (index, (source, own)) in sources.iter().enumerate() {
            let level = Prefetch::narrowest([Some(default), prefetch, *own]);
            let first = first_part(level, sources.len(), room);
            if first > 0 {
                asked.push((
                    index,
                    first,
                    lobs[index].asking(1, first, |request| pipeline.push(request, None))?,
                ));
            } else if let (Prefetch::Length, LobSource::Object(oid)) = (level, source) {
                asked.push((index, 0, pipeline.execute(LENGTH_OBJECT, &[oid])?));
            }
        }
        let mut outcomes = pipeline.end()?;
        outcomes.check()?;
        for (index, first, operation) in asked {
            let done = outcomes.take(operation)?;
            match first {
                0 => lobs[index].length = length_of(&done)?,
                first => lobs[index].take_piece(done, first)?,
            }
        }
        Ok(lobs)
    }

    /// Reads a large value: what was fetched before from memory, the rest in pieces, of which more are on their way
    /// while one is read.
    pub fn read_lob<'c, 'a>(&'c mut self, lob: &'c mut Lob<'a>) -> LobReader<'c, 'a> {
        LobReader::new(self, lob)
    }

    /// Makes an empty large object.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub fn create_large_object(&mut self) -> Result<Oid, Error> {
        let mut rows = self.query("SELECT lo_create(0)", &[])?;
        let row = rows.next_row()?.ok_or(Error::Protocol("it returns no row where there must be one"))?;
        row.get(0)
    }

    /// Writes a large object from a position on. Pieces travel without waiting for each other.
    ///
    /// # Errors
    /// As [`pipeline`](Self::pipeline).
    pub fn write_large_object(&mut self, oid: Oid, position: u64) -> Result<LobWriter<'_>, Error> {
        let pipeline = self.pipeline(OnError::Abort)?;
        Ok(LobWriter { pipeline, oid, position, buffer: Vec::with_capacity(PIECE as usize) })
    }
}

fn length_of(done: &Done) -> Result<Option<u64>, Error> {
    let row = done.rows.as_ref().and_then(|rows| rows.rows().next());
    let length: Option<i64> = row.map(|row| row.get(0)).transpose()?;
    Ok(length.and_then(|length| u64::try_from(length).ok()))
}

/// Writes one large object. Outside of a transaction all of it is kept, or nothing.
#[derive(Debug)]
pub struct LobWriter<'c> {
    pipeline: Pipeline<'c>,
    oid: Oid,
    position: u64,
    buffer: Vec<u8>,
}

impl LobWriter<'_> {
    /// Sends what is left, and waits until the server has all of it. Returns where the writing ended.
    ///
    /// # Errors
    /// The first error of a piece.
    pub fn finish(mut self) -> Result<u64, Error> {
        self.send()?;
        let position = self.position;
        self.pipeline.end()?.check()?;
        Ok(position)
    }

    fn send(&mut self) -> Result<(), Error> {
        if !self.buffer.is_empty() {
            let position = self.position as i64;
            let parameters: [&dyn Param; 3] = [&self.oid, &position, &self.buffer];
            self.pipeline.push(&Request::new(WRITE_OBJECT, &parameters), None)?;
            self.position += self.buffer.len() as u64;
            self.buffer.clear();
        }
        Ok(())
    }
}

impl Write for LobWriter<'_> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let room = PIECE as usize - self.buffer.len();
        let count = room.min(data.len());
        self.buffer.extend_from_slice(&data[..count]);
        if self.buffer.len() == PIECE as usize {
            self.send().map_err(io::Error::other)?;
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.send().map_err(io::Error::other)
    }
}
