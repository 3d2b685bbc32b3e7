use super::Oid;
use super::bind::Format;
use super::frame::{frame, put_c_str};
use super::tags::backend;
use crate::{Reader, WireError};

/// One column of a [`RowDescription`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column<'a> {
    /// Its name in the result.
    pub name: &'a [u8],
    /// Table that it comes from, or zero.
    pub table: Oid,
    /// Attribute number in that table, or zero.
    pub attribute: i16,
    /// Its type.
    pub type_oid: Oid,
    /// Size of the type in bytes; negative is variable.
    pub type_len: i16,
    /// Type modifier, such as the n of varchar(n) plus four.
    pub type_modifier: i32,
    /// How its values are written; text in the answer to a statement's Describe.
    pub format: Format,
}

impl<'a> Column<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        Ok(Self {
            name: reader.c_str()?,
            table: reader.u32()?,
            attribute: reader.i16()?,
            type_oid: reader.u32()?,
            type_len: reader.i16()?,
            type_modifier: reader.i32()?,
            format: match reader.i16()? {
                0 => Format::Text,
                1 => Format::Binary,
                other => return Err(WireError::UndefinedValue(i32::from(other))),
            },
        })
    }

    /// Appends this column's fields.
    pub fn put(&self, out: &mut Vec<u8>) {
        put_c_str(out, self.name);
        out.extend_from_slice(&self.table.to_be_bytes());
        out.extend_from_slice(&self.attribute.to_be_bytes());
        out.extend_from_slice(&self.type_oid.to_be_bytes());
        out.extend_from_slice(&self.type_len.to_be_bytes());
        out.extend_from_slice(&self.type_modifier.to_be_bytes());
        out.extend_from_slice(&(self.format as i16).to_be_bytes());
    }
}

/// `RowDescription` ('T'): the columns of the rows to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowDescription<'a> {
    count: u16,
    bytes: &'a [u8],
}

impl<'a> RowDescription<'a> {
    /// Decodes the body.
    pub fn decode(body: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        let count = reader.count()?;
        let bytes = reader.rest();
        for _ in 0..count {
            Column::read(&mut reader)?;
        }
        reader.finish().map(|()| Self { count, bytes })
    }

    /// The columns in order.
    pub fn columns(&self) -> impl Iterator<Item = Column<'a>> + use<'a> {
        let mut reader = Reader::new(self.bytes);
        (0..self.count).map_while(move |_| Column::read(&mut reader).ok())
    }

    /// Appends a RowDescription with `columns`, at most 65,535 of them.
    pub fn encode<'c>(out: &mut Vec<u8>, columns: impl IntoIterator<Item = Column<'c>>) {
        frame(out, backend::ROW_DESCRIPTION, |out| {
            let start = out.len();
            out.extend_from_slice(&[0; 2]);
            let mut count = 0u16;
            for column in columns {
                column.put(out);
                count += 1;
            }
            out[start..start + 2].copy_from_slice(&count.to_be_bytes());
        });
    }
}
