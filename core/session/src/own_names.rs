//! Names of the statements, portals and savepoints that the session itself makes.

use crate::rules::Rule;

/// What the session's own objects are called (rule P24).
#[derive(Debug)]
pub(crate) struct OwnNames {
    /// Name of the statement, the portal and the savepoint of the session's own; no program can guess it.
    name: Vec<u8>,
    /// Name of a statement that is never there.
    nowhere: Vec<u8>,
}

impl OwnNames {
    /// Made of these random bytes.
    pub(crate) fn new(private: [u8; 8]) -> Self {
        let private = if Rule::Secret.is_kept() { u64::from_be_bytes(private) } else { 0 };
        let name = format!("onetrip_{private:016x}").into_bytes();
        let nowhere = [&name[..], b"_none"].concat();
        Self { name, nowhere }
    }

    /// Name of the session's own objects; others add to it.
    pub(crate) fn name(&self) -> &[u8] {
        &self.name
    }

    /// Name of a statement that is never there.
    pub(crate) fn nowhere(&self) -> &[u8] {
        &self.nowhere
    }
}
