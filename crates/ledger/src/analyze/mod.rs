//! Streams of records in, a summary out.

mod book;
mod chatter;
mod claims;
mod connections;
mod detectors;
mod event;
mod fetches;
mod groups;
mod hash;
mod lobs;
mod loops;
mod pairs;
mod prepares;
mod purpose;
mod repeats;
mod results;
mod sequences;
mod stream;
mod templates;
mod transactions;
mod values;
mod writes;

use std::collections::{HashMap, HashSet};

use self::book::Book;
use self::chatter::Chatter;
use self::connections::Connections;
use self::hash::Table;
use self::loops::Edges;
use self::results::ResultStore;
use self::stream::Stream;
use self::templates::Templates;
use crate::driver::is_python;
use crate::timeline::Timeline;
use crate::trace::{Records, decode_block};
use crate::{Driver, Exchange, Moment, Mutes, Record, ScopeTotals, Summary, TraceError};

/// Requests told apart per scope, at most.
const REQUESTS_MAX: usize = 100_000;
/// Scopes counted apart, at most; further ones are counted as work without a scope.
const SCOPES_MAX: usize = 10_000;

/// Counts trips and finds patterns in streams of records.
///
/// Blocks of one stream come in order; streams may come in any order. Memory is bounded by the number of
/// templates, scopes and open connections, not by the number of exchanges.
#[derive(Debug, Default)]
pub struct Analyzer {
    records: Records,
    streams: Table<u32, Stream>,
    shared: Shared,
}

/// Everything that is known of a trace in the end.
#[derive(Debug, Clone, Default)]
pub struct Analysis {
    /// What was counted and found.
    pub summary: Summary,
    /// When it happened.
    pub timeline: Timeline,
}

/// What all streams add to.
#[derive(Debug, Default)]
struct Shared {
    templates: Templates,
    scopes: Scopes,
    results: ResultStore,
    edges: Edges,
    connections: Connections,
    chatter: Chatter,
    /// ORMs by who opens connections and how: a later connection of theirs may not show itself.
    orms: HashMap<(String, Driver), Driver>,
    book: Book,
    summary: Summary,
    timeline: Timeline,
    /// The program is Python's.
    is_python: bool,
    first_at: Option<Moment>,
    last_at: Moment,
}

/// Labels of work under one id each.
#[derive(Debug, Default)]
struct Scopes {
    ids: HashMap<Box<str>, u32>,
    list: Vec<(ScopeTotals, HashSet<u64>)>,
}

impl Analyzer {
    /// An analyzer that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes one block of a stream.
    ///
    /// # Errors
    ///
    /// A record that does not decode; what came before it in the block is counted.
    pub fn block(&mut self, stream: u32, payload: &[u8]) -> Result<(), TraceError> {
        let Self { records, streams, shared } = self;
        let mut closed = false;
        decode_block::<TraceError>(records, stream, payload, |record| {
            match record {
                Record::Origin { upstream, settle, command, .. } => {
                    shared.is_python = is_python(command);
                    shared.summary.upstream = String::from_utf8_lossy(upstream).into_owned();
                    shared.summary.settle_ns = settle;
                }
                Record::Lost { bytes } => shared.summary.lost_bytes += bytes,
                record => {
                    closed |= matches!(record, Record::Closed { .. });
                    streams.entry(stream).or_insert_with(|| Stream::new(stream)).take(record, shared);
                }
            }
            Ok(())
        })?;
        if closed {
            if let Some(mut done) = streams.remove(&stream) {
                done.end(shared);
            }
        }
        Ok(())
    }

    /// What it all comes to, without the findings that `mutes` names.
    pub fn finish(mut self, mutes: &Mutes) -> Analysis {
        let shared = &mut self.shared;
        let mut open: Vec<_> = self.streams.into_iter().collect();
        open.sort_by_key(|(id, _)| *id);
        shared.summary.open_connections =
            open.iter().filter(|(_, stream)| stream.is_session()).count() as u64;
        for (_, mut stream) in open {
            stream.end(shared);
        }
        shared.edges.book(&mut shared.book);
        shared.connections.book(&mut shared.book);
        shared.chatter.book(&mut shared.book);
        let mut summary = std::mem::take(&mut shared.summary);
        summary.elapsed_ns = shared.last_at.since(shared.first_at.unwrap_or_default());
        summary.templates = shared.templates.totals();
        summary.scopes = shared.scopes.totals();
        let label = |id| shared.scopes.label(id);
        summary.findings = shared.book.findings(&shared.templates, label, mutes);
        let mut timeline = std::mem::take(&mut shared.timeline);
        timeline.name_statements(|id| shared.templates.text(id));
        Analysis { summary, timeline }
    }
}

impl Shared {
    /// Counts what does not depend on the stream.
    fn count(&mut self, exchange: &Exchange) {
        let summary = &mut self.summary;
        summary.units += 1;
        if let Some(remedy) = exchange.remedy {
            *summary.removed.entry(remedy).or_default() += 1;
        }
        summary.bytes_sent += exchange.bytes_sent;
        summary.bytes_received += exchange.bytes_received;
        self.first_at = Some(self.first_at.map_or(exchange.sent_at, |first| first.min(exchange.sent_at)));
        self.last_at = self.last_at.max(exchange.last_reply_at);
    }
}

impl Scopes {
    /// The id of a label: zero for work without one, and where there are too many.
    fn intern(&mut self, label: &[u8]) -> u32 {
        self.totals_mut(0);
        let label = String::from_utf8_lossy(label);
        if label.is_empty() {
            return 0;
        }
        if let Some(id) = self.ids.get(label.as_ref()) {
            return *id;
        }
        if self.list.len() >= SCOPES_MAX {
            return 0;
        }
        let id = self.list.len() as u32;
        self.list.push((
            ScopeTotals { label: label.clone().into_owned(), ..ScopeTotals::default() },
            HashSet::new(),
        ));
        self.ids.insert(label.into(), id);
        id
    }

    fn totals_mut(&mut self, id: u32) -> &mut (ScopeTotals, HashSet<u64>) {
        if self.list.is_empty() {
            self.list.push(Default::default());
        }
        &mut self.list[id as usize]
    }

    fn label(&self, id: u32) -> String {
        self.list.get(id as usize).map(|(totals, _)| totals.label.clone()).unwrap_or_default()
    }

    fn totals(&self) -> Vec<ScopeTotals> {
        let used = self.list.iter().filter(|(totals, _)| totals.trips + totals.statements > 0);
        let mut totals: Vec<_> = used
            .map(|(totals, requests)| ScopeTotals { requests: requests.len() as u64, ..totals.clone() })
            .collect();
        totals.sort_by(|a, b| (b.trips, &a.label).cmp(&(a.trips, &b.label)));
        totals
    }
}
