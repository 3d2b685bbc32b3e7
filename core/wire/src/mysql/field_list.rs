use super::primitives::put_c_str;
use super::tags::command;
use crate::{Reader, WireError};

/// `COM_FIELD_LIST`: columns of a table.
///
/// Source: MySQL Internals, "COM_FIELD_LIST". The reply is definitions of columns, each with its default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldList<'a> {
    /// The table.
    pub table: &'a [u8],
    /// Pattern for names of columns; empty is all.
    pub wildcard: &'a [u8],
}

impl<'a> FieldList<'a> {
    /// Decodes the payload.
    pub fn decode(body: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        reader.tag(command::FIELD_LIST)?;
        Ok(Self { table: reader.c_str()?, wildcard: reader.all() })
    }

    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(command::FIELD_LIST);
        put_c_str(out, self.table);
        out.extend_from_slice(self.wildcard);
    }
}
