use onetrip_wire::pg::Oid;

use super::PIECE;
use crate::core::{Connection, Request};
use crate::{Error, Param};

const WRITE_OBJECT: &str = "SELECT lo_put($1::oid, $2::int8, $3::bytea)";

/// The writing of one large object, without its waiting: pieces in a block that aborts.
#[derive(Debug)]
pub(crate) struct LobWriting {
    oid: Oid,
    position: u64,
    buffer: Vec<u8>,
}

impl LobWriting {
    /// From a position on.
    pub(crate) fn new(oid: Oid, position: u64) -> Self {
        Self { oid, position, buffer: Vec::with_capacity(PIECE as usize) }
    }

    /// Takes as much as belongs to the piece that is being made; returns how many bytes.
    pub(crate) fn fill(&mut self, data: &[u8]) -> usize {
        let count = data.len().min(PIECE as usize - self.buffer.len());
        self.buffer.extend_from_slice(&data[..count]);
        count
    }

    /// Whether the piece has to be pushed before more is taken.
    pub(crate) fn is_full(&self) -> bool {
        self.buffer.len() == PIECE as usize
    }

    /// Where the writing has come to.
    pub(crate) fn position(&self) -> u64 {
        self.position + self.buffer.len() as u64
    }

    /// Adds the piece to the block.
    ///
    /// # Errors
    /// As [`Connection::push`].
    pub(crate) fn push(&mut self, core: &mut Connection) -> Result<(), Error> {
        if !self.buffer.is_empty() {
            let position = self.position as i64;
            let parameters: [&dyn Param; 3] = [&self.oid, &position, &self.buffer];
            core.push(&Request::new(WRITE_OBJECT, &parameters), None)?;
            self.position = self.position();
            self.buffer.clear();
        }
        Ok(())
    }
}
