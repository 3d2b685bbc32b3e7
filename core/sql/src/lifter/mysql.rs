//! The pass with MySQL's and MariaDB's lexical rules.
//!
//! Source: MySQL 8.4 Reference Manual and MariaDB Knowledge Base, "Literal Values", "Schema Object Names", "Comments",
//! "Expression Syntax"; where those leave it open, MariaDB 10.11 and MySQL 5.6 were asked.

use super::pass::{Gap, Pass};
use super::{COMMENTS_MAX, LITERALS_MAX, MysqlMode, Parameter};
use crate::literal::LiteralKind;
use crate::mysql_scan::{self as scan, Class, Number};
use crate::template::Span;
use crate::tracker::Previous;
use crate::words::Keyword;

/// A statement's first word that PostgreSQL does not have.
pub(crate) const REPLACE: &[u8] = b"replace";

/// How a statement began, which tells whether semicolons within it end it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Head {
    /// No word yet.
    None,
    /// `CREATE`, and nothing yet of what is created.
    Create,
    /// `BEGIN`, which may be MariaDB's `BEGIN NOT ATOMIC`.
    Begin,
    /// Such that a semicolon ends it.
    Plain,
    /// A stored program: semicolons are its own.
    Program,
}

pub(crate) struct MysqlPass<'p> {
    pass: Pass<'p>,
    mode: MysqlMode,
    head: Head,
    /// `?` so far.
    markers: u32,
    /// Within `/*! … */`: where it ends for a server that skips it.
    skipped_end: Option<usize>,
}

impl<'p> MysqlPass<'p> {
    pub(crate) fn new(pass: Pass<'p>, mode: MysqlMode) -> Self {
        Self { pass, mode, head: Head::None, markers: 0, skipped_end: None }
    }

    /// Numbers literals and `?` together, in text order.
    pub(crate) fn run(mut self) {
        self.pass.moves_parameters = false;
        self.pass.next_number = 1;
        while let Some(&byte) = self.pass.text.get(self.pass.at) {
            let at = self.pass.at;
            match scan::class(byte) {
                Class::Space => self.pass.space(),
                Class::Word => self.word(),
                Class::Digit if self.goes_on_behind_dot() => self.word(),
                Class::Digit => self.number(at),
                Class::Quote => self.string(at),
                Class::DoubleQuote if !self.mode.ansi_quotes => self.string(at),
                Class::DoubleQuote | Class::Backtick => self.quoted_identifier(byte),
                Class::Comma => self.pass.comma(),
                Class::Open => self.pass.open(),
                Class::Close => self.pass.close(),
                Class::Dot => self.dot(),
                Class::Semicolon => self.semicolon(),
                Class::Marker => self.marker(),
                Class::At => self.variable(),
                Class::Hash => self.line_comment(at + 1),
                Class::Minus => self.minus(),
                Class::Slash => self.slash(),
                Class::Star => self.star(),
                Class::Other => self.pass.other(scan::other_end(self.pass.text, at)),
            }
        }
        self.pass.lifter.template.finish(self.pass.text);
        self.pass.lifter.tracker.finish();
    }

    fn goes_on_behind_dot(&self) -> bool {
        self.pass.previous == Previous::Dot && self.pass.gap == Gap::None
    }

    fn word(&mut self) {
        let pass = &mut self.pass;
        let start = pass.at;
        let end = scan::word_end(pass.text, start);
        if end == start + 1 && pass.text.get(end) == Some(&b'\'') && pass.previous != Previous::Dot {
            match pass.text[start] {
                b'x' | b'X' => return self.digits(end, LiteralKind::HexBytes),
                b'b' | b'B' => return self.digits(end, LiteralKind::BitBytes),
                b'n' | b'N' => return self.string(end),
                _ => {}
            }
        }
        let is_name = pass.previous == Previous::Dot;
        let word = &pass.text[start..end];
        let keyword = match self.head {
            _ if is_name => Keyword::None,
            // It writes rows as INSERT does.
            Head::None if word.eq_ignore_ascii_case(REPLACE) => Keyword::Insert,
            _ => Keyword::of(pass.text, start, end),
        };
        self.head = next_head(self.head, word);
        let span = pass.keep(end);
        if !pass.lifter.lists.is_empty() {
            pass.word_in_list(keyword, span);
        }
        pass.lifter.tracker.on_word(pass.word_at(keyword, span));
        pass.previous = Previous::Word;
        pass.previous_word = keyword;
    }

    /// A literal, unless a server that skips the comment around it would see it end elsewhere: then all that is left is
    /// taken for one, so that no byte of what either of them reads as a literal gets out.
    fn literal(&mut self, end: usize, kind: LiteralKind) {
        match self.skipped_end {
            Some(skipped_end) if end > skipped_end => {
                self.pass.literal(self.pass.text.len(), LiteralKind::Unterminated);
            }
            _ => self.pass.literal(end, kind),
        }
    }

    /// `X'1F'` and `B'101'`, whose quote is at `quote`.
    fn digits(&mut self, quote: usize, kind: LiteralKind) {
        let (end, closed) = scan::quoted_end(self.pass.text, quote, false);
        self.literal(end, if closed { kind } else { LiteralKind::Unterminated });
    }

    fn string(&mut self, quote: usize) {
        let escapes = !self.mode.no_backslash_escapes;
        let (end, closed) = scan::quoted_end(self.pass.text, quote, escapes);
        let kind = if escapes { LiteralKind::MysqlEscape } else { LiteralKind::MysqlString };
        self.literal(end, if closed { kind } else { LiteralKind::Unterminated });
    }

    /// Digits first: a number, or a name that begins with digits.
    fn number(&mut self, digits: usize) {
        match scan::number(self.pass.text, digits) {
            Number::Integer(end) => self.literal(end, LiteralKind::Integer),
            Number::Decimal(end) => self.literal(end, LiteralKind::Decimal),
            Number::Hex(end) => self.literal(end, LiteralKind::HexBytes),
            Number::Bits(end) => self.literal(end, LiteralKind::BitBytes),
            Number::Word => self.word(),
        }
    }

    fn quoted_identifier(&mut self, quote: u8) {
        let pass = &mut self.pass;
        let (end, closed) = scan::quoted_identifier_end(pass.text, pass.at, quote);
        if !closed || self.skipped_end.is_some_and(|skipped_end| end > skipped_end) {
            return pass.literal(pass.text.len(), LiteralKind::Unterminated);
        }
        let span = pass.keep(end);
        pass.lifter.tracker.on_quoted_identifier(pass.word_at(Keyword::None, span));
        pass.set_previous(Previous::Operand);
    }

    fn marker(&mut self) {
        let pass = &mut self.pass;
        pass.semicolon_gap();
        let number = pass.next_number;
        let end = pass.at + 1;
        let span = pass.lifter.template.place(pass.text, end, number, pass.gap == Gap::Blank);
        pass.gap = Gap::None;
        pass.at = end;
        self.markers = self.markers.saturating_add(1);
        let index = pass.lifter.parameters.len();
        if index < LITERALS_MAX {
            pass.lifter.parameters.push(Parameter { source_number: self.markers, number });
        }
        pass.atom(span, number, Some(index as u32));
        pass.next_number = number.saturating_add(1);
        pass.lifter.tracker.on_other();
        pass.set_previous(Previous::Operand);
    }

    /// `@name`, `@@global.name`: one token, so that no word of it is taken for a keyword. What is quoted behind an `@` is a
    /// token of its own.
    fn variable(&mut self) {
        let pass = &mut self.pass;
        let mut end = pass.at + 1;
        end += usize::from(pass.text.get(end) == Some(&b'@'));
        let end = scan::variable_end(pass.text, end);
        pass.other(end);
        if pass.text[end - 1] != b'@' {
            pass.set_previous(Previous::Operand);
        }
    }

    fn minus(&mut self) {
        let (text, at) = (self.pass.text, self.pass.at);
        if scan::is_line_comment(text, at) {
            return self.line_comment(at + 2);
        }
        let is_sign = scan::is_number_start(text, at + 1) && !self.pass.follows_operand();
        match is_sign.then(|| scan::number(text, at + 1)) {
            Some(Number::Integer(end)) => self.literal(end, LiteralKind::Integer),
            Some(Number::Decimal(end)) => self.literal(end, LiteralKind::Decimal),
            _ => self.pass.other(at + 1),
        }
    }

    fn line_comment(&mut self, body: usize) {
        let end = scan::line_comment_end(self.pass.text, body);
        if self.skipped_end.is_some_and(|skipped_end| end > skipped_end) {
            return self.pass.literal(self.pass.text.len(), LiteralKind::Unterminated);
        }
        self.pass.at = end;
        self.comment(Span::new(body, end));
    }

    fn slash(&mut self) {
        let (text, at) = (self.pass.text, self.pass.at);
        if text.get(at + 1) != Some(&b'*') {
            return self.pass.other(at + 1);
        }
        if let (None, Some(code)) = (self.skipped_end, scan::executable_start(text, at)) {
            self.skipped_end = Some(scan::skipped_end(text, code));
            self.pass.keep(code);
            return self.pass.blank();
        }
        let (end, closed) = scan::block_comment_end(text, at);
        self.pass.at = end;
        self.comment(Span::new(at + 2, if closed { end - 2 } else { end }));
    }

    fn star(&mut self) {
        let (text, at) = (self.pass.text, self.pass.at);
        if self.skipped_end.is_some() && text.get(at + 1) == Some(&b'/') {
            self.skipped_end = None;
            self.pass.keep(at + 2);
            return self.pass.blank();
        }
        self.pass.other(at + 1);
    }

    fn comment(&mut self, body: Span) {
        let comments = &mut self.pass.lifter.comments;
        if comments.len() == COMMENTS_MAX {
            comments.pop();
        }
        comments.push(body);
        self.pass.blank();
    }

    fn dot(&mut self) {
        let pass = &mut self.pass;
        let follows_name = pass.gap == Gap::None
            && (pass.previous == Previous::Word
                || pass.at.checked_sub(1).is_some_and(|at| scan::ends_name(pass.text[at])));
        if !follows_name && scan::is_number_start(pass.text, pass.at) {
            let at = pass.at;
            return self.number(at);
        }
        pass.keep(pass.at + 1);
        pass.lifter.tracker.on_dot();
        pass.set_previous(Previous::Dot);
    }

    fn semicolon(&mut self) {
        if self.head == Head::Program {
            return self.pass.other(self.pass.at + 1);
        }
        if self.pass.depth == 0 {
            self.head = Head::None;
        }
        self.pass.semicolon();
    }
}

fn next_head(head: Head, word: &[u8]) -> Head {
    let is = |words: &[&str]| words.iter().any(|one| word.eq_ignore_ascii_case(one.as_bytes()));
    match head {
        Head::None if is(&["create"]) => Head::Create,
        Head::None if is(&["begin"]) => Head::Begin,
        Head::Create if is(&["procedure", "function", "trigger", "event", "package"]) => Head::Program,
        Head::Create
            if is(&[
                "table", "view", "index", "database", "schema", "user", "role", "sequence", "server",
            ]) =>
        {
            Head::Plain
        }
        Head::Create => Head::Create,
        Head::Begin if is(&["not"]) => Head::Program,
        Head::None | Head::Begin => Head::Plain,
        Head::Plain | Head::Program => head,
    }
}
