//! Large values, read and written in pieces.

use std::io::{self, SeekFrom};

use super::{Client, Pipeline};
use crate::core::{CREATE_OBJECT, FirstParts, Lob, LobReading, LobSource, LobWriting, OnError, Prefetch};
use crate::{Error, Oid};

impl Client {
    /// Fetches what is wanted of many large values, in one trip. Each says for itself (as a column would) or leaves it
    /// to `prefetch` (as a statement would), and that to the connection's default; the narrower wins.
    ///
    /// # Errors
    /// A large object that does not exist, and whatever a statement of [`LobSource::Value`] fails with.
    pub async fn prefetch<'a>(
        &mut self,
        sources: &[(LobSource<'a>, Option<Prefetch>)],
        prefetch: Option<Prefetch>,
    ) -> Result<Vec<Lob<'a>>, Error> {
        let mut parts = FirstParts::new(&self.core, sources, prefetch);
        let mut pipeline = self.pipeline(OnError::Abort).await?;
        while parts.push_next(&mut pipeline.client.core)? {
            pipeline.send().await?;
        }
        parts.take(pipeline.end().await?)
    }

    /// Reads a large value: what was fetched before from memory, the rest in pieces, of which more are on their way
    /// while one is read.
    pub fn read_lob<'c, 'a>(&'c mut self, lob: &'c mut Lob<'a>) -> LobReader<'c, 'a> {
        LobReader { client: self, reading: LobReading::new(lob), lob }
    }

    /// Makes an empty large object.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub async fn create_large_object(&mut self) -> Result<Oid, Error> {
        let mut rows = self.query(CREATE_OBJECT, &[]).await?;
        let row = rows.next_row().await?;
        row.ok_or(Error::Protocol("it returns no row where there must be one"))?.get(0)
    }

    /// Writes a large object from a position on. Pieces travel without waiting for each other.
    ///
    /// # Errors
    /// As [`pipeline`](Self::pipeline).
    pub async fn write_large_object(&mut self, oid: Oid, position: u64) -> Result<LobWriter<'_>, Error> {
        let pipeline = self.pipeline(OnError::Abort).await?;
        Ok(LobWriter { pipeline, writing: LobWriting::new(oid, position) })
    }
}

/// Reads one large value from where it was left. Pieces are read where they arrived, while the next are on their way.
/// A future that is dropped loses nothing.
#[derive(Debug)]
pub struct LobReader<'c, 'a> {
    client: &'c mut Client,
    lob: &'c mut Lob<'a>,
    reading: LobReading,
}

impl LobReader<'_, '_> {
    /// The next bytes, empty at the end. [`consume`](Self::consume) says how many were used.
    ///
    /// # Errors
    /// As [`Client::prefetch`].
    pub async fn fill(&mut self) -> Result<&[u8], Error> {
        while !self.reading.is_here(&self.client.core, self.lob) {
            if self.reading.begins() {
                self.client.settle().await?;
            }
            if self.reading.ask(&mut self.client.core, self.lob)? {
                self.client.send_soon();
            }
            let event = self.client.event().await?;
            if let Err(error) = self.reading.take(&self.client.core, self.lob, event) {
                self.client.settle().await?;
                return Err(error.or_timed_out());
            }
        }
        Ok(self.reading.bytes(&self.client.core, self.lob))
    }

    /// Marks bytes as read.
    pub fn consume(&mut self, count: usize) {
        self.reading.consume(self.lob, count);
    }

    /// Goes elsewhere, without a trip; where that is, counted from zero. Positions are bytes, of text characters. From
    /// the end only where the [length](Lob::length) is known.
    ///
    /// # Errors
    /// A place before the beginning, and one that is counted from an end that is not known.
    pub fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.reading.seek(&self.client.core, self.lob, to)
    }

    // Awaiting only: std::io::Read has it.
    /// Appends all that is left; returns how many bytes that were. What was read before a failure is kept.
    ///
    /// # Errors
    /// As [`fill`](Self::fill).
    pub async fn read_to_end(&mut self, into: &mut Vec<u8>) -> Result<usize, Error> {
        let before = into.len();
        loop {
            let bytes = self.fill().await?;
            let count = bytes.len();
            if count == 0 {
                return Ok(into.len() - before);
            }
            into.extend_from_slice(bytes);
            self.consume(count);
        }
    }
}

impl Drop for LobReader<'_, '_> {
    fn drop(&mut self) {
        self.reading.keep(&self.client.core, self.lob);
    }
}

/// Writes one large object. Outside of a transaction all of it is kept, or nothing; dropped without
/// [`finish`](Self::finish), what was sent is kept.
#[derive(Debug)]
pub struct LobWriter<'c> {
    pipeline: Pipeline<'c>,
    writing: LobWriting,
}

impl LobWriter<'_> {
    // Awaiting only: std::io::Write has it.
    /// Adds data. What fails it shows here or at the end. A future of it that is dropped may have added a part.
    ///
    /// # Errors
    /// A connection that is lost.
    pub async fn write(&mut self, mut data: &[u8]) -> Result<(), Error> {
        while !data.is_empty() {
            let count = self.add(data).await?;
            data = &data[count..];
        }
        Ok(())
    }

    /// Takes as much as one piece has room for, and sends the piece once it is full. Returns how much.
    pub(super) async fn add(&mut self, data: &[u8]) -> Result<usize, Error> {
        let count = self.writing.fill(data);
        if self.writing.is_full() {
            self.send().await?;
        }
        Ok(count)
    }

    /// Sends what is left, and waits until the server has all of it. Returns where the writing ended.
    ///
    /// # Errors
    /// The first error of a piece.
    pub async fn finish(mut self) -> Result<u64, Error> {
        self.send().await?;
        self.pipeline.end().await?.check()?;
        Ok(self.writing.position())
    }

    pub(super) async fn send(&mut self) -> Result<(), Error> {
        self.writing.push(&mut self.pipeline.client.core)?;
        self.pipeline.send().await
    }
}
