//! What a remedy is: the traits, what it is given, and what it may say.
//!
//! `Remedy` is for all. `Texts` is for those that answer what they know by its text. Those whose guesses fly implement
//! `Proposes` and `Calls` (`proposes`).

use std::fmt::Debug;

use onetrip_ledger::Moment;
use onetrip_wire::pg::FrameHeader;

use crate::config::SessionConfig;
use crate::contract::SessionError;
use crate::events::Event;
use crate::facts::Facts;
use crate::own_names::OwnNames;
use crate::reading::Deferral;
use crate::reply_queue::Taker;
use crate::services::{Arrived, Flights, Own, Said, Shadow, put_own_statement};
use crate::session::core::Core;
use crate::slots::Slot;

/// What takes round trips out of a program: private state, and what it makes of what happens. None knows another.
pub(crate) trait Remedy: Debug {
    /// Something has happened. There is no default: to ignore an event is a line that says so.
    fn on_event(&mut self, cx: &mut Cx<'_>, event: &Event<'_>);

    /// The server answers a message whose taker is this remedy.
    ///
    /// # Errors
    ///
    /// The session ends: the client, which has its answer, cannot be told otherwise.
    fn own_reply(&mut self, cx: &mut Cx<'_>, slot: Slot, said: &Said<'_>) -> Result<Own, SessionError>;

    /// An error made the server skip a message whose taker is this remedy.
    fn own_skipped(&mut self, slot: Slot);
}

/// A remedy that answers what it knows by its text: asked in two steps, so that what its answer depends on can be looked at
/// between them.
pub(crate) trait Texts: Remedy {
    /// Whether it may have an answer to the unit in front, and what is to be looked at first.
    fn claims(&mut self, cx: &mut Cx<'_>, asked: &Asked<'_>) -> Option<Need>;

    /// Its answer to the unit that it has claimed just before.
    fn answer(&mut self, cx: &mut Cx<'_>, asked: &Asked<'_>) -> Answer;
}

/// What the client asks, at the beginning of a unit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) now: Moment,
    pub(crate) header: FrameHeader,
    pub(crate) input: &'a [u8],
    /// Nothing of the client's is under way in either direction.
    pub(crate) is_quiet: bool,
}

impl<'a> Asked<'a> {
    /// The unit, if it has come whole, with nothing behind it.
    pub(crate) fn unit(&self) -> Option<Arrived<'a>> {
        Arrived::peek(self.input)
    }
}

/// What an answer depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// Nothing that is not known.
    Nothing,
    /// What was sent so far is proven to only read, or is not.
    Proof,
    /// The server is asked for the session's state ahead of it, where that is worth it.
    State,
}

/// What becomes of a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Another may know it, or the server does.
    NotKnown,
    /// It has to wait.
    Hold,
    /// The client is told so.
    Told(Told),
}

/// What the client is told: it is in the outbox for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) by: onetrip_ledger::Remedy,
    /// Bytes of it.
    pub(crate) reply: usize,
    /// Who takes the server's replies to the unit, which goes on as it came; none where something else, or nothing, was sent
    /// in place of one simple query.
    pub(crate) taker: Option<Taker>,
    /// What becomes of the client's transaction.
    pub(crate) change: Change,
}

/// What becomes of the client's transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// It goes on, or there is none.
    None,
    /// It begins.
    Begins { deferral: Deferral },
    /// It is over.
    Ends,
}

/// All of a session but its remedies.
pub(crate) struct Cx<'a> {
    pub(crate) core: &'a mut Core,
    pub(crate) facts: &'a mut Facts,
    pub(crate) config: &'a SessionConfig,
    pub(crate) own_names: &'a OwnNames,
    pub(crate) shadow: &'a mut Shadow,
    pub(crate) flights: &'a mut Flights,
}

impl Cx<'_> {
    /// Whether this remedy is on and can be of use here.
    pub(crate) fn may_remedy(&self, remedy: onetrip_ledger::Remedy) -> bool {
        self.config.remedies.has(remedy) && self.facts.path.is_worth_it()
    }

    /// Runs a statement of the session's own by its private name, without a Sync.
    pub(crate) fn put_own_statement(&mut self, taker: impl Into<Taker>, text: &[u8]) {
        put_own_statement(self.core, self.own_names, taker, text);
    }
}
