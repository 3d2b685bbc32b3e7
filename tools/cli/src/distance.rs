//! Distances that a run is priced at, and `onetrip forecast`.

use std::time::Duration;

use anyhow::Result;
use clap::{Args, ValueEnum};
use onetrip_forecast::Forecast;
use onetrip_ledger::{Mutes, Summary};
use onetrip_link::BitsPerSecond;
use onetrip_report::Report;

use crate::examples;
use crate::exit::ExitCode;
use crate::files::Files;
use crate::output::{PageOptions, Stream, print, write_pages};
use crate::trace::{summarise, tell_gaps};
use crate::values::duration;

#[derive(Debug, Args)]
#[command(next_help_heading = "Forecast")]
pub(crate) struct DistanceOptions {
    /// Round-trip time to forecast, such as 12.9ms; may be repeated. Findings are ranked by what they cost at the
    /// first [default: 0.4, 1, 13 and 70 ms]
    #[arg(long, value_name = "TIME", value_parser = duration, value_delimiter = ',')]
    pub(crate) at: Vec<Duration>,
}

#[derive(Debug, Args)]
#[command(before_help = examples::FORECAST, after_help = "\
The forecast takes the trips of the trace, and makes each longer by what the distance adds. The time of the program and of \
the database stays as it was measured. docs/forecast.md says what the forecast assumes.")]
pub(crate) struct ForecastOptions {
    /// A trace. It may still be growing
    #[arg(value_name = "TRACE")]
    trace: std::path::PathBuf,
    #[command(flatten)]
    distance: DistanceOptions,
    /// Bandwidth of each direction, such as 32mbit [default: no limit]
    #[arg(long, value_name = "RATE", help_heading = "Forecast")]
    bandwidth: Option<BitsPerSecond>,
    /// Form of the forecast
    #[arg(long, value_enum, default_value_t = ForecastFormat::Text, help_heading = "Output")]
    format: ForecastFormat,
    #[command(flatten)]
    pages: PageOptions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ForecastFormat {
    /// For people
    Text,
    /// One object
    Json,
}

impl DistanceOptions {
    /// Puts the findings first that cost most at the distance that was named first.
    pub(crate) fn rank(&self, summary: &mut Summary) {
        if let Some(rtt) = self.at.first() {
            let rtt_ns = rtt.as_nanos() as f64;
            summary.findings.sort_by(|a, b| b.price_ns(rtt_ns).total_cmp(&a.price_ns(rtt_ns)));
        }
    }
}

/// `onetrip forecast`.
pub(crate) fn forecast(options: &ForecastOptions) -> Result<ExitCode> {
    options.pages.add_to(Files::default().reads("the trace", Some(&options.trace))).check()?;
    let mut analysis = summarise(&options.trace, &Mutes::default())?;
    tell_gaps(&options.trace, &analysis.summary.gaps);
    options.distance.rank(&mut analysis.summary);
    let forecast = Forecast::new(&analysis.summary, &analysis.timeline);
    let prices = forecast.prices(&options.distance.at, options.bandwidth);
    let report = Report { prices: Some(&prices), ..Report::new(&analysis.summary) };
    print(Stream::Output, |style| match options.format {
        ForecastFormat::Text => onetrip_report::forecast_text(&report, style),
        ForecastFormat::Json => onetrip_report::forecast_json(&report),
    })?;
    write_pages(&report, &analysis, &options.pages)?;
    Ok(ExitCode::SUCCESS)
}
