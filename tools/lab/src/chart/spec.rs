//! What a chart is to show.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::measure::Measure;

/// One chart of a workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChartSpec {
    /// End of its file's name.
    pub name: String,
    /// What stands above it.
    pub title: String,
    /// Its form.
    pub kind: ChartKind,
    /// Axis of the cells that runs from left to right, or groups the dots.
    pub x: String,
    /// What is shown.
    pub y: Measure,
    /// Axis of the cells that makes lines, or dots of a group.
    #[serde(default = "way")]
    pub series: String,
    /// Values of other axes.
    #[serde(default)]
    pub only: BTreeMap<String, String>,
    /// Show each number divided by the least of its place on the x axis.
    #[serde(default)]
    pub relative: bool,
}

/// Form of a chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChartKind {
    /// A line for each series.
    Lines,
    /// A dot for each cell; parts of a whole have bars.
    #[serde(alias = "bars")]
    Dots,
}

fn way() -> String {
    "way".to_owned()
}
