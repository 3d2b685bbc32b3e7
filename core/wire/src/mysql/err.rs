use super::progress::PROGRESS_CODE;
use super::tags::server;
use crate::{Reader, WireError};

/// In front of a state.
const STATE_MARK: u8 = b'#';
const STATE_BYTES: usize = 5;

/// `ERR_Packet`: a command failed, or the connection is over.
///
/// Source: MySQL Internals, "ERR_Packet"; MariaDB Knowledge Base, "ERR_Packet".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrPacket<'a> {
    /// The server's number for it.
    pub code: u16,
    /// SQLSTATE; absent in what a server says instead of a greeting.
    pub state: Option<&'a [u8]>,
    /// For people.
    pub message: &'a [u8],
}

impl<'a> ErrPacket<'a> {
    /// Decodes the payload. A [`Progress`](super::Progress) is none.
    pub fn decode(body: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        reader.tag(server::ERR)?;
        let code = reader.u16_le()?;
        if code == PROGRESS_CODE {
            return Err(WireError::UndefinedValue(i32::from(code)));
        }
        let has_state = reader.rest().first() == Some(&STATE_MARK);
        let state = if has_state {
            reader.bytes(1)?;
            Some(reader.bytes(STATE_BYTES)?)
        } else {
            None
        };
        Ok(Self { code, state, message: reader.all() })
    }

    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(server::ERR);
        out.extend_from_slice(&self.code.to_le_bytes());
        if let Some(state) = self.state {
            out.push(STATE_MARK);
            out.extend_from_slice(state);
        }
        out.extend_from_slice(self.message);
    }
}
