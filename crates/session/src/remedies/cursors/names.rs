//! Statements that name a cursor: those that make one, close one, and those to which it matters where one stands (rule
//! R3).

use onetrip_ledger::{Moment, Remedy, TransactionStatus};
use onetrip_sql::purity::SessionQuestion;
use onetrip_sql::{Lifted, StatementKind};
use onetrip_wire::pg::{Execute, FrameHeader, HEADER_BYTES, Oid, Parse, frontend};

use super::{Kind, Native, sql};
use crate::remedies::facts::Verdict;
use crate::remedies::inquiry::{Asked, Question};
use crate::remedies::{Doubt, Effect, Rule};
use crate::session::{Session, SessionError};
use crate::statements::Text;

/// Cursors that a driver names, and no program does: with NO SCROLL.
const DRIVERS_NAMES: [&[u8]; 1] = [b"_django_curs_"];
/// Functions of the server that read a cursor by its name.
const XML: [&[u8]; 2] = [b"cursor_to_xml", b"cursor_to_xmlschema"];
/// Words without which no text opens, moves or closes a cursor, or acts where one stands.
const WORDS: [&[u8]; 6] = [b"current", b"fetch", b"move", b"open", b"close", b"declare"];

/// What a statement's text has to do with cursors.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CursorUse {
    /// It makes one.
    Declares { name: Box<[u8]>, is_held: bool, no_scroll: bool, query: Box<[u8]> },
    /// FETCH forward by so many rows.
    Fetches(Box<[u8]>, u32),
    /// CLOSE of one.
    Closes(Box<[u8]>),
    /// It may depend on where a cursor stands that is named in this text.
    Moves(Box<[u8]>),
    /// It may depend on where any cursor stands.
    MovesAny,
}

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

/// Looks for cursors in a text; with DECLARE, also for its query.
pub(crate) fn cursor_use<'a>(lifted: &Lifted<'_>, text: &'a [u8]) -> Option<(CursorUse, Option<&'a str>)> {
    use StatementKind as S;
    let name = || lifted.name().map(|name| name.folded().collect());
    let moves = || (CursorUse::Moves(text.into()), None);
    if words(text).any(|word| XML.iter().any(|function| word.eq_ignore_ascii_case(function))) {
        return Some((CursorUse::MovesAny, None)); // its name may be a parameter
    }
    match lifted.kind() {
        S::Declare => {
            let sql::Declare { name, is_held, no_scroll, query } = sql::declare(text)?;
            let used =
                CursorUse::Declares { name: name.into(), is_held, no_scroll, query: query.as_bytes().into() };
            Some((used, Some(query)))
        }
        S::CloseCursor if !lifted.facts().all => name().map(|name| (CursorUse::Closes(name), None)),
        S::Fetch => match sql::fetch(text) {
            Some(fetch) => Some((CursorUse::Fetches(fetch.name.into(), fetch.rows.get()), None)),
            None => Some(moves()),
        },
        S::Move => Some(moves()),
        S::Select | S::Values | S::Insert | S::Show | S::Savepoint | S::Release | S::RollbackTo => None,
        S::Begin | S::Commit | S::Rollback | S::Empty | S::Set | S::Reset => None,
        _ => has_current_of(text).then(moves),
    }
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
        match text.cursor.as_deref() {
            Some(CursorUse::Declares { .. }) => return self.declares(now, unit, text, types),
            Some(CursorUse::Closes(name)) => {
                let effect = self.effect_of_cursor(now, name);
                self.cursors.leaves(name, unit);
                return effect.unwrap_or(text.effect);
            }
            Some(CursorUse::Fetches(name, rows)) => {
                let Some(reader) = self.cursors.readers.get(name) else { return text.effect };
                self.cursors.native = Some(Native { unit, serial: reader.serial, wanted: u64::from(*rows) });
                return self.effect_of_cursor(now, name).unwrap_or(text.effect);
            }
            Some(CursorUse::Moves(moved)) => {
                self.cursors.is_off |= text.kind == StatementKind::Prepare;
                self.cursors.loses_place(|name| mentions(moved, name));
            }
            Some(CursorUse::MovesAny) => self.cursors.loses_place(|_| true),
            None => {}
        }
        if !self.cursors.readers.is_empty() && !self.keeps_portals(now, text) {
            self.cursors.doubt();
        }
        text.effect
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
        self.cursors.leaves(name, unit);
        let is_in_place = match self.status {
            TransactionStatus::Idle => *is_held,
            TransactionStatus::Active => !is_held,
            _ => false,
        };
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
            return Err(self.cursors_broke("a cursor was not put back to its place"));
        }
        if !Rule::Place.is_kept() || !self.cursors.readers.values().any(super::Reader::is_ahead) {
            return Ok(Place::Good);
        }
        let body = &input[HEADER_BYTES..header.frame_len().min(input.len())];
        let names = match header.tag {
            frontend::EXECUTE => self.names_in_execute(body),
            frontend::QUERY => self.names_in_query(body),
            frontend::PARSE => self.names_in_parse(body),
            _ => return Ok(Place::Good),
        };
        // What is under way may fail, and the transaction with it.
        let is_uncertain = self.units.unanswered() > 0 && self.may_send_own();
        let mut place = Place::Good;
        for name in names {
            let Some(reader) = self.cursors.readers.get_mut(&name) else { continue };
            if reader.under_way > 0 || is_uncertain {
                return Ok(Place::Wait);
            }
            let is_movable = matches!(reader.kind, Kind::Cursor { can_move: true, .. }) && !reader.is_stale;
            let is_there = match self.status {
                TransactionStatus::Active => true,
                TransactionStatus::Idle => reader.is_held(),
                _ => false,
            };
            if !is_there {
                continue; // the server refuses it, wherever it stands
            }
            if !is_movable && !reader.is_over {
                return Err(self.cursors_broke("the program asks where it stands"));
            }
            reader.is_barred = true;
            reader.buffer = super::Buffer::default();
            if reader.is_over {
                continue; // behind the last row, there as here
            }
            let rows = reader.rows;
            let name = String::from_utf8_lossy(&name).into_owned();
            self.own_move(format!("MOVE ABSOLUTE {rows} IN \"{name}\"").as_bytes());
            if self.status == TransactionStatus::Idle && self.may_send_own() {
                self.own_sync(Some(self.status));
            }
            place = Place::Restored;
        }
        Ok(place)
    }

    fn names_in_execute(&self, body: &[u8]) -> Vec<Box<[u8]>> {
        let Ok(execute) = Execute::decode(body) else { return Vec::new() };
        // A cursor of SQL is a portal by its name: an Execute of it reads on where the server's portal stands.
        let depends = |reader: &super::Reader| {
            reader.is_ahead() && (reader.is_stale || matches!(reader.kind, Kind::Cursor { .. }))
        };
        if self.cursors.readers.get(execute.portal).is_some_and(depends) {
            return vec![execute.portal.into()];
        }
        let portal = self.portals.get(execute.portal);
        portal
            .and_then(|portal| portal.text.cursor.as_ref())
            .map_or_else(Vec::new, |used| self.named_by(used, true))
    }

    /// EXECUTE of SQL may run what is prepared with a name, and does not name the cursor.
    fn names_in_parse(&mut self, body: &[u8]) -> Vec<Box<[u8]>> {
        let Some(parse) = Parse::decode(body).ok().filter(|parse| !parse.statement.is_empty()) else {
            return Vec::new();
        };
        let lifted = self.lifter.lift(parse.text, self.standard_strings);
        let Some((used, _)) = cursor_use(&lifted, parse.text) else { return Vec::new() };
        let used = match used {
            // Another one may have the name when it is asked for.
            CursorUse::Closes(name) | CursorUse::Declares { name, .. } => CursorUse::Fetches(name, 1),
            used => used,
        };
        self.named_by(&used, true)
    }

    fn names_in_query(&mut self, body: &[u8]) -> Vec<Box<[u8]>> {
        let text = body.strip_suffix(b"\0").unwrap_or(body);
        let lifted = self.lifter.lift(text, self.standard_strings);
        let Some((used, _)) = cursor_use(&lifted, text) else { return Vec::new() };
        self.named_by(&used, false)
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

/// Whether `CURRENT OF`, FETCH, MOVE or the like stands in a text.
fn has_current_of(text: &[u8]) -> bool {
    words(text).any(|word| WORDS.iter().any(|known| word.eq_ignore_ascii_case(known)))
}

/// Whether a name stands in a text as a word, in quotes or not.
fn mentions(text: &[u8], name: &[u8]) -> bool {
    let is_quoted = |quote: u8| {
        let quoted = [&[quote], name, &[quote]].concat();
        text.windows(quoted.len()).any(|part| part == quoted)
    };
    words(text).any(|word| word.eq_ignore_ascii_case(name)) || is_quoted(b'"') || is_quoted(b'\'')
}

fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 0x80))
        .filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use onetrip_sql::Lifter;

    use super::*;

    #[test]
    fn a_text_that_depends_on_a_place_names_its_cursor() {
        let mut lifter = Lifter::new();
        let mut moves =
            |text: &str, name: &str| match cursor_use(&lifter.lift(text.as_bytes(), true), text.as_bytes()) {
                Some((CursorUse::Moves(text), _)) => mentions(&text, name.as_bytes()),
                _ => false,
            };
        for text in [
            "FETCH BACKWARD 1 FROM c",
            "MOVE 3 IN \"c\"",
            "UPDATE t SET v = 1 WHERE CURRENT OF C",
            "SELECT 1; FETCH 1 FROM c",
            "DO $$ BEGIN FETCH c INTO x; END $$",
            "COMMIT; BEGIN; DECLARE c CURSOR FOR SELECT 1",
        ] {
            assert!(moves(text, "c"), "{text}");
        }
        for text in ["FETCH 10 FROM c", "CLOSE c", "SELECT c.id FROM c", "UPDATE c SET v = 1", "MOVE 3 IN d"]
        {
            assert!(!moves(text, "c"), "{text}");
        }
    }
}
