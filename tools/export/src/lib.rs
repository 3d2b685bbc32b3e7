//! A trace for other tools: JSON Lines, and Parquet behind the feature of that name.
//!
//! [`rows`] reads a trace and gives one [`Row`] per exchange, with names in place of a stream's ids. Both formats
//! write the same rows, one field or column for each of theirs.
//!
//! Non-scope: what the rows mean for trips and findings (`ledger`).

mod row;

#[cfg(feature = "parquet")]
mod table;

use std::io::{self, Write};

use onetrip_ledger::{TraceError, TraceReader};

pub use row::{Row, StatementRow, rows};

#[cfg(feature = "parquet")]
pub use table::parquet;

/// A trace cannot be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The result cannot be written.
    #[error("cannot write the export: {0}")]
    Write(#[from] io::Error),
    /// The result cannot be written as Parquet.
    #[cfg(feature = "parquet")]
    #[error("cannot write the export: {0}")]
    Parquet(#[from] ::parquet::errors::ParquetError),
}

/// Writes one JSON object per exchange and line.
///
/// # Errors
///
/// A trace that cannot be read, or a writer that fails.
pub fn json_lines(reader: &mut TraceReader, mut out: impl Write) -> Result<(), ExportError> {
    rows(reader, |row| {
        serde_json::to_writer(&mut out, row).map_err(io::Error::from)?;
        out.write_all(b"\n")?;
        Ok(())
    })?;
    out.flush()?;
    Ok(())
}
