use super::capabilities::Capabilities;
use super::primitives::put_c_str;
use super::status::Status;
use crate::{Reader, WireError};

/// First byte of a [`Handshake`].
const PROTOCOL_VERSION: u8 = 10;
/// Bytes of the challenge in front of the capabilities.
const CHALLENGE_START_BYTES: usize = 8;
/// Fewest bytes of the challenge behind them.
const CHALLENGE_END_BYTES_MIN: usize = 13;
const RESERVED_BYTES: usize = 6;

/// `HandshakeV10`: the server's greeting, with which a connection begins.
///
/// Source: MySQL Internals, "Protocol::HandshakeV10"; MariaDB Knowledge Base, "Connection: Initial Handshake Packet".
/// Greetings of servers before 4.1, which end early, are not decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handshake<'a> {
    /// As the server prints it; MariaDB may put `5.5.5-` in front.
    pub server_version: &'a [u8],
    /// The connection's number, which KILL takes.
    pub thread_id: u32,
    /// What the server can do.
    pub capabilities: Capabilities,
    /// The server's default character set and collation, its lower eight bits.
    pub character_set: u8,
    /// Of the session.
    pub status: Status,
    /// First bytes of the challenge, eight.
    pub challenge_start: &'a [u8],
    /// The others, at least thirteen, with their closing NUL; empty without SECURE_CONNECTION.
    pub challenge_end: &'a [u8],
    /// The challenge's length as the server says it; zero if it has no PLUGIN_AUTH.
    pub challenge_len: u8,
    /// Bytes without a meaning yet: six, and four more of a server that has none of MariaDB's capabilities.
    pub reserved: &'a [u8],
    /// Name of the way to log in; only with PLUGIN_AUTH.
    pub plugin: Option<&'a [u8]>,
}

impl<'a> Handshake<'a> {
    /// Decodes the payload.
    pub fn decode(body: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        reader.tag(PROTOCOL_VERSION)?;
        let server_version = reader.c_str()?;
        let thread_id = reader.u32_le()?;
        let challenge_start = reader.bytes(CHALLENGE_START_BYTES)?;
        reader.tag(0)?;
        let low = reader.u16_le()?;
        let character_set = reader.u8()?;
        let status = Status(reader.u16_le()?);
        let low = u32::from(low) | u32::from(reader.u16_le()?) << 16;
        let challenge_len = reader.u8()?;
        let is_extended = Capabilities::is_extended(low);
        let reserved = reader.bytes(if is_extended { RESERVED_BYTES } else { RESERVED_BYTES + 4 })?;
        let high = if is_extended { reader.u32_le()? } else { 0 };
        let capabilities = Capabilities(u64::from(low) | u64::from(high) << 32);
        let challenge_end = if capabilities.has(Capabilities::SECURE_CONNECTION) {
            let more = usize::from(challenge_len).saturating_sub(CHALLENGE_START_BYTES);
            reader.bytes(more.max(CHALLENGE_END_BYTES_MIN))?
        } else {
            &[]
        };
        let has_plugin = capabilities.has(Capabilities::PLUGIN_AUTH);
        let plugin = if has_plugin { Some(reader.c_str()?) } else { None };
        reader.finish().map(|()| Self {
            server_version,
            thread_id,
            capabilities,
            character_set,
            status,
            challenge_start,
            challenge_end,
            challenge_len,
            reserved,
            plugin,
        })
    }

    /// Whether the server is MariaDB: it says so, and the first 32 capabilities do too.
    pub fn is_mariadb(&self) -> bool {
        memchr::memmem::find(self.server_version, b"MariaDB").is_some()
            || Capabilities::is_extended(self.capabilities.low())
    }

    /// The same greeting of a server that has no TLS.
    pub fn without_tls(self) -> Self {
        Self { capabilities: Capabilities(self.capabilities.0 & !Capabilities::SSL.0), ..self }
    }

    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let low = self.capabilities.low();
        out.push(PROTOCOL_VERSION);
        put_c_str(out, self.server_version);
        out.extend_from_slice(&self.thread_id.to_le_bytes());
        out.extend_from_slice(self.challenge_start);
        out.push(0);
        out.extend_from_slice(&(low as u16).to_le_bytes());
        out.push(self.character_set);
        out.extend_from_slice(&self.status.0.to_le_bytes());
        out.extend_from_slice(&((low >> 16) as u16).to_le_bytes());
        out.push(self.challenge_len);
        out.extend_from_slice(self.reserved);
        if Capabilities::is_extended(low) {
            out.extend_from_slice(&((self.capabilities.0 >> 32) as u32).to_le_bytes());
        }
        out.extend_from_slice(self.challenge_end);
        if let Some(plugin) = self.plugin {
            put_c_str(out, plugin);
        }
    }
}
