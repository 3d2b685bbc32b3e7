//! One pass over a text: takes token by token and writes the template. What PostgreSQL's and MySQL's have in common is here
//! with PostgreSQL's; MySQL's tokens are in `mysql`.

use super::lists::{Atom, List, Mark};
use super::{COMMENTS_MAX, Found, LITERALS_MAX, Lifter, Parameter, Shift};
use crate::literal::LiteralKind;
use crate::scan::{self, Class};
use crate::template::Span;
use crate::tracker::{Previous, Word};
use crate::words::Keyword;

/// Parentheses deeper than this are not looked into for lists.
const LIST_DEPTH_MAX: u32 = 256;

/// What separates the next token from the one before.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Gap {
    None,
    Blank,
    Semicolon,
}

/// What a pass learned that may make another one necessary.
#[derive(Clone, Copy)]
pub(crate) struct Outcome {
    /// Highest `$n` of the text as it is numbered in the template.
    pub(crate) number_max: u32,
    /// A parameter that collapsing took away is used again, so parameters must keep their numbers.
    pub(crate) has_conflict: bool,
}

pub(crate) struct Pass<'p> {
    pub(super) text: &'p [u8],
    pub(super) at: usize,
    pub(super) lifter: &'p mut Lifter,
    backslash_escapes: bool,
    pub(super) moves_parameters: bool,
    pub(super) gap: Gap,
    pub(super) previous: Previous,
    pub(super) previous_word: Keyword,
    pub(super) depth: u32,
    /// Number of the next literal.
    pub(super) next_number: u32,
    /// Highest `$n` so far as the text has it.
    source_max: u32,
    outcome: Outcome,
}

impl<'p> Pass<'p> {
    pub(crate) fn new(lifter: &'p mut Lifter, text: &'p [u8], standard_conforming_strings: bool) -> Self {
        lifter.clear();
        Self {
            text,
            at: 0,
            lifter,
            backslash_escapes: !standard_conforming_strings,
            moves_parameters: true,
            gap: Gap::None,
            previous: Previous::Start,
            previous_word: Keyword::None,
            depth: 0,
            next_number: 1,
            source_max: 0,
            outcome: Outcome { number_max: 0, has_conflict: false },
        }
    }

    /// Numbers literals from `number_base` + 1.
    pub(crate) fn run(mut self, number_base: u32, moves_parameters: bool) -> Outcome {
        self.next_number = number_base.saturating_add(1);
        self.moves_parameters = moves_parameters;
        while let Some(&byte) = self.text.get(self.at) {
            let class = scan::class(byte);
            if class == Class::Space {
                self.space(); // every other token: a jump of its own is foreseen better
                continue;
            }
            match class {
                Class::Word => self.word(),
                Class::Comma => self.comma(),
                Class::Operator => self.operator(),
                Class::Digit => self.number(self.at),
                Class::Quote => self.string(self.at, self.plain_kind()),
                Class::DoubleQuote => self.quoted_identifier(self.at),
                Class::Dot => self.dot(),
                Class::Open => self.open(),
                Class::Close => self.close(),
                Class::Dollar => self.dollar(),
                Class::Semicolon => self.semicolon(),
                Class::Space | Class::Other => self.other(self.at + 1),
            }
        }
        self.lifter.template.finish(self.text);
        self.lifter.tracker.finish();
        self.outcome
    }

    #[inline]
    pub(super) fn space(&mut self) {
        self.at = scan::blanks_end(self.text, self.at + 1);
        self.blank();
    }

    pub(super) fn blank(&mut self) {
        if self.gap == Gap::None {
            self.gap = Gap::Blank;
        }
    }

    /// Copies the text up to `end` into the template.
    #[inline]
    pub(super) fn keep(&mut self, end: usize) -> Span {
        self.semicolon_gap();
        let blank = self.gap == Gap::Blank;
        let span = self.lifter.template.keep(self.text, self.at, end, blank);
        self.gap = Gap::None;
        self.at = end;
        span
    }

    #[inline]
    pub(super) fn semicolon_gap(&mut self) {
        if self.gap == Gap::Semicolon {
            self.lifter.template.push(self.text, b"; ", self.at);
            self.gap = Gap::None;
        }
    }

    pub(super) fn set_previous(&mut self, previous: Previous) {
        self.previous = previous;
        self.previous_word = Keyword::None;
    }

    pub(super) fn word_at(&self, keyword: Keyword, span: Span) -> Word {
        Word { keyword, span, previous: self.previous, previous_word: self.previous_word, depth: self.depth }
    }

    fn word(&mut self) {
        let start = self.at;
        let end = scan::word_end(self.text, start);
        if end == start + 1 && self.prefixed(end) {
            return;
        }
        let keyword =
            if self.previous == Previous::Dot { Keyword::None } else { Keyword::of(self.text, start, end) };
        let span = self.keep(end);
        if !self.lifter.lists.is_empty() {
            self.word_in_list(keyword, span);
        }
        self.lifter.tracker.on_word(self.word_at(keyword, span));
        self.previous = Previous::Word;
        self.previous_word = keyword;
    }

    /// Takes `E'…'`, `B'…'`, `X'…'`, `N'…'`, `U&'…'` and `U&"…"` if the one letter ending at `end` begins one.
    fn prefixed(&mut self, end: usize) -> bool {
        let letter = self.text[self.at].to_ascii_lowercase();
        match (letter, self.text.get(end), self.text.get(end + 1)) {
            (b'e', Some(b'\''), _) => self.string(end, LiteralKind::Escape),
            (b'b', Some(b'\''), _) => self.string(end, LiteralKind::Bits),
            (b'x', Some(b'\''), _) => self.string(end, LiteralKind::HexBits),
            (b'n', Some(b'\''), _) => self.string(end, self.plain_kind()),
            (b'u', Some(b'&'), Some(b'\'')) => self.string(end + 1, LiteralKind::Unicode),
            (b'u', Some(b'&'), Some(b'"')) => self.quoted_identifier(end + 1),
            _ => return false,
        }
        true
    }

    fn plain_kind(&self) -> LiteralKind {
        if self.backslash_escapes { LiteralKind::Escape } else { LiteralKind::String }
    }

    /// A string whose opening quote is at `quote`; the token starts at or before it.
    fn string(&mut self, quote: usize, kind: LiteralKind) {
        let (mut end, closed) = scan::string_end(self.text, quote, kind == LiteralKind::Escape);
        if kind == LiteralKind::Unicode && closed {
            end = scan::uescape_end(self.text, end).unwrap_or(end);
        }
        self.literal(end, if closed { kind } else { LiteralKind::Unterminated });
    }

    fn number(&mut self, digits: usize) {
        let end = scan::number_end(self.text, digits);
        let is_integer = !self.text[digits..end].iter().any(|byte| matches!(byte, b'.' | b'e' | b'E'));
        let has_radix = matches!(self.text.get(digits + 1), Some(b'x' | b'X'));
        self.literal(end, if is_integer || has_radix { LiteralKind::Integer } else { LiteralKind::Decimal });
    }

    pub(super) fn literal(&mut self, end: usize, kind: LiteralKind) {
        self.semicolon_gap();
        let number = self.next_number;
        let span = self.lifter.template.place(self.text, end, number, self.gap == Gap::Blank);
        let source = Span::new(self.at, end);
        let index = self.lifter.literals.len();
        if index < LITERALS_MAX {
            self.lifter.literals.push(Found { source, number, kind });
        } else {
            self.lifter.tracker.facts.literals_cut = true;
        }
        self.atom(span, number, None);
        self.next_number = number.saturating_add(1);
        self.lifter.tracker.on_literal(index as u32, source.of(self.text));
        self.gap = Gap::None;
        self.at = end;
        self.set_previous(Previous::Operand);
    }

    fn dollar(&mut self) {
        if self.text.get(self.at + 1).is_some_and(u8::is_ascii_digit) {
            return self.parameter();
        }
        match scan::dollar_tag_len(self.text, self.at) {
            Some(tag_len) => {
                let (end, closed) = scan::dollar_quote_end(self.text, self.at, tag_len);
                self.literal(end, if closed { LiteralKind::Dollar } else { LiteralKind::Unterminated });
            }
            None => self.other(self.at + 1),
        }
    }

    fn parameter(&mut self) {
        let mut end = self.at + 1;
        let mut source_number = 0_u32;
        while let Some(&digit @ b'0'..=b'9') = self.text.get(end) {
            source_number = source_number.saturating_mul(10).saturating_add(u32::from(digit - b'0'));
            end += 1;
        }
        let number = if self.moves_parameters { self.moved(source_number) } else { source_number };
        let span = if number == source_number {
            self.keep(end)
        } else {
            self.semicolon_gap();
            let span = self.lifter.template.place(self.text, end, number, self.gap == Gap::Blank);
            self.gap = Gap::None;
            self.at = end;
            span
        };
        let index = self.lifter.parameters.len();
        if index < LITERALS_MAX {
            self.lifter.parameters.push(Parameter { source_number, number });
        }
        self.atom(span, number, Some(index as u32));
        self.source_max = self.source_max.max(source_number);
        self.outcome.number_max = self.outcome.number_max.max(number);
        self.lifter.tracker.on_other();
        self.set_previous(Previous::Operand);
    }

    /// The number of a parameter behind collapsed lists.
    fn moved(&mut self, source_number: u32) -> u32 {
        let shifts = &self.lifter.shifts;
        let before = shifts.partition_point(|shift| shift.first <= source_number);
        match before.checked_sub(1).and_then(|index| shifts.get(index)) {
            None => source_number,
            Some(shift) if source_number <= shift.last => {
                self.outcome.has_conflict = true;
                source_number
            }
            Some(shift) => source_number - shift.by,
        }
    }

    fn quoted_identifier(&mut self, quote: usize) {
        let (end, closed) = scan::quoted_identifier_end(self.text, quote);
        if !closed {
            return self.literal(end, LiteralKind::Unterminated);
        }
        let span = self.keep(end);
        self.lifter.tracker.on_quoted_identifier(self.word_at(Keyword::None, span));
        self.set_previous(Previous::Operand);
    }

    fn operator(&mut self) {
        if scan::is_comment_start(self.text, self.at) {
            return self.comment();
        }
        let end = scan::operator_end(self.text, self.at);
        let is_sign = self.text[self.at] == b'-'
            && end == self.at + 1
            && scan::is_number_start(self.text, end)
            && !self.follows_operand();
        if is_sign { self.number(end) } else { self.other(end) }
    }

    pub(super) fn follows_operand(&self) -> bool {
        match self.previous {
            Previous::Operand | Previous::Close | Previous::Dot => true,
            Previous::Word => {
                !(self.previous_word.expects_operand()
                    || (self.previous_word != Keyword::None && self.lifter.tracker.is_cursor_step()))
            }
            Previous::Start | Previous::Open | Previous::Comma | Previous::Operator => false,
        }
    }

    fn comment(&mut self) {
        let start = self.at + 2;
        let body = if self.text[self.at] == b'-' {
            self.at = scan::line_comment_end(self.text, self.at);
            Span::new(start, self.at)
        } else {
            let (end, closed) = scan::block_comment_end(self.text, self.at);
            self.at = end;
            Span::new(start, if closed { end - 2 } else { end })
        };
        if self.lifter.comments.len() == COMMENTS_MAX {
            self.lifter.comments.pop();
        }
        self.lifter.comments.push(body);
        self.blank();
    }

    fn dot(&mut self) {
        if scan::is_number_start(self.text, self.at) {
            return self.number(self.at);
        }
        if self.text.get(self.at + 1) == Some(&b'.') {
            return self.other(self.at + 2); // the two dots of a slice
        }
        self.keep(self.at + 1);
        self.lifter.tracker.on_dot();
        self.set_previous(Previous::Dot);
    }

    pub(super) fn other(&mut self, end: usize) {
        self.keep(end);
        self.lifter.tracker.on_other();
        self.set_previous(Previous::Operator);
    }

    pub(super) fn semicolon(&mut self) {
        if self.depth > 0 || self.lifter.tracker.in_body() {
            return self.other(self.at + 1);
        }
        self.at += 1;
        self.lifter.lists.clear();
        self.lifter.atoms.clear();
        self.lifter.tracker.end_part();
        if self.lifter.template.len() > 0 {
            self.gap = Gap::Semicolon;
        }
        self.set_previous(Previous::Start);
    }
}

/// Parentheses, commas and the lists they make.
impl Pass<'_> {
    pub(super) fn open(&mut self) {
        let starts_in = self.text[self.at] == b'(' && self.previous_word == Keyword::In;
        let starts_array = self.text[self.at] == b'['
            && (self.previous_word == Keyword::Array
                || (self.is_in_list() && matches!(self.previous, Previous::Open | Previous::Comma)));
        let starts_rows = self.text[self.at] == b'(' && self.previous_word == Keyword::Values;
        if starts_rows && self.depth < LIST_DEPTH_MAX {
            let element = self.mark();
            self.lifter.lists.push(List::new(self.depth, true, element));
        }
        self.keep(self.at + 1);
        self.depth = self.depth.saturating_add(1);
        if (starts_in || starts_array) && self.depth < LIST_DEPTH_MAX {
            let element = self.mark();
            self.lifter.lists.push(List::new(self.depth, false, element));
        }
        self.lifter.tracker.on_open();
        self.set_previous(Previous::Open);
    }

    pub(super) fn close(&mut self) {
        self.end_rows_of(self.depth);
        if self.is_in_list() {
            self.end_element();
            self.lifter.lists.pop();
        }
        self.depth = self.depth.saturating_sub(1);
        self.keep(self.at + 1);
        self.lifter.tracker.on_close();
        self.set_previous(Previous::Close);
        if self.is_in_rows() {
            self.end_element();
            let next = scan::blanks_end(self.text, self.at);
            if self.text.get(next) != Some(&b',') {
                self.lifter.lists.pop();
            }
        }
    }

    pub(super) fn comma(&mut self) {
        if self.is_in_list() {
            self.end_element();
        }
        self.keep(self.at + 1);
        self.lifter.tracker.on_other();
        self.set_previous(Previous::Comma);
        if self.is_in_list() || self.is_in_rows() {
            let element = self.mark();
            if let Some(list) = self.lifter.lists.last_mut() {
                list.element = element;
            }
        }
    }

    fn is_in_list(&self) -> bool {
        self.lifter.lists.last().is_some_and(|list| !list.is_rows && list.depth == self.depth)
    }

    fn is_in_rows(&self) -> bool {
        self.lifter.lists.last().is_some_and(|list| list.is_rows && list.depth == self.depth)
    }

    /// Ends row lists left open by text that is no list of rows after all.
    fn end_rows_of(&mut self, depth: u32) {
        while self.lifter.lists.last().is_some_and(|list| list.is_rows && list.depth >= depth) {
            self.lifter.lists.pop();
        }
    }

    pub(super) fn word_in_list(&mut self, keyword: Keyword, span: Span) {
        match keyword {
            Keyword::Null | Keyword::True | Keyword::False => self.atom(span, 0, None),
            Keyword::Select | Keyword::With | Keyword::Values
                if self.previous == Previous::Open && self.is_in_list() =>
            {
                self.lifter.lists.pop(); // IN (SELECT …)
            }
            _ => {}
        }
    }

    pub(super) fn atom(&mut self, span: Span, number: u32, parameter: Option<u32>) {
        if self.lifter.lists.is_empty() || span.is_empty() {
            return;
        }
        self.lifter.atoms.push(Atom {
            start: span.start as usize,
            end: span.end as usize,
            number,
            literal_number: self.next_number,
            parameter,
        });
    }

    fn mark(&self) -> Mark {
        Mark {
            template: self.lifter.template.len(),
            atoms: self.lifter.atoms.len(),
            literals: self.lifter.literals.len(),
            parameters: self.lifter.parameters.len(),
            shifts: self.lifter.shifts.len(),
            next_number: self.next_number,
            source_max: self.source_max,
            number_max: self.outcome.number_max,
        }
    }

    fn end_element(&mut self) {
        let lifter = &mut *self.lifter;
        lifter.template.flush(self.text);
        let Some(list) = lifter.lists.last_mut() else { return };
        if lifter.template.is_cut() {
            return;
        }
        if !list.repeats(lifter.template.bytes(), &lifter.atoms) {
            return list.keep(lifter.template.len(), lifter.atoms.len());
        }
        list.renumber(&lifter.atoms, &mut lifter.literals, &mut lifter.parameters);
        let len = list.drop_element(&mut lifter.template, self.text, self.at);
        let element = list.element;
        lifter.atoms.truncate(element.atoms);
        lifter.tracker.on_truncate(len);
        self.next_number = element.next_number;
        self.outcome.number_max = element.number_max;
        self.gap = Gap::None;
        self.move_parameters_behind(element);
    }

    /// Parameters of a dropped element leave a hole in the numbers, which those behind it close; but only if they
    /// were the next ones in order, so that it is sure which ones stand behind.
    fn move_parameters_behind(&mut self, element: Mark) {
        let dropped = self.lifter.parameters.get(element.parameters..).unwrap_or_default();
        let Some(first) = dropped.first().map(|parameter| parameter.source_number) else { return };
        let in_order = (element.source_max.saturating_add(1)..).zip(dropped);
        let mut count = 0;
        for (expected, parameter) in in_order {
            if parameter.source_number != expected {
                return;
            }
            count += 1;
        }
        if self.moves_parameters {
            self.lifter.shifts.truncate(element.shifts);
            let by = self.lifter.shifts.last().map_or(0, |shift| shift.by) + count;
            self.lifter.shifts.push(Shift { first, last: first + count - 1, by });
        }
    }
}
