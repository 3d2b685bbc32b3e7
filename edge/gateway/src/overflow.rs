//! Files for what sessions may not keep in memory.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use onetrip_session::{Overflow, Spill, Spilled};

/// Opens files without names in the directory for temporary files: they are gone when they are closed, whatever ends the
/// process.
#[derive(Debug)]
pub(crate) struct TemporaryFiles;

/// A file, and its length in bytes.
#[derive(Debug)]
struct Spillway {
    file: File,
    length: u64,
}

impl Overflow for TemporaryFiles {
    fn open(&self) -> io::Result<Spilled> {
        Ok(Box::new(Spillway { file: tempfile::tempfile()?, length: 0 }))
    }
}

impl Spill for Spillway {
    fn append(&mut self, bytes: &[u8]) -> io::Result<u64> {
        let at = self.length;
        self.file.write_all_at(bytes, at)?;
        self.length += bytes.len() as u64;
        Ok(at)
    }

    fn read(&mut self, at: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, at)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_from_where_they_were_put() {
        let mut file = TemporaryFiles.open().unwrap();
        assert_eq!((file.append(b"abc").unwrap(), file.append(b"defg").unwrap()), (0, 3));
        assert_eq!(file.read(2, 3).unwrap(), b"cde");
        assert!(file.read(5, 3).is_err(), "no more than there is");
    }
}
