use super::tags::command;
use crate::{Reader, WireError};

/// `COM_BINLOG_DUMP`: the changes from a place in a file on, without end.
///
/// Source: MySQL Internals, "COM_BINLOG_DUMP".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BinlogDump<'a> {
    /// Offset in the file.
    pub position: u32,
    /// 1: end with an EOF packet where nothing more is there yet.
    pub flags: u16,
    /// The replica's number.
    pub server_id: u32,
    /// The file; empty is the first one.
    pub file: &'a [u8],
}

impl<'a> BinlogDump<'a> {
    /// Decodes the payload.
    pub fn decode(body: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        reader.tag(command::BINLOG_DUMP)?;
        let (position, flags, server_id) = (reader.u32_le()?, reader.u16_le()?, reader.u32_le()?);
        Ok(Self { position, flags, server_id, file: reader.all() })
    }

    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(command::BINLOG_DUMP);
        out.extend_from_slice(&self.position.to_le_bytes());
        out.extend_from_slice(&self.flags.to_le_bytes());
        out.extend_from_slice(&self.server_id.to_le_bytes());
        out.extend_from_slice(self.file);
    }
}
