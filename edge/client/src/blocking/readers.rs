//! COPY and large values as the standard library's readers and writers.

use std::io::{self, Read, Seek, SeekFrom, Write};

use super::{CopyIn, CopyOut, LobReader, LobWriter};

impl Write for CopyIn<'_> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.send(data).map_err(io::Error::other)?;
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for CopyOut<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.copying.rest.is_empty() {
            let piece = self.next_piece().map_err(io::Error::other)?.unwrap_or_default().to_vec();
            self.copying.rest = piece;
        }
        let rest = &mut self.copying.rest;
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        rest.drain(..count);
        Ok(count)
    }
}

impl Read for LobReader<'_, '_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let bytes = self.fill().map_err(io::Error::other)?;
        let count = bytes.len().min(into.len());
        into[..count].copy_from_slice(&bytes[..count]);
        self.consume(count);
        Ok(count)
    }
}

/// Goes elsewhere, without a trip. Positions are bytes, of text characters. From the end only where the
/// [length](crate::core::Lob::length) is known.
impl Seek for LobReader<'_, '_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        LobReader::seek(self, to)
    }
}

impl Write for LobWriter<'_> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.add(data).map_err(io::Error::other)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.send().map_err(io::Error::other)
    }
}
