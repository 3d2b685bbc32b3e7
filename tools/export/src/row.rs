use std::collections::HashMap;

use onetrip_ledger::trace::{Records, decode_block};
use onetrip_ledger::{
    Exchange, Obstacle, Outcome, Record, Remedy, Statement, Steps, TraceReader, TransactionStatus, UnitKind,
};
use serde::Serialize;

use crate::ExportError;

/// One exchange. Times are nanoseconds since the trace began.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Number of the connection.
    pub connection: u32,
    /// What the client sent: `connect`, `query`, `group`, `flushed-group`, `function-call` or `copy-in`.
    pub unit: &'static str,
    /// First byte of the unit.
    pub sent_at_ns: u64,
    /// First byte of the reply.
    pub first_reply_at_ns: u64,
    /// Last byte of the reply.
    pub last_reply_at_ns: u64,
    /// Bytes that the client sent.
    pub bytes_sent: u64,
    /// Bytes of the reply.
    pub bytes_received: u64,
    /// Whether it starts a trip.
    pub starts_trip: bool,
    /// Whether that trip may have shared the one before.
    pub may_share: bool,
    /// The remedy that answered it before the server did; empty if none did.
    pub remedy: &'static str,
    /// Why remedies that were on did not answer it; empty where that is not known.
    pub obstacle: &'static str,
    /// Where the session stands now: `idle`, `active` or `failed`.
    pub transaction: &'static str,
    /// `done`, `skipped`, or the SQLSTATE of the error.
    pub outcome: String,
    /// Label of the work.
    pub scope: String,
    /// The statements in order.
    pub statements: Vec<StatementRow>,
}

/// One statement's part in an exchange.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StatementRow {
    /// Text with its literals lifted; empty where it is not known.
    pub template: String,
    /// What happened to it here: `prepare`, `describe`, `bind`, `execute`, `close`.
    pub steps: Vec<&'static str>,
    /// Rows returned or changed.
    pub rows: u64,
    /// Most rows asked for at once; zero for all.
    pub row_limit: u32,
    /// `done`, `skipped`, or the SQLSTATE of the error.
    pub outcome: String,
    /// Its parameters: texts where the trace keeps them, else hashes in hexadecimal; `null` for NULL.
    pub parameters: Vec<Option<String>>,
}

/// What a stream has defined so far.
#[derive(Debug, Default)]
struct Names {
    templates: HashMap<u32, String>,
    scopes: HashMap<u32, String>,
}

/// Calls `each` for every exchange of a trace, in the order of the file.
///
/// # Errors
///
/// A trace that cannot be read, or what `each` returns.
pub fn rows(
    reader: &mut TraceReader,
    mut each: impl FnMut(&Row) -> Result<(), ExportError>,
) -> Result<(), ExportError> {
    let mut records = Records::default();
    let mut streams: HashMap<u32, Names> = HashMap::new();
    while let Some(block) = reader.next_block()? {
        let stream = block.stream;
        decode_block(&mut records, stream, block.payload, |record| {
            let names = streams.entry(stream).or_default();
            match record {
                Record::Template { id, text } => {
                    names.templates.insert(id, String::from_utf8_lossy(text).into_owned());
                }
                Record::Scope { id, label } => {
                    names.scopes.insert(id, String::from_utf8_lossy(label).into_owned());
                }
                Record::Exchange(exchange) => return each(&row(stream, exchange, names)),
                Record::Closed { .. } => {
                    streams.remove(&stream);
                }
                _ => {}
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn row(connection: u32, exchange: &Exchange, names: &Names) -> Row {
    let mut first = 0;
    let statements = exchange.statements.iter().map(|statement| {
        let own = first..first + usize::from(statement.parameters);
        first = own.end;
        statement_row(statement, exchange, own, names)
    });
    Row {
        connection,
        unit: match exchange.kind {
            UnitKind::Connect => "connect",
            UnitKind::Query => "query",
            UnitKind::Group => "group",
            UnitKind::FlushedGroup => "flushed-group",
            UnitKind::FunctionCall => "function-call",
            UnitKind::CopyIn => "copy-in",
        },
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
        statements: statements.collect(),
    }
}

fn statement_row(
    statement: &Statement,
    exchange: &Exchange,
    own: std::ops::Range<usize>,
    names: &Names,
) -> StatementRow {
    const STEPS: [(Steps, &str); 5] = [
        (Steps::PREPARE, "prepare"),
        (Steps::DESCRIBE, "describe"),
        (Steps::BIND, "bind"),
        (Steps::EXECUTE, "execute"),
        (Steps::CLOSE, "close"),
    ];
    let parameter = |position: usize| match exchange.parameters.get(position) {
        None | Some(0) => None,
        Some(hash) => Some(match exchange.parameter_texts.get(position) {
            Some(text) => String::from_utf8_lossy(text).into_owned(),
            None => format!("{hash:016x}"),
        }),
    };
    StatementRow {
        template: names.templates.get(&statement.template).cloned().unwrap_or_default(),
        steps: STEPS.iter().filter(|(step, _)| statement.steps.has(*step)).map(|(_, name)| *name).collect(),
        rows: statement.rows,
        row_limit: statement.row_limit,
        outcome: outcome(statement.outcome),
        parameters: own.map(parameter).collect(),
    }
}

fn outcome(outcome: Outcome) -> String {
    match outcome {
        Outcome::Done => "done".into(),
        Outcome::Skipped => "skipped".into(),
        Outcome::Failed(sqlstate) => String::from_utf8_lossy(&sqlstate).into_owned(),
    }
}
