//! Settings on which depends what a text means and how values are written, as the server reports them.

use crate::charset::Charset;

/// Settings on which it depends what a text means, and how values are written, as the server reports them.
#[derive(Debug)]
pub(crate) struct Settings {
    client_encoding: Option<Box<[u8]>>,
    server_encoding: Option<Box<[u8]>>,
    standard_strings: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { client_encoding: None, server_encoding: None, standard_strings: true }
    }
}

impl Settings {
    /// The server reports a setting.
    pub(crate) fn reported(&mut self, name: &[u8], value: &[u8]) {
        match name {
            b"client_encoding" => self.client_encoding = Some(value.into()),
            b"server_encoding" => self.server_encoding = Some(value.into()),
            b"standard_conforming_strings" => self.standard_strings = value == b"on",
            _ => {}
        }
    }

    /// Whether a backslash in a string is one (`standard_conforming_strings`).
    pub(crate) fn has_standard_strings(&self) -> bool {
        self.standard_strings
    }

    /// In which encoding the client writes its texts, as far as it decides where tokens end.
    pub(crate) fn charset(&self) -> Charset {
        self.client_encoding.as_deref().map_or(Charset::Plain, Charset::of_encoding)
    }

    /// Whether the server reads a text as it is read here: its strings are plain, and the client's encoding is UTF-8.
    pub(crate) fn are_plain(&self) -> bool {
        self.standard_strings && self.client_encoding.as_deref() == Some(b"UTF8")
    }

    /// Whether characters may be converted for the client, which fails for those that its encoding does not have
    /// (PostgreSQL, "Character Set Support"; `SQL_ASCII` asks for no conversion).
    pub(crate) fn may_convert(&self) -> bool {
        let client = self.client_encoding.as_deref();
        client.is_none() || !(client == Some(b"SQL_ASCII") || client == self.server_encoding.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_converted_unless_the_encodings_are_the_same() {
        let of = |client: &[u8], database: &[u8]| {
            let mut settings = Settings::default();
            settings.reported(b"client_encoding", client);
            settings.reported(b"server_encoding", database);
            settings
        };
        assert!(!of(b"UTF8", b"UTF8").may_convert() && of(b"UTF8", b"UTF8").are_plain());
        assert!(!of(b"SQL_ASCII", b"UTF8").may_convert());
        for converts in [of(b"LATIN1", b"UTF8"), of(b"UTF8", b"SQL_ASCII"), Settings::default()] {
            assert!(converts.may_convert(), "{converts:?}");
        }
    }
}
