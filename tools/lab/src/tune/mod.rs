//! Chooses a fetch size and how much of each large value comes with its row. A model chooses first. Then the choice
//! and its neighbours are measured.

mod check;
mod shape;
mod words;

use std::time::Duration;

pub use check::{Checked, check};
pub use shape::{Shape, of_table, of_trace};
pub use words::settings;

/// Fetch sizes that are considered, and the number of rows itself.
const FETCH_SIZES: [u64; 13] =
    [10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000];
/// Bytes of a row's message beside its values, about.
const ROW_OVERHEAD: u64 = 20;
/// A larger fetch size has to be faster by more than this share of the time; else the smaller one is taken.
const WORTH_PERCENT: u128 = 5;

/// What is read, from where, and what may be spent on it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Task {
    /// Rows of the result.
    pub rows: u64,
    /// Bytes of a row without its large value.
    pub row_bytes: u64,
    /// Bytes of the large value in each row; zero where there is none.
    pub lob_bytes: u64,
    /// In how many of a hundred rows the large value is looked at.
    pub share_percent: u64,
    /// The distance.
    pub rtt: Duration,
    /// Bits for each second of the path.
    pub bits_per_second: u64,
    /// Bytes that the client may hold at once for messages and rows.
    pub memory: u64,
}

/// How much of a large value comes with its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Prefetch {
    /// Nothing: two trips for each value that is read, for its length and for itself.
    Nothing,
    /// Its length: one trip for each value that is read.
    Length,
    /// All of it: no trip of its own.
    Whole,
}

/// A pair of settings, and what the model says of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// Rows for each trip.
    pub fetch: u64,
    /// What comes with them.
    pub prefetch: Prefetch,
    /// Trips for the whole result, its transaction included.
    pub trips: u64,
    /// What the path takes of the time.
    pub time: Duration,
    /// Bytes that the client holds at once.
    pub memory: u64,
}

impl Task {
    /// Large values that are read.
    pub fn reads(&self) -> u64 {
        if self.lob_bytes == 0 { 0 } else { self.rows * self.share_percent.min(100) / 100 }
    }

    /// What the model says of these settings.
    pub fn predict(&self, fetch: u64, prefetch: Prefetch) -> Choice {
        let fetch = fetch.clamp(1, self.rows.max(1));
        let (with_row, each) = match prefetch {
            Prefetch::Nothing => (0, 2),
            Prefetch::Length => (8, 1),
            Prefetch::Whole => (self.lob_bytes, 0),
        };
        let row = self.row_bytes + ROW_OVERHEAD + with_row;
        // A piece that ends with the last row is followed by an empty one; BEGIN and COMMIT are two trips.
        let trips = self.rows / fetch + 1 + 2 + self.reads() * each;
        let apart = if prefetch == Prefetch::Whole { 0 } else { self.lob_bytes };
        let bytes = u128::from(self.rows * row) + u128::from(self.reads() * apart);
        let carried = bytes * 8 * 1_000_000_000 / u128::from(self.bits_per_second.max(1));
        let waited = self.rtt.as_nanos() * u128::from(trips);
        let time = Duration::from_nanos(u64::try_from(carried + waited).unwrap_or(u64::MAX));
        // While one value is read, the piece that it belongs to is still there.
        let alone = if self.reads() > 0 { apart } else { 0 };
        Choice { fetch, prefetch, trips, time, memory: fetch * row + alone }
    }

    /// The settings with the least time within the memory, or with the least memory where nothing fits.
    pub fn choose(&self) -> Choice {
        let all = self.prefetches().into_iter().flat_map(|prefetch| {
            self.fetch_sizes().into_iter().map(move |fetch| self.predict(fetch, prefetch))
        });
        let all: Vec<Choice> = all.collect();
        let fitting: Vec<&Choice> = all.iter().filter(|choice| choice.memory <= self.memory).collect();
        let Some(least) = fitting.iter().map(|choice| choice.time.as_nanos()).min() else {
            let smallest = all.into_iter().min_by_key(|choice| (choice.memory, choice.time));
            return smallest.unwrap_or_else(|| self.predict(1, Prefetch::Nothing));
        };
        let is_near = |choice: &&&Choice| choice.time.as_nanos() * 100 <= least * (100 + WORTH_PERCENT);
        let chosen = fitting.iter().filter(is_near).min_by_key(|choice| (choice.memory, choice.time));
        chosen.map_or_else(|| self.predict(1, Prefetch::Nothing), |choice| **choice)
    }

    /// Fetch sizes below and above this one.
    pub fn neighbours(&self, fetch: u64) -> Vec<u64> {
        let sizes = self.fetch_sizes();
        let place = sizes.iter().position(|size| *size >= fetch).unwrap_or(0);
        sizes[place.saturating_sub(1)..sizes.len().min(place + 2)].to_vec()
    }

    fn fetch_sizes(&self) -> Vec<u64> {
        let rows = self.rows.max(1);
        FETCH_SIZES.into_iter().filter(|size| *size < rows).chain([rows]).collect()
    }

    fn prefetches(&self) -> Vec<Prefetch> {
        match self.lob_bytes {
            0 => vec![Prefetch::Nothing],
            _ => vec![Prefetch::Nothing, Prefetch::Length, Prefetch::Whole],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TASK: Task = Task {
        rows: 1_000,
        row_bytes: 20,
        lob_bytes: 4_000,
        share_percent: 100,
        rtt: Duration::from_micros(500),
        bits_per_second: 1_000_000_000,
        memory: 64 << 20,
    };

    #[test]
    fn values_that_are_all_read_come_with_their_rows_as_far_as_memory_goes() {
        let chosen = TASK.choose();
        assert_eq!(chosen.prefetch, Prefetch::Whole);
        assert!(chosen.fetch >= 200 && chosen.memory <= TASK.memory, "{chosen:?}");
        let tight = Task { memory: 100_000, ..TASK };
        assert_eq!((tight.choose().prefetch, tight.choose().fetch), (Prefetch::Whole, 20));
        let tightest = Task { memory: 10, ..TASK };
        assert_eq!(tightest.choose().fetch, 10);
    }

    #[test]
    fn values_that_are_seldom_read_over_a_narrow_path_stay_behind() {
        let seldom = Task { share_percent: 5, bits_per_second: 10_000_000, ..TASK };
        assert_eq!(seldom.choose().prefetch, Prefetch::Length);
        assert_eq!(seldom.reads(), 50);
    }

    #[test]
    fn the_model_counts_the_trips_that_the_workload_counts() {
        assert_eq!(TASK.predict(10, Prefetch::Nothing).trips, 2_103);
        assert_eq!(TASK.predict(100, Prefetch::Length).trips, 1_013);
        assert_eq!(TASK.predict(1_000, Prefetch::Whole).trips, 4);
        assert_eq!(Task { lob_bytes: 0, rows: 20_000, ..TASK }.predict(10, Prefetch::Nothing).trips, 2_003);
    }

    #[test]
    fn neighbours_are_the_sizes_next_to_the_chosen_one() {
        assert_eq!(TASK.neighbours(100), [50, 100, 200]);
        assert_eq!(TASK.neighbours(10), [10, 20]);
        assert_eq!(TASK.neighbours(1_000), [500, 1_000]);
    }
}
