//! `onetrip capture`: a report on what passes an interface now. tcpdump captures, so that no build needs libpcap; what it writes is
//! read as `onetrip analyze` reads a file.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result, bail};
use clap::Args;
use onetrip_capture::source::{Progress, SourceError, Sources};
use onetrip_link::BitsPerSecond;
use rustix::process::{Pid, Signal, kill_process};

use crate::analyze::{AnalyzeOptions, WhatOptions, analyze};
use crate::distance::DistanceOptions;
use crate::examples;
use crate::exit::ExitCode;
use crate::judge::JudgeOptions;
use crate::output::OutputOptions;
use crate::say::say;
use crate::sides::SidesOptions;

/// KiB of packets that the kernel keeps while they wait to be read.
const KERNEL_KIB: &str = "65536";
/// What tcpdump says when it captures.
const CAPTURES: &str = "listening on";
/// What it says in the end, after a number.
const DROPPED: &str = "dropped by kernel";

#[derive(Debug, Args)]
#[command(before_help = examples::CAPTURE, after_help = "\
Runs tcpdump, which has to be installed and allowed to capture: as root, or with the capability cap_net_raw. Ctrl-C ends it and \
prints the report. Nothing is written to a disk.")]
pub(crate) struct CaptureOptions {
    /// Interface to watch, such as eth0; any stands for all of them
    #[arg(short, long, value_name = "IFACE")]
    interface: String,
    /// Packets to watch, in the language of tcpdump's filters [default: tcp]
    #[arg(value_name = "FILTER")]
    filter: Vec<String>,
    #[command(flatten)]
    what: WhatOptions,
    /// Bandwidth of the paths that are forecast, such as 32mbit [default: no limit]
    #[arg(long, value_name = "RATE", help_heading = "Forecast")]
    bandwidth: Option<BitsPerSecond>,
    #[command(flatten)]
    judge: JudgeOptions,
    #[command(flatten)]
    distance: DistanceOptions,
    #[command(flatten)]
    output: OutputOptions,
}

/// `onetrip capture`.
pub(crate) fn capture(options: CaptureOptions) -> Result<ExitCode> {
    let CaptureOptions { interface, filter, what, bandwidth, judge, distance, output } = options;
    let live = Some(Arc::new(Live::start(&interface, &filter)?));
    let (files, sides) = (Vec::new(), SidesOptions::default());
    analyze(&AnalyzeOptions { files, follow: true, live, sides, what, bandwidth, judge, distance, output })
}

/// A tcpdump that runs.
#[derive(Debug)]
pub(crate) struct Live {
    process: Mutex<Child>,
    last_words: Mutex<Option<JoinHandle<Vec<String>>>>,
}

impl Live {
    fn start(interface: &str, filter: &[String]) -> Result<Self> {
        let filter = if filter.is_empty() { "tcp".to_owned() } else { filter.join(" ") };
        let mut process = Command::new("tcpdump")
            .args(["-i", interface, "-s", "0", "-B", KERNEL_KIB, "-U", "-w", "-", "--", &filter])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start tcpdump, which captures for onetrip. Is it installed?")?;
        let told = process.stderr.take().context("no pipe from tcpdump")?;
        let mut told = BufReader::new(told);
        let before = until_it_captures(interface, &mut told)?;
        if let Some(why) = before {
            let _ = process.wait();
            let advice = if is_refused(&why) { ". Run as root, or give tcpdump cap_net_raw" } else { "" };
            bail!("tcpdump does not capture on {interface}: {why}{advice}");
        }
        say(format_args!("capturing on {interface}: {filter}. Ctrl-C prints the report"));
        let last_words = thread::Builder::new()
            .name("onetrip-tcpdump".into())
            .spawn(move || told.lines().map_while(Result::ok).collect())
            .context("cannot start a thread")?;
        Ok(Self { process: Mutex::new(process), last_words: Mutex::new(Some(last_words)) })
    }

    /// What it captures.
    pub(crate) fn sources(&self, progress: &Arc<Progress>) -> Result<Sources, SourceError> {
        let output = self.process.lock().unwrap_or_else(PoisonError::into_inner).stdout.take();
        let input: Box<dyn Read> = match output {
            Some(output) => Box::new(output),
            None => Box::new(std::io::empty()),
        };
        Sources::of_reader(Path::new("tcpdump"), input, Arc::clone(progress))
    }

    /// Asks it to end. What it has captured until then is still to be read.
    pub(crate) fn stop(&self) {
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        // One that has ended by itself, as Ctrl-C ends all of a terminal's, takes no signal: its number may be another's by now.
        if let (Ok(None), Some(pid)) = (process.try_wait(), Pid::from_raw(process.id() as i32)) {
            let _ = kill_process(pid, Signal::INT);
        }
    }

    /// Ends it, and says if it failed: packets that the kernel had no room for. To be called once, when all is read.
    pub(crate) fn dropped(&self) -> u64 {
        self.stop();
        let told = self.last_words.lock().unwrap_or_else(PoisonError::into_inner).take();
        let lines = told.and_then(|told| told.join().ok()).unwrap_or_default();
        let ended = self.process.lock().unwrap_or_else(PoisonError::into_inner).wait();
        if let Some(status) = ended.ok().filter(|status| !status.success()) {
            let why =
                lines.iter().find_map(|line| line.strip_prefix("tcpdump: ")).unwrap_or("it does not say why");
            say(format_args!("tcpdump ended with {status}: {why}; the report covers what it had captured"));
        }
        lines.iter().find_map(|line| dropped_by(line)).unwrap_or(0)
    }
}

/// Whether tcpdump says that this user may not capture.
fn is_refused(why: &str) -> bool {
    ["ermission", "not permitted"].iter().any(|part| why.contains(part))
}

/// The number in `12 packets dropped by kernel`.
fn dropped_by(line: &str) -> Option<u64> {
    line.strip_suffix(DROPPED)?.split_whitespace().next()?.parse().ok()
}

/// Reads what tcpdump says until it captures; why it does not, if it does not.
fn until_it_captures(interface: &str, told: &mut BufReader<ChildStderr>) -> Result<Option<String>> {
    let mut lines = Vec::new();
    for line in told.lines() {
        let line = line.context("cannot read what tcpdump says")?;
        if line.contains(CAPTURES) {
            return Ok(None);
        }
        lines.push(
            line.trim_start_matches("tcpdump: ").trim_start_matches(&format!("{interface}: ")).to_owned(),
        );
    }
    let why = if lines.is_empty() { "it says nothing".into() } else { lines.join(" ") };
    Ok(Some(why))
}
