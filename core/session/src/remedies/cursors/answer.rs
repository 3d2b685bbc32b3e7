//! Answers of which a part is in memory and a part on the server.

use std::num::NonZeroU32;

use onetrip_ledger::{Moment, Remedy};
use onetrip_wire::pg::{Execute, HEADER_BYTES, StatementOrPortal, frame, frontend};

use super::buffer::{End, Stop};
use super::replies::{Answer, Awaited, cannot_keep};
use super::request::{Form, Request};
use super::{Cursors, Kind};
use crate::contract::SessionError;
use crate::reply_queue::{Due, Expect, Taker};
use crate::session::core::Core;

/// What memory had of an answer, and when its request came, if that had to wait.
pub(crate) struct Part {
    pub(crate) held_at: Option<Moment>,
    answer: Answer,
}

impl Cursors {
    /// Takes what memory has of the answer; `None` where the server has to be asked for all.
    ///
    /// # Errors
    ///
    /// The session ends where what was read ahead cannot be brought back.
    pub(crate) fn take_part(
        &mut self,
        core: &mut Core,
        request: &Request,
    ) -> Result<Option<Part>, SessionError> {
        if core.queue().is_skipping() {
            return Ok(None); // the server skips it
        }
        let held_at = self.held_at.take();
        let Some(reader) = self.readers.get_mut(&*request.name) else { return Ok(None) };
        let limit = request.limit();
        let mut bytes = Vec::new();
        let taken = reader.buffer.take(limit, usize::MAX, &mut bytes);
        let (serial, is_cursor) = (reader.serial, matches!(reader.kind, Kind::Cursor { .. }));
        let (rows, stop) = taken.map_err(|error| cannot_keep(core, &error))?;
        if rows == 0 && stop == Stop::Short {
            return Ok(None);
        }
        let answer = Answer { serial, bytes, rows, wanted: limit, stop, is_cursor, has_begun: false };
        Ok(Some(Part { held_at, answer }))
    }

    /// Sends what gets the rest of the answer, or what only marks its place among the server's replies. The request is
    /// booked as `statement` of `unit`.
    pub(crate) fn ask_for_rest(
        &mut self,
        core: &mut Core,
        now: Moment,
        (request, input): (&Request, &[u8]),
        (unit, statement): (u64, Option<u16>),
        Part { answer, .. }: Part,
    ) {
        let left = answer.wanted.and_then(|limit| u32::try_from(limit - answer.rows).ok());
        let left = left.and_then(NonZeroU32::new);
        let out = core.server_outbox();
        let expect = match (&answer.stop, request.form) {
            (Stop::Short, Form::Query) => {
                let name = String::from_utf8_lossy(&request.name);
                let count = left.map_or(0, NonZeroU32::get);
                frame(out, frontend::QUERY, |out| {
                    out.extend_from_slice(format!("FETCH FORWARD {count} FROM \"{name}\"\0").as_bytes());
                });
                Expect::Query
            }
            (_, Form::Query) => {
                out.extend_from_slice(&input[..request.message]);
                Expect::Query
            }
            (Stop::Short, _) => {
                Execute { portal: &request.name, row_limit: left }.encode(out);
                Expect::Execute
            }
            (Stop::At(End::Failed(_)), _) => {
                out.extend_from_slice(&input[..request.message]);
                Expect::Execute
            }
            _ => {
                StatementOrPortal::Portal(&request.name).encode(frontend::DESCRIBE, out);
                Expect::DescribePortal
            }
        };
        debug_assert!(input.len() >= HEADER_BYTES);
        let slot = self.awaited.put(Awaited::Answer(answer));
        let taker = Taker::Remedy(Remedy::Cursors, slot);
        core.owe_own(Due { taker, ..Due::of_client(expect, unit, statement) });
        core.owes(unit);
        core.bytes_sent(request.message);
        if request.form == Form::Query {
            core.close_unit();
        }
        self.contact_at = now;
    }
}
