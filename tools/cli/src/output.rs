use std::io::{self, IsTerminal, Write};
use std::iter;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use onetrip_forecast::Forecast;
use onetrip_ledger::Analysis;
use onetrip_ledger::judge::Ruling;
use onetrip_ledger::network::NetworkSummary;
use onetrip_ledger::sides::TwoSides;
use onetrip_link::BitsPerSecond;
use onetrip_report::{Report, RunInfo, Screen, Style};

use crate::distance::DistanceOptions;
use crate::exit::ExitCode;
use crate::files::{Files, directory_of};
use crate::judge::{Judge, Missing};
use crate::masked::masked;
use crate::say::say;

/// How the report comes out.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputOptions {
    /// Form of the report
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Write the report to a file
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) pages: PageOptions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Text,
    /// One object
    Json,
    /// Budgets as test cases
    Junit,
    /// For a pull request
    Markdown,
}

/// Files for the eye.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct PageOptions {
    /// Write the report as one HTML page that needs nothing else
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Draw what the run costs over distance: an .svg or .png file
    #[arg(long, value_name = "FILE", value_parser = chart_path)]
    pub(crate) chart: Option<PathBuf>,
}

/// Where a report goes that no file was named for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    /// Standard output, where a command's result belongs.
    Output,
    /// Standard error, where standard output is another program's.
    Error,
}

/// What a report is about.
#[derive(Debug, Clone)]
pub(crate) struct Subject<'a> {
    pub(crate) run: Option<&'a RunInfo>,
    pub(crate) how_to_connect: &'a str,
    pub(crate) distance: &'a DistanceOptions,
    /// Bandwidth of the paths that are forecast.
    pub(crate) bandwidth: Option<BitsPerSecond>,
    /// What packets tell of the network, where a capture was read.
    pub(crate) network: Option<&'a NetworkSummary>,
    /// Where each millisecond went, where captures of both ends were read.
    pub(crate) sides: Option<&'a TwoSides>,
    /// What is missing from what was counted, the trace left out.
    pub(crate) missing: Missing,
    /// The program that was run failed.
    pub(crate) has_failed: bool,
}

impl OutputOptions {
    /// Finds out before a run what could not be written after it, or would be written over one of its files.
    pub(crate) fn check(&self, files: Files) -> Result<()> {
        self.pages.add_to(files.writes("--output", self.output.as_deref())).check()?;
        let files = [&self.output, &self.pages.html, &self.pages.chart];
        for file in files.into_iter().flatten() {
            let directory = directory_of(file);
            if !directory.is_dir() {
                bail!("{}: there is no directory {}", file.display(), directory.display());
            }
            if file.is_dir() {
                bail!("{} is a directory; name a file", file.display());
            }
        }
        Ok(())
    }
}

impl PageOptions {
    /// Puts the files into those of the command.
    pub(crate) fn add_to(&self, files: Files) -> Files {
        files.writes("--html", self.html.as_deref()).writes("--chart", self.chart.as_deref())
    }
}

/// Judges what was counted and writes the report; returns how that came out.
pub(crate) fn write(
    mut analysis: Analysis,
    subject: Subject<'_>,
    judge: &Judge,
    options: &OutputOptions,
    stream: Stream,
) -> Result<ExitCode> {
    subject.distance.rank(&mut analysis.summary);
    let summary = &analysis.summary;
    let prices = (summary.sessions > 0)
        .then(|| Forecast::new(summary, &analysis.timeline).prices(&subject.distance.at, subject.bandwidth));
    let trace_error = subject.run.and_then(|run| run.trace_error.as_deref());
    let incomplete = trace_error.map(|error| format!("the trace does not hold the whole run: {error}"));
    let mut missing = subject.missing;
    missing.incomplete = incomplete.or(missing.incomplete);
    let judgement = judge.judge(summary, &missing);
    let report = Report {
        run: subject.run,
        judgement: Some(&judgement),
        prices: prices.as_ref(),
        how_to_connect: subject.how_to_connect,
        network: subject.network,
        sides: subject.sides,
        ..Report::new(summary)
    };
    let text = |screen: Screen| match options.format {
        Format::Text => onetrip_report::text(&report, screen),
        Format::Json => onetrip_report::json(&report),
        Format::Junit => onetrip_report::junit(&report),
        Format::Markdown => onetrip_report::markdown(&report),
    };
    match &options.output {
        Some(path) => save(path, text(Style::Plain.into()).as_bytes())?,
        None => print(stream, text)?,
    }
    write_pages(&report, &analysis, &options.pages)?;
    let updated = judge.update(summary, &missing, subject.has_failed)?;
    tell_verdicts(&report);
    Ok(match report.ruling().max(updated) {
        // What was asked for was not done, and there is nobody else to say so.
        Ruling::Passed if missing.incomplete.is_some() && !judge.is_asked() => ExitCode::FAILED,
        ruling => ruling.into(),
    })
}

/// Says on standard error what failed and what could not be judged, one line each, wherever the report goes.
fn tell_verdicts(report: &Report<'_>) {
    let failed: Vec<String> = report.verdicts_of(Ruling::Failed).collect();
    if !failed.is_empty() {
        say(format_args!("check failed: {}", failed.join("; ")));
    }
    let with_option = |(reason, option): (String, Option<&str>)| match option {
        Some(option) => format!("{reason} ({option} takes it as it is)"),
        None => reason,
    };
    let reasons: Vec<String> = report.reasons_shown().map(with_option).collect();
    if !reasons.is_empty() {
        say(format_args!("could not be judged: {}", reasons.join("; ")));
    }
}

/// Writes the files that were asked for, and says where they are.
pub(crate) fn write_pages(report: &Report<'_>, analysis: &Analysis, options: &PageOptions) -> Result<()> {
    if let Some(path) = &options.html {
        let words: Vec<_> = iter::once("onetrip".into()).chain(std::env::args_os().skip(1)).collect();
        let command = masked(&words);
        let report = Report { command: &command, ..*report };
        save(path, onetrip_report::html(&report, &analysis.timeline).as_bytes())?;
        say(format_args!("page written to {}", path.display()));
    }
    if let Some(path) = &options.chart {
        match chart(report, path)? {
            Some(drawing) => {
                save(path, &drawing)?;
                say(format_args!("chart written to {}", path.display()));
            }
            None => {
                say(format_args!("there is nothing to draw in {}: no session was counted", path.display()))
            }
        }
    }
    Ok(())
}

/// Prints what is made for a screen: as wide as the terminal, and in colour there, unless `NO_COLOR` is set or the terminal is
/// dumb; with `CLICOLOR_FORCE`, elsewhere, too (<https://no-color.org>, <https://bixense.com/clicolors>).
pub(crate) fn print(stream: Stream, text: impl FnOnce(Screen) -> String) -> Result<()> {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_forced = std::env::var_os("CLICOLOR_FORCE").is_some_and(|value| !value.is_empty() && value != "0");
    let is_dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    let is_colored = |is_terminal: bool| !is_set("NO_COLOR") && (is_forced || is_terminal && !is_dumb);
    let screen = |is_terminal, columns| {
        let style = if is_colored(is_terminal) { Style::Colored } else { Style::Plain };
        Screen::new(style, columns)
    };
    let (mut out, mut error) = (io::stdout(), io::stderr());
    let printed = match stream {
        Stream::Output => out.write_all(text(screen(out.is_terminal(), columns(&out))).as_bytes()),
        Stream::Error => error.write_all(text(screen(error.is_terminal(), columns(&error))).as_bytes()),
    };
    match printed {
        // Whoever reads the report has had enough of it.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        printed => printed.context("cannot write the report"),
    }
}

/// Columns of a terminal; `None` for what is none, or does not tell.
fn columns(stream: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

fn save(path: &Path, bytes: &[u8]) -> Result<()> {
    std::fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

/// The curve as a picture of the kind that the file's name asks for.
fn chart(report: &Report<'_>, path: &Path) -> Result<Option<Vec<u8>>> {
    let Some(prices) = report.prices().filter(|_| report.summary.trips.total > 0) else { return Ok(None) };
    let title = report.headline();
    match path {
        #[cfg(feature = "png")]
        path if is_png(path) => Ok(onetrip_report::curve_png(&prices.curve, &title).transpose()?),
        _ => Ok(onetrip_report::curve_svg(&prices.curve, &title).map(String::into_bytes)),
    }
}

fn is_png(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("png"))
}

fn chart_path(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let is_svg = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("svg"));
    match (is_svg, is_png(&path)) {
        (false, false) => Err("its name must end in .svg or .png".to_owned()),
        (false, true) if cfg!(not(feature = "png")) => {
            Err("this onetrip was built without PNG files: the name must end in .svg".to_owned())
        }
        _ => Ok(path),
    }
}
