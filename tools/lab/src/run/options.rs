use std::time::Duration;

use crate::cell::Allocated;
use crate::workload::{Engine, Extent};

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
    /// What this process has allocated so far, where it counts that.
    pub allocated: Option<fn() -> Allocated>,
}
