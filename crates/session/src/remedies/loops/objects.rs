//! Loops over large objects: a `lo_open` is a statement whose value is the object's oid. What answers a guess is a chain of
//! calls, and what is made of it is told by the remedy `lobs`.

use onetrip_ledger::Moment;
use onetrip_loops::{Buffer, Form, Outcome, Ticket, Value};
use onetrip_wire::pg::{FunctionCall, Oid};
use smallvec::smallvec;

use super::request::{Request, Way};
use super::{SIGN_AFTER, since_start};
use crate::remedies::Rule;
use crate::session::{Session, Verdict};

/// The type of an oid.
const OID: Oid = 26;

impl Session {
    /// A `lo_open` with this body, as what a loop may ask for.
    pub(crate) fn loops_object<'a>(&mut self, body: &'a [u8], mode: i32) -> Option<Request<'a>> {
        let oid = FunctionCall::decode(body).ok()?.arguments.iter().next().flatten()?;
        let way = Way::Object { mode };
        let mut key = Vec::new();
        way.put_name(&mut key);
        let example = self.loops.examples.place(&key, 0, way)?;
        key.extend_from_slice(oid);
        let values = smallvec![Value { bytes: Some(oid), form: Form::Binary(OID) }];
        Some(Request { example, key, values, begins: false, names: false })
    }

    /// Where answers wait.
    pub(crate) fn loops_buffer(&mut self) -> &mut Buffer {
        &mut self.loops.buffer
    }

    /// An object is opened on the server, in a transaction whose reads see one snapshot: those that a loop opens next may
    /// go along.
    pub(crate) fn watch_object(&mut self, now: Moment, request: &Request<'_>, oid: Oid) {
        let plans = self.may_open_ahead(now, oid);
        self.watch(now, request, true, plans);
    }

    /// The client waits for an object that is under way.
    pub(crate) fn hold_for_flight(&mut self, now: Moment, ticket: Ticket) -> Verdict {
        let flight = self.loops.in_flight.flight_of(ticket);
        self.loops.held.get_or_insert((now, flight));
        Verdict::Hold
    }

    /// The client does not wait for a guess.
    pub(crate) fn forget_hold(&mut self) {
        self.loops.held = None;
    }

    /// The client has what it waited for. Returns when its unit came, and whether that was a trip: units that wait for one
    /// flight wait for one.
    pub(crate) fn end_hold(&mut self, now: Moment) -> (Moment, bool) {
        let held = self.loops.held.take();
        let is_trip = held.is_some_and(|(_, flight)| flight > self.loops.waited_for);
        if is_trip {
            self.loops.waited_for = held.map_or(0, |(_, flight)| flight);
        }
        (held.map_or(now, |(arrived_at, _)| arrived_at), is_trip)
    }

    /// The program has opened an object from memory.
    pub(crate) fn object_served(&mut self, now: Moment, ticket: Ticket) {
        self.loops.predictor.served(since_start(now), ticket);
        self.plan_flight(now);
    }

    /// The chain that answers a guess is over.
    pub(crate) fn guess_ends(&mut self, ticket: Ticket, is_spoilt: bool, outcome: Outcome) {
        if is_spoilt {
            self.loops.buffer.fail(ticket);
            self.loops.predictor.failed(ticket);
        } else {
            self.loops.buffer.complete(ticket);
            self.loops.predictor.result_end(ticket, outcome);
        }
    }

    /// The program was answered from memory: a server that has not heard of it for long gets a sign (rule P18).
    pub(crate) fn show_presence(&mut self, now: Moment) {
        let silence = now.since(self.loops.contact_at);
        if silence >= SIGN_AFTER.as_nanos() as u64 && Rule::Sign.is_kept() {
            self.send_sign(now);
        }
    }

    /// Something was sent to the server.
    pub(crate) fn note_contact(&mut self, now: Moment) {
        self.loops.contact_at = now;
    }
}
