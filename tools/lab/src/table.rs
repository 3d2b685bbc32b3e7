//! Samples as tables: for a terminal, and as Markdown.

use onetrip_report::{Align, Columns, count, duration};

use crate::cell::Cell;
use crate::measure::{Measure, bytes};
use crate::samples::Samples;
use crate::statistics::Summary;

/// What stands above each number.
const NUMBERS: [&str; 12] =
    ["rounds", "sum", "min", "mean", "median", "p99", "max", "trips", "sent", "received", "CPU/op", "memory"];
/// Numbers that only some workloads have.
const EXTRAS: [(&str, Measure); 5] = [
    ("server CPU/op", Measure::ServerCpuPerOperation),
    ("server idle", Measure::ServerIdle),
    ("allocated/op", Measure::AllocatedPerOperation),
    ("WAL", Measure::Wal),
    ("beside p99", Measure::BesideP99),
];

/// Numbers that compare few sessions with many.
const OF_SESSIONS: [(&str, Measure); 2] =
    [("op/s", Measure::Throughput), ("time/op", Measure::TimePerOperation)];

/// A table with its head, as texts.
pub(crate) struct Table {
    pub(crate) head: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
    /// Leading columns that are names.
    pub(crate) names: usize,
}

impl Table {
    /// A row for each cell.
    pub(crate) fn of(samples: &Samples) -> Self {
        let first = samples.cells.first().map(|cell| cell.at.as_slice()).unwrap_or_default();
        let axes: Vec<&str> = first.iter().map(|(axis, _)| axis.as_str()).collect();
        // An axis with one value says nothing.
        let axes: Vec<&str> =
            axes.into_iter().filter(|axis| *axis == "way" || samples.values_of(axis).len() > 1).collect();
        let has = |measure: Measure| samples.cells.iter().any(|cell| measure.of(cell).is_some());
        // What a workload writes is of interest where somebody waits for it.
        let is_told = |measure: Measure| has(measure) && (measure != Measure::Wal || has(Measure::BesideP99));
        let of_sessions = OF_SESSIONS.into_iter().filter(|_| samples.values_of("sessions").len() > 1);
        let others = EXTRAS.into_iter().filter(|(_, measure)| is_told(*measure));
        let extras: Vec<(&str, Measure)> = of_sessions.chain(others).collect();
        let mut head: Vec<String> = axes.iter().chain(&NUMBERS).map(|name| (*name).to_owned()).collect();
        head.extend(extras.iter().map(|(name, _)| (*name).to_owned()));
        let row = |cell: &Cell| {
            let names = axes.iter().map(|axis| cell.on(axis).unwrap_or_default().to_owned());
            let mut row: Vec<String> = names.chain(numbers(cell)).collect();
            row.extend(extras.iter().map(|(_, measure)| shown(cell, *measure)));
            row
        };
        Self { names: axes.len(), rows: samples.cells.iter().map(row).collect(), head }
    }

    /// Whether it has the numbers that compare few sessions with many.
    pub(crate) fn compares_sessions(&self) -> bool {
        OF_SESSIONS.iter().all(|(name, _)| self.head.iter().any(|head| head == name))
    }

    /// Names on the left, numbers on the right.
    fn lines(&self) -> impl Iterator<Item = String> {
        let aligns =
            (0..self.head.len()).map(|column| if column < self.names { Align::Left } else { Align::Right });
        let mut columns = aligns.fold(Columns::new("  "), |columns, align| columns.column(align, 0));
        columns.row(self.head.iter().map(String::as_str));
        self.rows.iter().for_each(|row| columns.row(row.iter().map(String::as_str)));
        columns.lines().into_iter().map(|line| line.trim_end().to_owned())
    }

    /// The table as Markdown.
    pub(crate) fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let rule: Vec<String> = (0..self.head.len())
            .map(|column| if column < self.names { "---" } else { "--:" }.to_owned())
            .collect();
        let mut out = line(&self.head) + &line(&rule);
        out.extend(self.rows.iter().map(|row| line(row)));
        out
    }
}

/// The samples for a terminal: table, what was left out, and the verdict.
pub fn text(samples: &Samples) -> String {
    let mut out = format!("{}\n\n", samples.title);
    for line in Table::of(samples).lines() {
        out.push_str(&line);
        out.push('\n');
    }
    for left_out in &samples.left_out {
        out.push_str(&format!("left out: {left_out}\n"));
    }
    out.push_str(&format!("\n{}\n", samples.verdict));
    out
}

fn numbers(cell: &Cell) -> Vec<String> {
    let times = Summary::of(&cell.rounds_ns);
    let mut out = vec![count(times.count)];
    out.extend([times.sum, times.min, times.mean, times.median, times.p99, times.max].map(duration));
    out.push(count(cell.trips));
    out.extend([cell.bytes_sent, cell.bytes_received].map(bytes));
    out.extend([shown(cell, Measure::CpuPerOperation), shown(cell, Measure::Memory)]);
    out
}

fn shown(cell: &Cell, measure: Measure) -> String {
    measure.of(cell).map(|value| measure.show(value)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::samples_of;

    #[test]
    fn a_table_has_a_row_for_each_cell_and_ends_with_the_verdict() {
        let samples = samples_of(&[("1", "slow", 900), ("2", "slow", 1_800)]);
        let shown = text(&samples);
        assert!(shown.contains("n  way   rounds"), "{shown}");
        assert!(shown.lines().any(|line| line.starts_with("2  slow") && line.contains("1.80 µs")), "{shown}");
        assert!(shown.ends_with("\nSaid.\n"));
        assert_eq!(Table::of(&samples).markdown().lines().count(), 4);
    }
}
