use std::io::{self, Write};

use onetrip_ledger::{Gaps, TraceReader};
use serde_json::Value;

use crate::{COLUMNS, ExportError, rows};

/// The column that is a list.
const STATEMENTS: &str = "statements";

/// Writes a line of names and then a line for each exchange, as RFC 4180 says, with ends of lines as Unix has them. The
/// statements are a field of JSON. `read` is told of the bytes that are read.
///
/// # Errors
///
/// A trace that cannot be read, or a writer that fails.
pub fn csv(
    reader: &mut TraceReader,
    mut out: impl Write,
    read: impl FnMut(u64),
) -> Result<Gaps, ExportError> {
    let names: Vec<&str> = COLUMNS.iter().map(|column| column.name).collect();
    writeln!(out, "{}", names.join(","))?;
    let gaps = rows(reader, read, |mut row| {
        // As text at once: a value would have its fields in another order.
        let statements = std::mem::take(&mut row.statements);
        let statements = serde_json::to_string(&statements).map_err(io::Error::from)?;
        let fields = serde_json::to_value(&row).map_err(io::Error::from)?;
        for (position, name) in names.iter().enumerate() {
            if position > 0 {
                out.write_all(b",")?;
            }
            match fields.get(*name) {
                _ if *name == STATEMENTS => write_field(&mut out, &statements)?,
                Some(Value::String(text)) => write_field(&mut out, text)?,
                Some(other) => write!(out, "{other}")?,
                None => {}
            }
        }
        out.write_all(b"\n")?;
        Ok(())
    })?;
    out.flush()?;
    Ok(gaps)
}

fn write_field(out: &mut impl Write, text: &str) -> io::Result<()> {
    match text.contains([',', '"', '\n', '\r']) {
        true => write!(out, "\"{}\"", text.replace('"', "\"\"")),
        false => out.write_all(text.as_bytes()),
    }
}
