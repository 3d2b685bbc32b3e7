use super::tags::command;
use super::value::ColumnType;
use crate::{Reader, WireError};

/// `COM_STMT_BULK_EXECUTE` of MariaDB: run a prepared statement for many sets of values.
///
/// Source: MariaDB Knowledge Base, "COM_STMT_BULK_EXECUTE".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BulkExecute<'a> {
    /// Its number, or [`LAST_STATEMENT`](super::LAST_STATEMENT).
    pub statement: u32,
    /// [`Self::SEND_TYPES`], [`Self::UNIT_RESULTS`].
    pub flags: u16,
    types: &'a [u8],
    sets: &'a [u8],
}

/// One value of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BulkValue<'a> {
    /// Its bytes in binary form, without their length.
    Value(&'a [u8]),
    /// NULL.
    Null,
    /// The column's default.
    Default,
    /// The default of an insert; an update leaves the column as it is.
    Ignore,
}

impl<'a> BulkExecute<'a> {
    /// A result for each set is asked for.
    pub const UNIT_RESULTS: u16 = 64;
    /// Types come along.
    pub const SEND_TYPES: u16 = 128;

    /// Decodes the payload for a statement with so many parameters.
    pub fn decode(body: &'a [u8], parameters: u16) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        let (statement, flags) = Self::read_head(&mut reader)?;
        let has_types = flags & Self::SEND_TYPES != 0;
        let types = if has_types { reader.bytes(2 * usize::from(parameters))? } else { &[] };
        Ok(Self { statement, flags, types, sets: reader.all() })
    }

    /// Which statement the payload is for, and its flags.
    pub fn peek(body: &[u8]) -> Result<(u32, u16), WireError> {
        Self::read_head(&mut Reader::new(body))
    }

    fn read_head(reader: &mut Reader<'_>) -> Result<(u32, u16), WireError> {
        reader.tag(command::STMT_BULK_EXECUTE)?;
        Ok((reader.u32_le()?, reader.u16_le()?))
    }

    /// Types that came along, in order, with 0x80 for those that are unsigned.
    pub fn types(&self) -> impl ExactSizeIterator<Item = (ColumnType, u8)> + use<'a> {
        self.types.chunks_exact(2).map(|pair| (ColumnType(pair[0]), pair[1]))
    }

    /// All values of all sets in order, by the types of one set's parameters. An error ends them.
    pub fn values<'t>(
        &self,
        types: &'t [ColumnType],
    ) -> impl Iterator<Item = Result<BulkValue<'a>, WireError>> + use<'a, 't> {
        let mut reader = Reader::new(self.sets);
        let mut types = types.iter().cycle();
        std::iter::from_fn(move || {
            if reader.is_at_end() {
                return None;
            }
            let value = Self::read_value(&mut reader, *types.next()?);
            if value.is_err() {
                reader = Reader::new(&[]);
            }
            Some(value)
        })
    }

    fn read_value(reader: &mut Reader<'a>, column_type: ColumnType) -> Result<BulkValue<'a>, WireError> {
        match reader.u8()? {
            0 => column_type.read_value(reader).map(BulkValue::Value),
            1 => Ok(BulkValue::Null),
            2 => Ok(BulkValue::Default),
            3 => Ok(BulkValue::Ignore),
            other => Err(WireError::UndefinedValue(i32::from(other))),
        }
    }

    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(command::STMT_BULK_EXECUTE);
        out.extend_from_slice(&self.statement.to_le_bytes());
        out.extend_from_slice(&self.flags.to_le_bytes());
        out.extend_from_slice(self.types);
        out.extend_from_slice(self.sets);
    }
}
