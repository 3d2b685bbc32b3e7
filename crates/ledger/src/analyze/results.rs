use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::OnceLock;

use super::event::{Event, Run};
use crate::Moment;

/// Results of one connection that a loop may walk; one per template, so that a loop's body does not push out its source.
const KEPT_PER_CONNECTION: usize = 32;
/// Results of all connections that another connection's loop may walk.
const KEPT_GLOBALLY: usize = 64;
/// Most values kept per connection.
const VALUES_MAX: usize = 256 * 1024;

/// Rows of an earlier result, as far as their columns may be keys.
#[derive(Debug)]
pub(super) struct ResultSet {
    /// The same for all pieces of a result that was fetched in pieces.
    pub(super) id: u64,
    pub(super) template: u32,
    pub(super) request: u64,
    pub(super) completed_at: Moment,
    pub(super) columns: Arc<[String]>,
    pub(super) width: usize,
    values: Vec<u32>,
    /// Cells ordered by value, then position: made when the first loop looks.
    index: OnceLock<Vec<(u32, u32)>>,
}

impl ResultSet {
    /// Rows at or after `from` whose column `column` has this value.
    pub(super) fn rows_with(&self, value: u32, column: usize, from: usize) -> Option<usize> {
        self.cells(value)
            .map(|cell| (cell / self.width, cell % self.width))
            .find_map(|(row, found)| (found == column && row >= from).then_some(row))
    }

    /// Whether any cell has this value.
    pub(super) fn has(&self, value: u32) -> bool {
        self.cells(value).next().is_some()
    }

    /// Whether the cell at `row` and `column` has this value.
    pub(super) fn is(&self, row: usize, column: usize, value: u32) -> bool {
        self.values.get(row * self.width + column) == Some(&value)
    }

    fn cells(&self, value: u32) -> impl Iterator<Item = usize> {
        let index = self.index.get_or_init(|| {
            let mut cells: Vec<_> =
                self.values.iter().zip(0u32..).map(|(value, cell)| (*value, cell)).collect();
            cells.sort_unstable();
            cells
        });
        let start = index.partition_point(|(found, _)| *found < value);
        index[start..].iter().take_while(move |(found, _)| *found == value).map(|(_, cell)| *cell as usize)
    }
}

/// The latest results that a loop's parameters may come from.
#[derive(Debug, Default)]
pub(super) struct Recent {
    /// Latest first.
    results: VecDeque<Arc<ResultSet>>,
    values: usize,
    present: Present,
}

/// Counts values by their lowest bits: tells in one look that none of the results has a value, as is mostly the case.
#[derive(Debug, Default)]
struct Present {
    /// As many as a power of two, or none.
    counts: Vec<u32>,
}

impl Present {
    const COUNTS_MIN: usize = 256;
    const COUNTS_MAX: usize = 1 << 16;
    /// So many counts for each value: one in nine values that are not there seems to be.
    const COUNTS_PER_VALUE: usize = 8;

    fn may_have(&self, value: u32) -> bool {
        let mask = self.counts.len().wrapping_sub(1);
        self.counts.get(value as usize & mask).is_some_and(|count| *count > 0)
    }

    /// Whether it has become too small for so many values.
    fn is_outgrown(&self, values: usize) -> bool {
        self.counts.len() < Self::COUNTS_MAX && self.counts.len() < values * Self::COUNTS_PER_VALUE
    }

    /// Forgets everything and makes room for so many values, and as many again.
    fn reset(&mut self, values: usize) {
        let wanted = (2 * values * Self::COUNTS_PER_VALUE).next_power_of_two();
        self.counts.clear();
        self.counts.resize(wanted.clamp(Self::COUNTS_MIN, Self::COUNTS_MAX), 0);
    }

    fn add(&mut self, result: &ResultSet) {
        self.change(result, |count| count.wrapping_add(1));
    }

    fn remove(&mut self, result: &ResultSet) {
        self.change(result, |count| count.wrapping_sub(1));
    }

    fn change(&mut self, result: &ResultSet, change: impl Fn(u32) -> u32) {
        let mask = self.counts.len().wrapping_sub(1);
        for value in &result.values {
            if let Some(count) = self.counts.get_mut(*value as usize & mask) {
                *count = change(*count);
            }
        }
    }
}

impl Recent {
    /// Latest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<ResultSet>> {
        self.results.iter()
    }

    /// Whether any of the results may have one of these values; false is certain.
    pub(super) fn may_have(&self, values: &[u64]) -> bool {
        values.iter().any(|value| *value != 0 && self.present.may_have(*value as u32))
    }

    fn put(&mut self, result: Arc<ResultSet>, kept: usize, same: impl Fn(&ResultSet) -> bool) {
        if let Some(position) = self.results.iter().position(|old| same(old)) {
            self.remove(position);
        }
        self.values += result.values.len();
        if self.present.is_outgrown(self.values) {
            self.present.reset(self.values);
            self.results.iter().for_each(|kept| self.present.add(kept));
        }
        self.present.add(&result);
        self.results.push_front(result);
        while self.results.len() > kept || (self.values > VALUES_MAX && self.results.len() > 1) {
            self.remove(self.results.len() - 1);
        }
    }

    fn remove(&mut self, position: usize) {
        if let Some(old) = self.results.remove(position) {
            self.values -= old.values.len();
            self.present.remove(&old);
        }
    }
}

/// Keeps what results may be walked, on their own connection and from others.
#[derive(Debug, Default)]
pub(super) struct ResultStore {
    next_id: u64,
    pub(super) everywhere: Recent,
}

impl ResultStore {
    /// Keeps the result of `run` where it has rows to walk.
    pub(super) fn keep(&mut self, own: &mut Recent, event: &Event<'_>, run: &Run<'_>) {
        let width = usize::from(run.statement.key_columns);
        let Some(columns) = run.columns.filter(|columns| width > 0 && columns.len() == width) else { return };
        let earlier = run.continues().then(|| own.iter().find(|old| old.template == run.template)).flatten();
        let (id, mut values) = match earlier {
            Some(earlier) if earlier.width == width => (earlier.id, earlier.values.clone()),
            _ => {
                self.next_id += 1;
                (self.next_id, Vec::new())
            }
        };
        values.extend_from_slice(run.results);
        values.truncate(VALUES_MAX / width * width);
        if values.len() < 2 * width {
            return;
        }
        let result = Arc::new(ResultSet {
            id,
            template: run.template,
            request: event.exchange.request,
            completed_at: event.exchange.last_reply_at,
            columns: Arc::clone(columns),
            width,
            values,
            index: OnceLock::new(),
        });
        let template = run.template;
        self.everywhere.put(Arc::clone(&result), KEPT_GLOBALLY, |old| old.id == id);
        own.put(result, KEPT_PER_CONNECTION, |old| old.template == template);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn result(id: u64, values: Vec<u32>) -> Arc<ResultSet> {
        Arc::new(ResultSet {
            id,
            template: 1,
            request: 0,
            completed_at: Moment(0),
            columns: Arc::from([]),
            width: 1,
            values,
            index: OnceLock::new(),
        })
    }

    proptest! {
        #[test]
        fn a_value_that_a_kept_result_has_is_never_said_to_be_absent(
            results in proptest::collection::vec(proptest::collection::vec(any::<u32>(), 0..300), 1..40),
        ) {
            let mut recent = Recent::default();
            for (id, values) in (0..).zip(results) {
                recent.put(result(id % 9, values), 5, |old| old.id == id % 9);
                for kept in recent.iter() {
                    let missed = kept.values.iter().find(|value| **value != 0 && !recent.may_have(&[u64::from(**value)]));
                    prop_assert_eq!(missed, None);
                }
            }
            while !recent.results.is_empty() {
                recent.remove(0);
            }
            prop_assert!(recent.present.counts.iter().all(|count| *count == 0), "all are taken out again");
        }
    }
}
