//! Bytes from a client, cut into frames.

use std::io::{self, Read};

use onetrip_wire::WireError;
use onetrip_wire::pg::{FrameHeader, HEADER_BYTES, frontend};

/// Size of the buffer while messages are small.
const BUFFER_BYTES: usize = 32 << 10;

/// Received bytes that are not used up yet.
pub(super) struct Input {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

/// Where a frame lies in the buffer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    pub(super) tag: u8,
    start: usize,
    end: usize,
}

impl Input {
    pub(super) fn new() -> Self {
        Self { buffer: vec![0; BUFFER_BYTES], start: 0, end: 0 }
    }

    pub(super) fn unread(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    pub(super) fn consume(&mut self, count: usize) {
        self.start = (self.start + count).min(self.end);
    }

    /// The next whole frame, if it is there; it counts as used up.
    pub(super) fn next_frame(&mut self, length_max: u32) -> Result<Option<Frame>, WireError> {
        let Some(header) = FrameHeader::peek(self.unread(), length_max) else { return Ok(None) };
        let frame_len = header?.frame_len();
        if self.end - self.start < frame_len {
            return Ok(None);
        }
        let frame = Frame {
            tag: self.buffer[self.start],
            start: self.start + HEADER_BYTES,
            end: self.start + frame_len,
        };
        self.start = frame.end;
        Ok(Some(frame))
    }

    pub(super) fn body(&self, frame: Frame) -> &[u8] {
        &self.buffer[frame.start..frame.end]
    }

    /// Whether the frame behind the one taken last is a Sync, as far as received.
    pub(super) fn next_is_sync(&self) -> bool {
        self.unread().first() == Some(&frontend::SYNC)
    }

    /// Receives at least one byte; false at the end of the stream. `length_max` bounds a frame's length field.
    pub(super) fn fill(&mut self, source: &mut dyn Read, length_max: u32) -> io::Result<bool> {
        self.make_room(length_max);
        loop {
            match source.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Ok(false),
                Ok(count) => {
                    self.end += count;
                    return Ok(true);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Moves what is unread to the front, and grows where the frame at hand needs it.
    fn make_room(&mut self, length_max: u32) {
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
            if self.buffer.len() > BUFFER_BYTES {
                self.buffer = vec![0; BUFFER_BYTES];
            }
            return;
        }
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        let needed = match FrameHeader::peek(self.unread(), length_max) {
            Some(Ok(header)) => header.frame_len(),
            _ => BUFFER_BYTES,
        };
        if self.end == self.buffer.len() {
            // Doubling: a client gets no more memory than it has sent bytes for.
            let grown = (2 * self.buffer.len()).min(needed.max(self.buffer.len() + 1));
            self.buffer.resize(grown, 0);
        }
    }
}
