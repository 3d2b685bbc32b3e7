//! How `cursors` is asked: which request for rows is answered, and what other statements do to results that are read in
//! pieces.

use std::num::NonZeroU32;

use onetrip_ledger::{Moment, Remedy, Steps, TransactionStatus, UnitKind};
use onetrip_sql::StatementKind;
use onetrip_wire::pg::{FrameHeader, Oid};

use super::{Acting, Session};
use crate::contract::{SessionError, Verdict};
use crate::events::Event;
use crate::facts::Doubt;
use crate::facts::Verdict as Proof;
use crate::reading::{CursorUse, Effect};
use crate::remedies::cursors::{Course, CursorQuery, Cursors, Leave, Place, Refill, Request, may_run_code};
use crate::remedies::remedy::Cx;
use crate::statements::Text;

impl Session {
    /// The remedy, and all else.
    fn with_cursors(&mut self) -> (&mut Cursors, Cx<'_>) {
        let Self { core, config, facts, own_names, acting, .. } = self;
        let Acting { shadow, flights, cursors, .. } = &mut **acting;
        (cursors, Cx { core, facts, config, own_names, shadow, flights })
    }

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
        if !self.acting.cursors.follows_any() {
            return Ok(None);
        }
        let Some(request) = self.acting.cursors.request(&self.core, header, input) else { return Ok(None) };
        let is_quiet = self.is_quiet();
        match self.acting.cursors.course(&self.core, now, &request, is_quiet) {
            Course::Native => Ok(None),
            Course::Hold => Ok(Some(Verdict::Hold)),
            Course::Memory => self.serve_piece(now, &request, input).map(Some),
            Course::Part => self.answer_in_part(now, &request, input),
            Course::Missing { has_part } => {
                if let Some((rows, pieces)) = self.wanted_pieces(now, &request) {
                    let (cursors, mut cx) = self.with_cursors();
                    cursors.fly(&mut cx, request.name(), rows, pieces);
                    cursors.hold(now);
                    return Ok(Some(Verdict::Hold));
                }
                if has_part { self.answer_in_part(now, &request, input) } else { Ok(None) }
            }
        }
    }

    /// The pieces to send for, and the rows of each, so that a request which memory does not cover can be answered.
    fn wanted_pieces(&mut self, now: Moment, request: &Request) -> Option<(NonZeroU32, usize)> {
        let (pieces, takes_leave) = self.acting.cursors.wanted_pieces(&self.facts, request)?;
        (!takes_leave || self.may_read_ahead(now, request.name())).then_some(pieces)
    }

    /// Whether what comes next of it may be read before it is asked for.
    fn may_read_ahead(&mut self, now: Moment, name: &[u8]) -> bool {
        let (cursors, mut cx) = self.with_cursors();
        match cursors.may_read_ahead(&mut cx, now, name) {
            Leave::No => false,
            Leave::Yes => true,
            Leave::IfSteady => self.judge(now, name),
        }
    }

    /// Whether each row of a result is the same whenever it is read, and reading it cannot fail.
    fn judge(&mut self, now: Moment, name: &[u8]) -> bool {
        if let Some(is_steady) = self.acting.cursors.judged(name) {
            return is_steady;
        }
        self.prove(now);
        let (cursors, mut cx) = self.with_cursors();
        cursors.judge(&mut cx, now, name)
    }

    /// Answers from memory.
    fn serve_piece(&mut self, now: Moment, request: &Request, input: &[u8]) -> Result<Verdict, SessionError> {
        let held_at = self.acting.cursors.end_hold();
        let booked = self.open_read(held_at.unwrap_or(now), request, input);
        self.core.close_unit();
        if !self.acting.cursors.begin_delivery(&mut self.core, now, request, booked, held_at.is_some()) {
            return Ok(Verdict::Wait);
        }
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
        let request = self.acting.cursors.request(&self.core, header, input);
        match request.filter(|_| !self.core.is_client_behind()) {
            Some(request) => self.deliver(now, &request),
            None => Ok(Verdict::Hold),
        }
    }

    fn deliver(&mut self, now: Moment, request: &Request) -> Result<Verdict, SessionError> {
        if !self.acting.cursors.deliver(&mut self.core, now)? {
            return Ok(Verdict::Hold);
        }
        self.book_answered(now);
        self.refill(now, request);
        Ok(Verdict::Replace(request.unit_len()))
    }

    /// Sends for more when half of what may be ahead is used up, or lets the server know that the program is there.
    fn refill(&mut self, now: Moment, request: &Request) {
        match self.acting.cursors.refill(&self.facts, request) {
            Refill::Nothing => {}
            Refill::Pieces(rows, more) if self.may_read_ahead(now, request.name()) => {
                let (cursors, mut cx) = self.with_cursors();
                cursors.fly(&mut cx, request.name(), rows, more);
                cursors.note_contact(now);
            }
            Refill::Pieces(..) | Refill::Contact => self.acting.cursors.keep_contact(&mut self.core, now),
        }
    }

    /// Answers with what is in memory, and has the server answer the rest.
    ///
    /// # Errors
    ///
    /// The session ends where what was read ahead cannot be brought back.
    fn answer_in_part(
        &mut self,
        now: Moment,
        request: &Request,
        input: &[u8],
    ) -> Result<Option<Verdict>, SessionError> {
        let Some(part) = self.acting.cursors.take_part(&mut self.core, request)? else { return Ok(None) };
        self.tell(&Event::Followed);
        let booked = self.open_read(part.held_at.unwrap_or(now), request, input);
        self.acting.cursors.ask_for_rest(&mut self.core, now, (request, input), booked, part);
        Ok(Some(Verdict::Replace(request.message_len())))
    }

    /// Books a request that is not sent as it came: its unit, not closed, and its statement.
    fn open_read(&mut self, now: Moment, request: &Request, input: &[u8]) -> (u64, Option<u16>) {
        if let Some(text) = request.text_in(input) {
            self.acting.cursors.end_unnamed(&mut self.core);
            let (unit, statement, _) = self.open_query(now, text);
            return (unit, statement);
        }
        let unit = self.core.open_unit(now, UnitKind::Group);
        let text = self.acting.cursors.text_of(request.name());
        let statement = self.add_statement(unit, &text.unwrap_or_default(), Steps::EXECUTE);
        if let Some(found) = statement.and_then(|slot| self.statement_mut(unit, slot)) {
            found.row_limit = request.row_limit();
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
        let (cursors, cx) = self.with_cursors();
        if cursors.executes_natively(&cx, unit, name, rows) {
            self.judge(now, name);
        }
    }
}

/// What other statements do to results that are read in pieces.
impl Session {
    /// A statement of the client's goes to the server as it came. Returns its effect, given what is known of cursors.
    pub(crate) fn runs_beside_cursors(
        &mut self,
        now: Moment,
        unit: u64,
        text: &Text,
        types: &[Oid],
    ) -> Effect {
        if !self.may_remedy(Remedy::Cursors) {
            return text.effect;
        }
        if may_run_code(text.kind) {
            self.acting.cursors.code_runs(&self.facts);
        }
        match text.cursor.as_deref() {
            Some(CursorUse::Declares { .. }) => return self.declares(now, unit, text, types),
            Some(CursorUse::Closes(name)) => {
                let effect = self.effect_of_cursor(now, name);
                self.tell(&Event::PortalLeaves { name, unit });
                return effect.unwrap_or(text.effect);
            }
            Some(CursorUse::ClosesAll) => {
                self.acting.cursors.all_leave(unit);
                return text.effect;
            }
            Some(CursorUse::Fetches(name, rows)) => {
                if !self.acting.cursors.fetches(unit, name, u64::from(*rows)) {
                    return text.effect;
                }
                return self.effect_of_cursor(now, name).unwrap_or(text.effect);
            }
            Some(used @ (CursorUse::Moves(_) | CursorUse::MovesAny)) => self.acting.cursors.moves(used),
            None => {}
        }
        self.acting.cursors.prepares_by_sql(text);
        if self.acting.cursors.follows_any() && !self.keeps_portals(now, text) {
            self.acting.cursors.doubt();
        }
        text.effect
    }

    /// What FETCH and CLOSE of this cursor do, if that is known: they run its query, which does nothing but read or is not
    /// proven to (a function of it may write, or open a large object).
    fn effect_of_cursor(&mut self, now: Moment, name: &[u8]) -> Option<Effect> {
        let CursorQuery { template, calls, is_stored } = self.acting.cursors.query_of(name)?;
        if is_stored {
            return Some(Effect::Nothing);
        }
        match self.verdict(now, template) {
            Proof::Reads => {}
            Proof::Open => {
                self.doubt_functions(if calls { Doubt::Called } else { Doubt::Read });
                self.reads(now, template);
            }
            Proof::MayAct => return None,
        }
        Some(Effect::Nothing)
    }

    /// Whether no portal is closed by it.
    fn keeps_portals(&mut self, now: Moment, text: &Text) -> bool {
        use StatementKind as S;
        match text.kind {
            kind if kind.is_row_write() => true,
            S::Savepoint | S::Release | S::Show | S::Empty | S::Set | S::Reset | S::Begin => true,
            S::Deallocate => true,
            _ => text.effect == Effect::Read && self.only_reads(now, text.template),
        }
    }

    fn declares(&mut self, now: Moment, unit: u64, text: &Text, types: &[Oid]) -> Effect {
        let Some(CursorUse::Declares { name, is_held, .. }) = text.cursor.as_deref() else {
            return text.effect;
        };
        self.tell(&Event::PortalLeaves { name, unit });
        let is_in_place = match self.core.status() {
            TransactionStatus::Idle => *is_held,
            TransactionStatus::Active => !is_held,
            _ => false,
        };
        // Its query runs again when the transaction ends.
        if *is_held && self.core.status() == TransactionStatus::Active {
            self.facts.transaction.acts();
        }
        if !is_in_place || !text.has_harmless_types || self.facts.needs_of(text.template).is_none() {
            return text.effect;
        }
        if self.acting.cursors.declares(&self.facts, unit, text, types) {
            self.judge(now, name);
        }
        Effect::Read
    }

    /// Before the message at the front of `input` goes to the server: puts the cursors that it names back to where the
    /// program believes them to be.
    ///
    /// # Errors
    ///
    /// The session ends where that cannot be done.
    pub(crate) fn restore_places(
        &mut self,
        header: FrameHeader,
        input: &[u8],
    ) -> Result<Place, SessionError> {
        if !self.acting.cursors.may_be_displaced() {
            return Ok(Place::Good);
        }
        let (cursors, mut cx) = self.with_cursors();
        cursors.restore_places(&mut cx, header, input)
    }
}
