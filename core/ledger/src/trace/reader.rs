use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::header::{
    BLOCK_BYTES_MAX, BLOCK_HEADER_BYTES, BlockHeader, HEADER_BYTES, SALT_BYTES, TraceHeader,
};
use super::{FORMAT_VERSION, Record, Records, TRACE_STREAM, TraceError, decode_block};
use crate::Gaps;

/// The first version whose header ends with a salt.
const SALTED_VERSION: u16 = 2;
/// Tag and length of a record.
const RECORD_HEADER_BYTES: usize = 5;
/// Tags of records are below it, for long.
const TAG_LIMIT: u8 = 64;
/// Places that look like the begin of a block and are read to find out, in one trace.
const TRIES_MAX: u32 = 10_000;

/// One block as read.
#[derive(Debug)]
pub struct Block<'a> {
    /// The connection that its records are about, or [`super::TRACE_STREAM`].
    pub stream: u32,
    /// Its records; see [`super::decode_block`].
    pub payload: &'a [u8],
}

/// Reads a trace, also one that is still being written or whose writer was killed: it ends after the last complete
/// block. A damaged block is passed over.
#[derive(Debug)]
pub struct TraceReader {
    path: PathBuf,
    file: BufReader<File>,
    header: TraceHeader,
    payload: Vec<u8>,
    /// Where the next block begins.
    at: u64,
    /// Whether the file can be read from any place; a pipe cannot.
    seeks: bool,
    damaged_blocks: u64,
    damaged_bytes: u64,
    tail_bytes: u64,
    tries: u32,
    /// The end mark was read: a block behind it is damage.
    has_end: bool,
}

/// What stands at a place of the file.
enum Found {
    /// A block, whose payload is read.
    Block(BlockHeader),
    /// Less than a block, and then the end of the file.
    Rest(u64),
    /// Something else.
    Damage(BlockHeader),
}

impl TraceReader {
    /// Opens a trace and checks its header.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, is no trace, or was written by a newer onetrip.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        let name = || path.display().to_string();
        let with_path = |source| TraceError::Io { path: name(), source };
        let file = File::open(path).map_err(with_path)?;
        let seeks = file.metadata().map_err(with_path)?.is_file();
        let mut file = BufReader::with_capacity(1 << 20, file);
        let too_short = |error: io::Error| match error.kind() {
            io::ErrorKind::UnexpectedEof => TraceError::NotATrace(name()),
            _ => with_path(error),
        };
        let mut bytes = [0; HEADER_BYTES];
        file.read_exact(&mut bytes).map_err(too_short)?;
        let mut header = TraceHeader::from_bytes(bytes).ok_or_else(|| TraceError::NotATrace(name()))?;
        let mut at = HEADER_BYTES as u64;
        if header.version > FORMAT_VERSION {
            return Err(TraceError::NewerVersion { path: name(), found: header.version });
        }
        if header.version >= SALTED_VERSION {
            let mut salt = [0; SALT_BYTES];
            file.read_exact(&mut salt).map_err(too_short)?;
            header.salt = u32::from_le_bytes(salt);
            at += SALT_BYTES as u64;
        }
        Ok(Self {
            path: path.to_owned(),
            file,
            header,
            payload: Vec::new(),
            at,
            seeks,
            damaged_blocks: 0,
            damaged_bytes: 0,
            tail_bytes: 0,
            tries: 0,
            has_end: false,
        })
    }

    /// What the file's first bytes say.
    pub fn header(&self) -> TraceHeader {
        self.header
    }

    /// The next complete block, or `None` at the end.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn next_block(&mut self) -> Result<Option<Block<'_>>, TraceError> {
        loop {
            match self.read_here()? {
                Found::Block(header) if self.has_end => {
                    self.pass_over(self.at + (BLOCK_HEADER_BYTES + header.length) as u64)?;
                }
                Found::Block(header) => {
                    if header.stream == TRACE_STREAM {
                        self.note_end();
                    }
                    self.at += (BLOCK_HEADER_BYTES + header.length) as u64;
                    return Ok(Some(Block { stream: header.stream, payload: &self.payload }));
                }
                Found::Rest(0) => return Ok(None),
                Found::Rest(bytes) => match self.find_block(self.at + 1)? {
                    Some(next) => self.pass_over(next)?,
                    None => {
                        self.tail_bytes += bytes;
                        return Ok(None);
                    }
                },
                Found::Damage(header) => {
                    let next = self.after_damage(header)?;
                    self.pass_over(next)?;
                }
            }
        }
    }

    /// An end mark that was written at another place than it stands at says that whole blocks are missing, or there twice.
    fn note_end(&mut self) {
        let mut places = Vec::new();
        // Who decodes the block for its records tells of one that is malformed.
        let _ = decode_block::<TraceError>(&mut Records::default(), TRACE_STREAM, &self.payload, |record| {
            if let Record::End { place } = record {
                self.has_end = true;
                places.extend(place);
            }
            Ok(())
        });
        for place in places.into_iter().filter(|place| *place != self.at) {
            self.damaged_blocks += 1;
            self.damaged_bytes += place.abs_diff(self.at);
        }
    }

    /// What of the trace could not be read, so far.
    pub fn gaps(&self) -> Gaps {
        Gaps {
            damaged_blocks: self.damaged_blocks,
            damaged_bytes: self.damaged_bytes,
            tail_bytes: self.tail_bytes,
            ..Gaps::default()
        }
    }

    /// Reads what stands at [`Self::at`].
    fn read_here(&mut self) -> Result<Found, TraceError> {
        let mut head = [0; BLOCK_HEADER_BYTES];
        let got = self.fill(&mut head)?;
        if got < BLOCK_HEADER_BYTES {
            return Ok(Found::Rest(got as u64));
        }
        let header = BlockHeader::from_bytes(head);
        if header.length > BLOCK_BYTES_MAX {
            return Ok(Found::Damage(header));
        }
        let mut payload = std::mem::take(&mut self.payload);
        payload.resize(header.length, 0);
        let got = self.fill(&mut payload)?;
        self.payload = payload;
        Ok(match got {
            got if got < header.length => Found::Rest((BLOCK_HEADER_BYTES + got) as u64),
            _ if header.fits(self.header.salt, &self.payload) => Found::Block(header),
            _ => Found::Damage(header),
        })
    }

    /// Where to go on after a block that is damaged or too long: after it, if its length can be believed; else at the
    /// next place where a block begins; else at the end of the file.
    fn after_damage(&mut self, header: BlockHeader) -> Result<u64, TraceError> {
        let after = self.at + (BLOCK_HEADER_BYTES + header.length) as u64;
        if !self.seeks {
            let rest = io::copy(&mut self.file, &mut io::sink()).map_err(|source| self.error(source))?;
            return Ok(after + rest);
        }
        let end = self.file_len()?;
        if after == end || after < end && self.is_block(after, end)? {
            return Ok(after);
        }
        Ok(self.find_block(self.at + 1)?.unwrap_or(end))
    }

    /// Goes on at `next`, and notes what is between.
    fn pass_over(&mut self, next: u64) -> Result<(), TraceError> {
        self.damaged_blocks += 1;
        self.damaged_bytes += next - self.at;
        self.at = next;
        if self.seeks { self.seek(next) } else { Ok(()) }
    }

    /// The first place from `from` on where a block begins.
    fn find_block(&mut self, from: u64) -> Result<Option<u64>, TraceError> {
        if !self.seeks {
            return Ok(None);
        }
        let end = self.file_len()?;
        self.find_block_before(from, end)
    }

    /// The first place between `from` and `end` where a block begins. What was written behind `end` in the meantime is
    /// not looked at.
    fn find_block_before(&mut self, from: u64, end: u64) -> Result<Option<u64>, TraceError> {
        const WINDOW: usize = 1 << 20;
        const OVERLAP: usize = BLOCK_HEADER_BYTES + RECORD_HEADER_BYTES;
        let mut window = vec![0; WINDOW];
        let mut begin = from;
        while begin + OVERLAP as u64 <= end {
            self.seek(begin)?;
            let wanted = usize::try_from(end - begin).map_or(WINDOW, |rest| rest.min(WINDOW));
            let got = self.fill(&mut window[..wanted])?;
            for place in 0..(got + 1).saturating_sub(OVERLAP) {
                let at = begin + place as u64;
                if looks_like_block(&window[place..place + OVERLAP], end - at) && self.is_block(at, end)? {
                    return Ok(Some(at));
                }
            }
            begin += (WINDOW - OVERLAP + 1) as u64;
        }
        Ok(None)
    }

    /// Whether a whole block stands at `at`.
    fn is_block(&mut self, at: u64, end: u64) -> Result<bool, TraceError> {
        self.tries += 1;
        if self.tries > TRIES_MAX || end - at < BLOCK_HEADER_BYTES as u64 {
            return Ok(false);
        }
        self.seek(at)?;
        Ok(matches!(self.read_here()?, Found::Block(_)))
    }

    fn file_len(&self) -> Result<u64, TraceError> {
        self.file.get_ref().metadata().map(|found| found.len()).map_err(|source| self.error(source))
    }

    fn seek(&mut self, to: u64) -> Result<(), TraceError> {
        self.file.seek(SeekFrom::Start(to)).map(|_| ()).map_err(|source| self.error(source))
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

/// Whether the header of a block and of its first record may stand here, `room` bytes before the end.
fn looks_like_block(bytes: &[u8], room: u64) -> bool {
    let Some((head, record)) = bytes.split_first_chunk::<BLOCK_HEADER_BYTES>() else { return false };
    let Some((&[tag], length)) = record.split_first_chunk::<1>() else { return false };
    let Some(length) = length.first_chunk::<4>() else { return false };
    let block = BlockHeader::from_bytes(*head);
    let record_bytes = u32::from_le_bytes(*length) as usize + RECORD_HEADER_BYTES;
    let fits = (BLOCK_HEADER_BYTES + block.length) as u64 <= room && record_bytes <= block.length;
    block.length <= BLOCK_BYTES_MAX && (1..TAG_LIMIT).contains(&tag) && fits
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::trace::TraceWriter;

    #[test]
    fn what_is_written_behind_the_end_while_it_is_looked_for_is_not_looked_at() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("growing.trace");
        let mut writer = TraceWriter::create(&path, TraceHeader::now(false)).expect("it is made");
        let record = [&[1, 3, 0, 0, 0][..], b"abc"].concat();
        writer.append(1, &record).expect("there is room");
        let end = fs::metadata(&path).expect("it is there").len();
        writer.append(1, &record).expect("there is room");
        drop(writer);
        let after = fs::metadata(&path).expect("it is there").len();
        let mut reader = TraceReader::open(&path).expect("a trace");
        let second = (HEADER_BYTES + SALT_BYTES) as u64 + 1;
        assert_eq!(reader.find_block_before(second, after).expect("it reads"), Some(end));
        for shorter in second..after {
            assert_eq!(reader.find_block_before(second, shorter).expect("it reads"), None, "up to {shorter}");
        }
    }
}
