//! `keyword=value` text, by the rules of libpq's `conninfo_parse`.

use std::ops::Range;

use super::{Format, Written, pair};
use crate::keywords::is_keyword;
use crate::{ConninfoError, Protocol};

/// Names of PostgreSQL's driver in Perl's and PHP's DSNs, where semicolons may stand for blanks.
const DRIVERS: [&str; 2] = ["pgsql:", "dbi:pg:"];

/// The length of the driver's name, if the text begins with one.
pub(super) fn driver_length(text: &str) -> Option<usize> {
    let begins = |driver: &&&str| {
        text.get(..driver.len()).is_some_and(|start| start.eq_ignore_ascii_case(driver))
            && !text[driver.len()..].starts_with("//")
    };
    DRIVERS.iter().find(begins).map(|driver| driver.len())
}

/// Takes keyword/value text apart, from `start` on, where the name of a driver ends. At least one keyword must be libpq's, so that `a=b` is not taken for an address.
pub(super) fn parse(text: &str, start: usize) -> Result<Written, ConninfoError> {
    let mut entries = Vec::new();
    let mut known = false;
    let mut scanner = Scanner { text, position: start, has_semicolons: start > 0 };
    while let Some((keyword, start)) = scanner.keyword()? {
        let (value, range) = scanner.value()?;
        known |= is_keyword(keyword) || keyword == "requiressl";
        entries.push(pair(keyword, value, start..range.end, range, "require"));
    }
    if !known {
        return Err(ConninfoError::NotRecognised);
    }
    let protocol = Protocol::Postgres;
    Ok(Written {
        format: Format::KeywordValue,
        protocol,
        entries,
        address: None,
        end: start,
        has_query: false,
    })
}

/// Writes a value so that libpq reads it back: quoted where it must be.
pub(crate) fn quote(value: &str) -> String {
    let plain = !value.is_empty() && !value.bytes().any(|byte| is_blank(byte) || b"'\\;".contains(&byte));
    if plain {
        return value.to_owned();
    }
    let mut quoted = String::with_capacity(value.len() + 2);
    quoted.push('\'');
    for character in value.chars() {
        if matches!(character, '\'' | '\\') {
            quoted.push('\\');
        }
        quoted.push(character);
    }
    quoted.push('\'');
    quoted
}

/// C's `isspace` in the C locale.
pub(crate) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

struct Scanner<'a> {
    text: &'a str,
    position: usize,
    /// A semicolon is a blank.
    has_semicolons: bool,
}

impl<'a> Scanner<'a> {
    /// The next keyword and where it begins, past its equals sign; `None` at the end.
    fn keyword(&mut self) -> Result<Option<(&'a str, usize)>, ConninfoError> {
        self.skip_blanks();
        let start = self.position;
        if self.peek().is_none() {
            return Ok(None);
        }
        while self.peek().is_some_and(|byte| byte != b'=' && !self.is_blank(byte)) {
            self.position += 1;
        }
        let keyword = &self.text[start..self.position];
        self.skip_blanks();
        if self.peek() != Some(b'=') || keyword.is_empty() {
            return Err(ConninfoError::MissingEquals { position: start });
        }
        self.position += 1;
        Ok(Some((keyword, start)))
    }

    /// The value that follows, unquoted, and the bytes it took with its quotes.
    fn value(&mut self) -> Result<(String, Range<usize>), ConninfoError> {
        self.skip_blanks();
        let start = self.position;
        let quoted = self.peek() == Some(b'\'');
        self.position += usize::from(quoted);
        let mut value = Vec::new();
        loop {
            match self.peek() {
                None if quoted => return Err(ConninfoError::Unterminated { position: start }),
                None => break,
                Some(b'\'') if quoted => {
                    self.position += 1;
                    break;
                }
                Some(byte) if !quoted && self.is_blank(byte) => break,
                Some(b'\\') => {
                    // A backslash takes the next byte as it is; the last one of the text is dropped.
                    self.position += 1;
                    let Some(escaped) = self.peek() else { continue };
                    value.push(escaped);
                }
                Some(byte) => value.push(byte),
            }
            self.position += 1;
        }
        let value = String::from_utf8(value)
            .map_err(|_| ConninfoError::NotUtf8 { place: format!("the value at byte {start}") })?;
        Ok((value, start..self.position))
    }

    fn skip_blanks(&mut self) {
        while self.peek().is_some_and(|byte| self.is_blank(byte)) {
            self.position += 1;
        }
    }

    fn is_blank(&self, byte: u8) -> bool {
        is_blank(byte) || (self.has_semicolons && byte == b';')
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.position).copied()
    }
}
