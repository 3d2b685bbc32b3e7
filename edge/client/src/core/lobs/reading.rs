use std::collections::VecDeque;
use std::io::{Error as IoError, ErrorKind, SeekFrom};

use super::buffer::{Arrived, bytes_of, units_of};
use super::{Lob, LobPart, PIECE};
use crate::Error;
use crate::core::{Connection, Event, OperationId, RowSpan};

/// All that there is.
const ALL: u64 = u64::MAX;

/// The reading of one large value from where it was left, without its waiting. Pieces are read where they arrived, while
/// the next are on their way. As long as nothing [is here](Self::is_here):
///
/// ```text
///   begins? settle --> ask --> wait for an event --> take --(failed)--> settle
/// ```
#[derive(Debug)]
pub(crate) struct LobReading {
    /// Pieces that were asked for, oldest first.
    asked: VecDeque<OperationId>,
    /// Where the next piece begins that has not been asked for.
    next: u64,
    /// The question for the length.
    length: Option<OperationId>,
    /// The piece that follows what the buffer has had, once it has come.
    current: Option<Current>,
    /// Where reading goes on, where that is in a piece that is on its way.
    target: u64,
}

/// A piece that is read where it arrived.
#[derive(Debug, Clone, Copy)]
struct Current {
    row: RowSpan,
    bytes: usize,
    units: u64,
    is_text: bool,
    /// How many bytes were read.
    read: usize,
}

impl Current {
    fn of(row: RowSpan, piece: Arrived<'_>, before: u64) -> Self {
        let read = bytes_of(piece.bytes, before, piece.is_text);
        Self { row, bytes: piece.bytes.len(), units: piece.units, is_text: piece.is_text, read }
    }

    fn piece<'c>(&self, core: &'c Connection) -> Arrived<'c> {
        // It was looked at when it came.
        let bytes = core.row(self.row).value(0).ok().flatten().unwrap_or_default();
        Arrived { bytes, units: self.units, is_text: self.is_text }
    }
}

impl LobReading {
    pub(crate) fn new(lob: &Lob<'_>) -> Self {
        Self { asked: VecDeque::new(), next: lob.buffer.end(), length: None, current: None, target: 0 }
    }

    /// Whether [`bytes`](Self::bytes) has something, or nothing is left. Leaves what was read.
    pub(crate) fn is_here(&mut self, core: &Connection, lob: &mut Lob<'_>) -> bool {
        if !lob.buffer.bytes().is_empty() {
            return true;
        }
        if let Some(current) = &self.current {
            if current.read < current.bytes {
                return true;
            }
            lob.buffer.take_in(current.piece(core), current.read, PIECE);
            self.current = None;
        }
        lob.buffer.is_whole()
    }

    /// The next bytes, once they are here; none at the end.
    pub(crate) fn bytes<'b>(&self, core: &'b Connection, lob: &'b Lob<'_>) -> &'b [u8] {
        match &self.current {
            Some(current) => &current.piece(core).bytes[current.read..],
            None => lob.buffer.bytes(),
        }
    }

    /// Marks bytes as read.
    pub(crate) fn consume(&mut self, lob: &mut Lob<'_>, count: usize) {
        match &mut self.current {
            Some(current) => current.read = (current.read + count).min(current.bytes),
            None => lob.buffer.consume(count),
        }
    }

    /// Whether nothing is on its way, so that all that was asked before has to be answered first.
    pub(crate) fn begins(&self) -> bool {
        self.asked.is_empty()
    }

    /// Asks for more pieces, as far as the length is known to go and memory allows; for one in any case. Whether there is
    /// something to send.
    ///
    /// # Errors
    /// As [`Connection::submit`].
    pub(crate) fn ask(&mut self, core: &mut Connection, lob: &Lob<'_>) -> Result<bool, Error> {
        if self.begins() {
            self.next = lob.buffer.end();
        }
        let mut has_asked = false;
        for part in lob.buffer.more(&lob.source, core.limits().read_ahead, ALL, self.next) {
            let operation = lob.source.asking(part, |request| core.submit(request))?;
            match part {
                LobPart::Length => self.length = Some(operation),
                LobPart::Piece { at, count } => {
                    self.asked.push_back(operation);
                    self.next = at + u64::from(count);
                }
            }
            has_asked = true;
        }
        if has_asked {
            core.sync();
        }
        Ok(has_asked)
    }

    /// Takes an event of the connection.
    ///
    /// # Errors
    /// What a piece failed with, or a value that is neither bytes nor text: all that was asked for has to be answered
    /// then, and reading may begin again.
    pub(crate) fn take(&mut self, core: &Connection, lob: &mut Lob<'_>, event: Event) -> Result<(), Error> {
        let taken = self.try_take(core, lob, event);
        if taken.is_err() {
            self.asked.clear();
        }
        taken
    }

    fn try_take(&mut self, core: &Connection, lob: &mut Lob<'_>, event: Event) -> Result<(), Error> {
        match event {
            Event::Row { operation, row } if self.asked.front() == Some(&operation) => {
                let piece = Arrived::of(&core.row(row))?;
                let before = self.target.saturating_sub(lob.buffer.end());
                self.current = Some(Current::of(row, piece, before));
            }
            Event::Row { operation, row } if self.length == Some(operation) => {
                lob.buffer.measured(&core.row(row))?;
            }
            Event::Complete { operation, tag } if self.asked.front() == Some(&operation) => {
                self.asked.pop_front();
                if tag.rows() == 0 && !lob.buffer.is_whole() {
                    // There is no such row.
                    lob.buffer.take_in(Arrived::NOTHING, 0, PIECE);
                }
            }
            Event::Failed { error, .. } => return Err(error),
            _ => {}
        }
        Ok(())
    }

    /// Goes elsewhere; where that is. What is here or on its way is kept where it belongs to what follows, the rest is
    /// thrown away by the next call.
    ///
    /// # Errors
    /// A place before the beginning, and one that is counted from an end that is not known.
    pub(crate) fn seek(
        &mut self,
        core: &Connection,
        lob: &mut Lob<'_>,
        to: SeekFrom,
    ) -> Result<u64, IoError> {
        let from = self.position(core, lob);
        let position = match (to, lob.length()) {
            (SeekFrom::Start(position), _) => Some(position),
            (SeekFrom::Current(offset), _) => from.checked_add_signed(offset),
            (SeekFrom::End(offset), Some(length)) => length.checked_add_signed(offset),
            (SeekFrom::End(_), None) => {
                let problem = "the length is not known: Prefetch::Length fetches it";
                return Err(IoError::new(ErrorKind::Unsupported, problem));
            }
        };
        let nowhere = || IoError::new(ErrorKind::InvalidInput, "there is nothing before the beginning");
        let position = position.ok_or_else(nowhere)?;
        if position != from {
            self.go_to(core, lob, position);
        }
        Ok(position)
    }

    /// Where reading goes on, in bytes or characters of text.
    fn position(&self, core: &Connection, lob: &Lob<'_>) -> u64 {
        let read = self
            .current
            .map_or(0, |current| units_of(&current.piece(core).bytes[..current.read], current.is_text));
        self.target.max(lob.buffer.position() + read)
    }

    fn go_to(&mut self, core: &Connection, lob: &mut Lob<'_>, position: u64) {
        let start = lob.buffer.position();
        self.target = 0;
        if let (Some(current), Some(before)) = (&mut self.current, position.checked_sub(start)) {
            if before <= current.units {
                *current = Current::of(current.row, current.piece(core), before);
                return;
            }
        }
        if (start..self.next).contains(&position) && !self.begins() {
            // What comes before it is left as it comes.
            if let Some(current) = &mut self.current {
                current.read = current.bytes;
            }
            self.target = position;
            return;
        }
        self.asked.clear();
        (self.current, self.length) = (None, None);
        lob.buffer.seek(position);
    }

    /// Ends the reading and keeps what has come of a piece and was not read. What else is on its way is thrown away by the
    /// next call.
    pub(crate) fn keep(&mut self, core: &Connection, lob: &mut Lob<'_>) {
        if let Some(current) = self.current.take() {
            lob.buffer.take_in(current.piece(core), current.read, PIECE);
        }
        if self.target > lob.buffer.position() {
            lob.buffer.seek(self.target);
        }
    }
}
