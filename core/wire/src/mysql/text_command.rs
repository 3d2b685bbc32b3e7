use crate::{Reader, WireError};

/// A command that is one text and nothing else: `COM_INIT_DB`, `COM_CREATE_DB`, `COM_DROP_DB`, `COM_STMT_PREPARE`; and
/// `LOCAL INFILE` of the server's, which names a file.
///
/// Source: MySQL Internals, the pages of these names, and "LOCAL INFILE Request".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextCommand<'a> {
    /// A name, or a statement.
    pub text: &'a [u8],
}

impl<'a> TextCommand<'a> {
    /// Decodes the payload whose first byte is `tag`.
    pub fn decode(tag: u8, body: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        reader.tag(tag)?;
        Ok(Self { text: reader.all() })
    }

    /// Appends the payload.
    pub fn encode(&self, tag: u8, out: &mut Vec<u8>) {
        out.push(tag);
        out.extend_from_slice(self.text);
    }
}
