//! What every cell of a run needs, whatever server it is about: its plans, and the answers that it has to have.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use minijinja::value::Value;

use super::matrix::Place;
use super::options::RunOptions;
use super::peer::{Peer, Played};
use super::round::Round;
use crate::LabError;
use crate::cell::Cell;
use crate::formula::Formulas;
use crate::plan::{Plan, Planner};
use crate::workload::{Engine, Extent, Formula, Workload};

/// A cell that would wait longer than this for its trips alone runs in full extent only.
const WAIT_MAX: Duration = Duration::from_secs(150);
/// After so long a cell gets no more rounds.
const ROUNDS_MAX: Duration = Duration::from_secs(8);
/// A first round that takes longer is no warm-up but counts.
pub(super) const WARM_UP_MAX: Duration = Duration::from_secs(3);
/// Most sessions at once.
const SESSIONS_MAX: i64 = 150;

/// What every cell of a run needs.
#[derive(Clone, Copy)]
pub(super) struct Frame<'a> {
    pub(super) workload: &'a Workload,
    pub(super) options: &'a RunOptions,
    pub(super) formulas: &'a Formulas,
    pub(super) stopped: &'a AtomicBool,
}

/// What a cell's plan comes to.
pub(super) struct Prepared<'p> {
    pub(super) place: &'p Place<'p>,
    pub(super) planner: Planner<'p>,
    /// One for each session.
    pub(super) plans: Vec<Plan>,
    pub(super) beside: Plan,
    pub(super) trips: Trips,
    pub(super) rounds: usize,
    rows: u64,
    sum: Option<i64>,
}

/// Trips that one session may take in a round.
#[derive(Clone, Copy)]
pub(super) enum Trips {
    Exactly(u64),
    AtMost(u64),
    /// A real driver decides.
    Any,
}

impl<'a> Frame<'a> {
    pub(super) fn wrong(&self, reason: String) -> LabError {
        LabError::Workload { workload: self.workload.name.clone(), reason }
    }

    /// A text of the workload with the cell's values.
    pub(super) fn filled(&self, prepared: &Prepared<'_>, template: &str) -> Result<String, LabError> {
        prepared.planner.fill(template).map_err(|reason| self.wrong(reason))
    }

    /// The statements before each round on this engine.
    pub(super) fn before(&self, prepared: &Prepared<'_>, engine: Engine) -> Result<Vec<String>, LabError> {
        let before = self.workload.before.get(&engine).into_iter().flatten();
        before.map(|statement| self.filled(prepared, statement)).collect()
    }

    /// Looks at the tables after so many rounds: `ask` gives a statement's number.
    pub(super) fn check(
        &self,
        prepared: &Prepared<'_>,
        rounds: i64,
        ask: impl FnOnce(&str) -> Result<i64, LabError>,
    ) -> Result<(), LabError> {
        let Some(check) = &self.workload.check else { return Ok(()) };
        let expected = prepared.planner.number(&check.gives).map_err(|reason| self.wrong(reason))?;
        let found = ask(&self.filled(prepared, &check.query)?)?;
        prepared.compare("what the tables hold", expected.saturating_mul(rounds), found)
    }

    /// The place's plans and an empty cell for it, or why it is left out.
    pub(super) fn prepare(
        &self,
        place: &'a Place<'a>,
    ) -> Result<Result<(Prepared<'a>, Cell), String>, LabError> {
        let wrong = |reason: String| self.wrong(format!("{}: {reason}", place.name()));
        let prepared = self.plan(place).map_err(wrong)?;
        if let Some(why) = self.too_long(&prepared) {
            return Ok(Err(why));
        }
        let sessions = prepared.plans.len() as u64;
        let operations = prepared.planner.number(&place.way.operations).map_err(wrong)?;
        let processors = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
        let cell = Cell {
            at: place.at.clone(),
            sessions,
            processors: processors.min(sessions),
            operations: u64::try_from(operations).unwrap_or(0) * sessions,
            rows: prepared.rows * sessions,
            ..Cell::default()
        };
        Ok(Ok((prepared, cell)))
    }

    fn plan(&self, place: &'a Place<'a>) -> Result<Prepared<'a>, String> {
        let (named, variables) = (&self.workload.steps, place.variables.clone());
        let mut planner = Planner { formulas: self.formulas, named, variables };
        let way = place.way;
        let sessions = way.sessions.as_ref().map_or(Ok(1), |sessions| planner.number(sessions))?;
        let mut plans = Vec::new();
        for session in 0..sessions.clamp(1, SESSIONS_MAX) {
            planner.variables.insert("session".to_owned(), Value::from(session));
            plans.push(planner.plan(&way.steps)?);
        }
        planner.variables.insert("session".to_owned(), Value::from(0));
        let beside = planner.plan(&self.workload.beside)?;
        let count =
            |formula: &Formula| Ok::<u64, String>(u64::try_from(planner.number(formula)?).unwrap_or(0));
        let trips = match (&way.expect.trips, &way.expect.trips_max) {
            (Some(trips), _) => Trips::Exactly(count(trips)?),
            (None, Some(most)) => Trips::AtMost(count(most)?),
            (None, None) => Trips::Any,
        };
        let rows = count(&way.expect.rows)?;
        let rounds = count(self.workload.rounds.at(self.options.extent))?.max(1) as usize;
        let sum = way.expect.sum.as_ref().map(|sum| planner.number(sum)).transpose()?;
        Ok(Prepared { place, planner, plans, beside, rows, sum, trips, rounds })
    }

    fn too_long(&self, prepared: &Prepared<'_>) -> Option<String> {
        let (Trips::Exactly(trips) | Trips::AtMost(trips)) = prepared.trips else { return None };
        let wait = prepared.place.rtt.saturating_mul(u32::try_from(trips).unwrap_or(u32::MAX));
        (self.options.extent != Extent::Full && wait > WAIT_MAX)
            .then(|| format!("its trips would take {} s; --full runs it", wait.as_secs()))
    }

    /// The program of the place's way, or why there is none.
    pub(super) fn peer(&self, prepared: &Prepared<'_>) -> Result<Result<Peer, String>, LabError> {
        let words = prepared.place.way.program.iter().map(|word| self.filled(prepared, word));
        let words = words.collect::<Result<Vec<_>, _>>()?;
        Ok(Peer::find(&words, self.options.clients.as_deref()))
    }
}

impl Prepared<'_> {
    /// Whether a cell that is timed since then needs no more rounds.
    pub(super) fn has_enough(&self, cell: &Cell, began: Instant) -> bool {
        let rounds = cell.rounds_ns.len();
        rounds >= self.rounds || (rounds > 0 && began.elapsed() > ROUNDS_MAX)
    }

    /// Whether the sessions have read what they had to read.
    pub(super) fn look_at_answers(&self, round: &Round) -> Result<(), LabError> {
        for answer in &round.answers {
            self.compare("the number of rows", self.rows as i64, answer.rows as i64)?;
            if let Some(sum) = self.sum {
                self.compare("the sum of what was read", sum, answer.sum)?;
            }
        }
        Ok(())
    }

    /// The same of programs.
    pub(super) fn look_at_programs(&self, rounds: &[Played]) -> Result<(), LabError> {
        rounds
            .iter()
            .try_for_each(|round| self.compare("the number of rows", self.rows as i64, round.rows as i64))
    }

    /// The same of one program that has all sessions.
    pub(super) fn look_at_program(&self, rounds: &[Played]) -> Result<(), LabError> {
        let rows = self.rows * self.plans.len() as u64;
        rounds.iter().try_for_each(|round| self.compare("the number of rows", rows as i64, round.rows as i64))
    }

    pub(super) fn compare(&self, what: &'static str, expected: i64, found: i64) -> Result<(), LabError> {
        if expected == found {
            return Ok(());
        }
        let (cell, expected, found) = (self.place.name(), expected.to_string(), found.to_string());
        Err(LabError::WrongAnswer { cell, what, expected, found })
    }

    /// Books the trips of a round of all sessions, which lie between these numbers.
    pub(super) fn book_trips(&self, cell: &mut Cell, least: u64, most: u64) -> Result<(), LabError> {
        let sessions = self.plans.len() as u64;
        let (is_right, expected, found) = match self.trips {
            Trips::Exactly(trips) => {
                let trips = trips * sessions;
                ((least..=most).contains(&trips), trips.to_string(), trips.clamp(least, most))
            }
            Trips::AtMost(trips) => (most <= trips * sessions, format!("at most {}", trips * sessions), most),
            Trips::Any => (true, String::new(), most),
        };
        if !is_right {
            return Err(LabError::WrongTrips { cell: self.place.name(), expected, found });
        }
        cell.trips = cell.trips.max(found);
        Ok(())
    }
}
