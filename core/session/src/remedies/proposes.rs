//! Those whose guesses fly: what the flights ask a remedy.

use std::time::Duration;

use onetrip_ledger::Moment;
use onetrip_loops::Guess;

use super::remedy::{Cx, Need, Remedy};
use crate::contract::SessionError;
use crate::services::Said;
use crate::slots::Slot;

/// A remedy whose guesses fly.
pub(crate) trait Proposes: Remedy {
    /// Whether it may have this guess run, and what is to be looked at first.
    fn claims_guess(&self, cx: &Cx<'_>, guess: &Guess<'_>) -> Option<Need>;

    /// The request that the guess stands for, if it may be run: its answer is kept under that.
    fn key_of(&self, cx: &Cx<'_>, guess: &Guess<'_>) -> Option<Vec<u8>>;

    /// Puts the messages of the guess.
    fn put_guess(&mut self, cx: &mut Cx<'_>, now: Moment, guess: &Guess<'_>);
}

/// One that also sends calls of its own in the shield, and takes their replies itself.
pub(crate) trait Calls: Proposes {
    /// Whether it may have some behind the client's unit that has just gone to the server, and what is to be looked at first.
    fn claims_calls(&self) -> Option<Need>;

    /// Decides which.
    fn plan_calls(&mut self, cx: &mut Cx<'_>, now: Moment);

    /// Whether any are to be put.
    fn has_calls(&self) -> bool;

    /// Puts them.
    fn put_calls(&mut self, cx: &mut Cx<'_>);

    /// The server says something to one. Returns whether it is good.
    ///
    /// # Errors
    ///
    /// The session ends where the server has done what it cannot be told to take back.
    fn call_reply(&mut self, cx: &mut Cx<'_>, slot: Slot, said: &Said<'_>) -> Result<bool, SessionError>;

    /// One has been answered, in so much time; `is_spoilt` where something of it cannot be used.
    fn call_ends(&mut self, cx: &mut Cx<'_>, slot: Slot, is_spoilt: bool, execution: Duration);
}
