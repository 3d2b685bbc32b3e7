//! Text: patterns, parts, padding, and arrays as text.

use std::collections::HashMap;
use std::str::Chars;

use rusqlite::functions::Context;
use rusqlite::types::ValueRef;

use super::{Outcome, Registry, integer_arg, or_null, text_arg};
use crate::error::{SqlError, SqlResult};
use crate::value::{Json, JsonElements, Stored};
use crate::watch::spend;

/// Longest text that padding and repeating make, in bytes.
const TEXT_BYTES_MAX: usize = 64 << 20;

/// Bytes of a compiled pattern: those of the smallest that are told apart, and the most.
const PATTERN_BYTES_MIN: usize = 64;
const PATTERN_BYTES_MAX: usize = 1 << 20;
/// Bytes of a compiled pattern times bytes of the text that it is looked for in. So many took one to three seconds: no timeout,
/// cancel request or stop is heeded within.
const MATCH_STEPS_MAX: usize = 1 << 29;

pub(super) fn register(registry: &Registry<'_>) -> rusqlite::Result<()> {
    registry.pure("onetrip_regex", 3, regex)?;
    registry.pure("onetrip_ilike", 2, |context| {
        let (text, pattern) = (or_null!(text_arg(context, 0)), or_null!(text_arg(context, 1)));
        Ok(Stored::Integer(i64::from(is_like(&text.to_lowercase(), &pattern.to_lowercase())?)))
    })?;
    registry.pure("onetrip_position", 2, |context| {
        let (part, text) = (or_null!(text_arg(context, 0)), or_null!(text_arg(context, 1)));
        let position = text.find(&*part).map_or(0, |at| text[..at].chars().count() + 1);
        Ok(Stored::Integer(position as i64))
    })?;
    for arity in [2, 3] {
        registry.pure("onetrip_substring", arity, substring)?;
    }
    registry.pure("onetrip_left", 2, |context| {
        let (text, count) = (or_null!(text_arg(context, 0)), or_null!(integer_arg(context, 1)));
        Ok(Stored::OwnedText(text.chars().take(kept(&text, count)).collect()))
    })?;
    registry.pure("onetrip_right", 2, |context| {
        let (text, count) = (or_null!(text_arg(context, 0)), or_null!(integer_arg(context, 1)));
        let dropped = text.chars().count() - kept(&text, count);
        Ok(Stored::OwnedText(text.chars().skip(dropped).collect()))
    })?;
    for (name, at_left) in [("lpad", true), ("rpad", false)] {
        for arity in [2, 3] {
            registry.pure(name, arity, move |context| pad(context, at_left))?;
        }
    }
    register_characters(registry)?;
    registry.pure("split_part", 3, split_part)?;
    registry.pure("starts_with", 2, |context| {
        let (text, start) = (or_null!(text_arg(context, 0)), or_null!(text_arg(context, 1)));
        Ok(Stored::Integer(i64::from(text.starts_with(&*start))))
    })?;
    registry.pure("quote_ident", 1, |context| {
        Ok(Stored::OwnedText(crate::catalog::quote_identifier(&or_null!(text_arg(context, 0)))))
    })?;
    registry.pure("quote_literal", 1, |context| {
        Ok(Stored::OwnedText(crate::sql::token::quote_text(&or_null!(text_arg(context, 0)))))
    })?;
    register_arrays(registry)
}

/// Functions that make text of other characters.
fn register_characters(registry: &Registry<'_>) -> rusqlite::Result<()> {
    registry.pure("repeat", 2, |context| {
        let (text, count) = (or_null!(text_arg(context, 0)), or_null!(integer_arg(context, 1)));
        let count = usize::try_from(count).unwrap_or(0);
        bounded(text.len().saturating_mul(count))?;
        Ok(Stored::OwnedText(text.repeat(count)))
    })?;
    registry.pure("reverse", 1, |context| {
        Ok(Stored::OwnedText(or_null!(text_arg(context, 0)).chars().rev().collect()))
    })?;
    registry.pure("initcap", 1, |context| Ok(Stored::OwnedText(initcap(&or_null!(text_arg(context, 0))))))?;
    registry.pure("ascii", 1, |context| {
        let text = or_null!(text_arg(context, 0));
        Ok(Stored::Integer(text.chars().next().map_or(0, |first| i64::from(u32::from(first)))))
    })?;
    registry.pure("chr", 1, |context| {
        let code = or_null!(integer_arg(context, 0));
        let character = u32::try_from(code).ok().filter(|code| *code != 0).and_then(char::from_u32);
        character.map(|character| Stored::OwnedText(character.to_string())).ok_or_else(|| {
            SqlError::new("22023", format!("requested character not valid for encoding: {code}"))
        })
    })?;
    registry.pure("to_hex", 1, |context| {
        Ok(Stored::OwnedText(format!("{:x}", or_null!(integer_arg(context, 0)))))
    })?;
    registry.pure("translate", 3, |context| {
        let text = or_null!(text_arg(context, 0));
        let (from, to) = (or_null!(text_arg(context, 1)), or_null!(text_arg(context, 2)));
        let (mut moves, mut to) = (HashMap::new(), to.chars());
        for character in from.chars() {
            spend(1)?;
            let becomes = to.next();
            moves.entry(character).or_insert(becomes); // the first one counts
        }
        let mut out = String::new();
        for character in text.chars() {
            spend(1)?;
            out.extend(moves.get(&character).copied().unwrap_or(Some(character)));
        }
        Ok(Stored::OwnedText(out))
    })
}

fn register_arrays(registry: &Registry<'_>) -> rusqlite::Result<()> {
    for arity in [2, 3] {
        registry.pure("array_to_string", arity, |context| {
            let json = or_null!(text_arg(context, 0));
            let separator = or_null!(text_arg(context, 1));
            let null = if context.len() > 2 { text_arg(context, 2)? } else { None };
            let (mut elements, mut out, mut is_first) = (JsonElements::of_texts(&json)?, String::new(), true);
            while let Some(element) = elements.next_text()? {
                let Some(shown) = element.as_deref().or(null.as_deref()) else { continue };
                if !std::mem::take(&mut is_first) {
                    out.push_str(&separator);
                }
                out.push_str(shown);
                bounded(out.len())?;
            }
            Ok(Stored::OwnedText(out))
        })?;
    }
    registry.pure("onetrip_element", 2, |context| {
        let json = or_null!(text_arg(context, 0));
        let index = or_null!(integer_arg(context, 1));
        let mut elements = JsonElements::of_texts(&json)?;
        let (mut number, mut found) = (0, None);
        while let Some(element) = elements.next_text()? {
            number += 1;
            if number == index {
                found = element;
            }
        }
        // Numbers stay numbers, so that they compare as such.
        Ok(found.map_or(Stored::Null, |element| {
            element.parse().map_or_else(|_| Stored::OwnedText(element.clone()), Stored::Integer)
        }))
    })?;
    registry.pure("onetrip_array_concat", 2, |context| {
        let (left, right) = (text_arg(context, 0)?, text_arg(context, 1)?);
        let inside = |json: &str| json.trim().trim_start_matches('[').trim_end_matches(']').trim().to_owned();
        Ok(match (left, right) {
            (None, None) => Stored::Null,
            (Some(only), None) | (None, Some(only)) => Stored::OwnedText(only.into_owned()),
            (Some(left), Some(right)) => {
                let parts: Vec<_> =
                    [inside(&left), inside(&right)].into_iter().filter(|part| !part.is_empty()).collect();
                Stored::OwnedText(format!("[{}]", parts.join(",")))
            }
        })
    })?;
    for (name, arity) in [("array_length", 2), ("array_upper", 2), ("cardinality", 1)] {
        registry.pure(name, arity, move |context| {
            let count = count_of(&or_null!(text_arg(context, 0)))?;
            Ok(if count == 0 && name != "cardinality" { Stored::Null } else { Stored::Integer(count) })
        })?;
    }
    registry.pure("array_lower", 2, |context| {
        let count = count_of(&or_null!(text_arg(context, 0)))?;
        Ok(if count == 0 { Stored::Null } else { Stored::Integer(1) })
    })?;
    registry.pure("string_to_array", 2, |context| {
        let (text, separator) = (or_null!(text_arg(context, 0)), or_null!(text_arg(context, 1)));
        let mut json = Json::new();
        for part in text.split(&*separator) {
            json.put_text(part)?;
            bounded(json.len())?;
        }
        Ok(Stored::OwnedText(json.finish()))
    })
}

fn count_of(json: &str) -> SqlResult<i64> {
    let (mut elements, mut count) = (JsonElements::of_texts(json)?, 0);
    while elements.next_text()?.is_some() {
        count += 1;
    }
    Ok(count)
}

fn regex(context: &Context<'_>) -> Outcome {
    let text = or_null!(text_arg(context, 0));
    let ignores_case = context.get_raw(2) == ValueRef::Integer(1);
    if context.get_raw(1) == ValueRef::Null {
        return Ok(Stored::Null);
    }
    let pattern = context
        .get_or_create_aux(1, |value| -> Result<Pattern, Box<dyn std::error::Error + Send + Sync>> {
            Ok(Pattern::compile(value.as_str()?, ignores_case)?)
        })
        .map_err(|error| SqlError::new("2201B", format!("invalid regular expression: {error}")))?;
    Ok(Stored::Integer(i64::from(pattern.is_in(&text)?)))
}

/// A compiled regular expression. Its engine cannot be stopped within a text, and takes a step for each part of the pattern
/// at each byte of the text, at worst.
struct Pattern {
    regex: regex_lite::Regex,
    /// The compiled pattern takes no more than that.
    bytes: usize,
}

impl Pattern {
    fn compile(text: &str, ignores_case: bool) -> Result<Self, regex_lite::Error> {
        let mut bytes = PATTERN_BYTES_MIN;
        loop {
            let built = regex_lite::RegexBuilder::new(text)
                .case_insensitive(ignores_case)
                .dot_matches_new_line(true)
                .size_limit(bytes)
                .build();
            match built {
                // The engine does not tell the size, nor whether it is that that it refuses.
                Err(_) if bytes < PATTERN_BYTES_MAX => bytes *= 2,
                built => return Ok(Self { regex: built?, bytes }),
            }
        }
    }

    fn is_in(&self, text: &str) -> SqlResult<bool> {
        let steps = self.bytes.saturating_mul(text.len());
        if steps > MATCH_STEPS_MAX {
            return Err(SqlError::new(
                "2201B",
                "regular expression failed: regular expression is too complex",
            ));
        }
        spend(steps)?;
        Ok(self.regex.is_match(text))
    }
}

/// LIKE with `%`, `_` and backslash; linear in text times pattern.
fn is_like(text: &str, pattern: &str) -> SqlResult<bool> {
    let (mut text, mut pattern) = (text.chars(), pattern.chars());
    // Where to go on once the last `%` has taken one more character.
    let mut retry: Option<(Chars<'_>, Chars<'_>)> = None;
    loop {
        spend(1)?;
        let (text_here, mut behind) = (text.clone(), pattern.clone());
        let wanted = behind.next();
        if wanted == Some('%') {
            retry = Some((text_here, behind.clone()));
            pattern = behind;
            continue;
        }
        let Some(character) = text.next() else {
            return Ok(wanted.is_none());
        };
        let matches = match wanted {
            Some('_') => true,
            Some('\\') => behind.next().unwrap_or('\\') == character,
            wanted => wanted == Some(character),
        };
        if matches {
            pattern = behind;
            continue;
        }
        let Some((start, after_any)) = &mut retry else { return Ok(false) };
        start.next();
        (text, pattern) = (start.clone(), after_any.clone());
    }
}

fn substring(context: &Context<'_>) -> Outcome {
    let text = or_null!(text_arg(context, 0));
    let start = or_null!(integer_arg(context, 1));
    let end = if context.len() > 2 {
        let length = or_null!(integer_arg(context, 2));
        if length < 0 {
            return Err(SqlError::new("22011", "negative substring length not allowed"));
        }
        start.saturating_add(length)
    } else {
        i64::MAX
    };
    let skipped = usize::try_from(start - 1).unwrap_or(0);
    let taken = usize::try_from(end - start.max(1)).unwrap_or(0);
    Ok(Stored::OwnedText(text.chars().skip(skipped).take(taken).collect()))
}

/// How many characters `left(text, count)` keeps; a negative count leaves that many away.
fn kept(text: &str, count: i64) -> usize {
    let length = text.chars().count() as i64;
    let kept = if count < 0 { length.saturating_add(count) } else { count.min(length) };
    usize::try_from(kept).unwrap_or(0)
}

fn bounded(bytes: usize) -> SqlResult<()> {
    if bytes > TEXT_BYTES_MAX { Err(SqlError::new("54000", "requested length too large")) } else { Ok(()) }
}

fn pad(context: &Context<'_>, at_left: bool) -> Outcome {
    let text = or_null!(text_arg(context, 0));
    let length = usize::try_from(or_null!(integer_arg(context, 1))).unwrap_or(0);
    bounded(length.saturating_mul(4))?;
    let fill = if context.len() > 2 { or_null!(text_arg(context, 2)).into_owned() } else { " ".to_owned() };
    let missing = length.saturating_sub(text.chars().count());
    let padding: String = fill.chars().cycle().take(if fill.is_empty() { 0 } else { missing }).collect();
    let cut: String = text.chars().take(length).collect();
    Ok(Stored::OwnedText(if at_left { padding + &cut } else { cut + &padding }))
}

fn initcap(text: &str) -> String {
    let mut starts_word = true;
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if starts_word {
            out.extend(character.to_uppercase());
        } else {
            out.extend(character.to_lowercase());
        }
        starts_word = !character.is_alphanumeric();
    }
    out
}

fn split_part(context: &Context<'_>) -> Outcome {
    let (text, separator) = (or_null!(text_arg(context, 0)), or_null!(text_arg(context, 1)));
    let number = or_null!(integer_arg(context, 2));
    let mut count = 1;
    if !separator.is_empty() && number < 0 {
        // From the front, as parts found from the end can be others.
        count = text.matches(&*separator).count() as i64 + 1;
    }
    let index = match number {
        0 => return Err(SqlError::new("22023", "field position must not be zero")),
        number if number < 0 => count.saturating_add(number),
        number => number - 1,
    };
    let index = usize::try_from(index).ok();
    let part = match index {
        Some(index) if !separator.is_empty() => text.split(&*separator).nth(index),
        Some(0) => Some(&*text),
        _ => None,
    };
    Ok(Stored::OwnedText(part.unwrap_or_default().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn like_patterns_match_as_in_sql() {
        assert!(is_like("abc", "a%").unwrap());
        assert!(is_like("abc", "%b%").unwrap());
        assert!(is_like("a%c", "a\\%c").unwrap());
        assert!(!is_like("abc", "a\\%c").unwrap());
        assert!(is_like("abc", "a_c").unwrap());
        assert!(!is_like("abc", "a_").unwrap());
        assert!(is_like("", "%").unwrap());
        assert!(is_like("aaaaaaaaaaaaaaaaab", "%a%a%a%a%b").unwrap());
    }
}
