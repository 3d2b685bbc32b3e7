//! What one client of a program has got, and what it waits for.

use onetrip_testkit::asked::{Asked, Outcome};
use onetrip_testkit::step::Step;
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

/// A step, and all that came between it and the next of its session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) shown: String,
    pub(crate) outcome: Outcome,
    pub(crate) messages: Vec<Message>,
    /// Rows that were committed, and what was of the sessions once nothing was under way.
    pub(crate) rows: u64,
    pub(crate) state: Option<Vec<String>>,
    /// A client waits for a lock: what it commits is there once the lock is let go, and that may be under way.
    pub(crate) is_lock_awaited: bool,
}

/// A client.
#[derive(Debug)]
pub(crate) struct Lane {
    received: Vec<u8>,
    pub(crate) messages: Vec<Message>,
    start: usize,
    asked: Asked,
    pub(crate) is_blocked: bool,
    pub(crate) has_ended: bool,
    pub(crate) status: u8,
    /// Steps since its transaction has failed.
    pub(crate) failed: usize,
    ready: usize,
}

impl Lane {
    /// A client that waits to be let in.
    pub(crate) fn new() -> Self {
        Self {
            received: Vec::new(),
            messages: Vec::new(),
            start: 0,
            asked: Asked::to_be_let_in(),
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

    /// What to send for a step.
    pub(crate) fn send(&mut self, step: &Step) -> Vec<u8> {
        self.start = self.messages.len();
        self.asked.send(step, self.ready)
    }

    /// Whether the step's answer is there.
    pub(crate) fn is_done(&mut self) -> bool {
        let new = self.messages[self.start..].iter().map(|message| message.tag);
        let is_done = self.asked.is_answered(self.ready, new.clone());
        if is_done {
            self.asked.answered(new);
        }
        is_done || self.has_ended
    }

    /// Whether a Flush was the last thing, so that the group is still open.
    pub(crate) fn is_amid_group(&self) -> bool {
        self.asked.is_amid_group()
    }

    pub(crate) fn start(&self) -> usize {
        self.start
    }
}
