//! Statements that name a cursor: those that make one, close one, and those to which it matters where one stands (rule
//! R3).

use onetrip_ledger::{Moment, Remedy, TransactionStatus};
use onetrip_sql::StatementKind;
use onetrip_sql::purity::SessionQuestion;
use onetrip_wire::pg::{Execute, FrameHeader, HEADER_BYTES, Oid, Parse, frontend};

use super::replies::broke;
use super::{Kind, Native};
use crate::contract::SessionError;
use crate::events::Event;
use crate::facts::Doubt;
use crate::facts::Verdict;
use crate::reading::Effect;
use crate::reading::{CursorUse, cursor_use, mentions};
use crate::remedies::Rule;
use crate::remedies::Session;
use crate::remedies::inquiry::{Asked, Question};
use crate::statements::Text;

/// Cursors that a driver names, and no program does: with NO SCROLL.
const DRIVERS_NAMES: [&[u8]; 1] = [b"_django_curs_"];
/// What to do with a statement.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// It may go.
    Good,
    /// It may go behind the session's own messages.
    Restored,
    /// It has to wait.
    Wait,
}

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
            self.code_runs_beside_cursors();
        }
        match text.cursor.as_deref() {
            Some(CursorUse::Declares { .. }) => return self.declares(now, unit, text, types),
            Some(CursorUse::Closes(name)) => {
                let effect = self.effect_of_cursor(now, name);
                self.tell(&Event::PortalLeaves { name, unit });
                return effect.unwrap_or(text.effect);
            }
            Some(CursorUse::Fetches(name, rows)) => {
                let Some(reader) = self.cursors.readers.get(name) else { return text.effect };
                self.cursors.native = Some(Native { unit, serial: reader.serial, wanted: u64::from(*rows) });
                return self.effect_of_cursor(now, name).unwrap_or(text.effect);
            }
            Some(CursorUse::Moves(moved)) => self.cursors.loses_place(|name| mentions(moved, name)),
            Some(CursorUse::MovesAny) => self.cursors.loses_place(|_| true),
            None => {}
        }
        self.cursors.is_off |= text.kind == StatementKind::Prepare && text.cursor.is_some();
        if !self.cursors.readers.is_empty() && !self.keeps_portals(now, text) {
            self.cursors.doubt();
        }
        text.effect
    }

    /// Code of users may run, and some may have been made since a result was opened: from then on it is not known where that
    /// stands.
    pub(crate) fn code_runs_beside_cursors(&mut self) {
        if self.cursors.readers.is_empty() || !Rule::Functions.is_kept() {
            return;
        }
        let code = self.facts.changes().code();
        for reader in self.cursors.readers.values_mut().filter(|reader| reader.opened.code != code) {
            reader.is_barred = true;
        }
    }

    /// A statement is prepared by the protocol: EXECUTE of SQL may run it by its name, as it may what PREPARE has made.
    pub(crate) fn prepares_beside_cursors(&mut self, name: &[u8], text: &Text) {
        self.cursors.is_off |= text.cursor.is_some() && !name.is_empty() && Rule::Place.is_kept();
    }

    /// What FETCH and CLOSE of this cursor do, if that is known: they run its query, which does nothing but read or is not
    /// proven to (a function of it may write, or open a large object).
    fn effect_of_cursor(&mut self, now: Moment, name: &[u8]) -> Option<Effect> {
        let reader = self.cursors.readers.get(name).filter(|reader| reader.leaving.is_none())?;
        let (template, calls) = (reader.text.template, reader.text.calls);
        if reader.is_stored {
            return Some(Effect::Nothing);
        }
        match self.verdict(now, template) {
            Verdict::Reads => {}
            Verdict::Open => {
                self.doubt_functions(if calls { Doubt::Called } else { Doubt::Read });
                self.reads(now, template);
            }
            Verdict::MayAct => return None,
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
        let Some(CursorUse::Declares { name, is_held, no_scroll, query }) = text.cursor.as_deref() else {
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
        let is_apart = *no_scroll && DRIVERS_NAMES.iter().any(|prefix| name.starts_with(prefix));
        let kind = Kind::Cursor { header: Vec::new(), is_held: *is_held, can_move: false, is_apart };
        let opened = self.opened();
        if let Some(reader) = self.cursors.add(unit, name, kind, text.clone(), opened) {
            reader.query = Some((query.clone(), types.into()));
            if !is_apart && !no_scroll {
                self.cursors.asks_about = Some(name.clone());
            }
            self.judge(now, name);
        }
        Effect::Read
    }

    /// Asks whether a cursor that was declared can be put back to a place.
    pub(crate) fn ask_about_cursors(&mut self, asked: &mut Vec<Asked>) {
        let Some(name) = self.cursors.asks_about.take() else { return };
        let Some(reader) = self.cursors.readers.get(&name) else { return };
        let question = Question::Cursor(reader.serial);
        let text = SessionQuestion::Cursor(String::from_utf8_lossy(&name).into_owned()).sql().into_owned();
        asked.push(Asked { question, text, parameter: None });
    }

    /// The server has said whether a cursor can be put back.
    pub(crate) fn learn_place(&mut self, serial: u64, is_scrollable: bool) {
        if let Some(Kind::Cursor { can_move, .. }) =
            self.cursors.by_serial(serial).map(|reader| &mut reader.kind)
        {
            *can_move = is_scrollable;
        }
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
        if self.cursors.is_lost {
            return Err(broke(&mut self.core, "a cursor was not put back to its place"));
        }
        if !Rule::Place.is_kept() || !self.cursors.readers.values().any(super::Reader::is_ahead) {
            return Ok(Place::Good);
        }
        let body = &input[HEADER_BYTES..header.frame_len().min(input.len())];
        let (mut names, runs) = match header.tag {
            frontend::EXECUTE => self.names_in_execute(body),
            frontend::QUERY => self.names_in_query(body),
            frontend::PARSE => (self.names_in_parse(body), None),
            frontend::FUNCTION_CALL => (Vec::new(), Some(StatementKind::Call)),
            _ => return Ok(Place::Good),
        };
        if runs.is_some_and(may_run_code) && Rule::Functions.is_kept() {
            self.opened_before_changes(&mut names)?;
        }
        // What is under way may fail, and the transaction with it.
        let is_uncertain = self.core.units().unanswered() > 0 && self.core.may_send_own();
        let mut place = Place::Good;
        for name in names {
            let Some(reader) = self.cursors.readers.get_mut(&name) else { continue };
            if reader.under_way > 0 || is_uncertain {
                return Ok(Place::Wait);
            }
            let is_movable = matches!(reader.kind, Kind::Cursor { can_move: true, .. }) && !reader.is_stale;
            let is_there = match self.core.status() {
                TransactionStatus::Active => true,
                TransactionStatus::Idle => reader.is_held(),
                _ => false,
            };
            if !is_there {
                continue; // the server refuses it, wherever it stands
            }
            if !is_movable && !reader.is_over {
                return Err(broke(&mut self.core, "the program asks where it stands"));
            }
            reader.is_barred = true;
            reader.buffer = super::Buffer::default();
            if reader.is_over {
                continue; // behind the last row, there as here
            }
            let rows = reader.rows;
            let name = String::from_utf8_lossy(&name).into_owned();
            self.own_move(format!("MOVE ABSOLUTE {rows} IN \"{name}\"").as_bytes());
            if self.core.status() == TransactionStatus::Idle && self.core.may_send_own() {
                self.own_sync(Some(self.core.status()));
            }
            place = Place::Restored;
        }
        Ok(place)
    }

    /// Code of users may run, and some may have been made since a result was opened: it may find a cursor. One that can be
    /// put back is.
    ///
    /// # Errors
    ///
    /// The session ends where new code may find one that cannot be put back.
    fn opened_before_changes(&mut self, names: &mut Vec<Box<[u8]>>) -> Result<(), SessionError> {
        let code = self.facts.changes().code();
        let mut may_be_found = false;
        let ahead = self.cursors.readers.iter().filter(|(_, reader)| reader.is_ahead());
        for (name, reader) in ahead.filter(|(_, reader)| reader.opened.code != code) {
            match reader.kind {
                Kind::Cursor { can_move: true, .. } => names.push(name.clone()),
                _ => may_be_found |= !reader.is_over,
            }
        }
        match may_be_found {
            true => Err(broke(&mut self.core, "a function that is new may ask where it stands")),
            false => Ok(()),
        }
    }

    fn names_in_execute(&self, body: &[u8]) -> (Vec<Box<[u8]>>, Option<StatementKind>) {
        let Ok(execute) = Execute::decode(body) else { return Default::default() };
        // A cursor of SQL is a portal by its name: an Execute of it reads on where the server's portal stands.
        let depends = |reader: &super::Reader| {
            reader.is_ahead() && (reader.is_stale || matches!(reader.kind, Kind::Cursor { .. }))
        };
        if self.cursors.readers.get(execute.portal).is_some_and(depends) {
            return (vec![execute.portal.into()], None);
        }
        let Some(portal) = self.core.portal(execute.portal) else {
            // Nothing is known of it.
            return (Vec::new(), Some(StatementKind::Other));
        };
        let used = portal.text.cursor.as_ref();
        (used.map_or_else(Vec::new, |used| self.named_by(used, true)), Some(portal.text.kind))
    }

    /// EXECUTE of SQL may run what is prepared with a name, and does not name the cursor.
    fn names_in_parse(&mut self, body: &[u8]) -> Vec<Box<[u8]>> {
        let Some(parse) = Parse::decode(body).ok().filter(|parse| !parse.statement.is_empty()) else {
            return Vec::new();
        };
        let lifted = self.core.lift(parse.text, self.facts.settings.has_standard_strings());
        let Some((used, _)) = cursor_use(&lifted, parse.text) else { return Vec::new() };
        let used = match used {
            // Another one may have the name when it is asked for.
            CursorUse::Closes(name) | CursorUse::Declares { name, .. } => CursorUse::Fetches(name, 1),
            used => used,
        };
        self.named_by(&used, true)
    }

    fn names_in_query(&mut self, body: &[u8]) -> (Vec<Box<[u8]>>, Option<StatementKind>) {
        let text = body.strip_suffix(b"\0").unwrap_or(body);
        let lifted = self.core.lift(text, self.facts.settings.has_standard_strings());
        let kind = lifted.kind();
        let used = cursor_use(&lifted, text);
        (used.map_or_else(Vec::new, |(used, _)| self.named_by(&used, false)), Some(kind))
    }

    /// The cursors ahead to whose place it matters.
    fn named_by(&self, used: &CursorUse, is_extended: bool) -> Vec<Box<[u8]>> {
        let ahead = self.cursors.readers.iter().filter(|(_, reader)| reader.is_ahead());
        let is_named = |name: &[u8], reader: &super::Reader| match used {
            CursorUse::Fetches(fetched, _) => {
                let is_read_so =
                    matches!(reader.kind, Kind::Cursor { .. }) && !is_extended && !reader.is_stale;
                **fetched == *name && !is_read_so
            }
            CursorUse::Moves(text) => mentions(text, name),
            CursorUse::MovesAny => true,
            CursorUse::Declares { .. } | CursorUse::Closes(_) => false,
        };
        ahead.filter(|(name, reader)| is_named(name, reader)).map(|(name, _)| name.clone()).collect()
    }
}

/// Whether a statement may run code of users: all but those that only direct the session.
fn may_run_code(kind: StatementKind) -> bool {
    use StatementKind as S;
    let directs = matches!(kind, S::Begin | S::Savepoint | S::Release | S::RollbackTo | S::Rollback)
        || matches!(kind, S::Show | S::Reset | S::Empty | S::Deallocate | S::Declare | S::CloseCursor)
        || matches!(kind, S::Listen | S::Notify | S::Unlisten);
    !directs
}
