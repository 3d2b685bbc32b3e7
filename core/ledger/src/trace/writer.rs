use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, fcntl_getfl, fcntl_setfl, flock};

use super::header::{BLOCK_BYTES_MAX, BLOCK_HEADER_BYTES, BlockHeader, MARK, TraceHeader};
use super::{StreamEncoder, TRACE_STREAM, TraceError};

/// Appends blocks to a trace file. After the first failure nothing more is written but the end mark, so that what is
/// there stays readable.
#[derive(Debug)]
pub struct TraceWriter {
    path: PathBuf,
    file: File,
    /// The header, where a pipe was full: it goes with the first block, and nothing waits for the reader before.
    held: Vec<u8>,
    salt: u32,
    /// End of the last complete block.
    good_len: u64,
    /// Its begin: it gives way to the end mark where there is room for nothing more.
    last_at: u64,
    is_cut: bool,
}

impl TraceWriter {
    /// Creates the file, for its owner only, or replaces a trace that is there. Writes to pipes and devices as well, and
    /// does not wait for one that is full.
    ///
    /// # Errors
    ///
    /// A file that cannot be written; one that is no trace, so that nothing else is ever overwritten; a symbolic link to
    /// a file; a trace that is being written.
    pub fn create(path: &Path, header: TraceHeader) -> Result<Self, TraceError> {
        let name = || path.display().to_string();
        let with_path = |source| TraceError::Io { path: name(), source };
        let mut file = open(path).map_err(with_path)?;
        let kind = file.metadata().map_err(with_path)?.file_type();
        if kind.is_file() {
            flock(&file, FlockOperation::NonBlockingLockExclusive)
                .map_err(|_| TraceError::Taken { path: name() })?;
            if !is_trace_or_empty(&mut file).map_err(with_path)? {
                return Err(TraceError::NotReplaced { path: name() });
            }
            file.set_permissions(PermissionsExt::from_mode(0o600)).map_err(with_path)?;
            file.set_len(0).map_err(with_path)?;
            file.rewind().map_err(with_path)?;
        } else if !kind.is_fifo() && !kind.is_char_device() {
            return Err(with_path(io::Error::new(io::ErrorKind::InvalidInput, "is not a file; name one")));
        }
        let mut held = header.to_bytes().to_vec();
        let begin = held.len() as u64;
        let written = if kind.is_file() {
            file.write_all(&held).map(|()| held.len())
        } else {
            match file.write(&held) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
                written => written,
            }
        };
        held.drain(..written.map_err(with_path)?);
        block_from_here_on(&file).map_err(with_path)?;
        let path = path.to_owned();
        Ok(Self { path, file, held, salt: header.salt, good_len: begin, last_at: begin, is_cut: false })
    }

    /// Appends one block in one write; on an error the file is cut back to its last complete block, and the trace has
    /// ended.
    ///
    /// # Errors
    ///
    /// The file cannot be written, now or before; a block that no reader takes.
    pub fn append(&mut self, stream: u32, payload: &[u8]) -> Result<(), TraceError> {
        if payload.len() > BLOCK_BYTES_MAX {
            return Err(TraceError::TooLong { stream, bytes: payload.len() });
        }
        if self.is_cut {
            return Err(self.error(io::ErrorKind::WriteZero.into()));
        }
        self.write(stream, payload).map_err(|source| {
            self.is_cut = true;
            self.error(source)
        })
    }

    /// Writes the end mark, and how many bytes of records could not be kept. On a full disk the last block gives way.
    ///
    /// # Errors
    ///
    /// The mark cannot be written: readers then take the trace for one that is still being written.
    pub fn finish(mut self, lost_bytes: u64) -> Result<(), TraceError> {
        let mut mark = end_mark(lost_bytes, self.good_len);
        let mut done = self.write(TRACE_STREAM, &mark);
        let last_bytes = self.good_len - self.last_at;
        if done.is_err() && last_bytes > (BLOCK_HEADER_BYTES + mark.len()) as u64 {
            self.good_len = self.last_at;
            mark = end_mark(lost_bytes + last_bytes - BLOCK_HEADER_BYTES as u64, self.good_len);
            done = self
                .file
                .seek(SeekFrom::Start(self.good_len))
                .and_then(|_| self.write_over(TRACE_STREAM, &mark))
                .and_then(|()| self.file.set_len(self.good_len));
        }
        done.map_err(|source| self.error(source))
    }

    /// Where the trace goes.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn write(&mut self, stream: u32, payload: &[u8]) -> io::Result<()> {
        let good_len = self.good_len;
        self.write_over(stream, payload).inspect_err(|_| {
            // A cut that fails leaves a partial block, which readers pass over as well.
            let _ = self.file.set_len(good_len);
            let _ = self.file.seek(SeekFrom::Start(good_len));
        })
    }

    fn write_over(&mut self, stream: u32, payload: &[u8]) -> io::Result<()> {
        let mut block = std::mem::take(&mut self.held);
        let held_bytes = block.len();
        block.reserve(BLOCK_HEADER_BYTES + payload.len());
        block.extend_from_slice(&BlockHeader::of(self.salt, stream, payload).to_bytes());
        block.extend_from_slice(payload);
        self.file.write_all(&block)?;
        self.last_at = self.good_len;
        self.good_len += (block.len() - held_bytes) as u64;
        Ok(())
    }

    fn error(&self, source: io::Error) -> TraceError {
        TraceError::Io { path: self.path.display().to_string(), source }
    }
}

fn end_mark(lost_bytes: u64, place: u64) -> Vec<u8> {
    let mut mark = StreamEncoder::default();
    if lost_bytes > 0 {
        mark.lost(lost_bytes);
    }
    mark.end(Some(place));
    mark.take_block()
}

/// Opens a file for its owner only, without waiting for a pipe. Links are followed to pipes and devices (`/dev/stdout`,
/// `>(gzip)`), never to files.
fn open(path: &Path) -> io::Result<File> {
    let is_link = path.symlink_metadata().is_ok_and(|found| found.is_symlink());
    let target = path.metadata().map(|found| found.file_type());
    let is_stream = target.is_ok_and(|kind| kind.is_fifo() || kind.is_char_device());
    if is_link && !is_stream {
        let what = "is a symbolic link, and traces are written through none; name the file itself";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    let mut options = OpenOptions::new();
    options.write(true).create(!is_stream).read(!is_stream).mode(0o600);
    // Opening a pipe that nobody reads must not block.
    let flags = if is_stream { OFlags::NONBLOCK } else { OFlags::NOFOLLOW | OFlags::NONBLOCK };
    options.custom_flags(flags.bits() as i32).open(path).map_err(|error| {
        if error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) {
            io::Error::new(error.kind(), "nobody reads this pipe; start its reader first")
        } else {
            error
        }
    })
}

fn block_from_here_on(file: &File) -> io::Result<()> {
    Ok(fcntl_setfl(file, fcntl_getfl(file)? - OFlags::NONBLOCK)?)
}

/// Whether the file begins as traces do, or is empty.
fn is_trace_or_empty(file: &mut File) -> io::Result<bool> {
    let mut begin = Vec::new();
    file.take(MARK.len() as u64).read_to_end(&mut begin)?;
    Ok(begin.is_empty() || begin == MARK)
}
