use std::process::ExitCode;

use anyhow::Result;

use crate::args::{EXIT_JUDGED, ReportOptions};
use crate::judge::Judge;
use crate::output::{Stream, write};
use crate::trace::summarise;

/// `onetrip report`.
pub(crate) fn report(options: &ReportOptions) -> Result<ExitCode> {
    let judge = Judge::new(&options.judge)?;
    let summary = summarise(&options.trace, &judge.mutes)?;
    let passed = write(&summary, None, "", &judge, &options.output, Stream::Output)?;
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::from(EXIT_JUDGED) })
}
