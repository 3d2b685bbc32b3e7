//! Where a session puts what it may not keep in memory. The session does no I/O of its own: its driver brings the place.

use std::fmt;
use std::io;

/// Opens places for what does not fit into memory.
pub trait Overflow: fmt::Debug + Send + Sync {
    /// A place of its own, which is gone when it is dropped.
    ///
    /// # Errors
    ///
    /// It cannot be made.
    fn open(&self) -> io::Result<Spilled>;
}

/// What did not fit into memory, in one place.
pub type Spilled = Box<dyn Spill>;

/// A place that grows at its end and is read anywhere.
pub trait Spill: fmt::Debug + Send {
    /// Puts bytes at the end, and returns where they begin.
    ///
    /// # Errors
    ///
    /// They cannot be stored, for example for want of room.
    fn append(&mut self, bytes: &[u8]) -> io::Result<u64>;

    /// Reads back `length` bytes that begin at `at`.
    ///
    /// # Errors
    ///
    /// They cannot be read.
    fn read(&mut self, at: u64, length: usize) -> io::Result<Vec<u8>>;
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// For tests, a vector.
    #[derive(Debug)]
    pub(crate) struct Memory;

    impl Overflow for Memory {
        fn open(&self) -> io::Result<Spilled> {
            Ok(Box::new(Vec::new()))
        }
    }

    impl Spill for Vec<u8> {
        fn append(&mut self, bytes: &[u8]) -> io::Result<u64> {
            let at = self.len() as u64;
            self.extend_from_slice(bytes);
            Ok(at)
        }

        fn read(&mut self, at: u64, length: usize) -> io::Result<Vec<u8>> {
            let at = usize::try_from(at).unwrap_or(usize::MAX);
            let bytes = at.checked_add(length).and_then(|end| self.get(at..end));
            bytes.map(<[u8]>::to_vec).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
        }
    }
}
