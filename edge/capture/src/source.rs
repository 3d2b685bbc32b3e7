//! Capture files on a disk or a pipe, compressed or not, one or several in the order of their packets.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::file::{CaptureFile, FileError, Interface, Packet};

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// A file that grows is looked at this often.
const LOOK_EVERY: Duration = Duration::from_millis(100);
const READ_BYTES: usize = 1 << 17;

/// A capture cannot be read, or not to its end.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {reason}")]
pub struct SourceError {
    /// The file.
    pub path: String,
    /// Why.
    pub reason: SourceProblem,
}

/// Why a capture cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SourceProblem {
    /// The system says no, or a compressed file is damaged.
    #[error("{0}")]
    Read(io::Error),
    /// What is in it.
    #[error("{0}")]
    File(FileError),
}

impl SourceError {
    /// Whether the file just ends within a record, as one does that is still being written.
    pub fn is_cut(&self) -> bool {
        matches!(&self.reason, SourceProblem::File(error) if error.problem.is_cut())
    }
}

/// How far reading has come; others may look while it goes on.
#[derive(Debug, Default)]
pub struct Progress {
    /// Bytes read of the files, as they are on the disk.
    pub read: AtomicU64,
    /// Set by whoever wants it to end: the next packet is the last.
    pub stop: AtomicBool,
}

impl Progress {
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Counts what is read, waits for a file that grows, and ends when it is told to.
struct Tap {
    input: Box<dyn Read>,
    progress: Arc<Progress>,
    follow: bool,
}

impl Read for Tap {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.progress.is_stopped() {
                return Ok(0);
            }
            match self.input.read(buffer) {
                Ok(0) if self.follow => std::thread::sleep(LOOK_EVERY),
                Ok(count) => {
                    self.progress.read.fetch_add(count as u64, Ordering::Relaxed);
                    return Ok(count);
                }
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(LOOK_EVERY),
                Err(error) => return Err(error),
            }
        }
    }
}

/// A file or a pipe. Where nothing comes for a while, reading times out, so that whoever reads can be told to end.
struct Patient(File);

impl Read for Patient {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wait = Timespec { tv_sec: 0, tv_nsec: LOOK_EVERY.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&wait))? {
            0 => Err(io::ErrorKind::TimedOut.into()),
            _ => self.0.read(buffer),
        }
    }
}

/// One capture that is read.
struct Source {
    path: PathBuf,
    input: Box<dyn Read>,
    file: CaptureFile,
}

impl Source {
    fn new(
        path: &Path,
        input: Box<dyn Read>,
        follow: bool,
        progress: &Arc<Progress>,
    ) -> Result<Self, SourceError> {
        let tap = Tap { input, progress: Arc::clone(progress), follow };
        let mut input = BufReader::with_capacity(READ_BYTES, tap);
        let failed =
            |source| SourceError { path: path.display().to_string(), reason: SourceProblem::Read(source) };
        let begin = input.fill_buf().map_err(failed)?;
        let input: Box<dyn Read> = if begin.starts_with(&GZIP) {
            Box::new(flate2::bufread::MultiGzDecoder::new(input))
        } else if begin.starts_with(&ZSTD) {
            Box::new(zstd::stream::read::Decoder::with_buffer(input).map_err(failed)?)
        } else {
            Box::new(input)
        };
        Ok(Self { path: path.to_owned(), input, file: CaptureFile::new() })
    }

    /// Goes to the next packet; `false` at the end of the file.
    fn advance(&mut self) -> Result<bool, SourceError> {
        loop {
            if self.file.advance().map_err(|error| self.failed(SourceProblem::File(error)))? {
                return Ok(true);
            }
            match self.input.read(self.file.room()) {
                Ok(0) => {
                    self.file.finish().map_err(|error| self.failed(SourceProblem::File(error)))?;
                    return Ok(false);
                }
                Ok(count) => self.file.filled(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed(SourceProblem::Read(error))),
            }
        }
    }

    fn failed(&self, reason: SourceProblem) -> SourceError {
        SourceError { path: self.path.display().to_string(), reason }
    }
}

/// Several captures as one: each next packet is the oldest of those that are next in their files.
pub struct Sources {
    live: Vec<Source>,
    interfaces: Vec<Interface>,
    progress: Arc<Progress>,
    is_begun: bool,
}

impl Sources {
    /// Opens files; `-` is standard input. `follow` waits for more at their ends.
    ///
    /// # Errors
    ///
    /// A file that cannot be opened or whose beginning cannot be read.
    pub fn open(paths: &[PathBuf], follow: bool, progress: Arc<Progress>) -> Result<Self, SourceError> {
        let mut live = Vec::new();
        for path in paths {
            let file = match path.as_os_str() == "-" {
                true => io::stdin().as_fd().try_clone_to_owned().map(File::from),
                false => File::open(path),
            };
            let failed = |source| SourceError {
                path: path.display().to_string(),
                reason: SourceProblem::Read(source),
            };
            let input = Box::new(Patient(file.map_err(failed)?));
            live.push(Source::new(path, input, follow, &progress)?);
        }
        Ok(Self { live, interfaces: Vec::new(), progress, is_begun: false })
    }

    /// One capture that comes from elsewhere, as a pipe; `name` is what errors call it.
    ///
    /// # Errors
    ///
    /// Its beginning cannot be read.
    pub fn of_reader(
        name: &Path,
        input: Box<dyn Read>,
        progress: Arc<Progress>,
    ) -> Result<Self, SourceError> {
        let source = Source::new(name, input, false, &progress)?;
        Ok(Self { live: vec![source], interfaces: Vec::new(), progress, is_begun: false })
    }

    /// Calls `each` with every packet in order. A file that cannot be read on is left, and `problem` gets the reason.
    pub fn read(&mut self, mut each: impl FnMut(&Packet<'_>), mut problem: impl FnMut(SourceError)) {
        if !self.is_begun {
            self.is_begun = true;
            for place in (0..self.live.len()).rev() {
                self.advance(place, &mut problem);
            }
        }
        while !self.live.is_empty() && !self.progress.is_stopped() {
            let next = |source: &Source| source.file.packet().map_or(u64::MAX, |packet| packet.at_ns);
            let place = match self.live.len() {
                1 => 0,
                _ => (0..self.live.len()).min_by_key(|place| next(&self.live[*place])).unwrap_or(0),
            };
            if let Some(packet) = self.live[place].file.packet() {
                each(&packet);
            }
            self.advance(place, &mut problem);
        }
        for source in self.live.drain(..) {
            self.interfaces.extend_from_slice(source.file.interfaces());
        }
    }

    /// The interfaces of all files that were read.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    fn advance(&mut self, place: usize, problem: &mut impl FnMut(SourceError)) {
        let goes_on = match self.live[place].advance() {
            Ok(goes_on) => goes_on,
            Err(error) => {
                if !(self.progress.is_stopped() && error.is_cut()) {
                    problem(error);
                }
                false
            }
        };
        if !goes_on {
            let source = self.live.remove(place);
            self.interfaces.extend_from_slice(source.file.interfaces());
        }
    }
}
