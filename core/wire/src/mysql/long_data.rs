use super::tags::command;
use crate::{Reader, WireError};

/// `COM_STMT_SEND_LONG_DATA`: a part of a parameter's value. Nothing is answered.
///
/// Source: MySQL Internals, "COM_STMT_SEND_LONG_DATA".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongData<'a> {
    /// The statement's number.
    pub statement: u32,
    /// The parameter, from zero.
    pub parameter: u16,
    /// The part.
    pub data: &'a [u8],
}

impl<'a> LongData<'a> {
    /// Decodes the payload. The data may be cut.
    pub fn decode(body: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        reader.tag(command::STMT_SEND_LONG_DATA)?;
        Ok(Self { statement: reader.u32_le()?, parameter: reader.u16_le()?, data: reader.all() })
    }

    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(command::STMT_SEND_LONG_DATA);
        out.extend_from_slice(&self.statement.to_le_bytes());
        out.extend_from_slice(&self.parameter.to_le_bytes());
        out.extend_from_slice(self.data);
    }
}
