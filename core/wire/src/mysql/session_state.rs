use super::primitives::put_lenenc_bytes;
use crate::{Reader, WireError};

/// What changed of a session, in the last part of an OK packet.
///
/// Source: MySQL Internals, "OK_Packet: Session State Information"; MariaDB Knowledge Base, "OK_Packet: Session
/// Tracking".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionStates<'a> {
    entries: &'a [u8],
}

/// One change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionState<'a> {
    /// Variables have values: names and values, one after the other (0).
    Variables(&'a [u8]),
    /// The default database is this one (1).
    Schema(&'a [u8]),
    /// Whether anything of the session changed (2): `1` or `0`.
    Changed(&'a [u8]),
    /// Global transaction ids, in their own form (3).
    Gtids(&'a [u8]),
    /// Statements that make a transaction like the open one (4).
    TransactionCharacteristics(&'a [u8]),
    /// Letters that tell what the open transaction did (5).
    Transaction(&'a [u8]),
    /// What the pages do not name.
    Other(u8, &'a [u8]),
}

impl<'a> SessionStates<'a> {
    pub(super) fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        let entries = reader.lenenc_bytes_le()?;
        let mut inside = Reader::new(entries);
        while !inside.is_at_end() {
            inside.u8()?;
            inside.lenenc_bytes_le()?;
        }
        Ok(Self { entries })
    }

    /// The changes in order. One whose inside is not of its form is given as [`SessionState::Other`].
    pub fn iter(&self) -> impl Iterator<Item = SessionState<'a>> + use<'a> {
        let mut reader = Reader::new(self.entries);
        std::iter::from_fn(move || {
            let kind = reader.u8().ok()?;
            let data = reader.lenenc_bytes_le().ok()?;
            let text = || {
                let mut inside = Reader::new(data);
                let text = inside.lenenc_bytes_le().ok()?;
                inside.is_at_end().then_some(text)
            };
            let state = match kind {
                0 => Some(SessionState::Variables(data)),
                1 => text().map(SessionState::Schema),
                2 => text().map(SessionState::Changed),
                3 => Some(SessionState::Gtids(data)),
                4 => text().map(SessionState::TransactionCharacteristics),
                5 => text().map(SessionState::Transaction),
                _ => None,
            };
            Some(state.unwrap_or(SessionState::Other(kind, data)))
        })
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        put_lenenc_bytes(out, self.entries);
    }
}

impl<'a> SessionState<'a> {
    /// Names and values of [`Self::Variables`]; none of the others.
    pub fn variables(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let pairs = if let Self::Variables(pairs) = *self { pairs } else { &[] };
        let mut reader = Reader::new(pairs);
        std::iter::from_fn(move || Some((reader.lenenc_bytes_le().ok()?, reader.lenenc_bytes_le().ok()?)))
    }
}
