//! COPY … FROM STDIN in text, CSV and binary format.

use onetrip_wire::Reader;
use onetrip_wire::pg::{Format, backend, frame, frontend};

use super::errors::from_sqlite;
use super::output::Output;
use super::transaction::Block;
use super::{Failure, Flow, Session};
use crate::error::{SqlError, SqlResult};
use crate::sql::token::quote_name;
use crate::sql::{Column, CopyFormat, CopyIn, Schema};
use crate::types::SqlType;
use crate::value::{Stored, decode, read_text};

/// Longest line, in bytes.
const LINE_BYTES_MAX: usize = 64 << 20;

/// A COPY that waits for data.
pub(super) struct Copying<'c> {
    insert: rusqlite::Statement<'c>,
    types: Vec<SqlType>,
    format: CopyIn,
    /// Bytes of a line whose end has not come yet.
    pending: Vec<u8>,
    rows: u64,
    skips_line: bool,
    awaits_header: bool,
    is_ended: bool,
    /// Whether the simple protocol asked, so that its end makes the session ready.
    is_simple: bool,
}

impl<'c> Session<'c> {
    pub(super) fn copy_start(
        &mut self,
        copy: &CopyIn,
        is_simple: bool,
        out: &mut Output<'_>,
    ) -> Result<(), Failure> {
        self.enter(true, false, "COPY")?;
        self.schema.refresh(self.schema_epoch());
        let table = self
            .schema
            .table(None, &copy.table)
            .ok_or_else(|| SqlError::new("42P01", format!("relation \"{}\" does not exist", copy.table)))?;
        let columns = chosen_columns(&table, copy)?;
        let names: Vec<_> = columns.iter().map(|column| quote_name(&column.name)).collect();
        let places: Vec<_> = (1..=columns.len()).map(|number| format!("?{number}")).collect();
        let sql = format!(
            "INSERT INTO {} ({}) VALUES ({})",
            quote_name(&copy.table),
            names.join(", "),
            places.join(", ")
        );
        let insert = self.connection.prepare(&sql).map_err(|error| from_sqlite(&error))?;
        frame(&mut out.buffer, backend::COPY_IN_RESPONSE, |out| {
            let code = u8::from(copy.format == CopyFormat::Binary);
            out.push(code);
            out.extend_from_slice(&(columns.len() as u16).to_be_bytes());
            columns.iter().for_each(|_| out.extend_from_slice(&[0, code]));
        });
        self.copying = Some(Copying {
            insert,
            types: columns.iter().map(|column| column.ty).collect(),
            format: copy.clone(),
            pending: Vec::new(),
            rows: 0,
            skips_line: copy.has_header,
            awaits_header: true,
            is_ended: false,
            is_simple,
        });
        out.flush()?;
        Ok(())
    }

    pub(super) fn copy_data(&mut self, data: &[u8], out: &mut Output<'_>) -> Result<(), Failure> {
        // Data behind a COPY that failed is still on its way; PostgreSQL passes over it too.
        let Some(copying) = &mut self.copying else { return Ok(()) };
        let is_simple = copying.is_simple;
        match copying.take(data) {
            Err(error) if is_simple => {
                self.fail(error, out);
                self.ready(out);
                out.flush()?;
                Ok(())
            }
            taken => Ok(taken?),
        }
    }

    /// The message that ends a COPY: CopyDone, CopyFail, or one that does not belong there.
    pub(super) fn copy_end(&mut self, tag: u8, body: &[u8], out: &mut Output<'_>) -> Result<Flow, Failure> {
        let Some(mut copying) = self.copying.take() else { return Ok(Flow::Continue) };
        let is_simple = copying.is_simple;
        let done = if tag == frontend::COPY_DONE {
            copying.finish().and_then(|()| {
                let rows = copying.rows;
                drop(copying);
                if is_simple && self.transaction.block == Block::Implicit {
                    self.commit()?;
                }
                out.command_complete("COPY", Some(rows));
                Ok(())
            })
        } else {
            drop(copying);
            Err(broken_off(tag, body))
        };
        match done {
            Err(error) if is_simple => self.fail(error, out),
            done => done?,
        }
        if is_simple {
            self.ready(out);
            return Ok(Flow::Flush);
        }
        Ok(Flow::Continue)
    }
}

/// Why a COPY ends without its CopyDone.
fn broken_off(tag: u8, body: &[u8]) -> SqlError {
    if tag != frontend::COPY_FAIL {
        return SqlError::protocol(format!("unexpected message type 0x{tag:02X} during COPY from stdin"));
    }
    let reason = Reader::new(body).c_str().map(String::from_utf8_lossy).unwrap_or_default();
    SqlError::new("57014", format!("COPY from stdin failed: {reason}"))
}

/// Steps over the binary format's header; `None` while it is not all there.
fn binary_header(bytes: &[u8]) -> SqlResult<Option<&[u8]>> {
    const SIGNATURE: &[u8; 11] = b"PGCOPY\n\xff\r\n\0";
    let Some((header, rest)) = bytes.split_at_checked(19) else { return Ok(None) };
    let extension = u32::from_be_bytes([header[15], header[16], header[17], header[18]]);
    if !header.starts_with(SIGNATURE) || extension > 1 << 20 {
        return Err(SqlError::new("22P04", "COPY file signature not recognized"));
    }
    Ok(rest.get(extension as usize..))
}

fn chosen_columns(table: &[Column], copy: &CopyIn) -> SqlResult<Vec<Column>> {
    if copy.columns.is_empty() {
        return Ok(table.to_vec());
    }
    copy.columns
        .iter()
        .map(|name| {
            table.iter().find(|column| column.name == *name).cloned().ok_or_else(|| {
                let message = format!("column \"{name}\" of relation \"{}\" does not exist", copy.table);
                SqlError::new("42703", message)
            })
        })
        .collect()
}

impl Copying<'_> {
    fn take(&mut self, data: &[u8]) -> SqlResult<()> {
        let mut pending = std::mem::take(&mut self.pending);
        pending.extend_from_slice(data);
        if self.format.format == CopyFormat::Binary {
            return self.binary(pending);
        }
        let mut start = 0;
        while let Some(end) = line_end(&pending[start..], self.format.format == CopyFormat::Csv) {
            self.line(&pending[start..start + end])?;
            start += end + 1;
        }
        pending.drain(..start);
        if pending.len() > LINE_BYTES_MAX {
            return Err(SqlError::new("54000", "COPY line is too long"));
        }
        self.pending = pending;
        Ok(())
    }

    /// Takes the whole tuples of the binary format; what is left waits for more.
    fn binary(&mut self, pending: Vec<u8>) -> SqlResult<()> {
        let mut rest = pending.as_slice();
        if std::mem::take(&mut self.awaits_header) {
            match binary_header(rest)? {
                Some(behind) => rest = behind,
                None => self.awaits_header = true,
            }
        }
        while !self.awaits_header && !self.is_ended {
            let mut reader = Reader::new(rest);
            match reader.i16() {
                Ok(-1) => self.is_ended = true,
                Ok(count) if count as usize != self.types.len() => {
                    return Err(self.located(SqlError::new("22P04", "row field count is wrong")));
                }
                Ok(_) if self.bind_tuple(&mut reader)? => {
                    self.insert.raw_execute().map_err(|error| self.located(from_sqlite(&error)))?;
                    self.rows += 1;
                    rest = reader.rest();
                }
                _ => break,
            }
        }
        if rest.len() > LINE_BYTES_MAX {
            return Err(SqlError::new("54000", "COPY row is too long"));
        }
        self.pending = if self.is_ended { Vec::new() } else { rest.to_vec() };
        Ok(())
    }

    /// Binds a tuple's fields; false where they are not all there yet.
    fn bind_tuple(&mut self, reader: &mut Reader<'_>) -> SqlResult<bool> {
        for (index, ty) in self.types.iter().enumerate() {
            let stored = match reader.value() {
                Ok(None) => Stored::Null,
                Ok(Some(bytes)) => decode(*ty, Format::Binary, bytes)?,
                Err(_) => return Ok(false),
            };
            self.insert.raw_bind_parameter(index + 1, &stored).map_err(|error| from_sqlite(&error))?;
        }
        Ok(true)
    }

    fn finish(&mut self) -> SqlResult<()> {
        let last = std::mem::take(&mut self.pending);
        if self.format.format == CopyFormat::Binary && !last.is_empty() {
            return Err(SqlError::new("22P04", "unexpected end of COPY data"));
        }
        if last.is_empty() { Ok(()) } else { self.line(&last) }
    }

    fn line(&mut self, line: &[u8]) -> SqlResult<()> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if std::mem::take(&mut self.skips_line) || self.is_ended {
            return Ok(());
        }
        if line == b"\\." {
            self.is_ended = true;
            return Ok(());
        }
        let line = super::extended::utf8(line)?;
        let fields = if self.format.format == CopyFormat::Csv {
            csv_fields(line, &self.format)
        } else {
            text_fields(line, &self.format)?
        };
        if fields.len() != self.types.len() {
            let what = if fields.len() < self.types.len() {
                "missing data for a column"
            } else {
                "extra data after last expected column"
            };
            return Err(self.located(SqlError::new("22P04", what)));
        }
        for (index, (field, ty)) in fields.iter().zip(&self.types).enumerate() {
            let stored = match field {
                None => Ok(Stored::Null),
                Some(text) => read_text(*ty, text),
            };
            let stored = stored.map_err(|error| self.located(error))?;
            self.insert.raw_bind_parameter(index + 1, &stored).map_err(|error| from_sqlite(&error))?;
        }
        self.insert.raw_execute().map_err(|error| self.located(from_sqlite(&error)))?;
        self.rows += 1;
        Ok(())
    }

    fn located(&self, mut error: SqlError) -> SqlError {
        error.more().detail = Some(format!("COPY {}, line {}", self.format.table, self.rows + 1));
        error
    }
}

/// Where a line ends; in CSV not within quotes.
fn line_end(bytes: &[u8], is_csv: bool) -> Option<usize> {
    if !is_csv {
        return memchr::memchr(b'\n', bytes);
    }
    let mut is_quoted = false;
    bytes.iter().position(|byte| {
        is_quoted ^= *byte == b'"';
        *byte == b'\n' && !is_quoted
    })
}

fn text_fields(line: &str, format: &CopyIn) -> SqlResult<Vec<Option<String>>> {
    line.split(char::from(format.delimiter)).map(|field| text_field(field, format)).collect()
}

fn text_field(field: &str, format: &CopyIn) -> SqlResult<Option<String>> {
    if field == format.null {
        return Ok(None);
    }
    if !field.contains('\\') {
        return Ok(Some(field.to_owned()));
    }
    let mut out = Vec::with_capacity(field.len());
    let mut bytes = field.bytes().peekable();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        match bytes.next() {
            Some(b'n') => out.push(b'\n'),
            Some(b't') => out.push(b'\t'),
            Some(b'r') => out.push(b'\r'),
            Some(b'b') => out.push(8),
            Some(b'f') => out.push(12),
            Some(b'v') => out.push(11),
            Some(digit @ b'0'..=b'7') => {
                let mut code = u32::from(digit - b'0');
                for _ in 0..2 {
                    let Some(digit) = bytes.next_if(|byte| matches!(byte, b'0'..=b'7')) else { break };
                    code = code * 8 + u32::from(digit - b'0');
                }
                out.push(code as u8);
            }
            Some(other) => out.push(other),
            None => out.push(b'\\'),
        }
    }
    let text = String::from_utf8(out)
        .map_err(|_| SqlError::new("22021", "invalid byte sequence for encoding \"UTF8\""))?;
    Ok(Some(text))
}

fn csv_fields(line: &str, format: &CopyIn) -> Vec<Option<String>> {
    let delimiter = char::from(format.delimiter);
    let mut fields = Vec::new();
    let mut characters = line.chars().peekable();
    loop {
        let mut field = String::new();
        let (mut is_quoted, mut was_quoted) = (false, false);
        let mut is_last = true;
        while let Some(character) = characters.next() {
            match character {
                '"' if is_quoted && characters.peek() == Some(&'"') => {
                    characters.next();
                    field.push('"');
                }
                '"' => {
                    is_quoted = !is_quoted;
                    was_quoted = true;
                }
                other if other == delimiter && !is_quoted => {
                    is_last = false;
                    break;
                }
                other => field.push(other),
            }
        }
        fields.push((was_quoted || field != format.null).then_some(field));
        if is_last {
            return fields;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(is_csv: bool) -> CopyIn {
        CopyIn {
            table: "t".to_owned(),
            columns: Vec::new(),
            format: if is_csv { CopyFormat::Csv } else { CopyFormat::Text },
            has_header: false,
            delimiter: if is_csv { b',' } else { b'\t' },
            null: if is_csv { String::new() } else { "\\N".to_owned() },
        }
    }

    #[test]
    fn fields_are_split_and_their_escapes_resolved() {
        let fields = text_fields("a\\tb\t\\N\t\\\\\t", &format(false)).unwrap();
        assert_eq!(fields, [Some("a\tb".to_owned()), None, Some("\\".to_owned()), Some(String::new())]);
        let fields = csv_fields("a,\"b,\"\"c\"\"\",,\"\"", &format(true));
        assert_eq!(fields, [Some("a".to_owned()), Some("b,\"c\"".to_owned()), None, Some(String::new())]);
        assert_eq!(line_end(b"\"a\nb\"\nc", true), Some(5));
    }
}
