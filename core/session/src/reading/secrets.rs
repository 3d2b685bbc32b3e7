//! Values that a trace must not keep though they are no literals: those of settings that users define, such as
//! `SET app.token = word` and `-c app.token=word` of a startup packet.

use std::borrow::Cow;
use std::ops::Range;

use onetrip_sql::{Lifted, scan};

/// What stands in place of a value.
const MASK: &[u8] = b"***";
/// Settings of this program hold nothing that is secret.
const OWN: &[u8] = b"onetrip.";
/// What statements begin with that may set one, and where.
const VERBS: [(&[u8], Place); 5] = [
    (b"SET", Place::First),
    (b"ALTER", Place::Last),
    (b"CREATE", Place::Any),
    (b"EXPLAIN", Place::Behind(&[b"EXPLAIN"])),
    (b"PREPARE", Place::Behind(&[b"AS"])),
];
/// For whom it is set.
const SCOPES: [&[u8]; 5] = [b"LOCAL", b"SESSION", b"GLOBAL", b"PERSIST", b"PERSIST_ONLY"];
/// Letters of a server's options that take an argument (`process_postgres_switches`); `c` and `-` set something.
const WITH_ARGUMENT: &[u8] = b"BCDNSWcdfhkprtv-";

/// A template without the words that it sets such settings to: by SET, or by the SET of ALTER and CREATE (of roles, databases,
/// functions and the system). Words that no server takes there are left out, too: a secret whose quotes were forgotten looks so.
pub(crate) fn kept_template<'a>(lifted: &Lifted<'a>) -> Cow<'a, [u8]> {
    let template = lifted.template();
    let secret = values_in(template);
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
    let begins = |text: &[u8]| VERBS.iter().any(|(verb, _)| starts_with_word(text, verb));
    let mut values = Vec::new();
    if !begins(template) && !template.contains(&b';') {
        return values;
    }
    let tokens = Tokens { text: template, list: &tokens(template) };
    for statement in tokens.list.split(|token| tokens.is(token, b";")) {
        let verb = statement.first().and_then(|first| VERBS.iter().find(|(verb, _)| tokens.is(first, verb)));
        let Some((_, place)) = verb else { continue };
        for (at, _) in statement.iter().enumerate().filter(|(_, token)| tokens.is(token, b"SET")) {
            let before = at.checked_sub(1).and_then(|before| statement.get(before));
            let is_clause = match place {
                Place::First => before.is_none(),
                Place::Behind(words) => {
                    before.is_some_and(|before| words.iter().any(|word| tokens.is(before, word)))
                }
                Place::Last | Place::Any => true,
            };
            if is_clause {
                tokens.values_of(&statement[at + 1..], matches!(place, Place::Any), &mut values);
            }
        }
    }
    values
}

/// Where in a statement a SET of a setting stands.
enum Place {
    First,
    /// Behind one of these words. No server takes it.
    Behind(&'static [&'static [u8]]),
    /// It is the last clause.
    Last,
    /// Other clauses may follow.
    Any,
}

/// A template's tokens.
#[derive(Clone, Copy)]
struct Tokens<'t> {
    text: &'t [u8],
    list: &'t [Range<usize>],
}

impl Tokens<'_> {
    fn bytes(&self, token: &Range<usize>) -> &[u8] {
        self.text.get(token.clone()).unwrap_or_default()
    }

    fn is(&self, token: &Range<usize>, word: &[u8]) -> bool {
        is_word(self.bytes(token), word)
    }

    /// Notes the words that are given to settings of users in `rest`, which stands behind SET.
    fn values_of(&self, mut rest: &[Range<usize>], may_go_on: bool, values: &mut Vec<Range<usize>>) {
        while let Some((name, given)) = self.assignment(rest) {
            let is_secret = is_of_users(&name);
            let mut is_first = true;
            rest = &[];
            for (at, token) in given.iter().enumerate() {
                let is_comma = self.is(token, b",");
                if is_comma && self.assignment(&given[at + 1..]).is_some() {
                    rest = &given[at + 1..]; // MySQL sets several at once
                    break;
                }
                let is_separate = is_comma || self.is(token, b".");
                let follows = at
                    .checked_sub(1)
                    .is_some_and(|before| !self.is(&given[before], b",") && !self.is(&given[before], b"."));
                if may_go_on && !is_first && !is_separate && follows {
                    return; // another clause
                }
                is_first = false;
                let word = self.bytes(token);
                let is_word = word.first().is_some_and(|first| *first == b'"' || is_word_start(*first));
                if is_secret && is_word && !is_default(word) {
                    values.push(token.clone());
                }
            }
        }
    }

    /// The name of the setting that `rest` begins with, without quotes, and what stands behind its `=` or TO.
    fn assignment<'r>(&self, rest: &'r [Range<usize>]) -> Option<(Vec<u8>, &'r [Range<usize>])> {
        let is_at = |token: &&Range<usize>| self.is(token, b"@");
        let rest = &rest[rest.iter().take_while(is_at).count()..];
        let is_scope = |token: &Range<usize>| SCOPES.iter().any(|scope| self.is(token, scope));
        let rest = if rest.first().is_some_and(is_scope) { &rest[1..] } else { rest };
        let is_dot = |token: &Range<usize>| self.is(token, b".");
        let rest = if rest.first().is_some_and(is_dot) { &rest[1..] } else { rest };
        let is_assigned =
            |token: &Range<usize>| [b"=".as_slice(), b":", b"TO"].iter().any(|sign| self.is(token, sign));
        let end = rest.iter().position(is_assigned)?;
        if !rest[..end].iter().skip(1).step_by(2).all(is_dot) {
            return None;
        }
        let name = rest[..end].iter().flat_map(|token| self.bytes(token)).copied();
        Some((name.filter(|byte| *byte != b'"').collect(), &rest[end + 1..]))
    }
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
    // Whether the next word is an argument, and of an option that sets something.
    let mut argument: Option<bool> = None;
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
        let assignment = match (argument.take(), word) {
            (Some(sets), word) => {
                if sets {
                    word
                } else {
                    b""
                }
            }
            (None, [b'-', letters @ ..]) => {
                match letters.iter().position(|letter| WITH_ARGUMENT.contains(letter)) {
                    Some(at) => {
                        let (sets, given) = (matches!(letters[at], b'c' | b'-'), &letters[at + 1..]);
                        argument = given.is_empty().then_some(sets);
                        if sets { given } else { b"" }
                    }
                    None => b"",
                }
            }
            (None, _) => b"",
        };
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
            ("SET app.token = abc.s3cret", "SET app.token = ***.***"),
            ("SET app.token = my s3cret; SELECT 1", "SET app.token = *** ***; SELECT $1"),
            ("ALTER ROLE bob SET app.token = abc.s3cret", "ALTER ROLE bob SET app.token = ***.***"),
            ("EXPLAIN SET app.token = s3cret", "EXPLAIN SET app.token = ***"),
            ("PREPARE x AS SET app.token = s3cret", "PREPARE x AS SET app.token = ***"),
            ("EXPLAIN UPDATE t SET a.b = c", "EXPLAIN UPDATE t SET a.b = c"),
            ("SET GLOBAL app.token = s3cret, b", "SET GLOBAL app.token = ***, ***"),
            (
                "SET @@global.app.token = s3cret, sql_mode = ANSI",
                "SET @@global.app.token = ***, sql_mode = ANSI",
            ),
            ("SET @@session.sql_mode = ANSI", "SET @@session.sql_mode = ANSI"),
            ("SET sql_mode = ANSI, app.token := s3cret", "SET sql_mode = ANSI, app.token := ***"),
            ("ALTER TABLE t ALTER c SET DEFAULT a.b = c", "ALTER TABLE t ALTER c SET DEFAULT a.b = c"),
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
            ("-ec app.token=s3cret", "-ec app.token=***"),
            ("-Oecapp.token=s3cret -e", "-Oecapp.token=*** -e"),
            ("-e-app.token=s3cret -d 5 -c", "-e-app.token=*** -d 5 -c"),
            ("-p -c a.b=c", "-p -c a.b=c"),
            ("-c app.token", "-c app.token"),
            ("-c", "-c"),
            ("-e x.y=z", "-e x.y=z"),
        ] {
            assert_eq!(kept("options", options), rest);
        }
    }
}
