//! What is read ahead: on the program's descriptors, and whole objects that a loop will come to.

use std::time::Duration;

use onetrip_ledger::Moment;
use onetrip_loops::{Guess, Outcome, Ticket};
use onetrip_wire::Prefetch;
use onetrip_wire::pg::{ErrorResponse, FrameHeader, FunctionCallResponse, HEADER_BYTES, Oid, backend, frame};

use super::call::{Call, Function, Whence, int4, int8};
use super::descriptor::{At, Content};
use super::{IN_VAIN_MAX, Lobs};
use crate::remedies::Rule;
use crate::reply_queue::{Due, Expect, Taker};
use crate::session::{LENGTH_MAX, Session, SessionError};

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
pub(crate) struct Step {
    call: Call,
    of: Of,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    /// It reads on a descriptor of the program's.
    Program,
    /// It is of a chain that answers this guess; the descriptor that it opens or uses.
    Chain { ticket: Ticket, example: u32, fd: i32, is_last: bool },
}

impl Session {
    /// The program's call goes to the server: what is read ahead goes behind it.
    pub(crate) fn plan_ahead(&mut self, now: Moment) {
        if self.lobs.running.is_none() {
            return;
        }
        let is_sure = self.numbers_are_sure(now);
        let (may_send, newest) = (self.may_send_own(), self.core.units().newest());
        let lobs = &mut self.lobs;
        let Some(running) = &lobs.running else { return };
        if running.unit != newest || !lobs.steps.is_empty() || !may_send || lobs.is_off {
            return;
        }
        let call = running.call;
        let oid = match (call, call.fd().and_then(|fd| lobs.open.get(&fd))) {
            (Call::Open { oid, .. }, _) => oid,
            (_, Some(open)) => open.oid,
            _ => return,
        };
        let prefetch = self.lob_prefetch(oid);
        let lobs = &mut self.lobs;
        let reads = matches!(call, Call::Read { .. } | Call::Seek { whence: Whence::End, .. });
        let holds_locks = Rule::Lock.requires(lobs.has_read || reads);
        if !holds_locks || prefetch == Prefetch::Locator || !lobs.is_worth_it(prefetch) {
            return;
        }
        let room = KEPT_BYTES_MAX.saturating_sub(lobs.kept());
        let needs_proof = lobs.needs_proof(now, Function::SeekWide);
        match call {
            Call::Open { .. } => {
                let fd = lobs.free_number(true);
                if is_sure && lobs.open.len() < super::OPEN_MAX && lobs.has_manner(prefetch) {
                    let bytes = lobs.ahead_of_next(prefetch).min(room);
                    lobs.put_steps(fd, needs_proof || lobs.asks_size(prefetch), false, bytes);
                }
            }
            Call::Read { fd, count } => {
                let Some(open) = lobs.open.get(&fd) else { return };
                let read = open.read + usize::try_from(count).unwrap_or_default();
                let bytes = lobs.ahead_of_place(prefetch, read).min(room);
                if needs_proof && (bytes > 0 || prefetch == Prefetch::Auto) {
                    lobs.put_step(Call::Seek { fd, offset: 0, whence: Whence::Place, is_wide: true });
                }
                lobs.put_steps(fd, false, false, bytes);
            }
            Call::Seek { fd, whence: Whence::End, .. } => {
                let least = if prefetch == Prefetch::Auto { AHEAD_BYTES_MIN } else { 0 };
                let bytes = lobs.ahead_of_next(prefetch).max(least).min(room);
                lobs.put_steps(fd, false, bytes > 0, bytes);
            }
            _ => {}
        }
        let steps = lobs.steps.len();
        if let (Call::Open { .. }, Some(running)) = (call, &mut lobs.running) {
            running.steps = steps;
        } else if let Some(open) = call.fd().and_then(|fd| lobs.open.get_mut(&fd)) {
            open.under_way += steps;
        }
    }

    /// What is to go into the next flight.
    pub(crate) fn take_steps(&mut self) -> Vec<Step> {
        let steps = std::mem::take(&mut self.lobs.steps);
        self.lobs.in_vain += u32::from(!steps.is_empty());
        steps
    }

    /// Whether the number of the next descriptor is known (rule L6): all statements of the transaction but calls that were
    /// followed are proven to only read, now that the catalogue is known.
    pub(super) fn numbers_are_sure(&mut self, now: Moment) -> bool {
        self.prove(now);
        self.lobs.is_sure && self.facts.is_known()
    }

    /// Whether this object of a loop may be opened and read before the program opens it (rules L2, L3).
    pub(crate) fn may_open_ahead(&mut self, now: Moment, oid: Oid) -> bool {
        let is_sure = self.numbers_are_sure(now);
        let has_manner = self.lobs.has_manner(self.lob_prefetch(oid));
        let lobs = &self.lobs;
        is_sure && !lobs.is_off && has_manner && Rule::Lock.requires(lobs.has_read)
    }

    /// The calls that answer a guess at a `lo_open`.
    pub(crate) fn chain_of(&self, now: Moment, guess: &Guess<'_>, mode: i32) -> Vec<Step> {
        let Some(oid) = object_of(guess) else { return Vec::new() };
        let prefetch = self.lob_prefetch(oid);
        let lobs = &self.lobs;
        let fd = lobs.number_of_chains();
        let mut calls = vec![Call::Open { oid, mode }];
        if lobs.proven_at[Function::TellWide as usize].is_some() && lobs.needs_proof(now, Function::TellWide)
        {
            calls.push(Call::Tell { fd, is_wide: true });
        }
        if lobs.asks_size(prefetch) || lobs.needs_proof(now, Function::SeekWide) {
            calls.push(Call::Seek { fd, offset: 0, whence: Whence::End, is_wide: true });
            calls.push(Call::Seek { fd, offset: 0, whence: Whence::Start, is_wide: true });
        }
        calls.extend(pieces(lobs.ahead_of_next(prefetch)).map(|count| Call::Read { fd, count }));
        calls.push(Call::Close { fd });
        let (ticket, example, last) = (guess.ticket, guess.template, calls.len() - 1);
        let step = |(at, call)| Step { call, of: Of::Chain { ticket, example, fd, is_last: at == last } };
        calls.into_iter().enumerate().map(step).collect()
    }

    /// Sends a call ahead.
    pub(crate) fn put_call_ahead(&mut self, taker: Taker, step: Step) {
        step.call.encode(self.core.server_outbox());
        self.core.owe_own(Due::own(taker, Expect::FunctionCall));
    }

    /// The server says something to a call ahead. Returns whether it is good.
    pub(crate) fn ahead_reply(
        &mut self,
        now: Moment,
        step: Step,
        tag: u8,
        message: &[u8],
        is_whole: bool,
    ) -> Result<bool, SessionError> {
        if tag == backend::READY_FOR_QUERY {
            return Ok(true);
        }
        let response = FunctionCallResponse::decode(&message[HEADER_BYTES..]);
        let value = response.ok().and_then(|response| response.value).filter(|_| is_whole);
        let (backend::FUNCTION_CALL_RESPONSE, Some(value)) = (tag, value) else {
            self.ahead_failed(step, tag, message);
            return Ok(false);
        };
        // What comes behind a flush may be of another role.
        if self.lobs.is_sure || self.lobs.has_open() {
            self.lobs.prove(now, step.call.function());
        }
        if let Call::Read { count, .. } = step.call {
            self.lobs.is_cut = value.len() as i64 == i64::from(count);
        }
        match step.of {
            Of::Program => Ok(self.lobs.went_ahead(step.call, value)),
            Of::Chain { ticket, fd, .. } => {
                if let (Call::Open { .. }, Some(number)) = (step.call, int4(value)) {
                    if number != fd {
                        return self.wrong_number().map(|()| false);
                    }
                }
                let kept = kept_of(step.call, message, value);
                self.lobs.chain.bytes += kept.len();
                Ok(kept.is_empty() || self.loops_buffer().append(ticket, &kept))
            }
        }
    }

    /// A call ahead has been answered.
    pub(crate) fn ahead_ends(&mut self, step: Step, is_spoilt: bool, execution: Duration) {
        let Of::Chain { ticket, is_last, .. } = step.of else {
            let open = step.call.fd().and_then(|fd| self.lobs.open.get_mut(&fd));
            if let Some(open) = open {
                open.under_way = open.under_way.saturating_sub(1);
            }
            return;
        };
        let chain = &mut self.lobs.chain;
        chain.execution += execution;
        chain.is_spoilt |= is_spoilt;
        if !is_last {
            return;
        }
        let chain = std::mem::take(chain);
        let outcome = Outcome { execution: Some(chain.execution), bytes: chain.bytes, rows: 0 };
        self.guess_ends(ticket, chain.is_spoilt, outcome);
    }

    /// A call ahead was refused, or told what cannot be used.
    fn ahead_failed(&mut self, step: Step, tag: u8, message: &[u8]) {
        let error = ErrorResponse::decode(&message[HEADER_BYTES..]).ok().and_then(|error| error.sqlstate());
        let is_error = tag == backend::ERROR_RESPONSE;
        let Some(fd) = step.call.fd().filter(|_| step.of == Of::Program && is_error) else { return };
        // Should lo_lseek64 be forbidden, nothing that was read ahead could be put back. It comes before any read.
        self.lobs.is_off |= error == Some(*b"42501");
        let is_seek = matches!(step.call, Call::Seek { .. });
        let has_run = error != Some(*b"25P02") && !is_seek;
        if let Some(open) = self.lobs.open.get_mut(&fd).filter(|_| has_run) {
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
pub(crate) fn object_of(guess: &Guess<'_>) -> Option<Oid> {
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
