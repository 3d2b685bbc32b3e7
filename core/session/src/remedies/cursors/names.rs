//! Statements that name a cursor: those that make one, close one, and those to which it matters where one stands (rule
//! R3).

use onetrip_ledger::TransactionStatus;
use onetrip_sql::StatementKind;
use onetrip_sql::purity::SessionQuestion;
use onetrip_wire::pg::{Execute, FrameHeader, HEADER_BYTES, Oid, Parse, frontend};

use super::flight::own_move;
use super::replies::{MOVE, MOVE_ALONE, broke};
use super::request::opened;
use super::{Cursors, Kind, Native};
use crate::contract::SessionError;
use crate::facts::Facts;
use crate::reading::{CursorUse, cursor_use, mentions};
use crate::remedies::Rule;
use crate::remedies::remedy::Cx;
use crate::session::core::Core;
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

/// The query of a cursor that is followed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CursorQuery {
    pub(crate) template: u32,
    /// Whether it calls functions.
    pub(crate) calls: bool,
    /// Its transaction is over, and its rows are stored.
    pub(crate) is_stored: bool,
}

/// What the program's statements do.
impl Cursors {
    /// A FETCH of so many rows goes to the server as it came. Returns whether its cursor is followed.
    pub(crate) fn fetches(&mut self, unit: u64, name: &[u8], rows: u64) -> bool {
        let Some(reader) = self.readers.get(name) else { return false };
        self.native = Some(Native { unit, serial: reader.serial, wanted: rows });
        true
    }

    /// A statement goes to the server that moves cursors: those that it names, or any.
    pub(crate) fn moves(&mut self, used: &CursorUse) {
        match used {
            CursorUse::Moves(moved) => self.loses_place(|name| mentions(moved, name)),
            _ => self.loses_place(|_| true),
        }
    }

    /// PREPARE goes to the server: EXECUTE may run what uses a cursor without its name.
    pub(crate) fn prepares_by_sql(&mut self, text: &Text) {
        self.is_off |= text.kind == StatementKind::Prepare && text.cursor.is_some();
    }

    /// Code of users may run, and some may have been made since a result was opened: from then on it is not known where that
    /// stands.
    pub(crate) fn code_runs(&mut self, facts: &Facts) {
        if self.readers.is_empty() || !Rule::Functions.is_kept() {
            return;
        }
        let code = facts.changes().code();
        for reader in self.readers.values_mut().filter(|reader| reader.opened.code != code) {
            reader.is_barred = true;
        }
    }

    /// A statement is prepared by the protocol: EXECUTE of SQL may run it by its name, as it may what PREPARE has made. That is a
    /// query; this may be any statement, and make code (`ExecuteQuery`).
    pub(crate) fn prepares(&mut self, name: &[u8], text: &Text) {
        if !name.is_empty() {
            self.is_off |= text.cursor.is_some() && Rule::Place.is_kept();
            self.has_prepared_code |= text.makes_cursor_code;
        }
    }

    /// Whether EXECUTE of SQL may make code that finds a cursor.
    pub(crate) fn has_prepared_code(&self) -> bool {
        self.has_prepared_code
    }

    /// The query of this cursor, if it is followed and stays.
    pub(crate) fn query_of(&self, name: &[u8]) -> Option<CursorQuery> {
        let reader = self.readers.get(name).filter(|reader| reader.leaving.is_none())?;
        let (template, calls) = (reader.text.template, reader.text.calls);
        Some(CursorQuery { template, calls, is_stored: reader.is_stored })
    }

    /// A cursor is declared that may be read ahead. Returns whether it is followed, and is to be judged.
    pub(crate) fn declares(&mut self, facts: &Facts, unit: u64, text: &Text, types: &[Oid]) -> bool {
        let Some(CursorUse::Declares { name, is_held, no_scroll, query }) = text.cursor.as_deref() else {
            return false;
        };
        let is_apart = *no_scroll && DRIVERS_NAMES.iter().any(|prefix| name.starts_with(prefix));
        let kind = Kind::Cursor { header: Vec::new(), is_held: *is_held, can_move: false, is_apart };
        let opened = opened(facts);
        let Some(reader) = self.add(unit, name, kind, text.clone(), opened) else { return false };
        reader.query = Some((query.clone(), types.into()));
        if !is_apart && !no_scroll {
            self.asks_about = Some(name.clone());
        }
        true
    }

    /// What the server is to be asked: whether a cursor that was declared can be put back to a place. The cursor's serial
    /// comes with the text.
    pub(crate) fn take_question(&mut self) -> Option<(u64, String)> {
        let name = self.asks_about.take()?;
        let reader = self.readers.get(&name)?;
        let text = SessionQuestion::Cursor(String::from_utf8_lossy(&name).into_owned()).sql().into_owned();
        Some((reader.serial, text))
    }

    /// The server has said whether a cursor can be put back.
    pub(crate) fn learn_place(&mut self, serial: u64, is_scrollable: bool) {
        if let Some(Kind::Cursor { can_move, .. }) = self.by_serial(serial).map(|reader| &mut reader.kind) {
            *can_move = is_scrollable;
        }
    }
}

/// Where cursors stand.
impl Cursors {
    /// Whether a cursor may stand at another place than the program believes.
    pub(crate) fn may_be_displaced(&self) -> bool {
        self.is_lost || self.readers.values().any(super::Reader::is_ahead)
    }

    /// Before the message at the front of `input` goes to the server: puts the cursors that it names back to where the
    /// program believes them to be.
    ///
    /// # Errors
    ///
    /// The session ends where that cannot be done.
    pub(crate) fn restore_places(
        &mut self,
        cx: &mut Cx<'_>,
        header: FrameHeader,
        input: &[u8],
    ) -> Result<Place, SessionError> {
        if self.is_lost {
            return Err(broke(cx.core, "the server did not move the cursor back"));
        }
        if !Rule::Place.is_kept() {
            return Ok(Place::Good);
        }
        let body = &input[HEADER_BYTES..header.frame_len().min(input.len())];
        let (mut names, runs) = match header.tag {
            frontend::EXECUTE => self.names_in_execute(cx.core, body),
            frontend::QUERY => self.names_in_query(cx, body),
            frontend::PARSE => (self.names_in_parse(cx, body), None),
            frontend::FUNCTION_CALL => (Vec::new(), Some(StatementKind::Call)),
            _ => return Ok(Place::Good),
        };
        if runs.is_some_and(may_run_code) && Rule::Functions.is_kept() {
            self.opened_before_changes(cx, &mut names)?;
        }
        // What is under way may fail, and the transaction with it.
        let is_uncertain = cx.core.units().unanswered() > 0 && cx.core.may_send_own();
        let mut place = Place::Good;
        for name in names {
            let Some(reader) = self.readers.get_mut(&name) else { continue };
            if reader.under_way > 0 || is_uncertain {
                return Ok(Place::Wait);
            }
            let is_movable = matches!(reader.kind, Kind::Cursor { can_move: true, .. }) && !reader.is_stale;
            let is_there = match cx.core.status() {
                TransactionStatus::Active => true,
                TransactionStatus::Idle => reader.is_held(),
                _ => false,
            };
            if !is_there {
                continue; // the server refuses it, wherever it stands
            }
            if !is_movable && !reader.is_over {
                return Err(broke(cx.core, "the program uses the cursor's position on the server"));
            }
            reader.is_barred = true;
            reader.buffer = super::Buffer::default();
            if reader.is_over {
                continue; // behind the last row, there as here
            }
            let rows = reader.rows;
            let name = String::from_utf8_lossy(&name).into_owned();
            let is_alone = cx.core.status() == TransactionStatus::Idle && cx.core.may_send_own();
            let slot = if is_alone { MOVE_ALONE } else { MOVE };
            own_move(cx, slot, format!("MOVE ABSOLUTE {rows} IN \"{name}\"").as_bytes());
            if is_alone {
                self.own_sync(cx.core, Some(TransactionStatus::Idle));
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
    fn opened_before_changes(&self, cx: &mut Cx<'_>, names: &mut Vec<Box<[u8]>>) -> Result<(), SessionError> {
        let code = cx.facts.changes().code();
        let mut may_be_found = false;
        let ahead = self.readers.iter().filter(|(_, reader)| reader.is_ahead());
        for (name, reader) in ahead.filter(|(_, reader)| reader.opened.code != code) {
            match reader.kind {
                Kind::Cursor { can_move: true, .. } => names.push(name.clone()),
                _ => may_be_found |= !reader.is_over,
            }
        }
        match may_be_found {
            true => Err(broke(cx.core, "a new function may use the cursor's position on the server")),
            false => Ok(()),
        }
    }

    fn names_in_execute(&self, core: &Core, body: &[u8]) -> (Vec<Box<[u8]>>, Option<StatementKind>) {
        let Ok(execute) = Execute::decode(body) else { return Default::default() };
        // A cursor of SQL is a portal by its name: an Execute of it reads on where the server's portal stands.
        let depends = |reader: &super::Reader| {
            reader.is_ahead() && (reader.is_stale || matches!(reader.kind, Kind::Cursor { .. }))
        };
        if self.readers.get(execute.portal).is_some_and(depends) {
            return (vec![execute.portal.into()], None);
        }
        let Some(portal) = core.portal(execute.portal) else {
            // Nothing is known of it.
            return (Vec::new(), Some(StatementKind::Other));
        };
        let used = portal.text.cursor.as_ref();
        (used.map_or_else(Vec::new, |used| self.named_by(used, true)), Some(portal.text.kind))
    }

    /// EXECUTE of SQL may run what is prepared with a name, and does not name the cursor.
    fn names_in_parse(&self, cx: &mut Cx<'_>, body: &[u8]) -> Vec<Box<[u8]>> {
        let Some(parse) = Parse::decode(body).ok().filter(|parse| !parse.statement.is_empty()) else {
            return Vec::new();
        };
        let lifted = cx.core.lift(parse.text, cx.facts.settings.has_standard_strings());
        let Some((used, _)) = cursor_use(&lifted, parse.text) else { return Vec::new() };
        let used = match used {
            // Another one may have the name when it is asked for.
            CursorUse::Closes(name) | CursorUse::Declares { name, .. } => CursorUse::Fetches(name, 1),
            used => used,
        };
        self.named_by(&used, true)
    }

    fn names_in_query(&self, cx: &mut Cx<'_>, body: &[u8]) -> (Vec<Box<[u8]>>, Option<StatementKind>) {
        let text = body.strip_suffix(b"\0").unwrap_or(body);
        let lifted = cx.core.lift(text, cx.facts.settings.has_standard_strings());
        let kind = lifted.kind();
        let used = cursor_use(&lifted, text);
        (used.map_or_else(Vec::new, |(used, _)| self.named_by(&used, false)), Some(kind))
    }

    /// The cursors ahead to whose place it matters.
    fn named_by(&self, used: &CursorUse, is_extended: bool) -> Vec<Box<[u8]>> {
        let ahead = self.readers.iter().filter(|(_, reader)| reader.is_ahead());
        let is_named = |name: &[u8], reader: &super::Reader| match used {
            CursorUse::Fetches(fetched, _) => {
                let is_read_so =
                    matches!(reader.kind, Kind::Cursor { .. }) && !is_extended && !reader.is_stale;
                **fetched == *name && !is_read_so
            }
            CursorUse::Moves(text) => mentions(text, name),
            CursorUse::MovesAny => true,
            CursorUse::Declares { .. } | CursorUse::Closes(_) | CursorUse::ClosesAll => false,
        };
        ahead.filter(|(name, reader)| is_named(name, reader)).map(|(name, _)| name.clone()).collect()
    }
}

/// Whether a statement may run code of users: all but those that only direct the session.
pub(crate) fn may_run_code(kind: StatementKind) -> bool {
    use StatementKind as S;
    let directs = matches!(kind, S::Begin | S::Savepoint | S::Release | S::RollbackTo | S::Rollback)
        || matches!(kind, S::Show | S::Reset | S::Empty | S::Deallocate | S::Declare | S::CloseCursor)
        || matches!(kind, S::Listen | S::Notify | S::Unlisten);
    !directs
}
