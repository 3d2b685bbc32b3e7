use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use onetrip_ledger::trace::{Records, TRACE_STREAM, decode_block};
use onetrip_ledger::{
    Exchange, Gaps, Obstacle, Outcome, Record, Remedy, Statement, Steps, TraceReader, TransactionStatus,
    UnitKind,
};
use onetrip_sql::Lifter;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::clock::Timestamp;
use crate::template::Template;
use crate::{ExportError, STATEMENT_COLUMNS};

/// Host of rows whose trace does not say which database they are about.
const HOST_UNKNOWN: &str = "unknown";
/// Longest host: with its key it is the name of a directory.
const HOST_BYTES_MAX: usize = 200;

/// One exchange. [`crate::COLUMNS`] says what the fields mean.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Row {
    pub day: String,
    pub host: Host,
    pub connection: u32,
    pub exchange: u64,
    pub unit: &'static str,
    pub sent_at: Timestamp,
    pub sent_at_ns: u64,
    pub first_reply_at_ns: u64,
    pub last_reply_at_ns: u64,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    pub starts_trip: bool,
    pub may_share: bool,
    pub remedy: &'static str,
    pub obstacle: &'static str,
    pub transaction: &'static str,
    pub outcome: String,
    pub scope: String,
    pub request: String,
    #[serde(serialize_with = "text")]
    pub template: Arc<Template>,
    pub rows: u64,
    pub cut_statements: u64,
    pub statements: Vec<StatementRow>,
}

/// One statement's part in an exchange. [`STATEMENT_COLUMNS`] says what the fields mean.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub struct StatementRow {
    /// Its text, and what that says: the fields up to `bounds`.
    pub template: Arc<Template>,
    pub steps: Vec<&'static str>,
    pub rows: u64,
    pub row_limit: u32,
    pub outcome: String,
    pub parameter_hashes: Vec<Option<String>>,
    pub parameters: Vec<Option<String>>,
    pub key_columns: Arc<Vec<String>>,
    pub key_hashes: Vec<String>,
}

/// A database's address as a directory can be called.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Host(Arc<str>);

/// A column that a parameter is compared with.
#[derive(Serialize)]
struct Compared<'a> {
    parameter: u32,
    column_name: &'a str,
}

/// What a stream has defined so far.
#[derive(Debug, Default)]
struct Names {
    templates: HashMap<u32, Arc<Template>>,
    scopes: HashMap<u32, String>,
    columns: HashMap<u32, Arc<Vec<String>>>,
    exchanges: u64,
}

/// What all streams of a trace have in common.
struct Trace {
    started_unix_nanos: u64,
    host: Host,
    unknown: Arc<Template>,
    no_columns: Arc<Vec<String>>,
}

/// Calls `each` for every exchange of a trace, in the order of the file, and tells `read` of the bytes that it reads. Returns
/// what is missing from the trace.
///
/// # Errors
///
/// A trace that cannot be read, or what `each` returns.
pub fn rows(
    reader: &mut TraceReader,
    mut read: impl FnMut(u64),
    mut each: impl FnMut(Row) -> Result<(), ExportError>,
) -> Result<Gaps, ExportError> {
    let (mut lost_bytes, mut is_open) = (0, true);
    let mut records = Records::default();
    let mut lifter = Lifter::new();
    let mut streams: HashMap<u32, Names> = HashMap::new();
    let mut trace = Trace {
        started_unix_nanos: reader.header().started_unix_nanos,
        host: Host::of(""),
        unknown: Arc::new(Template::unknown()),
        no_columns: Arc::default(),
    };
    while let Some(block) = reader.next_block()? {
        read(block.payload.len() as u64);
        let stream = block.stream;
        decode_block(&mut records, stream, block.payload, |record| {
            match record {
                Record::Origin { upstream, .. } => trace.host = Host::of(&String::from_utf8_lossy(upstream)),
                Record::Lost { bytes } => lost_bytes += bytes,
                Record::End { .. } => is_open = false,
                _ => {}
            }
            if stream == TRACE_STREAM {
                return Ok(());
            }
            let names = streams.entry(stream).or_default();
            match record {
                Record::Template { id, text } => {
                    names.templates.insert(id, Arc::new(Template::new(&mut lifter, text)));
                }
                Record::Scope { id, label } => {
                    names.scopes.insert(id, String::from_utf8_lossy(label).into_owned());
                }
                Record::Columns { id, names: columns } => {
                    let columns = columns.iter().map(|name| String::from_utf8_lossy(name).into_owned());
                    names.columns.insert(id, Arc::new(columns.collect()));
                }
                Record::Exchange(exchange) => {
                    names.exchanges += 1;
                    return each(trace.row(stream, exchange, names));
                }
                Record::Closed { .. } => {
                    streams.remove(&stream);
                }
                _ => {}
            }
            Ok(())
        })?;
    }
    Ok(Gaps { lost_bytes, is_open, ..reader.gaps() })
}

impl Trace {
    fn row(&self, connection: u32, exchange: &Exchange, names: &Names) -> Row {
        let (mut parameters, mut results) = (0, 0);
        let statements = exchange.statements.iter().map(|statement| {
            let own_parameters = parameters..parameters + usize::from(statement.parameters);
            let own_results = results..results + statement.results as usize;
            (parameters, results) = (own_parameters.end, own_results.end);
            self.statement(statement, exchange, own_parameters, own_results, names)
        });
        let statements: Vec<StatementRow> = statements.collect();
        let is_run = |statement: &&StatementRow| statement.steps.contains(&EXECUTE);
        let main = statements.iter().rfind(is_run).or(statements.first());
        let sent_at = Timestamp::after(self.started_unix_nanos, exchange.sent_at.0);
        Row {
            day: sent_at.day(),
            host: self.host.clone(),
            connection,
            exchange: names.exchanges,
            unit: unit(exchange.kind),
            sent_at,
            sent_at_ns: exchange.sent_at.0,
            first_reply_at_ns: exchange.first_reply_at.0,
            last_reply_at_ns: exchange.last_reply_at.0,
            bytes_sent: exchange.bytes_sent,
            bytes_received: exchange.bytes_received,
            starts_trip: exchange.starts_trip,
            may_share: exchange.may_share,
            remedy: exchange.remedy.map_or("", Remedy::as_str),
            obstacle: exchange.obstacle.map_or("", Obstacle::as_str),
            transaction: match exchange.status {
                TransactionStatus::Idle => "idle",
                TransactionStatus::Active => "active",
                TransactionStatus::Failed => "failed",
            },
            outcome: outcome(exchange.outcome),
            scope: names.scopes.get(&exchange.scope).cloned().unwrap_or_default(),
            request: if exchange.request == 0 { String::new() } else { hex(exchange.request) },
            template: main.map_or(&self.unknown, |main| &main.template).clone(),
            rows: statements.iter().map(|statement| statement.rows).sum::<u64>() + exchange.cut.rows,
            cut_statements: exchange.cut.statements,
            statements,
        }
    }

    fn statement(
        &self,
        statement: &Statement,
        exchange: &Exchange,
        parameters: Range<usize>,
        results: Range<usize>,
        names: &Names,
    ) -> StatementRow {
        let hash = |position: usize| exchange.parameters.get(position).filter(|hash| **hash != 0);
        let text = |position: usize| {
            hash(position)?;
            exchange.parameter_texts.get(position).map(|text| String::from_utf8_lossy(text).into_owned())
        };
        let keeps_texts = !exchange.parameter_texts.is_empty();
        // A trace that was damaged may name columns that are not there.
        let columns = names.columns.get(&statement.columns).filter(|_| statement.columns != 0);
        let columns = columns.filter(|columns| columns.len() == usize::from(statement.key_columns));
        let results = exchange.results.get(results).filter(|_| columns.is_some()).unwrap_or_default();
        StatementRow {
            template: names.templates.get(&statement.template).unwrap_or(&self.unknown).clone(),
            steps: STEPS
                .iter()
                .filter(|(step, _)| statement.steps.has(*step))
                .map(|(_, name)| *name)
                .collect(),
            rows: statement.rows,
            row_limit: statement.row_limit,
            outcome: outcome(statement.outcome),
            parameter_hashes: parameters.clone().map(|at| hash(at).map(|hash| hex(*hash))).collect(),
            parameters: if keeps_texts { parameters.map(text).collect() } else { Vec::new() },
            key_columns: columns.unwrap_or(&self.no_columns).clone(),
            key_hashes: results.iter().map(|hash| format!("{hash:08x}")).collect(),
        }
    }
}

const EXECUTE: &str = "execute";
const STEPS: [(Steps, &str); 5] = [
    (Steps::PREPARE, "prepare"),
    (Steps::DESCRIBE, "describe"),
    (Steps::BIND, "bind"),
    (Steps::EXECUTE, EXECUTE),
    (Steps::CLOSE, "close"),
];

impl Host {
    /// The address without what a name of a directory, or of a Hive partition, cannot have.
    fn of(upstream: &str) -> Self {
        let name = |letter: char| match letter {
            letter if letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-') => letter,
            _ => '-',
        };
        let host: String = upstream.chars().take(HOST_BYTES_MAX).map(name).collect();
        Self(if host.is_empty() { HOST_UNKNOWN.into() } else { host.into() })
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Serialize for Host {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl Serialize for StatementRow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Template { text, kind, tables, compared, bounds } = &*self.template;
        let compared: Vec<Compared<'_>> = compared
            .iter()
            .map(|(parameter, column_name)| Compared { parameter: *parameter, column_name })
            .collect();
        let mut fields = serializer.serialize_struct("StatementRow", STATEMENT_COLUMNS.len())?;
        fields.serialize_field("template", text)?;
        fields.serialize_field("kind", kind)?;
        fields.serialize_field("tables", tables)?;
        fields.serialize_field("compared", &compared)?;
        fields.serialize_field("bounds", bounds)?;
        fields.serialize_field("steps", &self.steps)?;
        fields.serialize_field("rows", &self.rows)?;
        fields.serialize_field("row_limit", &self.row_limit)?;
        fields.serialize_field("outcome", &self.outcome)?;
        fields.serialize_field("parameter_hashes", &self.parameter_hashes)?;
        fields.serialize_field("parameters", &self.parameters)?;
        fields.serialize_field("key_columns", &*self.key_columns)?;
        fields.serialize_field("key_hashes", &self.key_hashes)?;
        fields.end()
    }
}

fn text<S: Serializer>(template: &Arc<Template>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&template.text)
}

fn hex(hash: u64) -> String {
    format!("{hash:016x}")
}

fn unit(kind: UnitKind) -> &'static str {
    match kind {
        UnitKind::Connect => "connect",
        UnitKind::Query => "query",
        UnitKind::Group => "group",
        UnitKind::FlushedGroup => "flushed-group",
        UnitKind::FunctionCall => "function-call",
        UnitKind::CopyIn => "copy-in",
    }
}

fn outcome(outcome: Outcome) -> String {
    match outcome {
        Outcome::Done => "done".into(),
        Outcome::Skipped => "skipped".into(),
        Outcome::Failed(sqlstate) => String::from_utf8_lossy(&sqlstate).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_can_be_the_name_of_a_directory() {
        for (upstream, host) in [
            ("db.example:5432", "db.example-5432"),
            ("[2001:db8::1]:5432", "-2001-db8--1--5432"),
            ("/run/postgresql/.s.PGSQL.5432", "-run-postgresql-.s.PGSQL.5432"),
            ("", "unknown"),
            ("datenbänke", "datenb-nke"),
        ] {
            assert_eq!(Host::of(upstream).as_str(), host);
        }
        assert_eq!(Host::of(&"a".repeat(1000)).as_str().len(), HOST_BYTES_MAX);
    }
}
