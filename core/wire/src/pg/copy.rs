use super::bind::{Format, Formats};
use super::frame::frame;
use crate::{Reader, WireError};

/// `CopyInResponse` ('G'), `CopyOutResponse` ('H') and `CopyBothResponse` ('W'): data is to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyResponse<'a> {
    /// How the data as a whole is written.
    pub format: Format,
    /// The format of each column.
    pub columns: Formats<'a>,
}

impl<'a> CopyResponse<'a> {
    /// Decodes the body of any of the three.
    pub fn decode(body: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        let format = match reader.u8()? {
            0 => Format::Text,
            1 => Format::Binary,
            other => return Err(WireError::UndefinedValue(i32::from(other))),
        };
        let columns = Formats::read(&mut reader)?;
        reader.finish().map(|()| Self { format, columns })
    }

    /// Appends a message with this body; `tag` says which of the three it is.
    pub fn encode(&self, tag: u8, out: &mut Vec<u8>) {
        frame(out, tag, |out| {
            out.push(self.format as u8);
            self.columns.put(out);
        });
    }
}
