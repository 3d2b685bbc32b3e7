//! All detectors of one connection, and which exchange each of them is shown.

use onetrip_sql::StatementKind;

use super::Shared;
use super::chatter::LookUps;
use super::claims::{Claims, TripNumber};
use super::client::Client;
use super::event::{Event, Run};
use super::fetches::Fetches;
use super::groups::Groups;
use super::lobs::Lobs;
use super::loops::{Books, Loops, Reading, Walking};
use super::pace::Gap;
use super::pairs::Pairs;
use super::prepares::Prepares;
use super::purpose::Purpose;
use super::repeats::Repeats;
use super::results::Recent;
use super::sequences::Sequences;
use super::transactions::Transactions;
use super::values::Values;
use super::writes::{Writes, may_be_row};
use crate::Driver;

/// What one connection's exchanges are held against.
///
/// Reading trips may be part of several patterns; [`Claims`] decides. All other trips are taken by one detector only:
/// writes by [`Writes`], BEGIN, COMMIT and ROLLBACK by [`Writes`] or else [`Transactions`], FETCH by [`Fetches`],
/// preparing by [`Prepares`], values of sequences by [`Sequences`], calls on large objects by [`Lobs`], and pings and
/// settings by [`Chatter`](super::chatter::Chatter).
#[derive(Debug, Default)]
pub(super) struct Detectors {
    claims: Claims,
    recent: Recent,
    loops: Loops,
    writes: Writes,
    repeats: Repeats,
    fetches: Fetches,
    transactions: Transactions,
    prepares: Prepares,
    values: Values,
    groups: Groups,
    pairs: Pairs,
    sequences: Sequences,
    lobs: Lobs,
    look_ups: LookUps,
    /// A setting was changed since the session began, or was last reset.
    has_set: bool,
    /// Think time before exchanges that only gave the connection back, since its last work.
    carried_ns: u64,
}

impl Detectors {
    /// Shows an exchange to every detector, each of which takes what is its own.
    pub(super) fn show(
        &mut self,
        event: &Event<'_>,
        template: impl Fn(u32) -> u32,
        client: Client,
        shared: &mut Shared,
    ) {
        if event.only_gives_back(self.has_set) {
            return self.show_giving_back(event, template, shared);
        }
        self.carried_ns = 0;
        let sets = |run: &Run<'_>| matches!(run.facts.purpose, Purpose::Set | Purpose::SetByCall);
        let resets = |run: &Run<'_>| run.facts.purpose == Purpose::Reset;
        self.has_set = event.runs.iter().any(sets) || (self.has_set && !event.runs.iter().any(resets));
        if event.gap() == Gap::Pause {
            self.repeats.pause();
        }
        self.writes.tick(event);
        self.prepares.take(event, template);
        self.show_writes(event, client, shared);
        let trip = self.number(event);
        if let Some(run) = event.run_from_memory() {
            self.walk(Reading { event, run, trip: None, client }, shared);
        }
        if let (Some(trip), Some(run)) = (trip, event.sole_run()) {
            self.show_reading(event, run, trip, client, shared);
        } else if !event.is_idle() || event.failed() {
            self.values.end(&mut self.claims);
            self.groups.end(&mut self.claims);
        }
        self.pairs.take(event, trip, &mut self.claims);
        shared.chatter.take(event, trip, &mut self.look_ups, &mut self.claims);
        self.sequences.take(event);
        self.lobs.take(event, client, &mut shared.book);
        for run in &event.runs {
            self.fetches.take(event, run, client, &mut shared.book);
            self.groups.sent(run);
        }
        self.show_ends(event, client, shared);
        for run in event.runs.iter().filter(|run| !run.results.is_empty()) {
            shared.results.keep(&mut self.recent, event, run);
        }
    }

    /// What gives the connection back costs a trip, and ends nothing; its think time is the next exchange's.
    fn show_giving_back(&mut self, event: &Event<'_>, template: impl Fn(u32) -> u32, shared: &mut Shared) {
        self.carried_ns = event.apart_ns();
        self.writes.pass();
        self.prepares.take(event, template);
        shared.chatter.take(event, None, &mut self.look_ups, &mut self.claims);
    }

    /// Think time that the next exchange has before it beside its own, in nanoseconds.
    pub(super) fn carried_ns(&self) -> u64 {
        self.carried_ns
    }

    /// Ends the connection's patterns and books them.
    pub(super) fn end(&mut self, driver: Driver, shared: &mut Shared) {
        let client = Client::Known(driver);
        let Self { claims, .. } = self;
        let book = &mut shared.book;
        self.writes.end_all(client, &mut self.transactions, book);
        self.values.end(claims);
        self.groups.close(claims);
        self.loops.end(&mut shared.edges, claims);
        self.fetches.end_all(client, book);
        self.lobs.end_all(client, book);
        self.sequences.book(client, book);
        self.transactions.book(client, book);
        self.prepares.end(client, book);
        claims.book(driver, book, &mut shared.chatter);
        shared.results.forget(std::mem::take(&mut self.recent));
    }

    /// Numbers the trips that several patterns may claim.
    fn number(&mut self, event: &Event<'_>) -> Option<TripNumber> {
        let run = event.sole_run()?;
        let is_reading = match run.facts.kind {
            StatementKind::Select => {
                matches!(
                    run.facts.purpose,
                    Purpose::Read | Purpose::LookUp | Purpose::SetByCall | Purpose::Work
                )
            }
            StatementKind::Values => true,
            _ => false,
        };
        is_reading.then(|| self.claims.number(event))
    }

    fn walk(&mut self, reading: Reading<'_, '_>, shared: &mut Shared) -> Walking {
        let Self { claims, recent, loops, .. } = self;
        let books = Books { edges: &mut shared.edges, claims };
        loops.take(reading, recent, &shared.results.everywhere, &shared.templates, books)
    }

    fn show_reading(
        &mut self,
        event: &Event<'_>,
        run: &Run<'_>,
        trip: TripNumber,
        client: Client,
        shared: &mut Shared,
    ) {
        let walking = self.walk(Reading { event, run, trip: Some(trip), client }, shared);
        let Self { claims, repeats, values, groups, .. } = self;
        match walking {
            Walking::Began => repeats.forget(run.template),
            Walking::On => {}
            Walking::No => repeats.take(event, run, trip, claims),
        }
        let is_plain = run.facts.reads_table && run.facts.table.name != 0;
        if walking != Walking::No || !is_plain || run.continues() {
            values.end(claims);
            groups.end(claims);
        } else {
            values.take(event, run, trip, claims);
            groups.take(event, run, trip, claims);
        }
    }

    fn show_writes(&mut self, event: &Event<'_>, client: Client, shared: &mut Shared) {
        let Self { writes, transactions, .. } = self;
        // What a worker writes for one job is no row of what it writes for the next.
        let begins_work = |run: &Run<'_>| run.facts.kind == StatementKind::Ddl || run.facts.skips_locked;
        if event.runs.iter().any(begins_work) || event.failed() {
            writes.end_all(client, transactions, &mut shared.book);
        }
        if let Some(run) = event.sole_run().filter(|run| may_be_row(run)) {
            writes.take(event, run, client, transactions, &mut shared.book);
        }
    }

    fn show_ends(&mut self, event: &Event<'_>, client: Client, shared: &mut Shared) {
        let Self { writes, repeats, fetches, transactions, .. } = self;
        let book = &mut shared.book;
        let changes = |run: &Run<'_>| may_write(run.facts.kind) || run.facts.changes_meaning;
        if event.failed() || event.runs.iter().any(changes) {
            repeats.end();
        }
        let bounds_cursor =
            |run: &Run<'_>| matches!(run.facts.kind, StatementKind::Declare | StatementKind::CloseCursor);
        if event.runs.iter().any(bounds_cursor) {
            fetches.end_all(client, book);
        }
        if let Some(ended) = transactions.take(event) {
            writes.transaction_ended(ended);
            repeats.end();
            fetches.end_all(client, book);
        }
    }
}

/// Kinds after which an identical query may have another answer.
fn may_write(kind: StatementKind) -> bool {
    kind.is_row_write()
        || matches!(
            kind,
            StatementKind::Ddl
                | StatementKind::Call
                | StatementKind::Do
                | StatementKind::Copy
                | StatementKind::Execute
                | StatementKind::Set
                | StatementKind::Reset
                | StatementKind::Discard
                | StatementKind::Multi
                | StatementKind::RollbackTo
        )
}
