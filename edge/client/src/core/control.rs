//! What a statement does to the transaction, by its first words. The client uses it to refuse calls that cannot work,
//! and to know beforehand where a pipeline will stand. The server's ReadyForQuery takes precedence.

use onetrip_sql::scan;

/// Kinds of statements that a pipeline has to tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Control {
    /// All others.
    #[default]
    None,
    /// Begins a transaction block.
    Begin,
    /// Ends one, and may fail: COMMIT, PREPARE TRANSACTION.
    Commit,
    /// Ends one by undoing it.
    Rollback,
    /// Moves within one.
    Savepoint,
    /// Has data of its own: COPY.
    Copy,
}

impl Control {
    pub(crate) fn of(text: &str) -> Self {
        let mut words = Words { rest: text };
        let Some(first) = words.next() else { return Self::None };
        let is = |word: &str| first.eq_ignore_ascii_case(word);
        if is("BEGIN") || is("START") {
            Self::Begin
        } else if is("COMMIT") || is("END") {
            words
                .next_ends_the_block()
                .map_or(Self::None, |ends| if ends { Self::Commit } else { Self::None })
        } else if is("ROLLBACK") || is("ABORT") {
            match words.next_ends_the_block() {
                Some(true) => Self::Rollback,
                Some(false) => Self::None,
                None => Self::Savepoint,
            }
        } else if is("SAVEPOINT") || is("RELEASE") {
            Self::Savepoint
        } else if is("PREPARE") && words.next().is_some_and(|word| word.eq_ignore_ascii_case("TRANSACTION")) {
            Self::Commit
        } else if is("COPY") {
            Self::Copy
        } else {
            Self::None
        }
    }
}

/// The words of a statement, without what stands between them.
struct Words<'a> {
    rest: &'a str,
}

impl<'a> Words<'a> {
    /// Whether the rest ends the block (`AND CHAIN` begins another at once); `None` for `TO` a savepoint.
    fn next_ends_the_block(&mut self) -> Option<bool> {
        let mut previous = "";
        for word in self.by_ref() {
            if word.eq_ignore_ascii_case("TO") || word.eq_ignore_ascii_case("PREPARED") {
                return None;
            }
            if word.eq_ignore_ascii_case("CHAIN") {
                return Some(previous.eq_ignore_ascii_case("NO"));
            }
            previous = word;
        }
        Some(true)
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let (start, _) = scan::gap_end(self.rest.as_bytes(), 0);
        self.rest = self.rest.get(start..).unwrap_or_default();
        let end = self.rest.find(|sign: char| !sign.is_ascii_alphabetic()).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        (!word.is_empty()).then_some(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_known_by_their_first_words() {
        for (text, kind) in [
            ("BEGIN", Control::Begin),
            ("start transaction read only", Control::Begin),
            ("/* a /* b */ */ -- c\n commit work;", Control::Commit),
            ("COMMIT AND NO CHAIN", Control::Commit),
            ("COMMIT AND CHAIN", Control::None),
            ("END", Control::Commit),
            ("COMMIT PREPARED 'x'", Control::None),
            ("ROLLBACK", Control::Rollback),
            ("rollback work to savepoint a", Control::Savepoint),
            ("ABORT", Control::Rollback),
            ("RELEASE a", Control::Savepoint),
            ("PREPARE TRANSACTION 'x'", Control::Commit),
            ("PREPARE x AS SELECT 1", Control::None),
            ("COPY t FROM STDIN", Control::Copy),
            ("SELECT 1", Control::None),
            ("beginning", Control::None),
            ("", Control::None),
            ("/* open", Control::None),
        ] {
            assert_eq!(Control::of(text), kind, "{text}");
        }
    }
}
