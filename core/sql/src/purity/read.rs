//! From a text to what it needs.

use std::thread;

use pg_query::NodeEnum;
use pg_query::protobuf::SelectStmt;

use super::impure::Impure;
use super::needs::{Needs, ObjectName};
use super::walk::Walk;

/// Longest text that is parsed, in bytes.
pub const TEXT_BYTES_MAX: usize = 16 * 1024;

/// Stack of the thread that parses. However a text is nested, the parser refuses what takes more than 2 MiB, and the
/// tree it hands over is refused beyond 100 messages, some 45 levels of expressions. Decoding these takes up to
/// 191 KiB in a release build and 1.6 MiB in a debug build (measured over the texts of `tests/purity_depth.rs`).
const STACK_BYTES: usize = 8 * 1024 * 1024;

/// Parses one statement and lists what must be checked in the catalogue.
///
/// The work is done on a thread of its own, so it needs next to nothing of the caller's stack, and takes some 0.1 ms:
/// keep what it gives.
///
/// # Errors
///
/// The construct that is not known to be harmless.
///
/// ```
/// use onetrip_sql::purity;
///
/// let needs = purity::read("SELECT max(pay) FROM hr.emp WHERE id = $1").unwrap();
/// assert_eq!(needs.relations.first().unwrap().to_string(), "hr.emp");
/// assert_eq!(needs.functions.first().unwrap().to_string(), "max");
/// let locks = purity::read("SELECT pay FROM hr.emp FOR UPDATE").unwrap_err();
/// assert_eq!(locks.to_string(), "it uses FOR UPDATE or FOR SHARE");
/// ```
pub fn read(text: &str) -> Result<Needs, Impure> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(Impure::TooLong(text.len()));
    }
    match on_a_thread(|| parse(text)) {
        None => Err(Impure::NoThread),
        Some(parsed) => parsed,
    }
}

/// What comes of it, done with a stack that any text can be parsed on; `None` if there is no thread, or it has ended.
pub(super) fn on_a_thread<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    let parser = thread::Builder::new().name("purity".to_owned()).stack_size(STACK_BYTES);
    thread::scope(|scope| parser.spawn_scoped(scope, work).ok()?.join().ok())
}

fn parse(text: &str) -> Result<Needs, Impure> {
    let parsed = pg_query::parse(text, 0).map_err(|error| match error {
        pg_query::Error::Decode(_) => Impure::TooDeep,
        _ => Impure::NotParsed,
    })?;
    let parsed = parsed.protobuf;
    let [statement] = parsed.stmts.as_slice() else {
        return Err(Impure::StatementCount(parsed.stmts.len()));
    };
    let statement = statement.stmt.as_ref().and_then(|node| node.node.as_ref());
    let Some(NodeEnum::SelectStmt(select)) = statement else {
        return Err(Impure::Construct(statement_name(statement)));
    };
    let mut walk = Walk::default();
    walk.select(select)?;
    let mut needs = walk.into_needs();
    needs.facts.has_order = !select.sort_clause.is_empty();
    needs.facts.has_limit = has_limit(select);
    needs.facts.has_backslash = text.contains('\\');
    needs.facts.has_non_ascii = !text.is_ascii();
    if text.contains("'lo_open'") && needs.relations.iter().all(is_plain_catalogue) {
        needs.relations.clear();
    }
    Ok(needs)
}

/// Whether a name surely is one of the catalogues that drivers ask for the numbers of the functions of large objects, as
/// libpq and pgjdbc do in the transaction that is the first to need them: these two are plain tables.
fn is_plain_catalogue(name: &ObjectName) -> bool {
    name.schema.as_deref() == Some("pg_catalog") && ["pg_proc", "pg_namespace"].contains(&&*name.name)
}

fn has_limit(select: &SelectStmt) -> bool {
    select.limit_count.is_some() || select.limit_offset.is_some()
}

fn statement_name(statement: Option<&NodeEnum>) -> &'static str {
    match statement {
        Some(
            NodeEnum::InsertStmt(_)
            | NodeEnum::UpdateStmt(_)
            | NodeEnum::DeleteStmt(_)
            | NodeEnum::MergeStmt(_),
        ) => "a statement that modifies data",
        Some(NodeEnum::ExplainStmt(_)) => "EXPLAIN",
        Some(NodeEnum::ExecuteStmt(_)) => "EXECUTE",
        Some(NodeEnum::CallStmt(_)) => "CALL",
        Some(NodeEnum::CopyStmt(_)) => "COPY",
        Some(NodeEnum::VariableShowStmt(_)) => "SHOW",
        _ => "a statement that is not a query",
    }
}
