use super::tags::server;
use crate::{Reader, WireError};

/// `AuthMoreData`: what a way to log in says next.
///
/// Source: MySQL Internals, "Protocol::AuthMoreData" and "Caching SHA-2 Pluggable Authentication". The meanings that
/// caching_sha2_password gives it are not verified on 8.x.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuthMoreData<'a> {
    /// In the way's own form.
    pub data: &'a [u8],
}

/// What `caching_sha2_password` says by [`AuthMoreData`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CachingSha2<'a> {
    /// The server remembers the password: an OK packet follows at once.
    FastOk,
    /// It does not: the client sends the password, under TLS as it is, else encrypted with the server's key.
    Full,
    /// The server's public key, which the client asked for by a payload of one byte, 2.
    PublicKey(&'a [u8]),
}

impl<'a> AuthMoreData<'a> {
    /// Decodes the payload.
    pub fn decode(body: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        reader.tag(server::AUTH_MORE_DATA)?;
        Ok(Self { data: reader.all() })
    }

    /// Its meaning if the way is `caching_sha2_password`.
    pub fn caching_sha2(&self) -> CachingSha2<'a> {
        match self.data {
            [3] => CachingSha2::FastOk,
            [4] => CachingSha2::Full,
            key => CachingSha2::PublicKey(key),
        }
    }

    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(server::AUTH_MORE_DATA);
        out.extend_from_slice(self.data);
    }
}
