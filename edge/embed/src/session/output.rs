//! Replies on their way to the client.

use std::io::{self, Write};

use onetrip_wire::pg::{ParameterStatus, backend, frame};

use crate::value::put_integer;

/// Bytes that are sent without waiting for the end of a reply.
const FLUSH_BYTES: usize = 64 << 10;

/// Largest capacity that is kept between replies.
const KEPT_BYTES: usize = 1 << 20;

/// Encoded replies, and where they go.
pub(crate) struct Output<'w> {
    pub(crate) buffer: Vec<u8>,
    sink: &'w mut dyn Write,
}

impl<'w> Output<'w> {
    /// `buffer` is memory for what waits, from [`Self::memory`] or of an earlier output.
    pub(crate) fn new(buffer: Vec<u8>, sink: &'w mut dyn Write) -> Self {
        Self { buffer, sink }
    }

    pub(crate) fn memory() -> Vec<u8> {
        Vec::with_capacity(FLUSH_BYTES + 4096)
    }

    /// Sends everything.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if !self.buffer.is_empty() {
            self.sink.write_all(&self.buffer)?;
            self.buffer.clear();
            self.buffer.shrink_to(KEPT_BYTES);
        }
        Ok(())
    }

    /// Sends what there is once it is much; waits while the client does not read.
    pub(crate) fn flush_if_full(&mut self) -> io::Result<()> {
        if self.buffer.len() < FLUSH_BYTES { Ok(()) } else { self.flush() }
    }

    /// A message without body.
    pub(crate) fn bare(&mut self, tag: u8) {
        self.buffer.extend_from_slice(&[tag, 0, 0, 0, 4]);
    }

    pub(crate) fn parameter_status(&mut self, name: &str, value: &str) {
        ParameterStatus { name: name.as_bytes(), value: value.as_bytes() }.encode(&mut self.buffer);
    }

    /// A CommandComplete: words, and the number of rows where the command has one.
    pub(crate) fn command_complete(&mut self, words: &str, rows: Option<u64>) {
        frame(&mut self.buffer, backend::COMMAND_COMPLETE, |out| {
            out.extend_from_slice(words.as_bytes());
            if let Some(rows) = rows {
                out.push(b' ');
                put_integer(out, i64::try_from(rows).unwrap_or(i64::MAX));
            }
            out.push(0);
        });
    }

    /// A row of text columns.
    pub(crate) fn text_row(&mut self, columns: &[&str]) {
        frame(&mut self.buffer, backend::DATA_ROW, |out| {
            out.extend_from_slice(&(columns.len() as u16).to_be_bytes());
            for column in columns {
                out.extend_from_slice(&(column.len() as u32).to_be_bytes());
                out.extend_from_slice(column.as_bytes());
            }
        });
    }
}
