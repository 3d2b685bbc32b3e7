//! What a program asks of a result that is read in pieces: from memory, from what is under way, or from the server.

use std::num::NonZeroU32;

use onetrip_ledger::{Moment, Remedy, Steps, TransactionStatus, UnitKind};
use onetrip_wire::pg::{
    CommandComplete, Execute, FrameHeader, HEADER_BYTES, RowDescription, TransactionStatus as WireStatus,
    backend, encode_ready_for_query, frame, frontend,
};

use super::buffer::{End, Stop};
use super::{Cursors, Kind, Native, Reader, sql};
use crate::remedies::transaction::Isolation;
use crate::remedies::{Effect, Rule};
use crate::reply_queue::Due;
use crate::session::{LENGTH_MAX, Session, Verdict};

/// A request for the next rows.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) name: Vec<u8>,
    /// So many rows; `None` for all.
    pub(super) rows: Option<NonZeroU32>,
    pub(super) form: Form,
    /// Length of the message, and of the unit where the form tells it.
    pub(super) message: usize,
    unit: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Execute and Sync.
    Sync,
    /// FETCH in a simple query.
    Query,
    /// Execute among other messages.
    Other,
}

impl Request {
    fn limit(&self) -> Option<u64> {
        self.rows.map(|rows| u64::from(rows.get()))
    }
}

impl Session {
    /// Deals with the message at the front of `input` if it asks for rows of a result that is followed.
    pub(crate) fn read_cursor(&mut self, now: Moment, header: FrameHeader, input: &[u8]) -> Option<Verdict> {
        if self.cursors.readers.is_empty() {
            return None;
        }
        let request = self.request(header, input)?;
        let reader = self.cursors.readers.get(&*request.name)?;
        if reader.leaving.is_some() || !self.is_alive(reader) {
            return None;
        }
        let (is_ahead, is_unsure) = (reader.is_ahead(), reader.is_unsure);
        if reader.is_stale && is_ahead {
            return None; // dealt with by its name
        }
        let covers = reader.buffer.covers(request.limit());
        let (under_way, is_ended) = (reader.under_way > 0, reader.buffer.is_ended());
        if request.form == Form::Other || !self.is_quiet() {
            let waits = under_way || (request.form == Form::Query && !self.is_quiet());
            return match is_ahead {
                false => None,
                true if waits => Some(self.hold(now)),
                true => self.answer_in_part(now, &request, input),
            };
        }
        if covers && !is_unsure {
            return Some(self.serve_piece(now, &request, input));
        }
        if under_way {
            return Some(self.hold(now));
        }
        if is_ended && !is_unsure {
            return self.answer_in_part(now, &request, input);
        }
        let ahead = self.pieces_ahead(&request.name);
        if (is_ahead && is_unsure) || (ahead > 0 && self.may_read_ahead(now, &request.name)) {
            let rows = request.rows.filter(|_| !is_ended).unwrap_or(NonZeroU32::MIN);
            let pieces = if is_unsure { 1 } else { 1 + ahead };
            // Where rows are kept, one more is asked for first, to see whether the portal is there.
            if !is_ahead && is_unsure && request.rows.is_none() && !is_ended {
                return None;
            }
            self.fly(&request.name, rows, pieces);
            return Some(self.hold(now));
        }
        if is_ahead { self.answer_in_part(now, &request, input) } else { None }
    }

    fn request(&self, header: FrameHeader, input: &[u8]) -> Option<Request> {
        let message = header.frame_len();
        let body = input.get(HEADER_BYTES..message)?;
        match header.tag {
            frontend::EXECUTE => {
                let Execute { portal, row_limit } = Execute::decode(body).ok()?;
                let next = FrameHeader::peek(&input[message..], LENGTH_MAX);
                let (form, unit) = match next {
                    _ if self.units.is_open() => (Form::Other, message),
                    Some(Ok(next)) if next.tag == frontend::SYNC => (Form::Sync, message + next.frame_len()),
                    _ => (Form::Other, message),
                };
                let reader = self.cursors.readers.get(portal)?;
                // Execute on a cursor of SQL is not how its driver reads it.
                matches!(reader.kind, Kind::Portal).then_some(())?;
                Some(Request { name: portal.to_vec(), rows: row_limit, form, message, unit })
            }
            frontend::QUERY if !self.units.is_open() => {
                let fetch = sql::fetch(body.strip_suffix(b"\0")?)?;
                let reader = self.cursors.readers.get(&*fetch.name)?;
                matches!(reader.kind, Kind::Cursor { .. }).then_some(())?;
                let (name, rows) = (fetch.name, Some(fetch.rows));
                Some(Request { name, rows, form: Form::Query, message, unit: message })
            }
            _ => None,
        }
    }

    /// Whether the program can read it where its transaction stands.
    fn is_alive(&self, reader: &Reader) -> bool {
        match self.status {
            TransactionStatus::Active => true,
            TransactionStatus::Idle => reader.is_held(),
            _ => false,
        }
    }

    /// Whether what comes next of it may be read before it is asked for (rules R1 to R3, R7).
    pub(super) fn may_read_ahead(&mut self, now: Moment, name: &[u8]) -> bool {
        if self.cursors.is_off || !self.is_proven(now, name) {
            return false;
        }
        let Some(reader) = self.cursors.readers.get(name) else { return false };
        if reader.is_barred || reader.is_over || reader.pieces == 0 || reader.buffer.is_ended() {
            return false;
        }
        let is_shaped = match &reader.kind {
            Kind::Portal => !self.is_free_result(reader),
            Kind::Cursor { header, can_move, is_apart, .. } => {
                header.is_empty() || !(*can_move || *is_apart || !Rule::Place.is_kept())
            }
        };
        if is_shaped {
            return false;
        }
        if reader.is_held() {
            return true;
        }
        let level = self.transaction.isolation;
        self.transaction.wants_level |= level == Isolation::Unknown;
        level.is_plain() || !Rule::Serializable.is_kept()
    }

    /// The client waits for a piece that is under way.
    fn hold(&mut self, now: Moment) -> Verdict {
        self.cursors.held_at.get_or_insert(now);
        Verdict::Hold
    }

    /// Answers from memory.
    fn serve_piece(&mut self, now: Moment, request: &Request, input: &[u8]) -> Verdict {
        let held_at = self.cursors.held_at.take();
        let (unit, statement) = self.open_read(held_at.unwrap_or(now), request, input);
        self.units.close(None);
        let reply_at = self.to_client.len();
        let Some(reader) = self.cursors.readers.get_mut(&*request.name) else { return Verdict::Wait };
        let is_cursor = match &reader.kind {
            Kind::Cursor { header, .. } => {
                self.to_client.extend_from_slice(header);
                true
            }
            Kind::Portal => false,
        };
        let (rows, stop) = reader.buffer.take(request.limit(), &mut self.to_client);
        let is_over = stop == Stop::At(End::Complete) || (is_cursor && Some(rows) != request.limit());
        put_end(&mut self.to_client, rows, is_cursor, is_over);
        reader.got(rows, is_over);
        let is_idle = self.status == TransactionStatus::Idle;
        encode_ready_for_query(
            &mut self.to_client,
            if is_idle { WireStatus::Idle } else { WireStatus::Active },
        );
        if let Some(found) = statement.and_then(|slot| self.statement_mut(unit, slot)) {
            found.rows = rows;
            found.suspended = !is_over && !is_cursor;
        }
        // What waits for pieces of one turn waits for one trip.
        let Cursors { turn_come, turn_waited_for, .. } = &mut self.cursors;
        if held_at.is_some() && *turn_come > *turn_waited_for {
            *turn_waited_for = *turn_come;
        } else {
            self.units.answered_by(unit, Remedy::Cursors);
        }
        self.units.bytes_sent(request.unit);
        self.units.bytes_received(unit, self.to_client.len() - reply_at, now);
        self.book_answered(now);
        self.refill(now, request);
        Verdict::Replace(request.unit)
    }

    /// Books a request that is not sent as it came: its unit, not closed, and its statement.
    pub(super) fn open_read(&mut self, now: Moment, request: &Request, input: &[u8]) -> (u64, Option<u16>) {
        if request.form == Form::Query {
            self.end_unnamed();
            let text = &input[HEADER_BYTES..request.message - 1];
            let (unit, statement, _) = self.open_query(now, text);
            return (unit, statement);
        }
        let unit = self.units.open(now, UnitKind::Group);
        let text = self.cursors.readers.get(&*request.name).map(|reader| reader.text.clone());
        let statement = self.add_statement(unit, &text.unwrap_or_default(), Steps::EXECUTE);
        if let Some(found) = statement.and_then(|slot| self.statement_mut(unit, slot)) {
            found.row_limit = request.rows.map_or(0, NonZeroU32::get);
        }
        (unit, statement)
    }

    /// An Execute goes to the server as it came: a portal that is read in pieces is followed from its first one on.
    pub(crate) fn executes_natively(&mut self, unit: u64, portal: &[u8], rows: Option<NonZeroU32>) {
        if let Some(reader) = self.cursors.readers.get_mut(portal) {
            if reader.leaving.is_none() && matches!(reader.kind, Kind::Portal) {
                reader.pieces += 1;
                self.cursors.native = Some(Native { unit, serial: reader.serial, wanted: 0 });
            }
            return;
        }
        // The unnamed portal may be what another remedy believes it to be.
        if portal.is_empty()
            || rows.is_none()
            || self.status != TransactionStatus::Active
            || !self.may_remedy(Remedy::Cursors)
        {
            return;
        }
        let Some(found) = self.portals.get(portal) else { return };
        let (text, formats) = (found.text.clone(), found.formats);
        if text.effect == Effect::Read {
            if let Some(reader) = self.cursors.add(unit, portal, Kind::Portal, text, formats) {
                reader.pieces = 1;
                self.cursors.native = Some(Native { unit, serial: self.cursors.next_serial, wanted: 0 });
            }
        }
    }

    /// Whether a result is proven to be the same when it is read earlier (rules R1 and R2). Nothing but reads was sent
    /// since it was opened, if the session's state is known now.
    fn is_proven(&mut self, now: Moment, name: &[u8]) -> bool {
        let Some(reader) = self.cursors.readers.get(name) else { return false };
        let (is_proven, template) = (reader.is_proven, reader.text.template);
        if is_proven || !self.facts.has_catalogue() {
            return is_proven;
        }
        let is_proven = self.is_plain(now, template);
        if let Some(reader) = self.cursors.readers.get_mut(name) {
            reader.is_proven = is_proven;
        }
        is_proven
    }

    fn is_plain(&mut self, now: Moment, template: u32) -> bool {
        self.prove(now);
        let is_pure = self.facts.is_known() && self.only_reads(now, template);
        let is_free = self.facts.needs_of(template).is_some_and(super::forms::computes_free);
        (is_pure || !Rule::Plain.is_kept())
            && (is_free || !Rule::Shape.is_kept())
            && (self.facts.leaves_cursors() || !Rule::Functions.is_kept())
    }

    fn is_free_result(&self, reader: &Reader) -> bool {
        let learned = self.learned.get(reader.text.template as usize);
        let is_free = |columns: &[u32]| super::forms::is_free(columns, &reader.formats);
        learned.and_then(|learned| learned.columns.as_deref()).is_some_and(is_free) || !Rule::Shape.is_kept()
    }
}

impl Session {
    /// The server describes what it sends to the client: the columns of a FETCH are those of all that follow.
    pub(crate) fn native_piece_described(&mut self, due: Due, body: &[u8]) {
        let Some(Native { serial, .. }) = self.cursors.native.filter(|piece| piece.unit == due.unit) else {
            return;
        };
        let Ok(description) = RowDescription::decode(body) else { return };
        let columns: Vec<u32> = description.columns().map(|column| column.type_oid).collect();
        let Some(reader) = self.cursors.by_serial(serial) else { return };
        let is_free = super::forms::is_free(&columns, &reader.formats) || !Rule::Shape.is_kept();
        if let Kind::Cursor { header, .. } = &mut reader.kind {
            header.clear();
            reader.is_barred |= !is_free;
            frame(header, backend::ROW_DESCRIPTION, |out| out.extend_from_slice(body));
        }
    }

    /// The server has sent a piece to the client.
    pub(crate) fn native_piece_ends(&mut self, due: Due, is_complete: bool, rows: u64) {
        let Some(Native { serial, wanted, .. }) = self.cursors.native.filter(|piece| piece.unit == due.unit)
        else {
            return;
        };
        self.cursors.native = None;
        let Some(reader) = self.cursors.by_serial(serial) else { return };
        match reader.kind {
            Kind::Portal => reader.is_over |= is_complete,
            Kind::Cursor { .. } => reader.got(rows, rows < wanted),
        }
    }
}

impl Reader {
    /// The program has got a piece.
    pub(super) fn got(&mut self, rows: u64, is_over: bool) {
        self.pieces += 1;
        self.rows += rows;
        self.is_over |= is_over;
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
