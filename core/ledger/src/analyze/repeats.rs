//! OT005: the same query with the same values and the same result.

use super::claims::{Claims, Pattern, Share, TripNumber};
use super::event::{Event, Place, Run};
use super::hash::{Table, digest};
use super::pace::Gap;
use crate::findings::Code;

/// Runs that make a pattern.
const RUNS_MIN: usize = 3;
/// Outside a transaction and a request, runs with so many exchanges or a pause between them do not repeat each other: the
/// data may have changed.
const APART_MAX: u64 = 1_000;
const FOLLOWED_MAX: usize = 1024;
/// Queries for which room is kept when all are forgotten: most transactions have fewer.
const ROOM_KEPT: usize = 112;

/// Queries of one connection since it last wrote or ended a transaction.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    /// By digest of template and parameters.
    asked: Table<u64, Asked>,
}

#[derive(Debug)]
struct Asked {
    template: u32,
    request: u64,
    digest: u64,
    rows: u64,
    runs: u32,
    /// The trips of the first runs, until there are enough for a pattern.
    trips: [TripNumber; RUNS_MIN],
    slow_gaps: u32,
    claimed: bool,
    place: Place,
}

impl Repeats {
    /// Takes one more run of a reading statement in its own trip.
    pub(super) fn take(&mut self, event: &Event<'_>, run: &Run<'_>, trip: TripNumber, claims: &mut Claims) {
        if !run.facts.reads_table || run.continues() {
            return;
        }
        let key = digest(&[u64::from(run.template), digest(run.parameters)]);
        if self.asked.len() >= FOLLOWED_MAX && !self.asked.contains_key(&key) {
            self.asked.clear();
        }
        let asked = self.asked.entry(key).or_insert_with(|| Asked::new(event, run));
        if asked.template != run.template || !asked.is_same(event, run) {
            *asked = Asked::new(event, run);
        }
        asked.slow_gaps += u32::from(asked.runs > 0 && event.gap() >= Gap::Waiting);
        asked.digest = run.statement.result_digest;
        asked.place = event.place;
        if let Some(first) = asked.trips.get_mut(asked.runs as usize) {
            *first = trip;
        }
        asked.runs = asked.runs.saturating_add(1);
        if asked.runs as usize >= RUNS_MIN && asked.slow_gaps * 2 <= asked.runs {
            asked.claim(run.template, trip, event.scope, claims);
        }
    }

    /// Forgets what was asked of this template: its repeats are part of a loop.
    pub(super) fn forget(&mut self, template: u32) {
        self.asked.retain(|_, asked| asked.template != template);
    }

    /// The program has paused, outside a transaction and a request.
    pub(super) fn pause(&mut self) {
        self.asked.retain(|_, asked| asked.request != 0);
    }

    /// Ends what can repeat: something was written, a transaction ended, or the connection closed.
    pub(super) fn end(&mut self) {
        self.asked.clear();
        self.asked.shrink_to(ROOM_KEPT);
    }
}

impl Asked {
    fn new(event: &Event<'_>, run: &Run<'_>) -> Self {
        Self {
            template: run.template,
            request: event.exchange.request,
            digest: run.statement.result_digest,
            rows: run.statement.rows,
            runs: 0,
            trips: [TripNumber::default(); RUNS_MIN],
            slow_gaps: 0,
            claimed: false,
            place: event.place,
        }
    }

    fn is_same(&self, event: &Event<'_>, run: &Run<'_>) -> bool {
        let digest = run.statement.result_digest;
        self.request == event.exchange.request
            && (self.digest == digest || self.digest & 1 != digest & 1)
            && self.rows == run.statement.rows
            && (self.is_in_context_of(event) || event.place.since(self.place) <= APART_MAX)
    }

    fn is_in_context_of(&self, event: &Event<'_>) -> bool {
        self.request != 0 || self.place.shares_transaction(event.place)
    }

    /// Books the first runs as soon as they are enough, and each run after them.
    fn claim(&mut self, template: u32, trip: TripNumber, scope: u32, claims: &mut Claims) {
        let pattern = Pattern { code: Code::Repeated, template, other: 0 };
        if !self.claimed {
            self.claimed = true;
            let [first, again @ ..] = self.trips;
            claims.claim(first, pattern, scope, Share::Kept);
            for trip in again {
                claims.claim(trip, pattern, scope, Share::Avoidable);
            }
            claims.occurred(pattern, 1, 1);
        }
        if self.runs as usize > RUNS_MIN {
            claims.claim(trip, pattern, scope, Share::Avoidable);
        }
    }
}
