use super::primitives::put_c_str;
use super::tags::server;
use crate::{Reader, WireError};

/// `AuthNextFactor`: a further factor to log in with (MULTI_FACTOR_AUTHENTICATION; not verified on 8.x).
///
/// Source: MySQL Internals, "Protocol::AuthNextFactorRequest".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuthNextFactor<'a> {
    /// Name of the way to log in.
    pub plugin: &'a [u8],
    /// Its challenge.
    pub challenge: &'a [u8],
}

impl<'a> AuthNextFactor<'a> {
    /// Decodes the payload.
    pub fn decode(body: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        reader.tag(server::AUTH_NEXT_FACTOR)?;
        Ok(Self { plugin: reader.c_str()?, challenge: reader.all() })
    }

    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(server::AUTH_NEXT_FACTOR);
        put_c_str(out, self.plugin);
        out.extend_from_slice(self.challenge);
    }
}
