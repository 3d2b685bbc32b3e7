//! Literals and their values.

use crate::{number, scan};

/// How a literal is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiteralKind {
    /// `10`, `-5`, `0x1F`, `1_000`.
    Integer,
    /// `1.5`, `.5`, `1e10`.
    Decimal,
    /// `'it''s'`, `N'…'`.
    String,
    /// `E'a\n'`, and plain strings where `standard_conforming_strings` is off.
    Escape,
    /// `U&'\0061'`, with its `UESCAPE` clause.
    Unicode,
    /// `$$…$$`, `$tag$…$tag$`.
    Dollar,
    /// `B'101'`.
    Bits,
    /// `X'1F'`, a bit string too.
    HexBits,
    /// MySQL: `'it\'s'`, `"a"`, `N'…'`, where a backslash escapes.
    MysqlEscape,
    /// MySQL: the same where it does not.
    MysqlString,
    /// MySQL: `X'1F'`, `0x1F`; a string of bytes.
    HexBytes,
    /// MySQL: `B'101'`, `0b101`; a string of bytes.
    BitBytes,
    /// A string or quoted identifier that the text does not close. MySQL: all that is left of a text where servers of
    /// different versions see a literal end in different places.
    Unterminated,
}

/// A literal of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Literal<'a> {
    /// The n of the `$n` that stands for it in the template. Members of a collapsed list share the number of the
    /// place that stands for them; zero if the template has a word there (`VALUES (NULL), (5)`).
    pub number: u32,
    /// How it is written.
    pub kind: LiteralKind,
    /// The bytes as written: with quotes, with a sign if that is its own.
    pub source: &'a [u8],
}

impl Literal<'_> {
    /// The value as PostgreSQL prints it as text: `'it''s'` is `it's`, `007` is `7`, `X'A'` is `1010`. Of MySQL's strings,
    /// the bytes: `0x41` is `A`.
    /// Malformed literals, unterminated ones and numbers beyond any use are given as written. Borrows from the
    /// source where nothing needs decoding, else from `scratch`, whose contents are replaced.
    pub fn value<'s>(&'s self, scratch: &'s mut Vec<u8>) -> &'s [u8] {
        scratch.clear();
        match self.kind {
            LiteralKind::Integer => number::integer(self.source, scratch),
            LiteralKind::Decimal => number::decimal(self.source, scratch),
            LiteralKind::Dollar => dollar_value(self.source),
            LiteralKind::Unterminated => self.source,
            LiteralKind::String | LiteralKind::Bits => self.plain_value(scratch),
            LiteralKind::Escape => self.escape_value(scratch),
            LiteralKind::Unicode => self.unicode_value(scratch),
            LiteralKind::HexBits => self.hex_bits_value(scratch),
            LiteralKind::MysqlEscape => self.mysql_value(true, scratch),
            LiteralKind::MysqlString => self.mysql_value(false, scratch),
            LiteralKind::HexBytes => self.digits_value(16, scratch),
            LiteralKind::BitBytes => self.digits_value(2, scratch),
        }
    }

    fn plain_value<'s>(&'s self, scratch: &'s mut Vec<u8>) -> &'s [u8] {
        if let Some(inside) = sole_segment(self.source) {
            return inside;
        }
        each_segment(self.source, false, |inside| push_undoubled(inside, scratch));
        scratch
    }

    fn escape_value<'s>(&'s self, scratch: &'s mut Vec<u8>) -> &'s [u8] {
        if let Some(inside) = sole_segment(self.source) {
            if memchr::memchr(b'\\', inside).is_none() {
                return inside;
            }
        }
        each_segment(self.source, true, |inside| push_unescaped(inside, scratch));
        scratch
    }

    fn unicode_value<'s>(&'s self, scratch: &'s mut Vec<u8>) -> &'s [u8] {
        let (string, escape) = split_uescape(self.source);
        each_segment(string, false, |inside| push_unicode(inside, escape, scratch));
        scratch
    }

    fn hex_bits_value<'s>(&'s self, scratch: &'s mut Vec<u8>) -> &'s [u8] {
        each_segment(self.source, false, |inside| {
            for &digit in inside {
                let Some(nibble) = char::from(digit).to_digit(16) else { continue };
                scratch.extend((0..4).rev().map(|bit| b'0' + ((nibble >> bit) & 1) as u8));
            }
        });
        scratch
    }
}

/// Values of MySQL's literals.
impl Literal<'_> {
    fn mysql_value<'s>(&'s self, escapes: bool, scratch: &'s mut Vec<u8>) -> &'s [u8] {
        let quote = usize::from(matches!(self.source.first(), Some(b'n' | b'N')));
        let Some(&mark) = self.source.get(quote) else { return self.source };
        let inside = self.source.get(quote + 1..self.source.len().saturating_sub(1)).unwrap_or_default();
        if memchr::memchr2(mark, b'\\', inside).is_none() {
            return inside;
        }
        let mut rest = inside.iter().copied();
        while let Some(byte) = rest.next() {
            if byte == b'\\' && escapes {
                push_mysql_escape(rest.next(), scratch);
            } else {
                scratch.push(byte);
                if byte == mark {
                    rest.next(); // doubled
                }
            }
        }
        scratch
    }

    /// Digits of a base that is a power of two, from the last one on: as many bytes as they need.
    fn digits_value<'s>(&'s self, radix: u32, scratch: &'s mut Vec<u8>) -> &'s [u8] {
        let digits = match memchr::memchr(b'\'', self.source) {
            Some(quote) => self.source.get(quote + 1..self.source.len() - 1),
            None => self.source.get(2..),
        };
        let digits = digits.unwrap_or_default();
        if !digits.iter().all(|&digit| char::from(digit).is_digit(radix)) {
            return self.source;
        }
        let per_byte = if radix == 16 { 2 } else { 8 };
        for byte in digits.rchunks(per_byte).rev() {
            let value = byte.iter().filter_map(|&digit| char::from(digit).to_digit(radix));
            scratch.push(value.fold(0, |value, digit| value * radix + digit) as u8);
        }
        scratch
    }
}

/// Decodes a backslash and the byte behind it. `%` and `_` keep theirs, for LIKE.
fn push_mysql_escape(escaped: Option<u8>, value: &mut Vec<u8>) {
    let Some(escaped) = escaped else { return };
    match escaped {
        b'0' => value.push(0),
        b'b' => value.push(8),
        b'n' => value.push(b'\n'),
        b'r' => value.push(b'\r'),
        b't' => value.push(b'\t'),
        b'Z' => value.push(26),
        b'%' | b'_' => value.extend_from_slice(&[b'\\', escaped]),
        other => value.push(other),
    }
}

/// The inside of a string of one segment that has no quote in it.
fn sole_segment(source: &[u8]) -> Option<&[u8]> {
    let quote = memchr::memchr(b'\'', source)?;
    let inside = source.get(quote + 1..source.len().checked_sub(1)?)?;
    memchr::memchr(b'\'', inside).is_none().then_some(inside)
}

fn each_segment(source: &[u8], backslash_escapes: bool, mut take: impl FnMut(&[u8])) {
    let mut quote = memchr::memchr(b'\'', source);
    while let Some(at) = quote {
        let (end, closed) = scan::segment_end(source, at + 1, backslash_escapes);
        take(source.get(at + 1..end - usize::from(closed)).unwrap_or_default());
        quote = closed.then(|| scan::continuation(source, end)).flatten();
    }
}

fn push_undoubled(inside: &[u8], value: &mut Vec<u8>) {
    let mut rest = inside;
    while let Some(at) = memchr::memchr(b'\'', rest) {
        value.extend_from_slice(&rest[..=at]);
        rest = rest.get(at + 2..).unwrap_or_default();
    }
    value.extend_from_slice(rest);
}

fn push_unescaped(inside: &[u8], value: &mut Vec<u8>) {
    let mut high = None;
    let mut rest = inside;
    while let Some(at) = memchr::memchr2(b'\'', b'\\', rest) {
        value.extend_from_slice(&rest[..at]);
        let escaped = rest.get(at + 1).copied();
        let body = rest.get(at + 2..).unwrap_or_default();
        rest = match (rest[at], escaped) {
            (b'\\', Some(letter)) => &body[push_escape(letter, body, &mut high, value)..],
            _ => {
                value.push(rest[at]);
                body
            }
        };
    }
    value.extend_from_slice(rest);
}

/// Decodes the escape `\letter` that goes on with `body`; gives how many bytes of `body` belong to it.
fn push_escape(letter: u8, body: &[u8], high: &mut Option<u32>, value: &mut Vec<u8>) -> usize {
    let (radix, digits_max) = match letter {
        b'0'..=b'7' => (8, 2),
        b'x' => (16, 2),
        b'u' => (16, 4),
        b'U' => (16, 8),
        _ => (0, 0),
    };
    let len = body.iter().take(digits_max).take_while(|&&byte| char::from(byte).is_digit(radix)).count();
    let code = body[..len].iter().filter_map(|&byte| char::from(byte).to_digit(radix));
    let number = code.fold(0_u32, |number, digit| number.wrapping_mul(radix).wrapping_add(digit));
    match letter {
        b'b' => value.push(8),
        b'f' => value.push(12),
        b'n' => value.push(b'\n'),
        b'r' => value.push(b'\r'),
        b't' => value.push(b'\t'),
        b'0'..=b'7' => value.push(((u32::from(letter - b'0') << (3 * len)) | number) as u8),
        b'x' if len > 0 => value.push(number as u8),
        b'u' | b'U' if len == digits_max => push_code_point(number, high, value),
        _ => {
            value.push(letter);
            return 0;
        }
    }
    len
}

/// Appends a code point in UTF-8; halves of surrogate pairs are joined.
fn push_code_point(code: u32, high: &mut Option<u32>, value: &mut Vec<u8>) {
    let code = match (high.take(), code) {
        (Some(first), 0xdc00..=0xdfff) => 0x10000 + ((first - 0xd800) << 10) + (code - 0xdc00),
        (_, 0xd800..=0xdbff) => {
            *high = Some(code);
            return;
        }
        _ => code,
    };
    let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
    value.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
}

/// Splits `U&'…' UESCAPE '!'` into the string and its escape byte.
fn split_uescape(source: &[u8]) -> (&[u8], u8) {
    let Some(quote) = memchr::memchr(b'\'', source) else { return (source, b'\\') };
    let (end, _) = scan::string_end(source, quote, false);
    let clause = source.get(end..).unwrap_or_default();
    let escape = memchr::memchr(b'\'', clause).and_then(|at| clause.get(at + 1)).copied();
    (source.get(..end).unwrap_or(source), escape.unwrap_or(b'\\'))
}

fn push_unicode(inside: &[u8], escape: u8, value: &mut Vec<u8>) {
    let mut high = None;
    let mut at = 0;
    while let Some(&byte) = inside.get(at) {
        at += 1;
        if byte == b'\'' {
            at += 1; // doubled
        } else if byte == escape {
            at += match inside.get(at) {
                Some(b'+') => 1 + push_hex(inside.get(at + 1..at + 7), &mut high, value),
                Some(&same) if same == escape => {
                    value.push(escape);
                    1
                }
                _ => push_hex(inside.get(at..at + 4), &mut high, value),
            };
            continue;
        }
        value.push(byte);
    }
}

fn push_hex(digits: Option<&[u8]>, high: &mut Option<u32>, value: &mut Vec<u8>) -> usize {
    let Some(digits) = digits else { return 0 };
    let code = std::str::from_utf8(digits).ok().and_then(|digits| u32::from_str_radix(digits, 16).ok());
    code.map_or(0, |code| {
        push_code_point(code, high, value);
        digits.len()
    })
}

fn dollar_value(source: &[u8]) -> &[u8] {
    let tag_len = scan::dollar_tag_len(source, 0).unwrap_or(0);
    let end = source.len().saturating_sub(tag_len);
    source.get(tag_len..end).unwrap_or_default()
}
