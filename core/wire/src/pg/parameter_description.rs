use super::Oid;
use super::frame::frame;
use super::tags::backend;
use crate::{Reader, WireError};

/// `ParameterDescription` ('t'): types of a statement's parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParameterDescription<'a> {
    oids: &'a [u8],
}

impl<'a> ParameterDescription<'a> {
    /// Decodes the body.
    pub fn decode(body: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        let count = reader.count()?;
        let oids = reader.bytes(4 * usize::from(count))?;
        reader.finish().map(|()| Self { oids })
    }

    /// Type of each parameter in order.
    pub fn oids(&self) -> impl ExactSizeIterator<Item = Oid> + use<'a> {
        self.oids.chunks_exact(4).map(|four| Oid::from_be_bytes([four[0], four[1], four[2], four[3]]))
    }

    /// Appends this message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        frame(out, backend::PARAMETER_DESCRIPTION, |out| {
            out.extend_from_slice(&((self.oids.len() / 4) as u16).to_be_bytes());
            out.extend_from_slice(self.oids);
        });
    }
}
