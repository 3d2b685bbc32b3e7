//! `onetrip lab tune`: a fetch size and a prefetch for one result, chosen and checked.

use crate::examples;
use crate::exit::ExitCode;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use onetrip_lab::tune::{self, Checked, Choice, Prefetch, Shape, Task};
use onetrip_link::{BitsPerSecond, ByteSize, HumanDuration};
use onetrip_report::count;

use crate::lab::{ended, listen_for_stop};
use crate::values::duration;

const ROWS: u64 = 1_000;
const ROW_BYTES: u64 = 50;
const SHARE_PERCENT: u64 = 100;
const RTT: Duration = Duration::from_millis(1);
/// Rows of a check, at most.
const ROWS_MAX: u64 = 1_000_000;

#[derive(Debug, Args)]
#[command(before_help = examples::TUNE, after_help = "\
Numbers, a table, or a trace of `onetrip run` describe what is read. Numbers take precedence. A table gives its rows \
and their width. Its widest column is the large value if it has 1,000 bytes or more on average. A trace gives the result \
with the most rows. It also gives the large values that were read one by one after that result, their number, and the \
path.

A model chooses the settings. Unless --no-check is set, the choice and its neighbours are then measured on a table of \
that shape. The settings are printed in the terms of the drivers.")]
pub(crate) struct TuneOptions {
    /// Rows and sizes are those of this table of --database
    #[arg(long, value_name = "NAME", requires = "database")]
    table: Option<String>,
    /// Rows, sizes, share and round-trip time are those that this trace has seen
    #[arg(long, value_name = "FILE", conflicts_with = "table")]
    trace: Option<PathBuf>,
    /// Rows of the result [default: 1000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=ROWS_MAX))]
    rows: Option<u64>,
    /// Size of a row without its large value [default: 50B]
    #[arg(long, value_name = "SIZE")]
    row: Option<ByteSize>,
    /// Size of the large value in each row [default: there is none]
    #[arg(long, value_name = "SIZE")]
    lob: Option<ByteSize>,
    /// In how many of a hundred rows the large value is looked at [default: 100]
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u64).range(0..=100))]
    share: Option<u64>,
    /// Round-trip time to the database [default: 1ms]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    rtt: Option<Duration>,
    /// Bandwidth of the path
    #[arg(long, value_name = "RATE", default_value = "1gbit")]
    bandwidth: BitsPerSecond,
    /// What the client may hold at once for messages and rows
    #[arg(long, value_name = "SIZE", default_value = "16MiB")]
    memory: ByteSize,
    /// Print what the model chooses, and measure nothing
    #[arg(long)]
    no_check: bool,
    /// Measure on this PostgreSQL, given as URL or keyword DSN
    #[arg(long, value_name = "URL")]
    database: Option<String>,
}

/// `onetrip lab tune`.
pub(crate) fn tune(options: &TuneOptions) -> Result<ExitCode> {
    let shape = match (&options.table, &options.trace, &options.database) {
        (Some(table), _, Some(database)) => Some(tune::of_table(database, table)?),
        (_, Some(trace), _) => Some(tune::of_trace(trace)?),
        _ => None,
    };
    let task = task(options, shape.as_ref());
    if let Some(shape) = &shape {
        print_task(shape, &task);
    }
    let choice = task.choose();
    let (trips, memory) = (count(choice.trips), onetrip_lab::bytes(choice.memory));
    println!("fetch size {}, {}", choice.fetch, words(&task, choice.prefetch));
    println!("model: {trips} trips, {} on the path, {memory} held", shown(choice.time));
    if choice.memory > task.memory {
        println!("nothing fits into {}: this is what holds least", options.memory);
    }
    if !options.no_check {
        let stopped = listen_for_stop()?;
        let told = |told: &str| eprintln!("onetrip: {told}");
        match tune::check(&task, &choice, options.database.as_deref(), &stopped, &told) {
            Ok(checked) => print_check(&task, &choice, &checked),
            Err(error) => return ended(Err(error.into())),
        }
    }
    println!();
    for (driver, line) in tune::settings(&task, &choice) {
        println!("{driver:<24} {line}");
    }
    Ok(ExitCode::SUCCESS)
}

/// What was said goes before what was found, and that before the defaults.
fn task(options: &TuneOptions, shape: Option<&Shape>) -> Task {
    let bytes = |size: Option<ByteSize>| size.map(|size| usize::from(size) as u64);
    Task {
        rows: options.rows.or(shape.map(|shape| shape.rows)).unwrap_or(ROWS).clamp(1, ROWS_MAX),
        row_bytes: bytes(options.row).or(shape.map(|shape| shape.row_bytes)).unwrap_or(ROW_BYTES),
        lob_bytes: bytes(options.lob).or(shape.map(|shape| shape.lob_bytes)).unwrap_or(0),
        share_percent: options.share.or(shape.and_then(|shape| shape.share_percent)).unwrap_or(SHARE_PERCENT),
        rtt: options.rtt.or(shape.and_then(|shape| shape.rtt)).unwrap_or(RTT),
        bits_per_second: options.bandwidth.get(),
        memory: usize::from(options.memory) as u64,
    }
}

fn print_task(shape: &Shape, task: &Task) {
    let (rows, row) = (count(task.rows), onetrip_lab::bytes(task.row_bytes));
    let large = match task.lob_bytes {
        0 => String::new(),
        bytes => {
            format!(", large values of {}, {} % of them read", onetrip_lab::bytes(bytes), task.share_percent)
        }
    };
    println!("{}: {rows} rows of {row}{large}, {} away", shape.source, HumanDuration(task.rtt));
}

fn print_check(task: &Task, choice: &Choice, checked: &Checked) {
    println!("measured with {} rows, fastest first, without a limit of bandwidth:", count(checked.rows));
    for (fetch, prefetch, time) in &checked.times {
        let is_chosen = *fetch == choice.fetch.min(checked.rows) && *prefetch == choice.prefetch;
        let mark = if is_chosen { "  <- chosen" } else { "" };
        let time = onetrip_report::duration(*time);
        println!("  {fetch:>7} rows, {:<17} {time:>9}{mark}", words(task, *prefetch));
    }
    if let Some(regret) = checked.regret_percent(choice) {
        println!("the choice takes {regret} % longer than the fastest of them");
    }
}

fn words(task: &Task, prefetch: Prefetch) -> &'static str {
    match prefetch {
        _ if task.lob_bytes == 0 => "plain rows",
        Prefetch::Nothing => "rows alone",
        Prefetch::Length => "rows with lengths",
        Prefetch::Whole => "rows with values",
    }
}

fn shown(time: Duration) -> String {
    onetrip_report::duration(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}
