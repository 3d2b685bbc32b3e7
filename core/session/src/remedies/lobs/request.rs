//! What a program asks of large objects: from memory, from what is under way, or from the server.

use std::time::Duration;

use onetrip_ledger::{Moment, Remedy, TransactionStatus};
use onetrip_loops::{AGE_MAX, Answer, Asking, Form, Ticket, Value};
use onetrip_wire::Prefetch;
use onetrip_wire::pg::{
    Bind, Execute, FrameHeader, FunctionCall, FunctionCallResponse, HEADER_BYTES, Oid, Parse,
    TransactionStatus as WireStatus, backend, encode_ready_for_query, frontend,
};
use smallvec::smallvec;

use super::ahead::content_of;
use super::call::{Call, Whence, int4, int8, only_reads, place_bytes};
use super::descriptor::{At, Descriptor};
use super::settle::wrong_number;
use super::{Lobs, OPEN_MAX, Running};
use crate::contract::{SessionError, Verdict};
use crate::reading::Effect;
use crate::remedies::Rule;
use crate::remedies::Session;
use crate::reply_queue::{Due, Expect, Service, Taker};
use crate::services::Arrived;
use crate::services::Said;
use crate::services::flights::{Flights, Request};
use crate::session::core::Core;

/// The type of an oid.
const OID: Oid = 26;

/// What is the same in all calls of `lo_open` in this mode.
pub(super) fn name_of_open(mode: i32) -> [u8; 5] {
    let [a, b, c, d] = mode.to_be_bytes();
    [b'F', a, b, c, d]
}

impl Lobs {
    /// A `lo_open` with this body, as what a loop may ask for.
    fn request_of<'a>(&mut self, flights: &mut Flights, body: &'a [u8], mode: i32) -> Option<Request<'a>> {
        let oid = FunctionCall::decode(body).ok()?.arguments.iter().next().flatten()?;
        let name = name_of_open(mode);
        let example = match flights.find_example(&name) {
            Some(example) => example,
            None => flights.add_example(Remedy::Lobs, &name, &name, 0)?,
        };
        self.modes.insert(example, mode);
        let values = smallvec![Value { bytes: Some(oid), form: Form::Binary(OID) }];
        Some(Request { example, key: [&name[..], oid].concat(), values, begins: false, names: false })
    }
}

impl Session {
    /// Deals with the message at the front of `input`, which begins a unit, as far as large objects are concerned: it is a
    /// call that is followed, or something before which the server's descriptors have to be in place.
    pub(crate) fn answer_lob(&mut self, now: Moment, header: FrameHeader, input: &[u8]) -> Option<Verdict> {
        self.lobs.passing = None;
        let is_in_place = self.core.status() == TransactionStatus::Active && self.facts.transaction.is_seen();
        if !is_in_place || !self.may_remedy(Remedy::Lobs) {
            return None;
        }
        if header.tag != frontend::FUNCTION_CALL {
            let is_good = self.lobs.is_settled() || self.is_harmless(now, input);
            return if is_good { None } else { self.settle(now) };
        }
        let call = input.get(HEADER_BYTES..header.frame_len()).and_then(Call::decode);
        let is_alone = input.len() == header.frame_len() && self.is_quiet();
        let Some(call) = call.filter(|call| is_alone && self.is_followed(*call)) else {
            return self.settle(now);
        };
        match (call, call.fd()) {
            (_, Some(fd)) => self.answer_call(now, input, call, fd),
            (Call::Open { oid, mode }, None) => self.answer_open(now, input, oid, mode),
            _ => None,
        }
        .or_else(|| {
            self.lobs.passing = Some(call);
            None
        })
    }

    /// Whether a call does nothing but read, and what it does to descriptors can be told (rule L1).
    fn is_followed(&self, call: Call) -> bool {
        let lobs = &self.lobs;
        match call {
            Call::Open { mode, .. } => {
                Rule::ReadOnly.requires(only_reads(mode)) && lobs.open.len() < OPEN_MAX
            }
            _ => call.fd().is_some_and(|fd| lobs.open.contains_key(&fd)),
        }
    }

    fn answer_open(&mut self, now: Moment, input: &[u8], oid: u32, mode: i32) -> Option<Verdict> {
        let is_snapshot = Rule::Ahead.requires(self.facts.transaction.isolation().is_snapshot());
        let request = self.lobs.request_of(&mut self.flights, &input[HEADER_BYTES..], mode);
        let may_answer = is_snapshot && !self.shadow.has_disproved() && self.numbers_are_proven(now);
        if let Some(request) = request.as_ref().filter(|_| may_answer) {
            let asking = Asking {
                now: Duration::from_nanos(now.0),
                in_transaction: true,
                is_pure: true,
                all_rows: true,
                nothing_ahead: true,
                age_max: AGE_MAX,
            };
            let is_owed = self.core.queue().owes(Service::Flights);
            match self.flights.ask(request, &asking).0 {
                Answer::Serve(ticket, kept) => {
                    let content = content_of(kept);
                    let mut open = Descriptor::new(oid, mode, At::Nowhere);
                    open.content = content;
                    return Some(self.serve_open(now, input, open, ticket));
                }
                Answer::Wait(ticket) if is_owed => {
                    self.flights.hold(now, ticket);
                    return Some(Verdict::Hold);
                }
                _ => self.flights.forget_hold(),
            }
        }
        let before = self.settle(now);
        // What is not read ahead by the program's own word is no loop to learn from.
        let may_read = self.lobs.prefetch(&self.facts, &self.config.lobs, oid) != Prefetch::Locator;
        if let (None, Some(request), true) = (&before, &request, is_snapshot && may_read) {
            // Those that a loop opens next may go along.
            self.prove(now);
            let plans = self.may_plan() && self.lobs.may_open_ahead(&self.facts, &self.config.lobs, oid);
            self.flights.watch(&self.core, now, request, true, plans);
        }
        before
    }

    /// The server's descriptors are brought to where the program believes them to be; `None` if there is nothing to do.
    fn settle(&mut self, now: Moment) -> Option<Verdict> {
        self.lobs.settle(&mut self.core, &mut self.flights, now)
    }

    /// Whether nothing in this unit can tell where a descriptor stands, or do anything with one but close all.
    fn is_harmless(&mut self, now: Moment, input: &[u8]) -> bool {
        let Some(unit) = Arrived::peek(input) else { return input.first() == Some(&frontend::TERMINATE) };
        let (mut parsed, mut bound): (Option<&[u8]>, bool) = (None, false);
        unit.messages().all(|(tag, body)| match tag {
            frontend::QUERY => body.strip_suffix(b"\0").is_some_and(|text| self.text_is_harmless(now, text)),
            frontend::PARSE => Parse::decode(body).is_ok_and(|parse| {
                parsed = Some(parse.statement);
                self.text_is_harmless(now, parse.text)
            }),
            frontend::BIND => Bind::decode(body).is_ok_and(|bind| {
                bound = bind.portal.is_empty();
                bound && (parsed == Some(bind.statement) || self.is_prepared_harmless(now, bind.statement))
            }),
            frontend::EXECUTE => Execute::decode(body).is_ok_and(|run| bound && run.portal.is_empty()),
            _ => true,
        })
    }

    fn is_prepared_harmless(&mut self, now: Moment, statement: &[u8]) -> bool {
        let text = self.facts.surely_prepared(&self.core, statement).map(<[u8]>::to_vec);
        text.is_some_and(|text| self.text_is_harmless(now, &text))
    }

    fn text_is_harmless(&mut self, now: Moment, text: &[u8]) -> bool {
        let (effect, template) = self.effect_of(text);
        match effect {
            Effect::End | Effect::Nothing | Effect::Deallocates => true,
            Effect::Read => self.surely_reads(now, template),
            _ => false,
        }
    }

    /// Whether the number of the next descriptor is known, now that it is tried (rule L6).
    fn numbers_are_proven(&mut self, now: Moment) -> bool {
        self.prove(now);
        self.lobs.numbers_are_sure(&self.facts)
    }

    /// The program opens an object that was read ahead.
    fn serve_open(&mut self, now: Moment, input: &[u8], open: Descriptor, ticket: Ticket) -> Verdict {
        let fd = self.lobs.free_number(false);
        self.lobs.open.insert(fd, open);
        self.lobs.decide_replay(self.config.verify, fd);
        let (arrived_at, is_trip) = self.flights.end_hold(now);
        self.serve_call(now, arrived_at, input, &fd.to_be_bytes(), is_trip);
        self.flights.served(now, ticket);
        self.plan_flight(now);
        Verdict::Replace(input.len())
    }

    fn answer_call(&mut self, now: Moment, input: &[u8], call: Call, fd: i32) -> Option<Verdict> {
        let is_proven = self.lobs.is_proven(now, call.function()) && !self.shadow.has_disproved();
        let open = self.lobs.open.get_mut(&fd)?;
        let place = open.place;
        let is_free = open.under_way == 0 || !matches!(call, Call::Close { .. });
        let value = match call {
            _ if !is_proven || !is_free => None,
            Call::Read { count, .. } => open.read(count).map(<[u8]>::to_vec),
            Call::Seek { offset, whence, is_wide, .. } => {
                open.seek(offset, whence).map(|place| place_bytes(place, is_wide))
            }
            Call::Tell { is_wide, .. } => Some(place_bytes(open.place, is_wide)),
            Call::Close { .. } => Some(0i32.to_be_bytes().to_vec()),
            Call::Open { .. } => None,
        };
        self.lobs.wants_size |= matches!(call, Call::Seek { whence: Whence::End, .. });
        let Some(value) = value else { return self.settle(now) };
        match call {
            Call::Close { fd } => self.lobs.close_early(&mut self.core, now, fd),
            _ => self.lobs.keep_answer(self.config.verify, fd, (call, place), &value),
        }
        // What has come behind the answer that the program waited for before has cost no trip more.
        let arrived_at = self.lobs.held_at.take().unwrap_or(now);
        self.lobs.in_vain = 0;
        self.serve_call(now, arrived_at, input, &value, false);
        Some(Verdict::Replace(input.len()))
    }

    /// Answers a call with this value.
    fn serve_call(&mut self, now: Moment, arrived_at: Moment, input: &[u8], value: &[u8], is_trip: bool) {
        let number = self.core.units().oldest(); // the next one: nothing is under way
        self.core.set_taker(Taker::Nobody);
        self.book_request(arrived_at, frontend::FUNCTION_CALL, &input[HEADER_BYTES..], true);
        self.core.set_taker(Taker::Client);
        let reply_at = self.core.client_outbox().len();
        FunctionCallResponse { value: Some(value) }.encode(self.core.client_outbox());
        encode_ready_for_query(self.core.client_outbox(), WireStatus::Active);
        let length = self.core.client_outbox().len() - reply_at;
        let due = Due { taker: Taker::Nobody, ..Due::of_client(Expect::FunctionCall, number, Some(0)) };
        let mut body = (value.len() as u32).to_be_bytes().to_vec();
        body.extend_from_slice(value);
        self.book_part(due, backend::FUNCTION_CALL_RESPONSE, &body, true);
        if !is_trip {
            self.core.answered_by(number, Remedy::Lobs);
            self.facts.used();
        }
        self.core.bytes_sent(input.len());
        self.core.bytes_received(number, length, now);
        self.book_answered(now);
        self.flights.show_presence(&mut self.core, now);
    }
}

impl Lobs {
    /// The descriptor that the program closes is closed on the server as well, if there is one.
    fn close_early(&mut self, core: &mut Core, now: Moment, fd: i32) {
        let Some(open) = self.open.remove(&fd) else { return };
        self.learn(&open);
        self.verify_object(core, now, fd, &open);
        if open.at != At::Nowhere {
            self.own_call(core, Call::Close { fd }, &0i32.to_be_bytes());
        }
    }

    /// A FunctionCall of the client's goes to the server as it came. Returns whether it is one that is followed.
    pub(crate) fn call_sent(&mut self, core: &Core) -> bool {
        if core.taker() == Taker::Nobody {
            return true;
        }
        let unit = core.units().oldest(); // the next one: nothing is under way
        let passing = self.passing.take();
        let is_followed = passing.is_some();
        self.running = passing.map(|call| Running { unit, call, steps: 0 });
        is_followed
    }

    /// The server answers a message of the client's, which may be the call that is followed.
    pub(crate) fn client_reply(
        &mut self,
        core: &mut Core,
        due: Due,
        said: &Said<'_>,
    ) -> Result<(), SessionError> {
        let Some(running) = self.running.take_if(|running| running.unit == due.unit) else {
            return Ok(());
        };
        if said.tag != backend::FUNCTION_CALL_RESPONSE {
            return Ok(()); // it has failed
        }
        let Running { call, steps, .. } = running;
        let Some((length, value)) = said.body().split_first_chunk() else { return Ok(()) };
        let length = i64::from(u32::from_be_bytes(*length));
        self.prove(said.now, call.function());
        if let (Call::Open { oid, mode }, Some(fd)) = (call, int4(value)) {
            let is_told = fd == self.free_number(true);
            self.is_sure &= is_told;
            let mut open = Descriptor::new(oid, mode, At::Place(0));
            open.under_way = steps;
            self.open.insert(fd, open);
            return if is_told || steps == 0 { Ok(()) } else { wrong_number(core) };
        }
        let Some(open) = call.fd().and_then(|fd| self.open.get_mut(&fd)) else { return Ok(()) };
        match call {
            Call::Read { .. } => {
                open.place += length;
                open.read += usize::try_from(length).unwrap_or_default();
                self.has_read = true;
            }
            Call::Seek { whence, is_wide, .. } => {
                let told = if is_wide { int8(value) } else { int4(value).map(i64::from) };
                open.place = told.unwrap_or(open.place);
                if whence == Whence::End {
                    self.has_read = true;
                }
            }
            Call::Close { fd } => {
                if let Some(open) = self.open.remove(&fd) {
                    self.learn(&open);
                }
                return Ok(());
            }
            Call::Open { .. } | Call::Tell { .. } => {}
        }
        open.at = At::Place(open.place);
        Ok(())
    }
}
