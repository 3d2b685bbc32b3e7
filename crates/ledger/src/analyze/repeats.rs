//! OT005: the same query with the same values and the same result.

use std::collections::HashMap;

use super::book::{Book, Key, Sighting};
use super::event::{Event, Run};
use crate::findings::{Code, Evidence};
use crate::{Driver, Moment};

/// Runs that make a pattern.
const RUNS_MIN: u64 = 3;
/// Outside a transaction, runs further apart than this do not repeat each other: the data may have changed.
const GAP_MAX_NS: u64 = 1_000_000_000;
/// A program that thinks longer than this between most runs polls, and each answer may be new.
const POLL_THINK_NS: u64 = 20_000_000;
const FOLLOWED_MAX: usize = 1024;

/// Queries of one connection since it last wrote or ended a transaction.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    asked: HashMap<(u32, Vec<u64>), Asked>,
}

#[derive(Debug)]
struct Asked {
    scope: u32,
    request: u64,
    digest: u64,
    rows: u64,
    runs: u64,
    slow_gaps: u64,
    last_at: Moment,
    waited_ns: u64,
    wire_ns: u64,
}

impl Repeats {
    /// Takes one more run of a reading statement in its own trip.
    pub(super) fn take(&mut self, event: &Event<'_>, run: &Run<'_>, driver: Driver, book: &mut Book) {
        if !run.facts.reads_table || run.continues() {
            return;
        }
        let exchange = event.exchange;
        let now = Asked {
            scope: event.scope,
            request: exchange.request,
            digest: run.statement.result_digest,
            rows: run.statement.rows,
            runs: 1,
            slow_gaps: 0,
            last_at: exchange.last_reply_at,
            waited_ns: exchange.duration(),
            wire_ns: event.wire_ns,
        };
        let key = (run.template, run.parameters.to_vec());
        match self.asked.get_mut(&key) {
            Some(asked) if asked.is_same(&now, exchange.sent_at) => {
                asked.slow_gaps += u64::from(event.think_ns > POLL_THINK_NS);
                asked.runs += 1;
                asked.digest = now.digest;
                asked.last_at = now.last_at;
                asked.waited_ns += now.waited_ns;
                asked.wire_ns += now.wire_ns;
            }
            _ => {
                if self.asked.len() >= FOLLOWED_MAX {
                    self.end(driver, book);
                }
                if let Some(old) = self.asked.insert(key, now) {
                    old.book(run.template, driver, book);
                }
            }
        }
    }

    /// Forgets what was asked of this template: its repeats are part of a loop.
    pub(super) fn forget(&mut self, template: u32) {
        self.asked.retain(|(asked, _), _| *asked != template);
    }

    /// Ends what can repeat: something was written, a transaction ended, or the connection closed.
    pub(super) fn end(&mut self, driver: Driver, book: &mut Book) {
        for ((template, _), asked) in self.asked.drain() {
            asked.book(template, driver, book);
        }
    }
}

impl Asked {
    fn is_same(&self, now: &Self, sent_at: Moment) -> bool {
        self.request == now.request
            && (self.digest == now.digest || self.digest & 1 != now.digest & 1)
            && self.rows == now.rows
            && sent_at.since(self.last_at) < GAP_MAX_NS
    }

    fn book(&self, template: u32, driver: Driver, book: &mut Book) {
        if self.runs < RUNS_MIN || self.slow_gaps * 2 > self.runs {
            return;
        }
        book.add(
            Key { code: Code::Repeated, template, source: 0, driver },
            Sighting {
                scope: self.scope,
                occurrences: 1,
                trips: self.runs,
                avoidable: self.runs - 1,
                waited_ns: self.waited_ns,
                wire_ns: self.wire_ns,
                evidence: Evidence::Repeats { distinct: 1, runs: self.runs },
            },
        );
    }
}
