use std::fs::File;
use std::io::{self, BufWriter, Write};

use anyhow::{Context, Result};
use onetrip_export::{ExportError, json_lines};
use onetrip_ledger::TraceReader;

use crate::args::{ExportFormat, ExportOptions};
use crate::exit::ExitCode;
use crate::trace::tell_gaps;

/// `onetrip export`.
pub(crate) fn export(options: &ExportOptions) -> Result<ExitCode> {
    let mut reader = TraceReader::open(&options.trace)?;
    let out: Box<dyn Write + Send> = match &options.output {
        Some(path) => {
            Box::new(File::create(path).with_context(|| format!("cannot write {}", path.display()))?)
        }
        None => Box::new(io::stdout()),
    };
    let out = BufWriter::new(out);
    let done = match options.format {
        ExportFormat::Jsonl => json_lines(&mut reader, out),
        #[cfg(feature = "parquet")]
        ExportFormat::Parquet => onetrip_export::parquet(&mut reader, out),
    };
    match done {
        // Whoever reads the export has had enough of it.
        Err(ExportError::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => {}
        done => done?,
    }
    tell_gaps(&options.trace, &reader.gaps());
    Ok(ExitCode::SUCCESS)
}
