use std::num::NonZeroU32;

use super::frame::{frame, put_c_str};
use super::tags::frontend;
use crate::{Reader, WireError};

/// `Execute` ('E'): run a bound portal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Execute<'a> {
    /// Portal to run; empty is the unnamed one.
    pub portal: &'a [u8],
    /// The wire says "all rows" with zero; here that is `None`.
    pub row_limit: Option<NonZeroU32>,
}

impl<'a> Execute<'a> {
    /// Decodes the body.
    pub fn decode(body: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        let portal = reader.c_str()?;
        let row_limit = NonZeroU32::new(reader.u32()?);
        reader.finish().map(|()| Self { portal, row_limit })
    }

    /// Appends this message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        frame(out, frontend::EXECUTE, |out| {
            put_c_str(out, self.portal);
            out.extend_from_slice(&self.row_limit.map_or(0, NonZeroU32::get).to_be_bytes());
        });
    }
}
