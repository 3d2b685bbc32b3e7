//! The server's descriptors are brought to where the program believes them to be (rule L4).

use onetrip_ledger::{Moment, Remedy};
use onetrip_wire::pg::{FunctionCallResponse, backend};

use super::Awaited;
use super::Lobs;
use super::call::{Call, Whence};
use super::descriptor::At;
use super::verify::{Check, check_failed};
use crate::contract::{SessionError, Verdict};
use crate::remedies::Rule;
use crate::remedies::remedy::Cx;
use crate::reply_queue::{Due, Expect, Taker};
use crate::services::Flights;
use crate::services::{Own, Said};
use crate::session::core::Core;
use crate::slots::Slot;

fn broke(core: &mut Core) -> SessionError {
    let message = "the server answered for a prefetched large object differently than onetrip had answered";
    let hint = "The transaction is over. Connect again; leave the remedy out by --remedies exact,-lobs.";
    core.refuse("08006", message, Some(hint));
    SessionError::LobsBroke
}

/// The server has given a descriptor another number than was told (rule L6): what was sent ahead has gone to another.
pub(super) fn wrong_number(core: &mut Core) -> Result<(), SessionError> {
    if Rule::Numbers.is_kept() { Err(broke(core)) } else { Ok(()) }
}

impl Lobs {
    /// The server answers a call of the session's own (rule L8).
    pub(super) fn take_reply(
        &mut self,
        cx: &mut Cx<'_>,
        slot: Slot,
        said: &Said<'_>,
    ) -> Result<Own, SessionError> {
        let check = self.awaited.get(slot).and_then(|awaited| awaited.check);
        let is_good = match said.tag {
            backend::FUNCTION_CALL_RESPONSE => {
                let response = FunctionCallResponse::decode(said.body());
                let value = response.ok().and_then(|response| response.value);
                let expected = self.awaited.get(slot).map(|awaited| &*awaited.value);
                value.is_some() && (value == expected || check.is_some())
            }
            backend::READY_FOR_QUERY => said.body() == b"T",
            _ => false,
        };
        if let (backend::FUNCTION_CALL_RESPONSE, true, Some(check)) = (said.tag, is_good, check) {
            self.call_checked(cx, slot, check, said.body());
        }
        if said.is_last() {
            self.awaited.take(slot);
        }
        if !is_good && check.is_some() {
            return Err(check_failed(cx.core));
        }
        if !is_good && Rule::Expected.is_kept() {
            return Err(broke(cx.core));
        }
        Ok(Own::Dropped)
    }
}

impl Lobs {
    /// Sends what opens descriptors that the server does not have and puts the others to their places; `None` if there is
    /// nothing to do.
    pub(crate) fn settle(&mut self, core: &mut Core, flights: &mut Flights, now: Moment) -> Option<Verdict> {
        if self.is_settled() {
            self.held_at = None;
            return None;
        }
        if self.open.values().any(|open| open.under_way > 0) {
            self.held_at.get_or_insert(now);
            return Some(Verdict::Hold);
        }
        self.held_at = None;
        if !Rule::Places.is_kept() {
            return None;
        }
        self.open_for_real(core);
        let moves: Vec<(i32, i64)> = self
            .open
            .iter()
            .filter(|(_, open)| !open.is_in_place())
            .map(|(fd, open)| (*fd, open.place))
            .collect();
        for (fd, place) in moves {
            let seek = Call::Seek { fd, offset: place, whence: Whence::Start, is_wide: true };
            self.own_call(core, seek, &place.to_be_bytes());
            if let Some(open) = self.open.get_mut(&fd) {
                open.at = At::Place(place);
            }
        }
        flights.note_contact(now);
        Some(Verdict::Replace(0))
    }

    /// Opens on the server what only the program has open. The lowest number that is free is given out: those in between
    /// are taken meanwhile.
    fn open_for_real(&mut self, core: &mut Core) {
        let Some((last, oid, mode)) = self
            .open
            .iter()
            .rev()
            .find(|(_, open)| open.at == At::Nowhere)
            .map(|(fd, open)| (*fd, open.oid, open.mode))
        else {
            return;
        };
        let mut between = Vec::new();
        for fd in 0..=last {
            let found = self.open.get(&fd).map(|open| (open.at, open.oid, open.mode));
            let open = match found {
                Some((At::Nowhere, oid, mode)) => Call::Open { oid, mode },
                Some(_) => continue,
                None => {
                    between.push(fd);
                    Call::Open { oid, mode }
                }
            };
            self.own_call(core, open, &fd.to_be_bytes());
            if let Some(open) = self.open.get_mut(&fd) {
                open.at = At::Place(0);
            }
        }
        for fd in between {
            self.own_call(core, Call::Close { fd }, &0i32.to_be_bytes());
        }
    }

    /// Calls a function on the session's own behalf, which returns this value.
    pub(super) fn own_call(&mut self, core: &mut Core, call: Call, value: &[u8]) {
        self.await_call(core, call, value, None);
    }

    /// Calls a function that was answered from memory by this value.
    pub(super) fn check_call(&mut self, core: &mut Core, call: Call, value: &[u8], check: Check) {
        self.await_call(core, call, value, Some(check));
    }

    fn await_call(&mut self, core: &mut Core, call: Call, value: &[u8], check: Option<Check>) {
        call.encode(core.server_outbox());
        let slot = self.awaited.put(Awaited { value: value.to_vec(), check });
        core.owe_own(Due::own(Taker::Remedy(Remedy::Lobs, slot), Expect::FunctionCall));
    }
}
