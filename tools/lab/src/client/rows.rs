//! Rows of a result, one behind the other in one piece of memory, as they came.

use onetrip_wire::WireError;
use onetrip_wire::pg::Values;

/// Bodies of DataRow messages.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rows {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Rows {
    pub(crate) fn push(&mut self, body: &[u8]) {
        self.bytes.extend_from_slice(body);
        self.ends.push(self.bytes.len());
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Forgets the rows and keeps their room.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Bytes that it takes.
    pub(crate) fn held(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<usize>()
    }

    /// The columns of a row; `index` is less than [`Self::len`].
    pub(crate) fn columns(&self, index: usize) -> Result<Values<'_>, WireError> {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        Values::decode(&self.bytes[start..self.ends[index]])
    }

    /// One value, as the text or the bytes that came; `None` for NULL and for a column that is not there.
    pub(crate) fn value(&self, row: usize, column: usize) -> Result<Option<&[u8]>, WireError> {
        Ok(self.columns(row)?.iter().nth(column).flatten())
    }

    /// A column of numbers as the text form of an array.
    pub(crate) fn array(&self, column: usize) -> Result<Vec<u8>, WireError> {
        let mut out = vec![b'{'];
        for row in 0..self.len() {
            if row > 0 {
                out.push(b',');
            }
            out.extend_from_slice(self.value(row, column)?.unwrap_or(b"NULL"));
        }
        out.push(b'}');
        Ok(out)
    }

    /// The last value of a row.
    pub(crate) fn last_value(&self, row: usize) -> Result<Option<&[u8]>, WireError> {
        Ok(self.columns(row)?.iter().last().flatten())
    }
}
