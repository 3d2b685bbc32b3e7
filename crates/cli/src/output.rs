use std::io::{self, IsTerminal, Write};

use anyhow::{Context, Result};
use onetrip_ledger::Summary;
use onetrip_report::{Report, RunInfo, Style};

use crate::args::{Format, OutputOptions};
use crate::judge::Judge;

/// Where a report goes that no file was named for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    /// Standard output, where a command's result belongs.
    Output,
    /// Standard error, where standard output is another program's.
    Error,
}

/// Judges the summary and writes the report; returns whether everything was kept.
pub(crate) fn write(
    summary: &Summary,
    run: Option<&RunInfo>,
    how_to_connect: &str,
    judge: &Judge<'_>,
    options: &OutputOptions,
    stream: Stream,
) -> Result<bool> {
    let (verdicts, comparison) = (judge.verdicts(summary), judge.comparison(summary));
    let report = Report {
        run,
        verdicts: &verdicts,
        fail_on: judge.fail_on(),
        comparison: comparison.as_ref(),
        how_to_connect,
        ..Report::new(summary)
    };
    let text = |style| match options.format {
        Format::Text => report.text(style),
        Format::Json => report.json(),
        Format::Junit => report.junit(),
    };
    let may_colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let style = |is_terminal| if is_terminal && may_colour { Style::Colored } else { Style::Plain };
    let written = match (&options.output, stream) {
        (Some(path), _) => {
            std::fs::write(path, text(Style::Plain))
                .with_context(|| format!("cannot write {}", path.display()))?;
            Ok(())
        }
        (None, Stream::Output) => io::stdout().write_all(text(style(io::stdout().is_terminal())).as_bytes()),
        (None, Stream::Error) => io::stderr().write_all(text(style(io::stderr().is_terminal())).as_bytes()),
    };
    match written {
        // Whoever reads the report has had enough of it.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        written => written.context("cannot write the report")?,
    }
    Ok(report.is_passed())
}
