use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};

use super::FORMAT_VERSION;

pub(super) const MARK: &[u8; 8] = b"onetrip\0";
pub(super) const HEADER_BYTES: usize = 20;
/// What follows the header from version 2 on.
pub(super) const SALT_BYTES: usize = 4;
pub(super) const BLOCK_HEADER_BYTES: usize = 12;

/// Longest payload of a block, in bytes.
pub const BLOCK_BYTES_MAX: usize = 64 << 20;

/// First bytes of a trace file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceHeader {
    /// Format version.
    pub version: u16,
    /// Whether parameters' values are kept, not only their hashes.
    pub keeps_values: bool,
    /// Wall-clock time that [`crate::Moment`] zero stands for, in nanoseconds since 1970.
    pub started_unix_nanos: u64,
    /// What the checksums of blocks begin with: chosen by chance, so that no text that a client sends can hold a block that
    /// a reader would take for one of this trace's. 0 in version 1, which has none.
    pub salt: u32,
}

impl TraceHeader {
    /// A header for a trace that starts now.
    pub fn now(keeps_values: bool) -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            version: FORMAT_VERSION,
            keeps_values,
            started_unix_nanos: since_epoch.as_nanos() as u64,
            // The standard library's hashers are keyed by the system's random numbers.
            salt: RandomState::new().build_hasher().finish() as u32,
        }
    }

    pub(super) fn to_bytes(self) -> [u8; HEADER_BYTES + SALT_BYTES] {
        let mut bytes = [0; HEADER_BYTES + SALT_BYTES];
        bytes[..8].copy_from_slice(MARK);
        bytes[8..10].copy_from_slice(&self.version.to_le_bytes());
        bytes[10] = self.keeps_values.into();
        bytes[12..HEADER_BYTES].copy_from_slice(&self.started_unix_nanos.to_le_bytes());
        bytes[HEADER_BYTES..].copy_from_slice(&self.salt.to_le_bytes());
        bytes
    }

    /// Without its salt; `None` where the bytes do not begin with the mark.
    pub(super) fn from_bytes(bytes: [u8; HEADER_BYTES]) -> Option<Self> {
        let (mark, fields) = bytes.split_at(8);
        let started = fields[4..12].try_into().map(u64::from_le_bytes).unwrap_or_default();
        (mark == MARK).then(|| Self {
            version: u16::from_le_bytes([fields[0], fields[1]]),
            keeps_values: fields[2] & 1 != 0,
            started_unix_nanos: started,
            salt: 0,
        })
    }
}

/// The first bytes of a block.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockHeader {
    pub(super) length: usize,
    pub(super) checksum: u32,
    pub(super) stream: u32,
}

impl BlockHeader {
    pub(super) fn of(salt: u32, stream: u32, payload: &[u8]) -> Self {
        Self { length: payload.len(), checksum: checksum(salt, stream, payload), stream }
    }

    pub(super) fn to_bytes(self) -> [u8; BLOCK_HEADER_BYTES] {
        let mut bytes = [0; BLOCK_HEADER_BYTES];
        bytes[..4].copy_from_slice(&(self.length as u32).to_le_bytes());
        bytes[4..8].copy_from_slice(&self.checksum.to_le_bytes());
        bytes[8..].copy_from_slice(&self.stream.to_le_bytes());
        bytes
    }

    pub(super) fn from_bytes(bytes: [u8; BLOCK_HEADER_BYTES]) -> Self {
        let field = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Self { length: field(0) as usize, checksum: field(4), stream: field(8) }
    }

    pub(super) fn fits(self, salt: u32, payload: &[u8]) -> bool {
        self.length == payload.len() && checksum(salt, self.stream, payload) == self.checksum
    }
}

fn checksum(salt: u32, stream: u32, payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(salt);
    hasher.update(&stream.to_le_bytes());
    hasher.update(payload);
    hasher.finalize()
}
