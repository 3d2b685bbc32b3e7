use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::Moment;

/// What is due when, earliest first. An entry is never removed early: whoever it names looks for itself whether
/// there still is something to do.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    entries: BinaryHeap<Reverse<(Moment, u64)>>,
}

impl Agenda {
    pub(super) fn add(&mut self, at: Moment, id: u64) {
        self.entries.push(Reverse((at, id)));
    }

    pub(super) fn next(&self) -> Option<Moment> {
        self.entries.peek().map(|Reverse((at, _))| *at)
    }

    pub(super) fn pop_due(&mut self, now: Moment) -> Option<(Moment, u64)> {
        if self.next()? > now { None } else { self.entries.pop().map(|Reverse(entry)| entry) }
    }
}
