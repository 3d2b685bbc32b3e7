use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
#[cfg(feature = "parquet")]
use onetrip_export::parquet;
use onetrip_export::{ExportError, csv, json_lines};
use onetrip_ledger::{Gaps, TraceReader};

use crate::args::{ExportFormat, ExportOptions};
use crate::exit::ExitCode;
use crate::files::Files;
use crate::progress::Progress;
use crate::trace::tell_gaps;

/// `onetrip export`.
pub(crate) fn export(options: &ExportOptions) -> Result<ExitCode> {
    options.format.check()?;
    let files = Files::default().reads("the trace", Some(&options.trace));
    files.writes("--output", options.output.as_deref()).check()?;
    let gaps = write(&options.trace, options.format, options.output.as_deref())?;
    tell_gaps(&options.trace, &gaps);
    Ok(ExitCode::SUCCESS)
}

impl ExportFormat {
    /// Fails if this build cannot write the format.
    pub(crate) fn check(self) -> Result<()> {
        #[cfg(not(feature = "parquet"))]
        if self == Self::Parquet {
            anyhow::bail!(
                "this onetrip cannot write Parquet. Install one that can: \
                 cargo install --locked --path tools/cli --features parquet"
            );
        }
        Ok(())
    }

    /// Fails if this build cannot write the format, or if nothing can be written to the path.
    #[cfg(feature = "capture")]
    pub(crate) fn prepare(self, path: &Path) -> Result<()> {
        self.check()?;
        match self {
            Self::Csv | Self::Jsonl => {
                File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
            }
            #[cfg(feature = "parquet")]
            Self::Parquet => onetrip_export::new_directory(path)?,
            #[cfg(not(feature = "parquet"))]
            Self::Parquet => {}
        }
        Ok(())
    }
}

/// Writes the exchanges of a trace to `output`, or to standard output if there is none. Returns what is missing from it.
pub(crate) fn write(trace: &Path, format: ExportFormat, output: Option<&Path>) -> Result<Gaps> {
    let mut reader = TraceReader::open(trace).context("cannot read the trace")?;
    let out = || -> Result<BufWriter<Box<dyn Write>>> {
        Ok(BufWriter::new(match output {
            Some(path) => {
                Box::new(File::create(path).with_context(|| format!("cannot write {}", path.display()))?)
            }
            None => Box::new(io::stdout()),
        }))
    };
    let progress = Progress::of_file(trace);
    let read = |bytes| progress.advance(bytes);
    let done = match format {
        ExportFormat::Csv => csv(&mut reader, out()?, read),
        ExportFormat::Jsonl => json_lines(&mut reader, out()?, read),
        ExportFormat::Parquet => {
            parquet(&mut reader, output.context("Parquet needs a directory: set --output")?, read)
        }
    };
    match done {
        // Whoever reads the export has had enough of it.
        Err(ExportError::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(reader.gaps()),
        done => Ok(done?),
    }
}

/// Not in this build; [`ExportFormat::check`] has said so.
#[cfg(not(feature = "parquet"))]
fn parquet(_: &mut TraceReader, _: &Path, _: impl FnMut(u64)) -> Result<Gaps, ExportError> {
    Err(io::Error::from(io::ErrorKind::Unsupported).into())
}
