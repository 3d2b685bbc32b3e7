//! A flight: guesses that go to the server together, inside a savepoint that is rolled back whatever becomes of them.
//!
//! ```text
//!  [the program's statement, Sync]                          proves that the statement runs here (rule P11)
//!  SAVEPOINT s; set_config(lock_timeout, ...), Sync          rules P9, P11, P24
//!  Bind Describe Execute Close, Sync      for each guess     a Sync each: statement_timeout counts up to the next one
//!  ROLLBACK TO s; RELEASE s, Sync                            locks and settings of the guesses are gone
//! ```
//!
//! All names are the session's own, made of random bytes; the program's unnamed statement and portal stay as they are.

use std::time::Duration;

use onetrip_ledger::Moment;
use onetrip_loops::{Guess, Outcome, Ticket};
use onetrip_wire::pg::{Parse, StatementOrPortal, backend, frame, frontend};

use super::{Flights, feed_row};
use crate::own_names::OwnNames;
use crate::reply_queue::{Due, Expect, Service, Taker};
use crate::rules::Rule;
use crate::services::{NO_LIMIT, Said, put_close, put_own_statement};
use crate::session::core::Core;
use crate::slots::{Slot, Slots};

/// No guess waits longer for a lock, and none runs longer: what the program sends next is behind it (rule P11). Going
/// read-only is the second line behind the proof that the statement only reads.
const SETTINGS: &str = "SELECT pg_catalog.set_config('lock_timeout', '2ms', true), \
     pg_catalog.set_config('statement_timeout', '100ms', true), \
     pg_catalog.set_config('transaction_read_only', 'on', true)";

/// What the server is about to answer, part by part; the messages of a part have one slot, and a ReadyForQuery ends it.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    parts: Slots<Part>,
    /// The server's status when the flight began.
    status_before: u8,
    /// Something of the front part must not be kept.
    is_spoilt: bool,
    /// Flights that were sent.
    sent: u64,
    /// When the last part ended.
    part_ended_at: Moment,
    /// What the front guess's answer has come to so far.
    bytes: usize,
    rows: u64,
    /// Examples whose statements the flight that is being put has prepared.
    prepared: Vec<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// The savepoint.
    Head,
    /// A statement, whose answer is kept as it comes.
    Guess { ticket: Ticket, example: u32, flight: u64 },
    /// A call; what its answer is kept as, its remedy says.
    Call(Slot),
    /// The end of the guesses' limits: the way back is not to be ended by them. It fails where a guess has, and then the
    /// limits have ended with that.
    Unlimited,
    /// The way back.
    Tail,
    /// A Sync that shows the server that the program is there (rule P18).
    Sign,
}

/// What has ended with a part, and is for others to deal with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Nothing.
    Nothing,
    /// A call, in so much time; `is_spoilt` where something of its answer cannot be used.
    Call { of: Slot, is_spoilt: bool, execution: Duration },
    /// The flight; `is_taken_back` where the server's status is again as it was before.
    Flight { is_taken_back: bool },
}

impl InFlight {
    /// The number of the flight that brings this guess's answer, counted from one.
    pub(super) fn flight_of(&self, ticket: Ticket) -> u64 {
        let flight_of = |part: &Part| match part {
            Part::Guess { ticket: of, flight, .. } if *of == ticket => Some(*flight),
            _ => None,
        };
        self.parts.iter().find_map(flight_of).unwrap_or(self.sent + 1)
    }

    /// Something came that the guess's answer would have to bring along (rule P10).
    pub(super) fn spoil(&mut self) {
        self.is_spoilt = true;
    }

    /// The messages of this part follow; who takes their replies.
    fn put(&mut self, part: Part) -> Taker {
        Taker::Service(Service::Flights, self.parts.put(part))
    }
}

/// What those who propose guesses put into a flight.
impl Flights {
    /// The messages of this guess follow, and end with [`put_sync`]; who takes their replies.
    pub(crate) fn put_guess(&mut self, guess: &Guess<'_>) -> Taker {
        let flight = self.in_flight.sent + 1;
        self.in_flight.put(Part::Guess { ticket: guess.ticket, example: guess.template, flight })
    }

    /// A call follows, of which its remedy keeps something in this slot; who takes the reply.
    pub(crate) fn put_call(&mut self, slot: Slot) -> Taker {
        self.in_flight.put(Part::Call(slot))
    }

    /// Whether the flight has yet to prepare the statement of this example, which is closed with its end.
    pub(crate) fn prepares(&mut self, example: u32) -> bool {
        let is_new = !self.in_flight.prepared.contains(&example);
        if is_new {
            self.in_flight.prepared.push(example);
        }
        is_new
    }

    /// Lets the server see that the program is there (rule P18).
    pub(crate) fn put_sign(&mut self, core: &mut Core, now: Moment) {
        let sign = self.in_flight.put(Part::Sign);
        put_sync(core, sign);
        self.contact_at = now;
    }
}

/// The name of the statement of an example.
pub(crate) fn name_of_example(own_names: &OwnNames, example: u32) -> Vec<u8> {
    let mut name = own_names.name().to_vec();
    name.extend_from_slice(format!("_{example}").as_bytes());
    name
}

/// Prepares a statement. An error may have left one of this name, and a Parse that fails for that would end the program's
/// transaction.
pub(crate) fn put_parse(core: &mut Core, part: Taker, statement: &[u8], text: &[u8], types: &[u8]) {
    put_close(core, Due::own(part, Expect::Close), StatementOrPortal::Statement(statement));
    Parse::typed(statement, text, types).encode(core.server_outbox());
    core.owe_own(Due::own(part, Expect::Parse));
}

/// Ends a part.
pub(crate) fn put_sync(core: &mut Core, part: Taker) {
    frame(core.server_outbox(), frontend::SYNC, |_| ());
    core.owe_own(Due::own(part, Expect::Sync));
}

/// A flight on its way there.
impl Flights {
    /// Puts the savepoint, and the limits of what comes behind it.
    pub(crate) fn put_head(&mut self, core: &mut Core, own_names: &OwnNames) {
        let head = self.in_flight.put(Part::Head);
        let savepoint = own_names.name();
        put_own_statement(core, own_names, head, &[b"SAVEPOINT ", savepoint].concat());
        if Rule::Harmless.is_kept() {
            put_own_statement(core, own_names, head, SETTINGS.as_bytes());
        }
        put_sync(core, head);
    }

    /// Puts the way back: with that, the flight has left.
    pub(crate) fn put_tail(&mut self, core: &mut Core, own_names: &OwnNames, now: Moment) {
        if Rule::Harmless.is_kept() {
            let unlimited = self.in_flight.put(Part::Unlimited);
            put_own_statement(core, own_names, unlimited, NO_LIMIT.as_bytes());
            put_sync(core, unlimited);
        }
        let tail = self.in_flight.put(Part::Tail);
        let savepoint = own_names.name();
        put_own_statement(core, own_names, tail, &[b"ROLLBACK TO SAVEPOINT ", savepoint].concat());
        put_own_statement(core, own_names, tail, &[b"RELEASE SAVEPOINT ", savepoint].concat());
        for example in self.in_flight.prepared.drain(..) {
            let name = name_of_example(own_names, example);
            put_close(core, Due::own(tail, Expect::Close), StatementOrPortal::Statement(&name));
        }
        put_sync(core, tail);
        self.in_flight.sent += 1;
        self.contact_at = now;
    }
}

/// What the server says to it.
impl Flights {
    /// The server answers a flight. Returns the slot of the call that this is for, if it is one.
    pub(crate) fn take_reply(&mut self, core: &Core, slot: Slot, said: &Said<'_>) -> Option<Slot> {
        if said.is_failure() {
            self.in_flight.spoil();
        }
        match self.in_flight.parts.get(slot).copied() {
            Some(Part::Head) if self.in_flight.status_before == 0 => {
                self.in_flight.status_before = core.server_status();
            }
            Some(Part::Guess { ticket, example, .. }) => self.guess_reply(ticket, example, said),
            Some(Part::Call(of)) => return Some(of),
            _ => {}
        }
        None
    }

    /// What the server has said to a call is not what it should be.
    pub(crate) fn spoil(&mut self) {
        self.in_flight.spoil();
    }

    /// A ReadyForQuery ends a part of a flight. Returns what has ended with it.
    pub(crate) fn part_ends(&mut self, slot: Slot, said: &Said<'_>) -> Ended {
        let in_flight = &mut self.in_flight;
        let is_spoilt = std::mem::take(&mut in_flight.is_spoilt);
        let execution = Duration::from_nanos(said.now.since(in_flight.part_ended_at));
        in_flight.part_ended_at = said.now;
        let (bytes, rows) = (std::mem::take(&mut in_flight.bytes), std::mem::take(&mut in_flight.rows));
        match in_flight.parts.take(slot) {
            Some(Part::Guess { ticket, .. }) => {
                let outcome = Outcome { execution: Some(execution), bytes, rows };
                self.guess_ends(ticket, is_spoilt, outcome);
                Ended::Nothing
            }
            Some(Part::Call(of)) => Ended::Call { of, is_spoilt, execution },
            Some(Part::Tail) => {
                let before = std::mem::take(&mut in_flight.status_before);
                Ended::Flight { is_taken_back: said.body() == [before] }
            }
            Some(Part::Head | Part::Unlimited | Part::Sign) | None => Ended::Nothing,
        }
    }

    /// The server says something to a guess at a statement.
    fn guess_reply(&mut self, ticket: Ticket, example: u32, said: &Said<'_>) {
        let is_kept = match said.tag {
            backend::ROW_DESCRIPTION | backend::NO_DATA | backend::DATA_ROW | backend::COMMAND_COMPLETE => {
                said.is_whole && self.buffer.append(ticket, said.message)
            }
            backend::PARSE_COMPLETE
            | backend::BIND_COMPLETE
            | backend::CLOSE_COMPLETE
            | backend::READY_FOR_QUERY => true,
            _ => false,
        };
        if !is_kept {
            return self.in_flight.spoil();
        }
        self.in_flight.bytes += said.message.len();
        self.in_flight.rows += u64::from(said.tag == backend::DATA_ROW);
        if said.tag == backend::DATA_ROW {
            feed_row(&mut self.predictor, self.examples.get(example), ticket, said.body());
        }
    }
}
