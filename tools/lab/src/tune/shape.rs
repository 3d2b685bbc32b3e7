//! What is read, found out: from a table, or from a trace of a program that read it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use onetrip_ledger::trace::{Records, decode_block};
use onetrip_ledger::{Exchange, Record, Steps, TraceError, TraceReader, UnitKind};

use crate::LabError;
use crate::database::reach;

/// A value of fewer bytes on average is no large one.
const LARGE_BYTES: u64 = 1_000;
/// Rows of a table that are counted at most.
const ROWS_MAX: u64 = 1_000_000;
/// Rows whose values are measured.
const SAMPLE_ROWS: u64 = 1_000;
/// Oid of the type bytea.
const BYTEA: &str = "17";

/// What a table or a trace says of a result; what it leaves open is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shape {
    /// Where it was found.
    pub source: String,
    /// Rows of the result.
    pub rows: u64,
    /// Bytes of a row without its large value.
    pub row_bytes: u64,
    /// Bytes of the large value in each row; zero where there is none.
    pub lob_bytes: u64,
    /// In how many of a hundred rows the large value was looked at.
    pub share_percent: Option<u64>,
    /// The smallest round-trip time to the database that was seen.
    pub rtt: Option<Duration>,
}

/// The shape of a table's rows. Its widest column is the large value if it has 1,000 bytes or more on average.
///
/// # Errors
///
/// The database cannot be reached, or has no such table.
pub fn of_table(database: &str, table: &str) -> Result<Shape, LabError> {
    let reached = reach(database)?;
    let mut session = reached.session()?;
    let mut ask = |text: &str| Ok::<_, LabError>(session.ask(text)?.unwrap_or_default());
    let literal = table.replace('\'', "''");
    let name = ask(&format!("SELECT coalesce(to_regclass('{literal}')::text, '')"))?;
    if name.is_empty() {
        return Err(LabError::Database(format!("there is no table {table:?}")));
    }
    let number = |text: String| text.parse::<u64>().unwrap_or(0);
    let rows = number(ask(&format!("SELECT count(*) FROM (SELECT 1 FROM {name} LIMIT {ROWS_MAX}) AS rows"))?);
    let columns = ask(&format!(
        "SELECT string_agg(atttypid || ' ' || quote_ident(attname), chr(10) ORDER BY attnum) FROM pg_attribute \
         WHERE attrelid = '{}'::regclass AND attnum > 0 AND NOT attisdropped",
        name.replace('\'', "''")
    ))?;
    let mut widths = Vec::new();
    for (kind, column) in columns.lines().filter_map(|line| line.split_once(' ')) {
        let value = if kind == BYTEA { column.to_owned() } else { format!("{column}::text") };
        let width = ask(&format!(
            "SELECT coalesce(avg(octet_length({value})), 0)::bigint FROM (SELECT {column} FROM {name} LIMIT {SAMPLE_ROWS}) AS rows"
        ))?;
        widths.push(number(width));
    }
    session.close();
    let widest = widths.iter().copied().max().unwrap_or(0);
    let lob_bytes = if widest >= LARGE_BYTES { widest } else { 0 };
    let row_bytes = widths.iter().sum::<u64>() - lob_bytes;
    Ok(Shape { source: format!("table {name}"), rows, row_bytes, lob_bytes, share_percent: None, rtt: None })
}

/// What a program's statements came to.
#[derive(Debug, Clone, Copy, Default)]
struct Read {
    runs: u64,
    rows: u64,
    bytes: u64,
}

/// The shape of the result with the most rows for a run in a trace. Where another statement was run for single rows with large
/// values, those are its rows' large values, and how often it was run for how many of them is their share.
///
/// # Errors
///
/// The trace cannot be read, or nothing in it has rows.
pub fn of_trace(path: &Path) -> Result<Shape, LabError> {
    let failed = |reason: &dyn std::fmt::Display| LabError::Database(format!("{}: {reason}", path.display()));
    let mut reader = TraceReader::open(path)?;
    let (mut records, mut seen) = (Records::default(), Seen::default());
    while let Some(block) = reader.next_block()? {
        let note = |record: Record<'_>| {
            seen.note(block.stream, record);
            Ok::<(), TraceError>(())
        };
        decode_block(&mut records, block.stream, block.payload, note).map_err(|error| failed(&error))?;
    }
    seen.shape().ok_or_else(|| failed(&"no statement in it has rows"))
}

#[derive(Debug, Default)]
struct Seen {
    texts: BTreeMap<(u32, u32), String>,
    reads: BTreeMap<String, Read>,
    rtt: Option<Duration>,
}

impl Seen {
    fn note(&mut self, stream: u32, record: Record<'_>) {
        match record {
            Record::Template { id, text } => {
                self.texts.insert((stream, id), String::from_utf8_lossy(text).into_owned());
            }
            Record::Path { rtt_min_us, .. } => {
                let rtt = Duration::from_micros(u64::from(rtt_min_us));
                self.rtt = Some(self.rtt.map_or(rtt, |known| known.min(rtt)));
            }
            Record::Exchange(exchange) => self.note_exchange(stream, exchange),
            _ => {}
        }
    }

    /// Bytes of a reply belong to the one statement that had rows; where several had, they are shared by rows.
    fn note_exchange(&mut self, stream: u32, exchange: &Exchange) {
        let all: u64 = exchange.statements.iter().map(|statement| statement.rows).sum();
        for statement in exchange.statements.iter().filter(|statement| statement.steps.has(Steps::EXECUTE)) {
            let Some(text) = self.texts.get(&(stream, statement.template)) else { continue };
            let read = self.reads.entry(text.clone()).or_default();
            let is_new = exchange.kind == UnitKind::Query || statement.steps.has(Steps::BIND);
            read.runs += u64::from(is_new);
            read.rows += statement.rows;
            // No trace has so many rows and bytes that their product is too large; a false one is cut off.
            read.bytes += exchange.bytes_received.saturating_mul(statement.rows) / all.max(1);
        }
    }

    fn shape(self) -> Option<Shape> {
        let per_run = |read: &Read| read.rows / read.runs.max(1);
        let (text, list) = self.reads.iter().max_by_key(|(_, read)| (per_run(read), read.rows))?;
        let rows = per_run(list).max(1);
        let row_bytes = list.bytes / list.rows.max(1);
        let is_content = |read: &&Read| {
            read.runs > 1 && read.rows > 0 && per_run(read) <= 1 && read.bytes / read.rows >= LARGE_BYTES
        };
        let content = self.reads.values().filter(is_content).max_by_key(|read| read.bytes);
        let share = content.map(|content| (content.rows * 100 / list.rows.max(1)).min(100));
        Some(Shape {
            source: format!("statement {text:?}"),
            rows,
            row_bytes,
            lob_bytes: content.map_or(0, |content| content.bytes / content.rows),
            share_percent: share,
            rtt: self.rtt.filter(|rtt| !rtt.is_zero()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onetrip_ledger::trace::{TraceHeader, TraceWriter};
    use onetrip_ledger::{Statement, StreamEncoder};

    /// A list of 40 rows in pieces of 10, and the contents of each fourth of them.
    fn write_trace(path: &Path) {
        let mut stream = StreamEncoder::default();
        stream.template(1, b"SELECT id FROM pictures");
        stream.template(2, b"SELECT content FROM pictures WHERE id = $1");
        let mut exchange = |template, steps: u8, rows, bytes_received| {
            let statement = Statement { template, steps: Steps(steps), rows, ..Statement::default() };
            stream.exchange(&Exchange {
                kind: UnitKind::Group,
                bytes_received,
                statements: vec![statement],
                ..Exchange::default()
            });
        };
        let (bind, execute) = (Steps::BIND.0, Steps::EXECUTE.0);
        exchange(1, bind | execute, 10, 200);
        for _ in 0..3 {
            exchange(1, execute, 10, 200);
        }
        for _ in 0..10 {
            exchange(2, bind | execute, 1, 5_000);
        }
        stream.path(onetrip_ledger::Moment(1), 900, 700);
        let mut writer = TraceWriter::create(path, TraceHeader::now(false)).unwrap();
        writer.append(1, &stream.take_block()).unwrap();
    }

    #[test]
    fn a_trace_tells_how_many_rows_there_were_and_how_many_of_their_contents_were_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.trace");
        write_trace(&path);
        let expected = Shape {
            source: "statement \"SELECT id FROM pictures\"".to_owned(),
            rows: 40,
            row_bytes: 20,
            lob_bytes: 5_000,
            share_percent: Some(25),
            rtt: Some(Duration::from_micros(700)),
        };
        assert_eq!(of_trace(&path).unwrap(), expected);
        std::fs::write(&path, b"nothing").unwrap();
        assert!(of_trace(&path).is_err());
    }
}
