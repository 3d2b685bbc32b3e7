//! What a program asks of a result that is read in pieces: from memory, from what is under way, or from the server.

use std::num::NonZeroU32;

use onetrip_ledger::{Moment, Remedy, TransactionStatus};
use onetrip_sql::purity;
use onetrip_wire::pg::{
    Execute, FrameHeader, HEADER_BYTES, RowDescription, TransactionStatus as WireStatus, backend,
    encode_ready_for_query, frame, frontend,
};

use super::buffer::{End, Stop};
use super::replies::{cannot_keep, put_end};
use super::{Columns, Cursors, Delivering, Judged, KEPT_BYTES_MAX, Kind, Native, Opened, Reader};
use crate::contract::{LENGTH_MAX, SessionError};
use crate::facts::Verdict as Proof;
use crate::facts::{Facts, Isolation};
use crate::reading;
use crate::reading::Effect;
use crate::remedies::Rule;
use crate::remedies::remedy::Cx;
use crate::reply_queue::{Due, Expect};
use crate::session::core::Core;
use crate::statements::{Portal, Prepared, Text};

/// Bytes of an answer from memory that go to the client at once, before it is seen whether it takes them.
const DELIVERED_BYTES_MAX: usize = 512 * 1024;

/// A request for the next rows.
#[derive(Debug, Clone)]
pub(crate) struct Request {
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
    pub(super) fn limit(&self) -> Option<u64> {
        self.rows.map(|rows| u64::from(rows.get()))
    }

    /// The name of the result.
    pub(crate) fn name(&self) -> &[u8] {
        &self.name
    }

    /// So many rows, zero for all.
    pub(crate) fn row_limit(&self) -> u32 {
        self.rows.map_or(0, NonZeroU32::get)
    }

    /// Its text, where it is a simple query.
    pub(crate) fn text_in<'a>(&self, input: &'a [u8]) -> Option<&'a [u8]> {
        (self.form == Form::Query).then(|| &input[HEADER_BYTES..self.message - 1])
    }

    /// Length of the message.
    pub(crate) fn message_len(&self) -> usize {
        self.message
    }

    /// Length of the unit.
    pub(crate) fn unit_len(&self) -> usize {
        self.unit
    }
}

/// Whose turn it is to answer a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Course {
    /// It goes to the server as it came.
    Native,
    /// It waits for what is under way.
    Hold,
    /// Memory has all of the answer.
    Memory,
    /// Memory has a part of it, and the server is asked for the rest.
    Part,
    /// Memory does not have it: what may be read ahead is sent for. Else there is a part of it or nothing.
    Missing { has_part: bool },
}

/// Whether what comes next of a result may be read before it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leave {
    No,
    Yes,
    /// If its rows are the same whenever they are read.
    IfSteady,
}

/// The rows of each piece, and how many of these.
pub(crate) type Pieces = (NonZeroU32, usize);

/// What is asked for.
impl Cursors {
    /// Whether any result is followed.
    #[inline]
    pub(crate) fn follows_any(&self) -> bool {
        !self.readers.is_empty()
    }

    /// Whose turn it is to answer this; `is_quiet` where nothing of the client's is under way.
    pub(crate) fn course(&mut self, core: &Core, now: Moment, request: &Request, is_quiet: bool) -> Course {
        let Some(reader) = self.readers.get(&*request.name) else { return Course::Native };
        if reader.leaving.is_some() || !reader.is_alive(core) {
            return Course::Native;
        }
        let (is_ahead, is_unsure) = (reader.is_ahead(), reader.is_unsure());
        if reader.is_stale && is_ahead {
            return Course::Native; // dealt with by its name
        }
        let covers = reader.buffer.covers(request.limit());
        let (under_way, is_ended) = (reader.under_way > 0, reader.buffer.is_ended());
        if request.form == Form::Other || !is_quiet {
            let waits = under_way || (request.form == Form::Query && !is_quiet);
            return match is_ahead {
                false => Course::Native,
                true if waits => self.hold(now),
                true => Course::Part,
            };
        }
        if covers && !is_unsure {
            return Course::Memory;
        }
        if under_way {
            return self.hold(now);
        }
        if is_ended && !is_unsure {
            return Course::Part;
        }
        Course::Missing { has_part: is_ahead }
    }

    /// The client waits for a piece that is under way.
    pub(crate) fn hold(&mut self, now: Moment) -> Course {
        self.held_at.get_or_insert(now);
        Course::Hold
    }

    /// The client waits no more. Returns since when it has waited.
    pub(crate) fn end_hold(&mut self) -> Option<Moment> {
        self.held_at.take()
    }

    /// The pieces to send for so that a request which memory does not cover can be answered, and whether that takes leave to
    /// read ahead.
    pub(crate) fn wanted_pieces(&self, facts: &Facts, request: &Request) -> Option<(Pieces, bool)> {
        let reader = self.readers.get(&*request.name)?;
        if reader.is_unsure() && reader.is_ahead() {
            // One more is asked for first, to see whether the portal is there.
            let rows = request.rows.filter(|_| !reader.buffer.is_ended());
            return Some(((rows.unwrap_or(NonZeroU32::MIN), 1), false));
        }
        let (rows, is_unsure) = (request.rows?, reader.is_unsure());
        let missing = u64::from(rows.get()).saturating_sub(reader.buffer.rows());
        // What is in a file is not put together with the rest in memory.
        let is_large = reader.buffer.bytes() > KEPT_BYTES_MAX;
        let ahead = self.pieces_ahead(facts, &request.name, rows);
        if !(ahead > 0 || is_large) {
            return None;
        }
        if is_unsure {
            return Some(((rows, 1), true));
        }
        let pieces = match u32::try_from(missing).ok().and_then(NonZeroU32::new).filter(|_| is_large) {
            Some(missing) => (missing, 1),
            None => (rows, 1 + ahead),
        };
        Some((pieces, true))
    }

    /// What the message at the front of `input` asks for, if that is rows of a result that is followed.
    pub(crate) fn request(&self, core: &Core, header: FrameHeader, input: &[u8]) -> Option<Request> {
        let message = header.frame_len();
        let body = input.get(HEADER_BYTES..message)?;
        match header.tag {
            frontend::EXECUTE => {
                let Execute { portal, row_limit } = Execute::decode(body).ok()?;
                let next = FrameHeader::peek(&input[message..], LENGTH_MAX);
                let (form, unit) = match next {
                    _ if core.units().is_open() => (Form::Other, message),
                    Some(Ok(next)) if next.tag == frontend::SYNC => (Form::Sync, message + next.frame_len()),
                    _ => (Form::Other, message),
                };
                let reader = self.readers.get(portal)?;
                // Execute on a cursor of SQL is not how its driver reads it.
                matches!(reader.kind, Kind::Portal).then_some(())?;
                Some(Request { name: portal.to_vec(), rows: row_limit, form, message, unit })
            }
            frontend::QUERY if !core.units().is_open() => {
                let fetch = reading::fetch(body.strip_suffix(b"\0")?)?;
                let reader = self.readers.get(&*fetch.name)?;
                matches!(reader.kind, Kind::Cursor { .. }).then_some(())?;
                let (name, rows) = (fetch.name, Some(fetch.rows));
                Some(Request { name, rows, form: Form::Query, message, unit: message })
            }
            _ => None,
        }
    }

    /// The text of a result.
    pub(crate) fn text_of(&self, name: &[u8]) -> Option<Text> {
        self.readers.get(name).map(|reader| reader.text.clone())
    }
}

/// Whether it may be read ahead.
impl Cursors {
    /// Whether what comes next of it may be read before it is asked for (rules R1 to R4).
    pub(crate) fn may_read_ahead(&mut self, cx: &mut Cx<'_>, now: Moment, name: &[u8]) -> Leave {
        let Some(reader) = self.readers.get(name).filter(|_| !self.is_off) else {
            return Leave::No;
        };
        if reader.is_barred || reader.is_over || reader.pieces == 0 || reader.buffer.is_ended() {
            return Leave::No;
        }
        let (is_stored, is_portal) = (reader.is_stored, matches!(reader.kind, Kind::Portal));
        if let Kind::Cursor { header, can_move, is_apart, .. } = &reader.kind {
            if header.is_empty() || !Rule::Place.requires(*can_move || *is_apart) {
                return Leave::No;
            }
        }
        if !self.is_free_result(cx.facts, name) {
            return Leave::No;
        }
        if is_stored && !is_portal {
            if Rule::Functions.is_kept() && cx.facts.moves_cursors(now) != Some(false) {
                return Leave::No;
            }
            // Outside of a transaction there is no shield, and a time limit would end its portal for good.
            let is_shielded = cx.core.status() == TransactionStatus::Active;
            cx.facts.renew_settings(now);
            let is_safe = Rule::Shield.requires(is_shielded || cx.facts.is_untimed(now));
            if !is_safe {
                cx.facts.miss_state();
            }
            return if is_safe { Leave::Yes } else { Leave::No };
        }
        if !cx.facts.has_no_limit() && Rule::Shield.is_kept() {
            cx.facts.miss_state();
            return Leave::No;
        }
        let level = cx.facts.transaction.isolation();
        if level == Isolation::Unknown {
            cx.facts.transaction.want_level();
        }
        if Rule::Serializable.requires(level.is_plain()) { Leave::IfSteady } else { Leave::No }
    }

    /// Whether each row of a result is the same whenever it is read, and reading it cannot fail; `None` where that is still
    /// open.
    pub(crate) fn judged(&self, name: &[u8]) -> Option<bool> {
        let Some(reader) = self.readers.get(name) else { return Some(false) };
        (reader.judged != Judged::Open).then_some(reader.judged == Judged::Steady)
    }

    /// Decides it, now that what was sent is proven. What that takes is looked up, so that it is known for the next piece.
    pub(crate) fn judge(&mut self, cx: &mut Cx<'_>, now: Moment, name: &[u8]) -> bool {
        let Some(reader) = self.readers.get(name) else { return false };
        let (template, opened) = (reader.text.template, reader.opened);
        let judged = match is_proven(cx.facts, now, template, opened) {
            Proof::Open => Judged::Open,
            Proof::MayAct => Judged::Unsteady,
            Proof::Reads => self.judge_rows(cx.facts, now, name),
        };
        if let Some(reader) = self.readers.get_mut(name) {
            reader.judged = judged;
        }
        judged == Judged::Steady
    }

    /// Whether no setting shapes a row, and none fails (rule R2), and no function can find its cursor (rule R9).
    fn judge_rows(&self, facts: &mut Facts, now: Moment, name: &[u8]) -> Judged {
        let moves = if Rule::Functions.is_kept() { facts.moves_cursors(now) } else { Some(false) };
        let Some(reader) = self.readers.get(name) else { return Judged::Open };
        let tables = match &reader.query {
            _ if !Rule::Shape.is_kept() => Some(Vec::new()),
            None => return Judged::Unsteady,
            Some(_) => match facts.tables_of(now, reader.text.template) {
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
    fn is_free_result(&mut self, facts: &Facts, name: &[u8]) -> bool {
        let may_convert = facts.settings.may_convert();
        let Cursors { readers, described, .. } = self;
        let Some(reader) = readers.get_mut(name) else { return false };
        if reader.columns.is_none() {
            reader.columns = described.get(&reader.statement).cloned();
        }
        let is_free = |columns: &Columns| super::forms::is_free(&columns.types, &reader.formats, may_convert);
        Rule::Shape.requires(reader.columns.as_ref().is_some_and(is_free))
    }
}

/// What holds for a result that is opened now.
pub(super) fn opened(facts: &Facts) -> Opened {
    let changes = facts.changes();
    Opened { generation: facts.generation(), epoch: changes.epoch(), code: changes.code() }
}

/// Whether the statement of a result does nothing but read, with names that mean what they meant when it was opened
/// (rule R1). What is not known is asked for.
fn is_proven(facts: &mut Facts, now: Moment, template: u32, since: Opened) -> Proof {
    if !Rule::Plain.requires(opened(facts) == since) {
        return Proof::MayAct;
    }
    if !facts.is_known() {
        facts.miss_state();
        if Rule::Plain.is_kept() {
            facts.want_proof(now, template);
            return Proof::Open;
        }
    }
    match facts.verdict_wanted(now, template) {
        Proof::MayAct if !Rule::Plain.is_kept() => Proof::Reads,
        proof => proof,
    }
}

/// From memory.
impl Cursors {
    /// Begins to answer from memory what is booked as `statement` of `unit`, and has waited where `was_held`. Returns
    /// whether there is such a result.
    pub(crate) fn begin_delivery(
        &mut self,
        core: &mut Core,
        now: Moment,
        request: &Request,
        (unit, statement): (u64, Option<u16>),
        was_held: bool,
    ) -> bool {
        let Some(reader) = self.readers.get_mut(&*request.name) else { return false };
        let before = core.client_outbox().len();
        let is_cursor = match &reader.kind {
            Kind::Cursor { header, .. } => {
                core.client_outbox().extend_from_slice(header);
                true
            }
            Kind::Portal => false,
        };
        let serial = reader.serial;
        let reply = core.client_outbox().len() - before;
        core.bytes_received(unit, reply, now);
        // What waits for pieces of one turn waits for one trip.
        if was_held && self.turn_come > self.turn_waited_for {
            self.turn_waited_for = self.turn_come;
        } else {
            core.answered_by(unit, Remedy::Cursors);
        }
        core.bytes_sent(request.unit);
        let wanted = request.limit();
        self.delivering = Some(Delivering { serial, unit, statement, rows: 0, wanted, is_cursor });
        true
    }

    /// Gives the client more of an answer from memory. Returns whether it has got all.
    ///
    /// # Errors
    ///
    /// The session ends where what was read ahead cannot be brought back.
    pub(crate) fn deliver(&mut self, core: &mut Core, now: Moment) -> Result<bool, SessionError> {
        let Some(Delivering { serial, unit, statement, rows: before, wanted, is_cursor }) = self.delivering
        else {
            return Ok(false);
        };
        let reply_at = core.client_outbox().len();
        let Some(reader) = self.by_serial(serial) else { return Ok(false) };
        let left = wanted.map(|wanted| wanted - before);
        let taken = reader.buffer.take(left, DELIVERED_BYTES_MAX, core.client_outbox());
        let (some, stop) = taken.map_err(|error| cannot_keep(core, &error))?;
        let rows = before + some;
        if stop == Stop::Full {
            let reply = core.client_outbox().len() - reply_at;
            core.bytes_received(unit, reply, now);
            self.delivering = Some(Delivering { serial, unit, statement, rows, wanted, is_cursor });
            return Ok(false);
        }
        self.delivering = None;
        let is_over = stop == Stop::At(End::Complete) || (is_cursor && Some(rows) != wanted);
        put_end(core.client_outbox(), rows, is_cursor, is_over);
        if let Some(reader) = self.by_serial(serial) {
            reader.got(rows, is_over);
        }
        let is_idle = core.status() == TransactionStatus::Idle;
        let status = if is_idle { WireStatus::Idle } else { WireStatus::Active };
        encode_ready_for_query(core.client_outbox(), status);
        if let Some(found) = statement.and_then(|slot| core.statement_mut(unit, slot)) {
            found.rows = rows;
            found.suspended = !is_over && !is_cursor;
        }
        let reply = core.client_outbox().len() - reply_at;
        core.bytes_received(unit, reply, now);
        Ok(true)
    }
}

/// From the server, as the program asks for it.
impl Cursors {
    /// An Execute goes to the server as it came: a portal that is read in pieces is followed from its first one on. Returns
    /// whether one is followed from now on, and is to be judged.
    pub(crate) fn executes_natively(
        &mut self,
        cx: &Cx<'_>,
        unit: u64,
        name: &[u8],
        rows: Option<NonZeroU32>,
    ) -> bool {
        if let Some(reader) = self.readers.get_mut(name) {
            if reader.leaving.is_none() && matches!(reader.kind, Kind::Portal) {
                reader.pieces += 1;
                self.native = Some(Native { unit, serial: reader.serial, wanted: 0 });
            }
            // What an Execute reads of a cursor of SQL is not counted: where it stands is not known from then on.
            reader.is_barred |= Rule::Place.is_kept() && matches!(reader.kind, Kind::Cursor { .. });
            return false;
        }
        // The unnamed portal may be what another remedy believes it to be.
        if name.is_empty()
            || rows.is_none()
            || cx.core.status() != TransactionStatus::Active
            || !cx.may_remedy(Remedy::Cursors)
        {
            return false;
        }
        let Some(Portal { text, formats, serial: statement, types, .. }) = cx.core.portal(name).cloned()
        else {
            return false;
        };
        if text.effect != Effect::Read {
            return false;
        }
        let source = cx.core.find_prepared(|prepared| prepared.serial == statement);
        let query = source.and_then(Prepared::source).map(|query| (query.into(), types));
        let opened = opened(cx.facts);
        let Some(reader) = self.add(unit, name, Kind::Portal, text, opened) else { return false };
        (reader.query, reader.statement, reader.formats) = (query, statement, formats);
        reader.pieces = 1;
        let serial = reader.serial;
        self.native = Some(Native { unit, serial, wanted: 0 });
        true
    }

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
    /// Whether the program can read it where its transaction stands.
    fn is_alive(&self, core: &Core) -> bool {
        match core.status() {
            TransactionStatus::Active => true,
            TransactionStatus::Idle => self.is_held(),
            _ => false,
        }
    }

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
