//! The choice and its neighbours, measured on a table of the task's shape.

use std::sync::atomic::AtomicBool;

use super::{Choice, Prefetch, Task};
use crate::workload::{Axis, AxisValue, Engine, Formula, NamedSize, Size, Workload, find};
use crate::{LabError, Measure, RunOptions, Samples, run};

/// Bytes of the pieces that contents of the workload are made of.
const CONTENT_STEP: u64 = 16;
/// Bytes of all contents together that a check makes; larger tasks are checked with fewer rows.
const CONTENT_BYTES_MAX: u64 = 1 << 30;

/// What was measured of a choice.
#[derive(Debug, Clone)]
pub struct Checked {
    /// Everything, also for charts.
    pub samples: Samples,
    /// Rows that it was measured with.
    pub rows: u64,
    /// Settings and their median times, in nanoseconds, fastest first.
    pub times: Vec<(u64, Prefetch, u64)>,
}

impl Checked {
    /// By how much the chosen settings took longer than the fastest of their neighbours, in per cent.
    pub fn regret_percent(&self, choice: &Choice) -> Option<u64> {
        let (_, _, least) = *self.times.first()?;
        let is_chosen = |(fetch, prefetch, _): &&(u64, Prefetch, u64)| {
            *fetch == choice.fetch.min(self.rows) && *prefetch == choice.prefetch
        };
        let (_, _, chosen) = self.times.iter().find(is_chosen)?;
        Some((chosen - least) * 100 / least.max(1))
    }
}

/// Measures the chosen settings, fetch sizes next to them, and the other prefetches.
///
/// # Errors
///
/// As [`run`].
pub fn check(
    task: &Task,
    choice: &Choice,
    database: Option<&str>,
    stopped: &AtomicBool,
    notice: &dyn Fn(&str),
) -> Result<Checked, LabError> {
    let rows = match task.lob_bytes {
        0 => task.rows,
        bytes => task.rows.min((CONTENT_BYTES_MAX / bytes).max(1)),
    };
    let task = Task { rows, ..*task };
    let workload =
        if task.lob_bytes == 0 { rows_only(&task, choice)? } else { with_contents(&task, choice)? };
    let options = RunOptions {
        database: database.map(str::to_owned),
        rtts: vec![task.rtt],
        engines: vec![Engine::Postgresql],
        ..RunOptions::default()
    };
    let samples = run(&workload, &options, stopped, notice)?;
    let mut times: Vec<(u64, Prefetch, u64)> = samples
        .cells
        .iter()
        .filter_map(|cell| {
            let prefetch = match cell.on("way")? {
                "length" => Prefetch::Length,
                "whole" => Prefetch::Whole,
                _ => Prefetch::Nothing,
            };
            Some((cell.on("fetch")?.parse().ok()?, prefetch, Measure::Time.of(cell)? as u64))
        })
        .collect();
    times.sort_by_key(|(_, _, time)| *time);
    Ok(Checked { samples, rows, times })
}

fn rows_only(task: &Task, choice: &Choice) -> Result<Workload, LabError> {
    let mut workload = find("fetch")?;
    resize(&mut workload, "rows", task.rows);
    set_fetch_sizes(&mut workload, task, choice);
    workload.ways.retain(|way| way.name == "portal");
    workload.charts.clear();
    Ok(workload)
}

fn with_contents(task: &Task, choice: &Choice) -> Result<Workload, LabError> {
    let mut workload = find("lob")?;
    resize(&mut workload, "lobs", task.rows);
    resize(&mut workload, "size", (task.lob_bytes / CONTENT_STEP).max(1) * CONTENT_STEP);
    let every = if task.share_percent == 0 { task.rows } else { 100 / task.share_percent.min(100) };
    resize(&mut workload, "every", every.max(1));
    set_fetch_sizes(&mut workload, task, choice);
    for axis in workload.axes.iter_mut().filter(|axis| axis.name != "fetch") {
        axis.values.truncate(1);
        if axis.name == "store" {
            axis.values = vec![AxisValue::Text("bytea".to_owned())];
        }
    }
    workload.ways.retain(|way| way.name != "half");
    workload.ways.iter_mut().for_each(|way| way.when = None);
    workload.charts.clear();
    Ok(workload)
}

fn set_fetch_sizes(workload: &mut Workload, task: &Task, choice: &Choice) {
    let sizes = task.neighbours(choice.fetch.min(task.rows));
    let is_fetch = |axis: &&mut Axis| axis.name == "fetch";
    if let Some(axis) = workload.axes.iter_mut().find(is_fetch) {
        axis.values = sizes.into_iter().map(|size| AxisValue::Number(size as i64)).collect();
    }
}

fn resize(workload: &mut Workload, name: &str, number: u64) {
    let is_meant = |size: &&mut NamedSize| size.name == name;
    if let Some(named) = workload.sizes.iter_mut().find(is_meant) {
        let number = Formula::Number(number as i64);
        named.size = Size { short: number.clone(), normal: number, full: None };
    }
}
