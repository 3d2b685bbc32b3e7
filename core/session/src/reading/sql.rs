//! The forms in which drivers write cursors in SQL.

use std::num::NonZeroU32;

use super::grammar::is_space;

/// Longest FETCH that is looked into, in bytes.
const FETCH_BYTES_MAX: usize = 256;
/// Longest name that the server does not cut, in bytes.
pub(crate) const NAME_BYTES_MAX: usize = 63;

/// `DECLARE name [NO SCROLL] CURSOR [WITH HOLD] FOR query`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Declare<'a> {
    pub(crate) name: Vec<u8>,
    pub(crate) is_held: bool,
    pub(crate) no_scroll: bool,
    pub(crate) query: &'a str,
}

/// `FETCH [FORWARD] n FROM name`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fetch {
    pub(crate) name: Vec<u8>,
    pub(crate) rows: NonZeroU32,
}

/// Reads a DECLARE; `None` for other forms.
pub(crate) fn declare(text: &[u8]) -> Option<Declare<'_>> {
    let text = std::str::from_utf8(text).ok()?;
    let mut rest = text.trim_start_matches(is_space);
    rest = keyword(rest, "DECLARE")?;
    let (name, after) = name(rest)?;
    rest = after;
    let (mut no_scroll, mut is_held) = (false, false);
    if let Some(after) = keyword(rest, "NO") {
        rest = keyword(after, "SCROLL")?;
        no_scroll = true;
    }
    rest = keyword(rest, "CURSOR")?;
    if let Some(after) = keyword(rest, "WITH") {
        rest = keyword(after, "HOLD")?;
        is_held = true;
    } else if let Some(after) = keyword(rest, "WITHOUT") {
        rest = keyword(after, "HOLD")?;
    }
    Some(Declare { name, is_held, no_scroll, query: keyword(rest, "FOR")? })
}

/// Reads a FETCH that goes forward by a number of rows; `None` for other forms.
pub(crate) fn fetch(text: &[u8]) -> Option<Fetch> {
    if text.len() > FETCH_BYTES_MAX {
        return None;
    }
    let text = std::str::from_utf8(text).ok()?.trim_matches(is_space);
    let text = text.strip_suffix(';').unwrap_or(text);
    let mut rest = keyword(text, "FETCH")?;
    rest = keyword(rest, "FORWARD").unwrap_or(rest);
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    // The grammar takes an int4 here.
    let rows = rest[..digits].parse::<i32>().ok().and_then(|rows| u32::try_from(rows).ok())?;
    let rows = NonZeroU32::new(rows)?;
    let after = rest[digits..].strip_prefix(is_space)?.trim_start_matches(is_space);
    let (name, after) = name(keyword(after, "FROM").or_else(|| keyword(after, "IN"))?)?;
    after.is_empty().then_some(Fetch { name, rows })
}

/// The rest behind a keyword and the space that follows it.
fn keyword<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let found = text.get(..word.len())?;
    let rest = &text[word.len()..];
    let is_over =
        rest.is_empty() || rest.starts_with(is_space) || rest.starts_with('"') || rest.starts_with('(');
    (found.eq_ignore_ascii_case(word) && is_over).then(|| rest.trim_start_matches(is_space))
}

/// A name, folded as the server does, and the rest behind it.
fn name(text: &str) -> Option<(Vec<u8>, &str)> {
    let (name, rest) = match text.strip_prefix('"') {
        Some(quoted) => {
            let (name, rest) = quoted.split_once('"')?;
            if rest.starts_with('"') {
                return None;
            }
            (name.to_owned(), rest)
        }
        None => {
            let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            let length = text.bytes().take_while(|byte| is_word(*byte)).count();
            if text.starts_with(|first: char| first.is_ascii_digit()) {
                return None;
            }
            (text[..length].to_ascii_lowercase(), &text[length..])
        }
    };
    let is_apart = rest.is_empty() || rest.starts_with(is_space);
    let is_good = (1..=NAME_BYTES_MAX).contains(&name.len()) && name.is_ascii() && is_apart;
    is_good.then(|| (name.into_bytes(), rest.trim_start_matches(is_space)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_of_drivers_are_known() {
        let rows = |text: &str| fetch(text.as_bytes()).map(|fetch| (fetch.rows.get(), fetch.name));
        for text in ["FETCH FORWARD 10 FROM \"c\"", "fetch 10 from C;", " FETCH 10 IN c "] {
            assert_eq!(rows(text), Some((10, b"c".to_vec())), "{text}");
        }
        for text in [
            "FETCH c",
            "FETCH ALL FROM c",
            "FETCH 0 FROM c",
            "FETCH 2147483648 FROM c",
            "FETCH -1 FROM c",
            "FETCH BACKWARD 1 FROM c",
            "FETCH 10 c",
            "FETCH 10 FROM c; SELECT 1",
            "FETCH 10 FROM \"c\"\"d\"",
            "FETCH 10 FROM c -- x",
            "FETCH 10FROM c",
            "MOVE 10 FROM c",
        ] {
            assert_eq!(rows(text), None, "{text}");
        }
        let read =
            |text: &'static str| declare(text.as_bytes()).map(|one| (one.is_held, one.no_scroll, one.query));
        assert_eq!(read("DECLARE \"c\" CURSOR FOR SELECT 1"), Some((false, false, "SELECT 1")));
        let django = "DECLARE \"_django_curs_1\" NO SCROLL CURSOR WITH HOLD FOR SELECT 1";
        assert_eq!(read(django), Some((true, true, "SELECT 1")));
        let bare = "declare c no scroll cursor without hold for (select 1)";
        assert_eq!(read(bare), Some((false, true, "(select 1)")));
        for text in ["DECLARE c BINARY CURSOR FOR SELECT 1", "DECLARE c SCROLL CURSOR FOR SELECT 1"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
