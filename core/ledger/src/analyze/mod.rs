//! Streams of records in, a summary out.

mod book;
mod chatter;
mod claims;
mod client;
mod columns;
mod connections;
mod detectors;
mod event;
mod fetches;
mod groups;
mod hash;
mod lobs;
mod loops;
mod pace;
mod pairs;
mod prepares;
mod purpose;
mod refusals;
mod relations;
mod repeats;
mod results;
mod scopes;
mod sequences;
mod spots;
mod stream;
mod templates;
mod transactions;
mod values;
mod would;
mod writes;

use std::collections::HashMap;

use self::book::Book;
use self::chatter::Chatter;
use self::columns::Columns;
use self::connections::Connections;
use self::hash::Table;
use self::loops::Edges;
use self::refusals::Refusals;
use self::results::ResultStore;
use self::scopes::Scopes;
use self::stream::Stream;
use self::templates::Templates;
use crate::findings::{Code, Would};
use crate::stacks::{Language, language_of};
use crate::timeline::Timeline;
use crate::trace::{Records, decode_block};
use crate::{Driver, Exchange, Gaps, Moment, Mutes, Obstacle, Record, Remedy, Summary, TraceError};

/// Counts trips and finds patterns in streams of records.
///
/// Blocks of one stream come in order; streams may come in any order. Memory is bounded by the number of
/// templates, scopes and open connections, not by the number of exchanges.
#[derive(Debug, Default)]
pub struct Analyzer {
    records: Records,
    /// Boxed, because tables keep room for twice as many.
    streams: Table<u32, Box<Stream>>,
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
    columns: Columns,
    scopes: Scopes,
    refusals: Refusals,
    /// How often each SQLSTATE came.
    errors: HashMap<[u8; 5], u64>,
    /// The writer has ended the trace.
    has_end: bool,
    results: ResultStore,
    edges: Edges,
    connections: Connections,
    chatter: Chatter,
    /// ORMs by who opens connections and how: a statement of a later connection is enough to know it.
    orms: HashMap<(String, Driver), Driver>,
    book: Book,
    summary: Summary,
    timeline: Timeline,
    /// A gateway with remedies has written the trace.
    has_remedies: bool,
    /// Remedies do not speak the protocol of its connections.
    is_watched_only: bool,
    /// What the program is written in.
    program: Option<Language>,
    first_at: Option<Moment>,
    last_at: Moment,
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
                    shared.program = language_of(command);
                    shared.summary.upstream = String::from_utf8_lossy(upstream).into_owned();
                    shared.summary.settle_ns = settle;
                }
                Record::Lost { bytes } => shared.summary.gaps.lost_bytes += bytes,
                Record::End { .. } => shared.has_end = true,
                record => {
                    closed |= matches!(record, Record::Closed { .. });
                    streams
                        .entry(stream)
                        .or_insert_with(|| Box::new(Stream::new(stream)))
                        .take(record, shared);
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

    /// What a reader could not read of the trace that the blocks came from.
    pub fn gaps(&mut self, read: Gaps) {
        let gaps = &mut self.shared.summary.gaps;
        gaps.damaged_blocks += read.damaged_blocks;
        gaps.damaged_bytes += read.damaged_bytes;
        gaps.tail_bytes += read.tail_bytes;
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
        summary.gaps.is_open = !shared.has_end;
        summary.refusals = shared.refusals.totals();
        summary.errors_by_state = shared.errors_by_state();
        summary.templates = shared.templates.totals();
        summary.scopes = shared.scopes.totals();
        let label = |id| shared.scopes.label(id);
        summary.findings = shared.book.findings(&shared.templates, label, mutes);
        if shared.is_watched_only {
            // Not all patterns note what is in the way of remedies, and this is in the way of all.
            for finding in &mut summary.findings {
                finding.left.entry(Obstacle::WatchedOnly).or_insert(finding.avoidable);
            }
        }
        count_would(shared, &mut summary);
        let mut timeline = std::mem::take(&mut shared.timeline);
        timeline.name(|id| shared.templates.text(id), label);
        Analysis { summary, timeline }
    }
}

/// What remedies would have removed is counted where they were off: of the two that depend on patterns, in the findings.
fn count_would(shared: &Shared, summary: &mut Summary) {
    if shared.has_remedies || shared.is_watched_only {
        summary.would.clear();
        summary.findings.iter_mut().for_each(|finding| finding.would = Would::default());
        return;
    }
    for (code, remedy) in [(Code::Loop, Remedy::Loops), (Code::Repeated, Remedy::Repeats)] {
        let of_code = summary.findings.iter().filter(|finding| finding.code == code);
        let mut would = Would::default();
        of_code.for_each(|finding| would.add(finding.would));
        if !would.is_nothing() {
            summary.would.insert(remedy, would);
        }
    }
}

impl Shared {
    /// SQLSTATEs, most frequent first.
    fn errors_by_state(&self) -> Vec<(String, u64)> {
        let shown = |(state, count): (&[u8; 5], &u64)| (String::from_utf8_lossy(state).into_owned(), *count);
        let mut states: Vec<_> = self.errors.iter().map(shown).collect();
        states.sort_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
        states.truncate(Summary::ERRORS_MAX);
        states
    }

    /// Counts what does not depend on the stream.
    fn count(&mut self, exchange: &Exchange) {
        self.has_remedies |= exchange.remedy.is_some() || exchange.obstacle.is_some();
        self.is_watched_only |= exchange.obstacle == Some(Obstacle::WatchedOnly);
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
