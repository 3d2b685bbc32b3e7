use super::frame::{length_prefixed, put_c_str};
use crate::{Reader, WireError};

/// Longest startup packet that PostgreSQL accepts, its length field included: `MAX_STARTUP_PACKET_LENGTH`, which is
/// 10,000 and does not count that field.
pub const STARTUP_LENGTH_MAX: u32 = 10_004;

/// Protocol 3.0.
pub const PROTOCOL_3_0: ProtocolVersion = ProtocolVersion { major: 3, minor: 0 };

const CANCEL_REQUEST: u32 = 1234 << 16 | 5678;
const SSL_REQUEST: u32 = 1234 << 16 | 5679;
const GSSENC_REQUEST: u32 = 1234 << 16 | 5680;

/// A version of the frontend/backend protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProtocolVersion {
    /// 3 for every PostgreSQL since 7.4.
    pub major: u16,
    /// 0, or 2 since PostgreSQL 18.
    pub minor: u16,
}

impl ProtocolVersion {
    /// The Int32 that the wire carries.
    pub fn code(self) -> u32 {
        u32::from(self.major) << 16 | u32::from(self.minor)
    }
}

/// A packet without tag, as a connection's first bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Startup<'a> {
    /// Asks whether TLS may follow; the answer is one byte, `S` or `N`.
    SslRequest,
    /// Asks whether GSSAPI encryption may follow; the answer is one byte, `G` or `N`.
    GssEncRequest,
    /// Asks to cancel what another connection runs; there is no answer.
    Cancel(CancelRequest<'a>),
    /// Opens a session.
    Session(StartupMessage<'a>),
}

impl<'a> Startup<'a> {
    /// Length of the packet that begins `bytes`, length field included; `None` while fewer than four bytes are there.
    pub fn peek_len(bytes: &[u8]) -> Option<Result<usize, WireError>> {
        let (length, _) = bytes.split_first_chunk::<4>()?;
        let length = i32::from_be_bytes(*length);
        Some(match u32::try_from(length) {
            Ok(length) if length > STARTUP_LENGTH_MAX => {
                Err(WireError::FrameTooLong { length, limit: STARTUP_LENGTH_MAX })
            }
            Ok(length) if length >= 8 => Ok(length as usize),
            _ => Err(WireError::FrameTooShort(length)),
        })
    }

    /// Whether a packet without its length field asks to cancel something, also one that does not decode.
    pub fn is_cancel(body: &[u8]) -> bool {
        body.starts_with(&CANCEL_REQUEST.to_be_bytes())
    }

    /// Decodes a packet without its length field.
    pub fn decode(body: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        match reader.u32()? {
            SSL_REQUEST => reader.finish().map(|()| Self::SslRequest),
            GSSENC_REQUEST => reader.finish().map(|()| Self::GssEncRequest),
            CANCEL_REQUEST => {
                let process_id = reader.u32()?;
                Ok(Self::Cancel(CancelRequest { process_id, key: reader.rest() }))
            }
            code => {
                let version = ProtocolVersion { major: (code >> 16) as u16, minor: code as u16 };
                if version.major != 3 {
                    return Err(WireError::UnsupportedProtocol {
                        major: version.major,
                        minor: version.minor,
                    });
                }
                let parameters = StartupParameters { bytes: reader.rest() };
                parameters.check()?;
                Ok(Self::Session(StartupMessage { version, parameters }))
            }
        }
    }
}

/// Which backend to interrupt, and the secret that allows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CancelRequest<'a> {
    /// Process id from BackendKeyData.
    pub process_id: u32,
    /// Secret from BackendKeyData: 4 bytes in protocol 3.0, up to 256 in 3.2.
    pub key: &'a [u8],
}

/// The packet that opens a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartupMessage<'a> {
    /// Version that the client would like.
    pub version: ProtocolVersion,
    /// `user`, `database` and run-time settings.
    pub parameters: StartupParameters<'a>,
}

/// Name and value pairs of a startup packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartupParameters<'a> {
    bytes: &'a [u8],
}

impl<'a> StartupParameters<'a> {
    /// The value given for `name`; the last one wins, as in PostgreSQL.
    pub fn get(&self, name: &str) -> Option<&'a [u8]> {
        self.iter().filter(|(key, _)| *key == name.as_bytes()).last().map(|(_, value)| value)
    }

    /// All pairs in order.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let mut reader = Reader::new(self.bytes);
        std::iter::from_fn(move || match reader.c_str() {
            Ok(name) if !name.is_empty() => reader.c_str().ok().map(|value| (name, value)),
            _ => None,
        })
    }

    fn check(&self) -> Result<(), WireError> {
        let mut reader = Reader::new(self.bytes);
        while !reader.c_str()?.is_empty() {
            reader.c_str()?;
        }
        reader.finish()
    }
}

/// Appends a startup packet.
pub fn encode_startup<'p>(
    out: &mut Vec<u8>,
    version: ProtocolVersion,
    parameters: impl IntoIterator<Item = (&'p [u8], &'p [u8])>,
) {
    length_prefixed(out, |out| {
        out.extend_from_slice(&version.code().to_be_bytes());
        for (name, value) in parameters {
            put_c_str(out, name);
            put_c_str(out, value);
        }
        out.push(0);
    });
}

/// Appends a CancelRequest.
pub fn encode_cancel_request(out: &mut Vec<u8>, request: CancelRequest<'_>) {
    length_prefixed(out, |out| {
        out.extend_from_slice(&CANCEL_REQUEST.to_be_bytes());
        out.extend_from_slice(&request.process_id.to_be_bytes());
        out.extend_from_slice(request.key);
    });
}

/// Appends an SSLRequest.
pub fn encode_ssl_request(out: &mut Vec<u8>) {
    length_prefixed(out, |out| out.extend_from_slice(&SSL_REQUEST.to_be_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_packet_gives_its_parameters_and_encodes_back() {
        let mut packet = Vec::new();
        let pairs: [(&[u8], &[u8]); 2] = [(b"user", b"ann"), (b"database", b"shop")];
        encode_startup(&mut packet, ProtocolVersion { major: 3, minor: 2 }, pairs);
        assert_eq!(Startup::peek_len(&packet), Some(Ok(packet.len())));
        let Ok(Startup::Session(message)) = Startup::decode(&packet[4..]) else {
            panic!("not a session packet")
        };
        assert_eq!(message.version, ProtocolVersion { major: 3, minor: 2 });
        assert_eq!(message.parameters.get("database"), Some(&b"shop"[..]));
        let mut again = Vec::new();
        encode_startup(&mut again, message.version, message.parameters.iter());
        assert_eq!(again, packet);
    }

    #[test]
    fn requests_are_told_apart_and_other_versions_refused() {
        let mut packet = Vec::new();
        encode_ssl_request(&mut packet);
        assert_eq!(Startup::decode(&packet[4..]), Ok(Startup::SslRequest));
        packet.clear();
        encode_cancel_request(&mut packet, CancelRequest { process_id: 7, key: b"keys" });
        assert_eq!(
            Startup::decode(&packet[4..]),
            Ok(Startup::Cancel(CancelRequest { process_id: 7, key: b"keys" }))
        );
        assert_eq!(
            Startup::decode(&[0, 2, 0, 0, 0]),
            Err(WireError::UnsupportedProtocol { major: 2, minor: 0 })
        );
        assert_eq!(
            Startup::peek_len(&[0, 0, 0x27, 0x15]),
            Some(Err(WireError::FrameTooLong { length: 10_005, limit: STARTUP_LENGTH_MAX }))
        );
        assert_eq!(Startup::peek_len(&[0, 0, 0, 7]), Some(Err(WireError::FrameTooShort(7))));
    }
}
