//! Tokens by PostgreSQL's lexical rules, as offsets into the text.

use onetrip_sql::scan;

use crate::error::{SqlError, SqlResult};

/// Longest statement that is parsed, in tokens.
const TOKENS_MAX: usize = 1 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Word,
    QuotedName,
    Integer,
    Decimal,
    /// `'…'`
    Text,
    /// `E'…'`
    EscapeText,
    /// `$tag$…$tag$`
    DollarText,
    /// `$n`
    Parameter,
    Operator,
    /// `::`
    Cast,
    Open,
    Close,
    OpenBracket,
    CloseBracket,
    Comma,
    Dot,
    Semicolon,
    Colon,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Token {
    pub(crate) fn text(self, text: &str) -> &str {
        &text[self.start as usize..self.end as usize]
    }
}

/// Splits a text; comments and blanks leave no token.
pub(crate) fn tokenize(text: &str) -> SqlResult<Vec<Token>> {
    let mut lexer = Lexer { text, bytes: text.as_bytes(), at: 0 };
    let mut tokens = Vec::new();
    while let Some(token) = lexer.next()? {
        if tokens.len() == TOKENS_MAX {
            return Err(SqlError::new("54001", "statement is too long"));
        }
        tokens.push(token);
    }
    Ok(tokens)
}

struct Lexer<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
}

impl Lexer<'_> {
    fn next(&mut self) -> SqlResult<Option<Token>> {
        let (start, is_closed) = scan::gap_end(self.bytes, self.at);
        if !is_closed {
            return Err(SqlError::new("42601", "unterminated /* comment").at(self.last_comment()));
        }
        let Some(&byte) = self.bytes.get(start) else { return Ok(None) };
        let next = self.bytes.get(start + 1);
        let (kind, end) = match byte {
            b'\'' => (Kind::Text, self.text_end(start, start, false)?),
            b'"' => match scan::quoted_identifier_end(self.bytes, start) {
                (end, true) => (Kind::QuotedName, end),
                _ => return Err(SqlError::new("42601", "unterminated quoted identifier").at(start)),
            },
            b'e' | b'E' if next == Some(&b'\'') => (Kind::EscapeText, self.text_end(start, start + 1, true)?),
            b'n' | b'N' if next == Some(&b'\'') => {
                return Err(SqlError::unsupported("national character strings are not supported").at(start));
            }
            b'b' | b'B' | b'x' | b'X' if next == Some(&b'\'') => {
                return Err(SqlError::unsupported("bit strings are not supported").at(start));
            }
            b'u' | b'U' if matches!(self.bytes.get(start + 1..start + 3), Some(b"&'" | b"&\"")) => {
                return Err(SqlError::unsupported("U& strings are not supported").at(start));
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.. => (Kind::Word, scan::word_end(self.bytes, start)),
            _ if scan::is_number_start(self.bytes, start) => self.number(start)?,
            b'$' => self.dollar(start)?,
            b':' if next == Some(&b':') => (Kind::Cast, start + 2),
            b':' => (Kind::Colon, start + 1),
            b'(' => (Kind::Open, start + 1),
            b')' => (Kind::Close, start + 1),
            b'[' => (Kind::OpenBracket, start + 1),
            b']' => (Kind::CloseBracket, start + 1),
            b',' => (Kind::Comma, start + 1),
            b'.' => (Kind::Dot, start + 1),
            b';' => (Kind::Semicolon, start + 1),
            _ if scan::is_operator_byte(byte) => (Kind::Operator, scan::operator_end(self.bytes, start)),
            _ => return Err(self.syntax_error(start)),
        };
        self.at = end;
        Ok(Some(Token { kind, start: start as u32, end: end as u32 }))
    }

    /// Where the comment begins that nobody closes.
    fn last_comment(&self) -> usize {
        let is_open = |at: &usize| self.bytes[*at..].starts_with(b"/*") && !scan::gap_end(self.bytes, *at).1;
        (self.at..self.bytes.len()).find(is_open).unwrap_or(self.at)
    }

    /// A text whose opening quote is at `quote`; its continuation on a later line would be another token.
    fn text_end(&self, start: usize, quote: usize, has_escapes: bool) -> SqlResult<usize> {
        match scan::segment_end(self.bytes, quote + 1, has_escapes) {
            (end, true) => Ok(end),
            _ => Err(SqlError::new("42601", "unterminated quoted string").at(start)),
        }
    }

    fn number(&self, start: usize) -> SqlResult<(Kind, usize)> {
        let end = scan::number_end(self.bytes, start);
        let text = &self.bytes[start..end];
        if text.iter().all(u8::is_ascii_digit) {
            return Ok((Kind::Integer, end));
        }
        let is_of_number = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'+' | b'-');
        let mut exponent = text.splitn(2, |byte| byte.eq_ignore_ascii_case(&b'e'));
        let is_part = |part: &[u8]| !part.is_empty() && part.iter().all(is_of_number);
        if exponent.all(is_part) {
            return Ok((Kind::Decimal, end));
        }
        let near = String::from_utf8_lossy(text);
        let message = format!("trailing junk after numeric literal at or near \"{near}\"");
        Err(SqlError::new("42601", message).at(start))
    }

    fn dollar(&self, start: usize) -> SqlResult<(Kind, usize)> {
        let digits = self.bytes[start + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits > 0 {
            return Ok((Kind::Parameter, start + 1 + digits));
        }
        let Some(tag) = scan::dollar_tag_len(self.bytes, start) else {
            return Err(self.syntax_error(start));
        };
        match scan::dollar_quote_end(self.bytes, start, tag) {
            (end, true) => Ok((Kind::DollarText, end)),
            _ => Err(SqlError::new("42601", "unterminated dollar-quoted string").at(start)),
        }
    }

    fn syntax_error(&self, start: usize) -> SqlError {
        let shown = self.text[start..].chars().next().unwrap_or(' ');
        SqlError::new("42601", format!("syntax error at or near \"{shown}\"")).at(start)
    }
}

/// The value of a string token.
pub(crate) fn string_value(kind: Kind, text: &str) -> SqlResult<String> {
    match kind {
        Kind::EscapeText => unescape(&text[2..text.len() - 1]),
        Kind::DollarText => {
            let tag_len = text[1..].find('$').map_or(2, |at| at + 2);
            Ok(text[tag_len..text.len() - tag_len].to_owned())
        }
        _ => Ok(text[1..text.len() - 1].replace("''", "'")),
    }
}

fn unescape(text: &str) -> SqlResult<String> {
    let invalid = || SqlError::new("22025", "invalid escape sequence in string");
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\'' => {
                bytes.next();
                out.push(b'\'');
            }
            b'\\' => match bytes.next().ok_or_else(invalid)? {
                b'n' => out.push(b'\n'),
                b't' => out.push(b'\t'),
                b'r' => out.push(b'\r'),
                b'b' => out.push(8),
                b'f' => out.push(12),
                b'x' => {
                    let mut code = 0u8;
                    for _ in 0..2 {
                        let Some(digit) = bytes.peek().and_then(|byte| crate::value::hex_digit(*byte)) else {
                            break;
                        };
                        code = code << 4 | digit;
                        bytes.next();
                    }
                    out.push(code);
                }
                letter @ (b'u' | b'U') => {
                    let mut code = 0;
                    for _ in 0..if letter == b'u' { 4 } else { 8 } {
                        let digit = bytes.next().and_then(crate::value::hex_digit).ok_or_else(invalid)?;
                        code = code << 4 | u32::from(digit);
                    }
                    let character = char::from_u32(code).ok_or_else(invalid)?;
                    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                }
                digit @ b'0'..=b'7' => {
                    let mut code = u32::from(digit - b'0');
                    for _ in 0..2 {
                        let Some(digit) = bytes.peek().filter(|byte| matches!(byte, b'0'..=b'7')) else {
                            break;
                        };
                        code = code * 8 + u32::from(digit - b'0');
                        bytes.next();
                    }
                    out.push(code as u8);
                }
                other => out.push(other),
            },
            other => out.push(other),
        }
    }
    let invalid = || SqlError::new("22021", "invalid byte sequence for encoding \"UTF8\"");
    String::from_utf8(out).ok().filter(|text| !text.contains('\0')).ok_or_else(invalid)
}

/// A name as PostgreSQL folds it: small case unless quoted.
pub(crate) fn name_value(kind: Kind, text: &str) -> String {
    match kind {
        Kind::QuotedName => text[1..text.len() - 1].replace("\"\"", "\""),
        _ => text.to_ascii_lowercase(),
    }
}

/// The text as an SQL string.
pub(crate) fn quote_text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// The text as a quoted name.
pub(crate) fn quote_name(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts(text: &str) -> Vec<&str> {
        tokenize(text).unwrap().into_iter().map(|token| token.text(text)).collect()
    }

    #[test]
    fn tokens_end_where_postgresql_ends_them() {
        assert_eq!(texts("a=-5--x\n::int4[1]"), ["a", "=", "-", "5", "::", "int4", "[", "1", "]"]);
        assert_eq!(
            texts("'it''s' E'\\'' $$;$$ $q$ $$ $q$ $12"),
            ["'it''s'", "E'\\''", "$$;$$", "$q$ $$ $q$", "$12"]
        );
        assert_eq!(
            texts("1.5e-3 .5 1..2 \"a\"\"b\".c"),
            ["1.5e-3", ".5", "1", ".", ".2", "\"a\"\"b\"", ".", "c"]
        );
        assert_eq!(texts("/* a /* b */ c */ x /*"[..20].trim()), ["x"]);
        assert_eq!(tokenize("'a").unwrap_err().sqlstate, "42601");
        assert_eq!(tokenize("/* a").unwrap_err().sqlstate, "42601");
        for junk in ["1a", "0x1F", "1_000", "1e", "1e5e5", "1.5x"] {
            assert_eq!(tokenize(junk).unwrap_err().sqlstate, "42601", "{junk}");
        }
    }

    #[test]
    fn escapes_are_resolved() {
        assert_eq!(string_value(Kind::EscapeText, r"E'a\n\'\x41\u00e9\101'''").unwrap(), "a\n'AéA'");
        assert_eq!(string_value(Kind::DollarText, "$q$it's$q$").unwrap(), "it's");
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,60}") {
            for token in tokenize(&text).unwrap_or_default() {
                let text = token.text(&text);
                if matches!(token.kind, Kind::Text | Kind::EscapeText | Kind::DollarText) {
                    let _ = string_value(token.kind, text);
                }
            }
        }
    }
}
