//! What is prefetched: on the program's descriptors, and whole objects that a loop will come to.

use std::time::Duration;

use onetrip_ledger::{Moment, Remedy};
use onetrip_loops::{Guess, Outcome, Ticket};
use onetrip_wire::Prefetch;
use onetrip_wire::pg::{ErrorResponse, FrameHeader, FunctionCallResponse, HEADER_BYTES, Oid, backend, frame};

use super::call::{Call, Function, Whence, int4, int8};
use super::descriptor::{At, Content};
use super::request::name_of_open;
use super::settle::wrong_number;
use super::{IN_VAIN_MAX, Lobs};
use crate::config::LobPolicy;
use crate::contract::{LENGTH_MAX, SessionError};
use crate::facts::Facts;
use crate::remedies::Rule;
use crate::remedies::proposes::{Calls, Proposes};
use crate::remedies::remedy::{Cx, Need};
use crate::reply_queue::{Due, Expect};
use crate::services::Said;
use crate::slots::Slot;

/// Bytes of one read: its answer is not longer than what is looked into.
pub(super) const PIECE_BYTES: usize = 32 * 1024;
/// Bytes that are read ahead of an object at once, at most.
const AHEAD_BYTES_MAX: usize = 512 * 1024;
/// What the server keeps of an object in one row (`LOBLKSIZE`), in bytes: less is not read ahead.
const PAGE_BYTES: usize = 2048;
/// Bytes that are read ahead of the first object.
const AHEAD_BYTES_MIN: usize = 8 * 1024;
/// Bytes that the open objects of one session keep.
const KEPT_BYTES_MAX: usize = 1024 * 1024;
/// What the answer of a chain is kept as, beside the messages with the bytes: its size, and that they are all.
const SIZE: u8 = b'z';
const END: u8 = b'e';

/// A call ahead, inside the shield of a flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    call: Call,
    of: Of,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    /// It reads on a descriptor of the program's.
    Program,
    /// It is of a chain that answers this guess; the descriptor that it opens or uses.
    Chain { ticket: Ticket, fd: i32, is_last: bool },
}

impl Proposes for Lobs {
    /// Where its number is sure, an object of a loop may be opened and read before the program opens it (rule L6).
    fn claims_guess(&self, cx: &Cx<'_>, guess: &Guess<'_>) -> Option<Need> {
        (cx.may_remedy(Remedy::Lobs) && object_of(guess).is_some()).then_some(Need::Proof)
    }

    fn key_of(&self, cx: &Cx<'_>, guess: &Guess<'_>) -> Option<Vec<u8>> {
        let mode = self.modes.get(&guess.template)?;
        let value = guess.values().next().and_then(|value| value.bytes)?;
        let may_open = self.may_open_ahead(cx.facts, &cx.config.lobs, object_of(guess)?);
        may_open.then(|| [&name_of_open(*mode)[..], value].concat())
    }

    /// A guess is a chain of calls.
    fn put_guess(&mut self, cx: &mut Cx<'_>, now: Moment, guess: &Guess<'_>) {
        let Some(mode) = self.modes.get(&guess.template).copied() else { return };
        for step in self.chain_of(cx, now, guess, mode) {
            self.put_ahead(cx, step);
        }
    }
}

impl Calls for Lobs {
    /// The program's call goes to the server: what is read ahead goes behind it.
    fn claims_calls(&self) -> Option<Need> {
        self.running.as_ref().map(|_| Need::Proof)
    }

    fn plan_calls(&mut self, cx: &mut Cx<'_>, now: Moment) {
        let is_sure = self.numbers_are_sure(cx.facts);
        let (may_send, newest) = (cx.core.may_send_own(), cx.core.units().newest());
        let Some(running) = &self.running else { return };
        if running.unit != newest || !self.steps.is_empty() || !may_send || self.is_off {
            return;
        }
        let call = running.call;
        let oid = match (call, call.fd().and_then(|fd| self.open.get(&fd))) {
            (Call::Open { oid, .. }, _) => oid,
            (_, Some(open)) => open.oid,
            _ => return,
        };
        let prefetch = self.prefetch(cx.facts, &cx.config.lobs, oid);
        let holds_locks = Rule::Lock.requires(self.has_read || call.reads());
        if !holds_locks || prefetch == Prefetch::Locator || !self.is_worth_it(prefetch) {
            return;
        }
        self.plan_behind(now, call, prefetch, is_sure);
        let steps = self.steps.len();
        if let (Call::Open { .. }, Some(running)) = (call, &mut self.running) {
            running.steps = steps;
        } else if let Some(open) = call.fd().and_then(|fd| self.open.get_mut(&fd)) {
            open.under_way += steps;
        }
    }

    fn has_calls(&self) -> bool {
        !self.steps.is_empty()
    }

    fn put_calls(&mut self, cx: &mut Cx<'_>) {
        let steps = std::mem::take(&mut self.steps);
        self.in_vain += u32::from(!steps.is_empty());
        for step in steps {
            self.put_ahead(cx, step);
        }
    }

    fn call_reply(&mut self, cx: &mut Cx<'_>, slot: Slot, said: &Said<'_>) -> Result<bool, SessionError> {
        let Some(step) = self.ahead.get(slot).copied() else { return Ok(true) };
        if said.tag == backend::READY_FOR_QUERY {
            return Ok(true);
        }
        let response = FunctionCallResponse::decode(said.body());
        let value = response.ok().and_then(|response| response.value).filter(|_| said.is_whole);
        let (backend::FUNCTION_CALL_RESPONSE, Some(value)) = (said.tag, value) else {
            self.ahead_failed(step, said);
            return Ok(false);
        };
        // What comes behind a flush may be of another role.
        if self.is_sure || self.has_open() {
            self.prove(said.now, step.call.function());
        }
        if let Call::Read { count, .. } = step.call {
            self.is_cut = value.len() as i64 == i64::from(count);
        }
        match step.of {
            Of::Program => Ok(self.went_ahead(step.call, value)),
            Of::Chain { ticket, fd, .. } => {
                if let (Call::Open { .. }, Some(number)) = (step.call, int4(value)) {
                    if number != fd {
                        return wrong_number(cx.core).map(|()| false);
                    }
                }
                let kept = kept_of(step.call, said.message, value);
                self.chain.bytes += kept.len();
                Ok(kept.is_empty() || cx.flights.append(ticket, &kept))
            }
        }
    }

    fn call_ends(&mut self, cx: &mut Cx<'_>, slot: Slot, is_spoilt: bool, execution: Duration) {
        let Some(step) = self.ahead.take(slot) else { return };
        let Of::Chain { ticket, is_last, .. } = step.of else {
            let open = step.call.fd().and_then(|fd| self.open.get_mut(&fd));
            if let Some(open) = open {
                open.under_way = open.under_way.saturating_sub(1);
            }
            return;
        };
        self.chain.execution += execution;
        self.chain.is_spoilt |= is_spoilt;
        if is_last {
            let chain = std::mem::take(&mut self.chain);
            let outcome = Outcome { execution: Some(chain.execution), bytes: chain.bytes, rows: 0 };
            cx.flights.guess_ends(ticket, chain.is_spoilt, outcome);
        }
    }
}

impl Lobs {
    /// Whether the number of the next descriptor is known (rule L6): all statements of the transaction but calls that were
    /// followed are proven to only read, now that the catalogue is known.
    pub(crate) fn numbers_are_sure(&self, facts: &Facts) -> bool {
        self.is_sure && facts.is_known()
    }

    /// Whether this object of a loop may be opened and read before the program opens it (rules L2, L3).
    pub(crate) fn may_open_ahead(&self, facts: &Facts, policy: &LobPolicy, oid: Oid) -> bool {
        let has_manner = self.has_manner(self.prefetch(facts, policy, oid));
        let is_sure = self.numbers_are_sure(facts);
        is_sure && !self.is_off && has_manner && Rule::Lock.requires(self.has_read)
    }

    /// What to read ahead behind this call of the program's.
    fn plan_behind(&mut self, now: Moment, call: Call, prefetch: Prefetch, is_sure: bool) {
        let room = KEPT_BYTES_MAX.saturating_sub(self.kept());
        let needs_proof = self.needs_proof(now, Function::SeekWide);
        match call {
            Call::Open { .. } => {
                let fd = self.free_number(true);
                if is_sure && self.open.len() < super::OPEN_MAX && self.has_manner(prefetch) {
                    let bytes = self.ahead_of_next(prefetch).min(room);
                    self.put_steps(fd, needs_proof || self.asks_size(prefetch), false, bytes);
                }
            }
            Call::Read { fd, count } => {
                let Some(open) = self.open.get(&fd) else { return };
                let read = open.read + usize::try_from(count).unwrap_or_default();
                let bytes = self.ahead_of_place(prefetch, read).min(room);
                if needs_proof && (bytes > 0 || prefetch == Prefetch::Auto) {
                    self.put_step(Call::Seek { fd, offset: 0, whence: Whence::Place, is_wide: true });
                }
                self.put_steps(fd, false, false, bytes);
            }
            Call::Seek { fd, whence: Whence::End, .. } => {
                let least = if prefetch == Prefetch::Auto { AHEAD_BYTES_MIN } else { 0 };
                let bytes = self.ahead_of_next(prefetch).max(least).min(room);
                self.put_steps(fd, false, bytes > 0, bytes);
            }
            _ => {}
        }
    }

    /// The calls that answer a guess at a `lo_open`.
    fn chain_of(&self, cx: &Cx<'_>, now: Moment, guess: &Guess<'_>, mode: i32) -> Vec<Step> {
        let Some(oid) = object_of(guess) else { return Vec::new() };
        let prefetch = self.prefetch(cx.facts, &cx.config.lobs, oid);
        let fd = self.number_of_chains();
        let mut calls = vec![Call::Open { oid, mode }];
        if self.proven_at[Function::TellWide as usize].is_some() && self.needs_proof(now, Function::TellWide)
        {
            calls.push(Call::Tell { fd, is_wide: true });
        }
        if self.asks_size(prefetch) || self.needs_proof(now, Function::SeekWide) {
            calls.push(Call::Seek { fd, offset: 0, whence: Whence::End, is_wide: true });
            calls.push(Call::Seek { fd, offset: 0, whence: Whence::Start, is_wide: true });
        }
        calls.extend(pieces(self.ahead_of_next(prefetch)).map(|count| Call::Read { fd, count }));
        calls.push(Call::Close { fd });
        let (ticket, last) = (guess.ticket, calls.len() - 1);
        let step = |(at, call)| Step { call, of: Of::Chain { ticket, fd, is_last: at == last } };
        calls.into_iter().enumerate().map(step).collect()
    }

    /// Sends a call ahead.
    fn put_ahead(&mut self, cx: &mut Cx<'_>, step: Step) {
        let part = cx.flights.put_call(self.ahead.put(step));
        step.call.encode(cx.core.server_outbox());
        cx.core.owe_own(Due::own(part, Expect::FunctionCall));
    }

    /// A call ahead was refused, or told what cannot be used.
    fn ahead_failed(&mut self, step: Step, said: &Said<'_>) {
        let error = ErrorResponse::decode(said.body()).ok().and_then(|error| error.sqlstate());
        let is_error = said.tag == backend::ERROR_RESPONSE;
        let Some(fd) = step.call.fd().filter(|_| step.of == Of::Program && is_error) else { return };
        // Should lo_lseek64 be forbidden, nothing that was read ahead could be put back. It comes before any read.
        self.is_off |= error == Some(*b"42501");
        let is_seek = matches!(step.call, Call::Seek { .. });
        let has_run = error != Some(*b"25P02") && !is_seek;
        if let Some(open) = self.open.get_mut(&fd).filter(|_| has_run) {
            open.at = At::Unknown;
        }
    }
}

impl Lobs {
    fn put_step(&mut self, call: Call) {
        self.steps.push(Step { call, of: Of::Program });
    }

    /// Asks for the size, goes to the start, and reads so many bytes.
    fn put_steps(&mut self, fd: i32, asks_size: bool, from_start: bool, bytes: usize) {
        let seek = |whence| Call::Seek { fd, offset: 0, whence, is_wide: true };
        if asks_size {
            self.put_step(seek(Whence::End));
        }
        if asks_size || from_start {
            self.put_step(seek(Whence::Start));
        }
        pieces(bytes).for_each(|count| self.put_step(Call::Read { fd, count }));
    }

    /// Bytes of the next object to read ahead: those that the program will read, with some to spare, or those that it says.
    fn ahead_of_next(&self, prefetch: Prefetch) -> usize {
        match (prefetch, self.usual) {
            (Prefetch::First(size), _) => (size as usize).min(AHEAD_BYTES_MAX),
            (Prefetch::Locator | Prefetch::Length, _) | (Prefetch::Auto, 0) => 0,
            (Prefetch::Auto, usual) => (usual + 1).next_power_of_two().clamp(PAGE_BYTES, AHEAD_BYTES_MAX),
        }
    }

    /// Bytes to read on behind a call of the program's, which will have read so many.
    fn ahead_of_place(&self, prefetch: Prefetch, read: usize) -> usize {
        match prefetch {
            Prefetch::Auto => (2 * read).clamp(AHEAD_BYTES_MIN, AHEAD_BYTES_MAX),
            _ => self.ahead_of_next(prefetch),
        }
    }

    /// Whether it is known what to read ahead of the next object.
    fn has_manner(&self, prefetch: Prefetch) -> bool {
        match prefetch {
            Prefetch::Locator => false,
            Prefetch::Length | Prefetch::First(_) => true,
            Prefetch::Auto => self.usual > 0 || self.wants_size,
        }
    }

    /// The number of a descriptor that is opened behind the program's call, if that opens one.
    fn number_of_chains(&self) -> i32 {
        let opens = self.running.as_ref().is_some_and(|running| matches!(running.call, Call::Open { .. }));
        let first = self.free_number(true);
        if !opens {
            return first;
        }
        let is_taken = |fd: &i32| self.open.get(fd).is_some_and(|open| open.at != At::Nowhere);
        (first + 1..).find(|fd| !is_taken(fd)).unwrap_or_default()
    }

    fn is_worth_it(&mut self, prefetch: Prefetch) -> bool {
        if self.in_vain < IN_VAIN_MAX || prefetch != Prefetch::Auto {
            return true;
        }
        self.in_vain += 1;
        self.in_vain % IN_VAIN_MAX == 0
    }

    /// The server has run a call on a descriptor of the program's. Returns whether it says what it should.
    fn went_ahead(&mut self, call: Call, value: &[u8]) -> bool {
        let Some(open) = call.fd().and_then(|fd| self.open.get_mut(&fd)) else { return true };
        match (call, open.at) {
            (Call::Read { count, .. }, At::Place(from)) => {
                open.content.add(from, value, count);
                open.at = At::Place(open.content.end());
            }
            (Call::Seek { whence, .. }, _) => {
                let Some(place) = int8(value) else { return false };
                open.at = At::Place(place);
                if whence == Whence::End {
                    open.content.size = Some(place);
                }
            }
            _ => {}
        }
        true
    }
}

/// The object that a guess opens.
fn object_of(guess: &Guess<'_>) -> Option<Oid> {
    guess.values().next()?.bytes.and_then(int4).map(|oid| oid as Oid)
}

/// How many bytes each read of so many asks for.
fn pieces(bytes: usize) -> impl Iterator<Item = i32> {
    (0..bytes.div_ceil(PIECE_BYTES)).map(move |at| (bytes - at * PIECE_BYTES).min(PIECE_BYTES) as i32)
}

/// What is kept of a call's answer.
fn kept_of(call: Call, message: &[u8], value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    match call {
        Call::Read { count, .. } => {
            out.extend_from_slice(message);
            if (value.len() as i64) < i64::from(count) {
                frame(&mut out, END, |_| ());
            }
        }
        Call::Seek { whence: Whence::End, .. } => {
            frame(&mut out, SIZE, |out| out.extend_from_slice(value));
        }
        _ => {}
    }
    out
}

/// The object that the kept answer of a chain is.
pub(super) fn content_of(kept: &[u8]) -> Content {
    let mut content = Content::default();
    let mut rest = kept;
    while let Some(Ok(header)) = FrameHeader::peek(rest, LENGTH_MAX) {
        let Some((message, after)) = rest.split_at_checked(header.frame_len()) else { break };
        rest = after;
        let body = &message[HEADER_BYTES..];
        match header.tag {
            SIZE => content.size = int8(body),
            END => content.is_end = true,
            _ => {
                let value = FunctionCallResponse::decode(body).ok().and_then(|response| response.value);
                content.bytes.extend_from_slice(value.unwrap_or_default());
            }
        }
    }
    if content.is_end {
        content.size = Some(content.end());
    }
    content
}
