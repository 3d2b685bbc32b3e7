//! Values that a trace must not keep though they are no literals: those of settings that users define, such as
//! `SET app.token = word` and `-c app.token=word` of a startup packet.

use std::borrow::Cow;

use onetrip_sql::{Lifted, SettingValue};

/// What stands in place of a value.
const MASK: &[u8] = b"***";
/// Settings of this program hold nothing that is secret.
const OWN: &[u8] = b"onetrip.";

/// A template without the word that it sets such a setting to.
pub(crate) fn kept_template<'a>(lifted: &Lifted<'a>) -> Cow<'a, [u8]> {
    let template = lifted.template();
    let Some(SettingValue::Word(span)) = lifted.facts().setting else { return Cow::Borrowed(template) };
    let is_secret = lifted.name().is_some_and(|name| is_of_users(name.as_written()));
    if !is_secret || span.of(template).eq_ignore_ascii_case(b"default") {
        return Cow::Borrowed(template);
    }
    let before = template.get(..span.start as usize).unwrap_or_default();
    let after = template.get(span.end as usize..).unwrap_or_default();
    Cow::Owned([before, MASK, after].concat())
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
