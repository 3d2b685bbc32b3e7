use super::frame::frame;
use super::tags::backend;
use crate::{Reader, WireError};

/// `BackendKeyData` ('K'): what a client must show to cancel this session's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackendKeyData<'a> {
    /// Process id of the backend.
    pub process_id: u32,
    /// Secret: 4 bytes in protocol 3.0, up to 256 in 3.2.
    pub key: &'a [u8],
}

impl<'a> BackendKeyData<'a> {
    /// Decodes the body.
    pub fn decode(body: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        let process_id = reader.u32()?;
        match reader.rest() {
            key if key.len() < 4 => Err(WireError::Truncated),
            key if key.len() > 256 => Err(WireError::Trailing(key.len() - 256)),
            key => Ok(Self { process_id, key }),
        }
    }

    /// Appends this message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        frame(out, backend::BACKEND_KEY_DATA, |out| {
            out.extend_from_slice(&self.process_id.to_be_bytes());
            out.extend_from_slice(self.key);
        });
    }
}
