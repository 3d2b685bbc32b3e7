//! Values that a trace must not keep though they are no literals: those of settings that users define, such as
//! `SET app.token = word` and `-c app.token=word` of a startup packet.

use std::borrow::Cow;
use std::ops::Range;

use onetrip_sql::{Lifted, SettingValue, scan};

/// What stands in place of a value.
const MASK: &[u8] = b"***";
/// What statements begin with that may set one.
const VERBS: [&[u8]; 3] = [b"SET", b"ALTER", b"CREATE"];
/// Settings of this program hold nothing that is secret.
const OWN: &[u8] = b"onetrip.";

/// A template without the words that it sets such settings to: by SET, or by the SET of ALTER and CREATE (of roles, databases,
/// functions and the system).
pub(crate) fn kept_template<'a>(lifted: &Lifted<'a>) -> Cow<'a, [u8]> {
    let template = lifted.template();
    let mut secret = values_in(template);
    if let Some(SettingValue::Word(span)) = lifted.facts().setting {
        let is_secret = lifted.name().is_some_and(|name| is_of_users(name.as_written()));
        let value = span.start as usize..span.end as usize;
        if is_secret && !secret.contains(&value) && !is_default(span.of(template)) {
            secret.push(value);
        }
    }
    if secret.is_empty() {
        return Cow::Borrowed(template);
    }
    let mut kept = Vec::with_capacity(template.len());
    let mut copied = 0;
    for value in secret {
        kept.extend_from_slice(template.get(copied..value.start).unwrap_or_default());
        kept.extend_from_slice(MASK);
        copied = value.end;
    }
    kept.extend_from_slice(template.get(copied..).unwrap_or_default());
    Cow::Owned(kept)
}

/// Places of such words, in order.
fn values_in(template: &[u8]) -> Vec<Range<usize>> {
    let mut values = Vec::new();
    let begins = |text: &[u8]| VERBS.iter().any(|verb| starts_with_word(text, verb));
    if !begins(template) && !template.contains(&b';') {
        return values;
    }
    let tokens = tokens(template);
    let text = |token: &Range<usize>| &template[token.clone()];
    for statement in tokens.split(|token| text(token) == b";") {
        if !statement.first().is_some_and(|first| begins(&template[first.start..])) {
            continue;
        }
        for (place, _) in statement.iter().enumerate().filter(|(_, token)| is_word(text(token), b"SET")) {
            let mut rest = &statement[place + 1..];
            if rest
                .first()
                .is_some_and(|token| is_word(text(token), b"LOCAL") || is_word(text(token), b"SESSION"))
            {
                rest = &rest[1..];
            }
            let is_assigned = |token: &Range<usize>| text(token) == b"=" || is_word(text(token), b"TO");
            let Some(end) = rest.iter().position(is_assigned) else { continue };
            let name: Vec<u8> =
                rest[..end].iter().flat_map(text).filter(|byte| **byte != b'"').copied().collect();
            let is_name = rest[..end].iter().skip(1).step_by(2).all(|token| text(token) == b".");
            if !is_name || !is_of_users(&name) {
                continue;
            }
            for (value, comma) in pairs(&rest[end + 1..]) {
                let word = text(value);
                if (word[0] == b'"' || is_word_start(word[0])) && !is_default(word) {
                    values.push(value.clone());
                }
                if comma.is_none_or(|comma| text(comma) != b",") {
                    break;
                }
            }
        }
    }
    values
}

/// Each token of a list, and what stands behind it.
fn pairs(list: &[Range<usize>]) -> impl Iterator<Item = (&Range<usize>, Option<&Range<usize>>)> {
    list.chunks(2).map(|pair| (&pair[0], pair.get(1)))
}

/// Words, quoted names and single other bytes of a template, which holds no literals and no comments.
fn tokens(template: &[u8]) -> Vec<Range<usize>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(byte) = template.get(at) {
        let end = match byte {
            b'"' => scan::quoted_identifier_end(template, at).0,
            byte if is_word_start(*byte) || *byte == b'$' || byte.is_ascii_digit() => {
                scan::word_end(template, at)
            }
            _ => at + 1,
        };
        if !byte.is_ascii_whitespace() {
            tokens.push(at..end);
        }
        at = end;
    }
    tokens
}

fn is_word_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || !byte.is_ascii()
}

fn is_word(token: &[u8], word: &[u8]) -> bool {
    token.eq_ignore_ascii_case(word)
}

fn starts_with_word(text: &[u8], word: &[u8]) -> bool {
    text.get(..word.len()).is_some_and(|start| is_word(start, word))
}

fn is_default(word: &[u8]) -> bool {
    is_word(word, b"DEFAULT")
}

/// A startup parameter's value without those of such settings.
pub(crate) fn kept_parameter<'a>(name: &[u8], value: &'a [u8]) -> Cow<'a, [u8]> {
    match name {
        b"options" if value.contains(&b'.') => Cow::Owned(kept_options(value)),
        name if is_of_users(name) => Cow::Borrowed(MASK),
        _ => Cow::Borrowed(value),
    }
}

/// Words of a server's command line, as `pg_split_opts` tells them apart: a backslash in front of a blank takes it along.
fn kept_options(options: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(options.len());
    let mut follows = false;
    let mut rest = options;
    while let Some(first) = rest.first() {
        if first.is_ascii_whitespace() {
            kept.push(*first);
            rest = &rest[1..];
            continue;
        }
        let mut is_escaped = false;
        let ends = |byte: &u8| {
            let is_end = byte.is_ascii_whitespace() && !is_escaped;
            is_escaped = *byte == b'\\' && !is_escaped;
            is_end
        };
        let (word, behind) = rest.split_at(rest.iter().position(ends).unwrap_or(rest.len()));
        rest = behind;
        let assignment = match word {
            word if std::mem::take(&mut follows) => word,
            [b'-', b'-' | b'c', assignment @ ..] => assignment,
            _ => b"",
        };
        follows = word == b"-c";
        let equals = assignment.iter().position(|byte| *byte == b'=').unwrap_or_default();
        if is_of_users(&assignment[..equals]) {
            kept.extend_from_slice(&word[..=word.len() - assignment.len() + equals]);
            kept.extend_from_slice(MASK);
        } else {
            kept.extend_from_slice(word);
        }
    }
    kept
}

/// Whether users define settings of this name: a server's own have no dot.
fn is_of_users(name: &[u8]) -> bool {
    let is_own = name.len() >= OWN.len() && name[..OWN.len()].eq_ignore_ascii_case(OWN);
    name.contains(&b'.') && !is_own
}

#[cfg(test)]
mod tests {
    use onetrip_sql::Lifter;

    use super::*;

    #[test]
    fn a_word_that_a_setting_of_users_is_set_to_is_not_kept() {
        for (text, kept) in [
            ("SET app.token = s3cret", "SET app.token = ***"),
            ("set local App.Token to s3cret", "set local App.Token to ***"),
            ("SET SESSION app . token = \"s3cret\"", "SET SESSION app . token = ***"),
            ("SET \"app.token\" TO s3cret; SELECT 1", "SET \"app.token\" TO ***; SELECT $1"),
            ("SET app.token = 's3cret'", "SET app.token = $1"),
            ("SET app.token = DEFAULT", "SET app.token = DEFAULT"),
            ("SET search_path = shop", "SET search_path = shop"),
            ("SET onetrip.scope = import", "SET onetrip.scope = import"),
            ("SELECT a.b = c FROM a", "SELECT a.b = c FROM a"),
            ("SET app.token = s3cret, \"s 4\", 5", "SET app.token = ***, ***, $1"),
            (
                "SELECT 1; SET app.token TO s3cret, s4cret; SELECT 1",
                "SELECT $1; SET app.token TO ***, ***; SELECT $2",
            ),
            (
                "ALTER ROLE bob IN DATABASE shop SET app.token TO s3cret",
                "ALTER ROLE bob IN DATABASE shop SET app.token TO ***",
            ),
            (
                "alter database shop set \"app\".token = s3cret, x",
                "alter database shop set \"app\".token = ***, ***",
            ),
            ("ALTER SYSTEM SET app.token = s3cret", "ALTER SYSTEM SET app.token = ***"),
            ("ALTER ROLE bob SET search_path TO a, b", "ALTER ROLE bob SET search_path TO a, b"),
            ("ALTER ROLE bob SET app.token FROM CURRENT", "ALTER ROLE bob SET app.token FROM CURRENT"),
            (
                "CREATE FUNCTION f() RETURNS int SET app.token = s3cret SET work_mem = x LANGUAGE sql AS 'SELECT 1'",
                "CREATE FUNCTION f() RETURNS int SET app.token = *** SET work_mem = x LANGUAGE sql AS $1",
            ),
            ("UPDATE t SET a.b = c, d = e", "UPDATE t SET a.b = c, d = e"),
            ("SELECT 1; UPDATE t SET a.b = c", "SELECT $1; UPDATE t SET a.b = c"),
        ] {
            let mut lifter = Lifter::new();
            let lifted = lifter.lift(text.as_bytes(), true);
            assert_eq!(String::from_utf8_lossy(&kept_template(&lifted)), kept);
        }
    }

    #[test]
    fn a_startup_packet_is_kept_without_values_of_such_settings() {
        let kept = |name: &str, value: &str| {
            String::from_utf8_lossy(&kept_parameter(name.as_bytes(), value.as_bytes())).into_owned()
        };
        assert_eq!(kept("app.token", "s3cret"), "***");
        assert_eq!(kept("database", "shop.eu"), "shop.eu");
        for (options, rest) in [
            ("-c app.token=s3cret", "-c app.token=***"),
            ("-capp.token=s3\\ cret -c geqo=off", "-capp.token=*** -c geqo=off"),
            ("--app.my-token=a\\\\ --work-mem=4.5MB", "--app.my-token=*** --work-mem=4.5MB"),
            ("  -c  onetrip.lob_prefetch=0\t-c a.b=", "  -c  onetrip.lob_prefetch=0\t-c a.b=***"),
            ("-c app.token", "-c app.token"),
            ("-c", "-c"),
            ("-e x.y=z", "-e x.y=z"),
        ] {
            assert_eq!(kept("options", options), rest);
        }
    }
}
