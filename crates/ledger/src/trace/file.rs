use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::{FORMAT_VERSION, TraceError};

const MARK: &[u8; 8] = b"onetrip\0";
const HEADER_BYTES: usize = 20;
const BLOCK_HEADER_BYTES: usize = 12;

/// Longest payload of a block, in bytes. One exchange is far below it.
pub const BLOCK_BYTES_MAX: usize = 64 << 20;

/// First bytes of a trace file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceHeader {
    /// Format version.
    pub version: u16,
    /// Whether parameters' values are kept, not only their hashes.
    pub keeps_values: bool,
    /// Wall-clock time that [`crate::Moment`] zero stands for, in nanoseconds since 1970.
    pub started_unix_nanos: u64,
}

impl TraceHeader {
    /// A header for a trace that starts now.
    pub fn now(keeps_values: bool) -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { version: FORMAT_VERSION, keeps_values, started_unix_nanos: since_epoch.as_nanos() as u64 }
    }

    fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(MARK);
        bytes[8..10].copy_from_slice(&self.version.to_le_bytes());
        bytes[10] = self.keeps_values.into();
        bytes[12..].copy_from_slice(&self.started_unix_nanos.to_le_bytes());
        bytes
    }
}

/// Appends blocks to a trace file. After the first failure nothing more is written, so that what is there stays readable.
#[derive(Debug)]
pub struct TraceWriter {
    path: PathBuf,
    file: File,
    good_len: u64,
}

impl TraceWriter {
    /// Creates the file, replacing one that is there.
    pub fn create(path: &Path, header: TraceHeader) -> Result<Self, TraceError> {
        let with_path = |source| TraceError::Io { path: path.display().to_string(), source };
        let mut file = File::create(path).map_err(with_path)?;
        file.write_all(&header.to_bytes()).map_err(with_path)?;
        Ok(Self { path: path.to_owned(), file, good_len: HEADER_BYTES as u64 })
    }

    /// Appends one block in one write; on an error the file is cut back to its last complete block.
    pub fn append(&mut self, stream: u32, payload: &[u8]) -> Result<(), TraceError> {
        let mut block = Vec::with_capacity(BLOCK_HEADER_BYTES + payload.len());
        block.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        block.extend_from_slice(&checksum(stream, payload).to_le_bytes());
        block.extend_from_slice(&stream.to_le_bytes());
        block.extend_from_slice(payload);
        if let Err(source) = self.file.write_all(&block) {
            // A cut that fails leaves a partial block, which readers pass over as well.
            let _ = self.file.set_len(self.good_len);
            return Err(TraceError::Io { path: self.path.display().to_string(), source });
        }
        self.good_len += block.len() as u64;
        Ok(())
    }

    /// Where the trace goes.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// One block as read.
#[derive(Debug)]
pub struct Block<'a> {
    /// The connection that its records are about, or [`super::TRACE_STREAM`].
    pub stream: u32,
    /// Its records; see [`super::decode_block`].
    pub payload: &'a [u8],
}

/// Reads a trace, also one that is still being written or whose writer was killed: it ends after the last complete block.
#[derive(Debug)]
pub struct TraceReader {
    path: PathBuf,
    file: BufReader<File>,
    header: TraceHeader,
    payload: Vec<u8>,
    ignored: u64,
}

impl TraceReader {
    /// Opens a trace and checks its header.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        let name = || path.display().to_string();
        let with_path = |source| TraceError::Io { path: name(), source };
        let mut file = BufReader::with_capacity(1 << 20, File::open(path).map_err(with_path)?);
        let mut bytes = [0; HEADER_BYTES];
        file.read_exact(&mut bytes).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => TraceError::NotATrace(name()),
            _ => with_path(error),
        })?;
        let (mark, fields) = bytes.split_at(8);
        if mark != MARK {
            return Err(TraceError::NotATrace(name()));
        }
        let version = u16::from_le_bytes([fields[0], fields[1]]);
        if version > FORMAT_VERSION {
            return Err(TraceError::NewerVersion { path: name(), found: version });
        }
        let started = fields[4..12].try_into().map(u64::from_le_bytes).unwrap_or_default();
        let header = TraceHeader { version, keeps_values: fields[2] & 1 != 0, started_unix_nanos: started };
        Ok(Self { path: path.to_owned(), file, header, payload: Vec::new(), ignored: 0 })
    }

    /// What the file's first bytes say.
    pub fn header(&self) -> TraceHeader {
        self.header
    }

    /// The next complete block, or `None` at the end.
    pub fn next_block(&mut self) -> Result<Option<Block<'_>>, TraceError> {
        let mut head = [0; BLOCK_HEADER_BYTES];
        let got = self.fill(&mut head)?;
        if got < BLOCK_HEADER_BYTES {
            self.ignored += got as u64;
            return Ok(None);
        }
        let field = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (length, expected, stream) = (field(0) as usize, field(4), field(8));
        if length > BLOCK_BYTES_MAX {
            return self.rest_is_ignored(BLOCK_HEADER_BYTES as u64);
        }
        let mut payload = std::mem::take(&mut self.payload);
        payload.resize(length, 0);
        let got = self.fill(&mut payload)?;
        self.payload = payload;
        if got < length || checksum(stream, &self.payload) != expected {
            return self.rest_is_ignored((BLOCK_HEADER_BYTES + got) as u64);
        }
        Ok(Some(Block { stream, payload: &self.payload }))
    }

    /// Bytes at the end that belong to no complete block. More than zero after a crash or on a file still being written.
    pub fn ignored_bytes(&self) -> u64 {
        self.ignored
    }

    fn rest_is_ignored(&mut self, already_read: u64) -> Result<Option<Block<'_>>, TraceError> {
        let rest = io::copy(&mut self.file, &mut io::sink()).map_err(|source| self.error(source))?;
        self.ignored += already_read + rest;
        Ok(None)
    }

    fn fill(&mut self, buffer: &mut [u8]) -> Result<usize, TraceError> {
        let mut got = 0;
        while got < buffer.len() {
            match self.file.read(&mut buffer[got..]) {
                Ok(0) => break,
                Ok(count) => got += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.error(error)),
            }
        }
        Ok(got)
    }

    fn error(&self, source: io::Error) -> TraceError {
        TraceError::Io { path: self.path.display().to_string(), source }
    }
}

fn checksum(stream: u32, payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&stream.to_le_bytes());
    hasher.update(payload);
    hasher.finalize()
}
