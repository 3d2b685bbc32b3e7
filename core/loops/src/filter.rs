//! Rows that the program passes by, told by the values that they have: `if row.status == "open"`.

use smallvec::SmallVec;

use crate::frame::{COLUMNS_MAX, Frame};

/// Values of one column that are told apart; with more it is only NULL or not.
const VALUES_MAX: usize = 8;

/// Skipped so often and never used: it will be skipped again.
const SKIPS_MIN: u32 = 8;

const NULL: u32 = 0;
const NOT_NULL: u32 = 1;

/// What the rows that were used and those that were skipped have in their columns.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filter {
    columns: Vec<Values>,
    excluded: SmallVec<[(u16, u32); 4]>,
}

#[derive(Debug, Clone, Default)]
struct Values {
    known: SmallVec<[Uses; VALUES_MAX]>,
    is_wide: bool,
}

#[derive(Debug, Clone, Copy)]
struct Uses {
    value: u32,
    used: u32,
    skipped: u32,
}

impl Filter {
    /// Whether the row has a value that was only ever skipped.
    pub(crate) fn excludes(&self, frame: &Frame, row: u32) -> bool {
        self.excluded.iter().any(|(column, value)| {
            let wide = self.columns.get(usize::from(*column)).is_some_and(|values| values.is_wide);
            seen_as(frame.fingerprint(row, *column), wide) == *value
        })
    }

    /// The program went from the row before `skipped` to the row after it. Where nothing was ever skipped there is
    /// nothing to learn.
    pub(crate) fn jumped(&mut self, frame: &Frame, skipped: impl Iterator<Item = u32>, used: u32) {
        let mut changed = false;
        for row in skipped {
            changed |= self.note(frame, row, false);
        }
        if self.columns.is_empty() {
            return;
        }
        changed |= self.note(frame, used, true);
        if changed {
            self.exclude();
        }
    }

    /// Whether what is excluded may have changed.
    fn note(&mut self, frame: &Frame, row: u32, is_used: bool) -> bool {
        let width = frame.columns().min(COLUMNS_MAX);
        if self.columns.len() < width {
            self.columns.resize(width, Values::default());
        }
        let mut changed = false;
        for (position, values) in self.columns.iter_mut().enumerate().take(width) {
            changed |= values.note(frame.fingerprint(row, position as u16), is_used);
        }
        changed
    }

    fn exclude(&mut self) {
        self.excluded.clear();
        for (position, values) in self.columns.iter().enumerate() {
            let only_skipped = values.known.iter().filter(|uses| uses.is_excluded());
            self.excluded.extend(only_skipped.map(|uses| (position as u16, uses.value)));
        }
    }
}

impl Uses {
    fn is_excluded(&self) -> bool {
        self.used == 0 && self.skipped >= SKIPS_MIN
    }
}

impl Values {
    fn note(&mut self, fingerprint: u32, is_used: bool) -> bool {
        let value = seen_as(fingerprint, self.is_wide);
        if let Some(uses) = self.known.iter_mut().find(|uses| uses.value == value) {
            let before = uses.is_excluded();
            let count = if is_used { &mut uses.used } else { &mut uses.skipped };
            *count = count.saturating_add(1);
            return before != uses.is_excluded();
        }
        if self.known.len() == VALUES_MAX {
            self.widen();
            self.note(fingerprint, is_used);
            return true;
        }
        self.known.push(Uses { value, used: u32::from(is_used), skipped: u32::from(!is_used) });
        false
    }

    /// Too many values: only NULL and the rest are told apart from now on.
    fn widen(&mut self) {
        self.is_wide = true;
        let mut rest = Uses { value: NOT_NULL, used: 0, skipped: 0 };
        for uses in self.known.iter().filter(|uses| uses.value != NULL) {
            rest.used = rest.used.saturating_add(uses.used);
            rest.skipped = rest.skipped.saturating_add(uses.skipped);
        }
        self.known.retain(|uses| uses.value == NULL);
        self.known.push(rest);
    }
}

fn seen_as(fingerprint: u32, is_wide: bool) -> u32 {
    match is_wide {
        true => fingerprint.min(NOT_NULL),
        false => fingerprint,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{Column, Format};

    /// Rows (number, state, remark): the remark is NULL in every third.
    fn orders(rows: u32) -> Frame {
        let text = |oid| Column { oid, format: Format::Text };
        let mut frame = Frame::default();
        frame.room = usize::MAX;
        for row in 0..rows {
            let number = row.to_string();
            let state = if row % 2 == 0 { "open" } else { "done" };
            let remark = (row % 3 != 0).then_some(number.as_bytes());
            frame.push(
                &[text(23), text(25), text(25)],
                &[Some(number.as_bytes()), Some(state.as_bytes()), remark],
            );
        }
        frame
    }

    #[test]
    fn a_value_skipped_eight_times_and_never_used_is_excluded() {
        let frame = orders(100);
        let mut filter = Filter::default();
        for row in (2..16).step_by(2) {
            filter.jumped(&frame, [row - 1].into_iter(), row);
            assert!(!filter.excludes(&frame, 51), "{row}");
        }
        filter.jumped(&frame, [15].into_iter(), 16);
        assert!(filter.excludes(&frame, 51) && !filter.excludes(&frame, 52));
    }

    #[test]
    fn a_value_that_is_used_once_is_never_excluded_again() {
        let frame = orders(100);
        let mut filter = Filter::default();
        filter.jumped(&frame, (0..40).filter(|row| row % 2 == 1), 40);
        assert!(filter.excludes(&frame, 51));
        filter.jumped(&frame, [].into_iter(), 51);
        assert!(!filter.excludes(&frame, 53));
    }

    #[test]
    fn rows_with_null_are_told_from_rows_with_many_values() {
        let frame = orders(300);
        let mut filter = Filter::default();
        for row in (1..120).filter(|row| row % 3 != 0) {
            filter.jumped(&frame, (row % 3 == 1).then_some(row - 1).into_iter(), row);
        }
        assert!(
            filter.excludes(&frame, 201) && !filter.excludes(&frame, 202) && !filter.excludes(&frame, 203)
        );
    }

    #[test]
    fn where_nothing_was_skipped_nothing_is_kept() {
        let frame = orders(100);
        let mut filter = Filter::default();
        filter.jumped(&frame, [].into_iter(), 1);
        assert!(filter.columns.is_empty());
    }
}
