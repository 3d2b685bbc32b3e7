use std::fmt;

use onetrip_wire::pg::CommandComplete;

/// Longest command tag that is kept whole.
const TAG_BYTES_MAX: usize = 39;

/// What a statement did, as the server words it: `INSERT 0 1`, `SELECT 5`, `CREATE TABLE`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CommandTag {
    bytes: [u8; TAG_BYTES_MAX],
    length: u8,
}

impl CommandTag {
    pub(crate) fn new(tag: &[u8]) -> Self {
        let length = tag.len().min(TAG_BYTES_MAX);
        let mut bytes = [0; TAG_BYTES_MAX];
        bytes[..length].copy_from_slice(&tag[..length]);
        Self { bytes, length: length as u8 }
    }

    /// The tag; empty for an empty statement.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }

    /// Rows that were returned or changed; zero for a statement that counts none.
    pub fn rows(&self) -> u64 {
        CommandComplete { tag: self.as_bytes() }.rows().unwrap_or_default()
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl fmt::Display for CommandTag {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl fmt::Debug for CommandTag {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}", self.as_str())
    }
}
