//! OT007: a statement prepared again, in a trip of its own, although it had been prepared on the connection.

use super::book::{Book, Fate, Key, Sighting};
use super::client::Client;
use super::event::Event;
use super::hash::Table;
use super::spots::Spots;
use crate::Steps;
use crate::findings::{Code, Evidence, Spot};

/// Prepare trips that make a pattern.
const PREPARES_MIN: u64 = 3;
const FOLLOWED_MAX: usize = 4096;

/// Statements that one connection prepared in trips of their own.
#[derive(Debug, Default)]
pub(super) struct Prepares {
    prepared: Table<u32, Prepared>,
    /// The trip under way, so far only for preparing.
    last: Option<Trip>,
}

#[derive(Debug, Default)]
struct Prepared {
    scope: u32,
    spots: Spots,
    prepares: u64,
    runs: u64,
    waited_ns: u64,
    wire_ns: u64,
}

/// A trip in which one statement was prepared.
#[derive(Debug)]
struct Trip {
    template: u32,
    scope: u32,
    spot: Spot,
    waited_ns: u64,
    wire_ns: u64,
}

impl Prepares {
    /// Takes one exchange; `template` translates a statement's template to the analyzer's own id.
    pub(super) fn take(&mut self, event: &Event<'_>, template: impl Fn(u32) -> u32) {
        // What was sent before the answer shares the trip, such as the EXECUTE of a driver that pipelines.
        let shares = !event.exchange.starts_trip && event.exchange.remedy.is_none();
        if let Some(trip) = self.last.take().filter(|_| !shares) {
            self.count(trip);
        }
        let statements = &event.exchange.statements;
        for run in &event.runs {
            if let Some(prepared) = self.prepared.get_mut(&run.template) {
                prepared.runs += 1;
            }
        }
        let [only] = statements.as_slice() else { return };
        let prepares_only = only.steps.has(Steps::PREPARE) && !only.steps.has(Steps::EXECUTE);
        if !prepares_only || !event.is_own_trip() || event.failed() || only.template == 0 {
            return;
        }
        self.last = Some(Trip {
            template: template(only.template),
            scope: event.scope,
            spot: event.spot(),
            waited_ns: event.exchange.duration(),
            wire_ns: event.wire_ns,
        });
    }

    fn count(&mut self, trip: Trip) {
        if self.prepared.len() >= FOLLOWED_MAX {
            return;
        }
        let prepared = self.prepared.entry(trip.template).or_default();
        prepared.scope = trip.scope;
        prepared.spots.add(trip.spot);
        prepared.prepares += 1;
        prepared.waited_ns += trip.waited_ns;
        prepared.wire_ns += trip.wire_ns;
    }

    /// Books what the connection did.
    pub(super) fn end(&mut self, client: Client, book: &mut Book) {
        if let Some(trip) = self.last.take() {
            self.count(trip);
        }
        for (template, prepared) in &self.prepared {
            if prepared.prepares < PREPARES_MIN {
                continue;
            }
            book.add(
                Key { code: Code::PreparePerRun, template: *template, source: 0, client },
                Sighting {
                    scope: prepared.scope,
                    spots: prepared.spots.clone(),
                    occurrences: 1,
                    trips: prepared.prepares,
                    avoidable: prepared.prepares - 1,
                    waited_ns: prepared.waited_ns,
                    wire_ns: prepared.wire_ns,
                    fate: Fate::default(),
                    evidence: Evidence::Prepares { prepares: prepared.prepares, runs: prepared.runs },
                },
            );
        }
    }
}
