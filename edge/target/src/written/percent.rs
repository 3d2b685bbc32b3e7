//! Percent-encoding, by libpq's strict rules.

use std::ops::Range;

use crate::ConninfoError;

/// What a plus sign stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Plus {
    /// Itself, as in libpq.
    Itself,
    /// A blank, as in Java's `URLDecoder`.
    Blank,
}

/// Decodes `text[range]`. Errors name the byte in `text`, never the text itself: it may be a password.
pub(super) fn decode(text: &str, range: Range<usize>, plus: Plus) -> Result<String, ConninfoError> {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(range.len());
    let mut position = range.start;
    while position < range.end {
        let byte = bytes[position];
        match byte {
            b'%' => {
                let digits = bytes.get(position + 1..(position + 3).min(range.end)).unwrap_or_default();
                let value = match digits {
                    &[high, low] => hex(high).zip(hex(low)).map(|(high, low)| high << 4 | low),
                    _ => None,
                };
                // libpq forbids %00 as well: its strings end there.
                let value = value.filter(|value| *value != 0).ok_or(ConninfoError::Percent { position })?;
                decoded.push(value);
                position += 3;
                continue;
            }
            b'+' if plus == Plus::Blank => decoded.push(b' '),
            byte => decoded.push(byte),
        }
        position += 1;
    }
    String::from_utf8(decoded).map_err(|_| ConninfoError::NotUtf8 {
        place: format!("the percent-encoded text at byte {}", range.start),
    })
}

/// Encodes everything but letters, digits and `-._~`.
pub(crate) fn encode(value: &str) -> String {
    let mut encoded = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push('%');
            encoded.push(DIGITS[usize::from(byte >> 4)]);
            encoded.push(DIGITS[usize::from(byte & 15)]);
        }
    }
    encoded
}

const DIGITS: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F'];

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}
