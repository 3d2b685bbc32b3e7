use super::capabilities::Capabilities;
use super::connect_attributes::ConnectAttributes;
use super::primitives::{put_c_str, put_lenenc_bytes, put_short_bytes};
use crate::{Reader, WireError};

/// Bytes of an [`SslRequest`], which are the first ones of a [`HandshakeResponse`].
const HEAD_BYTES: usize = 32;
const RESERVED_BYTES: usize = 19;

/// What a client's first packet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientHello<'a> {
    /// TLS first; the response comes within.
    Ssl(SslRequest<'a>),
    /// The response.
    Response(HandshakeResponse<'a>),
}

impl<'a> ClientHello<'a> {
    /// Decodes the payload.
    pub fn decode(body: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        let head = SslRequest::read(&mut reader)?;
        if reader.is_at_end() && head.capabilities.has(Capabilities::SSL) {
            return Ok(Self::Ssl(head));
        }
        HandshakeResponse::read(head, reader).map(Self::Response)
    }

    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Ssl(request) => request.encode(out),
            Self::Response(response) => response.encode(out),
        }
    }
}

/// `SSLRequest`: the client starts TLS.
///
/// Source: MySQL Internals, "Protocol::SSLRequest"; MariaDB Knowledge Base, "Connection: SSLRequest Packet".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SslRequest<'a> {
    /// What the client wants and can.
    pub capabilities: Capabilities,
    /// Longest packet that the client takes, in bytes.
    pub packet_bytes_max: u32,
    /// Character set and collation, their lower eight bits.
    pub character_set: u8,
    /// Bytes without a meaning yet: 19, and four more of a client that has none of MariaDB's capabilities.
    pub reserved: &'a [u8],
}

impl<'a> SslRequest<'a> {
    /// Reads the bytes that begin a client's first payload, whichever it is, and of which no more need be there.
    pub fn peek(payload: &'a [u8]) -> Result<Self, WireError> {
        Self::read(&mut Reader::new(payload))
    }

    fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        let low = reader.u32_le()?;
        if !Capabilities(u64::from(low)).has(Capabilities::PROTOCOL_41) {
            return Err(WireError::UndefinedValue(low as i32)); // the protocol before 4.1
        }
        let packet_bytes_max = reader.u32_le()?;
        let character_set = reader.u8()?;
        let is_extended = Capabilities::is_extended(low);
        let reserved = reader.bytes(if is_extended { RESERVED_BYTES } else { RESERVED_BYTES + 4 })?;
        let high = if is_extended { reader.u32_le()? } else { 0 };
        let capabilities = Capabilities(u64::from(low) | u64::from(high) << 32);
        Ok(Self { capabilities, packet_bytes_max, character_set, reserved })
    }

    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.capabilities.low().to_le_bytes());
        out.extend_from_slice(&self.packet_bytes_max.to_le_bytes());
        out.push(self.character_set);
        out.extend_from_slice(self.reserved);
        if Capabilities::is_extended(self.capabilities.low()) {
            out.extend_from_slice(&((self.capabilities.0 >> 32) as u32).to_le_bytes());
        }
        debug_assert_eq!(out.len() - start, HEAD_BYTES);
    }
}

/// `HandshakeResponse41`: who the client is, and its answer to the challenge.
///
/// Source: MySQL Internals, "Protocol::HandshakeResponse41"; MariaDB Knowledge Base, "Connection: Handshake Response
/// Packet". Which fields are there depends on the capabilities that it sets itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandshakeResponse<'a> {
    /// Its first 32 bytes.
    pub head: SslRequest<'a>,
    /// Who logs in.
    pub user: &'a [u8],
    /// Answer to the challenge.
    pub answer: &'a [u8],
    /// Database to use; only with CONNECT_WITH_DB.
    pub database: Option<&'a [u8]>,
    /// Name of the way to log in; only with PLUGIN_AUTH.
    pub plugin: Option<&'a [u8]>,
    /// Only with CONNECT_ATTRS.
    pub attributes: Option<ConnectAttributes<'a>>,
    /// Level of compression; only with ZSTD_COMPRESSION.
    pub zstd_level: Option<u8>,
}

impl<'a> HandshakeResponse<'a> {
    fn read(head: SslRequest<'a>, mut reader: Reader<'a>) -> Result<Self, WireError> {
        let has = |flag| head.capabilities.has(flag);
        let user = reader.c_str()?;
        let answer = if has(Capabilities::PLUGIN_AUTH_LENENC_CLIENT_DATA) {
            reader.lenenc_bytes_le()?
        } else if has(Capabilities::SECURE_CONNECTION) {
            reader.short_bytes()?
        } else {
            reader.c_str()?
        };
        let database = if has(Capabilities::CONNECT_WITH_DB) { Some(reader.c_str()?) } else { None };
        let plugin = if has(Capabilities::PLUGIN_AUTH) { Some(reader.c_str()?) } else { None };
        let attributes =
            if has(Capabilities::CONNECT_ATTRS) { Some(ConnectAttributes::read(&mut reader)?) } else { None };
        let zstd_level = if has(Capabilities::ZSTD_COMPRESSION) { Some(reader.u8()?) } else { None };
        reader.finish().map(|()| Self { head, user, answer, database, plugin, attributes, zstd_level })
    }

    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.head.encode(out);
        put_c_str(out, self.user);
        if self.head.capabilities.has(Capabilities::PLUGIN_AUTH_LENENC_CLIENT_DATA) {
            put_lenenc_bytes(out, self.answer);
        } else if self.head.capabilities.has(Capabilities::SECURE_CONNECTION) {
            put_short_bytes(out, self.answer);
        } else {
            put_c_str(out, self.answer);
        }
        for text in [self.database, self.plugin].into_iter().flatten() {
            put_c_str(out, text);
        }
        if let Some(attributes) = &self.attributes {
            attributes.put(out);
        }
        out.extend(self.zstd_level);
    }
}
