//! The places of a workload's matrix and the variables of each.

use std::time::Duration;

use minijinja::value::Value;
use onetrip_link::HumanDuration;

use super::options::RunOptions;
use crate::formula::{Formulas, Variables};
use crate::plan::Planner;
use crate::workload::{AxisValue, Engine, Extent, Formula, Way, Workload};

/// The axis that is a distance.
const RTT: &str = "rtt";

/// One way at one place.
#[derive(Debug)]
pub(super) struct Place<'w> {
    pub(super) way: &'w Way,
    pub(super) at: Vec<(String, String)>,
    pub(super) variables: Variables,
    pub(super) rtt: Duration,
}

impl Place<'_> {
    /// Its coordinates as words.
    pub(super) fn name(&self) -> String {
        crate::cell::place(&self.at)
    }
}
/// All places that there are on this engine.
pub(super) fn places<'w>(
    workload: &'w Workload,
    options: &RunOptions,
    engine: Engine,
    formulas: &Formulas,
) -> Result<Vec<Place<'w>>, String> {
    let mut combinations = vec![vec![("engine".to_owned(), AxisValue::Text(engine.as_str().to_owned()))]];
    for axis in &workload.axes {
        let values = match (axis.name.as_str(), options.rtts.as_slice()) {
            (RTT, [_, ..]) => {
                options.rtts.iter().map(|rtt| AxisValue::Text(HumanDuration(*rtt).to_string())).collect()
            }
            _ => axis.at(options.extent).to_vec(),
        };
        combinations = combinations
            .into_iter()
            .flat_map(|before| values.iter().map(move |value| extended(&before, &axis.name, value)))
            .collect();
    }
    let mut found = Vec::new();
    for combination in combinations {
        let rtt = combination.iter().find(|(name, _)| name == RTT).and_then(|(_, value)| time(value));
        let at: Vec<_> = combination.iter().map(|(name, value)| (name.clone(), value.to_string())).collect();
        let variables = variables_of(workload, options.extent, formulas, combination);
        let planner = Planner { formulas, named: &workload.steps, variables };
        for way in &workload.ways {
            if planner.holds(way.when.as_ref())? {
                let mut at = at.clone();
                at.push(("way".to_owned(), way.name.clone()));
                let variables = planner.variables.clone();
                found.push(Place { way, at, variables, rtt: rtt.unwrap_or_default() });
            }
        }
    }
    Ok(found)
}

/// Sizes and axes by name. A size that depends on an axis which is not given is left out.
pub(super) fn variables_of(
    workload: &Workload,
    extent: Extent,
    formulas: &Formulas,
    at: Vec<(String, AxisValue)>,
) -> Variables {
    let mut variables = Variables::new();
    for (name, value) in at {
        if let Some(time) = time(&value) {
            variables.insert(format!("{name}_us"), Value::from(time.as_micros() as i64));
        }
        let value = match value {
            AxisValue::Number(number) => Value::from(number),
            AxisValue::Text(text) => Value::from(text),
        };
        variables.insert(name, value);
    }
    for named in &workload.sizes {
        let value = match named.size.at(extent) {
            Formula::Number(number) => Some(*number),
            Formula::Expression(text) => formulas.number(text, &variables).ok(),
        };
        if let Some(value) = value {
            variables.insert(named.name.clone(), Value::from(value));
        }
    }
    variables
}

fn extended(before: &[(String, AxisValue)], name: &str, value: &AxisValue) -> Vec<(String, AxisValue)> {
    let mut longer = before.to_vec();
    longer.push((name.to_owned(), value.clone()));
    longer
}

fn time(value: &AxisValue) -> Option<Duration> {
    let AxisValue::Text(text) = value else { return None };
    text.parse::<HumanDuration>().ok().map(Into::into)
}
