use super::bind::Values;
use super::frame::frame;
use super::tags::backend;
use crate::{Reader, WireError};

/// `DataRow` ('D'): one row of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataRow<'a> {
    /// Its columns in order.
    pub columns: Values<'a>,
}

impl<'a> DataRow<'a> {
    /// Decodes the body.
    pub fn decode(body: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        let columns = Values::read(&mut reader)?;
        reader.finish().map(|()| Self { columns })
    }

    /// Reads the body in one pass: `see` gets the columns in order. Where the body does not decode, as [`Self::decode`] says, what
    /// it got is void.
    #[inline]
    pub fn read(body: &'a [u8], mut see: impl FnMut(u16, Option<&'a [u8]>)) -> Result<(), WireError> {
        let mut reader = Reader::new(body);
        for position in 0..reader.count()? {
            see(position, reader.value()?);
        }
        reader.finish()
    }

    /// Appends this message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        frame(out, backend::DATA_ROW, |out| self.columns.put(out));
    }
}
