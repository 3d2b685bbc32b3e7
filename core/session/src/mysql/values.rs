//! Values in the form that a text would have: `7` in a text, in a row and in a binary BIGINT are one value.

use std::io::Write;

use onetrip_ledger::ValueHash;
use onetrip_wire::mysql::ColumnType;

use crate::canonical::Values;

/// Longer values are no keys.
const KEY_BYTES_MAX: usize = 64;
/// Character set of what is no text.
const BINARY: u16 = 63;

/// How values of a column or parameter are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) column_type: ColumnType,
    pub(super) is_unsigned: bool,
    /// The bytes are no text.
    pub(super) is_binary: bool,
}

impl Form {
    pub(super) fn of_column(column_type: ColumnType, is_unsigned: bool, character_set: u16) -> Self {
        Self { column_type, is_unsigned, is_binary: character_set == BINARY }
    }

    /// In the 32 bits that layouts of results have for a type.
    pub(super) fn code(self) -> u32 {
        u32::from(self.column_type.0) | u32::from(self.is_unsigned) << 8 | u32::from(self.is_binary) << 9
    }

    pub(super) fn of_code(code: u32) -> Self {
        let has = |bit: u32| code >> bit & 1 != 0;
        Self { column_type: ColumnType(code as u8), is_unsigned: has(8), is_binary: has(9) }
    }

    /// Whether columns of it are ever what a statement is looked up by.
    pub(super) fn may_be_key(self) -> bool {
        self.is_integer() || self.is_text()
    }

    fn is_integer(self) -> bool {
        use ColumnType as T;
        matches!(self.column_type, T::TINY | T::SHORT | T::INT24 | T::LONG | T::LONGLONG)
    }

    /// Whether its binary form is that of a text.
    fn is_text(self) -> bool {
        use ColumnType as T;
        matches!(
            self.column_type,
            T::VARCHAR | T::VAR_STRING | T::STRING | T::ENUM | T::SET | T::DECIMAL | T::NEWDECIMAL
        )
    }

    /// A value as a text has it; `None` for one that has no text here.
    #[inline]
    pub(super) fn text<'v>(
        self,
        value: &'v [u8],
        is_binary: bool,
        scratch: &'v mut Vec<u8>,
    ) -> Option<&'v [u8]> {
        use ColumnType as T;
        let is_long_text = matches!(self.column_type, T::TINY_BLOB | T::BLOB | T::MEDIUM_BLOB | T::LONG_BLOB);
        if !is_binary || self.is_text() || is_long_text {
            return Some(value); // as most are
        }
        self.text_of_number(value, scratch)
    }

    fn text_of_number<'v>(self, value: &[u8], scratch: &'v mut Vec<u8>) -> Option<&'v [u8]> {
        use ColumnType as T;
        let number = match *value {
            [a] if self.column_type == T::TINY => i64::from(i8::from_le_bytes([a])),
            [a, b] if matches!(self.column_type, T::SHORT | T::YEAR) => i64::from(i16::from_le_bytes([a, b])),
            [a, b, c, d] if matches!(self.column_type, T::LONG | T::INT24) => {
                i64::from(i32::from_le_bytes([a, b, c, d]))
            }
            [a, b, c, d, e, f, g, h] if self.column_type == T::LONGLONG => {
                i64::from_le_bytes([a, b, c, d, e, f, g, h])
            }
            // A language with one kind of numbers sends its keys so.
            [a, b, c, d, e, f, g, h] if self.column_type == T::DOUBLE => {
                whole(f64::from_le_bytes([a, b, c, d, e, f, g, h]))?
            }
            _ => return None,
        };
        scratch.clear();
        // Writing to memory does not fail.
        let _ = match (self.is_unsigned, value.len()) {
            (true, 8) => write!(scratch, "{}", number as u64),
            (true, bytes) => write!(scratch, "{}", number as u64 & ((1 << (8 * bytes)) - 1)),
            (false, _) => write!(scratch, "{number}"),
        };
        Some(scratch)
    }
}

/// A number without a fraction, as far as a double tells each of them apart.
fn whole(number: f64) -> Option<i64> {
    const EXACT_MAX: f64 = 9_007_199_254_740_991.0;
    (number.fract() == 0.0 && number.abs() <= EXACT_MAX).then_some(number as i64)
}

/// The hash of a parameter; zero for NULL.
pub(super) fn parameter(
    values: &Values,
    value: Option<&[u8]>,
    form: Form,
    scratch: &mut Vec<u8>,
) -> ValueHash {
    let Some(bytes) = value else { return 0 };
    if let Some(text) = form.text(bytes, true, scratch) {
        return values.literal(text);
    }
    // Equal to its like only.
    let opaque = [&[0, form.column_type.0], bytes].concat();
    values.literal(&opaque)
}

/// The hash of a column's value where it can be a key, in the 32 bits that results are kept in.
pub(super) fn column(
    values: &Values,
    value: Option<&[u8]>,
    form: Form,
    is_binary: bool,
    scratch: &mut Vec<u8>,
) -> u32 {
    let key = value.filter(|bytes| bytes.len() <= KEY_BYTES_MAX);
    key.and_then(|bytes| form.text(bytes, is_binary, scratch)).map_or(0, |text| values.literal(text) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(column_type: ColumnType, is_unsigned: bool) -> Form {
        Form { column_type, is_unsigned, is_binary: true }
    }

    #[test]
    fn one_number_has_one_hash_in_every_form() {
        let (values, scratch) = (Values::default(), &mut Vec::new());
        let text = values.literal(b"-7");
        for (column_type, bytes) in [
            (ColumnType::TINY, &(-7i8).to_le_bytes()[..]),
            (ColumnType::SHORT, &(-7i16).to_le_bytes()),
            (ColumnType::LONG, &(-7i32).to_le_bytes()),
            (ColumnType::INT24, &(-7i32).to_le_bytes()),
            (ColumnType::LONGLONG, &(-7i64).to_le_bytes()),
            (ColumnType::DOUBLE, &(-7f64).to_le_bytes()),
        ] {
            assert_eq!(parameter(&values, Some(bytes), form(column_type, false), scratch), text);
            assert_eq!(column(&values, Some(bytes), form(column_type, false), true, scratch), text as u32);
        }
        assert_eq!(column(&values, Some(b"-7"), form(ColumnType::LONG, false), false, scratch), text as u32);
        assert_eq!(parameter(&values, Some(b"-7"), form(ColumnType::VAR_STRING, false), scratch), text);
    }

    #[test]
    fn unsigned_numbers_go_up_to_the_end_of_their_bytes() {
        let mut scratch = Vec::new();
        for (column_type, bytes, text) in [
            (ColumnType::TINY, &[255][..], "255"),
            (ColumnType::SHORT, &[255; 2], "65535"),
            (ColumnType::LONG, &[255; 4], "4294967295"),
            (ColumnType::LONGLONG, &[255; 8], "18446744073709551615"),
        ] {
            assert_eq!(form(column_type, true).text(bytes, true, &mut scratch), Some(text.as_bytes()));
        }
    }

    #[test]
    fn what_has_no_text_is_equal_to_its_like_only() {
        let (values, scratch) = (Values::default(), &mut Vec::new());
        let half = parameter(&values, Some(&0.5f64.to_le_bytes()), form(ColumnType::DOUBLE, false), scratch);
        assert_eq!(
            half,
            parameter(&values, Some(&0.5f64.to_le_bytes()), form(ColumnType::DOUBLE, false), scratch)
        );
        assert_ne!(
            half,
            parameter(&values, Some(&0.25f64.to_le_bytes()), form(ColumnType::DOUBLE, false), scratch)
        );
        assert_eq!(parameter(&values, None, form(ColumnType::LONG, false), scratch), 0);
        assert_eq!(column(&values, Some(&[1, 2]), form(ColumnType::LONG, false), true, scratch), 0);
        let codes =
            [form(ColumnType::STRING, true), Form { is_binary: false, ..form(ColumnType::TINY, false) }];
        assert_eq!(codes.map(|form| Form::of_code(form.code())), codes);
    }
}
