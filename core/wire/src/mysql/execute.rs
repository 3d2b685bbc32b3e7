use super::capabilities::Capabilities;
use super::parameters::Parameters;
use super::primitives::put_lenenc;
use super::tags::command;
use crate::{Reader, WireError};

/// MariaDB: stands for the statement that was prepared last, known or not yet.
pub const LAST_STATEMENT: u32 = u32::MAX;

/// `COM_STMT_EXECUTE`: run a prepared statement.
///
/// Source: MySQL Internals, "COM_STMT_EXECUTE"; MariaDB Knowledge Base, "COM_STMT_EXECUTE" (statement −1). Attributes: not
/// verified on 8.x.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Execute<'a> {
    /// Its number, or [`LAST_STATEMENT`].
    pub statement: u32,
    /// Kind of cursor, and whether the number of parameters is said ([`Self::COUNT_IS_SAID`]).
    pub flags: u8,
    /// How often; the pages say that it is always one.
    pub iterations: u32,
    /// Values; absent if the statement has no parameters.
    pub parameters: Option<Parameters<'a>>,
    is_count_said: bool,
}

impl<'a> Execute<'a> {
    /// The flags of which one or more ask for a cursor: read only, for update, scrollable.
    pub const CURSOR: u8 = 0b111;
    /// The number of parameters is in the message.
    pub const COUNT_IS_SAID: u8 = 8;

    /// Decodes the payload under the connection's capabilities. `parameters` is the number that the statement has by its
    /// PREPARE_OK.
    pub fn decode(body: &'a [u8], capabilities: Capabilities, parameters: u16) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        let (statement, flags, iterations) = Self::read_head(&mut reader)?;
        let has_attributes = capabilities.has(Capabilities::QUERY_ATTRIBUTES);
        let is_count_said = has_attributes && (parameters > 0 || flags & Self::COUNT_IS_SAID != 0);
        let count = if is_count_said { reader.lenenc_le()? } else { u64::from(parameters) };
        let count = usize::try_from(count).map_err(|_| WireError::Truncated)?;
        let parameters = if count > 0 {
            Some(Parameters::read_types(&mut reader, count, has_attributes)?.with_rest(&mut reader))
        } else {
            None
        };
        reader.finish().map(|()| Self { statement, flags, iterations, parameters, is_count_said })
    }

    /// Which statement the payload is for, and its flags: what can be known without the number of its parameters.
    pub fn peek(body: &[u8]) -> Result<(u32, u8), WireError> {
        Self::read_head(&mut Reader::new(body)).map(|(statement, flags, _)| (statement, flags))
    }

    fn read_head(reader: &mut Reader<'_>) -> Result<(u32, u8, u32), WireError> {
        reader.tag(command::STMT_EXECUTE)?;
        Ok((reader.u32_le()?, reader.u8()?, reader.u32_le()?))
    }

    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(command::STMT_EXECUTE);
        out.extend_from_slice(&self.statement.to_le_bytes());
        out.push(self.flags);
        out.extend_from_slice(&self.iterations.to_le_bytes());
        if self.is_count_said {
            put_lenenc(out, self.parameters.map_or(0, |parameters| parameters.count() as u64));
        }
        if let Some(parameters) = &self.parameters {
            parameters.put(out);
        }
    }
}
