use std::collections::VecDeque;
use std::io::{self, Read};

use super::{Client, LENGTH_OBJECT, Lob, LobSource, PIECE, piece};
use crate::core::{Event, Request, RowSpan};
use crate::{Error, OperationId};

/// Pieces that are asked for before anything is known about the length.
const FIRST_PIECES: usize = 4;

/// Reads one large value from where it was left. Pieces are read where they arrived, while the next are on their way.
#[derive(Debug)]
pub struct LobReader<'c, 'a> {
    client: &'c mut Client,
    lob: &'c mut Lob<'a>,
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

impl<'c, 'a> LobReader<'c, 'a> {
    pub(super) fn new(client: &'c mut Client, lob: &'c mut Lob<'a>) -> Self {
        let length = (None, lob.length);
        let next = lob.position;
        let asked = VecDeque::new();
        Self { client, lob, asked, next, length, window: FIRST_PIECES, current: None, read: 0 }
    }

    /// The next bytes, empty at the end. [`consume`](Self::consume) says how many were used.
    ///
    /// # Errors
    /// As [`Client::prefetch`].
    pub fn fill(&mut self) -> Result<&[u8], Error> {
        if self.lob.read < self.lob.buffer.len() {
            return Ok(self.lob.prefetched());
        }
        // What was read is freed before more is fetched.
        self.lob.buffer = Vec::new();
        self.lob.read = 0;
        while !self.has_bytes()? && !self.lob.is_over {
            self.step()?;
        }
        match self.current {
            Some(row) => Ok(&piece(&self.client.core.row(row))?.0[self.read..]),
            None => Ok(&[]),
        }
    }

    /// Marks bytes as read.
    pub fn consume(&mut self, count: usize) {
        match self.current {
            Some(_) => self.read += count,
            None => self.lob.read = (self.lob.read + count).min(self.lob.buffer.len()),
        }
    }

    /// Whether some of the piece that came is left; leaves a piece that was read.
    fn has_bytes(&mut self) -> Result<bool, Error> {
        let Some(row) = self.current else { return Ok(false) };
        let (bytes, units) = piece(&self.client.core.row(row))?;
        if self.read < bytes.len() {
            return Ok(true);
        }
        self.lob.came(units, PIECE, bytes.len());
        self.current = None;
        self.read = 0;
        Ok(false)
    }

    /// Takes the next event, with enough pieces on their way.
    fn step(&mut self) -> Result<(), Error> {
        self.ask()?;
        match self.client.event()? {
            Event::Row { operation, row } if self.asked.front() == Some(&operation) => {
                self.current = Some(row);
                // The first piece tells that there is something to read: from now on as much as memory allows.
                self.window = (self.client.core.limits().read_ahead / PIECE as usize).max(1);
            }
            Event::Row { operation, row } if self.length.0 == Some(operation) => {
                let length: i64 = self.client.core.row(row).get(0)?;
                self.length.1 = u64::try_from(length).ok();
            }
            Event::Complete { operation, tag } if self.asked.front() == Some(&operation) => {
                self.asked.pop_front();
                // There is no such row.
                self.lob.is_over |= tag.rows() == 0;
            }
            Event::Failed { error, .. } => {
                self.asked.clear();
                self.next = self.lob.position;
                let error = self.client.timed(error);
                self.client.settle()?;
                return Err(error);
            }
            _ => {}
        }
        Ok(())
    }

    /// Asks for more pieces, as far as the length is known to go and memory allows; for one in any case.
    fn ask(&mut self) -> Result<(), Error> {
        if self.asked.is_empty() {
            self.client.settle()?;
            self.next = self.lob.position;
            if let (LobSource::Object(oid), (None, None)) = (self.lob.source, self.length) {
                self.length.0 = Some(self.client.core.submit(&Request::new(LENGTH_OBJECT, &[&oid]))?);
            }
        }
        if self.asked.len() > self.window / 2 {
            return Ok(());
        }
        let is_useful = |next: u64| self.length.1.is_none_or(|length| next <= length);
        let before = self.asked.len();
        while self.asked.is_empty() || (self.asked.len() < self.window && is_useful(self.next)) {
            let core = &mut self.client.core;
            let operation = self.lob.asking(self.next, PIECE, |request| core.submit(request))?;
            self.asked.push_back(operation);
            self.next += u64::from(PIECE);
        }
        if self.asked.len() > before {
            self.client.core.sync();
            self.client.send_soon();
        }
        Ok(())
    }
}

impl Read for LobReader<'_, '_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let bytes = self.fill().map_err(io::Error::other)?;
        let count = bytes.len().min(into.len());
        into[..count].copy_from_slice(&bytes[..count]);
        self.consume(count);
        Ok(count)
    }
}

impl Drop for LobReader<'_, '_> {
    /// Keeps what has come of a piece and was not read. What else is on its way is thrown away by the next call.
    fn drop(&mut self) {
        let Some(row) = self.current else { return };
        if let Ok((bytes, units)) = piece(&self.client.core.row(row)) {
            let rest = bytes.get(self.read..).unwrap_or_default();
            self.lob.buffer = rest.to_vec();
            self.lob.read = 0;
            self.lob.came(units, PIECE, bytes.len());
        }
    }
}
