use super::tags::command;
use crate::{Reader, WireError};

/// `COM_PROCESS_KILL`: end another connection.
///
/// Source: MySQL Internals, "COM_PROCESS_KILL".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessKill {
    /// Its number.
    pub thread_id: u32,
}

impl ProcessKill {
    /// Decodes the payload.
    pub fn decode(body: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        reader.tag(command::PROCESS_KILL)?;
        let thread_id = reader.u32_le()?;
        reader.finish().map(|()| Self { thread_id })
    }

    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(command::PROCESS_KILL);
        out.extend_from_slice(&self.thread_id.to_le_bytes());
    }
}
