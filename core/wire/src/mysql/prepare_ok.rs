use super::tags::server;
use crate::{Reader, WireError};

/// `COM_STMT_PREPARE_OK`: a statement is prepared; definitions of its parameters and columns follow.
///
/// Source: MySQL Internals, "COM_STMT_PREPARE Response"; MariaDB Knowledge Base, "COM_STMT_PREPARE". The flag of metadata:
/// not verified on 8.x.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrepareOk {
    /// Its number.
    pub statement: u32,
    /// Columns of its result; none if it has no result.
    pub columns: u16,
    /// Parameters.
    pub parameters: u16,
    /// Warnings.
    pub warnings: u16,
    /// Whether definitions follow; only with OPTIONAL_RESULTSET_METADATA.
    pub metadata_follows: Option<bool>,
}

impl PrepareOk {
    /// Decodes the payload.
    pub fn decode(body: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        reader.tag(server::OK)?;
        let statement = reader.u32_le()?;
        let (columns, parameters) = (reader.u16_le()?, reader.u16_le()?);
        reader.tag(0)?;
        let warnings = reader.u16_le()?;
        let metadata_follows = if reader.is_at_end() {
            None
        } else {
            match reader.u8()? {
                0 => Some(false),
                1 => Some(true),
                other => return Err(WireError::UndefinedValue(i32::from(other))),
            }
        };
        reader.finish().map(|()| Self { statement, columns, parameters, warnings, metadata_follows })
    }

    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(server::OK);
        out.extend_from_slice(&self.statement.to_le_bytes());
        out.extend_from_slice(&self.columns.to_le_bytes());
        out.extend_from_slice(&self.parameters.to_le_bytes());
        out.push(0);
        out.extend_from_slice(&self.warnings.to_le_bytes());
        out.extend(self.metadata_follows.map(u8::from));
    }
}
