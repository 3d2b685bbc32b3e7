use super::primitives::{put_lenenc_bytes, put_u24};
use super::tags::server;
use crate::{Reader, WireError};

/// The code of an ERR packet that is a [`Progress`].
pub(super) const PROGRESS_CODE: u16 = 0xffff;
/// Strings that it has.
const STRINGS: u8 = 1;

/// MariaDB's report of a long statement's progress, in the form of an ERR packet. The reply goes on.
///
/// Source: MariaDB Knowledge Base, "Progress Reporting: Format of Progress Packets".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress<'a> {
    /// Stage at hand, from 1.
    pub stage: u8,
    /// Number of stages.
    pub stage_max: u8,
    /// Progress within the stage, in thousandths of a percent.
    pub progress: u32,
    /// What the server does.
    pub state: &'a [u8],
}

impl<'a> Progress<'a> {
    /// Whether a payload is one.
    pub fn is(body: &[u8]) -> bool {
        body.starts_with(&[server::ERR, 0xff, 0xff])
    }

    /// Decodes the payload.
    pub fn decode(body: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        reader.tag(server::ERR)?;
        match reader.u16_le()? {
            PROGRESS_CODE => {}
            code => return Err(WireError::UndefinedValue(i32::from(code))),
        }
        reader.tag(STRINGS)?;
        let (stage, stage_max) = (reader.u8()?, reader.u8()?);
        let progress = reader.u24_le()?;
        let state = reader.lenenc_bytes_le()?;
        reader.finish().map(|()| Self { stage, stage_max, progress, state })
    }

    /// Appends the payload; of `progress`, three bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(server::ERR);
        out.extend_from_slice(&PROGRESS_CODE.to_le_bytes());
        out.extend_from_slice(&[STRINGS, self.stage, self.stage_max]);
        put_u24(out, self.progress);
        put_lenenc_bytes(out, self.state);
    }
}
