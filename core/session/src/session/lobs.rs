//! How `lobs` is asked: which call is answered, from memory or from what is under way, and what goes to the server first.

use std::time::Duration;

use onetrip_ledger::{Moment, Remedy, TransactionStatus};
use onetrip_loops::{AGE_MAX, Answer, Asking, Ticket};
use onetrip_wire::Prefetch;
use onetrip_wire::pg::{
    Bind, Execute, FrameHeader, FunctionCallResponse, HEADER_BYTES, Parse, TransactionStatus as WireStatus,
    backend, encode_ready_for_query, frontend,
};

use super::{Acting, Session};
use crate::contract::Verdict;
use crate::reading::Effect;
use crate::remedies::lobs::Call;
use crate::remedies::remedy::Cx;
use crate::reply_queue::{Due, Expect, Service, Taker};
use crate::rules::Rule;
use crate::services::Arrived;

impl Session {
    /// Deals with the message at the front of `input`, which begins a unit, as far as large objects are concerned: it is a
    /// call that is followed, or something before which the server's descriptors have to be in place.
    pub(crate) fn answer_lob(&mut self, now: Moment, header: FrameHeader, input: &[u8]) -> Option<Verdict> {
        self.acting.lobs.unit_begins();
        let is_in_place = self.core.status() == TransactionStatus::Active && self.facts.transaction.is_seen();
        if !is_in_place || !self.may_remedy(Remedy::Lobs) {
            return None;
        }
        if header.tag != frontend::FUNCTION_CALL {
            let is_good = self.acting.lobs.is_settled() || self.is_harmless(now, input);
            return if is_good { None } else { self.settle(now) };
        }
        let call = input.get(HEADER_BYTES..header.frame_len()).and_then(Call::decode);
        let is_alone = input.len() == header.frame_len() && self.is_quiet();
        let Some(call) = call.filter(|call| is_alone && self.acting.lobs.follows(*call)) else {
            return self.settle(now);
        };
        match (call, call.fd()) {
            (_, Some(fd)) => self.answer_call(now, input, call, fd),
            (Call::Open { oid, mode }, None) => self.answer_open(now, input, oid, mode),
            _ => None,
        }
        .or_else(|| {
            self.acting.lobs.call_passes(call);
            None
        })
    }

    fn answer_open(&mut self, now: Moment, input: &[u8], oid: u32, mode: i32) -> Option<Verdict> {
        let is_snapshot = Rule::Ahead.requires(self.facts.transaction.isolation().is_snapshot());
        let Acting { flights, lobs, .. } = &mut *self.acting;
        let request = lobs.request_of(flights, &input[HEADER_BYTES..], mode);
        let may_answer = is_snapshot && !self.acting.shadow.has_disproved() && self.numbers_are_proven(now);
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
            let Acting { flights, lobs, .. } = &mut *self.acting;
            match flights.ask(request, &asking).0 {
                Answer::Serve(ticket, kept) => {
                    let fd = lobs.opens(self.config.verify, (oid, mode), kept);
                    return Some(self.serve_open(now, input, fd, ticket));
                }
                Answer::Wait(ticket) if is_owed => {
                    self.acting.flights.hold(now, ticket);
                    return Some(Verdict::Hold);
                }
                _ => self.acting.flights.forget_hold(),
            }
        }
        let before = self.settle(now);
        // What is not read ahead by the program's own word is no loop to learn from.
        let may_read = self.acting.lobs.prefetch(&self.facts, &self.config.lobs, oid) != Prefetch::Locator;
        if let (None, Some(request), true) = (&before, &request, is_snapshot && may_read) {
            // Those that a loop opens next may go along.
            self.prove(now);
            let plans =
                self.may_plan() && self.acting.lobs.may_open_ahead(&self.facts, &self.config.lobs, oid);
            self.acting.flights.watch(&self.core, now, request, true, plans);
        }
        before
    }

    /// The server's descriptors are brought to where the program believes them to be; `None` if there is nothing to do.
    fn settle(&mut self, now: Moment) -> Option<Verdict> {
        let Acting { flights, lobs, .. } = &mut *self.acting;
        lobs.settle(&mut self.core, flights, now)
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
        self.acting.lobs.numbers_are_sure(&self.facts)
    }

    /// The program opens an object that was read ahead.
    fn serve_open(&mut self, now: Moment, input: &[u8], fd: i32, ticket: Ticket) -> Verdict {
        let (arrived_at, is_trip) = self.acting.flights.end_hold(now);
        self.serve_call(now, arrived_at, input, &fd.to_be_bytes(), is_trip);
        self.acting.flights.served(now, ticket);
        self.plan_flight(now);
        Verdict::Replace(input.len())
    }

    fn answer_call(&mut self, now: Moment, input: &[u8], call: Call, fd: i32) -> Option<Verdict> {
        let Self { core, config, facts, own_names, acting, .. } = self;
        let Acting { shadow, flights, lobs, .. } = &mut **acting;
        let mut cx = Cx { core, facts, config, own_names, shadow, flights };
        let Some(value) = lobs.answer_call(&mut cx, now, call, fd) else { return self.settle(now) };
        let arrived_at = self.acting.lobs.end_hold(now);
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
        self.acting.flights.show_presence(&mut self.core, now);
    }
}
