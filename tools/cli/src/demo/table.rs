//! What the runs came to, for people.

use std::time::Duration;

use onetrip_report::{Align, Columns, count, duration};

use super::program::Way;
use super::runs::{Cell, Line, Plan, milliseconds};

/// Least widths of the columns.
const LABEL: usize = 22;
const TRIPS: usize = 6;
const TIME: usize = 10;
/// A link that is later than this part of the round-trip time makes times doubtful.
const LATENESS_PARTS: u32 = 20;

/// All runs, side by side.
#[derive(Debug)]
pub(super) struct Table<'r> {
    pub(super) plan: &'r Plan,
    pub(super) lines: &'r [Line],
    /// Whether the database is in this process, and not at some distance of its own.
    pub(super) is_embedded: bool,
}

impl Table<'_> {
    /// The table and what must be known to read it, no line wider than 100 columns.
    pub(super) fn text(&self) -> String {
        let mut text = format!("The same {} employees three ways, every answer checked:\n\n", self.all());
        for line in self.columns().lines() {
            text += &format!("{}\n", line.trim_end());
        }
        text.push('\n');
        for note in self.notes() {
            text += &format!("{note}\n");
        }
        text
    }

    /// Each way's trips, and its times at each distance.
    fn columns(&self) -> Columns {
        let mut columns = Columns::new("  ").column(Align::Left, LABEL).column(Align::Right, TRIPS);
        let (mut above, mut heads) = (vec![(String::new(), 2)], vec!["", "trips"]);
        for distance in &self.plan.distances {
            let (name, kinds) = match distance {
                &Duration::ZERO if self.is_embedded => ("local".to_owned(), &["measured"][..]),
                &Duration::ZERO => ("direct".to_owned(), &["measured"][..]),
                distance => (self.name(*distance), &["measured", "forecast"][..]),
            };
            above.push((name, kinds.len()));
            heads.extend(kinds);
            columns = kinds.iter().fold(columns, |columns, _| columns.column(Align::Right, TIME));
        }
        columns.row_of_spans(above);
        columns.row(heads);
        self.lines.iter().for_each(|line| columns.row(self.cells(line)));
        columns
    }

    fn cells(&self, line: &Line) -> Vec<String> {
        let label = match line.employees {
            employees if employees < self.plan.employees => {
                format!("{}, first {}", line.way, count(employees as u64))
            }
            _ => line.way.to_string(),
        };
        let mut cells = vec![label, count(line.analysis.summary.trips.work())];
        let dash = || "-".to_owned();
        for (distance, cell) in self.plan.distances.iter().zip(&line.cells) {
            cells.push(cell.measured.map_or_else(dash, of));
            if !distance.is_zero() {
                cells.push(cell.forecast.map_or_else(dash, |forecast| duration(forecast.time_ns)));
            }
        }
        cells
    }

    /// What was left out, what the times are worth, and what it all means.
    fn notes(&self) -> Vec<String> {
        let mut notes =
            vec!["Trips without those to connect; times from connecting to the last answer.".to_owned()];
        let farthest = self.name(self.plan.farthest());
        if let Some(sample) = self.plan.sample {
            notes.push(format!(
                "At {farthest} the loop ran over the first {} of {} employees only; --full runs all.",
                count(sample as u64),
                self.all(),
            ));
        }
        if let Some((distance, late)) = self.late() {
            notes.push(format!(
                "This machine was too busy for exact times: at {} a trip took {} longer than that.",
                self.name(distance),
                of(late)
            ));
        }
        notes.extend(self.story());
        notes.extend(self.removed());
        notes
    }

    /// The end of the story: the loop without its trips, in two lines.
    fn removed(&self) -> Option<String> {
        let line = self.lines.iter().find(|line| line.way == Way::Exact)?;
        let summary = &line.analysis.summary;
        let removed: u64 = summary.removed.values().sum();
        Some(format!(
            "With --remedies exact, inside a REPEATABLE READ transaction, the same loop takes {} there:\n\
             the gateway has removed {} of its {} trips.",
            of(line.cells.last()?.measured?),
            count(removed),
            count(removed + summary.trips.work()),
        ))
    }

    /// The sentence that stays.
    fn story(&self) -> Option<String> {
        let line = |way| self.lines.iter().find(|line| line.way == way);
        let (loop_, join) = (line(Way::AsIs)?, line(Way::Join)?);
        let (near, far) = (loop_.cells.first()?.measured?, loop_.cells.last()?);
        let far = match far {
            Cell { measured: Some(time), .. } => of(*time),
            Cell { forecast: Some(forecast), .. } => format!("{} (forecast)", duration(forecast.time_ns)),
            Cell { .. } => return None,
        };
        Some(format!(
            "The loop takes {} here and {far} at {}; the JOIN takes {} there.",
            of(near),
            self.name(self.plan.farthest()),
            of(join.cells.last()?.measured?),
        ))
    }

    /// The nearest distance at which a link was much too late, and by how much.
    ///
    /// Few trips, such as those of the short ways, say nothing about a link.
    fn late(&self) -> Option<(Duration, Duration)> {
        let loops = self.lines.iter().filter(|line| line.way == Way::AsIs);
        let cells = loops.flat_map(|line| self.plan.distances.iter().zip(&line.cells));
        let doubtful = cells.filter(|(distance, cell)| cell.late > **distance / LATENESS_PARTS);
        doubtful.map(|(distance, cell)| (*distance, cell.late)).min()
    }

    fn name(&self, distance: Duration) -> String {
        let far = milliseconds(distance);
        if self.is_embedded { format!("{far} away") } else { format!("{far} farther") }
    }

    fn all(&self) -> String {
        count(self.plan.employees as u64)
    }
}

fn of(time: Duration) -> String {
    duration(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}
