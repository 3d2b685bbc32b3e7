//! What a program asks of large objects, and what the server answers to what it asks.

use onetrip_ledger::{Moment, Remedy};
use onetrip_loops::{Form, Value};
use onetrip_wire::pg::{FunctionCall, Oid, backend};
use smallvec::smallvec;

use super::ahead::content_of;
use super::call::{Call, Whence, int4, int8, only_reads, place_bytes};
use super::descriptor::{At, Descriptor};
use super::settle::wrong_number;
use super::{Lobs, OPEN_MAX, Running};
use crate::config::Verify;
use crate::contract::SessionError;
use crate::remedies::Rule;
use crate::remedies::remedy::Cx;
use crate::reply_queue::{Due, Taker};
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
    pub(crate) fn request_of<'a>(
        &mut self,
        flights: &mut Flights,
        body: &'a [u8],
        mode: i32,
    ) -> Option<Request<'a>> {
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

    /// A unit of the client's begins.
    pub(crate) fn unit_begins(&mut self) {
        self.passing = None;
    }

    /// The client's call is about to go to the server as it came.
    pub(crate) fn call_passes(&mut self, call: Call) {
        self.passing = Some(call);
    }

    /// Whether a call does nothing but read, and what it does to descriptors can be told (rule L1).
    pub(crate) fn follows(&self, call: Call) -> bool {
        match call {
            Call::Open { mode, .. } => {
                Rule::ReadOnly.requires(only_reads(mode)) && self.open.len() < OPEN_MAX
            }
            _ => call.fd().is_some_and(|fd| self.open.contains_key(&fd)),
        }
    }

    /// The program opens an object that was read ahead, as `kept` has it. Returns the number of the descriptor.
    pub(crate) fn opens(&mut self, verify: Option<Verify>, (oid, mode): (Oid, i32), kept: &[u8]) -> i32 {
        let mut open = Descriptor::new(oid, mode, At::Nowhere);
        open.content = content_of(kept);
        let fd = self.free_number(false);
        self.open.insert(fd, open);
        self.decide_replay(verify, fd);
        fd
    }

    /// The answer to a call on this descriptor, if memory has it.
    pub(crate) fn answer_call(
        &mut self,
        cx: &mut Cx<'_>,
        now: Moment,
        call: Call,
        fd: i32,
    ) -> Option<Vec<u8>> {
        let is_proven = self.is_proven(now, call.function()) && !cx.shadow.has_disproved();
        let open = self.open.get_mut(&fd)?;
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
        self.wants_size |= matches!(call, Call::Seek { whence: Whence::End, .. });
        let value = value?;
        match call {
            Call::Close { fd } => self.close_early(cx.core, now, fd),
            _ => self.keep_answer(cx.config.verify, fd, (call, place), &value),
        }
        Some(value)
    }

    /// A call is answered from memory. Returns when it came: what has come behind the answer that the program waited for
    /// before has cost no trip more.
    pub(crate) fn end_hold(&mut self, now: Moment) -> Moment {
        self.in_vain = 0;
        self.held_at.take().unwrap_or(now)
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
        self.has_read |= call.reads();
        match call {
            Call::Read { .. } => {
                open.place += length;
                open.read += usize::try_from(length).unwrap_or_default();
            }
            Call::Seek { is_wide, .. } => {
                let told = if is_wide { int8(value) } else { int4(value).map(i64::from) };
                open.place = told.unwrap_or(open.place);
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
