//! Rows that were prefetched and are not delivered: a bounded part in memory, the rest in a file.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use onetrip_ledger::Moment;
use onetrip_wire::pg::{FrameHeader, backend};

use crate::config::{Overflow, Spilled};
use crate::contract::LENGTH_MAX;

/// Bytes of one chunk: so much is taken out of a file at once, unless one row is longer.
const CHUNK_BYTES: usize = 64 * 1024;

/// Where a piece of a result ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// At its size; there may be more.
    Suspended,
    /// With the result.
    Complete,
    /// With this ErrorResponse.
    Failed(Vec<u8>),
}

/// Where an answer from memory ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stop {
    /// As the server would end it.
    At(End),
    /// Too early: the rest is on the server.
    Short,
    /// At the number of bytes that may be taken at once.
    Full,
}

/// Messages of a result, each whole.
#[derive(Debug)]
struct Chunk {
    bytes: Bytes,
    /// DataRows among them.
    rows: u64,
}

#[derive(Debug)]
enum Bytes {
    /// What is behind the position is not delivered.
    Memory(Vec<u8>, usize),
    File {
        at: u64,
        length: usize,
    },
}

/// What was read ahead of one result and is not delivered, in order.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    chunks: VecDeque<Chunk>,
    /// Rows of all chunks.
    rows: u64,
    bytes: usize,
    bytes_in_memory: usize,
    /// How the result ends, if what is kept goes on so far.
    end: Option<End>,
    /// Messages that come; a row may not be whole yet.
    coming: Vec<u8>,
    coming_rows: u64,
    /// The first part of a row that comes and is too long for memory: where it is in the file, and its length.
    coming_spilled: Option<(u64, usize)>,
    spilled: Option<Spilled>,
    /// When the last piece had come.
    pub(crate) filled_at: Option<Moment>,
}

impl Buffer {
    /// Whether nothing is kept.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows == 0 && self.end.is_none()
    }

    /// Whether the result's end is known.
    pub(crate) fn is_ended(&self) -> bool {
        self.end.is_some()
    }

    /// Rows that are kept.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Bytes that are kept.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes + self.coming.len() + self.coming_spilled.map_or(0, |(_, length)| length)
    }

    /// Those of them that are in memory.
    pub(crate) fn bytes_in_memory(&self) -> usize {
        self.bytes_in_memory + self.coming.len()
    }

    /// A message of the piece that is coming, or the first part of one.
    ///
    /// # Errors
    ///
    /// What was to go to a file has not.
    pub(crate) fn add(&mut self, bytes: &[u8], is_row: bool, room: &Room<'_>) -> io::Result<()> {
        // A row of which a part is in the file is a chunk of its own.
        if self.coming.len() + bytes.len() > CHUNK_BYTES || self.coming_spilled.is_some() {
            self.seal(room)?;
        }
        self.coming.extend_from_slice(bytes);
        self.coming_rows += u64::from(is_row);
        Ok(())
    }

    /// More of the message that came last.
    ///
    /// # Errors
    ///
    /// What was to go to a file has not.
    pub(crate) fn add_rest(&mut self, bytes: &[u8], room: &Room<'_>) -> io::Result<()> {
        self.coming.extend_from_slice(bytes);
        let is_too_long = self.bytes_in_memory + self.coming.len() > room.bytes.max(CHUNK_BYTES);
        if let Some(overflow) = room.overflow.filter(|_| is_too_long && !self.is_ended()) {
            let at = Self::file(&mut self.spilled, overflow)?.append(&self.coming)?;
            let length = self.coming.len();
            self.coming.clear();
            self.coming_spilled = match self.coming_spilled {
                Some((begin, before)) => Some((begin, before + length)),
                None => Some((at, length)),
            };
        }
        Ok(())
    }

    fn file<'a>(
        spilled: &'a mut Option<Spilled>,
        overflow: &Arc<dyn Overflow>,
    ) -> io::Result<&'a mut Spilled> {
        match spilled {
            Some(spilled) => Ok(spilled),
            none => Ok(none.insert(overflow.open()?)),
        }
    }

    /// The piece that was coming is there.
    ///
    /// # Errors
    ///
    /// What was to go to a file has not.
    pub(crate) fn end(&mut self, end: End, room: &Room<'_>) -> io::Result<()> {
        self.seal(room)?;
        if end != End::Suspended {
            self.end.get_or_insert(end);
        }
        Ok(())
    }

    fn seal(&mut self, room: &Room<'_>) -> io::Result<()> {
        let (rows, first) = (std::mem::take(&mut self.coming_rows), self.coming_spilled.take());
        let bytes = std::mem::take(&mut self.coming);
        if self.is_ended() || bytes.is_empty() && first.is_none() {
            return Ok(());
        }
        let length = bytes.len() + first.map_or(0, |(_, length)| length);
        let is_in_memory = first.is_none() && self.bytes_in_memory + length <= room.bytes;
        let bytes = match room.overflow.filter(|_| !is_in_memory) {
            Some(overflow) => {
                let at = Self::file(&mut self.spilled, overflow)?.append(&bytes)?;
                Bytes::File { at: first.map_or(at, |(begin, _)| begin), length }
            }
            None => {
                self.bytes_in_memory += length;
                Bytes::Memory(bytes, 0)
            }
        };
        self.bytes += length;
        self.rows += rows;
        self.chunks.push_back(Chunk { bytes, rows });
        Ok(())
    }

    /// Whether the whole answer to a request for so many rows, or for all, is kept.
    pub(crate) fn covers(&self, limit: Option<u64>) -> bool {
        limit.is_some_and(|limit| self.rows >= limit) || self.end == Some(End::Complete)
    }

    /// Takes up to `limit` rows, or all, and appends their messages to `out`, but stops when that has grown by `bytes_max`,
    /// which may be amid a long row. Returns how many rows have begun, and where the answer ends. The end of a result
    /// stays, to be told again.
    ///
    /// # Errors
    ///
    /// A file cannot be read.
    pub(crate) fn take(
        &mut self,
        limit: Option<u64>,
        bytes_max: usize,
        out: &mut Vec<u8>,
    ) -> io::Result<(u64, Stop)> {
        let (mut rows, before) = (0, out.len());
        loop {
            let left = limit.map(|limit| limit - rows);
            if out.len() - before >= bytes_max {
                return Ok((rows, Stop::Full));
            }
            // The rest of a row that has begun comes first.
            let has_begun = self.chunks.front().is_some_and(|chunk| chunk.rows == 0);
            if left == Some(0) && !has_begun {
                return Ok((rows, Stop::At(End::Suspended)));
            }
            if self.chunks.is_empty() {
                let stop = self.end.clone().map_or(Stop::Short, Stop::At);
                return Ok((rows, stop));
            }
            rows += self.load(out)?;
            rows += self.take_of_first(left, out);
        }
    }

    /// Brings the first chunk back from its file. A long one, which is one row, goes on to `out` part by part; returns how
    /// many rows of it have begun.
    fn load(&mut self, out: &mut Vec<u8>) -> io::Result<u64> {
        let (Some(Chunk { bytes, rows }), Some(spilled)) = (self.chunks.front_mut(), &mut self.spilled)
        else {
            return Ok(0);
        };
        let Bytes::File { at, length } = bytes else { return Ok(0) };
        let is_long = *length > 2 * CHUNK_BYTES && *rows <= 1;
        let part = spilled.read(*at, if is_long { CHUNK_BYTES } else { *length })?;
        if !is_long {
            self.bytes_in_memory += part.len();
            *bytes = Bytes::Memory(part, 0);
            return Ok(0);
        }
        out.extend_from_slice(&part);
        *at += part.len() as u64;
        *length -= part.len();
        self.bytes -= part.len();
        let begun = std::mem::take(rows);
        self.rows -= begun;
        Ok(begun)
    }

    /// Takes so many rows, or all, of the first chunk.
    fn take_of_first(&mut self, limit: Option<u64>, out: &mut Vec<u8>) -> u64 {
        let Some(Chunk { bytes: Bytes::Memory(bytes, taken), rows }) = self.chunks.front_mut() else {
            return 0;
        };
        let rest = &bytes[*taken..];
        let wanted = limit.map_or(*rows, |limit| limit.min(*rows));
        let length = if wanted == *rows { rest.len() } else { length_of(rest, wanted) };
        out.extend_from_slice(&rest[..length]);
        *taken += length;
        *rows -= wanted;
        let is_over = *rows == 0;
        self.rows -= wanted;
        self.bytes -= length;
        self.bytes_in_memory -= length;
        if is_over {
            self.chunks.pop_front();
        }
        if self.chunks.is_empty() {
            self.spilled = None;
        }
        wanted
    }

    /// Gives back what was taken and not delivered.
    pub(crate) fn put_back(&mut self, bytes: Vec<u8>, rows: u64) {
        if rows > 0 {
            self.bytes += bytes.len();
            self.bytes_in_memory += bytes.len();
            self.rows += rows;
            self.chunks.push_front(Chunk { bytes: Bytes::Memory(bytes, 0), rows });
        }
    }
}

/// Where more may go.
#[derive(Debug)]
pub(crate) struct Room<'a> {
    /// Bytes that the buffer may have in memory.
    pub(crate) bytes: usize,
    /// Where the rest goes; without, that stays in memory.
    pub(crate) overflow: Option<&'a Arc<dyn Overflow>>,
}

/// Length of the messages up to and with this many rows.
fn length_of(messages: &[u8], rows: u64) -> usize {
    let (mut length, mut left) = (0, rows);
    while left > 0 {
        let Some(Ok(header)) = FrameHeader::peek(&messages[length..], LENGTH_MAX) else { break };
        length = (length + header.frame_len()).min(messages.len());
        left -= u64::from(header.tag == backend::DATA_ROW);
    }
    length
}

#[cfg(test)]
mod tests {
    use onetrip_wire::pg::frame;

    use super::*;

    const ROOM: Room<'_> = Room { bytes: usize::MAX, overflow: None };

    fn row(value: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        frame(&mut out, backend::DATA_ROW, |out| out.extend_from_slice(value));
        out
    }

    fn buffer(pieces: &[(&[&[u8]], End)]) -> Buffer {
        let mut buffer = Buffer::default();
        for (rows, end) in pieces {
            rows.iter().for_each(|value| buffer.add(&row(value), true, &ROOM).unwrap());
            buffer.end(end.clone(), &ROOM).unwrap();
        }
        buffer
    }

    fn taken(buffer: &mut Buffer, limit: u64) -> (String, Stop) {
        let mut out = Vec::new();
        let limit = Some(limit).filter(|limit| *limit > 0);
        let (rows, stop) = buffer.take(limit, usize::MAX, &mut out).unwrap();
        let values: String = out.iter().copied().filter(u8::is_ascii_lowercase).map(char::from).collect();
        assert_eq!(values.len() as u64, rows);
        (values, stop)
    }

    #[test]
    fn rows_are_cut_as_they_are_asked_for_and_the_end_is_told_again() {
        let pieces: [(&[&[u8]], End); 3] =
            [(&[b"a", b"b"], End::Suspended), (&[b"c", b"d"], End::Suspended), (&[b"e"], End::Complete)];
        let mut one = buffer(&pieces);
        assert!(one.covers(Some(5)) && one.covers(Some(9)) && one.covers(None) && one.is_ended());
        assert_eq!(taken(&mut one, 3), ("abc".into(), Stop::At(End::Suspended)));
        assert_eq!(taken(&mut one, 2), ("de".into(), Stop::At(End::Suspended)), "the server does not look");
        assert_eq!(taken(&mut one, 2), (String::new(), Stop::At(End::Complete)));
        assert_eq!(taken(&mut one, 0), (String::new(), Stop::At(End::Complete)));
        assert_eq!((one.bytes(), one.bytes_in_memory()), (0, 0));
        assert_eq!(taken(&mut buffer(&pieces), 0), ("abcde".into(), Stop::At(End::Complete)));
        let mut short = buffer(&pieces[..2]);
        assert!(short.covers(Some(4)) && !short.covers(Some(5)) && !short.covers(None));
        assert_eq!(taken(&mut short, 5), ("abcd".into(), Stop::Short));
        assert!(short.is_empty());
    }

    #[test]
    fn an_error_comes_behind_the_rows_before_it() {
        let failed = || End::Failed(b"E".to_vec());
        let mut one = buffer(&[(&[b"a"], End::Suspended), (&[b"b"], failed()), (&[b"c"], End::Complete)]);
        assert_eq!(one.rows(), 2, "what comes behind an error is another one");
        assert!(one.covers(Some(2)) && !one.covers(Some(3)));
        assert_eq!(taken(&mut one, 2), ("ab".into(), Stop::At(End::Suspended)));
        assert_eq!(taken(&mut one, 2), (String::new(), Stop::At(failed())));
        one.put_back(row(b"z"), 1);
        assert_eq!(taken(&mut one, 1), ("z".into(), Stop::At(End::Suspended)));
    }

    #[test]
    fn what_is_too_much_for_memory_comes_back_from_a_file_in_order_and_bit_by_bit() {
        let overflow: Arc<dyn Overflow> = Arc::new(crate::config::Memory);
        let room = Room { bytes: 3 * CHUNK_BYTES, overflow: Some(&overflow) };
        let (mut one, mut expected) = (Buffer::default(), Vec::new());
        for number in 0..1000_u32 {
            let row = row(&[&number.to_be_bytes()[..], &[b'-'; 5000]].concat());
            let (first, rest) = row.split_at(3000);
            one.add(first, true, &room).unwrap();
            one.add_rest(rest, &room).unwrap();
            expected.extend(row);
            if number % 100 == 99 {
                one.end(if number == 999 { End::Complete } else { End::Suspended }, &room).unwrap();
            }
        }
        assert!(one.bytes() > 4_900_000 && one.bytes_in_memory() <= room.bytes + CHUNK_BYTES);
        let (mut out, mut rows) = (Vec::new(), 0);
        loop {
            let before = out.len();
            let (some, stop) = one.take(Some(1000 - rows), 200_000, &mut out).unwrap();
            rows += some;
            assert!(out.len() - before <= 200_000 + 2 * CHUNK_BYTES);
            match stop {
                Stop::Full => {}
                stop => break assert_eq!((rows, stop), (1000, Stop::At(End::Suspended))),
            }
        }
        assert!(out == expected && one.bytes() == 0 && one.spilled.is_none());
    }
}
