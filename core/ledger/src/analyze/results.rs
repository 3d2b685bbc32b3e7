use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use super::event::{Event, Place, Run};
use crate::Moment;

/// Results of one connection that a loop may walk; one per template, so that a loop's body does not push out its source.
const KEPT_PER_CONNECTION: usize = 32;
/// Results of all connections that another connection's loop may walk.
const KEPT_GLOBALLY: usize = 64;
/// Most values kept per connection.
const VALUES_MAX: usize = 256 * 1024;
/// Most values kept for all connections, but for results that are kept already: with more, each that gets a result keeps its
/// share only.
const VALUES_MAX_IN_ALL: usize = 4 << 20;

/// Values that are looked through one by one: most results have none of those that are looked for, and an index for each takes
/// longer to make. With more than a few, marks are asked first.
const SCANNED_MAX: usize = 4_096;
const UNMARKED_MAX: usize = 32;

/// Rows of an earlier result, as far as their columns may be keys.
#[derive(Debug)]
pub(super) struct ResultSet {
    /// The same for all pieces of a result that was fetched in pieces.
    pub(super) id: u64,
    pub(super) template: u32,
    pub(super) request: u64,
    pub(super) completed_at: Moment,
    pub(super) place: Place,
    /// Exchanges of its connection when a loop over it took its latest row.
    used_at: AtomicU64,
    pub(super) columns: Arc<[String]>,
    pub(super) width: usize,
    values: Box<[u32]>,
    /// Made when a loop first looks for a value.
    marks: OnceLock<Box<Present>>,
    /// Cells ordered by value, then position: made when the first loop looks, of a short result when one has found its value.
    index: OnceLock<Box<[(u32, u32)]>>,
}

impl ResultSet {
    /// Rows at or after `from` whose column `column` has this value.
    pub(super) fn rows_with(&self, value: u32, column: usize, from: usize) -> Option<usize> {
        self.cells(value)
            .map(|cell| (cell / self.width, cell % self.width))
            .find_map(|(row, found)| (found == column && row >= from).then_some(row))
    }

    /// How many exchanges ago its connection got it, or a loop over it took a row.
    pub(super) fn unused_for(&self, now: Place) -> u64 {
        now.count.saturating_sub(self.used_at.load(Relaxed))
    }

    /// A loop takes a row now.
    pub(super) fn used(&self, now: Place) {
        if now.connection == self.place.connection {
            self.used_at.fetch_max(now.count, Relaxed);
        }
    }

    /// Whether any cell has this value.
    pub(super) fn has(&self, value: u32) -> bool {
        if self.values.len() > SCANNED_MAX {
            return self.cells(value).next().is_some();
        }
        let may_be = self.values.len() <= UNMARKED_MAX || self.marks().may_have(value);
        may_be && self.values.contains(&value)
    }

    fn marks(&self) -> &Present {
        self.marks.get_or_init(|| {
            let mut marks = Present::default();
            marks.reset(self.values.len());
            marks.add(self);
            Box::new(marks)
        })
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
            cells.into()
        });
        let start = index.partition_point(|(found, _)| *found < value);
        index[start..].iter().take_while(move |(found, _)| *found == value).map(|(_, cell)| *cell as usize)
    }
}

/// The latest results that a loop's parameters may come from.
#[derive(Debug, Default)]
pub(super) struct Recent {
    /// Latest first; each with what a newer one of the same takes its place by.
    results: VecDeque<(u64, Arc<ResultSet>)>,
    values: usize,
    present: Present,
}

/// Marks values by their lowest bits: tells in one look that none of the results has a value, as is mostly the case. Marks of
/// results that are gone stay until all are made anew.
#[derive(Debug)]
struct Present {
    /// As many bits as a power of two, or none.
    words: Vec<u64>,
    /// Values that were marked and are gone.
    stale: usize,
    /// As many bits as it may have.
    bits_max: usize,
}

impl Default for Present {
    fn default() -> Self {
        Self { words: Vec::new(), stale: 0, bits_max: Self::BITS_MAX }
    }
}

impl Present {
    const BITS_MIN: usize = 256;
    /// Those of one connection: there are many.
    const BITS_MAX: usize = 1 << 16;
    /// Those of the results of all connections: enough for all of [`VALUES_MAX`].
    const BITS_MAX_EVERYWHERE: usize = VALUES_MAX * Self::BITS_PER_VALUE;
    /// So many bits for each value: one in nine values that are not there seems to be.
    const BITS_PER_VALUE: usize = 8;

    fn may_have(&self, value: u32) -> bool {
        let (word, bit) = place(value, self.words.len().wrapping_sub(1));
        self.words.get(word).is_some_and(|word| word & bit != 0)
    }

    /// Whether it tells too little of so many values.
    fn is_outgrown(&self, values: usize) -> bool {
        let bits = self.words.len() * 64;
        (bits < self.bits_max && bits < values * Self::BITS_PER_VALUE) || self.stale > values
    }

    /// Forgets everything and makes room for so many values, and some more.
    fn reset(&mut self, values: usize) {
        let wanted = (values * Self::BITS_PER_VALUE).next_power_of_two();
        self.words.clear();
        self.words.resize(wanted.clamp(Self::BITS_MIN, self.bits_max) / 64, 0);
        self.stale = 0;
    }

    fn add(&mut self, result: &ResultSet) {
        let mask = self.words.len().wrapping_sub(1);
        for value in &*result.values {
            let (word, bit) = place(*value, mask);
            if let Some(word) = self.words.get_mut(word) {
                *word |= bit;
            }
        }
    }
}

/// Word and bit that mark a value; `mask` is one less than there are words.
fn place(value: u32, mask: usize) -> (usize, u64) {
    ((value as usize / 64) & mask, 1 << (value % 64))
}

impl Recent {
    /// Latest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<ResultSet>> {
        self.results.iter().map(|(_, result)| result)
    }

    /// Whether any of the results may have one of these values; false is certain.
    pub(super) fn may_have(&self, values: &[u64]) -> bool {
        values.iter().any(|value| *value != 0 && self.present.may_have(*value as u32))
    }

    fn put(&mut self, key: u64, result: Arc<ResultSet>, kept: usize, values_max: usize) {
        self.drop(key);
        self.values += result.values.len();
        self.results.push_front((key, result));
        while self.results.len() > kept || (self.values > values_max && self.results.len() > 1) {
            self.remove(self.results.len() - 1);
        }
        if self.present.is_outgrown(self.values) {
            self.present.reset(self.values);
            self.results.iter().for_each(|(_, kept)| self.present.add(kept));
        } else if let Some((_, newest)) = self.results.front() {
            self.present.add(newest);
        }
    }

    /// Forgets the result with this key, if there is one.
    fn drop(&mut self, key: u64) {
        if let Some(position) = self.results.iter().position(|(old, _)| *old == key) {
            self.remove(position);
        }
    }

    fn remove(&mut self, position: usize) {
        if let Some((_, old)) = self.results.remove(position) {
            self.values -= old.values.len();
            self.present.stale += old.values.len();
        }
    }
}

/// Keeps what results may be walked, on their own connection and from others.
#[derive(Debug)]
pub(super) struct ResultStore {
    next_id: u64,
    /// Values that connections keep, and how many do.
    values: usize,
    keepers: usize,
    pub(super) everywhere: Recent,
}

impl Default for ResultStore {
    fn default() -> Self {
        let present = Present { bits_max: Present::BITS_MAX_EVERYWHERE, ..Present::default() };
        Self { next_id: 0, values: 0, keepers: 0, everywhere: Recent { present, ..Recent::default() } }
    }
}

impl ResultStore {
    /// Keeps the result of `run` where it has rows to walk.
    pub(super) fn keep(&mut self, own: &mut Recent, event: &Event<'_>, run: &Run<'_>) {
        let width = usize::from(run.statement.key_columns);
        let Some(columns) = run.columns.filter(|columns| width > 0 && columns.len() == width) else { return };
        let earlier = run.continues().then(|| own.iter().find(|old| old.template == run.template)).flatten();
        let earlier = earlier.filter(|earlier| earlier.width == width);
        let before: &[u32] = earlier.map_or(&[], |earlier| &earlier.values);
        // Most results are one row: they take no memory.
        if before.len() + run.results.len() < 2 * width {
            return;
        }
        let id = match earlier {
            Some(earlier) => earlier.id,
            None => {
                self.next_id += 1;
                self.next_id
            }
        };
        let mut values = [before, run.results].concat();
        values.truncate(VALUES_MAX / width * width);
        let result = Arc::new(ResultSet {
            id,
            template: run.template,
            request: event.exchange.request,
            completed_at: event.exchange.last_reply_at,
            place: event.place,
            used_at: AtomicU64::new(event.place.count),
            columns: Arc::clone(columns),
            width,
            values: values.into(),
            marks: OnceLock::new(),
            index: OnceLock::new(),
        });
        let template = u64::from(run.template);
        let count = result.values.len();
        self.everywhere.put(id, Arc::clone(&result), KEPT_GLOBALLY, VALUES_MAX);
        let before = own.values;
        self.keepers += usize::from(before == 0);
        let share = match self.values + count > VALUES_MAX_IN_ALL {
            true => VALUES_MAX_IN_ALL / self.keepers,
            false => VALUES_MAX,
        };
        if count <= share {
            own.put(template, result, KEPT_PER_CONNECTION, share);
        } else {
            own.drop(template);
        }
        self.values = self.values - before + own.values;
        self.keepers -= usize::from(own.values == 0);
    }

    /// A connection has ended, and keeps nothing any more.
    pub(super) fn forget(&mut self, own: Recent) {
        self.values -= own.values;
        self.keepers -= usize::from(own.values > 0);
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
            place: Place::default(),
            used_at: AtomicU64::new(0),
            columns: Arc::from([]),
            width: 1,
            values: values.into(),
            marks: OnceLock::new(),
            index: OnceLock::new(),
        })
    }

    proptest! {
        #[test]
        fn a_result_has_the_values_that_it_has(
            values in proptest::collection::vec(0..9_000u32, 0..SCANNED_MAX + 99),
            others in proptest::collection::vec(any::<u32>(), 50),
        ) {
            let result = result(1, values.clone());
            for value in values.iter().chain(&others).copied().chain(0..99) {
                prop_assert_eq!(result.has(value), values.contains(&value));
            }
        }

        #[test]
        fn a_value_that_a_kept_result_has_is_never_said_to_be_absent(
            results in proptest::collection::vec(proptest::collection::vec(any::<u32>(), 0..300), 1..40),
        ) {
            let mut recent = Recent::default();
            for (id, values) in (0..).zip(results) {
                recent.put(id % 9, result(id % 9, values), 5, VALUES_MAX);
                for kept in recent.iter() {
                    let missed = kept.values.iter().find(|value| **value != 0 && !recent.may_have(&[u64::from(**value)]));
                    prop_assert_eq!(missed, None);
                }
            }
            let marked: u32 = recent.present.words.iter().map(|word| word.count_ones()).sum();
            prop_assert!(marked as usize <= recent.values + recent.present.stale, "marks do not pile up");
            prop_assert!(recent.present.stale <= recent.values);
        }
    }
}
