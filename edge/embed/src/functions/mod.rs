//! Functions that PostgreSQL has and SQLite lacks, and conversions that the translator calls for.

mod convert;
mod lines;
mod number;
mod session;
mod text;
mod time;

use std::borrow::Cow;
use std::panic::UnwindSafe;
use std::sync::Arc;

use rusqlite::Connection;
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::ValueRef;

pub(crate) use session::SessionFacts;

use crate::error::{SqlError, SqlResult};
use crate::types::SqlType;
use crate::value::{Stored, put_text_form};

/// What a function gives back.
type Outcome = SqlResult<Stored<'static>>;

/// Marks an error of ours in SQLite's message: mark, SQLSTATE, mark, message.
const ERROR_MARK: char = '\u{1}';

/// Makes all functions known to a connection.
pub(crate) fn register(connection: &Connection, facts: &Arc<SessionFacts>) -> rusqlite::Result<()> {
    let registry = Registry { connection };
    // Functions would take all of these pieces for good, and every execution would have to call malloc instead.
    let all_pieces: rusqlite::Result<Vec<_>> =
        (0..HOLDING_STATEMENTS).map(|_| connection.prepare("SELECT 1 AS a, 2 AS b")).collect();
    let all_pieces = all_pieces?;
    convert::register(&registry)?;
    number::register(&registry)?;
    text::register(&registry)?;
    time::register(&registry, facts)?;
    session::register(&registry, facts)?;
    lines::register(&registry)?;
    drop(all_pieces);
    Ok(())
}

/// Statements that together take all pieces of memory that SQLite preallocates for a connection ("lookaside": 93 of 128
/// bytes and 30 of 1,200). Each holds at least two small ones and one large one.
const HOLDING_STATEMENTS: usize = 60;

/// The error that one of our functions raised, if that is what the message holds.
pub(crate) fn raised_error(message: &str) -> Option<SqlError> {
    let mut parts = message.strip_prefix(ERROR_MARK)?.splitn(2, ERROR_MARK);
    let sqlstate = STATES.iter().find(|state| Some(**state) == parts.clone().next())?;
    parts.next();
    Some(SqlError::new(sqlstate, parts.next()?.to_owned()))
}

/// SQLSTATEs that functions raise.
const STATES: [&str; 17] = [
    "0A000", "22001", "22003", "22007", "22008", "22012", "22021", "22022", "22023", "22P02", "22P03",
    "2201B", "42704", "42846", "42P01", "54000", "57014",
];

struct Registry<'c> {
    connection: &'c Connection,
}

impl Registry<'_> {
    /// A function of its arguments alone; `arity` −1 takes any number.
    fn pure(
        &self,
        name: &str,
        arity: i32,
        function: impl Fn(&Context<'_>) -> Outcome + Send + UnwindSafe + 'static,
    ) -> rusqlite::Result<()> {
        self.add(name, arity, FunctionFlags::SQLITE_DETERMINISTIC, function)
    }

    /// A function whose value can differ from call to call.
    fn volatile(
        &self,
        name: &str,
        arity: i32,
        function: impl Fn(&Context<'_>) -> Outcome + Send + UnwindSafe + 'static,
    ) -> rusqlite::Result<()> {
        self.add(name, arity, FunctionFlags::empty(), function)
    }

    fn add(
        &self,
        name: &str,
        arity: i32,
        flags: FunctionFlags,
        function: impl Fn(&Context<'_>) -> Outcome + Send + UnwindSafe + 'static,
    ) -> rusqlite::Result<()> {
        let flags = flags | FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_INNOCUOUS;
        self.connection.create_scalar_function(name, arity, flags, move |context| {
            function(context).map_err(|error| {
                let marked = format!("{ERROR_MARK}{}{ERROR_MARK}{}", error.sqlstate, error.message);
                rusqlite::Error::UserFunctionError(marked.into())
            })
        })
    }
}

/// An argument as text; `None` is NULL.
fn text_arg<'c>(context: &'c Context<'_>, index: usize) -> SqlResult<Option<Cow<'c, str>>> {
    Ok(match context.get_raw(index) {
        ValueRef::Null => None,
        ValueRef::Text(text) => Some(String::from_utf8_lossy(text)),
        other => {
            let mut out = Vec::new();
            put_text_form(&mut out, SqlType::TEXT, None, other)?;
            Some(Cow::Owned(String::from_utf8_lossy(&out).into_owned()))
        }
    })
}

/// An argument as a whole number; `None` is NULL.
fn integer_arg(context: &Context<'_>, index: usize) -> SqlResult<Option<i64>> {
    match context.get_raw(index) {
        ValueRef::Null => Ok(None),
        ValueRef::Integer(integer) => Ok(Some(integer)),
        ValueRef::Real(real) => Ok(Some(real.round() as i64)),
        _ => {
            let text = text_arg(context, index)?.unwrap_or_default();
            text.trim().parse().map(Some).map_err(|_| SqlError::invalid_text("integer", &text))
        }
    }
}

/// An argument as a number; `None` is NULL.
fn real_arg(context: &Context<'_>, index: usize) -> SqlResult<Option<f64>> {
    match context.get_raw(index) {
        ValueRef::Null => Ok(None),
        ValueRef::Integer(integer) => Ok(Some(integer as f64)),
        ValueRef::Real(real) => Ok(Some(real)),
        _ => {
            let text = text_arg(context, index)?.unwrap_or_default();
            text.trim().parse().map(Some).map_err(|_| SqlError::invalid_text("double precision", &text))
        }
    }
}

/// A value that outlives the call.
fn owned(value: ValueRef<'_>) -> Stored<'static> {
    match value {
        ValueRef::Null => Stored::Null,
        ValueRef::Integer(integer) => Stored::Integer(integer),
        ValueRef::Real(real) => Stored::Real(real),
        ValueRef::Text(text) => Stored::OwnedText(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(blob) => Stored::OwnedBlob(blob.to_vec()),
    }
}

/// Binds an argument or returns NULL from the function.
macro_rules! or_null {
    ($argument:expr) => {
        match $argument? {
            Some(value) => value,
            None => return Ok(Stored::Null),
        }
    };
}
use or_null;
