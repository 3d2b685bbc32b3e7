use super::capabilities::Capabilities;
use super::primitives::put_lenenc;
use crate::{Reader, WireError};

/// The first payload of a result: how many columns it has, and whether their definitions follow.
///
/// Source: MySQL Internals, "Text Resultset"; MariaDB Knowledge Base, "Result Set Packets: Column Count Packet".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnCount {
    /// Number of columns, at least one.
    pub count: u64,
    /// Whether definitions follow, if the connection's capabilities let the server leave them out.
    pub metadata_follows: Option<bool>,
}

impl ColumnCount {
    /// Decodes the payload. The pages of MySQL 8 put the flag first and its servers the count first, as MariaDB does (not
    /// verified on 8.x).
    pub fn decode(body: &[u8], capabilities: Capabilities) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        let count = reader.lenenc_le()?;
        if count == 0 {
            return Err(WireError::UndefinedValue(0));
        }
        let is_optional = capabilities.has(Capabilities::MARIADB_CACHE_METADATA)
            || capabilities.has(Capabilities::OPTIONAL_RESULTSET_METADATA);
        let metadata_follows = match is_optional.then(|| reader.u8()).transpose()? {
            None => None,
            Some(0) => Some(false),
            Some(1) => Some(true),
            Some(other) => return Err(WireError::UndefinedValue(i32::from(other))),
        };
        reader.finish().map(|()| Self { count, metadata_follows })
    }

    /// Definitions to come.
    pub fn definitions(&self) -> u64 {
        if self.metadata_follows == Some(false) { 0 } else { self.count }
    }

    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_lenenc(out, self.count);
        out.extend(self.metadata_follows.map(u8::from));
    }
}
