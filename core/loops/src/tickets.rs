//! What became of each statement and guess.

use std::collections::VecDeque;

use crate::frame::FrameId;
use crate::value::{Template, Ticket};

/// Statements and guesses that are remembered: more than can be outstanding.
const TICKETS_MAX: usize = 4096;

/// How far a statement has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// The program's own.
    Program,
    /// A guess without an answer.
    Guessed,
    /// A guess whose answer waits.
    Ready,
    /// A guess that the program asked for.
    Served,
    /// A guess that was passed by, flushed, or failed.
    Wasted,
}

/// The row that a statement's values came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) of_loop: usize,
    /// Tells the loop from the one that used its slot before.
    pub(crate) loop_serial: u64,
    pub(crate) stream: u16,
    pub(crate) frame: FrameId,
    pub(crate) row: u32,
}

/// A statement or guess.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) template: Template,
    pub(crate) place: Option<Place>,
    /// Its rows, if they are kept.
    pub(crate) result: Option<FrameId>,
    pub(crate) state: State,
    /// Whether the server has answered.
    pub(crate) is_answered: bool,
    /// A guess at a row that was itself only guessed.
    pub(crate) is_second: bool,
}

/// The youngest statements and guesses, by ticket.
#[derive(Debug)]
pub(crate) struct Tickets {
    first: u64,
    entries: VecDeque<Entry>,
}

impl Default for Tickets {
    fn default() -> Self {
        Self { first: 1, entries: VecDeque::new() }
    }
}

impl Tickets {
    pub(crate) fn push(&mut self, entry: Entry) -> Ticket {
        self.entries.push_back(entry);
        Ticket(self.first + self.entries.len() as u64 - 1)
    }

    /// The oldest ticket, if there are too many.
    pub(crate) fn oldest_beyond(&self) -> Option<Ticket> {
        (self.entries.len() > TICKETS_MAX).then_some(Ticket(self.first))
    }

    pub(crate) fn forget_oldest(&mut self) {
        if self.entries.pop_front().is_some() {
            self.first += 1;
        }
    }

    pub(crate) fn get(&self, ticket: Ticket) -> Option<&Entry> {
        self.entries.get(usize::try_from(ticket.0.checked_sub(self.first)?).ok()?)
    }

    pub(crate) fn get_mut(&mut self, ticket: Ticket) -> Option<&mut Entry> {
        self.entries.get_mut(usize::try_from(ticket.0.checked_sub(self.first)?).ok()?)
    }
}
