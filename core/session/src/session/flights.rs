//! When a flight leaves, and who of its proposers hears what the server says to it.

use onetrip_ledger::{Moment, Remedy, TransactionStatus};
use onetrip_loops::{Flight, Guess};
use onetrip_wire::pg::backend;

use super::Session;
use crate::contract::SessionError;
use crate::reply_queue::Due;
use crate::rules::Rule;
use crate::services::Said;
use crate::services::flights::Ended;
use crate::slots::Slot;

impl Session {
    /// A unit of the program's has gone to the server: what was planned with it goes behind it.
    pub(crate) fn unit_sent(&mut self, now: Moment) {
        if !self.core.may_send_own() {
            return;
        }
        self.acting.flights.note_contact(now);
        let has_calls = self.plan_calls(now);
        if has_calls || self.acting.flights.has_planned() {
            self.send_planned(now);
        }
    }

    /// Whether all reads see one snapshot, and it was taken (rule P1): the server has told the level, and a
    /// statement of the transaction has succeeded.
    pub(crate) fn is_in_snapshot(&self) -> bool {
        let is_told = self.facts.transaction.is_seen() && self.facts.transaction.isolation().is_snapshot();
        self.core.status() == TransactionStatus::Active && Rule::Snapshot.requires(is_told)
    }

    /// Whether anything may be run ahead of a loop.
    pub(crate) fn may_plan(&self) -> bool {
        self.may_remedy(Remedy::Loops) || self.may_remedy(Remedy::Lobs)
    }

    /// Asks the predictor for more, and sends it at once.
    pub(crate) fn plan_flight(&mut self, now: Moment) {
        let is_in_place = self.may_plan() && self.is_in_snapshot() && self.core.may_send_own();
        if !is_in_place || self.acting.flights.has_planned() {
            return;
        }
        self.acting.flights.plan();
        self.send_planned(now);
    }

    fn send_planned(&mut self, now: Moment) {
        let planned = self.acting.flights.take_planned();
        self.send_flight(now, &planned);
        self.acting.flights.planned_left(planned);
    }

    /// The server answers a unit of the client's: it may be the one that is watched.
    pub(crate) fn watched_reply(&mut self, due: Due, said: &Said<'_>) {
        if self.acting.flights.watch_reply(self.facts.path.distance(), due, said) {
            self.plan_flight(said.now);
        }
    }
}

impl Session {
    /// Sends the guesses of `flight`, and the calls that are to go along.
    pub(crate) fn send_flight(&mut self, now: Moment, flight: &Flight) {
        let accepted: Vec<Guess<'_>> =
            flight.guesses().filter(|guess| self.expect_guess(now, guess)).collect();
        if accepted.is_empty() && !self.has_calls() {
            return;
        }
        self.acting.flights.put_head(&mut self.core, &self.own_names);
        let (remedy, mut cx) = self.caller();
        remedy.put_calls(&mut cx);
        for guess in &accepted {
            if let Some((remedy, mut cx)) = self.proposer_of(guess) {
                remedy.put_guess(&mut cx, now, guess);
            }
        }
        self.acting.flights.put_tail(&mut self.core, &self.own_names, now);
    }

    /// Makes room for the answer of a guess, if that may be run. Returns whether there is some.
    fn expect_guess(&mut self, now: Moment, guess: &Guess<'_>) -> bool {
        let key = self.key_of_guess(now, guess);
        self.acting.flights.expect(now, guess, key.as_deref())
    }

    /// The request that a guess stands for, if its remedy may run it.
    fn key_of_guess(&mut self, now: Moment, guess: &Guess<'_>) -> Option<Vec<u8>> {
        let (remedy, cx) = self.proposer_of(guess)?;
        let need = remedy.claims_guess(&cx, guess)?;
        self.look_at(now, need);
        let (remedy, cx) = self.proposer_of(guess)?;
        remedy.key_of(&cx, guess)
    }

    /// The server answers a flight.
    ///
    /// # Errors
    ///
    /// The session ends where the server has done what it cannot be told to take back.
    pub(crate) fn flight_reply(&mut self, slot: Slot, said: &Said<'_>) -> Result<(), SessionError> {
        if let Some(of) = self.acting.flights.take_reply(&self.core, slot, said) {
            let (remedy, mut cx) = self.caller();
            if !remedy.call_reply(&mut cx, of, said)? {
                self.acting.flights.spoil();
            }
        }
        if said.tag == backend::READY_FOR_QUERY {
            self.part_ends(slot, said)?;
        }
        Ok(())
    }

    /// A ReadyForQuery ends a part of a flight.
    fn part_ends(&mut self, slot: Slot, said: &Said<'_>) -> Result<(), SessionError> {
        match self.acting.flights.part_ends(slot, said) {
            Ended::Nothing => {}
            Ended::Call { of, is_spoilt, execution } => {
                let (remedy, mut cx) = self.caller();
                remedy.call_ends(&mut cx, of, is_spoilt, execution);
            }
            Ended::Flight { is_taken_back } => {
                if !is_taken_back && Rule::ShieldEnds.is_kept() {
                    let message = "onetrip could not roll back what it had prefetched in this transaction";
                    let hint = "Connect again; leave the remedy out by --remedies exact,-loops.";
                    self.refuse("08006", message, Some(hint));
                    return Err(SessionError::ShieldBroken);
                }
                self.plan_flight(said.now);
            }
        }
        Ok(())
    }
}
