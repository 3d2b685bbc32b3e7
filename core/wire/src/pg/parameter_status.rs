use super::frame::{frame, put_c_str};
use super::tags::backend;
use crate::{Reader, WireError};

/// `ParameterStatus` ('S'): the value of a reported setting, at start and whenever it changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParameterStatus<'a> {
    /// Setting, such as `application_name`.
    pub name: &'a [u8],
    /// Its value now.
    pub value: &'a [u8],
}

impl<'a> ParameterStatus<'a> {
    /// Decodes the body.
    pub fn decode(body: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        let status = Self { name: reader.c_str()?, value: reader.c_str()? };
        reader.finish().map(|()| status)
    }

    /// Appends this message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        frame(out, backend::PARAMETER_STATUS, |out| {
            put_c_str(out, self.name);
            put_c_str(out, self.value);
        });
    }
}
