//! How a parameter is written, given the value that it comes from: learnt from one example, and only if the example
//! comes out again byte by byte.

use crate::canonical::{Cell, Meaning, integer_of_text};
use crate::value::{Form, Value};

/// The way from a value to a parameter. Each is a bijection on the values that it accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rendering {
    /// Its text, written as the form wants: quotes doubled in a literal, digits only in a number.
    Text,
    /// A big-endian integer of so many bytes.
    Integer(u8),
    /// The 16 bytes of a UUID.
    Uuid,
    /// The binary form as it came.
    Bytes,
}

impl Rendering {
    /// The way from `cell` to `example`, if there is one.
    pub(crate) fn learn(cell: Cell<'_>, example: Value<'_>, scratch: &mut Vec<u8>) -> Option<Self> {
        let bytes = example.bytes?;
        let ways: &[Self] = match (example.form, cell.meaning, bytes.len()) {
            (Form::Text | Form::Number | Form::Quoted, ..) => &[Self::Text],
            (Form::Binary(_), Meaning::Integer(_), 2) => &[Self::Integer(2), Self::Text],
            (Form::Binary(_), Meaning::Integer(_), 4) => &[Self::Integer(4), Self::Text],
            (Form::Binary(_), Meaning::Integer(_), 8) => &[Self::Integer(8), Self::Text],
            (Form::Binary(_), Meaning::Uuid(_), 16) => &[Self::Uuid],
            (Form::Binary(_), ..) => &[Self::Text, Self::Bytes],
        };
        ways.iter().copied().find(|way| {
            scratch.clear();
            way.write(cell, 0, example.form, scratch) && scratch == bytes
        })
    }

    /// Appends what `cell`, plus `step`, is as a parameter. False, and nothing certain in `out`, if it cannot be
    /// written this way without doubt.
    pub(crate) fn write(self, cell: Cell<'_>, step: i64, form: Form, out: &mut Vec<u8>) -> bool {
        let meaning = match (step, cell.meaning) {
            (0, meaning) => meaning,
            (_, Meaning::Integer(number)) => match number.checked_add(step) {
                Some(number) => Meaning::Integer(number),
                None => return false,
            },
            _ => return false,
        };
        match self {
            Self::Text if step == 0 && cell.is_text => write_text(cell.bytes, form, out),
            Self::Text => match meaning {
                Meaning::Integer(number) => write_decimal(number, form, out),
                Meaning::Uuid(uuid) => write_uuid(&uuid, form, out),
                Meaning::Bytes(_) => false,
            },
            Self::Integer(width) => match meaning {
                Meaning::Integer(number) => write_integer(number, width, out),
                _ => false,
            },
            Self::Uuid => match meaning {
                Meaning::Uuid(uuid) => append(&uuid, out),
                _ => false,
            },
            Self::Bytes => step == 0 && !cell.is_text && append(cell.bytes, out),
        }
    }
}

fn append(bytes: &[u8], out: &mut Vec<u8>) -> bool {
    out.extend_from_slice(bytes);
    true
}

/// A literal that would need an escape string is refused: which one, the driver decides. So is a number with a sign:
/// whether it belongs to the template depends on the text around it.
fn write_text(text: &[u8], form: Form, out: &mut Vec<u8>) -> bool {
    match form {
        Form::Text | Form::Binary(_) => append(text, out),
        Form::Number => is_plain_number(text) && append(text, out),
        Form::Quoted if text.contains(&b'\\') => false,
        Form::Quoted => {
            for &byte in text {
                if byte == b'\'' {
                    out.push(b'\'');
                }
                out.push(byte);
            }
            true
        }
    }
}

/// An integer without sign, or digits around one point.
fn is_plain_number(text: &[u8]) -> bool {
    let mut halves = text.splitn(2, |byte| *byte == b'.');
    let digits = |half: &[u8]| !half.is_empty() && half.iter().all(u8::is_ascii_digit);
    match (halves.next(), halves.next()) {
        (Some(whole), None) => integer_of_text(whole).is_some_and(|number| number >= 0),
        (Some(whole), Some(fraction)) => digits(whole) && digits(fraction),
        _ => false,
    }
}

fn write_decimal(number: i64, form: Form, out: &mut Vec<u8>) -> bool {
    if form == Form::Number && number < 0 {
        return false;
    }
    let mut digits = [0; 20];
    let mut start = digits.len();
    let mut rest = number.unsigned_abs();
    loop {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        out.push(b'-');
    }
    append(&digits[start..], out)
}

fn write_integer(number: i64, width: u8, out: &mut Vec<u8>) -> bool {
    match width {
        2 => i16::try_from(number).is_ok_and(|number| append(&number.to_be_bytes(), out)),
        4 => i32::try_from(number).is_ok_and(|number| append(&number.to_be_bytes(), out)),
        _ => append(&number.to_be_bytes(), out),
    }
}

fn write_uuid(uuid: &[u8; 16], form: Form, out: &mut Vec<u8>) -> bool {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    if form == Form::Number {
        return false;
    }
    for (position, byte) in uuid.iter().enumerate() {
        if matches!(position, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        out.push(HEX[usize::from(byte >> 4)]);
        out.push(HEX[usize::from(byte & 15)]);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{Column, Format};

    /// Learns from one cell and its parameter, then writes another cell.
    fn taught(column: Column, example: (&[u8], Form, &[u8]), next: &[u8]) -> Option<Vec<u8>> {
        let (cell, form, bytes) = example;
        let value = Value { bytes: Some(bytes), form };
        let way = Rendering::learn(Cell::of_column(column, cell), value, &mut Vec::new())?;
        let mut out = Vec::new();
        way.write(Cell::of_column(column, next), 0, form, &mut out).then_some(out)
    }

    const fn text(oid: u32) -> Column {
        Column { oid, format: Format::Text }
    }

    const fn binary(oid: u32) -> Column {
        Column { oid, format: Format::Binary }
    }

    #[test]
    fn an_int4_column_becomes_an_int8_parameter_and_back() {
        let wide = 77_i64.to_be_bytes();
        assert_eq!(
            taught(
                binary(23),
                (&7_i32.to_be_bytes(), Form::Binary(20), &7_i64.to_be_bytes()),
                &77_i32.to_be_bytes()
            ),
            Some(wide.to_vec())
        );
        assert_eq!(
            taught(text(23), (b"7", Form::Binary(0), &7_i64.to_be_bytes()), b"77"),
            Some(wide.to_vec())
        );
        assert_eq!(
            taught(
                binary(20),
                (&7_i64.to_be_bytes(), Form::Binary(21), &7_i16.to_be_bytes()),
                &70_000_i64.to_be_bytes()
            ),
            None,
            "too wide for two bytes"
        );
    }

    #[test]
    fn a_binary_integer_becomes_text_a_number_and_a_literal() {
        for form in [Form::Text, Form::Number, Form::Quoted] {
            assert_eq!(
                taught(binary(23), (&7_i32.to_be_bytes(), form, b"7"), &1234_i32.to_be_bytes()),
                Some(b"1234".to_vec())
            );
        }
        let negative = (-5_i32).to_be_bytes();
        assert_eq!(
            taught(binary(23), (&7_i32.to_be_bytes(), Form::Text, b"7"), &negative),
            Some(b"-5".to_vec())
        );
        assert_eq!(taught(binary(23), (&7_i32.to_be_bytes(), Form::Number, b"7"), &negative), None);
    }

    #[test]
    fn quotes_are_doubled_and_backslashes_refused() {
        let example: (&[u8], Form, &[u8]) = (b"Smith", Form::Quoted, b"Smith");
        assert_eq!(taught(text(25), example, b"O'Hara"), Some(b"O''Hara".to_vec()));
        assert_eq!(taught(text(25), example, b"a\\b"), None);
        assert_eq!(taught(text(25), (b"O'Hara", Form::Quoted, b"O''Hara"), b"x"), Some(b"x".to_vec()));
    }

    #[test]
    fn what_the_program_wrote_in_its_own_way_is_not_learnt() {
        assert_eq!(taught(text(23), (b"7", Form::Text, b"07"), b"8"), None);
        assert_eq!(taught(text(25), (b"Smith", Form::Text, b"SMITH"), b"x"), None);
        assert_eq!(
            taught(binary(701), (&1.5_f64.to_be_bytes(), Form::Text, b"1.5"), &2.5_f64.to_be_bytes()),
            None
        );
    }

    #[test]
    fn uuids_go_both_ways() {
        let plain = b"0123abcd-89ef-4567-89ab-cdef01234567";
        let bytes =
            [0x01, 0x23, 0xab, 0xcd, 0x89, 0xef, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0x01, 0x23, 0x45, 0x67];
        assert_eq!(taught(text(2950), (plain, Form::Binary(2950), &bytes), plain), Some(bytes.to_vec()));
        assert_eq!(taught(binary(2950), (&bytes, Form::Text, plain), &bytes), Some(plain.to_vec()));
    }

    #[test]
    fn a_step_moves_integers_only() {
        let mut out = Vec::new();
        let page = Cell::of_parameter(Form::Text, b"200");
        assert!(Rendering::Text.write(page, 100, Form::Text, &mut out));
        assert_eq!(out, b"300");
        assert!(!Rendering::Text.write(Cell::of_parameter(Form::Text, b"abc"), 1, Form::Text, &mut out));
    }
}
