//! OT009: one query, run once for each of many values that come from nowhere in the traffic.
//!
//! Where the values are rows of an earlier result it is a loop (OT001). Here a program has a list of its own, from a
//! file or a request, and asks for its members one by one. A run whose value was returned by the run before is another
//! matter: pages that go on where the last one ended, a walk down a tree. No one query replaces those.

use super::claims::{Claims, Pattern, Share, TripNumber};
use super::event::{Event, Run};
use super::hash::{Set, clear, digest};
use super::pace::Gap;
use crate::findings::Code;

/// Runs in a row, and different values among them, that make a pattern.
const RUNS_MIN: usize = 10;
/// Values of one result that are remembered, from its begin and from its end.
const RETURNED_MAX: usize = 128;
/// Values of one burst that are remembered.
const REMEMBERED_MAX: usize = 16_384;
/// Values for which room is kept when a burst is over: most bursts have fewer.
const ROOM_KEPT: usize = 448;

/// The burst of one connection that may be under way.
#[derive(Debug, Default)]
pub(super) struct Values {
    template: u32,
    request: u64,
    runs: usize,
    /// The trips of the first runs, until there are enough for a pattern.
    trips: [TripNumber; RUNS_MIN],
    first: Vec<u64>,
    /// Digests of the sets of parameters.
    distinct: Set<u64>,
    /// Values that the burst asked for, and those that it was given.
    asked: Set<u32>,
    returned: Set<u32>,
    /// Those that the first run was given: most bursts are one run, and never look for them.
    returned_first: Vec<u32>,
    slow_gaps: usize,
    /// Runs with a value that an earlier one returned.
    chained: usize,
    is_claimed: bool,
}

impl Values {
    /// Takes one more run of a reading statement in its own trip, right behind the last exchange that was taken.
    pub(super) fn take(&mut self, event: &Event<'_>, run: &Run<'_>, trip: TripNumber, claims: &mut Claims) {
        let goes_on = self.runs > 0
            && self.template == run.template
            && self.request == event.exchange.request
            && event.gap() < Gap::Pause
            && self.varies_by_keys(run);
        if !goes_on {
            self.end(claims);
            self.begin(event, run);
        }
        self.slow_gaps += usize::from(self.runs > 0 && event.gap() >= Gap::Slow);
        self.count(run);
        if let Some(first) = self.trips.get_mut(self.runs) {
            *first = trip;
        }
        self.runs += 1;
        if self.is_pattern() {
            self.claim(trip, event.scope, claims);
        } else if self.is_claimed {
            self.end(claims);
        }
    }

    /// The burst is over: something else was sent, or the connection closed.
    pub(super) fn end(&mut self, claims: &mut Claims) {
        if self.is_claimed {
            claims.occurred(self.pattern(), 1, self.distinct.len() as u64);
        }
        self.runs = 0;
    }

    fn begin(&mut self, event: &Event<'_>, run: &Run<'_>) {
        self.template = run.template;
        self.request = event.exchange.request;
        self.first.clear();
        self.first.extend_from_slice(run.parameters);
        self.distinct.clear();
        self.distinct.shrink_to(ROOM_KEPT);
        for values in [&mut self.asked, &mut self.returned] {
            values.clear();
            values.shrink_to(ROOM_KEPT);
        }
        clear(&mut self.returned_first, run.results.len().min(2 * RETURNED_MAX));
        self.slow_gaps = 0;
        self.chained = 0;
        self.is_claimed = false;
    }

    /// Whether the parameters differ from the first run's only where rows are found by them.
    fn varies_by_keys(&self, run: &Run<'_>) -> bool {
        self.first.len() == run.parameters.len()
            && self.first.iter().zip(run.parameters).enumerate().all(|(position, (first, now))| {
                first == now || run.facts.keys.iter().any(|(_, key)| key == position)
            })
    }

    fn count(&mut self, run: &Run<'_>) {
        let keys = run.facts.keys.iter().filter_map(|(_, key)| run.parameters.get(key));
        self.returned.extend(self.returned_first.drain(..));
        let is_chained =
            |value: &u64| self.returned.contains(&(*value as u32)) && !self.asked.contains(&(*value as u32));
        self.chained += usize::from(keys.clone().any(is_chained));
        if self.distinct.len() < REMEMBERED_MAX {
            self.distinct.insert(digest(run.parameters));
        }
        if self.asked.len() + self.returned.len() < REMEMBERED_MAX {
            self.asked.extend(keys.map(|value| *value as u32));
            let from_end = run.results.len().saturating_sub(RETURNED_MAX).max(RETURNED_MAX);
            let begin = &run.results[..run.results.len().min(RETURNED_MAX)];
            let end = run.results.get(from_end..).unwrap_or_default();
            match self.runs {
                0 => [begin, end].into_iter().for_each(|part| self.returned_first.extend_from_slice(part)),
                _ => self.returned.extend(begin.iter().chain(end)),
            }
        }
    }

    fn is_pattern(&self) -> bool {
        self.runs >= RUNS_MIN
            && self.distinct.len() >= RUNS_MIN
            && self.slow_gaps * 2 <= self.runs
            && self.chained * 4 <= self.runs
    }

    /// Books the first runs as soon as they are enough, and each run after them.
    fn claim(&mut self, trip: TripNumber, scope: u32, claims: &mut Claims) {
        let pattern = self.pattern();
        if !self.is_claimed {
            self.is_claimed = true;
            let [first, others @ ..] = self.trips;
            claims.claim(first, pattern, scope, Share::Kept);
            for trip in others {
                claims.claim(trip, pattern, scope, Share::Avoidable);
            }
        }
        if self.runs > RUNS_MIN {
            claims.claim(trip, pattern, scope, Share::Avoidable);
        }
    }

    fn pattern(&self) -> Pattern {
        Pattern { code: Code::OnePerValue, template: self.template, other: 0 }
    }
}
