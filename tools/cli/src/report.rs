use anyhow::Result;

use crate::args::ReportOptions;
use crate::exit::ExitCode;
use crate::judge::{Judge, Missing};
use crate::output::{Stream, Subject, write};
use crate::trace::{summarise, tell_gaps};

/// `onetrip report`.
pub(crate) fn report(options: &ReportOptions) -> Result<ExitCode> {
    options.output.check(options.judge.files().reads("the trace", Some(&options.trace)))?;
    let judge = Judge::new(&options.judge)?;
    let analysis = summarise(&options.trace, &judge.mutes)?;
    tell_gaps(&options.trace, &analysis.summary.gaps);
    let subject = Subject {
        run: None,
        how_to_connect: "",
        distance: &options.distance,
        bandwidth: options.bandwidth,
        network: None,
        sides: None,
        missing: Missing::default(),
        has_failed: false,
    };
    write(analysis, subject, &judge, &options.output, Stream::Output)
}
