//! What the session asks the flights: when one leaves, and what the server says to it.

use std::time::Duration;

use onetrip_ledger::{Moment, Remedy, TransactionStatus};
use onetrip_loops::{Flight, Guess, Origin, Outcome};
use onetrip_wire::pg::{StatementOrPortal, backend};

use super::{Part, SETTINGS, name_of_example, put_close, put_sync};
use crate::contract::SessionError;
use crate::remedies::flights::{Flights, since_start};
use crate::remedies::own::NO_LIMIT;
use crate::remedies::remedy::Cx;
use crate::remedies::said::Said;
use crate::remedies::{Rule, Session};
use crate::reply_queue::Due;
use crate::slots::Slot;

impl Session {
    /// A unit of the program's has gone to the server: what was planned with it goes behind it.
    pub(crate) fn unit_sent(&mut self, now: Moment) {
        if !self.core.may_send_own() {
            return;
        }
        self.flights.contact_at = now;
        let has_calls = self.plan_calls(now);
        if has_calls || !self.flights.planned.is_empty() {
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
        if !is_in_place || !self.flights.planned.is_empty() {
            return;
        }
        self.flights.predictor.plan(&mut self.flights.planned);
        self.send_planned(now);
    }

    fn send_planned(&mut self, now: Moment) {
        let mut planned = std::mem::take(&mut self.flights.planned);
        self.send_flight(now, &planned);
        planned.clear();
        self.flights.planned = planned;
    }

    /// The server answers a unit of the client's: it may be the one that is watched.
    pub(crate) fn watched_reply(&mut self, due: Due, said: &Said<'_>) {
        if self.flights.watch_reply(self.facts.path.distance(), due, said) {
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
        put_head(&mut self.cx());
        let (remedy, mut cx) = self.caller();
        remedy.put_calls(&mut cx);
        for guess in &accepted {
            if let Some((remedy, mut cx)) = self.proposer_of(guess) {
                remedy.put_guess(&mut cx, now, guess);
            }
        }
        put_tail(&mut self.cx());
        self.flights.in_flight.sent += 1;
        self.flights.contact_at = now;
    }

    /// Makes room for the answer of a guess, if that may be run. Returns whether there is some.
    fn expect_guess(&mut self, now: Moment, guess: &Guess<'_>) -> bool {
        let key = self.key_of_guess(now, guess);
        let Flights { buffer, predictor, .. } = &mut self.flights;
        let is_kept =
            key.is_some_and(|key| buffer.expect(since_start(now), guess.ticket, &key, Origin::Guess));
        if !is_kept {
            predictor.failed(guess.ticket);
        }
        is_kept
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
    pub(crate) fn flight_reply(&mut self, slot: Slot, said: &Said<'_>) -> Result<(), SessionError> {
        if said.is_failure() {
            self.flights.in_flight.spoil();
        }
        match self.flights.in_flight.parts.get(slot).copied() {
            Some(Part::Head) if self.flights.in_flight.status_before == 0 => {
                self.flights.in_flight.status_before = self.core.server_status();
            }
            Some(Part::Guess { ticket, example, .. }) => self.flights.guess_reply(ticket, example, said),
            Some(Part::Call(of)) => {
                let (remedy, mut cx) = self.caller();
                if !remedy.call_reply(&mut cx, of, said)? {
                    self.flights.in_flight.spoil();
                }
            }
            _ => {}
        }
        if said.tag == backend::READY_FOR_QUERY {
            self.part_ends(slot, said)?;
        }
        Ok(())
    }

    /// A ReadyForQuery ends a part of a flight.
    fn part_ends(&mut self, slot: Slot, said: &Said<'_>) -> Result<(), SessionError> {
        let in_flight = &mut self.flights.in_flight;
        let is_spoilt = std::mem::take(&mut in_flight.is_spoilt);
        let execution = Duration::from_nanos(said.now.since(in_flight.part_ended_at));
        in_flight.part_ended_at = said.now;
        let (bytes, rows) = (std::mem::take(&mut in_flight.bytes), std::mem::take(&mut in_flight.rows));
        match in_flight.parts.take(slot) {
            Some(Part::Guess { ticket, .. }) => {
                let outcome = Outcome { execution: Some(execution), bytes, rows };
                self.flights.guess_ends(ticket, is_spoilt, outcome);
            }
            Some(Part::Call(of)) => {
                let (remedy, mut cx) = self.caller();
                remedy.call_ends(&mut cx, of, is_spoilt, execution);
            }
            Some(Part::Tail) => {
                let before = std::mem::take(&mut in_flight.status_before);
                if said.body() != [before] && Rule::ShieldEnds.is_kept() {
                    let message = "onetrip could not take back what it had read ahead in this transaction";
                    let hint = "Connect again; leave the remedy out by --remedies exact,-loops.";
                    self.refuse("08006", message, Some(hint));
                    return Err(SessionError::ShieldBroken);
                }
                self.plan_flight(said.now);
            }
            Some(Part::Head | Part::Unlimited | Part::Sign) | None => {}
        }
        Ok(())
    }
}

/// The savepoint, and the limits of what comes behind it.
fn put_head(cx: &mut Cx<'_>) {
    let head = cx.flights.in_flight.put(Part::Head);
    let savepoint = cx.own_names.name();
    cx.put_own_statement(head, &[b"SAVEPOINT ", savepoint].concat());
    if Rule::Harmless.is_kept() {
        cx.put_own_statement(head, SETTINGS.as_bytes());
    }
    put_sync(cx.core, head);
}

/// The way back.
fn put_tail(cx: &mut Cx<'_>) {
    if Rule::Harmless.is_kept() {
        let unlimited = cx.flights.in_flight.put(Part::Unlimited);
        cx.put_own_statement(unlimited, NO_LIMIT.as_bytes());
        put_sync(cx.core, unlimited);
    }
    let tail = cx.flights.in_flight.put(Part::Tail);
    let savepoint = cx.own_names.name();
    cx.put_own_statement(tail, &[b"ROLLBACK TO SAVEPOINT ", savepoint].concat());
    cx.put_own_statement(tail, &[b"RELEASE SAVEPOINT ", savepoint].concat());
    for example in cx.flights.in_flight.prepared.drain(..) {
        let name = name_of_example(cx.own_names, example);
        put_close(cx.core, tail, StatementOrPortal::Statement(&name));
    }
    put_sync(cx.core, tail);
}
