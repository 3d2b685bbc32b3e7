//! Answers of which a part is in memory and a part on the server.

use std::num::NonZeroU32;

use onetrip_ledger::{Moment, Remedy};
use onetrip_wire::pg::{Execute, HEADER_BYTES, StatementOrPortal, frame, frontend};

use super::Kind;
use super::buffer::{End, Stop};
use super::replies::{Answer, Awaited, cannot_keep};
use super::request::{Form, Request};
use crate::contract::{SessionError, Verdict};
use crate::events::Event;
use crate::remedies::Session;
use crate::reply_queue::{Due, Expect, Taker};

impl Session {
    /// Sends what gets the rest of the answer, or what only marks its place among the server's replies.
    ///
    /// # Errors
    ///
    /// The session ends where what was read ahead cannot be brought back.
    pub(super) fn answer_in_part(
        &mut self,
        now: Moment,
        request: &Request,
        input: &[u8],
    ) -> Result<Option<Verdict>, SessionError> {
        if self.core.queue().is_skipping() {
            return Ok(None); // the server skips it
        }
        let held_at = self.cursors.held_at.take();
        let Some(reader) = self.cursors.readers.get_mut(&*request.name) else { return Ok(None) };
        let limit = request.rows.map(|rows| u64::from(rows.get()));
        let mut bytes = Vec::new();
        let taken = reader.buffer.take(limit, usize::MAX, &mut bytes);
        let (serial, is_cursor) = (reader.serial, matches!(reader.kind, Kind::Cursor { .. }));
        let (rows, stop) = taken.map_err(|error| cannot_keep(&mut self.core, &error))?;
        if rows == 0 && stop == Stop::Short {
            return Ok(None);
        }
        self.tell(&Event::Followed);
        let (unit, statement) = self.open_read(held_at.unwrap_or(now), request, input);
        let left = limit.and_then(|limit| u32::try_from(limit - rows).ok()).and_then(NonZeroU32::new);
        let out = self.core.server_outbox();
        let expect = match (&stop, request.form) {
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
        let slot = self.cursors.awaited.put(Awaited::Answer(Answer {
            serial,
            bytes,
            rows,
            wanted: limit,
            stop,
            is_cursor,
            has_begun: false,
        }));
        let taker = Taker::Remedy(Remedy::Cursors, slot);
        self.core.owe_own(Due { taker, ..Due::of_client(expect, unit, statement) });
        self.core.owes(unit);
        self.core.bytes_sent(request.message);
        if request.form == Form::Query {
            self.core.close_unit();
        }
        self.cursors.contact_at = now;
        Ok(Some(Verdict::Replace(request.message)))
    }
}
