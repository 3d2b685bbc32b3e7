use super::Oid;
use super::frame::{frame, put_c_str};
use super::tags::frontend;
use crate::{Reader, WireError};

/// `Parse` ('P'): prepare a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parse<'a> {
    /// Statement to make; empty is the unnamed one.
    pub statement: &'a [u8],
    /// Its text.
    pub text: &'a [u8],
    parameter_oids: &'a [u8],
}

impl<'a> Parse<'a> {
    /// A statement whose parameters' types, if there are any, are left to the server.
    pub fn untyped(statement: &'a [u8], text: &'a [u8]) -> Self {
        Self { statement, text, parameter_oids: &[] }
    }

    /// A statement with types fixed for its parameters: their Int32 object ids, as sent.
    pub fn typed(statement: &'a [u8], text: &'a [u8], parameter_oids: &'a [u8]) -> Self {
        Self { statement, text, parameter_oids }
    }

    /// Decodes the body.
    pub fn decode(body: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        let statement = reader.c_str()?;
        let text = reader.c_str()?;
        let count = reader.count()?;
        let parameter_oids = reader.bytes(4 * usize::from(count))?;
        reader.finish().map(|()| Self { statement, text, parameter_oids })
    }

    /// Types that the client fixed, in order; zero and missing ones are left to the server.
    pub fn parameter_oids(&self) -> impl ExactSizeIterator<Item = Oid> + use<'a> {
        self.parameter_oids
            .chunks_exact(4)
            .map(|four| Oid::from_be_bytes([four[0], four[1], four[2], four[3]]))
    }

    /// Appends this message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        frame(out, frontend::PARSE, |out| {
            put_c_str(out, self.statement);
            put_c_str(out, self.text);
            out.extend_from_slice(&((self.parameter_oids.len() / 4) as u16).to_be_bytes());
            out.extend_from_slice(self.parameter_oids);
        });
    }
}
