//! One direction's bytes: read, decided on, sent.

use std::cell::RefCell;

use onetrip_session::INSPECT_BYTES_MAX;

const INITIAL_BYTES: usize = 16 * 1024;
/// Buffers that a thread keeps for its connections: as many as are in use at once, not as many as are open.
const SPARE_MAX: usize = 64;
/// A message that is looked into must fit, header included, with room to read on behind it.
const MAX_BYTES: usize = 2 * INSPECT_BYTES_MAX;

thread_local! {
    static SPARE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Bytes on their way from one leg to the other.
///
/// ```text
///  staged (the session's own, sent first) | sent | decided: to be sent | not decided on | free |
/// ```
///
/// It has memory while there are bytes in it, or while it is read into.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    sent: usize,
    decided: usize,
    filled: usize,
    /// What the session put in place of messages, and the decided bytes before it.
    staged: Vec<u8>,
    staged_sent: usize,
}

impl Buffer {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Where the next bytes may be read to; empty while too much is unsent.
    pub(crate) fn free(&mut self) -> &mut [u8] {
        if self.bytes.is_empty() {
            self.bytes = SPARE.with_borrow_mut(Vec::pop).unwrap_or_else(|| vec![0; INITIAL_BYTES]);
        }
        if self.sent == self.filled {
            self.sent = 0;
            self.decided = 0;
            self.filled = 0;
        } else if self.filled == self.bytes.len() {
            self.make_room();
        }
        &mut self.bytes[self.filled..]
    }

    pub(crate) fn filled(&mut self, count: usize) {
        self.filled += count;
    }

    /// Takes more memory where a message does not fit, or a peer has more to say than fits.
    pub(crate) fn grow_if_full(&mut self) {
        if self.sent < self.filled && self.filled == self.bytes.len() && self.bytes.len() < MAX_BYTES {
            self.bytes.resize(MAX_BYTES, 0);
        }
    }

    /// Gives its memory back where there is nothing in it.
    pub(crate) fn rest(&mut self) {
        if self.sent < self.filled || self.bytes.is_empty() {
            return;
        }
        (self.sent, self.decided, self.filled) = (0, 0, 0);
        let bytes = std::mem::take(&mut self.bytes);
        SPARE.with_borrow_mut(|spare| {
            if bytes.len() == INITIAL_BYTES && spare.len() < SPARE_MAX {
                spare.push(bytes);
            }
        });
        if self.staged.is_empty() {
            self.staged = Vec::new();
        }
    }

    /// What the session has not decided on.
    pub(crate) fn undecided(&self) -> &[u8] {
        &self.bytes[self.decided..self.filled]
    }

    /// The next `count` undecided bytes are to be sent as they are.
    pub(crate) fn forward(&mut self, count: usize) {
        self.decided += count;
    }

    /// The next `count` undecided bytes are dropped.
    pub(crate) fn drop_undecided(&mut self, count: usize) {
        self.stage_decided();
        self.decided += count;
        self.sent = self.decided;
    }

    /// Puts bytes of the session's own behind what is decided.
    pub(crate) fn insert(&mut self, own: &mut Vec<u8>) {
        if !own.is_empty() {
            self.stage_decided();
            self.staged.append(own);
        }
    }

    /// The bytes to send next.
    pub(crate) fn unsent(&self) -> &[u8] {
        if self.staged.is_empty() {
            &self.bytes[self.sent..self.decided]
        } else {
            &self.staged[self.staged_sent..]
        }
    }

    pub(crate) fn sent(&mut self, count: usize) {
        if self.staged.is_empty() {
            self.sent += count;
            return;
        }
        self.staged_sent += count;
        if self.staged_sent == self.staged.len() {
            self.staged.clear();
            self.staged_sent = 0;
        }
    }

    /// Whether everything decided on is sent.
    pub(crate) fn is_sent(&self) -> bool {
        self.unsent().is_empty()
    }

    fn stage_decided(&mut self) {
        self.staged.extend_from_slice(&self.bytes[self.sent..self.decided]);
        self.sent = self.decided;
    }

    fn make_room(&mut self) {
        if self.sent > 0 {
            self.bytes.copy_within(self.sent..self.filled, 0);
            self.decided -= self.sent;
            self.filled -= self.sent;
            self.sent = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(buffer: &mut Buffer, bytes: &[u8]) {
        buffer.free()[..bytes.len()].copy_from_slice(bytes);
        buffer.filled(bytes.len());
    }

    fn send(buffer: &mut Buffer, at_most: usize) -> Vec<u8> {
        let mut out = Vec::new();
        while !buffer.is_sent() {
            let chunk = buffer.unsent()[..buffer.unsent().len().min(at_most)].to_vec();
            buffer.sent(chunk.len());
            out.extend(chunk);
        }
        out
    }

    #[test]
    fn own_bytes_keep_their_place_between_forwarded_ones() {
        for at_most in 1..12 {
            let mut buffer = Buffer::new();
            read(&mut buffer, b"aaBBccDD");
            buffer.forward(2);
            buffer.drop_undecided(2);
            buffer.insert(&mut b"xyz".to_vec());
            buffer.forward(2);
            assert_eq!(buffer.undecided(), b"DD");
            assert_eq!(send(&mut buffer, at_most), b"aaxyzcc");
            buffer.forward(2);
            assert_eq!(send(&mut buffer, at_most), b"DD");
        }
    }

    #[test]
    fn an_empty_buffer_has_no_memory_and_one_with_bytes_keeps_them() {
        let mut buffer = Buffer::new();
        assert_eq!(buffer.bytes.capacity(), 0);
        read(&mut buffer, b"abc");
        buffer.rest();
        assert_eq!(buffer.undecided(), b"abc");
        buffer.forward(3);
        buffer.rest();
        assert_eq!(send(&mut buffer, 2), b"abc");
        buffer.rest();
        assert_eq!(buffer.bytes.capacity(), 0);
        read(&mut buffer, b"de");
        assert_eq!(buffer.undecided(), b"de");
    }

    #[test]
    fn what_waits_to_be_decided_survives_when_room_is_made() {
        let mut buffer = Buffer::new();
        let first = vec![b'x'; INITIAL_BYTES - 3];
        read(&mut buffer, &first);
        buffer.forward(first.len());
        read(&mut buffer, b"123");
        assert_eq!(send(&mut buffer, 1 << 20), first);
        assert!(!buffer.free().is_empty());
        assert_eq!(buffer.undecided(), b"123");
    }
}
