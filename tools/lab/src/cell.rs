//! What was measured of one way at one place.

use serde::{Deserialize, Serialize};

/// One way at one place of the matrix.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Axis and value, outermost first; the last one is the way.
    pub at: Vec<(String, String)>,
    /// Operations in a round.
    pub operations: u64,
    /// Sessions that did them.
    pub sessions: u64,
    /// Processors that the server can use for them: one for each session, and no more than there are.
    #[serde(default)]
    pub processors: u64,
    /// Rows that a round reads, all sessions together.
    pub rows: u64,
    /// Trips of a round, as the gateway counts them, all sessions together.
    pub trips: u64,
    /// Trips that remedies took out of it.
    #[serde(default)]
    pub removed: u64,
    /// Bytes from clients in a round.
    pub bytes_sent: u64,
    /// Bytes to clients in a round.
    pub bytes_received: u64,
    /// Most bytes that one client held at once for messages and rows; zero where it cannot be told.
    pub memory_max: u64,
    /// Wall time of each round, in nanoseconds.
    pub rounds_ns: Vec<u64>,
    /// CPU time of the clients in each round, in nanoseconds.
    pub cpu_ns: Vec<u64>,
    /// CPU time of the server in each round, in nanoseconds; empty where it cannot be told.
    #[serde(default)]
    pub server_cpu_ns: Vec<u64>,
    /// What was allocated in the last round; `None` where it cannot be told.
    #[serde(default)]
    pub allocated: Option<Allocated>,
    /// Write-ahead log written in each round, in bytes; empty where there is none.
    #[serde(default)]
    pub wal_bytes: Vec<u64>,
    /// What another session waited for its own statements meanwhile, in nanoseconds, in order of size; of more than a
    /// thousand only so many, evenly chosen.
    #[serde(default)]
    pub beside_ns: Vec<u64>,
}

impl Cell {
    /// Its value on this axis.
    pub fn on(&self, axis: &str) -> Option<&str> {
        self.at.iter().find(|(name, _)| name == axis).map(|(_, value)| value.as_str())
    }

    /// `rtt 12.9ms, way as is`.
    pub fn place(&self) -> String {
        place(&self.at)
    }
}

/// A cell's coordinates as words.
pub(crate) fn place(at: &[(String, String)]) -> String {
    at.iter().map(|(axis, value)| format!("{axis} {value}")).collect::<Vec<_>>().join(", ")
}

/// What a program has allocated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocated {
    /// How often, where that is known.
    pub count: Option<u64>,
    /// Bytes.
    pub bytes: u64,
}

impl Allocated {
    /// What has been allocated since then.
    pub(crate) fn since(self, before: Self) -> Self {
        let count = self.count.zip(before.count).map(|(now, then)| now.saturating_sub(then));
        Self { count, bytes: self.bytes.saturating_sub(before.bytes) }
    }
}
