//! Runs a workload: every way at every place of its matrix, counted before it is timed.
//!
//! Counting goes through a gateway without a distance, because a count does not depend on it. Timing goes without a
//! gateway, straight to the database or over a simulated link, so that what counts does not cost. Only ways with remedies
//! are counted and timed in one, through the gateway that has them.

mod cell;
mod matrix;
mod peer;
mod progress;
mod round;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::LabError;
use crate::database::Database;
use crate::formula::Formulas;
use crate::plan::Planner;
use crate::samples::{Machine, SAMPLES_FORMAT, Samples};
use crate::workload::{Engine, Extent, Workload};
use cell::Bench;
use matrix::{Place, places, variables_of};
use progress::Progress;

/// How a workload is run.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// How large.
    pub extent: Extent,
    /// A PostgreSQL to be used instead of the installed one, as URL or keyword DSN.
    pub database: Option<String>,
    /// Distances to be used instead of the workload's.
    pub rtts: Vec<Duration>,
    /// Engines to be used; all that the workload has where there is none.
    pub engines: Vec<Engine>,
    /// Folder of the programs of real drivers; without it those ways are left out.
    pub clients: Option<std::path::PathBuf>,
}

/// Runs a workload until it is done or `stopped` is set. `notice` is told what the person should know meanwhile.
///
/// # Errors
///
/// A wrong answer, a wrong number of trips, a database that cannot be had.
pub fn run(
    workload: &Workload,
    options: &RunOptions,
    stopped: &AtomicBool,
    notice: &dyn Fn(&str),
) -> Result<Samples, LabError> {
    let began = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let mut samples = Samples {
        format: SAMPLES_FORMAT,
        workload: workload.name.clone(),
        title: String::new(),
        extent: options.extent,
        began,
        onetrip: env!("CARGO_PKG_VERSION").to_owned(),
        machine: Machine::this(),
        engines: Vec::new(),
        left_out: Vec::new(),
        cells: Vec::new(),
        charts: Vec::new(),
        verdict: String::new(),
    };
    let engines = workload.setup.keys().copied();
    let engines: Vec<Engine> =
        engines.filter(|engine| options.engines.is_empty() || options.engines.contains(engine)).collect();
    for engine in engines {
        let Some(database) = Database::open(engine, options.database.as_deref())? else {
            let missing = format!("{} is not installed: its cells are left out", engine.as_str());
            notice(&missing);
            samples.left_out.push(missing);
            continue;
        };
        notice(&format!("{}: {}", workload.name, database.description));
        samples.engines.push(format!("{}: {}", engine.as_str(), database.version));
        let database = Arc::new(database);
        let done = run_on(workload, options, &database, stopped, &mut samples);
        let closed = database.close();
        match done {
            // Whatever failed then failed because of that: programs and servers hear Ctrl-C as well.
            Err(_) if stopped.load(Ordering::Relaxed) => return Err(LabError::Stopped),
            // An extension is somebody else's package.
            Err(LabError::Refused { statement, message, .. })
                if statement.starts_with("CREATE EXTENSION") =>
            {
                let missing = format!("{}: {message}: its cells are left out", engine.as_str());
                notice(&missing);
                samples.left_out.push(missing);
            }
            done => done?,
        }
        closed?;
    }
    if samples.cells.is_empty() {
        let reason = "nothing of it can be run here".to_owned();
        return Err(LabError::Workload { workload: workload.name.clone(), reason });
    }
    samples.follow(workload);
    Ok(samples)
}

fn run_on(
    workload: &Workload,
    options: &RunOptions,
    database: &Database,
    stopped: &AtomicBool,
    samples: &mut Samples,
) -> Result<(), LabError> {
    let formulas = Formulas::new();
    let wrong = |reason: String| LabError::Workload { workload: workload.name.clone(), reason };
    let places = places(workload, options, database.engine, &formulas).map_err(wrong)?;
    set_up(workload, options.extent, database, &formulas)?;
    let progress = Progress::start(&workload.name, places.len());
    for place in places {
        progress.begin(&place.name());
        let bench = Bench { workload, options, database, formulas: &formulas, stopped };
        match bench.measure(&place)? {
            Ok(cell) => samples.cells.push(cell),
            Err(why) => samples.left_out.push(format!("{}: {why}", place.name())),
        }
    }
    Ok(())
}

/// Makes the workload's tables.
fn set_up(
    workload: &Workload,
    extent: Extent,
    database: &Database,
    formulas: &Formulas,
) -> Result<(), LabError> {
    let variables = variables_of(workload, extent, formulas, Vec::new());
    let planner = Planner { formulas, variables };
    let mut session = database.session()?;
    for statement in workload.setup.get(&database.engine).into_iter().flatten() {
        let text = planner
            .fill(statement)
            .map_err(|reason| LabError::Workload { workload: workload.name.clone(), reason })?;
        session.ask(&text)?;
    }
    session.close();
    Ok(())
}

impl Place<'_> {
    fn name(&self) -> String {
        crate::samples::place(&self.at)
    }
}
