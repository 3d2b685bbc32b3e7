//! Which shapes of statements were answered by which remedy: a shape that is generated and never served has tested
//! nothing, and one that must not be served and was is a hole.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use onetrip_ledger::trace::{Records, decode_block};
use onetrip_ledger::{Outcome, Record, Remedy, Statement, TraceError, TraceReader};
use onetrip_sql::Lifter;

use super::families::{begins, cursors, loops, meanings, portals, settings, statements};

/// Programs from which on each shape must have been served; fewer may leave one out by chance, the sooner the faster the
/// machine is: what is learned about a database comes after a second. `scripts/prove` adds up the tables of its steps.
pub(crate) const PROGRAMS_MIN: u64 = 20_000;

/// A text that programs send, and what the remedy that it is for makes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) text: &'static str,
    /// Whether the remedy answers it, where the program lets it; otherwise it must never do so.
    is_served: bool,
}

/// A text that the remedy answers.
pub(crate) const fn served(text: &'static str) -> Shape {
    Shape { text, is_served: true }
}

/// A text that the remedy must leave alone.
pub(crate) const fn never(text: &'static str) -> Shape {
    Shape { text, is_served: false }
}

/// What was answered by each remedy, by template: a FETCH or Execute of a cursor counts for what it reads.
#[derive(Debug, Default)]
pub(crate) struct Served(BTreeMap<Remedy, BTreeMap<String, u64>>);

impl Served {
    /// Adds what a trace tells.
    pub(crate) fn add(&mut self, path: &Path) {
        let mut reader = TraceReader::open(path).expect("the gateway has written it");
        let mut records = Records::default();
        let mut streams: HashMap<u32, Stream> = HashMap::new();
        while let Some(block) = reader.next_block().expect("it can be read") {
            let stream = streams.entry(block.stream).or_default();
            let each = |record: Record<'_>| -> Result<(), TraceError> {
                self.record(stream, record);
                Ok(())
            };
            decode_block(&mut records, block.stream, block.payload, each).expect("its records are whole");
        }
    }

    fn record(&mut self, stream: &mut Stream, record: Record<'_>) {
        match record {
            Record::Template { id, text } => {
                stream.templates.insert(id, String::from_utf8_lossy(text).into_owned());
            }
            Record::Exchange(exchange) => {
                let text = |one: &Statement| stream.templates.get(&one.template).cloned();
                let made = exchange.statements.iter().filter(|one| one.outcome == Outcome::Done);
                let made: Vec<_> = made.filter_map(text).filter_map(|text| declared(&text)).collect();
                let texts: Vec<String> = exchange.statements.iter().filter_map(text).collect();
                stream.cursors.extend(made);
                let Some(remedy) = exchange.remedy else { return };
                let served = self.0.entry(remedy).or_default();
                for text in texts {
                    let query = fetched(&text).and_then(|name| stream.cursors.get(name)).cloned();
                    *served.entry(query.unwrap_or(text)).or_default() += 1;
                }
            }
            _ => {}
        }
    }

    fn count(&self, remedy: Remedy, template: &str) -> u64 {
        self.0.get(&remedy).and_then(|served| served.get(template)).copied().unwrap_or(0)
    }

    /// The table, and what is wrong with it.
    pub(crate) fn table(&self, is_whole: bool) -> (String, Vec<String>) {
        let (mut table, mut wrong) = (String::new(), Vec::new());
        let mut lifter = Lifter::new();
        for (remedy, shapes) in shapes() {
            let shapes: BTreeMap<&str, Shape> = shapes.into_iter().map(|shape| (shape.text, shape)).collect();
            for Shape { text, is_served } in shapes.into_values() {
                let template =
                    String::from_utf8_lossy(lifter.lift(text.as_bytes(), true).template()).into_owned();
                let count = self.count(remedy, &template);
                let note = if is_served { "" } else { " (never)" };
                table.push_str(&format!("{:<10} {count:>7}{note} {template}\n", remedy.to_string()));
                match (is_served, count) {
                    (false, 1..) => wrong.push(format!("{remedy} has served {count}: {template}")),
                    (true, 0) if is_whole => wrong.push(format!("{remedy} has never served: {template}")),
                    _ => {}
                }
            }
        }
        (table, wrong)
    }
}

/// What is known of one session.
#[derive(Debug, Default)]
struct Stream {
    templates: HashMap<u32, String>,
    /// Queries of cursors of SQL, by name.
    cursors: HashMap<String, String>,
}

/// Name and query of a cursor. One WITH HOLD is stored when its transaction ends, so that it may be read ahead whatever its
/// query computes: it counts for no shape.
fn declared(text: &str) -> Option<(String, String)> {
    let rest = text.strip_prefix("DECLARE ")?;
    let (name, _) = rest.split_once(' ')?;
    let (how, query) = rest.split_once(" FOR ")?;
    let query = if how.contains("WITH HOLD") { format!("held: {query}") } else { query.to_owned() };
    Some((name.to_owned(), query))
}

fn fetched(text: &str) -> Option<&str> {
    text.strip_prefix("FETCH ")?.rsplit(' ').next()
}

/// Shapes that are generated, by remedy.
fn shapes() -> Vec<(Remedy, Vec<Shape>)> {
    vec![
        (Remedy::Begin, begins::SHAPES.to_vec()),
        (Remedy::Loops, loops::SHAPES.to_vec()),
        (Remedy::Repeats, meanings::READS.to_vec()),
        (Remedy::Statements, statements::TEXTS.to_vec()),
        (Remedy::Cursors, [&cursors::QUERIES[..], &portals::QUERIES, &meanings::RESULTS].concat()),
        (Remedy::Chatter, settings::SETTINGS.to_vec()),
    ]
}
