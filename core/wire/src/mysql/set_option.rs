use super::tags::command;
use crate::{Reader, WireError};

/// `COM_SET_OPTION`: several statements in a text from now on, or no longer.
///
/// Source: MySQL Internals, "COM_SET_OPTION".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetOption {
    /// 0 is on, 1 is off.
    pub option: u16,
}

impl SetOption {
    /// Decodes the payload.
    pub fn decode(body: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        reader.tag(command::SET_OPTION)?;
        let option = reader.u16_le()?;
        reader.finish().map(|()| Self { option })
    }

    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(command::SET_OPTION);
        out.extend_from_slice(&self.option.to_le_bytes());
    }
}
