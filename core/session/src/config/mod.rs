//! What a session is told at its start.

mod isolation;
mod lobs;
mod overflow;
mod remedies;
mod verify;

use std::sync::Arc;
use std::time::Duration;

use onetrip_ledger::ValueHasher;

use crate::facts::Common;
use crate::texts::Texts;

pub use self::isolation::{IsolationLevel, UnknownIsolation};
pub use self::lobs::{BadLobPrefetch, LobPolicy, LobPrefetch};
#[cfg(test)]
pub(crate) use self::overflow::tests::Memory;
pub use self::overflow::{Overflow, Spill, Spilled};
pub use self::remedies::{BadRemedies, Remedies};
pub use self::verify::{BadVerify, Verify};

/// What a session is told at its start.
#[derive(Debug, Clone)]
pub struct SessionConfig {
    /// Hashes values, with one key for the whole trace.
    pub hasher: ValueHasher,
    /// The key that this session's client gets for cancelling.
    pub cancel_key: [u8; 4],
    /// Parameters' texts are kept in the trace.
    pub keep_values: bool,
    /// What may answer before the server.
    pub remedies: Remedies,
    /// Which answers from memory are run for real as well.
    pub verify: Option<Verify>,
    /// How much of large objects is read ahead.
    pub lobs: Arc<LobPolicy>,
    /// What a BEGIN without a level gets, if the client did not choose in its startup packet.
    pub isolation: Option<IsolationLevel>,
    /// Time on the server that the session's own questions may take at once; over time, they take a twentieth of it.
    pub question_burst: Duration,
    /// What the sessions of one gateway share.
    pub common: Arc<Common>,
    /// Texts that they share.
    pub texts: Arc<Texts>,
    /// Random bytes that no program can guess: names of the session's own objects are made of them.
    pub private: [u8; 8],
    /// Where results go that are read ahead and do not fit into memory; without, they stay in memory.
    pub overflow: Option<Arc<dyn Overflow>>,
}
