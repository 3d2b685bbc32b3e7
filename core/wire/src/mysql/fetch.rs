use super::tags::command;
use crate::{Reader, WireError};

/// `COM_STMT_FETCH`: further rows of a cursor.
///
/// Source: MySQL Internals, "COM_STMT_FETCH".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fetch {
    /// The statement's number.
    pub statement: u32,
    /// Most rows.
    pub rows_max: u32,
}

impl Fetch {
    /// Decodes the payload.
    pub fn decode(body: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        reader.tag(command::STMT_FETCH)?;
        let (statement, rows_max) = (reader.u32_le()?, reader.u32_le()?);
        reader.finish().map(|()| Self { statement, rows_max })
    }

    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(command::STMT_FETCH);
        out.extend_from_slice(&self.statement.to_le_bytes());
        out.extend_from_slice(&self.rows_max.to_le_bytes());
    }
}
