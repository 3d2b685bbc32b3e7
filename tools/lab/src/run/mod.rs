//! Runs a workload: every way at every place of its matrix, counted before it is timed.
//!
//! Counting uses a gateway without a distance, because a count does not depend on it. Timing uses no gateway, so that
//! counting does not cost time: it goes straight to the database or over a simulated link. Only ways with remedies
//! are counted and timed at once, through the gateway that has them.

mod cell;
mod foreign;
mod frame;
mod matrix;
mod options;
mod peer;
mod progress;
mod round;
mod team;
mod turns;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::LabError;
use crate::cell::Cell;
use crate::database::Database;
use crate::formula::Formulas;
use crate::plan::Planner;
use crate::samples::{Machine, SAMPLES_FORMAT, Samples};
use crate::workload::{Engine, Extent, Workload};
use cell::Bench;
use foreign::Foreign;
use frame::Frame;
use matrix::{Place, places, variables_of};
use progress::Progress;

pub use options::RunOptions;

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
    let known = workload.setup.keys().copied();
    let engines: Vec<Engine> =
        known.filter(|engine| options.engines.is_empty() || options.engines.contains(engine)).collect();
    if engines.is_empty() {
        let known: Vec<&str> = workload.setup.keys().map(|engine| engine.as_str()).collect();
        let reason = format!("it runs on {}", known.join(", "));
        return Err(LabError::Workload { workload: workload.name.clone(), reason });
    }
    for engine in engines {
        let done = match engine.speaks_postgresql() {
            true => run_on(workload, options, engine, (stopped, notice), &mut samples),
            false => run_on_foreign(workload, options, engine, (stopped, notice), &mut samples),
        };
        match done {
            // Whatever failed then failed because of that: programs and servers hear Ctrl-C as well.
            Err(_) if stopped.load(Ordering::Relaxed) => return Err(LabError::Stopped),
            done => done?,
        }
    }
    if samples.cells.is_empty() {
        let reason = "nothing of it can be run here".to_owned();
        return Err(LabError::Workload { workload: workload.name.clone(), reason });
    }
    samples.follow(workload);
    Ok(samples)
}

/// What a run listens to, and whom it tells.
type Ears<'e> = (&'e AtomicBool, &'e dyn Fn(&str));

fn run_on(
    workload: &Workload,
    options: &RunOptions,
    engine: Engine,
    (stopped, notice): Ears<'_>,
    samples: &mut Samples,
) -> Result<(), LabError> {
    let Some(database) = Database::open(engine, options.database.as_deref())? else {
        leave_out(format!("{} is not installed: its cells are left out", engine.as_str()), notice, samples);
        return Ok(());
    };
    notice(&format!("{}: {}", workload.name, database.description));
    samples.engines.push(format!("{}: {}", engine.as_str(), database.version));
    let database = Arc::new(database);
    let formulas = Formulas::new();
    let frame = Frame { workload, options, formulas: &formulas, stopped };
    let bench = Bench { frame, database: &database };
    let done = set_up(workload, options.extent, &database, &formulas)
        .and_then(|()| measure_all(frame, engine, samples, |place| bench.measure(place)));
    let closed = database.close();
    match done {
        // An extension is somebody else's package.
        Err(LabError::Refused { statement, message, .. }) if statement.starts_with("CREATE EXTENSION") => {
            let missing = format!("{}: {message}: its cells are left out", engine.as_str());
            leave_out(missing, notice, samples);
        }
        done => done?,
    }
    closed
}

fn run_on_foreign(
    workload: &Workload,
    options: &RunOptions,
    engine: Engine,
    (stopped, notice): Ears<'_>,
    samples: &mut Samples,
) -> Result<(), LabError> {
    let server = match Foreign::open(engine, options.clients.as_deref())? {
        Ok(server) => server,
        Err(why) => {
            leave_out(format!("{why}: its cells are left out"), notice, samples);
            return Ok(());
        }
    };
    notice(&format!("{}: {}", workload.name, server.description()));
    samples.engines.push(format!("{}: {}", engine.as_str(), server.version()));
    let formulas = Formulas::new();
    let frame = Frame { workload, options, formulas: &formulas, stopped };
    server.set_up(&tables(workload, options.extent, engine, &formulas)?)?;
    measure_all(frame, engine, samples, |place| server.measure(frame, place))
}

fn leave_out(why: String, notice: &dyn Fn(&str), samples: &mut Samples) {
    notice(&why);
    samples.left_out.push(why);
}

fn measure_all(
    frame: Frame<'_>,
    engine: Engine,
    samples: &mut Samples,
    measure: impl Fn(&Place<'_>) -> Result<Result<Cell, String>, LabError>,
) -> Result<(), LabError> {
    let places = places(frame.workload, frame.options, engine, frame.formulas);
    let places = places.map_err(|reason| frame.wrong(reason))?;
    let progress = Progress::start(&frame.workload.name, places.len());
    for place in places {
        progress.begin(&place.name());
        match measure(&place)? {
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
    let mut session = database.session()?;
    for text in tables(workload, extent, database.engine, formulas)? {
        session.ask(&text)?;
    }
    session.close();
    Ok(())
}

/// The statements that make the workload's tables on an engine.
fn tables(
    workload: &Workload,
    extent: Extent,
    engine: Engine,
    formulas: &Formulas,
) -> Result<Vec<String>, LabError> {
    let variables = variables_of(workload, extent, formulas, Vec::new());
    let planner = Planner { formulas, named: &workload.steps, variables };
    let statements = workload.setup.get(&engine).into_iter().flatten();
    let texts = statements.map(|statement| planner.fill(statement)).collect::<Result<Vec<_>, _>>();
    texts.map_err(|reason| LabError::Workload { workload: workload.name.clone(), reason })
}
