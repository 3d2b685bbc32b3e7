use super::frame::{frame, put_c_str};
use super::startup::ProtocolVersion;
use super::tags::backend;
use crate::{Reader, WireError};

/// `NegotiateProtocolVersion` ('v'): the server speaks less than the client asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NegotiateProtocolVersion<'a> {
    /// Newest version that the server speaks.
    pub version: ProtocolVersion,
    /// Protocol options (`_pq_.…`) that it does not know.
    pub unknown_options: Vec<&'a [u8]>,
}

impl<'a> NegotiateProtocolVersion<'a> {
    /// Decodes the body.
    pub fn decode(body: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        let code = reader.u32()?;
        let count = reader.i32()?;
        if count < 0 {
            return Err(WireError::NegativeLength);
        }
        let unknown_options = (0..count).map(|_| reader.c_str()).collect::<Result<_, _>>()?;
        let version = ProtocolVersion { major: (code >> 16) as u16, minor: code as u16 };
        reader.finish().map(|()| Self { version, unknown_options })
    }

    /// Appends this message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        frame(out, backend::NEGOTIATE_PROTOCOL_VERSION, |out| {
            out.extend_from_slice(&self.version.code().to_be_bytes());
            out.extend_from_slice(&(self.unknown_options.len() as u32).to_be_bytes());
            for option in &self.unknown_options {
                put_c_str(out, option);
            }
        });
    }
}
