//! Tokens by PostgreSQL's lexical rules, as offsets into the text.

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
        self.skip_blanks()?;
        let start = self.at;
        let Some(&byte) = self.bytes.get(start) else { return Ok(None) };
        let kind = match byte {
            b'\'' => self.quoted(start, b'\'', Kind::Text)?,
            b'"' => self.quoted(start, b'"', Kind::QuotedName)?,
            b'e' | b'E' if self.bytes.get(start + 1) == Some(&b'\'') => self.escape_text(start)?,
            b'n' | b'N' if self.bytes.get(start + 1) == Some(&b'\'') => {
                return Err(SqlError::unsupported("national character strings are not supported").at(start));
            }
            b'b' | b'B' | b'x' | b'X' if self.bytes.get(start + 1) == Some(&b'\'') => {
                return Err(SqlError::unsupported("bit strings are not supported").at(start));
            }
            b'u' | b'U' if matches!(self.bytes.get(start + 1..start + 3), Some(b"&'" | b"&\"")) => {
                return Err(SqlError::unsupported("U& strings are not supported").at(start));
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.. => {
                self.take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..));
                Kind::Word
            }
            b'0'..=b'9' => self.number(),
            b'.' if self.bytes.get(start + 1).is_some_and(u8::is_ascii_digit) => self.number(),
            b'$' => self.dollar(start)?,
            b':' if self.bytes.get(start + 1) == Some(&b':') => self.skip(2, Kind::Cast),
            b':' => self.skip(1, Kind::Colon),
            b'(' => self.skip(1, Kind::Open),
            b')' => self.skip(1, Kind::Close),
            b'[' => self.skip(1, Kind::OpenBracket),
            b']' => self.skip(1, Kind::CloseBracket),
            b',' => self.skip(1, Kind::Comma),
            b'.' => self.skip(1, Kind::Dot),
            b';' => self.skip(1, Kind::Semicolon),
            _ if is_operator(byte) => self.operator(),
            _ => {
                let shown = self.text[start..].chars().next().unwrap_or(' ');
                let message = format!("syntax error at or near \"{shown}\"");
                return Err(SqlError::new("42601", message).at(start));
            }
        };
        Ok(Some(Token { kind, start: start as u32, end: self.at as u32 }))
    }

    fn skip(&mut self, count: usize, kind: Kind) -> Kind {
        self.at += count;
        kind
    }

    fn take_while(&mut self, keep: impl Fn(u8) -> bool) {
        while self.bytes.get(self.at).is_some_and(|byte| keep(*byte)) {
            self.at += 1;
        }
    }

    fn skip_blanks(&mut self) -> SqlResult<()> {
        loop {
            self.take_while(|byte| byte.is_ascii_whitespace() || byte == 0x0b);
            match self.bytes.get(self.at..self.at + 2) {
                Some(b"--") => self.take_while(|byte| byte != b'\n' && byte != b'\r'),
                Some(b"/*") => self.block_comment()?,
                _ => return Ok(()),
            }
        }
    }

    fn block_comment(&mut self) -> SqlResult<()> {
        let start = self.at;
        let mut depth = 0u32;
        loop {
            match self.bytes.get(self.at..self.at + 2) {
                Some(b"/*") => {
                    depth += 1;
                    self.at += 2;
                }
                Some(b"*/") => {
                    depth -= 1;
                    self.at += 2;
                    if depth == 0 {
                        return Ok(());
                    }
                }
                Some(_) => self.at += 1,
                None => return Err(SqlError::new("42601", "unterminated /* comment").at(start)),
            }
        }
    }

    /// A text or name whose quote is doubled inside.
    fn quoted(&mut self, start: usize, quote: u8, kind: Kind) -> SqlResult<Kind> {
        self.at += 1;
        loop {
            match self.bytes.get(self.at) {
                Some(byte) if *byte == quote && self.bytes.get(self.at + 1) == Some(&quote) => self.at += 2,
                Some(byte) if *byte == quote => {
                    self.at += 1;
                    return Ok(kind);
                }
                Some(_) => self.at += 1,
                None => {
                    let what = if kind == Kind::Text { "string" } else { "identifier" };
                    return Err(SqlError::new("42601", format!("unterminated quoted {what}")).at(start));
                }
            }
        }
    }

    fn escape_text(&mut self, start: usize) -> SqlResult<Kind> {
        self.at += 2;
        loop {
            match (self.bytes.get(self.at), self.bytes.get(self.at + 1)) {
                (Some(b'\\'), Some(_)) | (Some(b'\''), Some(b'\'')) => self.at += 2,
                (Some(b'\''), _) => {
                    self.at += 1;
                    return Ok(Kind::EscapeText);
                }
                (Some(_), _) => self.at += 1,
                (None, _) => return Err(SqlError::new("42601", "unterminated quoted string").at(start)),
            }
        }
    }

    fn number(&mut self) -> Kind {
        let mut kind = Kind::Integer;
        self.take_while(|byte| byte.is_ascii_digit());
        if self.bytes.get(self.at) == Some(&b'.') && self.bytes.get(self.at + 1) != Some(&b'.') {
            kind = Kind::Decimal;
            self.at += 1;
            self.take_while(|byte| byte.is_ascii_digit());
        }
        if matches!(self.bytes.get(self.at), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(self.bytes.get(self.at + 1), Some(b'+' | b'-')));
            if self.bytes.get(self.at + 1 + sign).is_some_and(u8::is_ascii_digit) {
                kind = Kind::Decimal;
                self.at += 1 + sign;
                self.take_while(|byte| byte.is_ascii_digit());
            }
        }
        kind
    }

    fn dollar(&mut self, start: usize) -> SqlResult<Kind> {
        self.at += 1;
        if self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.take_while(|byte| byte.is_ascii_digit());
            return Ok(Kind::Parameter);
        }
        self.take_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80);
        if self.bytes.get(self.at) != Some(&b'$') {
            return Err(SqlError::new("42601", "syntax error at or near \"$\"").at(start));
        }
        self.at += 1;
        let tag = &self.text[start..self.at];
        match self.text[self.at..].find(tag) {
            Some(offset) => {
                self.at += offset + tag.len();
                Ok(Kind::DollarText)
            }
            None => Err(SqlError::new("42601", "unterminated dollar-quoted string").at(start)),
        }
    }

    /// The longest run of operator bytes, less a comment's start and, as in PostgreSQL, less trailing signs that
    /// belong to the next token.
    fn operator(&mut self) -> Kind {
        let start = self.at;
        while self.bytes.get(self.at).is_some_and(|byte| is_operator(*byte)) {
            let is_comment = matches!(self.bytes.get(self.at..self.at + 2), Some(b"--" | b"/*"));
            if is_comment && self.at > start {
                break;
            }
            self.at += 1;
        }
        let keeps_signs = self.bytes[start..self.at]
            .iter()
            .any(|byte| matches!(byte, b'~' | b'!' | b'@' | b'#' | b'^' | b'&' | b'|' | b'`' | b'?' | b'%'));
        while !keeps_signs && self.at > start + 1 && matches!(self.bytes[self.at - 1], b'+' | b'-') {
            self.at -= 1;
        }
        Kind::Operator
    }
}

fn is_operator(byte: u8) -> bool {
    matches!(
        byte,
        b'~' | b'!'
            | b'@'
            | b'#'
            | b'^'
            | b'&'
            | b'|'
            | b'`'
            | b'?'
            | b'+'
            | b'-'
            | b'*'
            | b'/'
            | b'%'
            | b'<'
            | b'>'
            | b'='
    )
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
