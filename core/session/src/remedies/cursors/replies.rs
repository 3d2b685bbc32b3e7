//! What the server says to the messages of this remedy.

use std::io;

use onetrip_ledger::{Remedy, TransactionStatus};
use onetrip_wire::pg::{CommandComplete, ErrorResponse, FrameHeader, backend, frame};

use super::Cursors;
use super::buffer::{End, Stop};
use crate::config::SessionConfig;
use crate::contract::{LENGTH_MAX, SessionError};
use crate::remedies::Rule;
use crate::remedies::remedy::Cx;
use crate::reply_queue::{Due, Expect, Reply, Taker};
use crate::services::{Own, Said};
use crate::session::core::Core;
use crate::slots::Slot;

/// Pieces are not taken to be faster than this when times are compared, in nanoseconds.
const PIECE_NANOS_MIN: u64 = 25_000;

/// The reply is dropped; an error must not be.
const FRAME: Slot = Slot::NONE;
/// The same, nor may the server skip the message: it puts a cursor back to its place.
pub(super) const MOVE: Slot = Slot::reserved(1);
/// The same with a Sync of its own, so that the server skips nothing else: where the cursor is not there any more, the program
/// will be told by the server.
pub(super) const MOVE_ALONE: Slot = Slot::reserved(2);

/// What becomes of the reply to a message of this remedy that is neither of these.
#[derive(Debug)]
pub(super) enum Awaited {
    /// It is dropped; a status is given where it must be that one.
    Ready(Option<TransactionStatus>),
    /// It is kept for this reader; with the turn that it is of, and the rows that were asked for.
    Piece { serial: u64, turn: u64, rows: u32 },
    /// It becomes an answer to the client.
    Answer(Answer),
}

/// An answer of which a part was in memory.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) serial: u64,
    /// Messages that come before what the server says.
    pub(super) bytes: Vec<u8>,
    pub(super) rows: u64,
    /// Rows that were asked for.
    pub(super) wanted: Option<u64>,
    pub(super) stop: Stop,
    /// It answers FETCH.
    pub(super) is_cursor: bool,
    /// The server has begun to say something.
    pub(super) has_begun: bool,
}

fn sqlstate(said: &Said<'_>) -> Option<[u8; 5]> {
    ErrorResponse::decode(said.body()).ok().and_then(|error| error.sqlstate())
}

impl Cursors {
    /// The server has skipped a message of this remedy.
    pub(super) fn skipped(&mut self, slot: Slot) {
        self.is_lost |= slot == MOVE;
        if let Some(Awaited::Answer(answer)) = self.awaited.take(slot) {
            if let Some(reader) = self.by_serial(answer.serial) {
                reader.buffer.put_back(answer.bytes, answer.rows);
            }
        }
    }

    /// The server answers a message of this remedy.
    pub(super) fn take_reply(
        &mut self,
        cx: &mut Cx<'_>,
        slot: Slot,
        said: &Said<'_>,
    ) -> Result<Own, SessionError> {
        let is_error = said.is_failure();
        let is_last = said.is_last() || is_error;
        match self.awaited.get(slot) {
            None if slot == MOVE_ALONE && is_error && sqlstate(said) == Some(*b"34000") => {}
            None if matches!(slot, FRAME | MOVE | MOVE_ALONE) && is_error && Rule::Broken.is_kept() => {
                return Err(broke(cx.core, "a statement of onetrip's own failed"));
            }
            Some(Awaited::Ready(Some(status))) if Rule::Broken.is_kept() => {
                let letter = if *status == TransactionStatus::Idle { b"I" } else { b"T" };
                if said.body() != letter {
                    return Err(broke(cx.core, "prefetching changed the transaction"));
                }
            }
            Some(Awaited::Piece { serial, turn, rows }) => {
                let (serial, turn, rows) = (*serial, *turn, *rows);
                self.turn_come = self.turn_come.max(turn);
                self.piece_reply(cx, (serial, rows), said).map_err(|error| cannot_keep(cx.core, &error))?;
            }
            Some(Awaited::Answer(_)) => return Ok(self.answer_reply(cx.core, slot, said)),
            _ => {}
        }
        if is_last && !matches!(self.awaited.take(slot), Some(Awaited::Piece { .. } | Awaited::Ready(None))) {
            // Time between two flights is not that of a piece.
            self.readers.values_mut().for_each(|reader| reader.buffer.filled_at = None);
        }
        Ok(Own::Dropped)
    }

    fn piece_reply(&mut self, cx: &Cx<'_>, (serial, asked): (u64, u32), said: &Said<'_>) -> io::Result<()> {
        let (now, failed, message) = (said.now, said.is_failure(), said.message);
        if failed && sqlstate(said) == Some(*b"34000") {
            // It is not there any more: the program will be told by the server.
            self.readers.retain(|_, reader| reader.serial != serial);
            return Ok(());
        }
        let room = self.room_of(serial, cx.config.overflow.as_ref());
        let Some(reader) = self.by_serial(serial) else { return Ok(()) };
        let end = match said.tag {
            backend::DATA_ROW => {
                let length = FrameHeader::peek(message, LENGTH_MAX).and_then(Result::ok);
                reader.row_brings(length.map_or(message.len(), |header| header.frame_len()));
                reader.buffer.add(message, true, &room)?;
                self.long_row = Some(serial).filter(|_| !said.is_whole);
                return Ok(());
            }
            backend::PORTAL_SUSPENDED => End::Suspended,
            backend::COMMAND_COMPLETE => End::Complete,
            _ if failed => End::Failed(message.to_vec()),
            _ => return Ok(()),
        };
        reader.piece_came();
        reader.under_way = reader.under_way.saturating_sub(1);
        reader.rows_under_way = reader.rows_under_way.saturating_sub(u64::from(asked));
        reader.buffer.end(end, &room)?;
        if let Some(before) = reader.buffer.filled_at.replace(now) {
            // One hiccup tells nothing; what is slow all the time soon shows.
            let nanos = now.since(before).min(2 * reader.piece_nanos.max(PIECE_NANOS_MIN));
            reader.piece_nanos =
                if reader.piece_nanos == 0 { nanos } else { (7 * reader.piece_nanos + nanos) / 8 };
        }
        Ok(())
    }

    /// The server answers in place of what was in memory, or behind it.
    fn answer_reply(&mut self, core: &mut Core, slot: Slot, said: &Said<'_>) -> Own {
        let Said { tag, reply, message, .. } = *said;
        let body = said.body();
        let Some(Awaited::Answer(answer)) = self.awaited.get_mut(slot) else { return Own::Dropped };
        let out = core.client_outbox();
        let expect = reply.due().map(|due| due.expect);
        let is_first = !std::mem::replace(&mut answer.has_begun, true);
        let rows = match (&answer.stop, reply) {
            (Stop::At(End::Failed(error)), Reply::Failed(_)) => {
                if !answer.is_cursor {
                    out.extend_from_slice(&answer.bytes);
                }
                out.extend_from_slice(error);
                None
            }
            (_, Reply::Failed(_)) => {
                if !answer.is_cursor && is_first && expect != Some(Expect::DescribePortal) {
                    out.extend_from_slice(&answer.bytes);
                }
                out.extend_from_slice(message);
                None
            }
            (Stop::At(end), Reply::Last(_)) if expect == Some(Expect::DescribePortal) => {
                out.extend_from_slice(&answer.bytes);
                put_end(out, answer.rows, false, *end == End::Complete);
                Some((answer.rows, *end == End::Complete))
            }
            _ => {
                // Rows of a portal come first; those of a FETCH behind its RowDescription.
                if is_first && !answer.is_cursor {
                    out.extend_from_slice(&answer.bytes);
                }
                match CommandComplete::decode(body).ok().filter(|_| tag == backend::COMMAND_COMPLETE) {
                    Some(complete) => {
                        let rows = answer.rows + complete.rows().unwrap_or(0);
                        put_end(out, rows, answer.is_cursor, true);
                        Some((rows, !answer.is_cursor || answer.wanted.is_some_and(|wanted| rows < wanted)))
                    }
                    None => {
                        out.extend_from_slice(message);
                        self.passes_rest = true;
                        if is_first && answer.is_cursor {
                            out.extend_from_slice(&answer.bytes);
                        }
                        (tag == backend::PORTAL_SUSPENDED).then_some((0, false))
                    }
                }
            }
        };
        let (serial, has_failed) = (answer.serial, matches!(answer.stop, Stop::At(End::Failed(_))));
        if let Some(reader) = self.by_serial(serial) {
            if let Some((rows, is_over)) = rows {
                reader.got(rows, is_over);
            }
            reader.is_barred |= has_failed;
        }
        if matches!(reply, Reply::Last(_) | Reply::Failed(_)) && !ends_later(reply) {
            self.awaited.take(slot);
            if has_failed {
                self.readers.retain(|_, reader| reader.serial != serial);
            }
        }
        Own::Dropped
    }
}

/// An error to a simple query is followed by its ReadyForQuery.
fn ends_later(reply: Reply) -> bool {
    matches!(reply, Reply::Failed(Due { expect: Expect::Query, .. }))
}

/// What is no reply, and what is the rest of one.
impl Cursors {
    /// More of a row that is too long to be looked into.
    ///
    /// # Errors
    ///
    /// The session ends where it cannot be kept.
    pub(crate) fn long_row_passes(
        &mut self,
        core: &mut Core,
        config: &SessionConfig,
        bytes: &[u8],
    ) -> Result<(), SessionError> {
        let Some(serial) = self.long_row else { return Ok(()) };
        let room = self.room_of(serial, config.overflow.as_ref());
        let kept = self.by_serial(serial).map(|reader| reader.buffer.add_rest(bytes, &room));
        kept.transpose().map(drop).map_err(|error| cannot_keep(core, &error))
    }

    /// Whether the rest of a message that was replaced is the client's all the same.
    pub(crate) fn passes_rest(&mut self) -> bool {
        std::mem::take(&mut self.passes_rest)
    }

    /// A notice to a piece has its place in it; one to a statement of the session's own is nobody's. Returns whether the notice
    /// is dealt with.
    ///
    /// # Errors
    ///
    /// The session ends where it cannot be kept.
    pub(crate) fn keep_notice(
        &mut self,
        core: &mut Core,
        config: &SessionConfig,
        message: &[u8],
    ) -> Result<bool, SessionError> {
        let Some(Taker::Remedy(Remedy::Cursors, slot)) = core.queue().front().map(|due| due.taker) else {
            return Ok(false);
        };
        let serial = match self.awaited.get(slot) {
            Some(Awaited::Piece { serial, .. }) => *serial,
            Some(Awaited::Answer(_)) => return Ok(false),
            _ => return Ok(true),
        };
        let room = self.room_of(serial, config.overflow.as_ref());
        let kept = self.by_serial(serial).map(|reader| reader.buffer.add(message, false, &room));
        kept.transpose().map_err(|error| cannot_keep(core, &error))?;
        Ok(true)
    }
}

/// Puts what the server says at the end of a piece.
pub(super) fn put_end(out: &mut Vec<u8>, rows: u64, is_cursor: bool, is_over: bool) {
    match (is_cursor, is_over) {
        (true, _) => CommandComplete { tag: format!("FETCH {rows}").as_bytes() }.encode(out),
        (false, true) => CommandComplete { tag: format!("SELECT {rows}").as_bytes() }.encode(out),
        (false, false) => frame(out, backend::PORTAL_SUSPENDED, |_| ()),
    }
}

/// Ends the session: what was read ahead is too much for memory, and there is no other place.
pub(super) fn cannot_keep(core: &mut Core, error: &io::Error) -> SessionError {
    broke(core, &format!("the rest of it cannot be written to a temporary file ({error})"))
}

/// Ends the session: it cannot go on as the program believes.
pub(super) fn broke(core: &mut Core, why: &str) -> SessionError {
    let message = format!("onetrip cannot continue reading a prefetched result: {why}");
    let hint = "Connect again; leave the remedy out by --remedies exact,-cursors.";
    core.refuse("08006", &message, Some(hint));
    SessionError::CursorsBroke
}
