//! What is sent ahead: pieces in a shield (rule R5).

use std::num::NonZeroU32;
use std::time::Duration;

use onetrip_ledger::{Moment, Remedy, TransactionStatus};
use onetrip_wire::pg::{Execute, StatementOrPortal, frame, frontend};

use super::replies::Awaited;
use super::request::Request;
use super::{Cursors, KEPT_BYTES_MAX, Reader};
use crate::facts::Facts;
use crate::remedies::Rule;
use crate::remedies::remedy::Cx;
use crate::reply_queue::{Due, Expect, Taker};
use crate::session::core::Core;
use crate::slots::Slot;

/// Rows that may be ahead for each that the program has got: so much is wasted at most.
const AHEAD_PER_ROW: u64 = 2;
/// Rows ahead, at most, where no row is much longer than another, and elsewhere.
const SHORT_ROWS_MAX: u64 = 16_384;
const ROWS_MAX: u64 = 2048;
/// Pieces ahead, at most.
const PIECES_MAX: u64 = 4096;
/// Where a piece takes so many round trips, one at a time is read ahead: what comes behind it waits.
const SLOW_TRIPS: u64 = 4;
/// With more pieces than this, the next flight goes out when a quarter is used up.
const SMALL: usize = 16;
/// What is ahead takes so many round trips, at most, unless pieces are fast.
const TRIPS_AHEAD: u64 = 4;
/// So many fast pieces take one round trip: the time of those that nobody asks for is less than half of what was saved by
/// those before them, of which there are half as many.
const FAST_PER_TRIP: u64 = 4;
const NO_TIMEOUT: &[u8] = b"SET LOCAL statement_timeout TO 0";
/// A program that is served from memory is not idle: the server hears of it this often.
const CONTACT_EVERY: Duration = Duration::from_millis(20);

/// What is to be done so that the next pieces are there in time.
pub(crate) enum Refill {
    /// Nothing.
    Nothing,
    /// The server is to hear that the program is there.
    Contact,
    /// So many pieces of so many rows are sent for, if they may be read ahead; else it is a contact.
    Pieces(NonZeroU32, usize),
}

impl Cursors {
    /// Sends for pieces of so many rows.
    pub(crate) fn fly(&mut self, cx: &mut Cx<'_>, name: &[u8], rows: NonZeroU32, pieces: usize) {
        let is_shielded = cx.core.status() == TransactionStatus::Active && Rule::Shield.is_kept();
        let Some(reader) = self.readers.get_mut(name) else { return };
        reader.under_way += pieces;
        reader.rows_under_way += pieces as u64 * u64::from(rows.get());
        cx.facts.used();
        let serial = reader.serial;
        let turn = self.turn_come + 1;
        let savepoint = cx.own_names.name().to_vec();
        if is_shielded {
            own_statement(cx, &[b"SAVEPOINT ", &savepoint[..]].concat());
            // A piece that fails ends its portal for good, and the limit may be another when the program asks for it.
            own_statement(cx, NO_TIMEOUT);
            self.own_sync(cx.core, None);
        }
        for piece in 0..pieces {
            Execute { portal: name, row_limit: Some(rows) }.encode(cx.core.server_outbox());
            self.own_due(cx.core, Expect::Execute, Awaited::Piece { serial, turn, rows: rows.get() });
            let is_last = piece + 1 == pieces && !is_shielded;
            let status = cx.core.status();
            self.own_sync(cx.core, is_last.then_some(status));
        }
        if is_shielded {
            own_statement(cx, &[b"ROLLBACK TO ", &savepoint[..]].concat());
            own_statement(cx, &[b"RELEASE ", &savepoint[..]].concat());
            let status = cx.core.status();
            self.own_sync(cx.core, Some(status));
        }
    }

    /// A Sync of the remedy's; `status` as it must be then.
    pub(super) fn own_sync(&mut self, core: &mut Core, status: Option<TransactionStatus>) {
        frame(core.server_outbox(), frontend::SYNC, |_| ());
        self.own_due(core, Expect::Sync, Awaited::Ready(status));
    }

    fn own_due(&mut self, core: &mut Core, expect: Expect, awaited: Awaited) {
        let slot = self.awaited.put(awaited);
        core.owe_own(Due::own(Taker::Remedy(Remedy::Cursors, slot), expect));
    }

    /// Ends the unnamed statement and portal as a simple query does that is not sent.
    pub(crate) fn end_unnamed(&mut self, core: &mut Core) {
        if core.portal(b"").is_none() && core.prepared(b"").is_none() {
            return;
        }
        StatementOrPortal::Portal(b"").encode(frontend::CLOSE, core.server_outbox());
        StatementOrPortal::Statement(b"").encode(frontend::CLOSE, core.server_outbox());
        for _ in 0..2 {
            core.owe_own(Due::own(Remedy::Cursors, Expect::Close));
        }
        let status = core.status();
        self.own_sync(core, Some(status));
    }

    /// Whether more is to be sent for, as half of what may be ahead is used up.
    pub(crate) fn refill(&self, facts: &Facts, request: &Request) -> Refill {
        let Some(rows) = request.rows else { return Refill::Contact };
        let target = self.pieces_ahead(facts, &request.name, rows);
        let Some(reader) = self.readers.get(&*request.name) else { return Refill::Nothing };
        let ahead = (reader.buffer.rows() / u64::from(rows.get())) as usize + reader.under_way;
        let more = target.saturating_sub(ahead);
        let is_low = if target > SMALL { 4 * ahead <= 3 * target } else { 2 * ahead <= target };
        if is_low && more > 0 { Refill::Pieces(rows, more) } else { Refill::Contact }
    }

    /// Something was sent to the server.
    pub(crate) fn note_contact(&mut self, now: Moment) {
        self.contact_at = now;
    }

    /// A server that ends idle transactions must not end one whose program is served from memory (rule R7).
    pub(crate) fn keep_contact(&mut self, core: &mut Core, now: Moment) {
        let is_old = now.since(self.contact_at) >= CONTACT_EVERY.as_nanos() as u64;
        if is_old && core.queue().is_empty() && Rule::Contact.is_kept() {
            self.contact_at = now;
            let status = core.status();
            self.own_sync(core, Some(status));
        }
    }

    /// How many pieces of so many rows may be ahead (rule R6).
    pub(super) fn pieces_ahead(&self, facts: &Facts, name: &[u8], rows: NonZeroU32) -> usize {
        let Some(reader) = self.readers.get(name) else { return 0 };
        let by_bytes = if Rule::Bounds.is_kept() {
            let free = KEPT_BYTES_MAX.saturating_sub(self.kept() - reader.buffer.bytes_in_memory());
            ((free / reader.row_bytes.max(1)) as u64).min(reader.rows_max())
        } else {
            u64::MAX
        };
        let by_hits = AHEAD_PER_ROW * reader.rows;
        let rtt = facts.path.distance().as_nanos() as u64;
        let pieces = by_bytes.min(by_hits) / u64::from(rows.get());
        pieces.min(reader.by_time(rtt)).min(PIECES_MAX) as usize
    }
}

/// A statement of the remedy's that cannot fail, by a name of its own.
fn own_statement(cx: &mut Cx<'_>, text: &[u8]) {
    cx.put_own_statement(Remedy::Cursors, text);
}

/// A statement of the remedy's that puts a cursor back to its place.
pub(super) fn own_move(cx: &mut Cx<'_>, slot: Slot, text: &[u8]) {
    cx.put_own_statement(Taker::Remedy(Remedy::Cursors, slot), text);
}

impl Reader {
    fn rows_max(&self) -> u64 {
        let are_short = self.columns.as_ref().is_some_and(|columns| columns.are_short);
        if are_short { SHORT_ROWS_MAX } else { ROWS_MAX }
    }

    /// Pieces that keep the path busy for so many round trips.
    fn by_time(&self, rtt_nanos: u64) -> u64 {
        match self.piece_nanos {
            0 => PIECES_MAX,
            slow if slow > SLOW_TRIPS * rtt_nanos => 1,
            fast if FAST_PER_TRIP * fast <= rtt_nanos => PIECES_MAX,
            nanos => TRIPS_AHEAD * rtt_nanos / nanos + 1,
        }
    }
}
