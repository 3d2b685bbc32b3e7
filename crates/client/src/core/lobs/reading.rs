use std::collections::VecDeque;

use super::{LENGTH_OBJECT, Lob, LobSource, PIECE, piece};
use crate::Error;
use crate::core::{Connection, Event, OperationId, Request, RowSpan};

/// Pieces that are asked for before anything is known about the length.
const FIRST_PIECES: usize = 4;

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
    /// Where the next piece begins that has not been asked for, counted from one.
    next: u64,
    /// The question for the length, and what it was answered.
    length: (Option<OperationId>, Option<u64>),
    /// How many pieces may be on their way.
    window: usize,
    /// The oldest piece, once it has come, and how much of it was read.
    current: Option<RowSpan>,
    read: usize,
}

impl LobReading {
    pub(crate) fn new(lob: &Lob<'_>) -> Self {
        Self {
            asked: VecDeque::new(),
            next: lob.position,
            length: (None, lob.length),
            window: FIRST_PIECES,
            current: None,
            read: 0,
        }
    }

    /// Whether [`bytes`](Self::bytes) has something, or nothing is left. Leaves what was read.
    ///
    /// # Errors
    /// A value that is neither bytes nor text.
    pub(crate) fn is_here(&mut self, core: &Connection, lob: &mut Lob<'_>) -> Result<bool, Error> {
        if lob.read < lob.buffer.len() {
            return Ok(true);
        }
        // What was read is freed before more is fetched.
        lob.buffer = Vec::new();
        lob.read = 0;
        if let Some(row) = self.current {
            let (bytes, units) = piece(&core.row(row))?;
            if self.read < bytes.len() {
                return Ok(true);
            }
            lob.came(units, PIECE, bytes.len());
            self.current = None;
            self.read = 0;
        }
        Ok(lob.is_over)
    }

    /// The next bytes, once they are here; none at the end.
    ///
    /// # Errors
    /// As [`is_here`](Self::is_here).
    pub(crate) fn bytes<'b>(&self, core: &'b Connection, lob: &'b Lob<'_>) -> Result<&'b [u8], Error> {
        match self.current {
            Some(row) => Ok(&piece(&core.row(row))?.0[self.read..]),
            None => Ok(lob.prefetched()),
        }
    }

    /// Marks bytes as read.
    pub(crate) fn consume(&mut self, lob: &mut Lob<'_>, count: usize) {
        match self.current {
            Some(_) => self.read += count,
            None => lob.read = (lob.read + count).min(lob.buffer.len()),
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
            self.next = lob.position;
            if let (LobSource::Object(oid), (None, None)) = (lob.source, self.length) {
                self.length.0 = Some(core.submit(&Request::new(LENGTH_OBJECT, &[&oid]))?);
            }
        }
        if self.asked.len() > self.window / 2 {
            return Ok(false);
        }
        let is_useful = |next: u64| self.length.1.is_none_or(|length| next <= length);
        let before = self.asked.len();
        while self.asked.is_empty() || (self.asked.len() < self.window && is_useful(self.next)) {
            let operation = lob.asking(self.next, PIECE, |request| core.submit(request))?;
            self.asked.push_back(operation);
            self.next += u64::from(PIECE);
        }
        let has_asked = self.asked.len() > before;
        if has_asked {
            core.sync();
        }
        Ok(has_asked)
    }

    /// Takes an event of the connection.
    ///
    /// # Errors
    /// What a piece failed with: all that was asked for has to be answered then, and reading may begin again.
    pub(crate) fn take(&mut self, core: &Connection, lob: &mut Lob<'_>, event: Event) -> Result<(), Error> {
        match event {
            Event::Row { operation, row } if self.asked.front() == Some(&operation) => {
                self.current = Some(row);
                // The first piece tells that there is something to read: from now on as much as memory allows.
                self.window = (core.limits().read_ahead / PIECE as usize).max(1);
            }
            Event::Row { operation, row } if self.length.0 == Some(operation) => {
                let length: i64 = core.row(row).get(0)?;
                self.length.1 = u64::try_from(length).ok();
            }
            Event::Complete { operation, tag } if self.asked.front() == Some(&operation) => {
                self.asked.pop_front();
                // There is no such row.
                lob.is_over |= tag.rows() == 0;
            }
            Event::Failed { error, .. } => {
                self.asked.clear();
                return Err(error);
            }
            _ => {}
        }
        Ok(())
    }

    /// Ends the reading and keeps what has come of a piece and was not read. What else is on its way is thrown away by the
    /// next call.
    pub(crate) fn keep(&mut self, core: &Connection, lob: &mut Lob<'_>) {
        let Some(row) = self.current.take() else { return };
        if let Ok((bytes, units)) = piece(&core.row(row)) {
            let rest = bytes.get(self.read..).unwrap_or_default();
            lob.buffer = rest.to_vec();
            lob.read = 0;
            lob.came(units, PIECE, bytes.len());
        }
    }
}
