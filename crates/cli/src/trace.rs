use std::path::Path;

use anyhow::{Context, Result};
use onetrip_ledger::{Analysis, Analyzer, Mutes, TraceReader};

/// Reads a whole trace.
pub(crate) fn summarise(path: &Path, mutes: &Mutes) -> Result<Analysis> {
    let mut reader = TraceReader::open(path)?;
    let mut analyzer = Analyzer::new();
    while let Some(block) = reader.next_block()? {
        analyzer.block(block.stream, block.payload).with_context(|| format!("{}", path.display()))?;
    }
    match reader.ignored_bytes() {
        0 => {}
        bytes => eprintln!(
            "onetrip: {}: the last {bytes} bytes are no complete block (the trace is still being written, or its \
             writer was stopped); the report covers what is before",
            path.display()
        ),
    }
    Ok(analyzer.finish(mutes))
}
