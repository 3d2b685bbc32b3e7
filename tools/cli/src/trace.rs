use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use onetrip_ledger::{Analysis, Analyzer, Gaps, Mutes, TraceReader};
use rustix::fs::{SeekFrom, seek};

use crate::progress::Progress;
use crate::say::say;

/// Reads a whole trace; what of it cannot be read is among the summary's gaps.
pub(crate) fn summarise(path: &Path, mutes: &Mutes) -> Result<Analysis> {
    let mut reader = TraceReader::open(path).context("cannot read the trace")?;
    let mut analyzer = Analyzer::new();
    let mut malformed = Gaps::default();
    let progress = Progress::of_file(path);
    while let Some(block) = reader.next_block()? {
        progress.advance(block.payload.len() as u64);
        if analyzer.block(block.stream, block.payload).is_err() {
            malformed.damaged_blocks += 1;
            malformed.damaged_bytes += block.payload.len() as u64;
        }
    }
    analyzer.gaps(reader.gaps());
    analyzer.gaps(malformed);
    Ok(analyzer.finish(mutes))
}

/// A trace that this process writes: another program may cut its file short or remove it meanwhile, and no write fails.
pub(crate) struct Written {
    /// Its path, device and inode; nothing where it is no file.
    file: Option<(PathBuf, u64, u64)>,
}

impl Written {
    /// The file as it is once its writer has begun.
    pub(crate) fn begun(path: Option<&Path>) -> Self {
        let metadata = path.and_then(|path| Some((path, fs::metadata(path).ok()?)));
        let file = metadata.filter(|(_, metadata)| metadata.is_file());
        Self { file: file.map(|(path, metadata)| (path.to_owned(), metadata.dev(), metadata.ino())) }
    }

    /// What another program did to the file, once its writer is done.
    pub(crate) fn loss(&self) -> Option<String> {
        let (path, dev, ino) = self.file.as_ref()?;
        let is_there = fs::metadata(path).is_ok_and(|now| (now.dev(), now.ino()) == (*dev, *ino));
        if !is_there {
            return Some("another program removed or moved its file while it was written".to_owned());
        }
        let is_whole = TraceReader::open(path).is_ok() && !has_hole(path);
        (!is_whole).then(|| "another program cut its file short while it was written".to_owned())
    }
}

/// Whether nothing was ever written to a part of the file: the writer goes on where it was, wherever the end is by now.
fn has_hole(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    let bytes = file.metadata().map_or(0, |metadata| metadata.len());
    seek(&file, SeekFrom::Hole(0)).is_ok_and(|hole| hole < bytes)
}

/// Says on standard error what is missing from a trace.
pub(crate) fn tell_gaps(path: &Path, gaps: &Gaps) {
    let path = path.display();
    if gaps.damaged_blocks > 0 {
        let (places, bytes) = (gaps.damaged_blocks, gaps.damaged_bytes);
        say(format_args!("{path}: damaged in {places} places, {bytes} bytes; what is around them is read"));
    }
    if gaps.lost_bytes > 0 {
        say(format_args!("{path}: records of {} bytes were lost when it was written", gaps.lost_bytes));
    }
    if gaps.is_open {
        let tail = match gaps.tail_bytes {
            0 => String::new(),
            bytes => format!("; the last {bytes} bytes are no complete block"),
        };
        say(format_args!(
            "{path}: it has no end, as it is still being written or its writer was killed{tail}"
        ));
    }
}
