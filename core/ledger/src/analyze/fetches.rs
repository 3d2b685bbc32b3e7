//! OT004: a result fetched in small pieces.

use super::book::{Book, Fate, Key, Sighting};
use super::client::Client;
use super::event::{Event, Run};
use super::hash::Table;
use super::spots::Spots;
use crate::Remedy;
use crate::findings::{Code, Evidence, Spot};
use onetrip_sql::StatementKind;

/// Fetches that make a pattern.
const FETCHES_MIN: u64 = 3;
/// Sizes from here on are not small.
const SIZE_ENOUGH: u64 = 500;
/// What the advice says, and what avoidable trips are counted against.
const SIZE_ADVISED: u64 = 1000;
const FOLLOWED_MAX: usize = 256;

/// Cursors and portals of one connection that are being read.
#[derive(Debug, Default)]
pub(super) struct Fetches {
    open: Table<u32, Fetched>,
}

#[derive(Debug)]
struct Fetched {
    scope: u32,
    spot: Spot,
    size: u64,
    fetches: u64,
    /// Fetches that took a trip for themselves; the first often shares that of its preparation.
    trips: u64,
    rows: u64,
    waited_ns: u64,
    wire_ns: u64,
    fate: Fate,
}

impl Fetches {
    /// Takes one more piece of a result, or the first of a new one.
    pub(super) fn take(&mut self, event: &Event<'_>, run: &Run<'_>, client: Client, book: &mut Book) {
        let statement = run.statement;
        if statement.row_limit == 0 {
            return;
        }
        let is_next = run.continues() || run.facts.kind == StatementKind::Fetch;
        if !is_next || self.open.len() >= FOLLOWED_MAX {
            self.end(run.template, client, book);
        }
        let fetched = self.open.entry(run.template).or_insert(Fetched {
            scope: event.scope,
            spot: event.spot(),
            size: statement.row_limit.into(),
            fetches: 0,
            trips: 0,
            rows: 0,
            waited_ns: 0,
            wire_ns: 0,
            fate: Fate::default(),
        });
        fetched.size = fetched.size.max(statement.row_limit.into());
        fetched.fetches += 1;
        fetched.rows += statement.rows;
        if event.sole_run().is_some() {
            fetched.trips += 1;
            fetched.fate.leave(event.obstacle);
            fetched.waited_ns += event.exchange.duration();
            fetched.wire_ns += event.wire_ns;
        }
        fetched.fate.removed += u64::from(event.exchange.remedy == Some(Remedy::Cursors));
        // A cursor may be asked once more at its end; a portal says when it is empty.
        if run.facts.kind != StatementKind::Fetch && !statement.suspended {
            self.end(run.template, client, book);
        }
    }

    /// Ends all: a cursor or the transaction ended, or the connection closed.
    pub(super) fn end_all(&mut self, client: Client, book: &mut Book) {
        let templates: Vec<u32> = self.open.keys().copied().collect();
        for template in templates {
            self.end(template, client, book);
        }
    }

    fn end(&mut self, template: u32, client: Client, book: &mut Book) {
        let Some(fetched) = self.open.remove(&template) else { return };
        if fetched.trips < FETCHES_MIN || fetched.size >= SIZE_ENOUGH {
            return;
        }
        let advised = 1 + fetched.rows / SIZE_ADVISED;
        book.add(
            Key { code: Code::TinyFetch, template, source: 0, client },
            Sighting {
                scope: fetched.scope,
                spots: Spots::from(fetched.spot),
                occurrences: 1,
                trips: fetched.fetches,
                avoidable: fetched.fetches.saturating_sub(advised).min(fetched.trips),
                waited_ns: fetched.waited_ns,
                wire_ns: fetched.wire_ns,
                fate: fetched.fate,
                evidence: Evidence::Fetches { size: fetched.size, rows: fetched.rows },
            },
        );
    }
}
