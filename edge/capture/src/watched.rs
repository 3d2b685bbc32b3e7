//! A file that is followed by its name: it may be overwritten in place, or another file may get the name.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;

/// The headers of files of one capture are alike, and that of a pcapng file may be completed when the file ends.
/// Bytes from here on tell files apart.
const HEAD_FROM: usize = 24;
/// Bytes that are compared, up to here: those of the first packets, with their times.
const HEAD_TO: usize = 4_096;

/// Why nothing more of a file can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Moved {
    /// It is shorter than what was read of it, or begins otherwise.
    #[error("overwritten")]
    Rewritten,
    /// Its name leads to another file.
    #[error("replaced")]
    Replaced,
}

impl Moved {
    /// The one that an error of [`Watched`] carries, whatever it came through.
    pub(crate) fn of(error: &io::Error) -> Option<Self> {
        error.get_ref()?.downcast_ref().copied()
    }
}

/// Reads such a file. At its end, an error says what became of it.
pub(crate) struct Watched {
    file: File,
    path: PathBuf,
    read: u64,
    head: Vec<u8>,
    /// Its name leads to another file. Its writer may have written a last time since the last look.
    is_replaced: bool,
}

impl Watched {
    /// A file of which nothing was read.
    pub(crate) fn new(file: File, path: PathBuf) -> Self {
        Self { file, path, read: 0, head: Vec::new(), is_replaced: false }
    }

    fn is_rewritten(&self) -> io::Result<bool> {
        if self.file.metadata()?.len() < self.read {
            return Ok(true);
        }
        let Some(known) = self.head.get(HEAD_FROM..) else { return Ok(false) };
        let mut found = [0; HEAD_TO - HEAD_FROM];
        let found = &mut found[..known.len()];
        match self.file.read_exact_at(found, HEAD_FROM as u64) {
            Ok(()) => Ok(found != known),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Whether another file has its name. A name that leads nowhere may lead to it again.
    fn is_replaced(&self) -> io::Result<bool> {
        let id = |file: &Metadata| (file.dev(), file.ino());
        let own = id(&self.file.metadata()?);
        Ok(std::fs::metadata(&self.path).is_ok_and(|named| named.is_file() && id(&named) != own))
    }
}

impl Read for Watched {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        // After the read: if the file still begins as it did, these bytes follow those that were read before.
        if self.is_rewritten()? {
            return Err(io::Error::other(Moved::Rewritten));
        }
        if count > 0 {
            let room = HEAD_TO - self.head.len();
            self.head.extend_from_slice(&buffer[..count.min(room)]);
            self.read += count as u64;
        } else if self.is_replaced {
            return Err(io::Error::other(Moved::Replaced));
        } else {
            self.is_replaced = self.is_replaced()?;
        }
        Ok(count)
    }
}
