use super::frame::frame;
use super::tags::backend;
use crate::{Reader, WireError};

/// Where the session stands, from `ReadyForQuery` ('Z').
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TransactionStatus {
    /// Outside a transaction block (`I`).
    #[default]
    Idle,
    /// Inside one (`T`).
    Active,
    /// Inside one that failed (`E`).
    Failed,
}

impl TransactionStatus {
    /// Decodes the body.
    pub fn decode(body: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        let status = match reader.u8()? {
            b'I' => Self::Idle,
            b'T' => Self::Active,
            b'E' => Self::Failed,
            other => return Err(WireError::UndefinedValue(i32::from(other))),
        };
        reader.finish().map(|()| status)
    }

    /// The letter on the wire.
    pub fn letter(self) -> u8 {
        match self {
            Self::Idle => b'I',
            Self::Active => b'T',
            Self::Failed => b'E',
        }
    }
}

/// Appends a ReadyForQuery.
pub fn encode_ready_for_query(out: &mut Vec<u8>, status: TransactionStatus) {
    frame(out, backend::READY_FOR_QUERY, |out| out.push(status.letter()));
}
