use crate::{Reader, WireError};

/// What a client says of itself: pairs of names and values. Servers take lengths with more bytes than they need, and MariaDB's
/// connector for Node writes the length of all pairs so.
///
/// Source: MySQL Internals, "Protocol::HandshakeResponse41" (CLIENT_CONNECT_ATTRS).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectAttributes<'a> {
    /// With the length in front, as it was written.
    written: &'a [u8],
    pairs: &'a [u8],
}

impl<'a> ConnectAttributes<'a> {
    pub(super) fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        let before = reader.rest();
        let pairs = reader.overlong_bytes_le()?;
        let written = &before[..before.len() - reader.rest().len()];
        let mut inside = Reader::new(pairs);
        while !inside.is_at_end() {
            inside.overlong_bytes_le()?;
            inside.overlong_bytes_le()?;
        }
        Ok(Self { written, pairs })
    }

    /// Names and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let mut reader = Reader::new(self.pairs);
        std::iter::from_fn(move || Some((reader.overlong_bytes_le().ok()?, reader.overlong_bytes_le().ok()?)))
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.written);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_that_are_longer_than_they_need_to_be_are_read_and_kept() {
        let written = b"\xfc\x09\x00\x01a\xfc\x01\x00b\x01c\x00";
        let mut reader = Reader::new(written);
        let attributes = ConnectAttributes::read(&mut reader).expect("servers take it");
        assert_eq!(attributes.iter().collect::<Vec<_>>(), [(&b"a"[..], &b"b"[..]), (b"c", b"")]);
        let mut out = Vec::new();
        attributes.put(&mut out);
        assert_eq!(out, written);
        assert!(ConnectAttributes::read(&mut Reader::new(b"\xfc\x09\x00\x01a")).is_err());
    }
}
