//! OT014: the next value of a sequence fetched with a trip of its own, for the INSERT that uses it.

use std::collections::VecDeque;

use onetrip_sql::StatementKind;

use super::book::{Book, Fate, Key, Sighting};
use super::client::Client;
use super::event::{Event, Run};
use super::purpose::Purpose;
use super::spots::Spots;
use crate::findings::{Code, Evidence, Spot};

/// Values that no INSERT has used yet.
const PENDING_MAX: usize = 64;
/// Pairs of statements followed per connection.
const FOLLOWED_MAX: usize = 64;
/// Where one value serves more rows than this, values are allocated many at a time.
const ROWS_PER_VALUE: u64 = 2;

/// Values of sequences that one connection fetched.
#[derive(Debug, Default)]
pub(super) struct Sequences {
    pending: VecDeque<Fetched>,
    pairs: Vec<Pair>,
}

#[derive(Debug)]
struct Fetched {
    value: u32,
    template: u32,
    scope: u32,
    spot: Spot,
    waited_ns: u64,
    wire_ns: u64,
}

#[derive(Debug)]
struct Pair {
    sequence: u32,
    insert: u32,
    scope: u32,
    spots: Spots,
    /// Values that were used.
    pairs: u64,
    /// Rows inserted since the first of them.
    rows: u64,
    waited_ns: u64,
    wire_ns: u64,
}

impl Sequences {
    /// Takes one exchange of any sort.
    pub(super) fn take(&mut self, event: &Event<'_>) {
        for run in event.runs.iter().filter(|run| run.facts.kind == StatementKind::Insert) {
            self.inserted(run);
        }
        let Some(run) = event.sole_run().filter(|run| run.facts.purpose == Purpose::NextValue) else {
            return;
        };
        let ([value], 1) = (run.results, run.statement.rows) else { return };
        if self.pending.len() >= PENDING_MAX {
            self.pending.pop_front();
        }
        self.pending.push_back(Fetched {
            value: *value,
            template: run.template,
            scope: event.scope,
            spot: event.spot(),
            waited_ns: event.exchange.duration(),
            wire_ns: event.wire_ns,
        });
    }

    /// Rows were inserted: perhaps with a value that waits for it.
    fn inserted(&mut self, run: &Run<'_>) {
        let uses = |fetched: &Fetched| {
            fetched.value != 0 && run.parameters.iter().any(|value| *value as u32 == fetched.value)
        };
        while let Some(position) = self.pending.iter().position(uses) {
            if let Some(fetched) = self.pending.remove(position) {
                self.pair(&fetched, run.template);
            }
        }
        for pair in self.pairs.iter_mut().filter(|pair| pair.insert == run.template) {
            pair.rows += run.statement.rows;
        }
    }

    fn pair(&mut self, fetched: &Fetched, insert: u32) {
        let same = |pair: &Pair| pair.sequence == fetched.template && pair.insert == insert;
        let position = self.pairs.iter().position(same).unwrap_or_else(|| {
            if self.pairs.len() < FOLLOWED_MAX {
                let (sequence, scope) = (fetched.template, fetched.scope);
                self.pairs.push(Pair {
                    sequence,
                    insert,
                    scope,
                    spots: Spots::default(),
                    pairs: 0,
                    rows: 0,
                    waited_ns: 0,
                    wire_ns: 0,
                });
            }
            self.pairs.len() - 1
        });
        if let Some(pair) = self.pairs.get_mut(position).filter(|pair| same(pair)) {
            pair.pairs += 1;
            pair.spots.add(fetched.spot);
            pair.waited_ns += fetched.waited_ns;
            pair.wire_ns += fetched.wire_ns;
        }
    }

    /// Books what the connection did.
    pub(super) fn book(&mut self, client: Client, book: &mut Book) {
        for pair in self.pairs.drain(..).filter(|pair| pair.rows <= pair.pairs * ROWS_PER_VALUE) {
            book.add(
                Key { code: Code::SequenceTrip, template: pair.sequence, source: pair.insert, client },
                Sighting {
                    scope: pair.scope,
                    spots: pair.spots,
                    occurrences: pair.pairs,
                    trips: pair.pairs,
                    avoidable: pair.pairs,
                    waited_ns: pair.waited_ns,
                    wire_ns: pair.wire_ns,
                    fate: Fate::default(),
                    evidence: Evidence::Pairs { pairs: pair.pairs },
                },
            );
        }
    }
}
