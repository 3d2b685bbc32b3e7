use super::tags::server;
use super::value::ColumnType;
use crate::{Reader, WireError};

/// Bits of a row's map of NULLs in front of the first column's.
const NULL_BITS_OFFSET: usize = 2;

/// A row of a prepared statement, whose values are in binary form.
///
/// Source: MySQL Internals, "Binary Protocol Resultset Row".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BinaryRow<'a> {
    nulls: &'a [u8],
    values: &'a [u8],
}

impl<'a> BinaryRow<'a> {
    /// Decodes the payload of a row whose columns have these types.
    pub fn decode(body: &'a [u8], types: &[ColumnType]) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        reader.tag(server::OK)?;
        let nulls = reader.bytes((types.len() + NULL_BITS_OFFSET).div_ceil(8))?;
        let row = Self { nulls, values: reader.rest() };
        for (index, column_type) in types.iter().enumerate() {
            if !row.is_null(index) {
                column_type.read_value(&mut reader)?;
            }
        }
        reader.finish().map(|()| row)
    }

    /// Reads the payload in one pass: `see` gets the values in order, as [`Self::values`] has them. Where it does not decode, as
    /// [`Self::decode`] says, what it got is void.
    #[inline]
    pub fn read(
        body: &'a [u8],
        types: &[ColumnType],
        mut see: impl FnMut(usize, Option<&'a [u8]>),
    ) -> Result<(), WireError> {
        let mut reader = Reader::new(body);
        reader.tag(server::OK)?;
        let nulls = reader.bytes((types.len() + NULL_BITS_OFFSET).div_ceil(8))?;
        let row = Self { nulls, values: reader.rest() };
        for (position, column_type) in types.iter().enumerate() {
            let value = match row.is_null(position) {
                true => None,
                false => Some(column_type.read_value(&mut reader)?),
            };
            see(position, value);
        }
        reader.finish()
    }

    /// Whether the value at `index` is NULL.
    pub fn is_null(&self, index: usize) -> bool {
        let bit = index + NULL_BITS_OFFSET;
        self.nulls.get(bit / 8).is_some_and(|bits| bits & (1 << (bit % 8)) != 0)
    }

    /// Values in order, without the lengths in front of those that have one; `None` is NULL. `types` are those that the
    /// row was decoded by.
    pub fn values<'t>(
        &self,
        types: &'t [ColumnType],
    ) -> impl Iterator<Item = Option<&'a [u8]>> + use<'a, 't> {
        let (row, mut reader) = (*self, Reader::new(self.values));
        types.iter().enumerate().map_while(move |(index, column_type)| {
            if row.is_null(index) { Some(None) } else { column_type.read_value(&mut reader).ok().map(Some) }
        })
    }

    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(server::OK);
        out.extend_from_slice(self.nulls);
        out.extend_from_slice(self.values);
    }
}
