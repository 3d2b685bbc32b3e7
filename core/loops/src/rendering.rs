//! How a parameter is written, given the value that it comes from, and another one of the program's as an example.
//! What cannot be written without doubt is refused.

use crate::canonical::{Cell, Meaning, integer_of_text, is_textual};
use crate::value::{Form, Value};

/// Appends what `cell`, plus `step`, is as a parameter that is written like `example`. Each way is a bijection on the
/// values that it accepts, so that an example that comes out byte by byte is proof. False, and nothing certain in
/// `out`, if there is none.
pub(crate) fn render(cell: Cell<'_>, step: i64, example: Value<'_>, out: &mut Vec<u8>) -> bool {
    let meaning = match (step, cell.meaning) {
        (0, meaning) => meaning,
        (_, Meaning::Integer(number)) => match number.checked_add(step) {
            Some(number) => Meaning::Integer(number),
            None => return false,
        },
        _ => return false,
    };
    let width = example.bytes.map_or(0, <[u8]>::len);
    match (example.form, meaning) {
        (Form::Binary(oid), Meaning::Integer(number)) if !is_textual(oid) => {
            write_integer(number, width, out)
        }
        (Form::Binary(oid), Meaning::Uuid(uuid)) if !is_textual(oid) => width == 16 && append(&uuid, out),
        (Form::Binary(oid), Meaning::Bytes(bytes)) if !is_textual(oid) => append(bytes, out),
        (form, _) if step == 0 && cell.is_text => write_text(cell.bytes, form, out),
        (form, Meaning::Integer(number)) => write_decimal(number, form, out),
        (form, Meaning::Uuid(uuid)) => write_uuid(&uuid, form, out),
        (_, Meaning::Bytes(_)) => false,
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

fn write_integer(number: i64, width: usize, out: &mut Vec<u8>) -> bool {
    match width {
        2 => i16::try_from(number).is_ok_and(|number| append(&number.to_be_bytes(), out)),
        4 => i32::try_from(number).is_ok_and(|number| append(&number.to_be_bytes(), out)),
        8 => append(&number.to_be_bytes(), out),
        _ => false,
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
        let example = Value { bytes: Some(bytes), form };
        let mut out = Vec::new();
        if !render(Cell::of_column(column, cell), 0, example, &mut out) || out != bytes {
            return None;
        }
        out.clear();
        render(Cell::of_column(column, next), 0, example, &mut out).then_some(out)
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
        let example = Value { bytes: Some(b"200"), form: Form::Text };
        assert!(render(Cell::of_parameter(Form::Text, b"200"), 100, example, &mut out));
        assert_eq!(out, b"300");
        assert!(!render(Cell::of_parameter(Form::Text, b"abc"), 1, example, &mut out));
    }

    #[test]
    fn bytes_that_look_like_nothing_else_go_as_they_came() {
        let stamp = 7_000_000_000_u64.to_be_bytes();
        let next = 7_000_000_001_u64.to_be_bytes();
        assert_eq!(taught(binary(1184), (&stamp, Form::Binary(1184), &stamp), &next), Some(next.to_vec()));
        assert_eq!(taught(binary(25), (b"42", Form::Binary(25), b"42"), b"137"), Some(b"137".to_vec()));
    }
}
