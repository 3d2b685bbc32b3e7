//! `onetrip lab`: workloads about round trips, measured on this machine.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use onetrip_lab::workload::{Engine, Extent, Workload};
use onetrip_lab::{LabError, RunOptions, Samples};

use crate::allocator;
use crate::examples;
use crate::exit::ExitCode;
use crate::stop::Waiter;
use crate::tune::{self, TuneOptions};
use crate::values::duration;

/// What shells know Ctrl-C by.
const EXIT_INTERRUPTED: u8 = 130;

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    before_help = examples::LAB,
    after_help = "\
A workload is run in several ways at several distances. First the gateway counts trips and bytes. Then the same is \
timed without it. A wrong answer or a wrong count ends the run with exit code 125.

If PostgreSQL is needed and --database is not given, the lab starts the installed one: in a temporary directory, on a \
free port, not durable, as an unprivileged user. It is removed afterwards."
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
        /// Also write the workload's page into this directory, with the present texts of the workload
        #[arg(long, value_name = "DIRECTORY")]
        write: Option<PathBuf>,
    },
    /// Choose a fetch size, and how much of each large value comes with its row
    Tune(TuneOptions),
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
        (Some(LabCommand::Tune(options)), _) => tune::tune(options),
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
    let mut taken = Vec::new();
    let measured = workloads.iter().try_for_each(|workload| {
        let began = Instant::now();
        measure(options, workload, &stopped)?;
        taken.push((workload.name.as_str(), began.elapsed()));
        Ok(())
    });
    tell_times(&taken);
    ended(measured)
}

/// How long each workload took, with its servers and programs, and all of them together.
fn tell_times(taken: &[(&str, Duration)]) {
    let tell = |name: &str, time: Duration| eprintln!("onetrip: {name:<14} {:>6.1} s", time.as_secs_f64());
    taken.iter().for_each(|(name, time)| tell(name, *time));
    if taken.len() > 1 {
        tell("together", taken.iter().map(|(_, time)| *time).sum());
    }
}

/// Set when Ctrl-C comes, as long as the process lives.
pub(crate) fn listen_for_stop() -> Result<Arc<AtomicBool>> {
    let stopped = Arc::new(AtomicBool::new(false));
    let mut waiter = Waiter::new()?;
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

pub(crate) fn ended(done: Result<()>) -> Result<ExitCode> {
    match done {
        Err(error) if matches!(error.downcast_ref(), Some(LabError::Stopped)) => {
            eprintln!("onetrip: stopped");
            Ok(ExitCode::from(EXIT_INTERRUPTED))
        }
        done => done.map(|()| ExitCode::SUCCESS),
    }
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
