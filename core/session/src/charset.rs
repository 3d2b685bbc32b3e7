//! Character sets in which the second byte of a character may be one of ASCII: a backslash there is no backslash.
//!
//! Sources: MySQL 8.4 Reference Manual, "Asian Character Sets"; PostgreSQL 18, "Character Set Support": these are encodings of
//! clients alone, whose texts the server converts before it reads them. MariaDB 10.11, MySQL 5.6 and PostgreSQL 15 were asked which
//! bytes begin a character. PostgreSQL takes none of JOHAB with a byte of ASCII, and of UHC only those with a letter. gb18030, and
//! collations beyond 255, are not verified on MySQL 8.x.

use std::borrow::Cow;
use std::ops::RangeInclusive;

/// What a collation's number is more in MariaDB if it does not pad.
const NOPAD: u16 = 1024;
const NOPAD_END: u16 = 2 * NOPAD;
/// The first byte that is not of ASCII.
const ASCII_END: u8 = 0x80;
/// Second halves that are of ASCII.
const HALVES: RangeInclusive<u8> = 0x40..=0x7e;

/// The character set of a client's texts, as far as it decides where tokens end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Charset {
    /// No character has a byte of ASCII in it but its own.
    #[default]
    Plain,
    Big5,
    Gbk,
    Gb18030,
    /// And cp932.
    Sjis,
}

impl Charset {
    /// By the number of a collation, as logins have it.
    pub(crate) fn of_collation(number: u16) -> Self {
        match number {
            // MariaDB's from twice as much on are Unicode's.
            NOPAD..NOPAD_END => Self::of_collation(number - NOPAD),
            1 | 84 => Self::Big5,
            28 | 87 => Self::Gbk,
            248..=250 => Self::Gb18030,
            13 | 88 | 95 | 96 => Self::Sjis,
            _ => Self::Plain,
        }
    }

    fn named(name: &[u8]) -> Self {
        match name.to_ascii_lowercase().as_slice() {
            b"big5" => Self::Big5,
            b"gbk" => Self::Gbk,
            b"gb18030" => Self::Gb18030,
            b"sjis" | b"cp932" => Self::Sjis,
            _ => Self::Plain,
        }
    }

    /// By the name of a `client_encoding` of PostgreSQL, as the server reports it.
    pub(crate) fn of_encoding(name: &[u8]) -> Self {
        match name {
            b"BIG5" => Self::Big5,
            b"GBK" => Self::Gbk,
            b"GB18030" => Self::Gb18030,
            b"SJIS" | b"SHIFT_JIS_2004" => Self::Sjis,
            _ => Self::Plain,
        }
    }

    /// What a text sets the client's character set to, if it does: `SET NAMES`, `SET CHARACTER SET` and
    /// `SET character_set_client`. `own` is that of the login.
    pub(crate) fn set_by(text: &[u8], own: Self) -> Option<Self> {
        let is_mark = |byte: &u8| byte.is_ascii_whitespace() || b"=:,;'\"`@.".contains(byte);
        let mut words = text.split(is_mark).filter(|word| !word.is_empty());
        if !words.next()?.eq_ignore_ascii_case(b"set") {
            return None;
        }
        let mut set = None;
        while let Some(word) = words.next() {
            let is_of_client = match word.to_ascii_lowercase().as_slice() {
                b"names" | b"charset" | b"character_set_client" => true,
                b"character" => words.next().is_some_and(|next| next.eq_ignore_ascii_case(b"set")),
                _ => false,
            };
            if is_of_client {
                let name = words.next()?;
                set = Some(if name.eq_ignore_ascii_case(b"default") { own } else { Self::named(name) });
            }
        }
        set
    }

    fn begins(self, byte: u8) -> bool {
        match self {
            Self::Plain => false,
            Self::Big5 => matches!(byte, 0xa1..=0xf9),
            Self::Gbk | Self::Gb18030 => matches!(byte, 0x81..=0xfe),
            Self::Sjis => matches!(byte, 0x81..=0x9f | 0xe0..=0xfc),
        }
    }

    /// A text whose characters beyond ASCII have no byte of ASCII in them. Different texts stay different.
    pub(crate) fn widened(self, text: &[u8]) -> Cow<'_, [u8]> {
        if self == Self::Plain || text.is_ascii() {
            return Cow::Borrowed(text);
        }
        let mut wide = Vec::with_capacity(text.len() + text.len() / 2);
        let mut rest = text;
        while let Some((&first, behind)) = rest.split_first() {
            wide.push(first);
            rest = behind;
            if !self.begins(first) {
                continue;
            }
            let halves = match behind {
                [b'0'..=b'9', 0x81..=0xfe, b'0'..=b'9', ..] if self == Self::Gb18030 => 3,
                [second, ..] if HALVES.contains(second) || *second >= ASCII_END => 1,
                _ => 0,
            };
            for half in &behind[..halves] {
                if *half >= ASCII_END {
                    wide.push(*half);
                } else {
                    wide.extend_from_slice(&[ASCII_END | half >> 4, ASCII_END | half & 0xf]);
                }
            }
            rest = &behind[halves..];
        }
        Cow::Owned(wide)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_keeps_no_byte_of_ascii() {
        // Hiragana and a quote behind it, in Shift_JIS.
        assert_eq!(Charset::Sjis.widened(b"'\x95\x5c' \\'"), &b"'\x95\x85\x8c' \\'"[..]);
        assert_eq!(
            Charset::Sjis.widened(b"'\xb1\x5c''"),
            &b"'\xb1\x5c''"[..],
            "half a width: a character of one byte"
        );
        assert_eq!(
            Charset::Gbk.widened(b"\xd5\x60\xd5\x27"),
            &b"\xd5\x86\x80\xd5\x27"[..],
            "a quote is no second half"
        );
        assert_eq!(Charset::Gb18030.widened(b"\x81\x30\x81\x31x"), &b"\x81\x83\x80\x81\x83\x81x"[..]);
        assert_eq!(Charset::Plain.widened(b"\x95\x5c"), &b"\x95\x5c"[..]);
        assert_eq!(Charset::Big5.widened(b"\xa5"), &b"\xa5"[..], "the text ends within a character");
    }

    #[test]
    fn a_text_names_the_character_set_of_those_behind_it() {
        let own = Charset::Big5;
        let cases: [(&str, Option<Charset>); 10] = [
            ("SET NAMES gbk", Some(Charset::Gbk)),
            ("set names 'sjis' collate 'sjis_bin'", Some(Charset::Sjis)),
            ("SET autocommit=1, NAMES cp932", Some(Charset::Sjis)),
            ("SET NAMES utf8mb4", Some(Charset::Plain)),
            ("SET NAMES DEFAULT", Some(own)),
            ("SET CHARACTER SET big5", Some(Charset::Big5)),
            ("SET @@session.character_set_client = gb18030", Some(Charset::Gb18030)),
            ("SET character_set_results=gbk", None),
            ("SELECT 'SET NAMES gbk'", None),
            ("SET NAMES", None),
        ];
        for (text, set) in cases {
            assert_eq!(Charset::set_by(text.as_bytes(), own), set, "{text}");
        }
        assert_eq!(
            [1, 28, 249, 13, 96, 1024 + 95, 45, 224, 257, 2304, 2305].map(Charset::of_collation),
            [
                Charset::Big5,
                Charset::Gbk,
                Charset::Gb18030,
                Charset::Sjis,
                Charset::Sjis,
                Charset::Sjis,
                Charset::Plain,
                Charset::Plain,
                Charset::Plain,
                Charset::Plain,
                Charset::Plain
            ]
        );
    }
}
