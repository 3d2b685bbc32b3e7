//! Portals: a statement with its parameters, and how far its rows have been read.

use std::rc::Rc;

use onetrip_wire::pg::{Bind, Column, Format, RowDescription, backend, frame};
use rusqlite::Row;

use super::Failure;
use super::errors::from_sqlite;
use super::output::Output;
use super::prepared::Prepared;
use crate::error::{SqlError, SqlResult};
use crate::sql::{OutputColumn, Statement, Utility};
use crate::types::SqlType;
use crate::value::{Stored, decode, put_value};

/// A bound statement.
pub(super) struct Portal<'c> {
    pub(super) prepared: Rc<Prepared<'c>>,
    /// SQLite's statement; none for what the session carries out itself.
    pub(super) compiled: Option<rusqlite::Statement<'c>>,
    /// One for each result column.
    pub(super) formats: Vec<Format>,
    /// What it takes, roughly: its statement and the values bound to it.
    pub(super) bytes: usize,
    pub(super) is_done: bool,
    /// Whether it outlives its transaction.
    pub(super) is_held: bool,
    /// How many savepoints there were when it was opened.
    pub(super) depth: usize,
    /// What a question of a gateway's is about.
    pub(super) asked: Option<String>,
}

/// How reading rows ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    Suspended,
    Done,
}

impl<'c> Portal<'c> {
    /// Binds the parameters of a message.
    pub(super) fn bind(&mut self, bind: &Bind<'_>) -> SqlResult<()> {
        let parameters = self.prepared.parameters();
        if bind.parameters.len() != parameters.len() {
            return Err(SqlError::protocol(format!(
                "bind message supplies {} parameters, but prepared statement \"{}\" requires {}",
                bind.parameters.len(),
                String::from_utf8_lossy(bind.statement),
                parameters.len()
            )));
        }
        if let Statement::Utility(Utility::Question(_)) = &self.prepared.statement {
            let parameter = bind.parameters.iter().next().flatten();
            self.asked = parameter.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        }
        let Some(compiled) = &mut self.compiled else { return Ok(()) };
        let places = compiled.parameter_count();
        for (index, (value, ty)) in bind.parameters.iter().zip(parameters).enumerate() {
            let stored = match value {
                None => Stored::Null,
                Some(bytes) => {
                    self.bytes += bytes.len();
                    decode(*ty, bind.parameter_formats.of(index), bytes)?
                }
            };
            // A parameter that the text does not use has no place in SQLite's statement.
            if index < places {
                compiled.raw_bind_parameter(index + 1, &stored).map_err(|error| from_sqlite(&error))?;
            }
        }
        Ok(())
    }

    /// Binds parameters given as text.
    pub(super) fn bind_texts(&mut self, texts: &[Option<String>]) -> SqlResult<()> {
        let parameters = self.prepared.parameters();
        if texts.len() != parameters.len() {
            let message =
                format!("wrong number of parameters: got {}, wanted {}", texts.len(), parameters.len());
            return Err(SqlError::new("42601", message));
        }
        let Some(compiled) = &mut self.compiled else { return Ok(()) };
        for (index, (text, ty)) in texts.iter().zip(parameters).enumerate() {
            let stored = match text {
                None => Stored::Null,
                Some(text) => crate::value::read_text(*ty, text)?,
            };
            if index < compiled.parameter_count() {
                compiled.raw_bind_parameter(index + 1, &stored).map_err(|error| from_sqlite(&error))?;
            }
        }
        Ok(())
    }

    /// Sends up to `limit` rows; counts them in `rows`. `is_silent` reads without sending.
    pub(super) fn read(
        &mut self,
        limit: Option<u64>,
        is_silent: bool,
        rows: &mut u64,
        out: &mut Output<'_>,
    ) -> Result<Reading, Failure> {
        let Some(compiled) = self.compiled.as_mut().filter(|_| !self.is_done) else {
            return Ok(Reading::Done);
        };
        let columns = self.prepared.columns();
        let mut cursor = compiled.raw_query();
        loop {
            if limit.is_some_and(|limit| *rows >= limit) {
                // Dropping the cursor would reset the statement; the next read goes on where this one stops.
                std::mem::forget(cursor);
                return Ok(Reading::Suspended);
            }
            match cursor.next() {
                Ok(Some(row)) if columns.is_empty() || is_silent => {
                    let _ = row;
                    *rows += 1;
                }
                Ok(Some(row)) => {
                    put_row(&mut out.buffer, row, columns, &self.formats)?;
                    *rows += 1;
                    out.flush_if_full()?;
                }
                Ok(None) => {
                    self.is_done = true;
                    return Ok(Reading::Done);
                }
                Err(error) => {
                    self.is_done = true;
                    return Err(from_sqlite(&error).into());
                }
            }
        }
    }

    /// Ends the portal; gives back the memory of its formats.
    pub(super) fn close(self) -> Vec<Format> {
        if let Some(compiled) = self.compiled {
            self.prepared.check_in(compiled);
        }
        self.formats
    }
}

fn put_row(out: &mut Vec<u8>, row: &Row<'_>, columns: &[OutputColumn], formats: &[Format]) -> SqlResult<()> {
    let start = out.len();
    let mut failed = Ok(());
    frame(out, backend::DATA_ROW, |out| {
        out.extend_from_slice(&(columns.len() as u16).to_be_bytes());
        for (index, column) in columns.iter().enumerate() {
            let format = formats.get(index).copied().unwrap_or_default();
            let put = row
                .get_ref(column.source)
                .map_err(|error| from_sqlite(&error))
                .and_then(|value| put_value(out, column.ty, column.scale, format, value));
            if let Err(error) = put {
                failed = Err(of_column(error, column));
                return;
            }
        }
    });
    if failed.is_err() {
        out.truncate(start);
    }
    failed
}

fn of_column(mut error: SqlError, column: &OutputColumn) -> SqlError {
    error.more().detail = Some(format!("In result column \"{}\".", column.name));
    error
}

/// Appends a RowDescription; without formats all is text.
pub(super) fn put_description(out: &mut Vec<u8>, columns: &[OutputColumn], formats: &[Format]) {
    RowDescription::encode(
        out,
        columns.iter().enumerate().map(|(index, column)| Column {
            name: column.name.as_bytes(),
            table: 0,
            attribute: 0,
            type_oid: column.ty.oid(),
            type_len: column.ty.len(),
            type_modifier: column.ty.modifier,
            format: formats.get(index).copied().unwrap_or_default(),
        }),
    );
}

/// Text columns of these names, for what the session answers itself.
pub(super) fn text_columns(names: &[&str]) -> Vec<OutputColumn> {
    names
        .iter()
        .enumerate()
        .map(|(source, name)| OutputColumn {
            name: (*name).to_owned(),
            ty: SqlType::TEXT,
            scale: None,
            source,
        })
        .collect()
}
