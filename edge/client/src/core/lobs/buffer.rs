use std::collections::VecDeque;
use std::ops::Range;

use onetrip_wire::Prefetch;
use postgres_types::Type;

use super::prefetch::first_part;
use super::{LobPart, LobSource, PIECE};
use crate::{Columns, Done, Error, Row};

/// Bytes or characters of a piece.
const PIECE_UNITS: u64 = PIECE as u64;

/// Pieces that are asked for together before anything has come.
const FIRST_PIECES: u64 = 4;

/// Pieces that are fetched together for a reader that wants a little at a time.
const AHEAD_PIECES: u64 = 16;

/// How much may be on its way for each piece that has come, where nobody knows how long the value is: what is asked for
/// behind its end is asked in vain.
const GROWTH: u64 = 3;

/// Most bytes of a large object: 4 TiB since PostgreSQL 9.3. Nothing is asked for behind them.
const LENGTH_MAX: u64 = 1 << 42;

/// Longest character in bytes.
const CHARACTER_BYTES: usize = 4;

/// What is known of a large value, what has come of it and was not read, and what to ask for next; no connection, and
/// nothing that waits. Positions and counts are bytes, or characters of text, and positions begin at zero.
///
/// ```text
///   first, more --> LobSource::asking --> (the connection) --> came --> take
///                                                                   seek
/// ```
#[derive(Debug, Default)]
pub struct LobBuffer {
    /// Whether it is counted in characters; `None` before anything came.
    is_text: Option<bool>,
    length: Option<u64>,
    pieces: VecDeque<Piece>,
    /// What is left in `pieces`.
    here: u64,
    /// Where that ends.
    end: u64,
    /// How much has come since reading began, or went on elsewhere.
    run: u64,
    is_whole: bool,
}

/// A part that came and was not read to its end.
#[derive(Debug)]
struct Piece {
    bytes: Vec<u8>,
    read: usize,
    /// What is left.
    units: u64,
}

/// One piece as it stands in a row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrived<'r> {
    pub(super) bytes: &'r [u8],
    pub(super) is_text: bool,
    pub(super) units: u64,
}

/// Parts of one value to ask for together.
#[derive(Debug, Clone)]
pub struct LobParts {
    length: bool,
    start: u64,
    pieces: Range<u64>,
}

impl Iterator for LobParts {
    type Item = LobPart;

    fn next(&mut self) -> Option<LobPart> {
        if std::mem::take(&mut self.length) {
            return Some(LobPart::Length);
        }
        let piece = self.pieces.next()?;
        Some(LobPart::Piece { at: self.start + piece * PIECE_UNITS, count: PIECE })
    }
}

impl LobBuffer {
    /// How long the value is, where that is known.
    pub fn length(&self) -> Option<u64> {
        self.length
    }

    /// Whether the value is text, where that is known.
    pub fn is_text(&self) -> Option<bool> {
        self.is_text
    }

    /// Whether all that is left is here.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Bytes of memory that it takes.
    pub fn memory(&self) -> usize {
        self.pieces.iter().map(|piece| piece.bytes.capacity()).sum()
    }

    /// Where reading goes on.
    pub fn position(&self) -> u64 {
        self.end - self.here
    }

    /// Where what has come ends, and the next piece begins.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// What comes next, as far as it stands together.
    pub fn bytes(&self) -> &[u8] {
        self.pieces.front().map_or(&[], |piece| &piece.bytes[piece.read..])
    }

    /// What to fetch before anybody reads, where so many values share `room` bytes of memory.
    pub fn first(
        &self,
        source: &LobSource<'_>,
        prefetch: Prefetch,
        values: usize,
        room: usize,
    ) -> Option<LobPart> {
        match first_part(prefetch, values, room) {
            0 if prefetch == Prefetch::Length && source.has_length() => Some(LobPart::Length),
            0 => None,
            count => Some(LobPart::Piece { at: 0, count }),
        }
    }

    /// What to ask for, so that `most` will be here or all that is left, within `room` bytes of memory. What lies before
    /// `asked` is on its way already: it is [`end`](Self::end) where nothing is.
    pub fn more(&self, source: &LobSource<'_>, room: usize, most: u64, asked: u64) -> LobParts {
        let count = self.pieces_to_ask(source, room, most, asked);
        let is_long = most - self.here.min(most) > PIECE_UNITS || self.end > 0;
        let wants_length = self.length.is_none() && source.has_length() && is_long;
        LobParts { length: count > 0 && asked == self.end && wants_length, start: asked, pieces: 0..count }
    }

    fn pieces_to_ask(&self, source: &LobSource<'_>, room: usize, most: u64, asked: u64) -> u64 {
        if self.is_whole || self.here >= most {
            return 0;
        }
        let is_bytes = matches!(source, LobSource::Object(_)) || self.is_text == Some(false);
        let unit_bytes = if is_bytes { 1 } else { CHARACTER_BYTES };
        let room = (room / (PIECE as usize * unit_bytes)).max(1) as u64;
        let missing = (most - self.here).div_ceil(PIECE_UNITS);
        let grown = GROWTH * self.run.div_ceil(PIECE_UNITS);
        let ahead = grown.min(AHEAD_PIECES);
        let wanted = match self.length {
            Some(length) => missing.max(ahead).min(length.saturating_sub(self.end).div_ceil(PIECE_UNITS)),
            None => missing.min(grown.max(FIRST_PIECES)).max(ahead),
        };
        let wanted = wanted.clamp(1, room);
        let on_way = asked.saturating_sub(self.end).div_ceil(PIECE_UNITS);
        // Half of them at once, so that a flight carries many.
        if on_way > wanted / 2 { 0 } else { wanted - on_way }
    }

    /// A part was answered. What lies elsewhere by now is not taken.
    ///
    /// # Errors
    /// Values that are none of bytes, text and lengths.
    pub fn came(&mut self, part: LobPart, done: &Done) -> Result<(), Error> {
        let rows = done.rows.as_deref();
        let row = rows.and_then(|rows| rows.rows().next());
        match (part, row) {
            (LobPart::Length, Some(row)) => self.measured(&row),
            (LobPart::Piece { at, count }, row) if at == self.end && !self.is_whole => {
                let is_text = rows.is_some_and(|rows| is_text(rows.columns()));
                let nothing = Arrived { is_text, ..Arrived::NOTHING };
                self.take_in(row.as_ref().map_or(Ok(nothing), Arrived::of)?, 0, count);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The length came.
    ///
    /// # Errors
    /// What is no integer.
    pub(super) fn measured(&mut self, row: &Row<'_>) -> Result<(), Error> {
        let length = match *row.value(0)?.unwrap_or_default() {
            [] => None,
            [a, b, c, d] => Some(i32::from_be_bytes([a, b, c, d]).into()),
            [a, b, c, d, e, f, g, h] => Some(i64::from_be_bytes([a, b, c, d, e, f, g, h])),
            _ => return Err(Error::Protocol("a length is no integer")),
        };
        let length = length.and_then(|length| u64::try_from(length).ok());
        self.length = self.length.or(length);
        self.is_whole |= self.length.is_some_and(|length| self.end >= length);
        Ok(())
    }

    /// Takes the piece in that follows what has come, of which `read` bytes were read where it arrived.
    pub(super) fn take_in(&mut self, piece: Arrived<'_>, read: usize, asked: u32) {
        let is_known = piece.units > 0 || self.run > 0 || self.end == 0;
        self.is_text = Some(piece.is_text);
        self.end += piece.units;
        self.run += piece.units;
        if piece.units < u64::from(asked) {
            self.is_whole = true;
            // What is asked for behind the end has nothing, and does not say where the end is.
            self.length = if is_known { Some(self.end) } else { self.length };
        }
        self.is_whole |= self.length.is_some_and(|length| self.end >= length);
        let rest = &piece.bytes[read..];
        if !rest.is_empty() {
            let units = piece.units - units_of(&piece.bytes[..read], piece.is_text);
            self.here += units;
            self.pieces.push_back(Piece { bytes: rest.to_vec(), read: 0, units });
        }
    }

    /// Takes at most so many of what is here; how many that are. What was taken is freed.
    pub fn take(&mut self, most: u64, into: &mut Vec<u8>) -> u64 {
        let before = self.here;
        while let Some(piece) = self.pieces.front() {
            let wanted = most - (before - self.here);
            if wanted == 0 {
                break;
            }
            let rest = &piece.bytes[piece.read..];
            let count = bytes_of(rest, wanted, self.is_text == Some(true));
            into.extend_from_slice(&rest[..count]);
            self.consume(count);
        }
        before - self.here
    }

    /// Marks so many of [`bytes`](Self::bytes) as read.
    pub fn consume(&mut self, count: usize) {
        let Some(piece) = self.pieces.front_mut() else { return };
        let rest = &piece.bytes[piece.read..];
        let count = count.min(rest.len());
        let units = units_of(&rest[..count], self.is_text == Some(true));
        piece.read += count;
        piece.units -= units;
        self.here -= units;
        if piece.read == piece.bytes.len() {
            self.pieces.pop_front();
        }
    }

    /// Goes elsewhere. What is here of it stays, what is before it is freed.
    pub fn seek(&mut self, position: u64) {
        let start = self.position();
        if (start..=self.end).contains(&position) {
            self.take(position - start, &mut Vec::new());
            return;
        }
        self.pieces.clear();
        (self.here, self.end, self.run) = (0, position, 0);
        self.is_whole = position >= self.length.unwrap_or(LENGTH_MAX);
    }
}

impl<'r> Arrived<'r> {
    /// Of a row that does not exist.
    pub(super) const NOTHING: Self = Self { bytes: &[], is_text: false, units: 0 };

    /// The only value of a row; NULL is nothing.
    ///
    /// # Errors
    /// What is neither bytes nor text.
    pub(super) fn of(row: &Row<'r>) -> Result<Self, Error> {
        let is_text = is_text(row.columns());
        let bytes = if is_text {
            row.text(0)?.unwrap_or_default().as_bytes()
        } else {
            row.value(0)?.unwrap_or_default()
        };
        Ok(Self { bytes, is_text, units: units_of(bytes, is_text) })
    }
}

fn is_text(columns: &Columns) -> bool {
    columns.first().is_some_and(|column| column.ty != Type::BYTEA)
}

fn is_first_byte(byte: &u8) -> bool {
    byte & 0xC0 != 0x80
}

/// How many bytes or characters there are.
pub(super) fn units_of(bytes: &[u8], is_text: bool) -> u64 {
    if is_text { bytes.iter().filter(|byte| is_first_byte(byte)).count() as u64 } else { bytes.len() as u64 }
}

/// How many bytes so many bytes or characters are; at most all. Where a character was read in part, the rest of it
/// counts for none.
pub(super) fn bytes_of(bytes: &[u8], count: u64, is_text: bool) -> usize {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if !is_text {
        return count.min(bytes.len());
    }
    let mut starts = bytes.iter().enumerate().filter(|(_, byte)| is_first_byte(byte));
    starts.nth(count).map_or(bytes.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OBJECT: LobSource<'_> = LobSource::Object(1);
    const VALUE: LobSource<'_> = LobSource::Value { read: "", key: &1 };
    const ROOM: usize = 8 << 20;

    /// Whether the length is asked for, and how many pieces from where.
    fn plan(buffer: &LobBuffer, source: &LobSource<'_>, most: u64) -> (bool, usize, u64) {
        let parts = buffer.more(source, ROOM, most, buffer.end());
        let start = parts.start;
        let parts: Vec<LobPart> = parts.collect();
        let has_length = parts.contains(&LobPart::Length);
        (has_length, parts.len() - usize::from(has_length), start)
    }

    fn come(buffer: &mut LobBuffer, bytes: &[u8], is_text: bool) {
        let units = units_of(bytes, is_text);
        buffer.take_in(Arrived { bytes, is_text, units }, 0, PIECE);
    }

    fn taken(buffer: &mut LobBuffer, most: u64) -> Vec<u8> {
        let mut taken = Vec::new();
        buffer.take(most, &mut taken);
        taken
    }

    #[test]
    fn more_is_asked_for_the_more_has_come_and_never_behind_a_known_end() {
        let piece = vec![7; PIECE as usize];
        let mut buffer = LobBuffer::default();
        assert_eq!(plan(&buffer, &OBJECT, 100), (false, 1, 0), "a little needs no length");
        assert_eq!(plan(&buffer, &OBJECT, u64::MAX), (true, 4, 0));
        assert_eq!(plan(&buffer, &VALUE, u64::MAX), (false, 4, 0), "what has none");
        let mut here = 0;
        for (little, all) in [(3, 4), (6, 6), (9, 9)] {
            come(&mut buffer, &piece, false);
            here += PIECE_UNITS;
            assert_eq!(plan(&buffer, &VALUE, here + 1), (false, little, here));
            assert_eq!(plan(&buffer, &VALUE, u64::MAX), (false, all, here));
        }
        assert_eq!(plan(&buffer, &VALUE, here), (false, 0, here), "it is here");
        buffer.length = Some(here + 2 * PIECE_UNITS + 1);
        assert_eq!(plan(&buffer, &OBJECT, u64::MAX), (false, 3, here));
        let on_way = buffer.more(&OBJECT, ROOM, u64::MAX, here + 2 * PIECE_UNITS);
        assert_eq!(on_way.count(), 0, "not before half of them have come");
        assert_eq!(buffer.more(&OBJECT, ROOM, u64::MAX, here + PIECE_UNITS).count(), 2);
        assert_eq!(buffer.more(&OBJECT, 1, u64::MAX, here).count(), 1, "one has room in any case");
        buffer.seek(1);
        buffer.seek(here + 5);
        assert_eq!(plan(&buffer, &OBJECT, 1), (false, 1, here + 5), "elsewhere it begins anew");
    }

    #[test]
    fn the_end_is_where_a_piece_is_short() {
        let mut buffer = LobBuffer::default();
        buffer.seek(100);
        come(&mut buffer, b"", false);
        assert_eq!((buffer.length(), buffer.is_whole()), (None, true), "somewhere behind the end");
        buffer.seek(10);
        assert!(!buffer.is_whole());
        come(&mut buffer, b"abc", false);
        assert_eq!((buffer.length(), buffer.is_whole(), buffer.position()), (Some(13), true, 10));
        buffer.seek(13);
        assert_eq!((buffer.is_whole(), buffer.bytes()), (true, &b""[..]));
        let mut far = LobBuffer::default();
        far.seek(u64::MAX);
        assert_eq!((plan(&far, &OBJECT, 1).1, far.position()), (0, u64::MAX), "nothing is that long");
        let mut missing = LobBuffer::default();
        missing.take_in(Arrived::NOTHING, 0, PIECE);
        assert_eq!((missing.length(), missing.is_whole()), (Some(0), true));
    }

    #[test]
    fn text_is_counted_in_characters_and_may_be_read_by_bytes() {
        let mut buffer = LobBuffer::default();
        come(&mut buffer, "aé世🙂z".as_bytes(), true);
        assert_eq!((buffer.length(), buffer.memory() > 0), (Some(5), true));
        assert_eq!(taken(&mut buffer, 2), "aé".as_bytes());
        buffer.consume(1);
        assert_eq!(buffer.position(), 3, "a character that was begun");
        assert_eq!(taken(&mut buffer, 1), [&"世".as_bytes()[1..], "🙂".as_bytes()].concat());
        assert_eq!((taken(&mut buffer, 9), buffer.position(), buffer.memory()), (b"z".to_vec(), 5, 0));
        let mut buffer = LobBuffer::default();
        let piece = Arrived { bytes: "éa".as_bytes(), is_text: true, units: 2 };
        buffer.take_in(piece, 2, 2);
        assert_eq!((buffer.bytes(), buffer.position(), buffer.end()), (&b"a"[..], 1, 2));
    }
}
