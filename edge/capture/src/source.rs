//! Capture files on a disk or a pipe, compressed or not, one or several in the order of their packets.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::file::{CaptureFile, FileError, Interface, Packet};
use crate::watched::{Moved, Watched};

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// A file that grows is looked at this often. Where several do, a packet waits so long for older ones of the others.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// And its waiting is looked at this often.
const WAIT_EVERY: Duration = Duration::from_millis(10);
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
    /// It was overwritten in place while it was followed. What was written before and not yet read is gone.
    #[error("the file was overwritten while it was followed, and packets before may be missing")]
    Rewritten,
    /// Its name leads to another file.
    #[error("the name leads to another file now{}", cut_note(*.is_cut))]
    Replaced {
        /// The old file ends inside a record.
        is_cut: bool,
    },
}

fn cut_note(is_cut: bool) -> &'static str {
    if is_cut { ", and the old one ends inside a record" } else { "" }
}

impl SourceError {
    /// Whether the file just ends within a record, as one does that is still being written.
    pub fn is_cut(&self) -> bool {
        matches!(&self.reason, SourceProblem::File(error) if error.problem.is_cut())
    }

    /// Whether reading goes on, at the beginning of the file that has the name now.
    pub fn goes_on(&self) -> bool {
        matches!(self.reason, SourceProblem::Rewritten | SourceProblem::Replaced { .. })
    }

    /// Whether packets may be missing because of it.
    pub fn may_miss_packets(&self) -> bool {
        !matches!(self.reason, SourceProblem::Replaced { is_cut: false })
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

/// Counts what is read, and ends when it is told to. The end of a file that grows is [`io::ErrorKind::WouldBlock`].
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
                Ok(0) if self.follow => return Err(io::ErrorKind::WouldBlock.into()),
                Ok(count) => {
                    self.progress.read.fetch_add(count as u64, Ordering::Relaxed);
                    return Ok(count);
                }
                Err(error) if error.kind() == io::ErrorKind::TimedOut && self.follow => {
                    return Err(io::ErrorKind::WouldBlock.into());
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
    input: Input,
    follow: bool,
    progress: Arc<Progress>,
    file: CaptureFile,
    /// How reading ended for now. Packets that wait for their neighbours come first.
    end: Option<io::Result<Has>>,
    /// One for all interfaces of the files that had the name before.
    past: Option<Interface>,
    /// It grows, and has no packet for now.
    is_dry: bool,
    /// It has been so since then.
    since: Instant,
}

enum Input {
    /// Of which nothing was read.
    Whole(BufReader<Tap>),
    Unpacked(Box<dyn Read>),
    /// Its beginning could not be read.
    Failed,
}

impl Input {
    fn new(input: Box<dyn Read>, follow: bool, progress: &Arc<Progress>) -> Self {
        let tap = Tap { input, progress: Arc::clone(progress), follow };
        Self::Whole(BufReader::with_capacity(READ_BYTES, tap))
    }

    /// Finds out how it is compressed, by its first bytes.
    fn begin(&mut self) -> io::Result<&mut dyn Read> {
        if let Self::Whole(input) = self {
            input.fill_buf()?;
        }
        *self = match std::mem::replace(self, Self::Failed) {
            Self::Whole(input) => Self::Unpacked(unpacked(input)?),
            begun => begun,
        };
        match self {
            Self::Unpacked(input) => Ok(input),
            Self::Whole(_) | Self::Failed => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

fn unpacked(input: BufReader<Tap>) -> io::Result<Box<dyn Read>> {
    let begin = input.buffer();
    Ok(if begin.starts_with(&GZIP) {
        Box::new(flate2::bufread::MultiGzDecoder::new(input))
    } else if begin.starts_with(&ZSTD) {
        Box::new(zstd::stream::read::Decoder::with_buffer(input)?)
    } else {
        Box::new(input)
    })
}

/// What a source has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Has {
    Packet,
    /// Nothing for now.
    Nothing,
    /// Nothing more.
    Ended,
}

impl Source {
    fn new(
        path: &Path,
        input: Box<dyn Read>,
        follow: bool,
        progress: &Arc<Progress>,
    ) -> Result<Self, SourceError> {
        let mut source = Self {
            path: path.to_owned(),
            input: Input::new(input, follow, progress),
            follow,
            progress: Arc::clone(progress),
            file: CaptureFile::sorted(),
            end: None,
            past: None,
            is_dry: false,
            since: Instant::now(),
        };
        match source.input.begin() {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                Err(source.failed(SourceProblem::Read(error)))
            }
            _ => Ok(source),
        }
    }

    /// Goes to the next packet.
    fn advance(&mut self) -> Result<Has, SourceError> {
        let has = self.next()?;
        if self.is_dry != (has == Has::Nothing) {
            (self.is_dry, self.since) = (has == Has::Nothing, Instant::now());
        }
        Ok(has)
    }

    fn next(&mut self) -> Result<Has, SourceError> {
        loop {
            if self.file.advance().map_err(|error| self.failed(SourceProblem::File(error)))? {
                return Ok(Has::Packet);
            }
            match self.end.take() {
                None => {}
                Some(Ok(Has::Ended)) => {
                    self.file.finish().map_err(|error| self.failed(SourceProblem::File(error)))?;
                    return Ok(Has::Ended);
                }
                Some(Ok(has)) => return Ok(has),
                Some(Err(error)) => return self.moved(error),
            }
            let Self { input, file, .. } = self;
            let end = match input.begin().and_then(|input| input.read(file.room())) {
                Ok(0) => Ok(Has::Ended),
                Ok(count) => {
                    file.filled(count);
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Has::Nothing),
                Err(error) => Err(error),
            };
            file.dry();
            self.end = Some(end);
        }
    }

    /// Reading failed, if it was not because another file has the name.
    fn moved(&mut self, error: io::Error) -> Result<Has, SourceError> {
        let Some(moved) = Moved::of(&error) else {
            return Err(self.failed(SourceProblem::Read(error)));
        };
        match File::open(&self.path) {
            Ok(file) => Err(self.begin_again(moved, file)),
            // The name leads nowhere for now.
            Err(_) => Ok(Has::Nothing),
        }
    }

    /// Goes on with the file that has the name now; what is to be said of that.
    fn begin_again(&mut self, moved: Moved, file: File) -> SourceError {
        let old = std::mem::replace(&mut self.file, CaptureFile::sorted());
        for interface in old.interfaces() {
            match &mut self.past {
                Some(past) => {
                    past.dropped = past.dropped.saturating_add(interface.dropped);
                    past.untimed += interface.untimed;
                }
                None => self.past = Some(interface.clone()),
            }
        }
        self.input = Input::new(Box::new(Watched::new(file, self.path.clone())), self.follow, &self.progress);
        (self.is_dry, self.since) = (true, Instant::now());
        let is_cut = old.finish().is_err_and(|error| error.problem.is_cut());
        self.failed(match moved {
            Moved::Rewritten => SourceProblem::Rewritten,
            Moved::Replaced => SourceProblem::Replaced { is_cut },
        })
    }

    fn interfaces(&self) -> impl Iterator<Item = &Interface> {
        self.past.iter().chain(self.file.interfaces())
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
    /// Opens files; `-` is standard input. `follow` waits for more at their ends; then one that has nothing for a while holds
    /// up no other. If such a file is overwritten, or another one gets its name, reading goes on there.
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
            let file = file.map_err(failed)?;
            let is_watched =
                follow && path.as_os_str() != "-" && file.metadata().is_ok_and(|metadata| metadata.is_file());
            let input: Box<dyn Read> = match is_watched {
                true => Box::new(Watched::new(file, path.clone())),
                false => Box::new(Patient(file)),
            };
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

    /// Calls `each` with every packet in order. A file that cannot be read on is left. `problem` gets the reason, and
    /// also the reason why reading goes on in another file.
    pub fn read(&mut self, mut each: impl FnMut(&Packet<'_>), mut problem: impl FnMut(SourceError)) {
        if !self.is_begun {
            self.is_begun = true;
            for place in (0..self.live.len()).rev() {
                self.advance(place, &mut problem);
            }
        }
        while !self.live.is_empty() && !self.progress.is_stopped() {
            self.look_again(&mut problem);
            let Some(place) = self.due() else {
                let is_dry = self.live.iter().all(|source| source.is_dry);
                std::thread::sleep(if is_dry { LOOK_EVERY } else { WAIT_EVERY });
                continue;
            };
            if let Some(packet) = self.live[place].file.packet() {
                each(&packet);
            }
            self.advance(place, &mut problem);
        }
        // If it was stopped, packets that were read and wait for their neighbours count.
        while let Some((_, place)) = self.oldest() {
            let file = &mut self.live[place].file;
            if let Some(packet) = file.packet() {
                each(&packet);
            }
            file.dry();
            // What is wrong with the rest matters to nobody.
            let _ = file.advance();
        }
        for source in self.live.drain(..) {
            self.interfaces.extend(source.interfaces().cloned());
        }
    }

    /// Sources that had no packet may have one now.
    fn look_again(&mut self, problem: &mut impl FnMut(SourceError)) {
        for place in (0..self.live.len()).rev() {
            if self.live[place].is_dry {
                self.advance(place, problem);
            }
        }
    }

    /// The source whose packet is the oldest; none while others that have nothing may yet get an older one.
    fn due(&self) -> Option<usize> {
        let (_, place) = self.oldest()?;
        let is_long = |source: &Source| source.since.elapsed() >= LOOK_EVERY;
        let mut dry = self.live.iter().filter(|source| source.is_dry).peekable();
        (dry.peek().is_none() || is_long(&self.live[place]) && dry.all(is_long)).then_some(place)
    }

    /// The time and the source of the oldest packet that is there.
    fn oldest(&self) -> Option<(u64, usize)> {
        let at_ns = |source: &Source| source.file.packet().map(|packet| packet.at_ns);
        let ready = self.live.iter().enumerate().filter_map(|(place, source)| Some((at_ns(source)?, place)));
        ready.min()
    }

    /// The interfaces of all files that were read.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    fn advance(&mut self, place: usize, problem: &mut impl FnMut(SourceError)) {
        let goes_on = match self.live[place].advance() {
            Ok(has) => has != Has::Ended,
            Err(error) if error.goes_on() => {
                problem(error);
                true
            }
            Err(error) => {
                if !(self.progress.is_stopped() && error.is_cut()) {
                    problem(error);
                }
                false
            }
        };
        if !goes_on {
            let source = self.live.remove(place);
            self.interfaces.extend(source.interfaces().cloned());
        }
    }
}
