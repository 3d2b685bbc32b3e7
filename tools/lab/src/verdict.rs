//! The sentence that answers a workload's question, filled from its samples.
//!
//! A verdict is a template. `NAME(way="as is", rtt="12.9ms")` is a measure of the first cell at that place; measures are
//! `time`, `time_each`, `rate`, `trips`, `cpu_each`, `server_cpu_each`, `server_idle`, `allocated_each`, `memory`, `wal`, `beside`
//! and `operations`. Filters write numbers for people: `ns`, `bytes`, `number`, `times` (a factor), `percent` (a ratio as a
//! difference), `share` (a part as per cent). `has(…)` tells whether there is a
//! cell. `best(MEASURE, AXIS, …)` is the value of the axis with the least measure, `knee(MEASURE, AXIS, SHARE, …)` the
//! first one that is within so many per cent of it.

use minijinja::value::{Kwargs, Value};
use minijinja::{Error, ErrorKind};
use onetrip_gateway::with_causes;

use crate::cell::Cell;
use crate::formula::{Formulas, Variables};
use crate::measure::{Measure, bytes, digits};
use crate::samples::Samples;

const MEASURES: [(&str, Measure); 11] = [
    ("time", Measure::Time),
    ("time_each", Measure::TimePerOperation),
    ("rate", Measure::Throughput),
    ("trips", Measure::Trips),
    ("cpu_each", Measure::CpuPerOperation),
    ("server_cpu_each", Measure::ServerCpuPerOperation),
    ("server_idle", Measure::ServerIdle),
    ("allocated_each", Measure::AllocatedPerOperation),
    ("memory", Measure::Memory),
    ("wal", Measure::Wal),
    ("beside", Measure::BesideP99),
];

/// The verdict as one line; why it cannot be said otherwise.
pub(crate) fn verdict(template: &str, samples: &Samples) -> Result<String, String> {
    let mut formulas = Formulas::new();
    let environment = formulas.environment_mut();
    for (name, measure) in MEASURES {
        let cells = samples.cells.clone();
        environment.add_function(name, move |place: Kwargs| {
            let cell = find(&cells, &place)?;
            measure.of(cell).ok_or_else(|| missing(&format!("no {} at {}", measure.label(), cell.place())))
        });
    }
    let cells = samples.cells.clone();
    environment
        .add_function("operations", move |place: Kwargs| find(&cells, &place).map(|cell| cell.operations));
    let cells = samples.cells.clone();
    environment.add_function("has", move |place: Kwargs| find(&cells, &place).is_ok());
    let cells = samples.cells.clone();
    environment.add_function("best", move |measure: String, axis: String, place: Kwargs| {
        Ok::<_, Error>(within(&cells, &measure, &axis, 0.0, &place)?.0)
    });
    let cells = samples.cells.clone();
    environment.add_function("knee", move |measure: String, axis: String, share: f64, place: Kwargs| {
        Ok::<_, Error>(within(&cells, &measure, &axis, share, &place)?.0)
    });
    environment.add_filter("ns", |number: f64| Measure::Time.show(number));
    environment.add_filter("bytes", |number: f64| bytes(number.round() as u64));
    environment.add_filter("number", |number: f64| onetrip_report::count(number.round() as u64));
    environment.add_filter("times", digits);
    environment.add_filter("percent", |ratio: f64| format!("{:.0} %", (ratio - 1.0) * 100.0));
    environment.add_filter("share", |part: f64| Measure::ServerIdle.show(part));
    let filled = formulas.fill(template, &Variables::new()).map_err(|error| with_causes(&error))?;
    Ok(filled.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The first cell at this place; axes that are not named may have any value.
fn find<'c>(cells: &'c [Cell], place: &Kwargs) -> Result<&'c Cell, Error> {
    let at = coordinates(place)?;
    let is_there = |cell: &&Cell| at.iter().all(|(axis, value)| cell.on(axis) == Some(value));
    cells.iter().find(is_there).ok_or_else(|| missing(&format!("no cell at {at:?}")))
}

fn coordinates(place: &Kwargs) -> Result<Vec<(String, String)>, Error> {
    place.args().map(|axis| Ok((axis.to_owned(), place.get::<Value>(axis)?.to_string()))).collect()
}

/// The first value of the axis whose measure is at most so many per cent above the least one, and that measure.
fn within(
    cells: &[Cell],
    measure: &str,
    axis: &str,
    share: f64,
    place: &Kwargs,
) -> Result<(String, f64), Error> {
    let (_, measure) =
        MEASURES.into_iter().find(|(name, _)| *name == measure).ok_or_else(|| missing(measure))?;
    let at = coordinates(place)?;
    let on_line = cells.iter().filter(|cell| at.iter().all(|(axis, value)| cell.on(axis) == Some(value)));
    let points: Vec<(&str, f64)> =
        on_line.filter_map(|cell| Some((cell.on(axis)?, measure.of(cell)?))).collect();
    let least = points.iter().map(|(_, number)| *number).fold(f64::INFINITY, f64::min);
    let first = points.into_iter().find(|(_, number)| *number <= least * (1.0 + share / 100.0));
    first
        .map(|(value, number)| (value.to_owned(), number))
        .ok_or_else(|| missing(&format!("nothing along {axis}")))
}

fn missing(what: &str) -> Error {
    Error::new(ErrorKind::InvalidOperation, what.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::samples_of;

    #[test]
    fn a_verdict_is_filled_from_the_cells_that_it_names() {
        let samples = samples_of(&[("1", "slow", 900), ("1", "fast", 30), ("9", "slow", 9_000)]);
        let said = verdict(
            "{{ time(n=1, way='slow') | ns }} against {{ time(n=1, way='fast') | ns }}:\n\
             {{ (time(n=1, way='slow') / time(n=1, way='fast')) | times }} ×",
            &samples,
        );
        assert_eq!(said.unwrap(), "900 ns against 30 ns: 30.0 ×");
        assert_eq!(verdict("{{ knee('time', 'n', 5, way='slow') }}", &samples).unwrap(), "1");
        assert!(verdict("{{ time(n=2) }}", &samples).is_err());
    }
}
