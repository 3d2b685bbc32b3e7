//! Purity: may a statement run although nobody asked for it, or its result be kept, because all it does is read rows
//! of the snapshot?
//!
//! Two steps, because a text alone cannot tell. [`read`] parses with PostgreSQL's own grammar, admits only constructs
//! that it knows, and lists what the text leaves open ([`Needs`]). [`Catalogue::check`] answers these from a snapshot
//! of what users have added to the database, and looks through views.
//!
//! Unknown is unsafe: a construct, function, operator, type or relation that no list here admits makes the statement
//! [`Impure`], and the error says which one it was.
//!
//! Whether a statement is pure depends on its text without the constants, so texts of one
//! [template](crate::Lifted::template) share a verdict.
//!
//! What the caller has to know by itself, as neither a text nor the catalogue shows it:
//!
//! - the text is read with `standard_conforming_strings = on` and as UTF-8 ([`Facts::has_backslash`],
//!   [`Facts::has_non_ascii`]);
//! - parameters with a declared type have one that [`is_harmless_parameter_type`] admits;
//! - the catalogue is as old as its query. It is void once the session ran a statement that is not pure (it may have
//!   made a temporary table, or set the search path or the role);
//! - what a user promised to be immutable is taken for it where the planner evaluates it on its own: in the expressions
//!   of indexes, statistics and constraints of the tables that are read;
//! - a pure statement can still fail (division by zero), wait for a lock, or take long.

mod builder;
mod builtin;
mod catalogue;
mod check;
mod expression;
mod impure;
mod needs;
mod read;
mod walk;

pub use builder::{
    CATALOGUE_BYTES_MAX, CATALOGUE_QUERY, CATALOGUE_ROWS_MAX, CatalogueBuilder, CatalogueError,
};
pub use catalogue::{Catalogue, ObjectColumn, Pure};
pub use impure::Impure;
pub use needs::{Facts, Needs, ObjectName, Operand, OperatorUse, is_harmless_parameter_type};
pub use read::{TEXT_BYTES_MAX, read};
