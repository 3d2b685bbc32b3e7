use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{ArgGroup, Args, ValueEnum};
use indicatif::{ProgressBar, ProgressDrawTarget};
use onetrip_capture::source::{Progress, Sources};
use onetrip_capture::{Capture, CaptureConfig, KeyLog, without_times};
use onetrip_ledger::network::CaptureFacts;
use onetrip_ledger::trace::{TRACE_STREAM, TraceHeader};
use onetrip_ledger::{Analyzer, StreamEncoder, TraceError, TraceWriter};
use onetrip_link::BitsPerSecond;
use onetrip_report::RunInfo;
use tempfile::TempDir;

use crate::args::ExportFormat;
use crate::capture::Live;
use crate::distance::DistanceOptions;
use crate::examples;
use crate::exit::ExitCode;
use crate::export;
use crate::files::Files;
use crate::judge::{Judge, JudgeOptions, Missing};
use crate::output::{OutputOptions, Stream, Subject, write};
use crate::progress::{self, style};
use crate::say::say;
use crate::sides::SidesOptions;
use crate::stop;
use crate::trace::tell_gaps;

/// The bar is drawn anew this often.
const DRAW_EVERY: Duration = Duration::from_millis(200);

#[derive(Debug, Args)]
#[command(before_help = examples::ANALYZE, after_help = "\
Reads pcap and pcapng, also compressed by gzip or zstd: Ethernet, Linux cooked (v1 and v2), null and raw, VLANs, \
IPv4 and IPv6 with extensions and fragments. Several files are read in the order of their packets.

PostgreSQL, MySQL and MariaDB are decoded: statements, findings and forecast are those of live traffic. Any other \
protocol is counted by whose turn it is, under its port's name. What was not captured is shown as unknown, never guessed \
(docs/captures.md).

Ctrl-C prints the report on what was read.")]
pub(crate) struct AnalyzeOptions {
    /// Captures; - is standard input
    #[arg(value_name = "FILE", required_unless_present = "client", conflicts_with = "client")]
    pub(crate) files: Vec<PathBuf>,
    /// Wait for more at the ends of files that are being written
    #[arg(long)]
    pub(crate) follow: bool,
    /// What is captured now, in place of files.
    #[arg(skip)]
    pub(crate) live: Option<Arc<Live>>,
    #[command(flatten)]
    pub(crate) sides: SidesOptions,
    #[command(flatten)]
    pub(crate) what: WhatOptions,
    /// Bandwidth of the paths that are forecast, such as 32mbit [default: no limit]
    #[arg(long, value_name = "RATE", help_heading = "Forecast")]
    pub(crate) bandwidth: Option<BitsPerSecond>,
    #[command(flatten)]
    pub(crate) judge: JudgeOptions,
    #[command(flatten)]
    pub(crate) distance: DistanceOptions,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

/// What of a capture is looked at.
#[derive(Debug, Args)]
#[command(next_help_heading = "Capture", group = ArgGroup::new("kept").args(["trace", "export"]).multiple(true))]
pub(crate) struct WhatOptions {
    /// Look at connections to this server port only; give it once for each
    #[arg(long = "port", value_name = "PORT")]
    pub(crate) ports: Vec<u16>,
    /// PostgreSQL listens at this port, too; connections seen from their beginning are known without
    #[arg(long = "postgres-port", value_name = "PORT")]
    pub(crate) postgres_ports: Vec<u16>,
    /// MySQL or MariaDB listens at this port, too; connections seen from their beginning are known without
    #[arg(long = "mysql-port", value_name = "PORT")]
    pub(crate) mysql_ports: Vec<u16>,
    /// The program whose packets these are, such as "python app.py": tells drivers apart that look alike on the wire
    #[arg(long, value_name = "COMMAND", default_value = "", hide_default_value = true)]
    pub(crate) program: String,
    /// Secrets of TLS sessions, in the format of SSLKEYLOGFILE: their statements are then known, too
    #[arg(long, value_name = "FILE")]
    pub(crate) keylog: Option<PathBuf>,
    /// Write a trace of all exchanges, for report, forecast and export; values are kept as keyed hashes only
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Write all exchanges to --export-to, as onetrip export does
    #[arg(long, value_enum, value_name = "FORMAT", requires = "export_to")]
    pub(crate) export: Option<CaptureExport>,
    /// Where --export writes: a file. For Parquet: a new directory
    #[arg(long, value_name = "PATH", requires = "export")]
    pub(crate) export_to: Option<PathBuf>,
    /// Keep parameters' values in the trace and in the export
    #[arg(long, requires = "kept")]
    pub(crate) keep_values: bool,
}

/// What a capture's exchanges can be written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CaptureExport {
    /// As --trace does
    Trace,
    /// A line of names, then a line for each exchange
    Csv,
    /// One JSON object per exchange and line
    Jsonl,
    /// Directories by day and host, with a row for each exchange. Needs a build with --features parquet
    Parquet,
}

impl CaptureExport {
    /// The format of `onetrip export`; none for a trace.
    fn format(self) -> Option<ExportFormat> {
        match self {
            Self::Trace => None,
            Self::Csv => Some(ExportFormat::Csv),
            Self::Jsonl => Some(ExportFormat::Jsonl),
            Self::Parquet => Some(ExportFormat::Parquet),
        }
    }
}

/// `onetrip analyze`.
pub(crate) fn analyze(options: &AnalyzeOptions) -> Result<ExitCode> {
    options.output.check(files(options))?;
    let judge = Judge::new(&options.judge)?;
    let mut exporting = Exporting::new(&options.what)?;
    let keys = options.what.keylog.as_deref().map(read_keys).transpose()?;
    let progress = Arc::new(Progress::default());
    let mut stop = stop::Waiter::new()?;
    let (stopping, live) = (Arc::clone(&progress), options.live.clone());
    // It ends with the process: nothing waits for a signal that need not come.
    thread::Builder::new()
        .name("onetrip-stop".into())
        .spawn(move || {
            stop.wait();
            match live {
                Some(live) => live.stop(),
                None => stopping.stop.store(true, Ordering::Relaxed),
            }
        })
        .context("cannot start a thread")?;
    let files = if options.files.is_empty() { &options.sides.client } else { &options.files };
    let mut sources = match &options.live {
        Some(live) => live.sources(&progress)?,
        None => {
            Sources::open(files, options.follow, Arc::clone(&progress)).context("cannot read the capture")?
        }
    };
    let mut books = Books::new(options.what.keep_values, exporting.traces());
    let bar = bar(options, Arc::clone(&progress));
    let mut problems = Vec::new();
    let mut begun_again = None;
    let config = CaptureConfig {
        keep_values: options.what.keep_values,
        ports: options.what.ports.clone(),
        postgres_ports: options.what.postgres_ports.clone(),
        mysql_ports: options.what.mysql_ports.clone(),
        program: options.what.program.clone(),
        keys: keys.map(Arc::new),
        records_stay: exporting.traces().is_empty(),
    };
    let mut both = options.sides.open(&config, &progress)?;
    let mut capture = Capture::new(config);
    sources.read(
        |packet| {
            if let Some(both) = &mut both {
                both.packet(packet);
            }
            let started_ns = capture.started_unix_ns().unwrap_or(packet.at_ns);
            capture.packet(packet, &mut |stream, block| books.take(stream, block, started_ns));
        },
        |problem| match problem.goes_on() {
            // At once, and not kept: there may be many in a long time.
            true => {
                bar.say(format_args!("{problem}; reading goes on at the beginning of the new file"));
                if problem.may_miss_packets() {
                    begun_again.get_or_insert_with(|| problem.to_string());
                }
            }
            false => problems.push(problem),
        },
    );
    let both = both.and_then(|both| both.merge(|problem| problems.push(problem)));
    bar.end();
    let mut unread = begun_again.filter(|_| judge.is_asked());
    for problem in &problems {
        let rest = if problem.is_cut() {
            books.is_cut = true;
            "the report covers what is before"
        } else {
            unread.get_or_insert_with(|| problem.to_string());
            "the report covers what was read before it"
        };
        say(format_args!("{problem}; {rest}"));
    }
    let dropped: u64 = sources.interfaces().iter().map(|interface| interface.dropped).sum();
    let dropped = dropped + options.live.as_ref().map_or(0, |live| live.dropped());
    let started_ns = capture.started_unix_ns().unwrap_or_default();
    let mut network = capture.finish(dropped, &mut |stream, block| books.take(stream, block, started_ns));
    if let Some(lack) = lack(&network.capture).filter(|_| judge.is_asked()) {
        unread.get_or_insert(lack);
    }
    let Finished { analyzer, has_trace, trace_error } = books.finish()?;
    let mut analysis = analyzer.finish(&judge.mutes);
    let untimed: u64 = sources.interfaces().iter().map(|interface| interface.untimed).sum();
    if untimed > 0 {
        without_times(&mut network, untimed);
        analysis.summary.rtt_min_us = None;
        let have = if untimed == 1 { "packet has no time" } else { "packets have no times" };
        let problem = format!("{untimed} {have} in the capture (Simple Packet Blocks)");
        say(format_args!("{problem}; times of the report are not measured"));
        if judge.is_asked() {
            unread.get_or_insert(problem);
        }
    }
    exporting.write(has_trace)?;
    let run = trace_error.map(|error| RunInfo { trace_error: Some(error), ..RunInfo::default() });
    let how = "Was it made on the right interface, without a filter that leaves out the database's port?";
    let subject = Subject {
        run: run.as_ref(),
        how_to_connect: how,
        distance: &options.distance,
        bandwidth: options.bandwidth,
        network: Some(&network),
        sides: both.as_ref(),
        missing: Missing { incomplete: unread, ..Missing::default() },
        has_failed: false,
    };
    write(analysis, subject, &judge, &options.output, Stream::Output)
}

/// What the capture lacks so that its trips may be others than those that were made.
fn lack(capture: &CaptureFacts) -> Option<String> {
    let CaptureFacts { missed_bytes, cut_packets, half_seen, dropped_packets, .. } = capture;
    if *missed_bytes > 0 {
        return Some(format!("{missed_bytes} bytes that were acknowledged are not in the capture"));
    }
    if *cut_packets > 0 {
        return Some(format!("{cut_packets} packets were captured in part; tcpdump -s 0 keeps all of them"));
    }
    if *half_seen > 0 {
        return Some(format!("of {half_seen} connections, only one direction is in the capture"));
    }
    (*dropped_packets > 0).then(|| format!("the capture dropped {dropped_packets} packets"))
}

/// The files that are read and written, but for the report's.
fn files(options: &AnalyzeOptions) -> Files {
    let (what, sides) = (&options.what, &options.sides);
    let captures = options.files.iter().chain(&sides.client).chain(&sides.server);
    let files = captures.fold(options.judge.files(), |files, capture| {
        let path = if capture.as_os_str() == "-" { Path::new("/dev/stdin") } else { capture };
        files.reads("a capture", Some(path))
    });
    files
        .reads("--keylog", what.keylog.as_deref())
        .writes("--trace", what.trace.as_deref())
        .writes("--export-to", what.export_to.as_deref())
}

/// The key log, as it is now: sessions that begin later are not in it.
fn read_keys(path: &Path) -> Result<KeyLog> {
    let text = std::fs::read(path).with_context(|| format!("cannot read the key log {}", path.display()))?;
    let log = KeyLog::parse(&text).with_context(|| format!("cannot read the key log {}", path.display()))?;
    if log.sessions() == 0 {
        say(format_args!("{}: it has no secrets, so no TLS session can be read", path.display()));
    }
    Ok(log)
}

/// What is written of a capture's exchanges beside the report.
struct Exporting {
    /// The trace: one that is asked for, or one to export from.
    trace: Option<PathBuf>,
    /// What goes when the export is written.
    temporary: Option<TempDir>,
    /// A second trace of the same.
    copy_to: Option<PathBuf>,
    export: Option<(ExportFormat, PathBuf)>,
}

impl Exporting {
    fn new(what: &WhatOptions) -> Result<Self> {
        let mut exporting = Self { trace: what.trace.clone(), temporary: None, copy_to: None, export: None };
        let (Some(export), Some(to)) = (what.export, &what.export_to) else { return Ok(exporting) };
        let Some(format) = export.format() else {
            match &exporting.trace {
                Some(_) => exporting.copy_to = Some(to.clone()),
                None => exporting.trace = Some(to.clone()),
            }
            return Ok(exporting);
        };
        // A capture that was made live cannot be made again: whether there is a place for it is asked first.
        format.prepare(to)?;
        if exporting.trace.is_none() {
            let temporary = tempfile::tempdir().context("cannot make a temporary directory")?;
            exporting.trace = Some(temporary.path().join("capture.trace"));
            exporting.temporary = Some(temporary);
        }
        exporting.export = Some((format, to.clone()));
        Ok(exporting)
    }

    /// Where traces go, the one to export from first.
    fn traces(&self) -> Vec<PathBuf> {
        self.trace.iter().chain(&self.copy_to).cloned().collect()
    }

    fn write(&mut self, has_trace: bool) -> Result<()> {
        // Where nothing was captured, there is no trace either.
        if let (true, Some(trace), Some((format, to))) = (has_trace, &self.trace, &self.export) {
            tell_gaps(to, &export::write(trace, *format, Some(to))?);
        }
        self.temporary = None;
        Ok(())
    }
}

/// Where records go.
struct Books {
    analyzer: Analyzer,
    keep_values: bool,
    paths: Vec<PathBuf>,
    traces: Option<Vec<Trace>>,
    /// Why a trace does not hold everything.
    trace_error: Option<String>,
    failed: Option<TraceError>,
    /// A file ends within a packet: it is still being written, or its writer was killed.
    is_cut: bool,
}

/// A trace that is being written.
struct Trace {
    writer: TraceWriter,
    lost_bytes: u64,
}

/// What the books end with.
struct Finished {
    analyzer: Analyzer,
    /// The first of the traces was written, be it in part.
    has_trace: bool,
    trace_error: Option<String>,
}

impl Books {
    fn new(keep_values: bool, paths: Vec<PathBuf>) -> Self {
        let analyzer = Analyzer::new();
        Self { analyzer, keep_values, paths, traces: None, trace_error: None, failed: None, is_cut: false }
    }

    /// A block of records, whose times count from `started_ns`.
    fn take(&mut self, stream: u32, block: &[u8], started_ns: u64) {
        self.write(stream, block, started_ns);
        if let Err(error) = self.analyzer.block(stream, block) {
            self.failed.get_or_insert(error);
        }
    }

    /// A trace that cannot be written ends; the report is on all that is read.
    fn write(&mut self, stream: u32, block: &[u8], started_ns: u64) {
        let Self { keep_values, paths, traces, trace_error, .. } = self;
        let mut failed = |error: TraceError| {
            if trace_error.is_none() {
                say(format_args!("{error}; the trace ends here, the report goes on"));
                *trace_error = Some(error.to_string());
            }
        };
        let traces = traces.get_or_insert_with(|| {
            let header = TraceHeader { started_unix_nanos: started_ns, ..TraceHeader::now(*keep_values) };
            let created = paths.iter().map(|path| TraceWriter::create(path, header));
            let created = created.filter_map(|writer| writer.map_err(&mut failed).ok());
            created.map(|writer| Trace { writer, lost_bytes: 0 }).collect()
        });
        for trace in traces {
            if let Err(error) = trace.writer.append(stream, block) {
                trace.lost_bytes += block.len() as u64;
                failed(error);
            }
        }
    }

    fn finish(mut self) -> Result<Finished> {
        if let Some(error) = self.failed {
            return Err(error.into());
        }
        let traces = self.traces.unwrap_or_default();
        let first = self.paths.first();
        let has_trace = first.is_some_and(|path| traces.iter().any(|trace| trace.writer.path() == path));
        for Trace { writer, lost_bytes } in traces {
            if let Err(error) = writer.finish(lost_bytes) {
                self.trace_error.get_or_insert(error.to_string());
            }
        }
        if !self.is_cut {
            let mut end = StreamEncoder::default();
            end.end(None);
            self.analyzer.block(TRACE_STREAM, &end.take_block())?;
        }
        Ok(Finished { analyzer: self.analyzer, has_trace, trace_error: self.trace_error })
    }
}

/// The progress bar, on a terminal: bytes read, bytes per second, time left.
struct Bar {
    bar: ProgressBar,
}

fn bar(options: &AnalyzeOptions, progress: Arc<Progress>) -> Bar {
    let size = |path: &PathBuf| {
        std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file).map(|file| file.len())
    };
    let files = [&options.files, &options.sides.client, &options.sides.server].into_iter().flatten();
    let sizes: Option<u64> = files.map(size).sum();
    let bar = match sizes.filter(|_| !options.follow) {
        Some(bytes) => ProgressBar::new(bytes).with_style(style(progress::BYTES)),
        None => ProgressBar::new_spinner().with_style(style("{spinner} {bytes}, {bytes_per_sec}, {elapsed}")),
    };
    bar.set_draw_target(ProgressDrawTarget::stderr());
    if !bar.is_hidden() {
        let drawn = bar.clone();
        // It ends with the bar.
        let _ = thread::Builder::new().name("onetrip-bar".into()).spawn(move || {
            while !drawn.is_finished() {
                drawn.set_position(progress.read.load(Ordering::Relaxed));
                thread::sleep(DRAW_EVERY);
            }
        });
    }
    Bar { bar }
}

impl Bar {
    /// Says something while it is drawn.
    fn say(&self, line: impl Display) {
        self.bar.suspend(|| say(line));
    }

    fn end(&self) {
        self.bar.finish_and_clear();
    }
}
