//! One statement with many sets of parameters: which method is used, what is sent, and which set failed.
//!
//! ```text
//!   Pipeline   op op op … Sync                                           any statement
//!   Unnest     INSERT … SELECT * FROM unnest($1, $2, …) … Sync           a plain insertion
//!   Copy       COPY … FROM STDIN, data, … Sync                           a plain insertion that names its columns
//! ```
//!
//! Each is a block that aborts. So outside a transaction, all of it is kept or nothing.
//!
//! `Auto` has to know whether the table lets another way mean the same. The question is asked in the same transaction,
//! behind a Parse of the statement, or a Bind of it that runs nothing. From that on the server locks the table, so that the
//! answer holds until the end.
//! `Auto` asks in one of three ways:
//!
//! ```text
//!   first    Parse, facts, Flush   (waits)   another way … Sync    a trip: only if so many sets save more than that
//!   along    Parse, facts, Sync, op op op … Sync                   no trip: for the next call, which may be guarded
//!   guarded  Bind, guard, another way … Sync                       no trip: the guard fails if the facts are others now
//! ```
//!
//! A guard that fails undoes nothing that the caller has done, since it is used outside a transaction only, or in one
//! that begins with it. The sets go one by one then.

mod insert;
mod many;
mod tables;
mod values;

use std::ops::Range;
use std::time::Duration;

use onetrip_wire::pg::{Format, Oid};
use postgres_types::Type;

use super::{Connection, OnError, OperationId, Request};
use crate::{CommandTag, Error, Param, Written};
use insert::Insert;
pub use many::{Many, ManyStep};
use tables::FACTS;
pub(super) use tables::Tables;
pub use values::put_copy_text;

/// Sets from which on `Auto` looks for another way than the pipeline, if it knows the table.
const KNOWN_SETS_MIN: usize = 50;

/// Sets from which on `Auto` asks about a table before anything else.
const ASKED_SETS_MIN: usize = 1000;

/// Sets for which arrays are faster than COPY. Arrays take longer to begin with; for each of its first 1,000 rows COPY
/// makes a place to keep it in, and arrays have to be taken apart.
const ARRAYS_SETS: Range<usize> = 350..3500;

/// What a set costs less by COPY or as arrays than in a pipeline, and what another way costs before its first set. Both
/// are of the table of rows per second in docs/client.md: of what 1,000 and 10,000 rows take near the server.
const SAVED_BY_SET: Duration = Duration::from_nanos(2_400);
const SPENT_BEFORE: Duration = Duration::from_micros(1_100);

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

impl Bulk {
    /// Whether [`Auto`](Self::Auto) may look for another way than the pipeline for so many sets of a statement.
    pub fn has_choice(statement: &str, sets: usize) -> bool {
        sets >= KNOWN_SETS_MIN && Insert::of(statement).is_some()
    }
}

/// What many sets of parameters did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BulkDone {
    /// Rows that all of them returned or changed together.
    pub rows: u64,
    /// The way that they went.
    pub way: Bulk,
    /// The tag of the last statement; `None` where there was none.
    pub tag: Option<CommandTag>,
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

/// Whether another way than the pipeline may save more than the trip that it takes to ask for it. Where nobody knows how
/// long a trip is, it is taken to be short.
fn pays(sets: usize, round_trip: Option<Duration>) -> bool {
    let saved = SAVED_BY_SET.saturating_mul(u32::try_from(sets).unwrap_or(u32::MAX));
    sets >= ASKED_SETS_MIN && saved > SPENT_BEFORE + round_trip.unwrap_or_default()
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
pub trait Sets {
    /// How many sets.
    fn count(&self) -> usize;
    /// How many values a set has.
    fn width(&self, set: usize) -> usize;
    /// One value of a set; both are counted from zero.
    fn value(&self, set: usize, column: usize) -> &dyn Param;
}

/// Sets as a caller gives them: of values, or of values that may cross threads.
#[derive(Debug)]
pub(crate) struct SetList<'p, P: ?Sized>(pub(crate) Vec<&'p [&'p P]>);

impl<P: Param + ?Sized> Sets for SetList<'_, P> {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn width(&self, set: usize) -> usize {
        self.0[set].len()
    }

    fn value(&self, set: usize, column: usize) -> &dyn Param {
        &self.0[set][column]
    }
}

/// What is to be pushed next.
#[derive(Debug)]
enum Piece {
    /// The statement with one set.
    Set,
    /// An insertion of several sets.
    Arrays { text: String, arrays: Vec<(Format, Vec<u8>)> },
    /// A COPY of several.
    Copy { text: String, data: Vec<u8> },
}

fn push_arrays(
    core: &mut Connection,
    text: &str,
    arrays: &[(Format, Vec<u8>)],
) -> Result<OperationId, Error> {
    let values: Vec<Written<'_>> = arrays
        .iter()
        .map(|(format, bytes)| Written { type_oid: 0, format: *format, bytes: Some(bytes) })
        .collect();
    let parameters: Vec<&dyn Param> = values.iter().map(|value| value as &dyn Param).collect();
    core.push(&Request::new(text, &parameters), None)
}

/// Adds the question about a table, with `statement` prepared anew before it: so it is about the table that its name means now.
fn push_question(
    core: &mut Connection,
    on_error: Option<OnError>,
    statement: &str,
    sets: &dyn Sets,
    table: &str,
) -> Result<OperationId, Error> {
    core.push_after(&Request::new(FACTS, &[&table]), on_error, |core, id| {
        with_set(sets, 0, |set| core.put_prepare_anew(id, statement, set));
    })
}

/// Adds a guard, behind what locks the table of `statement`.
fn push_guard(
    core: &mut Connection,
    guard: &str,
    statement: &str,
    sets: &dyn Sets,
) -> Result<OperationId, Error> {
    let request = Request { keeps: Some(core.prepares()), ..Request::new(guard, &[]) };
    core.push_after(&request, None, |core, id| {
        with_set(sets, 0, |set| core.put_lock(id, statement, set));
    })
}

/// The types of a statement's parameters, where all are PostgreSQL's own; with `is_ready`, only of one that is
/// prepared.
fn parameter_types(core: &Connection, statement: &str, sets: &dyn Sets, is_ready: bool) -> Option<Vec<Type>> {
    let oids: &[Oid] = with_set(sets, 0, |set| core.statements.parameters(statement, set, is_ready))?;
    oids.iter().map(|oid| Type::from_oid(*oid)).collect()
}

/// Calls with the values of a set side by side.
fn with_set<T>(sets: &dyn Sets, set: usize, work: impl FnOnce(&[&dyn Param]) -> T) -> T {
    const FEW: usize = 16;
    let width = sets.width(set);
    if width <= FEW {
        let mut few: [&dyn Param; FEW] = [&0i32; FEW];
        for (column, place) in few.iter_mut().enumerate().take(width) {
            *place = sets.value(set, column);
        }
        return work(&few[..width]);
    }
    let many: Vec<&dyn Param> = (0..width).map(|column| sets.value(set, column)).collect();
    work(&many)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asking_about_a_table_has_to_save_more_than_its_trip() {
        let far = Some(Duration::from_micros(12_900));
        assert!(pays(1000, None) && pays(1000, Some(Duration::from_micros(50))));
        assert!(!pays(999, None), "few sets go one by one wherever the server is");
        assert!(!pays(1000, Some(Duration::from_micros(1_500))));
        assert!(!pays(5_000, far) && pays(6_000, far));
        assert!(pays(usize::MAX, far));
    }
}
