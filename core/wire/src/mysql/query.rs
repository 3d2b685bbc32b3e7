use super::capabilities::Capabilities;
use super::parameters::Parameters;
use super::primitives::put_lenenc;
use super::tags::command;
use crate::{Reader, WireError};

/// Sets of parameters; the pages say that it is always one.
const SETS: u64 = 1;

/// `COM_QUERY`: run a text.
///
/// Source: MySQL Internals, "COM_QUERY"; MariaDB Knowledge Base, "COM_QUERY". Attributes: not verified on 8.x.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Query<'a> {
    /// Attributes; only with QUERY_ATTRIBUTES, and there absent if there are none.
    pub attributes: Option<Parameters<'a>>,
    /// Its statements.
    pub text: &'a [u8],
}

impl<'a> Query<'a> {
    /// Decodes the payload under the connection's capabilities. The text may be cut: what is missing is at its end.
    pub fn decode(body: &'a [u8], capabilities: Capabilities) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        reader.tag(command::QUERY)?;
        let mut attributes = None;
        if capabilities.has(Capabilities::QUERY_ATTRIBUTES) {
            let count = reader.lenenc_le()?;
            match reader.lenenc_le()? {
                SETS => {}
                other => return Err(WireError::UndefinedValue(other as i32)),
            }
            if count > 0 {
                let count = usize::try_from(count).map_err(|_| WireError::Truncated)?;
                let types = Parameters::read_types(&mut reader, count, true)?;
                attributes = Some(types.read_values(&mut reader)?);
            }
        }
        Ok(Self { attributes, text: reader.all() })
    }

    /// Appends the payload for a connection with these capabilities.
    pub fn encode(&self, out: &mut Vec<u8>, capabilities: Capabilities) {
        out.push(command::QUERY);
        if capabilities.has(Capabilities::QUERY_ATTRIBUTES) {
            put_lenenc(out, self.attributes.map_or(0, |attributes| attributes.count() as u64));
            put_lenenc(out, SETS);
            if let Some(attributes) = &self.attributes {
                attributes.put(out);
            }
        }
        out.extend_from_slice(self.text);
    }
}
