//! What a program asks of a result that is read in pieces: from memory, from what is under way, or from the server.

use std::num::NonZeroU32;

use onetrip_ledger::{Moment, Remedy, Steps, TransactionStatus, UnitKind};
use onetrip_sql::purity;
use onetrip_wire::pg::{
    Execute, FrameHeader, HEADER_BYTES, RowDescription, TransactionStatus as WireStatus, backend,
    encode_ready_for_query, frame, frontend,
};

use super::buffer::{End, Stop};
use super::replies::{cannot_keep, put_end};
use super::{Columns, Cursors, Delivering, Judged, KEPT_BYTES_MAX, Kind, Native, Opened, Reader};
use crate::contract::{LENGTH_MAX, SessionError, Verdict};
use crate::facts::Isolation;
use crate::facts::Verdict as Proof;
use crate::reading;
use crate::reading::Effect;
use crate::remedies::Rule;
use crate::remedies::Session;
use crate::reply_queue::{Due, Expect};
use crate::statements::Portal;

/// Bytes of an answer from memory that go to the client at once, before it is seen whether it takes them.
const DELIVERED_BYTES_MAX: usize = 512 * 1024;

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
    ///
    /// # Errors
    ///
    /// The session ends where what was read ahead cannot be brought back.
    pub(crate) fn read_cursor(
        &mut self,
        now: Moment,
        header: FrameHeader,
        input: &[u8],
    ) -> Result<Option<Verdict>, SessionError> {
        if self.cursors.readers.is_empty() {
            return Ok(None);
        }
        let Some(request) = self.request(header, input) else { return Ok(None) };
        let Some(reader) = self.cursors.readers.get(&*request.name) else { return Ok(None) };
        if reader.leaving.is_some() || !self.is_alive(reader) {
            return Ok(None);
        }
        let (is_ahead, is_unsure) = (reader.is_ahead(), reader.is_unsure());
        if reader.is_stale && is_ahead {
            return Ok(None); // dealt with by its name
        }
        let covers = reader.buffer.covers(request.limit());
        let (under_way, is_ended) = (reader.under_way > 0, reader.buffer.is_ended());
        if request.form == Form::Other || !self.is_quiet() {
            let waits = under_way || (request.form == Form::Query && !self.is_quiet());
            return match is_ahead {
                false => Ok(None),
                true if waits => Ok(Some(self.hold(now))),
                true => self.answer_in_part(now, &request, input),
            };
        }
        if covers && !is_unsure {
            return self.serve_piece(now, &request, input).map(Some);
        }
        if under_way {
            return Ok(Some(self.hold(now)));
        }
        if is_ended && !is_unsure {
            return self.answer_in_part(now, &request, input);
        }
        if let Some((rows, pieces)) = self.wanted_pieces(now, &request) {
            self.fly(&request.name, rows, pieces);
            return Ok(Some(self.hold(now)));
        }
        if is_ahead { self.answer_in_part(now, &request, input) } else { Ok(None) }
    }

    /// The pieces to send for, and the rows of each, so that a request which memory does not cover can be answered.
    fn wanted_pieces(&mut self, now: Moment, request: &Request) -> Option<(NonZeroU32, usize)> {
        let reader = self.cursors.readers.get(&*request.name)?;
        if reader.is_unsure() && reader.is_ahead() {
            // One more is asked for first, to see whether the portal is there.
            let rows = request.rows.filter(|_| !reader.buffer.is_ended());
            return Some((rows.unwrap_or(NonZeroU32::MIN), 1));
        }
        let (rows, is_unsure) = (request.rows?, reader.is_unsure());
        let missing = u64::from(rows.get()).saturating_sub(reader.buffer.rows());
        // What is in a file is not put together with the rest in memory.
        let is_large = reader.buffer.bytes() > KEPT_BYTES_MAX;
        let ahead = self.pieces_ahead(&request.name, rows);
        if !(ahead > 0 || is_large) || !self.may_read_ahead(now, &request.name) {
            return None;
        }
        if is_unsure {
            return Some((rows, 1));
        }
        match u32::try_from(missing).ok().and_then(NonZeroU32::new).filter(|_| is_large) {
            Some(missing) => Some((missing, 1)),
            None => Some((rows, 1 + ahead)),
        }
    }

    fn request(&self, header: FrameHeader, input: &[u8]) -> Option<Request> {
        let message = header.frame_len();
        let body = input.get(HEADER_BYTES..message)?;
        match header.tag {
            frontend::EXECUTE => {
                let Execute { portal, row_limit } = Execute::decode(body).ok()?;
                let next = FrameHeader::peek(&input[message..], LENGTH_MAX);
                let (form, unit) = match next {
                    _ if self.core.units().is_open() => (Form::Other, message),
                    Some(Ok(next)) if next.tag == frontend::SYNC => (Form::Sync, message + next.frame_len()),
                    _ => (Form::Other, message),
                };
                let reader = self.cursors.readers.get(portal)?;
                // Execute on a cursor of SQL is not how its driver reads it.
                matches!(reader.kind, Kind::Portal).then_some(())?;
                Some(Request { name: portal.to_vec(), rows: row_limit, form, message, unit })
            }
            frontend::QUERY if !self.core.units().is_open() => {
                let fetch = reading::fetch(body.strip_suffix(b"\0")?)?;
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
        match self.core.status() {
            TransactionStatus::Active => true,
            TransactionStatus::Idle => reader.is_held(),
            _ => false,
        }
    }

    /// Whether what comes next of it may be read before it is asked for (rules R1 to R4).
    pub(super) fn may_read_ahead(&mut self, now: Moment, name: &[u8]) -> bool {
        let Some(reader) = self.cursors.readers.get(name).filter(|_| !self.cursors.is_off) else {
            return false;
        };
        if reader.is_barred || reader.is_over || reader.pieces == 0 || reader.buffer.is_ended() {
            return false;
        }
        let (is_stored, is_portal) = (reader.is_stored, matches!(reader.kind, Kind::Portal));
        if let Kind::Cursor { header, can_move, is_apart, .. } = &reader.kind {
            if header.is_empty() || !Rule::Place.requires(*can_move || *is_apart) {
                return false;
            }
        }
        if !self.is_free_result(name) {
            return false;
        }
        if is_stored && !is_portal {
            if Rule::Functions.is_kept() && self.facts.moves_cursors(now) != Some(false) {
                return false;
            }
            // Outside of a transaction there is no shield, and a time limit would end its portal for good.
            let is_shielded = self.core.status() == TransactionStatus::Active;
            self.facts.renew_settings(now);
            let is_safe = Rule::Shield.requires(is_shielded || self.facts.is_untimed(now));
            if !is_safe {
                self.facts.miss_state();
            }
            return is_safe;
        }
        if !self.facts.has_no_limit() && Rule::Shield.is_kept() {
            self.facts.miss_state();
            return false;
        }
        let level = self.facts.transaction.isolation();
        if level == Isolation::Unknown {
            self.facts.transaction.want_level();
        }
        Rule::Serializable.requires(level.is_plain()) && self.judge(now, name)
    }

    /// The client waits for a piece that is under way.
    fn hold(&mut self, now: Moment) -> Verdict {
        self.cursors.held_at.get_or_insert(now);
        Verdict::Hold
    }

    /// Answers from memory.
    fn serve_piece(&mut self, now: Moment, request: &Request, input: &[u8]) -> Result<Verdict, SessionError> {
        let held_at = self.cursors.held_at.take();
        let (unit, statement) = self.open_read(held_at.unwrap_or(now), request, input);
        self.core.close_unit();
        let Some(reader) = self.cursors.readers.get_mut(&*request.name) else { return Ok(Verdict::Wait) };
        let before = self.core.client_outbox().len();
        let is_cursor = match &reader.kind {
            Kind::Cursor { header, .. } => {
                self.core.client_outbox().extend_from_slice(header);
                true
            }
            Kind::Portal => false,
        };
        let serial = reader.serial;
        let reply = self.core.client_outbox().len() - before;
        self.core.bytes_received(unit, reply, now);
        // What waits for pieces of one turn waits for one trip.
        let Cursors { turn_come, turn_waited_for, .. } = &mut self.cursors;
        if held_at.is_some() && *turn_come > *turn_waited_for {
            *turn_waited_for = *turn_come;
        } else {
            self.core.answered_by(unit, Remedy::Cursors);
        }
        self.core.bytes_sent(request.unit);
        let wanted = request.limit();
        self.cursors.delivering = Some(Delivering { serial, unit, statement, rows: 0, wanted, is_cursor });
        self.deliver(now, request)
    }

    /// Gives the client more of the answer to the message at the front of `input`, which is held until it has got all.
    ///
    /// # Errors
    ///
    /// The session ends where what was read ahead cannot be brought back.
    pub(crate) fn deliver_rest(
        &mut self,
        now: Moment,
        header: FrameHeader,
        input: &[u8],
    ) -> Result<Verdict, SessionError> {
        match self.request(header, input).filter(|_| !self.core.is_client_behind()) {
            Some(request) => self.deliver(now, &request),
            None => Ok(Verdict::Hold),
        }
    }

    fn deliver(&mut self, now: Moment, request: &Request) -> Result<Verdict, SessionError> {
        let Some(Delivering { serial, unit, statement, rows: before, wanted, is_cursor }) =
            self.cursors.delivering
        else {
            return Ok(Verdict::Hold);
        };
        let reply_at = self.core.client_outbox().len();
        let Some(reader) = self.cursors.by_serial(serial) else { return Ok(Verdict::Hold) };
        let left = wanted.map(|wanted| wanted - before);
        let taken = reader.buffer.take(left, DELIVERED_BYTES_MAX, self.core.client_outbox());
        let (some, stop) = taken.map_err(|error| cannot_keep(&mut self.core, &error))?;
        let rows = before + some;
        if stop == Stop::Full {
            let reply = self.core.client_outbox().len() - reply_at;
            self.core.bytes_received(unit, reply, now);
            self.cursors.delivering = Some(Delivering { serial, unit, statement, rows, wanted, is_cursor });
            return Ok(Verdict::Hold);
        }
        self.cursors.delivering = None;
        let is_over = stop == Stop::At(End::Complete) || (is_cursor && Some(rows) != wanted);
        put_end(self.core.client_outbox(), rows, is_cursor, is_over);
        if let Some(reader) = self.cursors.by_serial(serial) {
            reader.got(rows, is_over);
        }
        let is_idle = self.core.status() == TransactionStatus::Idle;
        let status = if is_idle { WireStatus::Idle } else { WireStatus::Active };
        encode_ready_for_query(self.core.client_outbox(), status);
        if let Some(found) = statement.and_then(|slot| self.statement_mut(unit, slot)) {
            found.rows = rows;
            found.suspended = !is_over && !is_cursor;
        }
        let reply = self.core.client_outbox().len() - reply_at;
        self.core.bytes_received(unit, reply, now);
        self.book_answered(now);
        self.refill(now, request);
        Ok(Verdict::Replace(request.unit))
    }

    /// Books a request that is not sent as it came: its unit, not closed, and its statement.
    pub(super) fn open_read(&mut self, now: Moment, request: &Request, input: &[u8]) -> (u64, Option<u16>) {
        if request.form == Form::Query {
            self.end_unnamed();
            let text = &input[HEADER_BYTES..request.message - 1];
            let (unit, statement, _) = self.open_query(now, text);
            return (unit, statement);
        }
        let unit = self.core.open_unit(now, UnitKind::Group);
        let text = self.cursors.readers.get(&*request.name).map(|reader| reader.text.clone());
        let statement = self.add_statement(unit, &text.unwrap_or_default(), Steps::EXECUTE);
        if let Some(found) = statement.and_then(|slot| self.statement_mut(unit, slot)) {
            found.row_limit = request.rows.map_or(0, NonZeroU32::get);
        }
        (unit, statement)
    }

    /// An Execute goes to the server as it came: a portal that is read in pieces is followed from its first one on.
    pub(crate) fn executes_natively(
        &mut self,
        now: Moment,
        unit: u64,
        name: &[u8],
        rows: Option<NonZeroU32>,
    ) {
        if let Some(reader) = self.cursors.readers.get_mut(name) {
            if reader.leaving.is_none() && matches!(reader.kind, Kind::Portal) {
                reader.pieces += 1;
                self.cursors.native = Some(Native { unit, serial: reader.serial, wanted: 0 });
            }
            // What an Execute reads of a cursor of SQL is not counted: where it stands is not known from then on.
            reader.is_barred |= Rule::Place.is_kept() && matches!(reader.kind, Kind::Cursor { .. });
            return;
        }
        // The unnamed portal may be what another remedy believes it to be.
        if name.is_empty()
            || rows.is_none()
            || self.core.status() != TransactionStatus::Active
            || !self.may_remedy(Remedy::Cursors)
        {
            return;
        }
        let Some(Portal { text, formats, serial: statement, types, .. }) = self.core.portal(name).cloned()
        else {
            return;
        };
        if text.effect != Effect::Read {
            return;
        }
        let source = self.core.find_prepared(|prepared| prepared.serial == statement);
        let query = source.and_then(|prepared| prepared.source.clone()).map(|query| (query, types));
        let opened = self.opened();
        if let Some(reader) = self.cursors.add(unit, name, Kind::Portal, text, opened) {
            (reader.query, reader.statement, reader.formats) = (query, statement, formats);
            reader.pieces = 1;
            let serial = reader.serial;
            self.cursors.native = Some(Native { unit, serial, wanted: 0 });
            self.judge(now, name);
        }
    }

    /// What holds for a result that is opened now.
    pub(super) fn opened(&self) -> Opened {
        let changes = self.facts.changes();
        Opened { generation: self.facts.generation(), epoch: changes.epoch(), code: changes.code() }
    }

    /// Whether each row of a result is the same whenever it is read, and reading it cannot fail. What that takes is
    /// looked up, so that it is known for the next piece.
    pub(super) fn judge(&mut self, now: Moment, name: &[u8]) -> bool {
        let Some(reader) = self.cursors.readers.get(name) else { return false };
        if reader.judged != Judged::Open {
            return reader.judged == Judged::Steady;
        }
        let (template, opened) = (reader.text.template, reader.opened);
        self.prove(now);
        let judged = match self.is_proven(now, template, opened) {
            Proof::Open => Judged::Open,
            Proof::MayAct => Judged::Unsteady,
            Proof::Reads => self.judge_rows(now, name),
        };
        if let Some(reader) = self.cursors.readers.get_mut(name) {
            reader.judged = judged;
        }
        judged == Judged::Steady
    }

    /// Whether the statement of a result does nothing but read, with names that mean what they meant when it was opened
    /// (rule R1).
    fn is_proven(&mut self, now: Moment, template: u32, opened: Opened) -> Proof {
        if !Rule::Plain.is_kept() {
            return Proof::Reads;
        }
        if self.opened() != opened {
            return Proof::MayAct;
        }
        if !self.facts.is_known() {
            self.facts.miss_state();
            self.facts.want_proof(now, template);
            return Proof::Open;
        }
        let proof = self.verdict(now, template);
        if proof == Proof::Open {
            self.facts.want_proof(now, template);
        }
        proof
    }

    /// Whether no setting shapes a row, and none fails (rule R2), and no function can find its cursor (rule R9).
    fn judge_rows(&mut self, now: Moment, name: &[u8]) -> Judged {
        let moves = if Rule::Functions.is_kept() { self.facts.moves_cursors(now) } else { Some(false) };
        let Some(reader) = self.cursors.readers.get(name) else { return Judged::Open };
        let tables = match &reader.query {
            _ if !Rule::Shape.is_kept() => Some(Vec::new()),
            None => return Judged::Unsteady,
            Some(_) => match self.facts.tables_of(now, reader.text.template) {
                Ok(tables) => tables,
                Err(()) => return Judged::Unsteady,
            },
        };
        match (moves, tables, &reader.query) {
            (Some(true), ..) => Judged::Unsteady,
            (Some(false), Some(_), _) if !Rule::Shape.is_kept() => Judged::Steady,
            (Some(false), Some(tables), Some((query, types))) => {
                let is_steady = std::str::from_utf8(query)
                    .is_ok_and(|query| purity::steady(query, types, &tables).is_ok());
                if is_steady { Judged::Steady } else { Judged::Unsteady }
            }
            _ => Judged::Open,
        }
    }

    /// Whether the columns of a result are written alike under all settings (rule R2).
    fn is_free_result(&mut self, name: &[u8]) -> bool {
        let may_convert = self.facts.settings.may_convert();
        let Cursors { readers, described, .. } = &mut self.cursors;
        let Some(reader) = readers.get_mut(name) else { return false };
        if reader.columns.is_none() {
            reader.columns = described.get(&reader.statement).cloned();
        }
        let is_free = |columns: &Columns| super::forms::is_free(&columns.types, &reader.formats, may_convert);
        Rule::Shape.requires(reader.columns.as_ref().is_some_and(is_free))
    }
}

impl Cursors {
    /// The server describes what it sends to the client: the columns of a FETCH are those of all that follow.
    pub(crate) fn native_piece_described(&mut self, due: Due, body: &[u8]) {
        let Some(Native { serial, .. }) = self.native.filter(|piece| piece.unit == due.unit) else {
            return;
        };
        let Ok(description) = RowDescription::decode(body) else { return };
        let columns = Columns::new(&description);
        let Some(reader) = self.by_serial(serial) else { return };
        reader.columns = Some(columns);
        if let (Kind::Cursor { header, .. }, Expect::Query) = (&mut reader.kind, due.expect) {
            // What describes a FETCH of another message has the formats of that one.
            header.clear();
            frame(header, backend::ROW_DESCRIPTION, |out| out.extend_from_slice(body));
        }
    }

    /// The server has sent a piece to the client.
    pub(crate) fn native_piece_ends(&mut self, due: Due, is_complete: bool, rows: u64) {
        let Some(Native { serial, wanted, .. }) = self.native.filter(|piece| piece.unit == due.unit) else {
            return;
        };
        self.native = None;
        let Some(reader) = self.by_serial(serial) else { return };
        match reader.kind {
            Kind::Portal => reader.is_over |= is_complete,
            Kind::Cursor { .. } => reader.got(rows, rows < wanted),
        }
    }

    /// The server sends a row of so many bytes to the client.
    pub(crate) fn native_row(&mut self, unit: u64, bytes: usize) {
        let Some(Native { serial, .. }) = self.native.filter(|piece| piece.unit == unit) else { return };
        if let Some(reader) = self.by_serial(serial) {
            reader.row_brings(bytes);
            if let Kind::Portal = reader.kind {
                reader.rows += 1;
            }
        }
    }
}

impl Reader {
    /// A row of so many bytes has come.
    pub(super) fn row_brings(&mut self, bytes: usize) {
        self.row_bytes = self.row_bytes.max(bytes);
    }

    /// The program has got a piece.
    pub(super) fn got(&mut self, rows: u64, is_over: bool) {
        self.pieces += 1;
        self.rows += rows;
        self.is_over |= is_over;
    }
}
