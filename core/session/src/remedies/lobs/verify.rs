//! `--verify`: one in so many objects that were answered from memory is read for real as well.
//!
//! ```text
//!  client            session                                                       server
//!    | loread, lo_tell: from memory, and kept                                         |
//!    | lo_close ----->| [lo_open, if it has none] [lo_lseek64] loread, lo_tell ------>|
//!    |<- 0 -----------| lo_close ---------------------------------------------------->|
//!    |                |<------------- compared with what the program was told, each --|
//! ```
//!
//! The same calls, from the same places, on the descriptor that is closed next: nothing is moved that anybody could tell.

use onetrip_ledger::Moment;
use onetrip_wire::pg::FunctionCallResponse;

use super::Lobs;
use super::ahead::PIECE_BYTES;
use super::call::{Call, Function, Whence, int4, int8};
use super::descriptor::{At, Descriptor};
use crate::config::Verify;
use crate::contract::SessionError;
use crate::remedies::remedy::Cx;
use crate::session::core::Core;
use crate::slots::Slot;

/// Bytes of one object's answers that are kept to be compared; what comes later is not.
const BYTES_MAX: usize = 1024 * 1024;

/// Whether an object is verified, and what of it.
#[derive(Debug, Default)]
pub(super) enum Replay {
    /// Nothing of it was answered from memory so far.
    #[default]
    Undecided,
    No,
    Kept {
        answers: Vec<Answered>,
        bytes: usize,
    },
}

/// A call that was answered from memory.
#[derive(Debug)]
pub(super) struct Answered {
    call: Call,
    /// Where the program stood before it.
    place: i64,
    value: Vec<u8>,
}

/// What a call that is compared belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Check {
    call: Call,
    /// With it all of the object is compared.
    is_last: bool,
}

impl Replay {
    fn keep(&mut self, call: Call, place: i64, value: &[u8]) {
        if let Self::Kept { answers, bytes } = self {
            if *bytes + value.len() <= BYTES_MAX {
                *bytes += value.len();
                answers.push(Answered { call, place, value: value.to_vec() });
            }
        }
    }
}

impl Answered {
    /// Where the server's descriptor stands behind it, if that is sure.
    fn place_behind(&self) -> Option<i64> {
        match self.call {
            Call::Read { .. } => Some(self.place + self.value.len() as i64),
            Call::Seek { is_wide: true, .. } => int8(&self.value),
            Call::Seek { .. } => int4(&self.value).map(i64::from),
            Call::Tell { .. } => Some(self.place),
            Call::Open { .. } | Call::Close { .. } => None,
        }
    }

    /// The calls that bring the same, each short enough to be looked into, with what they bring.
    fn calls(&self, fd: i32) -> Vec<(Call, &[u8])> {
        let Call::Read { count, .. } = self.call else {
            return vec![(self.call.on(fd), &self.value)];
        };
        let read = |count: usize| Call::Read { fd, count: count as i32 };
        let mut calls: Vec<(Call, &[u8])> =
            self.value.chunks(PIECE_BYTES).map(|piece| (read(piece.len()), piece)).collect();
        let missing = usize::try_from(count).unwrap_or_default().saturating_sub(self.value.len());
        if missing > 0 || calls.is_empty() {
            calls.push((read(missing.min(PIECE_BYTES)), &[]));
        }
        calls
    }
}

impl Lobs {
    /// A call on this descriptor was answered from memory, where the program stood at `place`.
    pub(super) fn keep_answer(
        &mut self,
        verify: Option<Verify>,
        fd: i32,
        (call, place): (Call, i64),
        value: &[u8],
    ) {
        self.decide_replay(verify, fd);
        if let Some(open) = self.open.get_mut(&fd) {
            open.replay.keep(call, place, value);
        }
    }

    /// Something of this object is answered from memory: if it is the first, it may be this one's turn.
    pub(super) fn decide_replay(&mut self, verify: Option<Verify>, fd: i32) {
        let Some(open) = self.open.get_mut(&fd).filter(|open| matches!(open.replay, Replay::Undecided))
        else {
            return;
        };
        let is_due = verify.is_some_and(|verify| verify.is_turn(&mut self.answered));
        open.replay = if is_due { Replay::Kept { answers: Vec::new(), bytes: 0 } } else { Replay::No };
    }

    /// The program has closed an object: what it was told of it is asked of the server, if it is this one's turn.
    pub(super) fn verify_object(&mut self, core: &mut Core, now: Moment, fd: i32, open: &Descriptor) {
        let Replay::Kept { answers, .. } = &open.replay else { return };
        let is_nowhere = open.at == At::Nowhere;
        let is_callable = |function| self.is_proven(now, function);
        let may_open = !is_nowhere || is_callable(Function::Open);
        if answers.is_empty() || !may_open || !is_callable(Function::SeekWide) {
            return;
        }
        let (fd, mut place) = match open.at {
            At::Nowhere => (self.free_number(true), Some(0)),
            At::Place(place) => (fd, Some(place)),
            At::Unknown => (fd, None),
        };
        if is_nowhere {
            self.own_call(core, Call::Open { oid: open.oid, mode: open.mode }, &fd.to_be_bytes());
        }
        for (number, answered) in (1..).zip(answers) {
            if place != Some(answered.place) {
                let seek = Call::Seek { fd, offset: answered.place, whence: Whence::Start, is_wide: true };
                self.own_call(core, seek, &answered.place.to_be_bytes());
            }
            place = answered.place_behind();
            let calls = answered.calls(fd);
            let last = calls.len();
            for (part, (call, value)) in (1..).zip(calls) {
                let is_last = number == answers.len() && part == last;
                self.check_call(core, call, value, Check { call, is_last });
            }
        }
        if is_nowhere {
            self.own_call(core, Call::Close { fd }, &0i32.to_be_bytes());
        }
    }

    /// The server has answered a call that was answered from memory.
    pub(super) fn call_checked(&mut self, cx: &mut Cx<'_>, slot: Slot, check: Check, body: &[u8]) {
        let response = FunctionCallResponse::decode(body);
        let value = response.ok().and_then(|response| response.value).unwrap_or_default();
        let expected = self.awaited.get_mut(slot).map(|awaited| std::mem::take(&mut awaited.value));
        let expected = expected.unwrap_or_default();
        if expected != value && cx.shadow.object_differs() {
            object_differed(cx, check.call, &expected, value);
        }
        if check.is_last {
            cx.shadow.object_verified();
        }
    }
}

/// The server has failed at one.
pub(super) fn check_failed(core: &mut Core) -> SessionError {
    let message = "onetrip answered from memory, and the server fails at the same call";
    let hint = "The transaction is over. Connect again; leave the remedy out by --remedies exact,-lobs.";
    core.refuse("08006", message, Some(hint));
    SessionError::VerifyFailed
}

/// An answer was wrong: the trace says which one, and there are no more of them in this session.
fn object_differed(cx: &mut Cx<'_>, call: Call, expected: &[u8], value: &[u8]) {
    let template = cx.core.template_of_call(call.function().oid(), call.count());
    let mut asked = Vec::new();
    call.encode(&mut asked);
    cx.shadow.tell_difference(cx.core, cx.config, template, [&asked, expected, value]);
}
