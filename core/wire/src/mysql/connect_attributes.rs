use super::primitives::put_lenenc_bytes;
use crate::{Reader, WireError};

/// What a client says of itself: pairs of names and values.
///
/// Source: MySQL Internals, "Protocol::HandshakeResponse41" (CLIENT_CONNECT_ATTRS).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectAttributes<'a> {
    pairs: &'a [u8],
}

impl<'a> ConnectAttributes<'a> {
    pub(super) fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        let pairs = reader.lenenc_bytes_le()?;
        let mut inside = Reader::new(pairs);
        while !inside.is_at_end() {
            inside.lenenc_bytes_le()?;
            inside.lenenc_bytes_le()?;
        }
        Ok(Self { pairs })
    }

    /// Names and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let mut reader = Reader::new(self.pairs);
        std::iter::from_fn(move || Some((reader.lenenc_bytes_le().ok()?, reader.lenenc_bytes_le().ok()?)))
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        put_lenenc_bytes(out, self.pairs);
    }
}
