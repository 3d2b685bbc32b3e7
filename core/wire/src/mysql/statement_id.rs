use crate::{Reader, WireError};

/// A command that is a statement's number: `COM_STMT_CLOSE`, which is not answered, and `COM_STMT_RESET`.
///
/// Source: MySQL Internals, "COM_STMT_CLOSE" and "COM_STMT_RESET".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatementId {
    /// The number.
    pub statement: u32,
}

impl StatementId {
    /// Decodes the payload whose first byte is `tag`.
    pub fn decode(tag: u8, body: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        reader.tag(tag)?;
        let statement = reader.u32_le()?;
        reader.finish().map(|()| Self { statement })
    }

    /// Appends the payload.
    pub fn encode(&self, tag: u8, out: &mut Vec<u8>) {
        out.push(tag);
        out.extend_from_slice(&self.statement.to_le_bytes());
    }
}
