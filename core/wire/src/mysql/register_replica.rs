use super::primitives::put_short_bytes;
use super::tags::command;
use crate::{Reader, WireError};

/// `COM_REGISTER_SLAVE`: who asks for changes next.
///
/// Source: MySQL Internals, "COM_REGISTER_SLAVE".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegisterReplica<'a> {
    /// The replica's number.
    pub server_id: u32,
    /// Its host.
    pub host: &'a [u8],
    /// Its user.
    pub user: &'a [u8],
    /// That user's password.
    pub password: &'a [u8],
    /// Its port.
    pub port: u16,
    /// Unused.
    pub rank: u32,
    /// Its primary's number, or zero.
    pub primary_id: u32,
}

impl<'a> RegisterReplica<'a> {
    /// Decodes the payload.
    pub fn decode(body: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        reader.tag(command::REGISTER_REPLICA)?;
        let server_id = reader.u32_le()?;
        let (host, user, password) = (reader.short_bytes()?, reader.short_bytes()?, reader.short_bytes()?);
        let (port, rank, primary_id) = (reader.u16_le()?, reader.u32_le()?, reader.u32_le()?);
        reader.finish().map(|()| Self { server_id, host, user, password, port, rank, primary_id })
    }

    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(command::REGISTER_REPLICA);
        out.extend_from_slice(&self.server_id.to_le_bytes());
        for text in [self.host, self.user, self.password] {
            put_short_bytes(out, text);
        }
        out.extend_from_slice(&self.port.to_le_bytes());
        out.extend_from_slice(&self.rank.to_le_bytes());
        out.extend_from_slice(&self.primary_id.to_le_bytes());
    }
}
