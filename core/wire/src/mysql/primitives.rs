//! Numbers and strings as MySQL writes them.
//!
//! Source: MySQL Internals, "Protocol Basics: Data Types"; MariaDB Knowledge Base, "Protocol Data Types".

use crate::reader::{EIGHT_BYTES, NULL, THREE_BYTES, TWO_BYTES};

/// Appends an `int<lenenc>`.
pub fn put_lenenc(out: &mut Vec<u8>, value: u64) {
    match value {
        0..=0xfa => out.push(value as u8),
        0xfb..=0xffff => {
            out.push(TWO_BYTES);
            out.extend_from_slice(&(value as u16).to_le_bytes());
        }
        0x1_0000..=0xff_ffff => {
            out.push(THREE_BYTES);
            put_u24(out, value as u32);
        }
        _ => {
            out.push(EIGHT_BYTES);
            out.extend_from_slice(&value.to_le_bytes());
        }
    }
}

/// Appends a `string<lenenc>`.
pub fn put_lenenc_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_lenenc(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends a `string<lenenc>`, or the byte that is NULL.
pub fn put_lenenc_value(out: &mut Vec<u8>, value: Option<&[u8]>) {
    match value {
        None => out.push(NULL),
        Some(bytes) => put_lenenc_bytes(out, bytes),
    }
}

/// Appends an `int<3>`; the highest byte of `value` is not written.
pub(super) fn put_u24(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes()[..3]);
}

/// Appends a string and its closing NUL.
pub(super) fn put_c_str(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(text);
    out.push(0);
}

/// Appends a string with its length in one byte in front; it has at most 255 bytes, for that is how it was read.
pub(super) fn put_short_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(bytes.len() as u8);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Reader, WireError};

    #[test]
    fn each_integer_has_one_form_and_it_is_the_shortest() {
        let forms: [(u64, &[u8]); 9] = [
            (0, &[0]),
            (250, &[0xfa]),
            (251, &[0xfc, 0xfb, 0]),
            (0xffff, &[0xfc, 0xff, 0xff]),
            (0x1_0000, &[0xfd, 0, 0, 1]),
            (0xff_ffff, &[0xfd, 0xff, 0xff, 0xff]),
            (0x100_0000, &[0xfe, 0, 0, 0, 1, 0, 0, 0, 0]),
            (u64::from(u32::MAX), &[0xfe, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]),
            (u64::MAX, &[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
        ];
        for (value, bytes) in forms {
            let mut out = Vec::new();
            put_lenenc(&mut out, value);
            assert_eq!(out, bytes);
            assert_eq!(Reader::new(bytes).lenenc_le(), Ok(value));
            assert_eq!(Reader::new(&bytes[..bytes.len() - 1]).lenenc_le(), Err(WireError::Truncated));
        }
        assert_eq!(Reader::new(&[0xfc, 0xfa, 0]).lenenc_le(), Err(WireError::OverlongInteger(250)));
        assert_eq!(Reader::new(&[0xfd, 0xff, 0xff, 0]).lenenc_le(), Err(WireError::OverlongInteger(0xffff)));
        let eight = [0xfe, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0];
        assert_eq!(Reader::new(&eight).lenenc_le(), Err(WireError::OverlongInteger(0xff_ffff)));
        assert_eq!(Reader::new(&[0xfb]).lenenc_le(), Err(WireError::UndefinedValue(0xfb)));
        assert_eq!(Reader::new(&[0xff]).lenenc_le(), Err(WireError::UndefinedValue(0xff)));
    }

    #[test]
    fn a_value_is_bytes_or_null_and_never_longer_than_what_is_there() {
        let mut reader = Reader::new(&[0xfb, 2, b'a', b'b', 0]);
        assert_eq!(reader.lenenc_value_le(), Ok(None));
        assert_eq!(reader.lenenc_value_le(), Ok(Some(&b"ab"[..])));
        assert_eq!(reader.lenenc_value_le(), Ok(Some(&b""[..])));
        assert_eq!(reader.lenenc_value_le(), Err(WireError::Truncated));
        let huge = [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, b'x'];
        assert_eq!(Reader::new(&huge).lenenc_bytes_le(), Err(WireError::Truncated));
    }
}
