use super::primitives::put_lenenc_value;
use crate::{Reader, WireError};

/// A row whose values are texts.
///
/// Source: MySQL Internals, "Text Resultset Row". It begins with 0xfe only if it has 16 MiB or more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextRow<'a> {
    values: &'a [u8],
}

impl<'a> TextRow<'a> {
    /// Decodes the payload of a row with so many columns.
    pub fn decode(body: &'a [u8], columns: u64) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        for _ in 0..columns {
            reader.lenenc_value_le()?;
        }
        reader.finish().map(|()| Self { values: body })
    }

    /// Reads the payload of a row with so many columns in one pass: `see` gets the values in order. Where it does not decode, as
    /// [`Self::decode`] says, what it got is void.
    #[inline]
    pub fn read(
        body: &'a [u8],
        columns: usize,
        mut see: impl FnMut(usize, Option<&'a [u8]>),
    ) -> Result<(), WireError> {
        let mut reader = Reader::new(body);
        for position in 0..columns {
            see(position, reader.lenenc_value_le()?);
        }
        reader.finish()
    }

    /// Values in order; `None` is NULL.
    pub fn values(&self) -> impl Iterator<Item = Option<&'a [u8]>> + use<'a> {
        let mut reader = Reader::new(self.values);
        std::iter::from_fn(move || reader.lenenc_value_le().ok())
    }

    /// Appends the payload of a row with these values.
    pub fn encode<'v>(out: &mut Vec<u8>, values: impl IntoIterator<Item = Option<&'v [u8]>>) {
        for value in values {
            put_lenenc_value(out, value);
        }
    }
}
