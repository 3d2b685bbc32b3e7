//! Follows the words of a statement and fills [`Facts`]. Works by local rules, not by a grammar: on text that
//! PostgreSQL would refuse, the facts mean nothing.

use crate::facts::{Facts, FetchCount, FetchDirection, SettingValue};
use crate::kind::StatementKind;
use crate::template::Span;
use crate::words::Keyword;

/// Deepest parenthesis whose own `SELECT` is told from that of the level around it.
const LEVELS_MAX: usize = 256;

/// What stands directly before a token.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Previous {
    #[default]
    Start,
    Word,
    Operand,
    Close,
    Open,
    Comma,
    Dot,
    Operator,
}

/// A word where it stands.
#[derive(Clone, Copy)]
pub(crate) struct Word {
    pub(crate) keyword: Keyword,
    pub(crate) span: Span,
    pub(crate) previous: Previous,
    pub(crate) previous_word: Keyword,
    pub(crate) depth: u32,
}

/// Which of the coming words is the statement's name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Naming {
    #[default]
    Off,
    First,
    Last,
    Setting,
    SettingValue,
}

/// The name that a following dot and identifier would prolong.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Chain {
    #[default]
    None,
    Name,
    Table,
}

#[derive(Debug, Default)]
pub(crate) struct Tracker {
    pub(crate) facts: Facts,
    /// Of the statement at hand; `Empty` before its first word.
    kind: StatementKind,
    has_token: bool,
    words_before: u32,
    resolving_with: bool,
    naming: Naming,
    chain: Chain,
    dotted: bool,
    expects_table: bool,
    table_is_source: bool,
    table_depth: u32,
    /// Open `BEGIN ATOMIC` and `CASE` of a function body, within which a semicolon ends nothing.
    body_depth: u32,
    /// Per open parenthesis, the statement around all first: whether a `FROM` there names tables.
    levels: Vec<bool>,
    levels_beyond: usize,
}

impl Tracker {
    pub(crate) fn clear(&mut self) {
        self.facts = Facts::default();
        self.clear_part();
    }

    fn clear_part(&mut self) {
        self.kind = StatementKind::Empty;
        self.has_token = false;
        self.words_before = 0;
        self.resolving_with = false;
        self.naming = Naming::Off;
        self.chain = Chain::None;
        self.dotted = false;
        self.expects_table = false;
        self.table_depth = 0;
        self.body_depth = 0;
        self.levels.clear();
        self.levels.push(false);
        self.levels_beyond = 0;
    }

    pub(crate) fn is_cursor_step(&self) -> bool {
        matches!(self.kind, StatementKind::Fetch | StatementKind::Move)
    }

    pub(crate) fn in_body(&self) -> bool {
        self.body_depth > 0
    }

    #[inline]
    pub(crate) fn on_word(&mut self, word: Word) {
        if self.dotted {
            self.prolong(word.span);
        } else if self.kind == StatementKind::Empty {
            self.first_word(word);
        } else {
            self.chain = Chain::None;
            if word.keyword != Keyword::None || self.naming != Naming::Off || self.expects_table {
                self.later_word(word);
            }
        }
        self.words_before = self.words_before.saturating_add(1);
    }

    pub(crate) fn on_quoted_identifier(&mut self, word: Word) {
        if self.dotted {
            self.prolong(word.span);
        } else {
            self.on_other();
            self.take_name(word);
        }
    }

    pub(crate) fn on_dot(&mut self) {
        self.dotted = self.chain != Chain::None;
        self.has_token = true;
    }

    #[inline]
    pub(crate) fn on_other(&mut self) {
        self.has_token = true;
        self.chain = Chain::None;
        self.dotted = false;
    }

    pub(crate) fn on_literal(&mut self, index: u32, source: &[u8]) {
        self.on_other();
        self.expects_table = false;
        if self.naming == Naming::SettingValue {
            self.facts.setting = Some(SettingValue::Literal(index));
            self.naming = Naming::Off;
        } else if self.naming == Naming::Last && self.is_cursor_step() {
            if let Some(count) = std::str::from_utf8(source).ok().and_then(|digits| digits.parse().ok()) {
                self.facts.fetch_count = Some(FetchCount::Rows(count));
            }
        }
    }

    pub(crate) fn on_open(&mut self) {
        if self.chain == Chain::Table && self.table_is_source {
            self.facts.table = None; // a function in FROM
        }
        self.on_other();
        self.expects_table = false;
        if self.levels.len() < LEVELS_MAX {
            self.levels.push(false);
        } else {
            self.levels_beyond += 1;
        }
    }

    pub(crate) fn on_close(&mut self) {
        self.on_other();
        if self.levels_beyond > 0 {
            self.levels_beyond -= 1;
        } else if self.levels.len() > 1 {
            self.levels.pop();
        }
    }

    /// The template was cut back to `len` bytes.
    pub(crate) fn on_truncate(&mut self, len: usize) {
        let stays = |span: &Span| span.end as usize <= len;
        self.facts.table = self.facts.table.filter(stays);
        self.facts.name = self.facts.name.filter(stays);
    }

    pub(crate) fn end_part(&mut self) {
        if self.has_token || self.kind != StatementKind::Empty {
            let kind = if self.kind == StatementKind::Empty { StatementKind::Other } else { self.kind };
            if let Some(part) = self.facts.parts.get_mut(self.facts.part_count as usize) {
                *part = kind;
            }
            self.facts.part_count = self.facts.part_count.saturating_add(1);
        }
        self.clear_part();
    }

    pub(crate) fn finish(&mut self) {
        self.end_part();
        self.facts.kind = match self.facts.part_count {
            0 => StatementKind::Empty,
            1 => self.facts.parts[0],
            _ => StatementKind::Multi,
        };
    }

    fn prolong(&mut self, span: Span) {
        let target = if self.chain == Chain::Table { &mut self.facts.table } else { &mut self.facts.name };
        if let Some(name) = target {
            name.end = span.end.max(name.end);
        }
        self.dotted = false;
    }

    fn first_word(&mut self, word: Word) {
        self.kind = StatementKind::of_first_word(word.keyword);
        match self.kind {
            StatementKind::With => self.resolving_with = true,
            StatementKind::Select => {
                self.names_tables_here();
                if word.keyword == Keyword::Table {
                    self.facts.has_from = true;
                    self.expect_table(word.depth, true);
                }
            }
            StatementKind::Insert | StatementKind::Update | StatementKind::Delete | StatementKind::Merge => {
                self.row_writing_verb(word);
            }
            StatementKind::Fetch | StatementKind::Move => {
                self.start_naming(Naming::Last);
                if self.naming != Naming::Off {
                    self.facts.fetch_count = Some(FetchCount::Rows(1));
                    self.facts.fetch_direction = Some(FetchDirection::Forward);
                }
            }
            StatementKind::Savepoint
            | StatementKind::Release
            | StatementKind::CloseCursor
            | StatementKind::Deallocate
            | StatementKind::Listen
            | StatementKind::Unlisten => self.start_naming(Naming::Last),
            StatementKind::Declare
            | StatementKind::Prepare
            | StatementKind::Execute
            | StatementKind::Notify
            | StatementKind::Reset
            | StatementKind::Show => self.start_naming(Naming::First),
            StatementKind::Set => self.start_naming(Naming::Setting),
            StatementKind::Lock | StatementKind::Copy => self.expect_table(word.depth, false),
            StatementKind::Ddl if word.keyword == Keyword::Truncate => self.expect_table(word.depth, false),
            _ => {}
        }
    }

    fn start_naming(&mut self, naming: Naming) {
        if self.facts.name.is_none() && self.facts.setting.is_none() && self.facts.fetch_count.is_none() {
            self.naming = naming;
        }
    }

    fn later_word(&mut self, word: Word) {
        if self.is_two_phase(word) {
            if self.naming != Naming::Off {
                self.naming = Naming::Off;
                self.facts.name = None;
            }
            self.kind = StatementKind::TwoPhase;
            return;
        }
        match word.keyword {
            Keyword::All => return self.all(),
            Keyword::To if self.kind == StatementKind::Rollback => {
                self.kind = StatementKind::RollbackTo;
                return self.start_naming(Naming::Last);
            }
            _ => {}
        }
        self.take_name(word);
        match word.keyword {
            Keyword::None => {}
            Keyword::Select => {
                self.names_tables_here();
                self.resolve_with(word);
            }
            Keyword::Values | Keyword::Table if word.previous == Previous::Close => self.resolve_with(word),
            Keyword::Insert | Keyword::Update | Keyword::Delete | Keyword::Merge => self.writing_word(word),
            Keyword::Share => self.locks_rows(word),
            Keyword::From => self.from(word),
            Keyword::Into => self.into(word),
            Keyword::Transaction
                if self.kind == StatementKind::Other
                    && word.previous_word == Keyword::Start
                    && self.words_before == 1 =>
            {
                self.kind = StatementKind::Begin;
            }
            Keyword::Chain => self.facts.chain |= word.previous_word == Keyword::And,
            Keyword::Hold if self.kind == StatementKind::Declare => {
                self.facts.hold |= word.previous_word == Keyword::With;
            }
            Keyword::Backward | Keyword::Prior => self.direction(FetchDirection::Backward),
            Keyword::First | Keyword::Last | Keyword::Absolute | Keyword::Relative => {
                self.direction(FetchDirection::Jump);
            }
            _ if self.kind == StatementKind::Ddl => self.body_word(word),
            _ => {}
        }
    }

    fn is_two_phase(&self, word: Word) -> bool {
        self.words_before == 1
            && matches!(
                (self.kind, word.keyword),
                (StatementKind::Prepare, Keyword::Transaction)
                    | (StatementKind::Commit | StatementKind::Rollback, Keyword::Prepared)
            )
    }

    fn all(&mut self) {
        if self.kind == StatementKind::Discard {
            self.facts.all = true;
        } else if self.naming != Naming::Off {
            self.facts.name = None;
            if self.is_cursor_step() {
                self.facts.fetch_count = Some(FetchCount::All);
            } else {
                self.facts.all = true;
            }
        }
    }

    fn take_name(&mut self, word: Word) {
        if self.expects_table && !matches!(word.keyword, Keyword::Only | Keyword::Table) {
            self.expects_table = false;
            if !matches!(word.keyword, Keyword::Lateral | Keyword::Select) && !word.span.is_empty() {
                self.facts.table = Some(word.span);
                self.table_depth = word.depth;
                self.chain = Chain::Table;
            }
        }
        match self.naming {
            Naming::Off => {}
            Naming::First | Naming::Last => {
                self.facts.name = Some(word.span);
                self.chain = Chain::Name;
                if self.naming == Naming::First {
                    self.naming = Naming::Off;
                }
            }
            Naming::Setting => match (word.previous_word, word.keyword) {
                (Keyword::Set, Keyword::Local) => self.facts.local = true,
                (Keyword::Set, Keyword::Session) => {}
                _ => {
                    self.facts.name = Some(word.span);
                    self.chain = Chain::Name;
                    self.naming = Naming::SettingValue;
                }
            },
            Naming::SettingValue => match (word.previous_word, word.keyword) {
                (_, Keyword::To) | (Keyword::Time, Keyword::Zone) => {}
                _ => {
                    self.facts.setting = Some(SettingValue::Word(word.span));
                    self.naming = Naming::Off;
                }
            },
        }
    }

    fn names_tables_here(&mut self) {
        if let Some(level) = self.levels.last_mut() {
            *level = true;
        }
    }

    fn resolve_with(&mut self, word: Word) {
        if self.resolving_with && word.depth == 0 {
            self.resolving_with = false;
            self.kind = StatementKind::of_first_word(word.keyword);
        }
    }

    fn writing_word(&mut self, word: Word) {
        let starts_statement = matches!(word.previous, Previous::Open | Previous::Close)
            || matches!(word.previous_word, Keyword::Explain | Keyword::Analyze | Keyword::Verbose)
            || (self.kind == StatementKind::Prepare
                && word.previous == Previous::Word
                && word.previous_word == Keyword::None); // AS
        if starts_statement {
            self.resolve_with(word);
            self.row_writing_verb(word);
        } else if word.keyword == Keyword::Update {
            self.locks_rows(word);
        }
    }

    fn row_writing_verb(&mut self, word: Word) {
        self.facts.writes = true;
        self.names_tables_here();
        if word.keyword == Keyword::Update {
            self.expect_table(word.depth, false);
        }
    }

    fn locks_rows(&mut self, word: Word) {
        self.facts.locks_rows |= matches!(word.previous_word, Keyword::For | Keyword::Key)
            && !matches!(self.kind, StatementKind::Ddl | StatementKind::Other);
    }

    fn from(&mut self, word: Word) {
        if self.facts.table.is_some_and(|table| self.table_is_source && table.end + 1 == word.span.start) {
            self.facts.table = None; // FROM ROWS FROM (f(1), g(2))
            return;
        }
        let names_tables = self.levels.last().is_some_and(|&level| level);
        if names_tables && word.previous_word != Keyword::Distinct {
            self.facts.has_from = true;
            self.expect_table(word.depth, true);
        }
    }

    fn into(&mut self, word: Word) {
        if matches!(word.previous_word, Keyword::Insert | Keyword::Merge) {
            self.expect_table(word.depth, false);
        } else if matches!(self.kind, StatementKind::Select | StatementKind::With) {
            self.facts.into = true;
        }
    }

    fn expect_table(&mut self, depth: u32, is_source: bool) {
        let belongs_to_verb = depth == 0 && self.table_depth > 0 && self.kind.is_row_write();
        if self.facts.table.is_none() || belongs_to_verb {
            self.expects_table = true;
            self.table_is_source = is_source;
        }
    }

    fn direction(&mut self, direction: FetchDirection) {
        if self.is_cursor_step() && self.naming != Naming::Off {
            self.facts.fetch_direction = Some(direction);
        }
    }

    /// `CREATE FUNCTION … BEGIN ATOMIC …; … END`: its semicolons do not end the statement.
    fn body_word(&mut self, word: Word) {
        match word.keyword {
            Keyword::Atomic if word.previous_word == Keyword::Begin => self.body_depth += 1,
            Keyword::Case if self.body_depth > 0 => self.body_depth += 1,
            Keyword::End => self.body_depth = self.body_depth.saturating_sub(1),
            _ => {}
        }
    }
}
