//! `onetrip lab`: workloads about round trips, measured on this machine.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use onetrip_lab::tune::{self, Checked, Choice, Prefetch, Task};
use onetrip_lab::workload::{Engine, Extent, Workload};
use onetrip_lab::{LabError, RunOptions, Samples};
use onetrip_link::{BitsPerSecond, ByteSize};
use onetrip_report::count;

use crate::allocator;
use crate::args::duration;
use crate::exit::ExitCode;
use crate::stop::Waiter;

/// What shells know Ctrl-C by.
const EXIT_INTERRUPTED: u8 = 130;

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
A workload is run in several ways at several distances. Trips and bytes are counted by the gateway first; then the same
is timed without it. A wrong answer or a wrong count ends the run with exit code 1.

Where PostgreSQL is needed and --database is not given, the installed one is started in a temporary directory, on a free
port and not durable, as an unprivileged user, and is gone afterwards."
)]
pub(crate) struct LabOptions {
    #[command(subcommand)]
    command: Option<LabCommand>,
    /// A workload of `onetrip lab list`, or all
    #[arg(value_name = "WORKLOAD", required = true)]
    workload: Option<String>,
    /// Use this PostgreSQL, given as URL or keyword DSN: in a schema onetrip_lab_PID, which is dropped at the end
    #[arg(long, value_name = "URL")]
    database: Option<String>,
    /// Run on this server only
    #[arg(long, value_enum, value_name = "ENGINE")]
    engine: Option<EngineName>,
    /// Distances to use instead of the workload's: may be given several times
    #[arg(long, value_name = "TIME", value_parser = duration)]
    rtt: Vec<Duration>,
    /// Everything, however long it takes
    #[arg(long, conflicts_with = "short")]
    full: bool,
    /// Only as much as shows that counts and answers are right
    #[arg(long)]
    short: bool,
    /// Repository whose clients/lab holds the programs of real drivers, built by scripts/lab
    #[arg(long, value_name = "DIRECTORY")]
    clients: Option<PathBuf>,
    /// Where samples, charts and page go
    #[arg(long, short, value_name = "DIRECTORY", default_value = "onetrip-lab")]
    output: PathBuf,
    /// Also write the workload's page, its charts and its samples into this directory
    #[arg(long, value_name = "DIRECTORY")]
    write: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum LabCommand {
    /// Name the workloads and what they ask
    List,
    /// Draw charts and page from samples
    Chart {
        /// A file that a run has written
        #[arg(value_name = "SAMPLES")]
        samples: PathBuf,
        /// Where charts and page go
        #[arg(long, short, value_name = "DIRECTORY", default_value = "onetrip-lab")]
        output: PathBuf,
        /// Also write the workload's page into this directory, in the words that the workload has now
        #[arg(long, value_name = "DIRECTORY")]
        write: Option<PathBuf>,
    },
    /// Choose a fetch size, and how much of each large value comes with its row
    Tune(TuneOptions),
}

#[derive(Debug, Args)]
#[command(after_help = "\
A model chooses; then the choice and its neighbours are measured on a table of that shape, unless --no-check, and the
settings are printed in the words of the drivers.")]
struct TuneOptions {
    /// Rows of the result
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    rows: u64,
    /// Size of a row without its large value
    #[arg(long, value_name = "SIZE", default_value = "50B")]
    row: ByteSize,
    /// Size of the large value in each row [default: there is none]
    #[arg(long, value_name = "SIZE")]
    lob: Option<ByteSize>,
    /// In how many of a hundred rows the large value is looked at
    #[arg(long, value_name = "PERCENT", default_value_t = 100, value_parser = clap::value_parser!(u64).range(0..=100))]
    share: u64,
    /// Round-trip time to the database
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "1ms")]
    rtt: Duration,
    /// Bandwidth of the path
    #[arg(long, value_name = "RATE", default_value = "1gbit")]
    bandwidth: BitsPerSecond,
    /// What the client may hold at once for messages and rows
    #[arg(long, value_name = "SIZE", default_value = "16MiB")]
    memory: ByteSize,
    /// Say what the model says and measure nothing
    #[arg(long)]
    no_check: bool,
    /// Measure on this PostgreSQL, given as URL or keyword DSN
    #[arg(long, value_name = "URL")]
    database: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum EngineName {
    /// The server of `onetrip serve`
    Embedded,
    /// PostgreSQL
    Postgresql,
    /// MariaDB
    Mariadb,
    /// Apache Derby's network server
    Derby,
    /// No database: bytes for bytes
    Echo,
}

/// `onetrip lab`.
pub(crate) fn lab(options: &LabOptions) -> Result<ExitCode> {
    match (&options.command, &options.workload) {
        (Some(LabCommand::List), _) => list(),
        (Some(LabCommand::Chart { samples, output, write }), _) => chart(samples, output, write.as_deref()),
        (Some(LabCommand::Tune(options)), _) => tune(options),
        (None, Some(name)) => run(options, name),
        (None, None) => bail!("name a workload; `onetrip lab list` has them"),
    }
}

fn list() -> Result<ExitCode> {
    for workload in onetrip_lab::workload::all()? {
        println!("{:<14} {}", workload.name, workload.question);
    }
    Ok(ExitCode::SUCCESS)
}

fn chart(path: &Path, output: &Path, write: Option<&Path>) -> Result<ExitCode> {
    let mut samples = Samples::read(path)?;
    if let Some(folder) = write {
        let workload = onetrip_lab::workload::find(&samples.workload)?;
        samples.follow(&workload);
        onetrip_lab::write_page(folder, &workload, &samples)?;
    }
    onetrip_lab::write_files(output, &samples)?;
    println!("{}", onetrip_lab::text(&samples));
    Ok(ExitCode::SUCCESS)
}

fn run(options: &LabOptions, name: &str) -> Result<ExitCode> {
    let workloads = match name {
        "all" => onetrip_lab::workload::all()?,
        name => vec![onetrip_lab::workload::find(name)?],
    };
    let stopped = listen_for_stop()?;
    let measured = workloads.iter().try_for_each(|workload| measure(options, workload, &stopped));
    ended(measured)
}

/// Set when Ctrl-C comes, as long as the process lives.
fn listen_for_stop() -> Result<Arc<AtomicBool>> {
    let stopped = Arc::new(AtomicBool::new(false));
    let waiter = Waiter::new()?;
    let told = Arc::clone(&stopped);
    std::thread::Builder::new()
        .name("onetrip-stop".into())
        .spawn(move || {
            waiter.wait();
            told.store(true, Ordering::Relaxed);
        })
        .context("no thread")?;
    Ok(stopped)
}

fn ended(done: Result<()>) -> Result<ExitCode> {
    match done {
        Err(error) if matches!(error.downcast_ref(), Some(LabError::Stopped)) => {
            eprintln!("onetrip: stopped");
            Ok(ExitCode::from(EXIT_INTERRUPTED))
        }
        done => done.map(|()| ExitCode::SUCCESS),
    }
}

fn tune(options: &TuneOptions) -> Result<ExitCode> {
    let task = Task {
        rows: options.rows,
        row_bytes: usize::from(options.row) as u64,
        lob_bytes: options.lob.map_or(0, usize::from) as u64,
        share_percent: options.share,
        rtt: options.rtt,
        bits_per_second: options.bandwidth.get(),
        memory: usize::from(options.memory) as u64,
    };
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

fn measure(options: &LabOptions, workload: &Workload, stopped: &AtomicBool) -> Result<()> {
    let engines = options.engine.map(|engine| match engine {
        EngineName::Embedded => Engine::Embedded,
        EngineName::Postgresql => Engine::Postgresql,
        EngineName::Mariadb => Engine::Mariadb,
        EngineName::Derby => Engine::Derby,
        EngineName::Echo => Engine::Echo,
    });
    let run_options = RunOptions {
        extent: match (options.short, options.full) {
            (true, _) => Extent::Short,
            (_, true) => Extent::Full,
            _ => Extent::Normal,
        },
        database: options.database.clone(),
        rtts: options.rtt.clone(),
        engines: engines.into_iter().collect(),
        clients: options.clients.clone(),
        allocated: allocator::count().then_some(allocator::allocated),
    };
    let samples = onetrip_lab::run(workload, &run_options, stopped, &|told| eprintln!("onetrip: {told}"))?;
    println!("{}", onetrip_lab::text(&samples));
    onetrip_lab::write_files(&options.output, &samples)?;
    if let Some(folder) = &options.write {
        onetrip_lab::write_page(folder, workload, &samples)?;
    }
    eprintln!("onetrip: samples and charts are in {}", options.output.display());
    Ok(())
}
