//! The statements that no server refuses where they are in place (rules B1, B5 and B10).

use std::borrow::Cow;

use memchr::{memchr_iter, memchr2_iter};
use onetrip_sql::{StatementKind, is_idle_comment};

use super::place_of;
use crate::rules::Rule;

/// A statement of transaction control, as far as its answer depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Control {
    /// What CommandComplete says.
    pub(crate) tag: &'static [u8],
    pub(crate) kind: Kind,
}

/// Whether a transaction may wait until its snapshot is a safe one (`GetSafeSnapshot` of PostgreSQL), by the modes of its
/// BEGIN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Deferral {
    /// Not, unless the session's defaults ask for it.
    #[default]
    None,
    /// It says DEFERRABLE; by what else it or the defaults say, it may wait.
    May,
    /// It waits: it says SERIALIZABLE, READ ONLY and DEFERRABLE, each once, and nothing else.
    Safe,
}

/// What it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Begin {
        /// A standby refuses it.
        needs_primary: bool,
        deferral: Deferral,
    },
    /// Makes a savepoint of this name, folded as the server does.
    Savepoint(Vec<u8>),
    Release(Vec<u8>),
}

/// Longest text that is looked into, in bytes: all modes twice.
const LENGTH_MAX: usize = 256;
/// Longest name that the server does not cut, in bytes (`NAMEDATALEN` less one).
const NAME_MAX: usize = 63;

/// What the server says when such a statement is done.
pub(crate) fn is_tag(tag: &[u8]) -> bool {
    [BEGIN, START_TRANSACTION, SAVEPOINT, RELEASE].contains(&tag)
}

const BEGIN: &[u8] = b"BEGIN";
const START_TRANSACTION: &[u8] = b"START TRANSACTION";
const SAVEPOINT: &[u8] = b"SAVEPOINT";
const RELEASE: &[u8] = b"RELEASE";

/// What such a statement begins with.
const VERBS: [&str; 4] = ["BEGIN", "START", "SAVEPOINT", "RELEASE"];

/// Reads `text` by the grammar of PostgreSQL's manual (BEGIN, START TRANSACTION, SAVEPOINT, RELEASE SAVEPOINT); `None`
/// for anything else.
pub(crate) fn control(text: &[u8]) -> Option<Control> {
    let any = || {
        let begin =
            Control { tag: BEGIN, kind: Kind::Begin { needs_primary: false, deferral: Deferral::None } };
        (!Rule::Grammar.is_kept()).then_some(begin)
    };
    known(text).or_else(|| text.starts_with(b"BEGIN").then(any).flatten())
}

/// What CommandComplete says to a statement that ends the transaction and begins no other (COMMIT, ROLLBACK of the
/// manual); `None` for anything else.
pub(crate) fn end(text: &[u8]) -> Option<&'static [u8]> {
    let text = without_comments(text, |verb| ENDS.iter().any(|(known, _)| verb == known.as_bytes()))?;
    let text = text.trim_matches(is_space);
    let text = text.strip_suffix(';').unwrap_or(text).to_ascii_uppercase();
    let words: Vec<&str> = words(&text).collect();
    let verb = match words.as_slice() {
        [verb] | [verb, "WORK" | "TRANSACTION"] => verb,
        [verb, "AND", "NO", "CHAIN"] | [verb, "WORK" | "TRANSACTION", "AND", "NO", "CHAIN"] => verb,
        _ => return None,
    };
    ENDS.iter().find(|(known, _)| known == verb).map(|(_, tag)| *tag)
}

/// Verbs that end a transaction, and what the server says to them.
const ENDS: [(&str, &[u8]); 4] =
    [("COMMIT", b"COMMIT"), ("END", b"COMMIT"), ("ROLLBACK", b"ROLLBACK"), ("ABORT", b"ROLLBACK")];

/// Whether the server says this when a transaction is over.
pub(crate) fn is_end_tag(tag: &[u8]) -> bool {
    ENDS.iter().any(|(_, known)| *known == tag)
}

fn known(text: &[u8]) -> Option<Control> {
    // Nearly every text ends here, and nothing has been allocated.
    let text = without_comments(text, |verb| VERBS.iter().any(|known| verb == known.as_bytes()))?;
    let text = text.trim_matches(is_space);
    let text = text.strip_suffix(';').unwrap_or(text);
    begin(text).or_else(|| savepoint(text))
}

fn begin(text: &str) -> Option<Control> {
    // A comma stands between modes, and may be left out there; only there is it a word of its own.
    let text = text.to_ascii_uppercase().replace(',', " , ");
    let words: Vec<&str> = words(&text).collect();
    let (tag, rest): (_, &[&str]) = match words.as_slice() {
        ["BEGIN", "WORK" | "TRANSACTION", rest @ ..] | ["BEGIN", rest @ ..] => (BEGIN, rest),
        ["START", "TRANSACTION", rest @ ..] => (START_TRANSACTION, rest),
        _ => return None,
    };
    modes(rest).map(|kind| Control { tag, kind })
}

/// What this text, which begins a transaction, says of waiting for a safe snapshot.
pub(crate) fn deferral(text: &[u8]) -> Deferral {
    match known(text) {
        Some(Control { kind: Kind::Begin { deferral, .. }, .. }) => deferral,
        _ if place_of(text, b"deferrable").is_some() => Deferral::May,
        _ => Deferral::None,
    }
}

fn savepoint(text: &str) -> Option<Control> {
    let words: Vec<&str> = words(text).collect();
    let is = |word: &str, keyword: &str| word.eq_ignore_ascii_case(keyword);
    let release = |written| name(written).map(|name| Control { tag: RELEASE, kind: Kind::Release(name) });
    match words.as_slice() {
        [verb, written] if is(verb, "SAVEPOINT") => {
            name(written).map(|name| Control { tag: SAVEPOINT, kind: Kind::Savepoint(name) })
        }
        [verb, written] if is(verb, "RELEASE") => release(written),
        [verb, noun, written] if is(verb, "RELEASE") && is(noun, "SAVEPOINT") => release(written),
        _ => None,
    }
}

/// A name that the server takes as it is. No keyword has a digit, so an unquoted name must.
fn name(written: &str) -> Option<Vec<u8>> {
    let is_plain = |name: &str| {
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        (1..=NAME_MAX).contains(&name.len()) && name.bytes().all(is_word)
    };
    if let Some(quoted) = written.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        return is_plain(quoted).then(|| quoted.as_bytes().to_vec());
    }
    let has_digit = written.bytes().any(|byte| byte.is_ascii_digit());
    let starts_well = !written.starts_with(|first: char| first.is_ascii_digit());
    (is_plain(written) && has_digit && starts_well).then(|| written.to_ascii_lowercase().into_bytes())
}

/// Whether statements of this sort leave savepoints alone; a text of several statements is a sort of its own.
pub(crate) fn leaves_savepoints(kind: StatementKind) -> bool {
    use StatementKind as S;
    kind.is_row_write()
        || kind.is_read()
        || matches!(kind, S::With | S::Set | S::Declare | S::CloseCursor | S::Copy | S::Explain | S::Lock)
        || matches!(kind, S::Ddl | S::Maintenance | S::Deallocate)
}

/// The text with a blank for each comment, as a server's lexer reads it; `None` where `is_verb` does not know its first
/// word, or a comment is one that a server may make something of. A comment's mark within quotes leaves a blank there,
/// and no name that is known here has one.
fn without_comments(text: &[u8], is_verb: impl Fn(&[u8]) -> bool) -> Option<Cow<'_, str>> {
    let start = blanks_end(text)?;
    let mut upper = [0; 16];
    let verb = first_word(&text[start..]);
    let upper = upper.get_mut(..verb.len())?;
    upper.copy_from_slice(verb);
    upper.make_ascii_uppercase();
    if !is_verb(upper) {
        return None;
    }
    let mut rest = &text[start..];
    let mut plain = Vec::new();
    while let Some(comment) = memchr2_iter(b'-', b'/', rest).find(|at| is_comment(&rest[*at..])) {
        plain.extend_from_slice(&rest[..comment]);
        plain.push(b' ');
        rest = &rest[comment..];
        rest = &rest[comment_end(rest)?..];
        if plain.len() > LENGTH_MAX {
            return None;
        }
    }
    let text = match plain.is_empty() {
        true => Cow::Borrowed(std::str::from_utf8(rest).ok()?),
        false => {
            plain.extend_from_slice(rest);
            Cow::Owned(String::from_utf8(plain).ok()?)
        }
    };
    Some(text).filter(|text| text.len() <= LENGTH_MAX)
}

/// Where the blanks and comments end that a text begins with.
fn blanks_end(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let rest = &text[at..];
        match rest.first() {
            Some(byte) if is_space(char::from(*byte)) => at += 1,
            Some(b'-' | b'/') if is_comment(rest) => at += comment_end(rest)?,
            _ => return Some(at),
        }
    }
}

fn is_comment(text: &[u8]) -> bool {
    text.starts_with(b"--") || text.starts_with(b"/*")
}

/// Where the comment ends that `text` begins with: one that is closed, nests none, and is idle.
fn comment_end(text: &[u8]) -> Option<usize> {
    let end = match text.starts_with(b"--") {
        true => text.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(text.len()),
        false => pair(text.get(2..)?, *b"*/")? + 4,
    };
    let body = &text[2..end];
    (is_idle_comment(body) && pair(body, *b"/*").is_none()).then_some(end)
}

/// Where these two bytes are side by side. Each statement's comments come by here, and for two bytes it costs more to make
/// a searcher than to search.
pub(super) fn pair(text: &[u8], [first, second]: [u8; 2]) -> Option<usize> {
    memchr_iter(first, text).find(|at| text.get(at + 1) == Some(&second))
}

pub(crate) fn first_word(text: &[u8]) -> &[u8] {
    text.trim_ascii_start().split(|byte| !byte.is_ascii_alphabetic()).next().unwrap_or_default()
}

pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(is_space).filter(|word| !word.is_empty())
}

/// What a transaction with these modes is; `None` if they are not modes.
pub(crate) fn modes(words: &[&str]) -> Option<Kind> {
    let mut needs_primary = false;
    // How often SERIALIZABLE, READ ONLY, DEFERRABLE, and anything else.
    let mut seen = [0; 4];
    let mut rest = words;
    while !rest.is_empty() {
        let (which, after) = match rest {
            ["ISOLATION", "LEVEL", "SERIALIZABLE", after @ ..] => {
                needs_primary = true;
                (0, after)
            }
            ["READ", "ONLY", after @ ..] => (1, after),
            ["DEFERRABLE", after @ ..] => (2, after),
            ["READ", "WRITE", after @ ..] => {
                needs_primary = true;
                (3, after)
            }
            ["ISOLATION", "LEVEL", "REPEATABLE", "READ", after @ ..]
            | ["ISOLATION", "LEVEL", "READ", "COMMITTED" | "UNCOMMITTED", after @ ..]
            | ["NOT", "DEFERRABLE", after @ ..] => (3, after),
            _ => return None,
        };
        seen[which] += 1;
        rest = match after {
            [","] => return None,
            [",", more @ ..] => more,
            more => more,
        };
    }
    let deferral = match seen {
        [1, 1, 1, 0] => Deferral::Safe,
        [_, _, 0, _] => Deferral::None,
        _ => Deferral::May,
    };
    Some(Kind::Begin { needs_primary, deferral })
}

/// White space to every server; the lexer of PostgreSQL 16 and later knows one more.
pub(crate) fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r')
}

#[cfg(test)]
mod tests {
    use onetrip_sql::Lifter;

    use super::*;

    fn needs_primary(text: &str) -> Option<bool> {
        match control(text.as_bytes())?.kind {
            Kind::Begin { needs_primary, .. } => Some(needs_primary),
            _ => None,
        }
    }

    #[test]
    fn a_safe_snapshot_is_asked_for_by_three_modes() {
        for text in [
            "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE",
            "start transaction deferrable, read only, isolation level serializable;",
        ] {
            assert_eq!(deferral(text.as_bytes()), Deferral::Safe, "{text}");
        }
        for text in [
            "BEGIN",
            "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY",
            "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY NOT DEFERRABLE",
            "BEGIN; SELECT 1",
        ] {
            assert_eq!(deferral(text.as_bytes()), Deferral::None, "{text}");
        }
        for text in [
            "BEGIN DEFERRABLE",
            "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE READ WRITE",
            "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE; SET TRANSACTION READ WRITE",
            "BEGIN READ ONLY DEFERRABLE READ ONLY",
            "BEGIN /* not /* yet */ known */ read only Deferrable",
        ] {
            assert_eq!(deferral(text.as_bytes()), Deferral::May, "{text}");
        }
    }

    #[test]
    fn every_begin_of_the_manual_is_known() {
        for text in [
            "BEGIN",
            "begin;",
            " Begin Work ; ",
            "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
            "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY NOT DEFERRABLE",
            "BEGIN\n\tREAD ONLY,DEFERRABLE",
        ] {
            assert_eq!(needs_primary(text), Some(false), "{text}");
            assert_eq!(control(text.as_bytes()).map(|control| control.tag), Some(&b"BEGIN"[..]));
        }
        assert_eq!(needs_primary("BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE"), Some(true));
        assert_eq!(needs_primary("START TRANSACTION READ WRITE"), Some(true));
        let started = control(b"START TRANSACTION").map(|control| control.tag);
        assert_eq!(started, Some(&b"START TRANSACTION"[..]));
    }

    #[test]
    fn savepoints_are_known_by_names_that_cannot_be_refused() {
        let kind = |text: &str| control(text.as_bytes()).map(|control| control.kind);
        let (save, release) =
            (|name: &str| Kind::Savepoint(name.into()), |name: &str| Kind::Release(name.into()));
        for (text, expected) in [
            ("SAVEPOINT \"s1407_x1\"", save("s1407_x1")),
            ("savepoint SP_1;", save("sp_1")),
            ("SAVEPOINT \"Select\"", save("Select")),
            ("RELEASE SAVEPOINT __asyncpg_savepoint_1__;", release("__asyncpg_savepoint_1__")),
            ("release \"_pg3_1\"", release("_pg3_1")),
        ] {
            assert_eq!(kind(text), Some(expected), "{text}");
        }
        let long = format!("SAVEPOINT a1{}", "x".repeat(62));
        for text in [
            "SAVEPOINT",
            "SAVEPOINT select",
            "SAVEPOINT a",
            "SAVEPOINT 1a",
            "SAVEPOINT \"a b1\"",
            "SAVEPOINT \"a\"\"b1\"",
            "SAVEPOINT a1 b1",
            "SAVEPOINT U&\"a1\"",
            "SAVEPOINT \u{e4}1",
            "RELEASE SAVEPOINT",
            "ROLLBACK TO a1",
            &long,
        ] {
            assert_eq!(kind(text), None, "{text}");
        }
    }

    #[test]
    fn comments_are_blanks() {
        for text in [
            "BEGIN -- now",
            "/* app */ BEGIN",
            "-- a\nBEGIN",
            "BEGIN/**/WORK;/* route='/a',traceparent='00-1' */",
            "/*a*/ /*b*/BEGIN--c\r--d",
        ] {
            assert_eq!(needs_primary(text), Some(false), "{text}");
        }
        let long = format!("BEGIN /* {} */", "x".repeat(10_000));
        assert_eq!(needs_primary(&long), Some(false), "a comment counts for nothing");
        assert_eq!(end(b"COMMIT/* route */"), Some(&b"COMMIT"[..]));
        assert_eq!(end(b"/* route */ROLLBACK -- all"), Some(&b"ROLLBACK"[..]));
        assert_eq!(end(b"COMMIT /* route */ AND CHAIN"), None);
        let saved = Some(Kind::Savepoint(b"a1".to_vec()));
        assert_eq!(control(b"SAVEPOINT/* x */\"a1\"").map(|control| control.kind), saved);
        for text in
            ["SAVEPOINT \"a1/* x */\"", "SAVEPOINT \"a1--\"", "SAVEPOINT \"/**/a1\"", "SAVEPOINT \"a--\n1\""]
        {
            assert_eq!(control(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn anything_else_is_not() {
        for text in [
            "",
            ";",
            "BEGIN;;",
            "BEGIN; SELECT 1",
            "BEGIN /* now",
            "/* a /* b */ BEGIN */",
            "BEGIN /*+ Set(jit off) */",
            "BEGIN /* \u{e9}t\u{e9} */",
            "-- BEGIN",
            "BEGIN/",
            "BEGIN READ",
            "BEGIN ,READ ONLY",
            "BEGIN READ ONLY,",
            "BEGIN READ ONLY,,DEFERRABLE",
            "BEGIN ISOLATION LEVEL SNAPSHOT",
            "BEGIN ATOMIC",
            "START",
            "START TRANSACTION WORK",
            "BEGIN\u{a0}WORK",
            "BEGIN\x0bWORK",
            "COMMIT",
        ] {
            assert_eq!(known(text.as_bytes()), None, "{text}");
        }
        let long = format!("BEGIN {}", "READ ONLY ".repeat(40));
        assert_eq!(known(long.as_bytes()), None);
    }

    #[test]
    fn only_statements_of_known_kinds_leave_savepoints_alone() {
        let mut lifter = Lifter::new();
        let mut leaves = |text: &str| leaves_savepoints(lifter.lift(text.as_bytes(), true).kind());
        for text in ["SELECT $1", "insert into t values ($1);", "WITH x AS (SELECT $1) TABLE x"] {
            assert!(leaves(text), "{text}");
        }
        for text in ["", "ROLLBACK TO a1", "SELECT $1; COMMIT AND CHAIN", "END", "CALL p()", "SELECTED"] {
            assert!(!leaves(text), "{text}");
        }
    }
}
