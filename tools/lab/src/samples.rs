//! What was measured, as it is kept: everything that tables, verdicts and charts are made of.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::LabError;
use crate::cell::Cell;
use crate::chart::spec::ChartSpec;
use crate::verdict::verdict;
use crate::workload::{Extent, Workload};

/// What is said where cells are missing that the verdict is about.
pub const NO_VERDICT: &str = "Without all of the workload's distances and servers there is no verdict.";
/// Version of the files that this lab writes, and the only one that it reads.
pub const SAMPLES_FORMAT: u32 = 1;

/// One run of one workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Samples {
    /// [`SAMPLES_FORMAT`].
    pub format: u32,
    /// The workload's name.
    pub workload: String,
    /// Its title.
    pub title: String,
    /// How large the run was.
    pub extent: Extent,
    /// Seconds since 1970 when it began.
    pub began: u64,
    /// Version of onetrip.
    pub onetrip: String,
    /// What it ran on.
    pub machine: Machine,
    /// Databases with their versions.
    pub engines: Vec<String>,
    /// What was left out, and why.
    pub left_out: Vec<String>,
    /// Measured cells in the order in which they ran.
    pub cells: Vec<Cell>,
    /// What is drawn of them.
    pub charts: Vec<ChartSpec>,
    /// The sentence that they say.
    pub verdict: String,
}

/// The machine of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Its processor.
    pub processor: String,
    /// Processors that the run could use.
    pub cores: usize,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// Kernel.
    pub kernel: String,
    /// Load averages when the run began.
    pub load: String,
}

impl Samples {
    /// Reads a file that [`Self::write`] has written.
    ///
    /// # Errors
    ///
    /// The file cannot be read or holds something else.
    pub fn read(path: &Path) -> Result<Self, LabError> {
        let text = fs::read_to_string(path).map_err(LabError::file(path))?;
        let not_ours = |reason: String| LabError::Samples { path: path.display().to_string(), reason };
        let samples: Self = serde_json::from_str(&text).map_err(|error| not_ours(error.to_string()))?;
        if samples.format != SAMPLES_FORMAT {
            return Err(not_ours(format!("its format is {}, not {SAMPLES_FORMAT}", samples.format)));
        }
        Ok(samples)
    }

    /// Writes the file.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), LabError> {
        let text = serde_json::to_string(self).map_err(|error| LabError::Samples {
            path: path.display().to_string(),
            reason: error.to_string(),
        })?;
        fs::write(path, text + "\n").map_err(LabError::file(path))
    }

    /// Takes title, charts and verdict from the workload, as it says them now.
    pub fn follow(&mut self, workload: &Workload) {
        self.title.clone_from(&workload.title);
        self.charts.clone_from(&workload.charts);
        // Other distances than the workload's own may leave out what its sentence is about.
        self.verdict = verdict(&workload.verdict, self).unwrap_or_else(|_| NO_VERDICT.to_owned());
    }

    /// Values of an axis in the order in which they ran.
    pub(crate) fn values_of(&self, axis: &str) -> Vec<&str> {
        let mut values = Vec::new();
        for value in self.cells.iter().filter_map(|cell| cell.on(axis)) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        values
    }
}

impl Machine {
    /// The one that this runs on.
    pub fn this() -> Self {
        let line = |path: &str, start: &str| {
            let text = fs::read_to_string(path).unwrap_or_default();
            let line = text.lines().find(|line| line.starts_with(start));
            line.map(|line| line.trim_start_matches(start).trim_start_matches([':', '\t', ' ']).to_owned())
        };
        let memory = line("/proc/meminfo", "MemTotal").unwrap_or_default();
        let kib: u64 = memory.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0);
        Self {
            processor: line("/proc/cpuinfo", "model name")
                .unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            memory_mib: kib / 1024,
            kernel: line("/proc/sys/kernel/osrelease", "").unwrap_or_default(),
            load: line("/proc/loadavg", "")
                .unwrap_or_default()
                .split(' ')
                .take(3)
                .collect::<Vec<_>>()
                .join(" "),
        }
    }
}

/// Samples of cells on an axis `n` with one round each.
#[cfg(test)]
pub(crate) fn samples_of(cells: &[(&str, &str, u64)]) -> Samples {
    let cell = |(n, way, time): &(&str, &str, u64)| Cell {
        at: vec![("n".to_owned(), (*n).to_owned()), ("way".to_owned(), (*way).to_owned())],
        operations: 1,
        sessions: 1,
        trips: 10,
        memory_max: 2_000,
        rounds_ns: vec![*time],
        cpu_ns: vec![time / 3],
        ..Cell::default()
    };
    Samples {
        format: SAMPLES_FORMAT,
        workload: "example".into(),
        title: "An example".into(),
        extent: Extent::Short,
        began: 1_700_000_000,
        onetrip: "0.1.0".into(),
        machine: Machine::default(),
        engines: vec!["postgresql: 15".into()],
        left_out: Vec::new(),
        cells: cells.iter().map(cell).collect(),
        charts: Vec::new(),
        verdict: "Said.".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_read_back_as_they_were_written_and_other_files_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("samples.json");
        let samples = samples_of(&[("1", "slow", 900)]);
        samples.write(&path).unwrap();
        assert_eq!(Samples::read(&path).unwrap(), samples);
        let newer = Samples { format: 2, ..samples };
        newer.write(&path).unwrap();
        assert!(matches!(Samples::read(&path), Err(LabError::Samples { .. })));
        fs::write(&path, "{}").unwrap();
        assert!(matches!(Samples::read(&path), Err(LabError::Samples { .. })));
    }

    #[test]
    fn the_machine_knows_its_processor_and_kernel() {
        let machine = Machine::this();
        assert!(machine.cores > 0 && machine.memory_mib > 0 && !machine.kernel.is_empty(), "{machine:?}");
    }
}
