//! The numbers of a cell that can be looked at, and how each is written.

use onetrip_report::{count, duration};
use serde::{Deserialize, Serialize};

use crate::cell::Cell;
use crate::statistics::Summary;

/// A number of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Median wall time of a round.
    Time,
    /// What one session took for an operation, by the median round: a statement's latency where each is waited for.
    TimePerOperation,
    /// Operations in a second, by the median round.
    Throughput,
    /// Trips of a round.
    Trips,
    /// Median CPU time of the clients by operation.
    CpuPerOperation,
    /// Median CPU time of the server by operation.
    ServerCpuPerOperation,
    /// Share of the time that the server's processors could have worked for the sessions and did not.
    ServerIdle,
    /// Bytes allocated by operation.
    AllocatedPerOperation,
    /// Most bytes that one client held at once.
    Memory,
    /// Median of the write-ahead log written in a round.
    Wal,
    /// What 99 in 100 statements of the session beside did not take longer than.
    BesideP99,
    /// Bytes in both directions.
    Bytes,
}

impl Measure {
    /// The cell's number; `None` where it was not measured.
    pub fn of(self, cell: &Cell) -> Option<f64> {
        if let Some(rounds) = self.rounds(cell) {
            return (!rounds.is_empty()).then(|| self.of_round(cell, Summary::of(rounds).median));
        }
        match self {
            Self::Trips => Some(cell.trips as f64),
            Self::ServerIdle => {
                let wall: u64 = cell.rounds_ns.iter().sum();
                let used: u64 = cell.server_cpu_ns.iter().sum();
                let all = (wall * cell.processors.max(1)) as f64;
                (!cell.server_cpu_ns.is_empty() && wall > 0).then(|| (1.0 - used as f64 / all).max(0.0))
            }
            Self::AllocatedPerOperation => {
                cell.allocated.map(|all| all.bytes as f64 / cell.operations.max(1) as f64)
            }
            Self::Memory => (cell.memory_max > 0).then_some(cell.memory_max as f64),
            Self::BesideP99 => (!cell.beside_ns.is_empty()).then(|| Summary::of(&cell.beside_ns).p99 as f64),
            Self::Bytes => Some((cell.bytes_sent + cell.bytes_received) as f64),
            // They have rounds.
            Self::Time
            | Self::TimePerOperation
            | Self::Throughput
            | Self::CpuPerOperation
            | Self::ServerCpuPerOperation
            | Self::Wal => None,
        }
    }

    /// The least and the greatest round of the cell, where the number is the median of several.
    pub fn spread(self, cell: &Cell) -> Option<(f64, f64)> {
        let rounds = self.rounds(cell).filter(|rounds| rounds.len() > 1)?;
        let (least, most) = (rounds.iter().min()?, rounds.iter().max()?);
        let ends = [self.of_round(cell, *least), self.of_round(cell, *most)];
        Some((ends[0].min(ends[1]), ends[0].max(ends[1])))
    }

    /// What was measured of each round, where the number is a median.
    fn rounds(self, cell: &Cell) -> Option<&[u64]> {
        match self {
            Self::Time | Self::TimePerOperation | Self::Throughput => Some(&cell.rounds_ns),
            Self::CpuPerOperation => Some(&cell.cpu_ns),
            Self::ServerCpuPerOperation => Some(&cell.server_cpu_ns),
            Self::Wal => Some(&cell.wal_bytes),
            _ => None,
        }
    }

    /// The number of one round.
    fn of_round(self, cell: &Cell, round: u64) -> f64 {
        let (round, operations) = (round as f64, cell.operations.max(1) as f64);
        match self {
            Self::TimePerOperation => round * cell.sessions.max(1) as f64 / operations,
            Self::Throughput => operations * 1e9 / round.max(1.0),
            Self::CpuPerOperation | Self::ServerCpuPerOperation => round / operations,
            _ => round,
        }
    }

    /// The number as people read it.
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Time
            | Self::TimePerOperation
            | Self::CpuPerOperation
            | Self::ServerCpuPerOperation
            | Self::BesideP99 => duration(value.round() as u64),
            Self::ServerIdle => format!("{:.0} %", value * 100.0),
            Self::Throughput => format!("{}/s", count(value.round() as u64)),
            Self::Trips => count(value.round() as u64),
            Self::Memory | Self::Wal | Self::Bytes | Self::AllocatedPerOperation => {
                bytes(value.round() as u64)
            }
        }
    }

    /// What an axis with it is called.
    pub fn label(self) -> &'static str {
        match self {
            Self::Time => "time of a round, median",
            Self::TimePerOperation => "time of a session per operation, median",
            Self::Throughput => "operations per second, median",
            Self::Trips => "trips of a round",
            Self::CpuPerOperation => "client CPU per operation, median",
            Self::ServerCpuPerOperation => "server CPU per operation, median",
            Self::ServerIdle => "server idle share",
            Self::AllocatedPerOperation => "bytes allocated per operation",
            Self::Memory => "bytes held by a client, peak",
            Self::Wal => "write-ahead log of a round, median",
            Self::BesideP99 => "wait of the session beside, p99",
            Self::Bytes => "bytes of a round, both ways",
        }
    }
}

/// Three digits and a decimal unit: `912 B`, `12.3 kB`.
pub fn bytes(number: u64) -> String {
    let mut scaled = number as f64;
    for unit in ["B", "kB", "MB", "GB"] {
        if scaled < 999.5 || unit == "GB" {
            return match unit {
                "B" => format!("{number} B"),
                _ => format!("{} {unit}", digits(scaled)),
            };
        }
        scaled /= 1e3;
    }
    count(number)
}

/// Three digits: `1.23`, `12.3`, `123`.
pub(crate) fn digits(value: f64) -> String {
    if value < 9.995 {
        format!("{value:.2}")
    } else if value < 99.95 {
        format!("{value:.1}")
    } else {
        count(value.round() as u64)
    }
}
