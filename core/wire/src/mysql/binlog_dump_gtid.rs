use super::tags::command;
use crate::{Reader, WireError};

/// `COM_BINLOG_DUMP_GTID`: the changes that a replica does not have yet.
///
/// Source: MySQL Internals, "COM_BINLOG_DUMP_GTID".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BinlogDumpGtid<'a> {
    /// As of [`BinlogDump`](super::BinlogDump), and more.
    pub flags: u16,
    /// The replica's number.
    pub server_id: u32,
    /// The file; empty is the first one.
    pub file: &'a [u8],
    /// Offset in the file.
    pub position: u64,
    /// Transactions that the replica has, in their own form.
    pub gtids: &'a [u8],
}

impl<'a> BinlogDumpGtid<'a> {
    /// Decodes the payload.
    pub fn decode(body: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        reader.tag(command::BINLOG_DUMP_GTID)?;
        let (flags, server_id) = (reader.u16_le()?, reader.u32_le()?);
        let file_len = reader.u32_le()?;
        let file = reader.bytes(file_len as usize)?;
        let position = reader.u64_le()?;
        let gtids_len = reader.u32_le()?;
        let gtids = reader.bytes(gtids_len as usize)?;
        reader.finish().map(|()| Self { flags, server_id, file, position, gtids })
    }

    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(command::BINLOG_DUMP_GTID);
        out.extend_from_slice(&self.flags.to_le_bytes());
        out.extend_from_slice(&self.server_id.to_le_bytes());
        out.extend_from_slice(&(self.file.len() as u32).to_le_bytes());
        out.extend_from_slice(self.file);
        out.extend_from_slice(&self.position.to_le_bytes());
        out.extend_from_slice(&(self.gtids.len() as u32).to_le_bytes());
        out.extend_from_slice(self.gtids);
    }
}
