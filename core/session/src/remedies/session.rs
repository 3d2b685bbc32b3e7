//! All of a session: its core, what it knows, its services, and each remedy once.
//!
//! What `Session` does is written where it belongs: what both sides' messages do to it in [`crate::session`], what it asks a
//! remedy or a service beside that remedy or service, and who is asked when in [`super::list`].

use super::{Chatter, Commit, Cursors, EarlyBegin, Inquiries, Lobs, Loops, Raised, Statements};
use crate::config::SessionConfig;
use crate::facts::Facts;
use crate::own_names::OwnNames;
use crate::services::{Flights, Shadow, Unseen};
use crate::session::core::Core;

/// One client's conversation: decides what each message becomes and counts its trips.
///
/// Contract: call one `handle_*` with the bytes at the front, do what it says, send what the outboxes hold, repeat
/// until it says [`Verdict::Wait`].
#[derive(Debug)]
pub struct Session {
    pub(crate) core: Core,
    pub(crate) own_names: OwnNames,
    pub(crate) config: SessionConfig,
    pub(crate) begin: EarlyBegin,
    pub(crate) facts: Facts,
    pub(crate) inquiries: Inquiries,
    pub(crate) shadow: Shadow,
    pub(crate) unseen: Unseen,
    pub(crate) flights: Flights,
    pub(crate) loops: Loops,
    pub(crate) chatter: Chatter,
    pub(crate) statements: Statements,
    pub(crate) cursors: Cursors,
    pub(crate) lobs: Lobs,
    pub(crate) commit: Commit,
    #[cfg(test)]
    pub(crate) example: crate::remedies::Example,
    pub(crate) raised: Raised,
}
