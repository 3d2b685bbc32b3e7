//! Purity: may a statement run although nobody asked for it, or its result be kept, because all it does is read rows
//! of the snapshot?
//!
//! There are two steps, because a text alone cannot tell. [`read`] parses with PostgreSQL's own grammar. It admits only
//! constructs that it knows, and lists what the text leaves open ([`Needs`]). [`Catalogue::check`] answers these from what
//! is known of the names in the database, and looks through views. A [`Survey`] looks up what is not known: the names that
//! are wanted ([`Wanted`]), and no others. So the size of the database does not matter.
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
//! - what is known is as old as its survey, and the search path is the session's. Both are void once the session ran a
//!   statement that is not pure: it may have made a temporary table, or set the search path or the role;
//! - what a user promised to be immutable is taken for it where the planner evaluates it on its own. That is in the
//!   expressions of indexes, statistics and constraints of the tables that are read;
//! - a pure statement can still fail (division by zero), wait for a lock, or take long.

mod builtin;
mod calls;
mod catalogue;
mod check;
mod expression;
mod facts;
mod impure;
mod lookup;
mod needs;
mod read;
mod session;
mod small;
mod steady;
mod survey;
mod views;
mod walk;

pub use calls::{may_call, names_catalogue};
pub use catalogue::{Catalogue, Pure};
pub use facts::{Acts, Column, Columns};
pub use impure::Impure;
pub use lookup::{Lookup, Question, elements};
pub use needs::{Facts, Needs, ObjectName, Operand, OperatorUse, is_harmless_parameter_type};
pub use read::{TEXT_BYTES_MAX, read};
pub use session::SessionQuestion;
pub use small::{LookupRow, SmallDatabase};
pub use steady::{Unsteady, steady};
pub use survey::{Findings, SURVEY_BYTES_MAX, SURVEY_ROWS_MAX, Survey, SurveyError, Wanted};
