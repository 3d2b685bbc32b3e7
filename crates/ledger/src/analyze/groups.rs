//! OT012: reads one after another, none of which can need the result of another of its group.
//!
//! What a statement needs, it gets as parameters. A read without parameters, or with values only that were sent before
//! the group began or with its first statement, could have been sent together with the first.

use super::claims::{Claims, Pattern, Share, TripNumber};
use super::event::{Event, Run};
use super::repeats::POLL_THINK_NS;
use super::writes::LOOP_THINK_NS;
use crate::findings::Code;

/// Reads that make a group.
const READS_MIN: usize = 3;
/// Reads of one group.
const READS_MAX: usize = 32;
/// Parameters sent before that are remembered.
const KNOWN_MAX: usize = 64;
/// Values returned within one group that are remembered.
const RETURNED_MAX: usize = 512;

/// The group of one connection that may be under way.
#[derive(Debug, Default)]
pub(super) struct Groups {
    reads: Vec<(u32, TripNumber)>,
    request: u64,
    scope: u32,
    slow_gaps: usize,
    /// Parameters of the first read.
    first: Vec<u64>,
    /// Those of them that it found its rows by.
    first_keys: Vec<u64>,
    /// What the reads of the group returned.
    returned: Vec<u32>,
    /// There was more than can be remembered.
    returned_more: bool,
    known: Known,
}

/// Parameters that were sent lately.
#[derive(Debug)]
struct Known {
    values: [u64; KNOWN_MAX],
    next: usize,
}

impl Groups {
    /// Takes one more run of a reading statement in its own trip, right behind the last exchange that was taken.
    pub(super) fn take(&mut self, event: &Event<'_>, run: &Run<'_>, trip: TripNumber, claims: &mut Claims) {
        let goes_on = !self.reads.is_empty()
            && self.reads.len() < READS_MAX
            && self.request == event.exchange.request
            && event.think_ns <= POLL_THINK_NS
            && self.reads.iter().all(|(template, _)| *template != run.template)
            && self.is_independent(run);
        if !goes_on {
            self.end(claims);
            self.request = event.exchange.request;
            self.scope = event.scope;
            self.slow_gaps = 0;
            self.first.clear();
            self.first.extend_from_slice(run.parameters);
            self.first_keys.clear();
            let keys = run.facts.keys.iter().filter_map(|(_, position)| run.parameters.get(position));
            self.first_keys.extend(keys);
            self.returned.clear();
            self.returned_more = false;
        }
        self.slow_gaps += usize::from(goes_on && event.think_ns > LOOP_THINK_NS);
        self.reads.push((run.template, trip));
        let room = RETURNED_MAX - self.returned.len();
        self.returned_more |= run.results.len() > room;
        self.returned.extend(run.results.iter().take(room));
    }

    /// Remembers what was sent.
    pub(super) fn sent(&mut self, run: &Run<'_>) {
        for value in run.parameters.iter().take(KNOWN_MAX / 4) {
            self.known.put(*value);
        }
    }

    /// The group is over: something else was sent, or the connection closed.
    pub(super) fn end(&mut self, claims: &mut Claims) {
        if self.reads.len() >= READS_MIN && self.slow_gaps * 2 <= self.reads.len() {
            self.claim(claims);
        }
        self.reads.clear();
    }

    fn claim(&mut self, claims: &mut Claims) {
        self.reads.retain(|(_, trip)| claims.is_open_to(*trip, Code::Sequence));
        let &[(template, first), (other, _), _, ..] = self.reads.as_slice() else { return };
        let pattern = Pattern { code: Code::Sequence, template, other };
        claims.claim(first, pattern, self.scope, Share::Kept);
        for (_, trip) in &self.reads[1..] {
            claims.claim(*trip, pattern, self.scope, Share::Avoidable);
        }
        claims.occurred(pattern, 1, 0);
    }

    /// Whether no parameter can come from a result of the group.
    fn is_independent(&self, run: &Run<'_>) -> bool {
        run.parameters.iter().all(|value| {
            // A small number may be the first read's limit and yet come from a row.
            let was_returned = || self.returned_more || self.returned.contains(&(*value as u32));
            let was_sent = || self.first.contains(value) || self.known.has(*value);
            self.first_keys.contains(value) || (was_sent() && !was_returned())
        })
    }
}

impl Known {
    fn has(&self, value: u64) -> bool {
        self.values.contains(&value)
    }

    fn put(&mut self, value: u64) {
        if !self.has(value) {
            self.values[self.next] = value;
            self.next = (self.next + 1) % KNOWN_MAX;
        }
    }
}

impl Default for Known {
    fn default() -> Self {
        // Zero is NULL, which needs no source.
        Self { values: [0; KNOWN_MAX], next: 0 }
    }
}
