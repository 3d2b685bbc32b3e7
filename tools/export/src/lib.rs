//! A trace for other tools: CSV, JSON Lines, and Parquet behind the feature of that name.
//!
//! [`rows`] reads a trace and gives one [`Row`] per exchange, with names in place of a stream's ids. All formats write the
//! same rows, with the columns that [`COLUMNS`] and `docs/rows.md` describe.
//!
//! Non-scope: what the rows mean for trips and findings (`ledger`).

mod clock;
mod columns;
mod csv;
mod row;
mod template;

#[cfg(feature = "parquet")]
mod table;

use std::io::{self, Write};

use onetrip_ledger::{Gaps, TraceError, TraceReader};

pub use clock::Timestamp;
pub use columns::{COLUMNS, Column, PARTITIONS, STATEMENT_COLUMNS};
pub use csv::csv;
pub use row::{Host, Row, StatementRow, rows};
pub use template::Template;

#[cfg(feature = "parquet")]
pub use table::{SCHEMA, new_directory, parquet};

/// A trace cannot be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The result cannot be written.
    #[error("cannot write the export: {0}")]
    Write(#[from] io::Error),
    /// Files that are there would be mixed with those of the export.
    #[cfg(feature = "parquet")]
    #[error("cannot write the export to {0}: the directory is not empty. Name a new one")]
    NotEmpty(String),
    /// The result cannot be written as Parquet.
    #[cfg(feature = "parquet")]
    #[error("cannot write the export: {0}")]
    Parquet(#[from] ::parquet::errors::ParquetError),
}

/// Writes one JSON object per exchange and line. `read` is told of the bytes that are read. Returns what is missing from the trace.
///
/// # Errors
///
/// A trace that cannot be read, or a writer that fails.
pub fn json_lines(
    reader: &mut TraceReader,
    mut out: impl Write,
    read: impl FnMut(u64),
) -> Result<Gaps, ExportError> {
    let gaps = rows(reader, read, |row| {
        serde_json::to_writer(&mut out, &row).map_err(io::Error::from)?;
        out.write_all(b"\n")?;
        Ok(())
    })?;
    out.flush()?;
    Ok(gaps)
}
