//! One form for equal values, however they travel: what a column's value and a parameter are compared by.

use crate::value::{Column, Form, Format, Value};

/// Longer values are never keys of a loop.
pub(crate) const LENGTH_MAX: usize = 64;

const INT8: u32 = 20;
const INT2: u32 = 21;
const INT4: u32 = 23;
const OID: u32 = 26;
const UUID: u32 = 2950;
/// char, name, text, unknown, bpchar, varchar: their binary form is their text.
const TEXTUAL: [u32; 6] = [18, 19, 25, 705, 1042, 1043];

/// A column that was not described. What can be read as text is taken for text: a binary integer of four bytes that
/// looks like it is above 500 million.
pub(crate) const UNKNOWN: Column = Column { oid: 0, format: Format::Binary };

/// Whether a type's binary form is its text.
pub(crate) fn is_textual(oid: u32) -> bool {
    TEXTUAL.contains(&oid)
}

/// What a value says, apart from how it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning<'a> {
    Integer(i64),
    Uuid([u8; 16]),
    /// Anything else is equal only byte by byte.
    Bytes(&'a [u8]),
}

impl Meaning<'_> {
    /// Equal meanings have equal hashes; different ones may share one.
    pub(crate) fn hash(&self) -> u32 {
        match self {
            Self::Integer(number) => fold(*number as u64, 0x9e37_79b9_7f4a_7c15),
            Self::Uuid(bytes) => hash_bytes(bytes, 1),
            Self::Bytes(bytes) => hash_bytes(bytes, 2),
        }
    }
}

/// A value that another one may be made from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cell<'a> {
    pub(crate) meaning: Meaning<'a>,
    /// As it travelled.
    pub(crate) bytes: &'a [u8],
    /// Whether `bytes` are its text.
    pub(crate) is_text: bool,
}

impl<'a> Cell<'a> {
    /// A column's value that is not NULL.
    pub(crate) fn of_column(column: Column, bytes: &'a [u8]) -> Self {
        let is_text = match column {
            UNKNOWN => bytes.iter().all(|byte| matches!(byte, b' '..=b'~')),
            _ => column.format == Format::Text || is_textual(column.oid),
        };
        let meaning = match (is_text, column) {
            (true, _) => of_text(bytes),
            (false, UNKNOWN) => of_untyped(bytes),
            (false, _) => of_binary(column.oid, bytes),
        };
        Self { meaning, bytes, is_text }
    }

    /// A parameter that is not NULL. A literal with quotes inside is equal to nothing.
    pub(crate) fn of_parameter(form: Form, bytes: &'a [u8]) -> Self {
        let (meaning, is_text) = match form {
            Form::Text | Form::Number | Form::Quoted => (of_text(bytes), true),
            Form::Binary(oid) if is_textual(oid) => (of_text(bytes), true),
            Form::Binary(0) => (of_untyped(bytes), false),
            Form::Binary(oid) => (of_binary(oid, bytes), false),
        };
        Self { meaning, bytes, is_text }
    }
}

/// The hash of a parameter's meaning; `None` for NULL and for what is too long to be a key.
pub(crate) fn hash_of(value: Value<'_>) -> Option<u32> {
    let bytes = value.bytes?;
    if value.form == Form::Quoted && bytes.contains(&b'\'') {
        return hash_undoubled(bytes);
    }
    (bytes.len() <= LENGTH_MAX).then(|| Cell::of_parameter(value.form, bytes).meaning.hash())
}

/// Whether two parameters say the same, however they are written.
pub(crate) fn is_same(one: Value<'_>, other: Value<'_>) -> bool {
    if one.form == other.form || one.bytes.is_none() || other.bytes.is_none() {
        return one.bytes == other.bytes;
    }
    hash_of(one).is_some_and(|hash| hash_of(other) == Some(hash))
}

/// An integer as PostgreSQL prints it: no sign but `-`, no leading zeros.
pub(crate) fn integer_of_text(text: &[u8]) -> Option<i64> {
    let (digits, is_negative) = match text {
        [b'-', rest @ ..] => (rest, true),
        _ => (text, false),
    };
    let is_canonical = match digits {
        [] => false,
        [b'0'] => !is_negative,
        [first, ..] => *first != b'0' && digits.len() <= 19,
    };
    if !is_canonical {
        return None;
    }
    let mut number: i64 = 0;
    for &digit in digits {
        let digit = i64::from(digit.wrapping_sub(b'0'));
        if digit > 9 {
            return None;
        }
        let shifted = number.checked_mul(10)?;
        number = if is_negative { shifted.checked_sub(digit)? } else { shifted.checked_add(digit)? };
    }
    Some(number)
}

/// A big-endian integer of 2, 4 or 8 bytes.
pub(crate) fn integer_of_binary(bytes: &[u8]) -> Option<i64> {
    match *bytes {
        [a, b] => Some(i64::from(i16::from_be_bytes([a, b]))),
        [a, b, c, d] => Some(i64::from(i32::from_be_bytes([a, b, c, d]))),
        [a, b, c, d, e, f, g, h] => Some(i64::from_be_bytes([a, b, c, d, e, f, g, h])),
        _ => None,
    }
}

fn of_text(bytes: &[u8]) -> Meaning<'_> {
    if let Some(number) = integer_of_text(bytes) {
        return Meaning::Integer(number);
    }
    match uuid_of_text(bytes) {
        Some(uuid) => Meaning::Uuid(uuid),
        None => Meaning::Bytes(bytes),
    }
}

fn of_binary(oid: u32, bytes: &[u8]) -> Meaning<'_> {
    let known = match oid {
        INT2 | INT4 | INT8 => integer_of_binary(bytes).map(Meaning::Integer),
        OID => bytes.try_into().ok().map(|bytes| Meaning::Integer(i64::from(u32::from_be_bytes(bytes)))),
        UUID => bytes.try_into().ok().map(Meaning::Uuid),
        _ => None,
    };
    known.unwrap_or(Meaning::Bytes(bytes))
}

/// A binary parameter whose type the program left to the server: its length tells.
fn of_untyped(bytes: &[u8]) -> Meaning<'_> {
    if let Some(number) = integer_of_binary(bytes) {
        return Meaning::Integer(number);
    }
    bytes.try_into().map_or(Meaning::Bytes(bytes), Meaning::Uuid)
}

/// A UUID as PostgreSQL prints it: lower case, with hyphens.
fn uuid_of_text(text: &[u8]) -> Option<[u8; 16]> {
    if text.len() != 36 {
        return None;
    }
    let mut uuid = [0; 16];
    let mut nibbles = 0;
    for (position, &byte) in text.iter().enumerate() {
        if matches!(position, 8 | 13 | 18 | 23) {
            if byte != b'-' {
                return None;
            }
            continue;
        }
        let nibble = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            _ => return None,
        };
        uuid[nibbles / 2] |= if nibbles % 2 == 0 { nibble << 4 } else { nibble };
        nibbles += 1;
    }
    Some(uuid)
}

fn hash_undoubled(bytes: &[u8]) -> Option<u32> {
    let mut plain = [0; LENGTH_MAX];
    let mut length = 0;
    let mut rest = bytes.iter();
    while let Some(&byte) = rest.next() {
        if byte == b'\'' {
            rest.next();
        }
        *plain.get_mut(length)? = byte;
        length += 1;
    }
    Some(of_text(&plain[..length]).hash())
}

/// A fast hash; whoever can choose the bytes can make two equal.
pub(crate) fn hash_bytes(bytes: &[u8], seed: u64) -> u32 {
    let mut state = seed ^ (bytes.len() as u64) << 32;
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        let mut word = [0; 8];
        word.copy_from_slice(chunk);
        state = mix(state ^ u64::from_le_bytes(word));
    }
    let mut word = [0; 8];
    word[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
    fold(u64::from_le_bytes(word), state)
}

fn mix(word: u64) -> u64 {
    let product = u128::from(word ^ 0xa076_1d64_78bd_642f) * u128::from(0xe703_7ed1_a0b4_28db_u64);
    (product as u64) ^ (product >> 64) as u64
}

fn fold(word: u64, state: u64) -> u32 {
    let mixed = mix(word ^ state);
    (mixed ^ (mixed >> 32)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(form: Form, bytes: &[u8]) -> Value<'_> {
        Value { bytes: Some(bytes), form }
    }

    #[test]
    fn a_number_means_the_same_in_every_width_and_as_text() {
        let column = Column { oid: INT4, format: Format::Binary };
        let cell = Cell::of_column(column, &[0, 0, 0, 42]);
        assert_eq!(cell.meaning, Meaning::Integer(42));
        for other in [
            value(Form::Text, b"42"),
            value(Form::Number, b"42"),
            value(Form::Quoted, b"42"),
            value(Form::Binary(0), &42_i64.to_be_bytes()),
            value(Form::Binary(INT2), &42_i16.to_be_bytes()),
        ] {
            assert_eq!(hash_of(other), Some(cell.meaning.hash()), "{other:?}");
        }
        assert_ne!(hash_of(value(Form::Text, b"43")), Some(cell.meaning.hash()));
    }

    #[test]
    fn a_column_that_was_not_described_is_told_by_its_bytes() {
        for (bytes, number) in
            [(&b"1234"[..], 1234), (&[0, 0, 4, 210], 1234), (&[0, 0, 0, 0, 0, 0, 4, 210], 1234)]
        {
            assert_eq!(Cell::of_column(UNKNOWN, bytes).meaning, Meaning::Integer(number), "{bytes:?}");
        }
        assert_eq!(Cell::of_column(UNKNOWN, b"John").meaning, Meaning::Bytes(b"John"));
    }

    #[test]
    fn only_integers_as_the_server_prints_them_are_numbers() {
        assert_eq!(integer_of_text(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(integer_of_text(b"9223372036854775807"), Some(i64::MAX));
        assert_eq!(integer_of_text(b"0"), Some(0));
        for text in [&b""[..], b"-", b"-0", b"007", b"+1", b"1.0", b"9223372036854775808", b"1e3", b" 1"] {
            assert_eq!(integer_of_text(text), None, "{}", text.escape_ascii());
        }
    }

    #[test]
    fn a_uuid_means_the_same_as_text_and_as_bytes() {
        let text = b"0123abcd-89ef-4567-89ab-cdef01234567";
        let Meaning::Uuid(bytes) = of_text(text) else {
            panic!("a uuid");
        };
        assert_eq!(bytes[..4], [0x01, 0x23, 0xab, 0xcd]);
        assert_eq!(hash_of(value(Form::Binary(0), &bytes)), hash_of(value(Form::Text, text)));
        assert_eq!(uuid_of_text(b"0123ABCD-89ef-4567-89ab-cdef01234567"), None);
    }

    #[test]
    fn quotes_doubled_in_a_literal_mean_single_ones() {
        assert_eq!(hash_of(value(Form::Quoted, b"O''Hara")), hash_of(value(Form::Text, b"O'Hara")));
    }
}
