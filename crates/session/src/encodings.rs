/// The encodings of client and database, as the server reports them.
#[derive(Debug, Default)]
pub(crate) struct Encodings {
    client: Option<Box<[u8]>>,
    database: Option<Box<[u8]>>,
}

impl Encodings {
    /// The server reports a setting.
    pub(crate) fn reported(&mut self, name: &[u8], value: &[u8]) {
        match name {
            b"client_encoding" => self.client = Some(value.into()),
            b"server_encoding" => self.database = Some(value.into()),
            _ => {}
        }
    }

    /// Whether the client's is UTF-8.
    pub(crate) fn is_utf8(&self) -> bool {
        self.client.as_deref() == Some(b"UTF8")
    }

    /// Whether characters may be converted for the client, which fails for those that its encoding does not have
    /// (PostgreSQL, "Character Set Support"; `SQL_ASCII` asks for no conversion).
    pub(crate) fn may_convert(&self) -> bool {
        let client = self.client.as_deref();
        client.is_none() || !(client == Some(b"SQL_ASCII") || client == self.database.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_converted_unless_the_encodings_are_the_same() {
        let of = |client: &[u8], database: &[u8]| {
            let mut encodings = Encodings::default();
            encodings.reported(b"client_encoding", client);
            encodings.reported(b"server_encoding", database);
            encodings
        };
        assert!(!of(b"UTF8", b"UTF8").may_convert() && of(b"UTF8", b"UTF8").is_utf8());
        assert!(!of(b"SQL_ASCII", b"UTF8").may_convert());
        for converts in [of(b"LATIN1", b"UTF8"), of(b"UTF8", b"SQL_ASCII"), Encodings::default()] {
            assert!(converts.may_convert(), "{converts:?}");
        }
    }
}
