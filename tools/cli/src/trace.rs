use std::path::Path;

use anyhow::{Context, Result};
use onetrip_ledger::{Analysis, Analyzer, Gaps, Mutes, TraceReader};

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
