//! The BEGINs that no server refuses (rules B1 and B5).

use super::Rule;

/// A BEGIN as far as its answer depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Begin {
    /// What CommandComplete says.
    pub(crate) tag: &'static [u8],
    /// A standby refuses it.
    pub(crate) needs_primary: bool,
}

/// Longest text that is looked into, in bytes: all modes twice.
const LENGTH_MAX: usize = 256;

/// Reads `text` by the grammar of PostgreSQL's manual (BEGIN, START TRANSACTION); `None` for anything else.
pub(crate) fn begin(text: &[u8]) -> Option<Begin> {
    let any = || (!Rule::Grammar.is_kept()).then_some(Begin { tag: b"BEGIN", needs_primary: false });
    known(text).or_else(|| text.starts_with(b"BEGIN").then(any).flatten())
}

fn known(text: &[u8]) -> Option<Begin> {
    if text.len() > LENGTH_MAX {
        return None;
    }
    let text = std::str::from_utf8(text).ok()?.trim_matches(is_space);
    let text = text.strip_suffix(';').unwrap_or(text);
    // A comma stands between modes, and may be left out there; only there is it a word of its own.
    let text = text.to_ascii_uppercase().replace(',', " , ");
    let words: Vec<&str> = text.split(is_space).filter(|word| !word.is_empty()).collect();
    let (tag, rest): (&[u8], &[&str]) = match words.as_slice() {
        ["BEGIN", "WORK" | "TRANSACTION", rest @ ..] | ["BEGIN", rest @ ..] => (b"BEGIN", rest),
        ["START", "TRANSACTION", rest @ ..] => (b"START TRANSACTION", rest),
        _ => return None,
    };
    modes(rest).map(|needs_primary| Begin { tag, needs_primary })
}

/// Whether one of the modes is refused by a standby; `None` if they are not modes.
fn modes(words: &[&str]) -> Option<bool> {
    let mut needs_primary = false;
    let mut rest = words;
    while !rest.is_empty() {
        let after = match rest {
            ["ISOLATION", "LEVEL", "SERIALIZABLE", after @ ..] | ["READ", "WRITE", after @ ..] => {
                needs_primary = true;
                after
            }
            ["ISOLATION", "LEVEL", "REPEATABLE", "READ", after @ ..]
            | ["ISOLATION", "LEVEL", "READ", "COMMITTED" | "UNCOMMITTED", after @ ..]
            | ["READ", "ONLY", after @ ..]
            | ["NOT", "DEFERRABLE", after @ ..]
            | ["DEFERRABLE", after @ ..] => after,
            _ => return None,
        };
        rest = match after {
            [","] => return None,
            [",", more @ ..] => more,
            more => more,
        };
    }
    Some(needs_primary)
}

/// White space to every server; the lexer of PostgreSQL 16 and later knows one more.
fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_begin_of_the_manual_is_known() {
        let plain = Some(Begin { tag: b"BEGIN", needs_primary: false });
        for text in [
            "BEGIN",
            "begin;",
            " Begin Work ; ",
            "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
            "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY NOT DEFERRABLE",
            "BEGIN\n\tREAD ONLY,DEFERRABLE",
        ] {
            assert_eq!(begin(text.as_bytes()), plain, "{text}");
        }
        let writes = |text: &str| begin(text.as_bytes()).map(|begin| begin.needs_primary);
        assert_eq!(writes("BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE"), Some(true));
        assert_eq!(writes("START TRANSACTION READ WRITE"), Some(true));
        assert_eq!(begin(b"START TRANSACTION").map(|begin| begin.tag), Some(&b"START TRANSACTION"[..]));
    }

    #[test]
    fn anything_else_is_not() {
        for text in [
            "",
            ";",
            "BEGIN;;",
            "BEGIN; SELECT 1",
            "BEGIN -- now",
            "/* app */ BEGIN",
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
            assert_eq!(begin(text.as_bytes()), None, "{text}");
        }
        let long = format!("BEGIN {}", "READ ONLY ".repeat(40));
        assert_eq!(begin(long.as_bytes()), None);
    }
}
