use super::Oid;
use super::bind::{Formats, Values};
use super::frame::{frame, put_value};
use super::tags::{backend, frontend};
use crate::{Reader, WireError};

/// `FunctionCall` ('F'): call a function of the server outside SQL, as drivers do for large objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionCall<'a> {
    /// The function.
    pub function: Oid,
    /// How the arguments are written.
    pub argument_formats: Formats<'a>,
    /// The arguments.
    pub arguments: Values<'a>,
    /// How the result is to be written: zero is text.
    pub result_format: u16,
}

impl<'a> FunctionCall<'a> {
    /// Decodes the body.
    pub fn decode(body: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        let call = Self {
            function: reader.u32()?,
            argument_formats: Formats::read(&mut reader)?,
            arguments: Values::read(&mut reader)?,
            result_format: reader.count()?,
        };
        reader.finish().map(|()| call)
    }

    /// Appends this message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        frame(out, frontend::FUNCTION_CALL, |out| {
            out.extend_from_slice(&self.function.to_be_bytes());
            self.argument_formats.put(out);
            self.arguments.put(out);
            out.extend_from_slice(&self.result_format.to_be_bytes());
        });
    }
}

/// `FunctionCallResponse` ('V'): what the function returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionCallResponse<'a> {
    /// The value; `None` is NULL.
    pub value: Option<&'a [u8]>,
}

impl<'a> FunctionCallResponse<'a> {
    /// Decodes the body.
    pub fn decode(body: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        let value = reader.value()?;
        reader.finish().map(|()| Self { value })
    }

    /// Appends this message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        frame(out, backend::FUNCTION_CALL_RESPONSE, |out| put_value(out, self.value));
    }
}
