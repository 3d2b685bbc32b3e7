//! The scanner's buffers, and what it found.

mod lists;
mod mysql;
mod pass;

use std::ops::Range;

use lists::{Atom, List};
use mysql::{MysqlPass, REPLACE};
use pass::Pass;

use crate::facts::{Facts, Name, SettingValue};
use crate::kind::StatementKind;
use crate::literal::{Literal, LiteralKind};
use crate::template::{Span, Template};
use crate::tracker::Tracker;

/// Most literals, and most parameters, of one text that are listed.
pub const LITERALS_MAX: usize = 65_536;

/// Most comments of one text that are kept: the first ones and the last.
pub const COMMENTS_MAX: usize = 16;

/// Longest text that is looked at, in bytes; PostgreSQL takes no message above 1 GiB.
pub(crate) const TEXT_BYTES_MAX: usize = 1 << 30;

/// What of a session's `sql_mode` decides where tokens end. It must be right, or a string may be taken to end too early.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MysqlMode {
    /// ANSI_QUOTES: double quotes are an identifier's.
    pub ansi_quotes: bool,
    /// NO_BACKSLASH_ESCAPES: a backslash within quotes is itself.
    pub no_backslash_escapes: bool,
}

/// A literal as it is kept: where it stands in the text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) source: Span,
    pub(crate) number: u32,
    pub(crate) kind: LiteralKind,
}

/// A `$n` of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its n in the text, which is what `Bind` counts by.
    pub source_number: u32,
    /// Its n in the template. It differs only behind a list of parameters that was collapsed; members of such a
    /// list share the number of the place that stands for them. Zero: the template has no place for it.
    pub number: u32,
}

/// A run of parameters that collapsing took away; those behind it move down by `by`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shift {
    pub(crate) first: u32,
    pub(crate) last: u32,
    pub(crate) by: u32,
}

/// Reusable scanner: makes no allocation once its buffers have grown to what the texts need.
///
/// Memory is bounded whatever the text: see [`TEMPLATE_BYTES_MAX`](crate::TEMPLATE_BYTES_MAX),
/// [`LITERALS_MAX`] and [`COMMENTS_MAX`].
#[derive(Debug, Default)]
pub struct Lifter {
    pub(crate) template: Template,
    pub(crate) literals: Vec<Found>,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) comments: Vec<Span>,
    pub(crate) shifts: Vec<Shift>,
    pub(crate) lists: Vec<List>,
    pub(crate) atoms: Vec<Atom>,
    pub(crate) tracker: Tracker,
}

impl Lifter {
    /// A scanner with empty buffers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Splits a text into template and literals; what an earlier call found is forgotten.
    ///
    /// `standard_conforming_strings` is the session's setting: when off, a backslash escapes within plain quotes.
    /// It must be right, or a string may be taken to end too early. Any bytes will do, in an encoding whose
    /// multi-byte characters hold no quote. Text that PostgreSQL would refuse gets a template too, and still no
    /// byte of a literal gets into it. Beyond 1 GiB, PostgreSQL's limit for a message, nothing is looked at.
    pub fn lift<'a>(&'a mut self, text: &'a [u8], standard_conforming_strings: bool) -> Lifted<'a> {
        let text = text.get(..TEXT_BYTES_MAX).unwrap_or(text);
        let mut outcome = Pass::new(self, text, standard_conforming_strings).run(0, true);
        let moves_parameters = !outcome.has_conflict;
        if outcome.has_conflict {
            outcome = Pass::new(self, text, standard_conforming_strings).run(0, false);
        }
        if outcome.number_max > 0 && !self.literals.is_empty() {
            // Literals are numbered behind the parameters, and only now is it known how many those are.
            Pass::new(self, text, standard_conforming_strings).run(outcome.number_max, moves_parameters);
        }
        Lifted { lifter: self, text }
    }

    /// [`Self::lift`] with the lexical rules of MySQL and MariaDB.
    ///
    /// A `?` becomes a `$n` as a literal does, and both are numbered together in text order: the template of a prepared
    /// statement is that of the same statement with its values written into it. The n-th `?` is the parameter whose
    /// `source_number` is n. Character sets in front of strings (`_utf8mb4'…'`) stay. Code in `/*! … */` is code, and
    /// its marks stay. In a stored program semicolons end nothing.
    ///
    /// [`Facts`] come from the words that MySQL has in common with PostgreSQL; `REPLACE` is an INSERT. A statement with another
    /// first word is of the kind `Other`; whether it writes is then not known.
    pub fn lift_mysql<'a>(&'a mut self, text: &'a [u8], mode: MysqlMode) -> Lifted<'a> {
        let text = text.get(..TEXT_BYTES_MAX).unwrap_or(text);
        MysqlPass::new(Pass::new(self, text, true), mode).run();
        Lifted { lifter: self, text }
    }

    /// Looks at a template that one of the others has made: backticks around names, or REPLACE, tell which one.
    pub fn lift_template<'a>(&'a mut self, template: &'a [u8]) -> Lifted<'a> {
        let replaces = template.get(..REPLACE.len()).is_some_and(|word| word.eq_ignore_ascii_case(REPLACE));
        match replaces || memchr::memchr(b'`', template).is_some() {
            true => self.lift_mysql(template, MysqlMode::default()),
            false => self.lift(template, true),
        }
    }

    pub(crate) fn clear(&mut self) {
        self.template.clear();
        self.literals.clear();
        self.parameters.clear();
        self.comments.clear();
        self.shifts.clear();
        self.lists.clear();
        self.atoms.clear();
        self.tracker.clear();
    }
}

/// Whether a server can make nothing of the inside of a comment: it is no hint for a planner (`/*+ … */`), and is ASCII, for
/// a server checks encodings everywhere.
pub fn is_idle_comment(body: &[u8]) -> bool {
    body.is_ascii() && !body.starts_with(b"+")
}

/// What [`Lifter::lift`] found in a text.
#[derive(Clone, Copy, Debug)]
pub struct Lifted<'a> {
    lifter: &'a Lifter,
    text: &'a [u8],
}

impl<'a> Lifted<'a> {
    /// The text with each literal replaced by a `$n`, comments gone and runs of blanks made one blank.
    pub fn template(&self) -> &'a [u8] {
        self.lifter.template.bytes()
    }

    /// The literals in text order, at most [`LITERALS_MAX`].
    pub fn literals(&self) -> impl ExactSizeIterator<Item = Literal<'a>> + use<'a> {
        let text = self.text;
        self.lifter.literals.iter().map(move |found| found.literal(text))
    }

    /// One of [`Self::literals`].
    pub fn literal(&self, index: usize) -> Option<Literal<'a>> {
        self.lifter.literals.get(index).map(|found| found.literal(self.text))
    }

    /// The `$n` that the text itself has, in text order, at most [`LITERALS_MAX`].
    pub fn parameters(&self) -> &'a [Parameter] {
        &self.lifter.parameters
    }

    /// The sort of the statement.
    pub fn kind(&self) -> StatementKind {
        self.facts().kind
    }

    /// What the words of the statement tell.
    pub fn facts(&self) -> &'a Facts {
        &self.lifter.tracker.facts
    }

    /// The main table; see [`Facts::table`].
    pub fn table(&self) -> Option<Name<'a>> {
        self.facts().table.map(|span| self.name_at(span))
    }

    /// The name the statement is about; see [`Facts::name`].
    pub fn name(&self) -> Option<Name<'a>> {
        self.facts().name.map(|span| self.name_at(span))
    }

    /// The first value of a `SET`, if it is a word or quoted identifier.
    pub fn setting_word(&self) -> Option<Name<'a>> {
        match self.facts().setting? {
            SettingValue::Word(span) => Some(self.name_at(span)),
            SettingValue::Literal(_) => None,
        }
    }

    /// The first value of a `SET`, if it is a literal.
    pub fn setting_literal(&self) -> Option<Literal<'a>> {
        match self.facts().setting? {
            SettingValue::Literal(index) => self.literal(index as usize),
            SettingValue::Word(_) => None,
        }
    }

    /// The insides of the text's comments, without their marks: the first ones and the last, at most
    /// [`COMMENTS_MAX`].
    pub fn comments(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        let text = self.text;
        self.lifter.comments.iter().map(move |span| span.of(text))
    }

    /// Where the insides of the text's comments are, if a server can make nothing of them: two texts that are equal but for
    /// these mean the same. Empty where a comment is not idle ([`is_idle_comment`]), is not closed, or is one of
    /// [`COMMENTS_MAX`] or more.
    pub fn idle_comments(&self) -> impl ExactSizeIterator<Item = Range<usize>> + use<'a> {
        let (text, comments) = (self.text, &self.lifter.comments);
        let is_idle = |comment: &Span| {
            let (before, behind) = (&text[..comment.start as usize], &text[comment.end as usize..]);
            let body = comment.of(text);
            (before.ends_with(b"--") || behind.starts_with(b"*/")) && is_idle_comment(body)
        };
        let are_idle = comments.len() < COMMENTS_MAX && comments.iter().all(is_idle);
        let idle = if are_idle { &comments[..] } else { &[] };
        idle.iter().map(|comment| comment.start as usize..comment.end as usize)
    }

    fn name_at(&self, span: Span) -> Name<'a> {
        Name(span.of(self.lifter.template.bytes()))
    }
}

impl Found {
    fn literal<'a>(&self, text: &'a [u8]) -> Literal<'a> {
        Literal { number: self.number, kind: self.kind, source: self.source.of(text) }
    }
}
