//! TCP: bytes in order, and what the segments tell of the path.

mod marks;
mod path;
mod stream;

pub use marks::Marks;
pub(crate) use marks::Watcher;
pub(crate) use path::Path;
pub(crate) use stream::{Chunk, Stream, place};

/// What the timestamps of a segment take of it.
const TIMESTAMP_BYTES: u32 = 12;

/// Which way a segment goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// From the client.
    Up,
    /// From the server.
    Down,
}

impl Way {
    pub(crate) fn other(self) -> Self {
        match self {
            Self::Up => Self::Down,
            Self::Down => Self::Up,
        }
    }
}

/// Whether a sequence number comes after another; numbers wrap around.
pub(crate) fn is_after(sequence: u32, other: u32) -> bool {
    (sequence.wrapping_sub(other) as i32) > 0
}

/// Whether data is as long as segments can be, or several such; `longest` is what both sides take.
pub(crate) fn is_full(length: u32, longest: u32) -> bool {
    length % longest == 0 || length % (longest - TIMESTAMP_BYTES) == 0
}
