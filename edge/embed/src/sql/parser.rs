//! The parser's hands: tokens with words, names and types. Expressions and queries are in files of their own.

use super::token::{Kind, Token, name_value, string_value};
use super::tree::{Expr, ExprId, Node, Tree};
use crate::error::{SqlError, SqlResult};
use crate::types::SqlType;

/// Deepest nesting of expressions and queries.
const DEPTH_MAX: u32 = 100;

/// Reads one statement's tokens.
pub(crate) struct Parser<'a> {
    pub(super) text: &'a str,
    pub(super) tokens: &'a [Token],
    pub(super) at: usize,
    pub(super) tree: Tree,
    depth: u32,
}

impl<'a> Parser<'a> {
    pub(crate) fn new(text: &'a str, tokens: &'a [Token]) -> Self {
        Self { text, tokens, at: 0, tree: Tree::default(), depth: 0 }
    }

    pub(crate) fn into_tree(self) -> Tree {
        self.tree
    }

    pub(crate) fn position(&self) -> usize {
        self.at
    }

    pub(crate) fn set_position(&mut self, at: usize) {
        self.at = at;
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.at >= self.tokens.len()
    }

    pub(super) fn kind(&self) -> Option<Kind> {
        self.kind_at(self.at)
    }

    pub(super) fn kind_at(&self, at: usize) -> Option<Kind> {
        self.tokens.get(at).map(|token| token.kind)
    }

    /// The text of a token, empty behind the last one.
    pub(super) fn token_text(&self, at: usize) -> &'a str {
        self.tokens.get(at).map_or("", |token| token.text(self.text))
    }

    /// Whether the token at hand is this unquoted word.
    pub(crate) fn is_word(&self, word: &str) -> bool {
        self.is_word_at(self.at, word)
    }

    pub(super) fn is_word_at(&self, at: usize, word: &str) -> bool {
        self.kind_at(at) == Some(Kind::Word) && self.token_text(at).eq_ignore_ascii_case(word)
    }

    pub(crate) fn take_word(&mut self, word: &str) -> bool {
        let is_there = self.is_word(word);
        self.at += usize::from(is_there);
        is_there
    }

    /// Takes all of these words in a row, or none.
    pub(crate) fn take_words(&mut self, words: &[&str]) -> bool {
        let are_there =
            words.iter().enumerate().all(|(offset, word)| self.is_word_at(self.at + offset, word));
        self.at += if are_there { words.len() } else { 0 };
        are_there
    }

    pub(super) fn take_any_word(&mut self, words: &[&str]) -> bool {
        words.iter().any(|word| self.take_word(word))
    }

    pub(crate) fn expect_word(&mut self, word: &str) -> SqlResult<()> {
        if self.take_word(word) { Ok(()) } else { Err(self.syntax_error()) }
    }

    pub(crate) fn take(&mut self, kind: Kind) -> bool {
        let is_there = self.kind() == Some(kind);
        self.at += usize::from(is_there);
        is_there
    }

    pub(crate) fn expect(&mut self, kind: Kind) -> SqlResult<()> {
        if self.take(kind) { Ok(()) } else { Err(self.syntax_error()) }
    }

    pub(super) fn is_operator(&self, text: &str) -> bool {
        self.kind() == Some(Kind::Operator) && self.token_text(self.at) == text
    }

    pub(super) fn take_operator(&mut self, text: &str) -> bool {
        let is_there = self.is_operator(text);
        self.at += usize::from(is_there);
        is_there
    }

    pub(crate) fn syntax_error(&self) -> SqlError {
        match self.tokens.get(self.at) {
            None => SqlError::new("42601", "syntax error at end of input").at(self.text.len()),
            Some(token) => {
                let message = format!("syntax error at or near \"{}\"", token.text(self.text));
                SqlError::new("42601", message).at(token.start as usize)
            }
        }
    }

    /// Runs `parse` one level deeper.
    pub(super) fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> SqlResult<T>) -> SqlResult<T> {
        if self.depth == DEPTH_MAX {
            return Err(SqlError::new("54001", "statement is nested too deeply"));
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    pub(super) fn add(&mut self, node: Node, first: usize) -> ExprId {
        self.tree.exprs.push(Expr { node, first, last: self.at.saturating_sub(1) });
        self.tree.exprs.len() - 1
    }

    /// An identifier, folded.
    pub(crate) fn name(&mut self) -> SqlResult<String> {
        match self.kind() {
            Some(kind @ (Kind::Word | Kind::QuotedName)) => {
                let name = name_value(kind, self.token_text(self.at));
                self.at += 1;
                Ok(name)
            }
            _ => Err(self.syntax_error()),
        }
    }

    /// `[schema.]name`; a catalogue (database) in front is dropped.
    pub(crate) fn qualified_name(&mut self) -> SqlResult<(Option<String>, String)> {
        let mut schema = None;
        let mut name = self.name()?;
        while self.take(Kind::Dot) {
            schema = Some(std::mem::replace(&mut name, self.name()?));
        }
        Ok((schema, name))
    }

    /// `(name, …)` where an opening parenthesis is at hand; empty otherwise.
    pub(crate) fn optional_names(&mut self) -> SqlResult<Vec<String>> {
        let mut names = Vec::new();
        if self.take(Kind::Open) {
            loop {
                names.push(self.name()?);
                if !self.take(Kind::Comma) {
                    break;
                }
            }
            self.expect(Kind::Close)?;
        }
        Ok(names)
    }

    pub(crate) fn string(&mut self) -> SqlResult<String> {
        match self.kind() {
            Some(kind @ (Kind::Text | Kind::EscapeText | Kind::DollarText)) => {
                let value = string_value(kind, self.token_text(self.at))?;
                self.at += 1;
                Ok(value)
            }
            _ => Err(self.syntax_error()),
        }
    }

    /// A type's name with its modifier and array marks.
    pub(crate) fn type_name(&mut self) -> SqlResult<SqlType> {
        let start = self.at;
        let ty = self.optional_type_name()?;
        ty.ok_or_else(|| {
            let offset = self.tokens.get(start).map_or(self.text.len(), |token| token.start as usize);
            let end = self.tokens.get(self.at.saturating_sub(1)).map_or(offset, |token| token.end as usize);
            let name = self.text.get(offset..end).unwrap_or_default().to_lowercase();
            SqlError::new("42704", format!("type \"{name}\" does not exist")).at(offset)
        })
    }

    /// Like [`Self::type_name`], `None` for a name that is no type here.
    pub(super) fn optional_type_name(&mut self) -> SqlResult<Option<SqlType>> {
        let name = match self.kind() {
            Some(Kind::QuotedName) if self.token_text(self.at) == "\"char\"" => {
                self.at += 1;
                "\"char\"".to_owned()
            }
            _ => self.qualified_type_words()?,
        };
        let mut name = name;
        let mut numbers = Vec::new();
        if self.kind() == Some(Kind::Open) && self.kind_at(self.at + 1) == Some(Kind::Integer) {
            self.at += 1;
            loop {
                numbers.push(self.token_text(self.at).parse().unwrap_or(u32::MAX));
                self.expect(Kind::Integer)?;
                if !self.take(Kind::Comma) {
                    break;
                }
            }
            self.expect(Kind::Close)?;
        }
        if matches!(name.as_str(), "timestamp" | "time") {
            if self.take_words(&["with", "time", "zone"]) {
                name += "tz";
            } else {
                self.take_words(&["without", "time", "zone"]);
            }
        }
        let mut is_array = self.take_word("array");
        while self.kind() == Some(Kind::OpenBracket) {
            self.at += 1;
            self.take(Kind::Integer);
            self.expect(Kind::CloseBracket)?;
            is_array = true;
        }
        Ok(SqlType::of_words(&name, &numbers, is_array))
    }

    fn qualified_type_words(&mut self) -> SqlResult<String> {
        let mut name = self.name()?;
        while self.take(Kind::Dot) {
            name = match self.kind() {
                Some(Kind::QuotedName) if self.token_text(self.at) == "\"char\"" => {
                    self.at += 1;
                    "\"char\"".to_owned()
                }
                _ => self.name()?,
            };
        }
        if name == "double" && self.take_word("precision") {
            name = "float8".to_owned();
        } else if matches!(name.as_str(), "character" | "char") && self.take_word("varying") {
            name = "varchar".to_owned();
        }
        Ok(name)
    }

    /// Steps over everything up to the parenthesis that closes the one just taken, that one included.
    pub(super) fn skip_to_close(&mut self) -> SqlResult<()> {
        let mut depth = 1;
        while depth > 0 {
            match self.kind() {
                Some(Kind::Open) => depth += 1,
                Some(Kind::Close) => depth -= 1,
                Some(_) => {}
                None => return Err(self.syntax_error()),
            }
            self.at += 1;
        }
        Ok(())
    }
}
