//! What a client has asked for last, and whether that was answered.

use onetrip_wire::pg::backend;

use crate::messages::sync;
use crate::step::{Step, Wait};

/// What became of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was answered.
    Done,
    /// It waited for another session when the next step was taken.
    Blocked,
    /// Not taken: its session was waiting.
    PassedOver,
    /// Not taken: its session was over.
    Over,
    /// Neither an answer nor another session that it waits for.
    Hung,
}

/// What a client waits for.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    awaited: Awaited,
    /// An error behind a Flush: the server skips everything until a Sync.
    skips: bool,
}

#[derive(Debug, Clone, Copy)]
enum Awaited {
    /// So many ReadyForQuery, from the first of the session on.
    Ready(usize),
    /// One of these messages behind the step.
    Stop(&'static [u8]),
}

impl Asked {
    /// To be let in.
    pub fn to_be_let_in() -> Self {
        Self { awaited: Awaited::Ready(1), skips: false }
    }

    /// What to send for a step, by a client that has got so many ReadyForQuery. If its Flush was answered by an error, it says
    /// Sync before anything else.
    pub fn send(&mut self, step: &Step, ready: usize) -> Vec<u8> {
        let skipped = std::mem::take(&mut self.skips);
        if skipped && !matches!(step.wait, Wait::Ready(_)) {
            self.awaited = Awaited::Ready(ready + 1);
            return sync();
        }
        self.awaited = match step.wait {
            Wait::Ready(count) => Awaited::Ready(ready + count + usize::from(skipped)),
            Wait::Executed | Wait::Described => Awaited::Stop(step.wait.stops()),
        };
        let recovery = if skipped { sync() } else { Vec::new() };
        [recovery, step.bytes.clone()].concat()
    }

    /// Whether the answer is there: of so many ReadyForQuery in all, and messages with these tags since the step was sent.
    pub fn is_answered(&self, ready: usize, new: impl IntoIterator<Item = u8>) -> bool {
        match self.awaited {
            Awaited::Ready(count) => ready >= count,
            Awaited::Stop(tags) => new.into_iter().any(|tag| tags.contains(&tag)),
        }
    }

    /// The answer is there, with these tags.
    pub fn answered(&mut self, new: impl IntoIterator<Item = u8>) {
        if self.is_amid_group() {
            self.skips |= new.into_iter().any(|tag| tag == backend::ERROR_RESPONSE);
        }
    }

    /// Whether a Flush was the last thing, so that the group is still open.
    pub fn is_amid_group(&self) -> bool {
        matches!(self.awaited, Awaited::Stop(_))
    }
}
