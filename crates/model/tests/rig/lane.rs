//! What one client of a program has got, and what it waits for.

use onetrip_model::step::{Step, Wait};
use onetrip_wire::pg::{FrameHeader, HEADER_BYTES, backend};

/// A message of the server.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) tag: u8,
    pub(crate) body: Vec<u8>,
}

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", char::from(self.tag), self.body.escape_ascii())
    }
}

/// What became of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
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

/// A step, and all that came between it and the next of its session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) shown: String,
    pub(crate) outcome: Outcome,
    pub(crate) messages: Vec<Message>,
    /// Rows that were committed, and what was of the sessions once nothing was under way.
    pub(crate) rows: u64,
    pub(crate) state: Option<Vec<String>>,
}

/// A client.
#[derive(Debug)]
pub(crate) struct Lane {
    received: Vec<u8>,
    pub(crate) messages: Vec<Message>,
    start: usize,
    awaited: Awaited,
    /// An error behind a Flush: the server skips everything until a Sync.
    skips: bool,
    pub(crate) is_blocked: bool,
    pub(crate) has_ended: bool,
    pub(crate) status: u8,
    /// Steps since its transaction has failed.
    pub(crate) failed: usize,
    ready: usize,
}

#[derive(Debug, Clone, Copy)]
enum Awaited {
    Ready(usize),
    Stop(&'static [u8]),
}

impl Lane {
    /// A client that waits to be let in.
    pub(crate) fn new() -> Self {
        Self {
            received: Vec::new(),
            messages: Vec::new(),
            start: 0,
            awaited: Awaited::Ready(1),
            skips: false,
            is_blocked: false,
            has_ended: false,
            status: b'?',
            failed: 0,
            ready: 0,
        }
    }

    pub(crate) fn receive(&mut self, bytes: &[u8]) {
        self.received.extend_from_slice(bytes);
        let mut at = 0;
        while let Some(Ok(header)) = FrameHeader::peek(&self.received[at..], u32::MAX) {
            let Some(frame) = self.received.get(at..at + header.frame_len()) else { break };
            let body = frame[HEADER_BYTES..].to_vec();
            if header.tag == backend::READY_FOR_QUERY {
                self.ready += 1;
                self.status = body[0];
            }
            self.messages.push(Message { tag: header.tag, body });
            at += header.frame_len();
        }
        self.received.drain(..at);
    }

    /// What to send for a step. A client whose Flush was answered by an error says Sync before anything else.
    pub(crate) fn send(&mut self, step: &Step) -> Vec<u8> {
        self.start = self.messages.len();
        if self.skips && !matches!(step.wait, Wait::Ready(_)) {
            self.skips = false;
            self.awaited = Awaited::Ready(self.ready + 1);
            return onetrip_model::messages::sync();
        }
        let recovery = if self.skips { onetrip_model::messages::sync() } else { Vec::new() };
        self.awaited = match step.wait {
            Wait::Ready(count) => Awaited::Ready(self.ready + count + usize::from(self.skips)),
            Wait::Executed | Wait::Described => Awaited::Stop(step.wait.stops()),
        };
        self.skips = false;
        [recovery, step.bytes.clone()].concat()
    }

    /// Whether the step's answer is there.
    pub(crate) fn is_done(&mut self) -> bool {
        let is_done = match self.awaited {
            Awaited::Ready(count) => self.ready >= count,
            Awaited::Stop(tags) => {
                let mut new = self.messages[self.start..].iter();
                new.any(|message| tags.contains(&message.tag))
            }
        };
        if is_done && matches!(self.awaited, Awaited::Stop(_)) {
            let mut new = self.messages[self.start..].iter();
            self.skips |= new.any(|message| message.tag == backend::ERROR_RESPONSE);
        }
        is_done || self.has_ended
    }

    /// Whether a Flush was the last thing, so that the group is still open.
    pub(crate) fn is_amid_group(&self) -> bool {
        matches!(self.awaited, Awaited::Stop(_))
    }

    pub(crate) fn start(&self) -> usize {
        self.start
    }
}
