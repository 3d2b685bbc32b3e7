//! One statement with many sets of parameters: which way they go, what is sent for them, and which of them failed.
//!
//! ```text
//!   Pipeline   op op op … Sync                                           any statement
//!   Unnest     INSERT … SELECT * FROM unnest($1, $2, …) … Sync           a plain insertion
//!   Copy       COPY … FROM STDIN, data, … Sync                           a plain insertion that names its columns
//! ```
//!
//! Each is a block that aborts, so that outside of a transaction all of it is kept or nothing. `Auto` first asks what
//! the table is like, in the same transaction and with the statement prepared anew: from its Parse on the server locks
//! the table, so that the answer holds until the end.

mod insert;
mod values;

use onetrip_wire::pg::{Format, Oid, TransactionStatus};
use postgres_types::Type;

use super::{Connection, OnError, OperationId, Request};
use crate::{Done, Error, Outcome, Param, Usage, Written};
use insert::Insert;

/// Sets from which on `Auto` looks for another way than the pipeline.
const AUTO_SETS_MIN: usize = 1000;

/// What is asked about a table: whether its rows mean the same when they come by one statement, and by COPY.
///
/// Triggers could look at the rows before theirs, and so could a foreign key into the table itself; a rule rewrites INSERT
/// and not COPY; COPY overrides identity columns and does not know row security.
const FACTS: &str = "SELECT c.relkind = 'r' AND NOT c.relhasrules \
     AND NOT EXISTS (SELECT FROM pg_catalog.pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal) \
     AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint k WHERE k.contype = 'f' AND k.conrelid = c.oid AND k.confrelid = c.oid), \
     NOT c.relrowsecurity \
     AND NOT EXISTS (SELECT FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND a.attidentity = 'a') \
     FROM pg_catalog.pg_class c WHERE c.oid = pg_catalog.to_regclass($1)";

/// How many sets of parameters travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Bulk {
    /// The fastest way that is known to mean the same as one statement for each set.
    #[default]
    Auto,
    /// One statement for each set, in a pipeline.
    Pipeline,
    /// `INSERT … SELECT … FROM unnest(…)` with an array for each column, for a plain `INSERT … VALUES ($1, …, $n)`.
    Unnest,
    /// COPY, for such an INSERT that names its columns.
    Copy,
}

/// What many sets of parameters did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BulkDone {
    /// Rows that all of them returned or changed together.
    pub rows: u64,
    /// The way that they went.
    pub way: Bulk,
}

/// Why many sets of parameters did nothing.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{}{error}", of_set(*.set))]
pub struct BulkError {
    /// The set that failed, counted from zero; `None` where it was none of them, or nobody can tell.
    pub set: Option<usize>,
    /// What it failed with.
    pub error: Error,
}

fn of_set(set: Option<usize>) -> String {
    set.map_or_else(String::new, |set| format!("set {set}: "))
}

impl From<Error> for BulkError {
    fn from(error: Error) -> Self {
        Self { set: None, error }
    }
}

impl From<BulkError> for Error {
    fn from(error: BulkError) -> Self {
        error.error
    }
}

/// Many sets of parameters.
pub(crate) trait Sets {
    fn count(&self) -> usize;
    fn width(&self, set: usize) -> usize;
    fn value(&self, set: usize, column: usize) -> &dyn Param;
}

/// Sets as a caller gives them.
#[derive(Debug)]
pub(crate) struct SetList<'p, P: ?Sized>(pub(crate) Vec<&'p [&'p P]>);

impl<'p> Sets for SetList<'p, dyn Param + 'p> {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn width(&self, set: usize) -> usize {
        self.0[set].len()
    }

    fn value(&self, set: usize, column: usize) -> &dyn Param {
        self.0[set][column]
    }
}

impl<'p> Sets for SetList<'p, dyn Param + Sync + 'p> {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn width(&self, set: usize) -> usize {
        self.0[set].len()
    }

    fn value(&self, set: usize, column: usize) -> &dyn Param {
        self.0[set][column]
    }
}

/// What is to be pushed next.
#[derive(Debug)]
pub(crate) enum Piece {
    /// The statement with one set.
    Set,
    /// An insertion of several sets.
    Arrays { text: String, arrays: Vec<(Format, Vec<u8>)> },
    /// A COPY of several.
    Copy { text: String, data: Vec<u8> },
}

/// One call, without its waiting.
#[derive(Debug)]
pub(crate) struct Many<'s> {
    statement: &'s str,
    insert: Option<Insert<'s>>,
    wanted: Bulk,
    way: Bulk,
    types: Option<Vec<Type>>,
    /// The next set.
    next: usize,
    /// Sets before this go one by one, since no other way takes them.
    singly_until: usize,
    /// The first sets of what was pushed, with its operation and its way.
    pushed: Vec<(OperationId, usize, Bulk)>,
}

impl<'s> Many<'s> {
    pub(crate) fn new(
        core: &Connection,
        wanted: Bulk,
        statement: &'s str,
        sets: &dyn Sets,
    ) -> Result<Self, Error> {
        let insert = Insert::of(statement);
        let is_known = |insert: &Insert<'_>| sets.count() > 0 && insert.width == sets.width(0);
        let insert = insert.filter(is_known);
        let way = match wanted {
            Bulk::Auto if sets.count() < AUTO_SETS_MIN || insert.is_none() => Bulk::Pipeline,
            Bulk::Unnest if insert.is_none() && sets.count() > 0 => return Err(Usage::NotPlainInsert.into()),
            Bulk::Copy if insert.is_none_or(|insert| insert.columns.is_empty()) && sets.count() > 0 => {
                return Err(Usage::NotPlainInsert.into());
            }
            way => way,
        };
        let mut many = Self {
            statement,
            insert,
            wanted,
            way,
            types: None,
            next: 0,
            singly_until: 0,
            pushed: Vec::new(),
        };
        if way == Bulk::Unnest && sets.count() > 0 {
            let types = core.parameter_types(statement, sets, true);
            many.types = types.filter(|types| types.iter().all(values::has_plain_arrays));
        }
        Ok(many)
    }

    /// The table to ask about first, if it has to be.
    pub(crate) fn asks_about(&self) -> Option<&'s str> {
        let is_open = self.way == Bulk::Auto || (self.way == Bulk::Unnest && self.types.is_none());
        self.insert.filter(|_| is_open).map(|insert| insert.table)
    }

    /// Takes the answer; false where there is none, and the block has to end before the sets can go one by one.
    pub(crate) fn learn(&mut self, core: &mut Connection, asked: OperationId, sets: &dyn Sets) -> bool {
        let facts = core.take_result(asked);
        let types = core.parameter_types(self.statement, sets, false);
        self.types = types.filter(|types| types.iter().all(values::has_plain_arrays));
        if self.wanted == Bulk::Auto {
            let (same, copied) = facts.as_ref().map_or((false, false), read_facts);
            let names_columns = self.insert.is_some_and(|insert| !insert.columns.is_empty());
            self.way = match (same, copied && names_columns, &self.types) {
                (true, true, _) => Bulk::Copy,
                (true, false, Some(_)) => Bulk::Unnest,
                _ => Bulk::Pipeline,
            };
        }
        facts.is_ok()
    }

    /// What to push next; `None` once all sets are.
    pub(crate) fn next(&mut self, sets: &dyn Sets) -> Result<Option<Piece>, BulkError> {
        let start = self.next;
        if start >= sets.count() {
            return Ok(None);
        }
        let piece = match (self.way, self.insert) {
            (Bulk::Copy, Some(insert)) if start >= self.singly_until => self.copy(&insert, sets),
            (Bulk::Unnest, Some(insert)) if start >= self.singly_until => self.unnest(&insert, sets),
            _ => Ok(self.single()),
        };
        match piece {
            Ok(piece) => Ok(Some(piece)),
            Err((set, error)) if self.wanted != Bulk::Auto => Err(BulkError { set: Some(set), error }),
            Err(_) if self.way == Bulk::Copy && self.types.is_some() => {
                self.way = Bulk::Unnest;
                self.next(sets)
            }
            Err((set, _)) => {
                // Those up to the one that does not fit.
                self.singly_until = set + 1;
                Ok(Some(self.single()))
            }
        }
    }

    fn single(&mut self) -> Piece {
        self.next += 1;
        Piece::Set
    }

    fn copy(&mut self, insert: &Insert<'_>, sets: &dyn Sets) -> Result<Piece, values::Misfit> {
        let (data, end) = values::copy_data(sets, self.next, insert.width, self.types.as_deref())?;
        self.next = end;
        Ok(Piece::Copy { text: format!("COPY {} {} FROM STDIN", insert.table, insert.columns), data })
    }

    fn unnest(&mut self, insert: &Insert<'_>, sets: &dyn Sets) -> Result<Piece, values::Misfit> {
        let no_types = || {
            let problem = "some parameter has a type that unnest does not take".into();
            (self.next, Error::Parameter { number: 1, problem })
        };
        let types = self.types.as_deref().ok_or_else(no_types)?;
        let (arrays, end) = values::arrays(sets, self.next, types)?;
        self.next = end;
        let arrays = arrays.into_iter().map(|array| (array.format, array.bytes)).collect();
        let array = |(index, ty): (usize, &Type)| format!("${}::pg_catalog.\"{}\"[]", index + 1, ty.name());
        let parameters: Vec<_> = types.iter().enumerate().map(array).collect();
        let Insert { table, columns, .. } = insert;
        let text = format!("INSERT INTO {table} {columns} SELECT * FROM unnest({})", parameters.join(", "));
        Ok(Piece::Arrays { text, arrays })
    }

    /// A piece was pushed.
    pub(crate) fn pushed(&mut self, operation: OperationId, piece: &Piece, first: usize) {
        let way = match piece {
            Piece::Set => Bulk::Pipeline,
            Piece::Arrays { .. } => Bulk::Unnest,
            Piece::Copy { .. } => Bulk::Copy,
        };
        self.pushed.push((operation, first, way));
    }

    /// The first set of the next piece.
    pub(crate) fn position(&self) -> usize {
        self.next
    }

    /// What all of them did, once the block has ended.
    pub(crate) fn finish(&self, core: &Connection) -> Result<BulkDone, BulkError> {
        let mut rows = 0;
        let mut undone = None;
        for (operation, first, way) in &self.pushed {
            match core.outcome(*operation) {
                Some(Outcome::Done(done)) => rows += done.count(),
                Some(Outcome::Failed(error)) => {
                    let set =
                        if self.is_the_only_failed(core) { self.set_of(*first, *way, error) } else { None };
                    return Err(BulkError { set, error: (**error).clone() });
                }
                Some(outcome) => undone = undone.or(outcome.clone().into_result().err()),
                None => {}
            }
        }
        undone.map_or(Ok(BulkDone { rows, way: self.way }), |error| Err(error.into()))
    }

    /// A commit that fails, or a connection that is lost, fails several.
    fn is_the_only_failed(&self, core: &Connection) -> bool {
        let is_failed = |id| matches!(core.outcome(id), Some(Outcome::Failed(_)));
        self.pushed.iter().filter(|(operation, ..)| is_failed(*operation)).count() == 1
    }

    fn set_of(&self, first: usize, way: Bulk, error: &Error) -> Option<usize> {
        let server = error.server()?;
        match way {
            Bulk::Copy => {
                let context = server.field(b'W')?;
                Some(first + self.insert?.row_of_copy(context)?.checked_sub(1)?)
            }
            Bulk::Unnest => None,
            Bulk::Pipeline | Bulk::Auto => Some(first),
        }
    }

    /// Whether the sets go one by one next, because only so it can be told which of them fails. Nothing of them holds.
    pub(crate) fn goes_again(&self, core: &Connection, failed: &BulkError) -> bool {
        // Classes of what a row can do wrong, and of what only the rewritten statement can.
        let class = failed.error.sqlstate().and_then(|code| code.get(..2));
        let is_of_a_row =
            class.is_some_and(|class| ["0A", "21", "22", "23", "42", "44", "P0"].contains(&class));
        let is_open =
            failed.set.is_none() && is_of_a_row && core.transaction_status() == TransactionStatus::Idle;
        is_open && self.pushed.iter().any(|(.., way)| *way == Bulk::Unnest)
    }

    /// Whether sets were pushed that would be kept without those that cannot be.
    pub(crate) fn takes_back(&self, core: &Connection) -> bool {
        !self.pushed.is_empty() && core.transaction_status() == TransactionStatus::Idle && !core.is_lost()
    }

    /// From the first set on, one by one.
    pub(crate) fn one_by_one(&mut self) {
        self.way = Bulk::Pipeline;
        self.next = 0;
        self.pushed.clear();
    }
}

fn read_facts(done: &Done) -> (bool, bool) {
    let row = done.rows.as_ref().and_then(|rows| rows.rows().next());
    row.map_or((false, false), |row| (row.get(0).unwrap_or_default(), row.get(1).unwrap_or_default()))
}

impl Piece {
    /// Pushes it, but for a single set, whose parameters the caller has.
    pub(crate) fn push(&self, core: &mut Connection) -> Result<Option<OperationId>, Error> {
        match self {
            Self::Set => Ok(None),
            Self::Arrays { text, arrays } => {
                let values: Vec<Written<'_>> = arrays
                    .iter()
                    .map(|(format, bytes)| Written { type_oid: 0, format: *format, bytes: Some(bytes) })
                    .collect();
                let parameters: Vec<&dyn Param> = values.iter().map(|value| value as &dyn Param).collect();
                core.push(&Request::new(text, &parameters), None).map(Some)
            }
            Self::Copy { text, data } => {
                core.push(&Request { copy: Some(data), ..Request::new(text, &[]) }, None).map(Some)
            }
        }
    }
}

impl Connection {
    /// Adds the question what a table is like, with `statement` prepared anew before it.
    pub(crate) fn push_facts(
        &mut self,
        statement: &str,
        sets: &dyn Sets,
        table: &str,
    ) -> Result<OperationId, Error> {
        // In a transaction an error of the question is nobody's.
        let on_error = (self.status != TransactionStatus::Idle).then_some(OnError::Continue);
        self.push_after(&Request::new(FACTS, &[&table]), on_error, |core, id| {
            core.put_prepare_anew(id, statement, &first_set(sets));
        })
    }

    /// The types of a statement's parameters, where all are PostgreSQL's own; with `is_ready`, only of one that is
    /// prepared.
    fn parameter_types(&self, statement: &str, sets: &dyn Sets, is_ready: bool) -> Option<Vec<Type>> {
        let oids: &[Oid] = self.statements.parameters(statement, &first_set(sets), is_ready)?;
        oids.iter().map(|oid| Type::from_oid(*oid)).collect()
    }
}

fn first_set(sets: &dyn Sets) -> Vec<&dyn Param> {
    (0..sets.width(0)).map(|column| sets.value(0, column)).collect()
}
