use super::status::Status;
use super::tags::server;
use crate::{Reader, WireError};

/// `EOF_Packet`: definitions of columns, or rows, have ended.
///
/// Source: MySQL Internals, "EOF_Packet". A payload that begins like one and is longer is an OK packet or a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EofPacket {
    /// Warnings of the command.
    pub warnings: u16,
    /// Of the session.
    pub status: Status,
}

impl EofPacket {
    /// Decodes the payload.
    pub fn decode(body: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        reader.tag(server::EOF)?;
        let (warnings, status) = (reader.u16_le()?, Status(reader.u16_le()?));
        reader.finish().map(|()| Self { warnings, status })
    }

    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(server::EOF);
        out.extend_from_slice(&self.warnings.to_le_bytes());
        out.extend_from_slice(&self.status.0.to_le_bytes());
    }
}
