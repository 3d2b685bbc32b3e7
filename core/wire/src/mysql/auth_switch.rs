use super::primitives::put_c_str;
use super::tags::server;
use crate::{Reader, WireError};

/// `AuthSwitchRequest`: the client shall log in another way.
///
/// Source: MySQL Internals, "Protocol::AuthSwitchRequest" and "Protocol::OldAuthSwitchRequest". The client's answer is a
/// payload of the named way's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthSwitch<'a> {
    /// By the way of before 4.1, which has no name here.
    Old,
    /// By a way with a name.
    To {
        /// Its name.
        plugin: &'a [u8],
        /// The challenge, often with a closing NUL.
        challenge: &'a [u8],
    },
}

impl<'a> AuthSwitch<'a> {
    /// Decodes the payload.
    pub fn decode(body: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        reader.tag(server::EOF)?;
        if reader.is_at_end() {
            return Ok(Self::Old);
        }
        Ok(Self::To { plugin: reader.c_str()?, challenge: reader.all() })
    }

    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(server::EOF);
        if let Self::To { plugin, challenge } = self {
            put_c_str(out, plugin);
            out.extend_from_slice(challenge);
        }
    }
}
