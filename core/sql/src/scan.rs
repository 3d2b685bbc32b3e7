//! Where a token ends: PostgreSQL's lexical rules (`src/backend/parser/scan.l`) on raw bytes.
//!
//! Every function takes the text and the offset of the token's first byte, and returns the offset behind its last
//! one; an unterminated token ends with the text. Each looks at a byte a bounded number of times.

use memchr::{memchr, memchr2};

/// What a byte can start.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Word, // this and the next two go on an identifier
    Digit,
    Dollar,
    Space,
    Quote,
    DoubleQuote,
    Operator,
    Dot,
    Open,
    Close,
    Comma,
    Semicolon,
    Other,
}

pub(crate) static CLASS: [Class; 256] = classes();

const fn classes() -> [Class; 256] {
    let mut table = [Class::Other; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => Class::Space,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80..=0xff => Class::Word,
            b'0'..=b'9' => Class::Digit,
            b'\'' => Class::Quote,
            b'"' => Class::DoubleQuote,
            b'$' => Class::Dollar,
            b'.' => Class::Dot,
            b'(' | b'[' => Class::Open,
            b')' | b']' => Class::Close,
            b',' => Class::Comma,
            b';' => Class::Semicolon,
            b'~' | b'!' | b'@' | b'#' | b'^' | b'&' | b'|' | b'`' | b'?' | b'+' | b'-' | b'*' | b'/'
            | b'%' | b'<' | b'>' | b'=' => Class::Operator,
            _ => Class::Other,
        };
        byte += 1;
    }
    table
}

pub(crate) fn class(byte: u8) -> Class {
    CLASS[usize::from(byte)]
}

/// Whether an identifier may go on with this byte.
pub(crate) fn is_word_byte(byte: u8) -> bool {
    class(byte) as u8 <= Class::Dollar as u8
}

/// Whether operators are made of it.
pub fn is_operator_byte(byte: u8) -> bool {
    class(byte) == Class::Operator
}

/// A word whose first byte is at `start`.
pub fn word_end(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while text.get(at).is_some_and(|&byte| is_word_byte(byte)) {
        at += 1;
    }
    at
}

/// A number without its sign. Letters glued to it ("trailing junk", an error in PostgreSQL) count as part of it,
/// so that no half of a mistyped value is taken for an identifier.
pub fn number_end(text: &[u8], start: usize) -> usize {
    let radix_prefix = text.get(start) == Some(&b'0')
        && matches!(text.get(start + 1), Some(b'x' | b'X' | b'o' | b'O' | b'b' | b'B'));
    if radix_prefix {
        return word_end(text, start + 1);
    }
    let mut at = digits_end(text, start);
    if text.get(at) == Some(&b'.') && text.get(at + 1) != Some(&b'.') {
        at = digits_end(text, at + 1);
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(text.get(at + 1), Some(b'+' | b'-')));
        if text.get(at + 1 + sign).is_some_and(u8::is_ascii_digit) {
            at = digits_end(text, at + 1 + sign);
        }
    }
    if text.get(at).is_some_and(|&byte| class(byte) == Class::Word) { word_end(text, at) } else { at }
}

fn digits_end(text: &[u8], start: usize) -> usize {
    let mut at = start;
    loop {
        match text.get(at) {
            Some(b'0'..=b'9') => at += 1,
            Some(b'_') if at > start && text.get(at + 1).is_some_and(u8::is_ascii_digit) => at += 2,
            _ => return at,
        }
    }
}

/// One quoted string that starts at its quote, with its continuations on later lines (`'a'⏎'b'`).
/// The flag tells whether its closing quote was found.
pub(crate) fn string_end(text: &[u8], quote: usize, backslash_escapes: bool) -> (usize, bool) {
    let mut at = quote + 1;
    loop {
        let (end, closed) = segment_end(text, at, backslash_escapes);
        match closed.then(|| continuation(text, end)).flatten() {
            Some(next_quote) => at = next_quote + 1,
            None => return (end, closed),
        }
    }
}

/// One segment, from behind its opening quote to behind its closing one.
pub fn segment_end(text: &[u8], start: usize, backslash_escapes: bool) -> (usize, bool) {
    let mut at = start;
    loop {
        let rest = text.get(at..).unwrap_or_default();
        let found = if backslash_escapes { memchr2(b'\'', b'\\', rest) } else { memchr(b'\'', rest) };
        let Some(offset) = found else { return (text.len(), false) };
        at += offset;
        if text[at] == b'\\' || text.get(at + 1) == Some(&b'\'') {
            at += 2;
        } else {
            return (at + 1, true);
        }
    }
}

/// The opening quote of a string that continues the one ending at `at`: blanks with at least one line end between.
pub(crate) fn continuation(text: &[u8], mut at: usize) -> Option<usize> {
    let mut line_ended = false;
    loop {
        match *text.get(at)? {
            b'\'' if line_ended => return Some(at),
            b'\n' | b'\r' => {
                line_ended = true;
                at += 1;
            }
            b'-' if text.get(at + 1) == Some(&b'-') => at = line_comment_end(text, at),
            byte if class(byte) == Class::Space => at += 1,
            _ => return None,
        }
    }
}

/// The string behind a `UESCAPE` that follows a `U&'…'` ending at `at`; gives the offset behind it.
pub(crate) fn uescape_end(text: &[u8], at: usize) -> Option<usize> {
    let word = blanks_end(text, at);
    let behind = word + b"uescape".len();
    if !text.get(word..behind)?.eq_ignore_ascii_case(b"uescape") {
        return None;
    }
    let quote = blanks_end(text, behind);
    (text.get(quote) == Some(&b'\'')).then(|| string_end(text, quote, false).0)
}

pub(crate) fn blanks_end(text: &[u8], mut at: usize) -> usize {
    while text.get(at).is_some_and(|&byte| class(byte) == Class::Space) {
        at += 1;
    }
    at
}

/// A quoted name; the flag tells whether its closing quote was found.
pub fn quoted_identifier_end(text: &[u8], quote: usize) -> (usize, bool) {
    let mut at = quote + 1;
    while let Some(offset) = memchr(b'"', text.get(at..).unwrap_or_default()) {
        at += offset + 1;
        if text.get(at) != Some(&b'"') {
            return (at, true);
        }
        at += 1;
    }
    (text.len(), false)
}

/// The length of an opening dollar quote (`$$`, `$tag$`) at `start`, if there is one.
pub fn dollar_tag_len(text: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        match *text.get(at)? {
            b'$' => return Some(at + 1 - start),
            byte if class(byte) == Class::Word || (at > start + 1 && byte.is_ascii_digit()) => at += 1,
            _ => return None,
        }
    }
}

/// A dollar-quoted string whose opening tag has `tag_len` bytes; the flag tells whether it was closed.
pub fn dollar_quote_end(text: &[u8], start: usize, tag_len: usize) -> (usize, bool) {
    let tag = &text[start..start + tag_len];
    let mut at = start + tag_len;
    while let Some(offset) = memchr(b'$', &text[at..]) {
        at += offset;
        if text[at..].starts_with(tag) {
            return (at + tag_len, true);
        }
        at += 1;
    }
    (text.len(), false)
}

/// A `--` comment, without the line end.
pub(crate) fn line_comment_end(text: &[u8], start: usize) -> usize {
    memchr2(b'\n', b'\r', &text[start..]).map_or(text.len(), |offset| start + offset)
}

/// A `/* … */` comment; they nest. The flag tells whether it was closed.
pub(crate) fn block_comment_end(text: &[u8], start: usize) -> (usize, bool) {
    let mut at = start + 2;
    let mut depth = 1_u32;
    while let Some(offset) = memchr2(b'*', b'/', text.get(at..).unwrap_or_default()) {
        at += offset;
        match (text[at], text.get(at + 1)) {
            (b'*', Some(b'/')) => {
                at += 2;
                depth -= 1;
                if depth == 0 {
                    return (at, true);
                }
            }
            (b'/', Some(b'*')) => {
                at += 2;
                depth += 1;
            }
            _ => at += 1,
        }
    }
    (text.len(), false)
}

/// An operator: the longest run of operator bytes, less a comment's start and less a trailing sign that
/// PostgreSQL gives to the next token (`=-5` is `=` and `-5`).
pub fn operator_end(text: &[u8], start: usize) -> usize {
    let mut end = start + 1;
    while text.get(end).is_some_and(|&byte| is_operator_byte(byte)) && !is_comment_start(text, end) {
        end += 1;
    }
    let keeps_sign = text[start..end]
        .iter()
        .any(|byte| matches!(byte, b'~' | b'!' | b'@' | b'#' | b'^' | b'&' | b'|' | b'`' | b'?' | b'%'));
    if !keeps_sign {
        while end > start + 1 && matches!(text[end - 1], b'+' | b'-') {
            end -= 1;
        }
    }
    end
}

/// What no token is made of, from `at` on: blanks and comments. The flag tells whether the last comment was closed.
pub fn gap_end(text: &[u8], mut at: usize) -> (usize, bool) {
    loop {
        at = blanks_end(text, at);
        match text.get(at..at + 2) {
            Some(b"--") => at = line_comment_end(text, at),
            Some(b"/*") => match block_comment_end(text, at) {
                (end, true) => at = end,
                unclosed => return unclosed,
            },
            _ => return (at, true),
        }
    }
}

pub(crate) fn is_comment_start(text: &[u8], at: usize) -> bool {
    matches!((text.get(at), text.get(at + 1)), (Some(b'-'), Some(b'-')) | (Some(b'/'), Some(b'*')))
}

/// Whether a bare number starts here: a digit, or a dot with a digit behind it.
pub fn is_number_start(text: &[u8], at: usize) -> bool {
    match text.get(at) {
        Some(b'0'..=b'9') => true,
        Some(b'.') => text.get(at + 1).is_some_and(u8::is_ascii_digit),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_blanks_and_comments_of_both_kinds() {
        assert_eq!(gap_end(b" /* a /* b */ */ -- c\n\tx", 0), (23, true));
        assert_eq!(gap_end(b"x -- c", 1), (6, true));
        assert_eq!(gap_end(b"/ -", 0), (0, true));
        assert_eq!(gap_end(b" /* a /* b */", 0), (13, false));
    }
}
