//! Rows as they travel, kept until somebody looks for a value in them: most results are walked by no loop.

use crate::canonical::LENGTH_MAX;

/// What stands for the length of NULL.
const NULL: i32 = -1;

/// What stands for the length of a value that is too long to be a key, and is not kept.
const LONG: i32 = -2;

/// Memory that is kept for the next rows, in bytes.
const CAPACITY_KEPT_MAX: usize = 4096;

/// A row as the server sends it: how many columns, then each value with its length. Its values are all there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'a> {
    /// How many values it has.
    pub(crate) width: usize,
    values: &'a [u8],
    /// Bytes of those that are short enough to be keys.
    key_bytes: usize,
    has_long: bool,
}

impl<'a> Row<'a> {
    /// `None` for bytes that are no row.
    pub(crate) fn read(bytes: &'a [u8]) -> Option<Self> {
        let (width, values) = bytes.split_first_chunk()?;
        let width = usize::from(u16::from_be_bytes(*width));
        let (mut key_bytes, mut has_long) = (0, false);
        let mut rest = values;
        for _ in 0..width {
            let (length, after) = rest.split_first_chunk()?;
            let length = match i32::from_be_bytes(*length) {
                NULL => 0,
                length => usize::try_from(length).ok()?,
            };
            rest = after.get(length..)?;
            let is_long = length > LENGTH_MAX;
            has_long |= is_long;
            key_bytes += if is_long { 0 } else { length };
        }
        rest.is_empty().then_some(Self { width, values, key_bytes, has_long })
    }

    /// Its values in order; `None` for NULL.
    pub(crate) fn values(&self) -> impl Iterator<Item = Option<&'a [u8]>> + use<'a> {
        let mut rest = self.values;
        std::iter::from_fn(move || {
            let (value, after) = next(rest)?;
            rest = after;
            match value {
                Value::Key(value) => Some(Some(value)),
                Value::Null | Value::Long => Some(None),
            }
        })
    }
}

/// Rows of one width, one behind the other.
#[derive(Debug, Default)]
pub(crate) struct Packed {
    bytes: Vec<u8>,
    /// Where the first row begins that was not taken.
    start: usize,
    rows: u32,
    /// Bytes of their values, as far as these are kept.
    key_bytes: usize,
}

/// A value of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Null,
    Long,
    Key(&'a [u8]),
}

impl Packed {
    /// Rows that were not taken.
    pub(crate) fn rows(&self) -> u32 {
        self.rows
    }

    /// Bytes of their values, as far as these are kept.
    pub(crate) fn key_bytes(&self) -> usize {
        self.key_bytes
    }

    /// Adds a row behind the others.
    pub(crate) fn push(&mut self, row: &Row<'_>) {
        self.rows += 1;
        self.key_bytes += row.key_bytes;
        if !row.has_long {
            return self.bytes.extend_from_slice(row.values);
        }
        let mut rest = row.values;
        while let Some((value, after)) = next(rest) {
            rest = after;
            let (length, kept) = match value {
                Value::Null => (NULL, &b""[..]),
                Value::Key(value) if value.len() <= LENGTH_MAX => (value.len() as i32, value),
                Value::Key(_) | Value::Long => (LONG, &b""[..]),
            };
            self.bytes.extend_from_slice(&length.to_be_bytes());
            self.bytes.extend_from_slice(kept);
        }
    }

    /// Shows the values of the first row, of this width, and takes it away.
    pub(crate) fn take(&mut self, width: usize, mut show: impl FnMut(usize, Value<'_>)) {
        let mut rest = self.bytes.get(self.start..).unwrap_or_default();
        for position in 0..width {
            let Some((value, after)) = next(rest) else { break };
            rest = after;
            if let Value::Key(value) = value {
                self.key_bytes -= value.len();
            }
            show(position, value);
        }
        self.start = self.bytes.len() - rest.len();
        self.rows = self.rows.saturating_sub(1);
        if self.rows == 0 {
            self.clear();
        }
    }

    /// Empties it; the memory of much is given back.
    pub(crate) fn clear(&mut self) {
        if self.bytes.capacity() > CAPACITY_KEPT_MAX {
            self.bytes = Vec::new();
        }
        self.bytes.clear();
        (self.start, self.rows, self.key_bytes) = (0, 0, 0);
    }
}

/// The first value, and what is behind it.
fn next(bytes: &[u8]) -> Option<(Value<'_>, &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    match i32::from_be_bytes(*length) {
        NULL => Some((Value::Null, rest)),
        LONG => Some((Value::Long, rest)),
        length => {
            let (value, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
            Some((Value::Key(value), rest))
        }
    }
}
