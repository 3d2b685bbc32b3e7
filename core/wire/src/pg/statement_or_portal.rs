use super::frame::{frame, put_c_str};
use crate::{Reader, WireError};

/// What `Describe` ('D') and `Close` ('C') are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementOrPortal<'a> {
    /// The prepared statement of this name.
    Statement(&'a [u8]),
    /// The portal of this name.
    Portal(&'a [u8]),
}

impl<'a> StatementOrPortal<'a> {
    /// Decodes the body of a Describe or Close.
    pub fn decode(body: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        let kind = reader.u8()?;
        let name = reader.c_str()?;
        reader.finish()?;
        match kind {
            b'S' => Ok(Self::Statement(name)),
            b'P' => Ok(Self::Portal(name)),
            other => Err(WireError::UndefinedValue(i32::from(other))),
        }
    }

    /// Appends a message with this body; `tag` says whether it describes or closes.
    pub fn encode(&self, tag: u8, out: &mut Vec<u8>) {
        let (kind, name) = match self {
            Self::Statement(name) => (b'S', name),
            Self::Portal(name) => (b'P', name),
        };
        frame(out, tag, |out| {
            out.push(kind);
            put_c_str(out, name);
        });
    }
}
