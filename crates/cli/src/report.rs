use anyhow::Result;

use crate::args::{EXIT_JUDGED, ReportOptions};
use crate::exit::ExitCode;
use crate::judge::Judge;
use crate::output::{Stream, Subject, write};
use crate::trace::summarise;

/// `onetrip report`.
pub(crate) fn report(options: &ReportOptions) -> Result<ExitCode> {
    let judge = Judge::new(&options.judge)?;
    options.output.check()?;
    let analysis = summarise(&options.trace, &judge.mutes)?;
    let subject = Subject {
        run: None,
        how_to_connect: "",
        distance: &options.distance,
        bandwidth: options.bandwidth,
        network: None,
    };
    let passed = write(analysis, subject, &judge, &options.output, Stream::Output)?;
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::from(EXIT_JUDGED) })
}
