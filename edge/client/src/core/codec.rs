//! Text under a `client_encoding` other than UTF8.

use std::borrow::Cow;

use super::Connection;

/// Writes and reads text under a `client_encoding` other than UTF8, for programs that change it: the client itself knows
/// only UTF-8. Both functions get the encoding by the server's name, and are asked for text beyond ASCII only. `None` says
/// that the text cannot be converted; it then stays as it is.
#[derive(Debug, Clone, Copy)]
pub struct Codec {
    /// Text in an encoding.
    pub encode: fn(&str, &str) -> Option<Vec<u8>>,
    /// Text of bytes in an encoding.
    pub decode: fn(&str, &[u8]) -> Option<String>,
}

impl Connection {
    /// Says who converts statements, the names of columns, notices, notifications and errors under another
    /// `client_encoding`. Values are converted by the caller: [`ResultSet::convert`](crate::ResultSet::convert).
    pub fn set_codec(&mut self, codec: Codec) {
        self.codec = Some(codec);
    }

    /// The session's encoding, where it is another than UTF-8 and somebody converts it. In `SQL_ASCII` nobody does.
    fn foreign(&self) -> Option<(Codec, &str)> {
        let encoding = self.settings.get("client_encoding")?;
        let is_foreign = !matches!(&**encoding, "UTF8" | "SQL_ASCII");
        self.codec.filter(|_| is_foreign).map(|codec| (codec, &**encoding))
    }

    /// Whether a byte of ASCII may be the second one of a character, as in `client_encoding` SJIS: such text cannot be
    /// escaped byte by byte. By "Character Set Support" of PostgreSQL's documentation, these are all that no server has.
    pub(super) fn embeds_ascii(&self) -> bool {
        let encoding = self.settings.get("client_encoding").map_or("", |encoding| &**encoding);
        ["BIG5", "GB18030", "GBK", "JOHAB", "SHIFT_JIS_2004", "SJIS", "UHC"].contains(&encoding)
    }

    /// Text as the session wants it.
    pub(super) fn encoded<'a>(&self, text: &'a str) -> Cow<'a, [u8]> {
        let converted = match self.foreign() {
            Some((codec, encoding)) if !text.is_ascii() => (codec.encode)(encoding, text),
            _ => None,
        };
        converted.map_or(Cow::Borrowed(text.as_bytes()), Cow::Owned)
    }

    /// What the server says as UTF-8. Zeros and letters between its texts stay as they are in every encoding.
    pub(super) fn decoded<'a>(&self, said: &'a [u8]) -> Cow<'a, [u8]> {
        let converted = match self.foreign() {
            Some((codec, encoding)) if !said.is_ascii() => (codec.decode)(encoding, said),
            _ => None,
        };
        converted.map_or(Cow::Borrowed(said), |text| Cow::Owned(text.into_bytes()))
    }
}
