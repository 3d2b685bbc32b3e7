//! Values in one form, however the wire writes them. `10001` is the same value in a statement's text, in a text
//! parameter, in a binary int4 and in a result column.

use std::hash::BuildHasher;
use std::io::Write;

use onetrip_ledger::{ValueHash, ValueHasher};
use onetrip_wire::pg::{Format, Oid};

/// Values longer than this are never keys; their hash tells equality only.
const KEY_BYTES_MAX: usize = 64;
const TEXT_TYPES: [Oid; 6] = [18, 19, 25, 705, 1042, 1043];
const INT2: Oid = 21;
const INT4: Oid = 23;
const INT8: Oid = 20;
pub(crate) const OBJECT_ID: Oid = 26;
const UUID: Oid = 2950;
const NUMERIC: Oid = 1700;
/// Object ids below it are the system's own; above are users' types: enums, domains, extensions.
const FIRST_USER_OID: Oid = 16384;

/// Hashes parameters and columns.
#[derive(Debug, Default)]
pub(crate) struct Values {
    hasher: ValueHasher,
    bulk: foldhash::quality::RandomState,
    scratch: Vec<u8>,
}

impl Values {
    pub(crate) fn new(hasher: ValueHasher) -> Self {
        Self { hasher, ..Self::default() }
    }

    /// The hash of a parameter; zero for NULL.
    pub(crate) fn parameter(&mut self, value: Option<&[u8]>, oid: Oid, format: Format) -> ValueHash {
        let Some(bytes) = value else { return 0 };
        if bytes.len() > KEY_BYTES_MAX {
            return self.bulk.hash_one(bytes).max(1);
        }
        match canonical(bytes, oid, format, &mut self.scratch) {
            Some(canonical) => self.hasher.hash(canonical),
            None => self.opaque(bytes, oid),
        }
    }

    /// The hash of a column's value where it can be a key, in the 32 bits that results are kept in.
    pub(crate) fn column(&mut self, value: Option<&[u8]>, oid: Oid, format: Format) -> u32 {
        let key = value.filter(|bytes| bytes.len() <= KEY_BYTES_MAX);
        key.and_then(|bytes| canonical(bytes, oid, format, &mut self.scratch))
            .map_or(0, |canonical| self.hasher.hash(canonical) as u32)
    }

    /// The hash of a literal's value.
    pub(crate) fn literal(&self, value: &[u8]) -> ValueHash {
        if value.len() > KEY_BYTES_MAX { self.bulk.hash_one(value).max(1) } else { self.hasher.hash(value) }
    }

    /// A digest of `bytes` added to `digest`; above one, so that its lowest bit is free.
    pub(crate) fn digest(&self, digest: u64, bytes: &[u8]) -> u64 {
        self.bulk.hash_one((digest, bytes)).max(2)
    }

    /// A binary value of a type that has no text form here: equal to its like only.
    fn opaque(&mut self, bytes: &[u8], oid: Oid) -> ValueHash {
        self.scratch.clear();
        self.scratch.push(0);
        self.scratch.extend_from_slice(&oid.to_be_bytes());
        self.scratch.extend_from_slice(bytes);
        self.hasher.hash(&self.scratch)
    }
}

/// Whether columns of this type are ever what a statement is looked up by.
pub(crate) fn is_key_type(oid: Oid) -> bool {
    TEXT_TYPES.contains(&oid)
        || matches!(oid, 0 | INT2 | INT4 | INT8 | OBJECT_ID | UUID | NUMERIC)
        || oid >= FIRST_USER_OID
}

#[inline]
fn canonical<'a>(bytes: &'a [u8], oid: Oid, format: Format, scratch: &'a mut Vec<u8>) -> Option<&'a [u8]> {
    if format == Format::Text || TEXT_TYPES.contains(&oid) || oid >= FIRST_USER_OID {
        return Some(bytes); // as most are
    }
    text_of_binary(bytes, oid, scratch)
}

fn text_of_binary<'a>(bytes: &[u8], oid: Oid, scratch: &'a mut Vec<u8>) -> Option<&'a [u8]> {
    scratch.clear();
    let number = match (oid, bytes) {
        (INT2, &[a, b]) => i64::from(i16::from_be_bytes([a, b])),
        (INT4, &[a, b, c, d]) => i64::from(i32::from_be_bytes([a, b, c, d])),
        (OBJECT_ID, &[a, b, c, d]) => i64::from(u32::from_be_bytes([a, b, c, d])),
        (INT8, &[a, b, c, d, e, f, g, h]) => i64::from_be_bytes([a, b, c, d, e, f, g, h]),
        (UUID, uuid) if uuid.len() == 16 => {
            put_uuid(uuid, scratch);
            return Some(scratch);
        }
        _ => return None,
    };
    write!(scratch, "{number}").ok()?;
    Some(scratch)
}

fn put_uuid(uuid: &[u8], out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    for (position, byte) in uuid.iter().enumerate() {
        if matches!(position, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        out.push(HEX[usize::from(byte >> 4)]);
        out.push(HEX[usize::from(byte & 15)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_number_has_one_hash_in_every_form() {
        let mut values = Values::default();
        let text = values.parameter(Some(b"-10001"), 0, Format::Text);
        assert_eq!(values.parameter(Some(&(-10001i32).to_be_bytes()), INT4, Format::Binary), text);
        assert_eq!(values.parameter(Some(&(-10001i64).to_be_bytes()), INT8, Format::Binary), text);
        assert_eq!(values.literal(b"-10001"), text);
        assert_eq!(values.column(Some(b"-10001"), INT4, Format::Text), text as u32);
        assert_ne!(values.parameter(Some(b"10001"), 0, Format::Text), text);
    }

    #[test]
    fn a_uuid_has_one_hash_in_both_formats() {
        let mut values = Values::default();
        let binary: Vec<u8> = (0..16).collect();
        assert_eq!(
            values.parameter(Some(&binary), UUID, Format::Binary),
            values.parameter(Some(b"00010203-0405-0607-0809-0a0b0c0d0e0f"), 25, Format::Text)
        );
    }

    #[test]
    fn null_has_no_hash_and_wrong_lengths_do_not_become_numbers() {
        let mut values = Values::default();
        assert_eq!(values.parameter(None, INT4, Format::Text), 0);
        assert_eq!(values.column(Some(&[0, 0, 1]), INT4, Format::Binary), 0);
        assert_ne!(values.parameter(Some(&[0, 0, 1]), INT4, Format::Binary), values.literal(b"1"));
    }
}
