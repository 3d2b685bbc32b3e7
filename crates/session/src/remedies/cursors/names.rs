//! Statements that name a cursor: those that make one, close one, and those to which it matters where one stands (rule
//! R3).

use onetrip_ledger::{Moment, Remedy, TransactionStatus};
use onetrip_sql::purity::SessionQuestion;
use onetrip_sql::{Lifted, StatementKind};
use onetrip_wire::pg::{Execute, FrameHeader, HEADER_BYTES, Oid, Parse, frontend};

use super::replies::broke;
use super::{Kind, Native, sql};
use crate::events::Event;
use crate::facts::Verdict;
use crate::facts::{Doubt, Effect};
use crate::remedies::Rule;
use crate::remedies::inquiry::{Asked, Question};
use crate::session::{Session, SessionError};
use crate::statements::Text;

/// Cursors that a driver names, and no program does: with NO SCROLL.
const DRIVERS_NAMES: [&[u8]; 1] = [b"_django_curs_"];
/// Functions of the server that read a cursor by its name, or run a text that may.
const RUNNERS: [&[u8]; 7] = [
    b"cursor_to_xml",
    b"cursor_to_xmlschema",
    b"query_to_xml",
    b"query_to_xmlschema",
    b"query_to_xml_and_xmlschema",
    b"ts_rewrite",
    b"ts_stat",
];
/// Words without which no text opens, moves or closes a cursor, or acts where one stands.
const WORDS: [&[u8]; 6] = [b"close", b"current", b"declare", b"fetch", b"move", b"open"];
/// Words without which a block of code has all that it does in its text.
const BUILDERS: [&[u8]; 2] = [b"execute", b"language"];
/// Words without which no text makes code that has none of the above: it comes from a file, or from code that runs.
const MAKERS: [&[u8]; 3] = [b"call", b"do", b"extension"];

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
    let name = || lifted.name().map(|name| name.folded().take(sql::NAME_BYTES_MAX).collect());
    let found = Found::in_text(text);
    // The name may be a parameter, or be put together.
    let is_hidden = found.builders && matches!(lifted.kind(), S::Do | S::Multi);
    if found.runners || is_hidden {
        return Some((CursorUse::MovesAny, None));
    }
    let moves = || (CursorUse::Moves(text.into()), None);
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
        _ => found.words.then(moves),
    }
}

/// Whether a text that changes the catalogue may make code that opens, moves or closes cursors, or acts where one stands.
pub(crate) fn makes_cursor_code(text: &[u8]) -> bool {
    let Found { words, runners, builders, makers } = Found::in_text(text);
    words || runners || builders || makers
}

/// Words of a text, in comments and literals too: these may be run.
#[derive(Debug, Default)]
struct Found {
    words: bool,
    runners: bool,
    builders: bool,
    makers: bool,
}

impl Found {
    /// Every statement's text comes by here: one pass, and few words are compared.
    fn in_text(text: &[u8]) -> Self {
        let mut found = Self::default();
        let (mut is_in_word, mut start) = (false, 0);
        for (at, byte) in text.iter().enumerate() {
            let is_of_word = IS_OF_WORD[usize::from(*byte)];
            if is_of_word != is_in_word {
                match is_of_word {
                    true => start = at,
                    false => found.see(&text[start..at]),
                }
                is_in_word = is_of_word;
            }
            // What is written by code points (`U&"..."`) is not read here.
            if *byte == b'&' {
                found.runners |= text.get(at + 1) == Some(&b'"');
            }
        }
        if is_in_word {
            found.see(&text[start..]);
        }
        found
    }

    #[inline]
    fn see(&mut self, word: &[u8]) {
        if LENGTHS[usize::from(word[0].to_ascii_lowercase())] >> word.len().min(31) & 1 == 1 {
            self.compare(word);
        }
    }

    #[cold]
    fn compare(&mut self, word: &[u8]) {
        let is_one = |known: &[&[u8]]| known.iter().any(|known| word.eq_ignore_ascii_case(known));
        self.words |= is_one(&WORDS);
        self.runners |= is_one(&RUNNERS);
        self.builders |= is_one(&BUILDERS);
        self.makers |= is_one(&MAKERS);
    }
}

/// Bytes of which words are made.
const IS_OF_WORD: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).is_ascii_alphanumeric() || byte as u8 == b'_' || byte >= 0x80;
        byte += 1;
    }
    table
};

/// By their first letter, the lengths of the words that are looked for, as bits.
const LENGTHS: [u32; 256] = {
    let lists: [&[&[u8]]; 4] = [&WORDS, &RUNNERS, &BUILDERS, &MAKERS];
    let mut table = [0; 256];
    let mut list = 0;
    while list < lists.len() {
        let mut word = 0;
        while word < lists[list].len() {
            let known = lists[list][word];
            table[known[0] as usize] |= 1 << known.len();
            word += 1;
        }
        list += 1;
    }
    table
};

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
        let is_uncertain = self.core.units().unanswered() > 0 && self.may_send_own();
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
            if self.core.status() == TransactionStatus::Idle && self.may_send_own() {
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

/// Whether a name stands in a text as a word, in quotes or not. The server cuts what is longer than names can be.
fn mentions(text: &[u8], name: &[u8]) -> bool {
    let may_be_cut = name.len() >= sql::NAME_BYTES_MAX;
    let is_quoted = |quote: u8| {
        let end: &[u8] = if may_be_cut { b"" } else { &[quote] };
        memchr::memmem::find(text, &[&[quote], name, end].concat()).is_some()
    };
    let is_it = |word: &[u8]| match may_be_cut {
        true => word.get(..name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name)),
        false => word.eq_ignore_ascii_case(name),
    };
    words(text).any(is_it) || is_quoted(b'"') || is_quoted(b'\'')
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
            "WITH x AS (DELETE FROM t WHERE CURRENT OF c RETURNING id) SELECT * FROM x",
            "INSERT INTO t SELECT run('MOVE 5 FROM c')",
        ] {
            assert!(moves(text, "c"), "{text}");
        }
        for text in ["FETCH 10 FROM c", "CLOSE c", "SELECT c.id FROM c", "UPDATE c SET v = 1", "MOVE 3 IN d"]
        {
            assert!(!moves(text, "c"), "{text}");
        }
        let long = "n".repeat(63);
        assert!(moves(&format!("UPDATE t SET v = 0 WHERE CURRENT OF {long}zz"), &long));
        let mut any = |text: &str| {
            matches!(
                cursor_use(&lifter.lift(text.as_bytes(), true), text.as_bytes()),
                Some((CursorUse::MovesAny, _))
            )
        };
        for text in [
            "DO $$ BEGIN EXECUTE 'MO' || 'VE 5 FROM ' || 'c'; END $$",
            "SELECT 1; do 'begin execute x; end'",
            "SELECT Query_To_Xml($1, true, true, '')",
            "SELECT u&\"cursor\\005Fto\\005Fxml\"($1)",
        ] {
            assert!(any(text), "{text}");
        }
        assert!(!any("DO $$ BEGIN PERFORM 1; END $$") && !any("SELECT open, close FROM prices"));
    }
}
