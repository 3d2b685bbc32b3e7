//! Where a token ends by MySQL's and MariaDB's lexical rules, on raw bytes.
//!
//! Every function takes the text and the offset of the token's first byte, and returns the offset behind its last
//! one; an unterminated token ends with the text. Each looks at a byte a bounded number of times.

use memchr::{memchr, memchr2, memmem};

/// What a byte can start.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Word, // this and the next one go on an identifier
    Digit,
    Space,
    Quote,
    DoubleQuote,
    Backtick,
    Dot,
    Open,
    Close,
    Comma,
    Semicolon,
    Marker,
    At,
    Hash,
    Minus,
    Slash,
    Star,
    Other,
}

static CLASS: [Class; 256] = classes();

const fn classes() -> [Class; 256] {
    let mut table = [Class::Other; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => Class::Space,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' | 0x80..=0xff => Class::Word,
            b'0'..=b'9' => Class::Digit,
            b'\'' => Class::Quote,
            b'"' => Class::DoubleQuote,
            b'`' => Class::Backtick,
            b'.' => Class::Dot,
            b'(' => Class::Open,
            b')' => Class::Close,
            b',' => Class::Comma,
            b';' => Class::Semicolon,
            b'?' => Class::Marker,
            b'@' => Class::At,
            b'#' => Class::Hash,
            b'-' => Class::Minus,
            b'/' => Class::Slash,
            b'*' => Class::Star,
            _ => Class::Other,
        };
        byte += 1;
    }
    table
}

pub(crate) fn class(byte: u8) -> Class {
    CLASS[usize::from(byte)]
}

fn is_word_byte(byte: u8) -> bool {
    matches!(class(byte), Class::Word | Class::Digit)
}

/// Whether a dot directly behind this byte separates names.
pub(crate) fn ends_name(byte: u8) -> bool {
    is_word_byte(byte) || matches!(byte, b'`' | b'"')
}

pub(crate) fn word_end(text: &[u8], start: usize) -> usize {
    end_of(text, start, is_word_byte)
}

/// A variable's name behind its `@`, with what stands before a dot.
pub(crate) fn variable_end(text: &[u8], start: usize) -> usize {
    end_of(text, start, |byte| is_word_byte(byte) || byte == b'.')
}

fn digits_end(text: &[u8], start: usize) -> usize {
    end_of(text, start, |byte| byte.is_ascii_digit())
}

fn end_of(text: &[u8], start: usize, goes_on: impl Fn(u8) -> bool) -> usize {
    let mut at = start;
    while text.get(at).is_some_and(|&byte| goes_on(byte)) {
        at += 1;
    }
    at
}

/// What begins with a digit, or with a dot and a digit, and where it ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Number {
    Integer(usize),
    Decimal(usize),
    /// `0x1F`.
    Hex(usize),
    /// `0b101`.
    Bits(usize),
    /// A name.
    Word,
}

/// A number without its sign. Digits that go on with letters are a name, but for exponents, `0x` and `0b`.
pub(crate) fn number(text: &[u8], start: usize) -> Number {
    if let Some(number) = prefixed(text, start) {
        return number;
    }
    let end = digits_end(text, start);
    match text.get(end) {
        Some(b'.') => {
            let end = digits_end(text, end + 1);
            Number::Decimal(exponent_end(text, end).unwrap_or(end))
        }
        Some(&byte) if is_word_byte(byte) => exponent_end(text, end).map_or(Number::Word, Number::Decimal),
        _ => Number::Integer(end),
    }
}

fn prefixed(text: &[u8], start: usize) -> Option<Number> {
    let digits = start + 2;
    let (end, number) = match text.get(start..digits)? {
        b"0x" => {
            let end = end_of(text, digits, |byte| byte.is_ascii_hexdigit());
            (end, Number::Hex(end))
        }
        b"0b" => {
            let end = end_of(text, digits, |byte| matches!(byte, b'0' | b'1'));
            (end, Number::Bits(end))
        }
        _ => return None,
    };
    let is_name = end == digits || text.get(end).is_some_and(|&byte| is_word_byte(byte));
    Some(if is_name { Number::Word } else { number })
}

fn exponent_end(text: &[u8], at: usize) -> Option<usize> {
    if !matches!(text.get(at), Some(b'e' | b'E')) {
        return None;
    }
    let digits = at + 1 + usize::from(matches!(text.get(at + 1), Some(b'+' | b'-')));
    text.get(digits).is_some_and(u8::is_ascii_digit).then(|| digits_end(text, digits))
}

/// Whether a number may start here: a digit, or a dot with a digit behind it.
pub(crate) fn is_number_start(text: &[u8], at: usize) -> bool {
    match text.get(at) {
        Some(b'0'..=b'9') => true,
        Some(b'.') => text.get(at + 1).is_some_and(u8::is_ascii_digit),
        _ => false,
    }
}

/// A string in the quotes that are at `quote`; two of them are one within. The flag tells whether it was closed.
pub(crate) fn quoted_end(text: &[u8], quote: usize, backslash_escapes: bool) -> (usize, bool) {
    let mark = text[quote];
    let mut at = quote + 1;
    loop {
        let rest = text.get(at..).unwrap_or_default();
        let found = if backslash_escapes { memchr2(mark, b'\\', rest) } else { memchr(mark, rest) };
        let Some(offset) = found else { return (text.len(), false) };
        at += offset;
        if text[at] == b'\\' || text.get(at + 1) == Some(&mark) {
            at += 2;
        } else {
            return (at + 1, true);
        }
    }
}

/// An identifier in these quotes, in which a backslash is itself.
pub(crate) fn quoted_identifier_end(text: &[u8], start: usize, quote: u8) -> (usize, bool) {
    let mut at = start + 1;
    while let Some(offset) = memchr(quote, text.get(at..).unwrap_or_default()) {
        at += offset + 1;
        if text.get(at) != Some(&quote) {
            return (at, true);
        }
        at += 1;
    }
    (text.len(), false)
}

/// Whether the `-` at `at` begins a comment: another one behind it, and a blank or control byte, or the end, behind that.
pub(crate) fn is_line_comment(text: &[u8], at: usize) -> bool {
    text.get(at + 1) == Some(&b'-')
        && text.get(at + 2).is_none_or(|&byte| byte.is_ascii_control() || byte == b' ')
}

/// The end of a comment's line, without its line feed. A NUL ends it too.
pub(crate) fn line_comment_end(text: &[u8], start: usize) -> usize {
    let rest = text.get(start..).unwrap_or_default();
    memchr2(b'\n', 0, rest).map_or(text.len(), |offset| start + offset)
}

/// A `/* … */` comment; they do not nest. The flag tells whether it was closed.
pub(crate) fn block_comment_end(text: &[u8], start: usize) -> (usize, bool) {
    let body = start + 2;
    let end = text.get(body..).and_then(|rest| memmem::find(rest, b"*/"));
    end.map_or((text.len(), false), |offset| (body + offset + 2, true))
}

/// Where the code of `/*! … */`, `/*!40101 … */` or MariaDB's `/*M! … */` starts, if such a comment is at `at`.
pub(crate) fn executable_start(text: &[u8], at: usize) -> Option<usize> {
    let mut mark = at + 2;
    mark += usize::from(text.get(mark) == Some(&b'M'));
    if text.get(mark) != Some(&b'!') {
        return None;
    }
    let digits = digits_end(text, mark + 1);
    // Versions have five digits, or six; more are code.
    let version = match digits - mark - 1 {
        0..=4 => 0,
        5 => 5,
        _ => 6,
    };
    Some(mark + 1 + version)
}

/// Where the code of such a comment ends for a server that skips it; comments within do nest then, once.
pub(crate) fn skipped_end(text: &[u8], code: usize) -> usize {
    let mut at = code;
    loop {
        let rest = text.get(at..).unwrap_or_default();
        let Some(offset) = memchr2(b'*', b'/', rest) else { return text.len() };
        at += offset;
        match (text[at], text.get(at + 1)) {
            (b'*', Some(b'/')) => return at,
            (b'/', Some(b'*')) => at = block_comment_end(text, at).0,
            _ => at += 1,
        }
    }
}

/// Any other token: `\N` is one, all else is one byte.
pub(crate) fn other_end(text: &[u8], start: usize) -> usize {
    let is_null = text[start] == b'\\' && text.get(start + 1) == Some(&b'N');
    start + 1 + usize::from(is_null)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_numbers_or_begin_names() {
        let forms: [(&[u8], Number); 18] = [
            (b"12,", Number::Integer(2)),
            (b"12a", Number::Word),
            (b"12.5", Number::Decimal(4)),
            (b"12.", Number::Decimal(3)),
            (b".5", Number::Decimal(2)),
            (b"1e5", Number::Decimal(3)),
            (b"1e5a", Number::Decimal(3)),
            (b"1e+5", Number::Decimal(4)),
            (b"1e", Number::Word),
            (b"1e+", Number::Word),
            (b"1.5e-3x", Number::Decimal(6)),
            (b"0x1F", Number::Hex(4)),
            (b"0X1F", Number::Word),
            (b"0x", Number::Word),
            (b"0x1G", Number::Word),
            (b"0b101", Number::Bits(5)),
            (b"0b102", Number::Word),
            (b"0", Number::Integer(1)),
        ];
        for (text, expected) in forms {
            assert_eq!(number(text, 0), expected, "{}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn only_a_blank_behind_two_hyphens_begins_a_comment() {
        for (text, expected) in [
            (&b"-- x"[..], true),
            (b"--\n", true),
            (b"--", true),
            (b"--x", false),
            (b"--1", false),
            (b"-", false),
        ] {
            assert_eq!(is_line_comment(text, 0), expected);
        }
    }
}
