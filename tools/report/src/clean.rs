//! Strangers' text made safe to show, and cut to the room that there is.

use std::fmt::Write;

use unicode_width::UnicodeWidthChar;

/// Columns that a text takes. Marks that take none are counted as one, so that their number is bounded too.
pub(crate) fn width(text: &str) -> usize {
    text.chars().map(columns).sum()
}

/// One line of text that no terminal acts upon: white space becomes one blank, and what would steer a terminal
/// or change the order of what is read is written as its code point.
pub(crate) fn clean(text: &str) -> String {
    clean_up_to(text, usize::MAX)
}

/// What a scope is called.
pub(crate) fn scope_name(label: &str) -> String {
    if label.is_empty() { "(no scope)".into() } else { clean(label) }
}
/// Lines of at most `width` columns, broken at blanks; what `lines_max` lines cannot hold ends in `…`.
pub(crate) fn wrap(text: &str, width: usize, lines_max: usize) -> Vec<String> {
    // One line more than fits is enough to see that something is left, and how long its first word is.
    let text = clean_up_to(text, width.saturating_mul(lines_max.saturating_add(1)).saturating_add(1));
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut room = width;
    for piece in pieces(&text) {
        let word = piece.trim_start_matches(' ');
        let piece = if line.is_empty() { word } else { piece };
        if self::width(piece) <= room {
            line.push_str(piece);
            room -= self::width(piece);
            continue;
        }
        // What no line can hold goes on in this one if that is less than half full.
        let goes_on = room > width / 2 && self::width(word) > width;
        if !line.is_empty() && !goes_on {
            lines.push(std::mem::take(&mut line));
            room = width;
        }
        for character in if goes_on { piece } else { word }.chars() {
            if columns(character) > room {
                lines.push(std::mem::take(&mut line));
                room = width;
            }
            line.push(character);
            room = room.saturating_sub(columns(character));
        }
        if lines.len() > lines_max {
            break;
        }
    }
    lines.push(line);
    if lines.len() > lines_max {
        lines.truncate(lines_max);
        if let Some(last) = lines.last_mut() {
            *last = with_ellipsis(last, width);
        }
    }
    lines
}

/// Parts between which a line may be broken: before a blank, which begins its part, and after the comma of a list
/// without blanks, as Hibernate writes them; not within a number.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let mut before = '\0';
        let is_break = |(at, character): &(usize, char)| {
            let last = std::mem::replace(&mut before, *character);
            *at > 0 && (*character == ' ' || last == ',' && !character.is_ascii_digit())
        };
        let end = rest.char_indices().find(is_break).map_or(rest.len(), |(at, _)| at);
        let (piece, after) = rest.split_at(end);
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

/// One line of at most `width` columns, cut at a blank.
pub(crate) fn cut(text: &str, width: usize) -> String {
    wrap(text, width, 1).swap_remove(0)
}

fn clean_up_to(text: &str, columns_max: usize) -> String {
    let mut cleaned = String::new();
    let mut used = 0;
    let mut blank = false;
    for character in text.chars() {
        if character.is_whitespace() {
            blank = !cleaned.is_empty();
            continue;
        }
        if std::mem::take(&mut blank) {
            cleaned.push(' ');
            used += 1;
        }
        if is_unsafe(character) {
            let before = cleaned.len();
            push_escaped(&mut cleaned, character);
            used += cleaned.len() - before;
        } else {
            cleaned.push(character);
            used += columns(character);
        }
        if used > columns_max {
            break;
        }
    }
    cleaned
}

/// Whether a character steers terminals, is not seen, or changes the order in which its neighbours are read.
pub(crate) fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{fffe}' | '\u{ffff}' | '\u{e0000}'..='\u{e0fff}')
}

/// A statement's text, and words in its place where there is none.
pub(crate) fn statement_text(text: &str) -> &str {
    if text.trim().is_empty() { "(empty query)" } else { text }
}

/// Keeps numbers and their units on one line.
pub(crate) fn tied(text: &str) -> String {
    const UNITS: [&str; 12] = ["%", "ns", "µs", "ms", "s", "min", "h", "B", "kB", "MB", "GB", "TB"];
    let mut words = text.split(' ');
    let mut tied = words.next().unwrap_or_default().to_owned();
    for word in words {
        let unit = word.trim_end_matches(|end: char| end.is_ascii_punctuation() && end != '%');
        let after_number = tied.ends_with(|end: char| end.is_ascii_digit());
        tied.push(if after_number && UNITS.contains(&unit) { '\u{a0}' } else { ' ' });
        tied.push_str(word);
    }
    tied
}

/// Lines of text that no terminal acts upon: what would steer one is written as its code point.
pub(crate) fn clean_lines(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => safe.push('\n'),
            character if is_unsafe(character) => push_escaped(&mut safe, character),
            character => safe.push(character),
        }
    }
    safe
}

/// Text for an element or an attribute of XML or SVG. Lines stay lines; what XML forbids is written as its code
/// point.
pub fn markup(text: &str) -> String {
    clean_lines(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn push_escaped(text: &mut String, character: char) {
    // Writing to a string cannot fail.
    let _ = write!(text, "\\u{{{:x}}}", u32::from(character));
}

fn columns(character: char) -> usize {
    character.width().unwrap_or(1).max(1)
}

fn with_ellipsis(line: &str, width: usize) -> String {
    let room = width.saturating_sub(2);
    let mut kept = String::new();
    for piece in pieces(line) {
        if self::width(&kept) + self::width(piece) > room {
            // A word that fills half of the line is shown in part.
            if self::width(&kept) < room / 2 {
                for character in piece.chars() {
                    if self::width(&kept) + columns(character) > room {
                        break;
                    }
                    kept.push(character);
                }
            }
            break;
        }
        kept.push_str(piece);
    }
    kept.push_str(if kept.is_empty() { "…" } else { " …" });
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_written_as_its_code_point() {
        assert_eq!(clean("a\x1b[31mb\u{9b}2J\u{202e}c\x07"), "a\\u{1b}[31mb\\u{9b}2J\\u{202e}c\\u{7}");
        assert_eq!(clean("\n  SELECT\r\n\t1 \u{2028} +  2\n"), "SELECT 1 + 2");
    }

    #[test]
    fn text_is_cut_at_a_blank_and_says_so() {
        assert_eq!(cut("SELECT a FROM b", 15), "SELECT a FROM b");
        assert_eq!(cut("SELECT a FROM b", 14), "SELECT a …");
        assert_eq!(cut("SELECTaFROMb", 8), "SELECT …");
        assert_eq!(cut("IN (1)+(1)+(1)+(1)+(1)", 12), "IN (1)+(1) …");
        assert_eq!(wrap("one two three four", 9, 2), ["one two", "three …"]);
        assert_eq!(wrap("", 9, 2), [""]);
        assert_eq!(
            wrap("select e.id,e.name,e.age from e where n=10,000", 16, 3),
            ["select e.id,", "e.name,e.age", "from e where …"],
            "a list without blanks is broken after a comma, a number is not"
        );
    }

    #[test]
    fn numbers_keep_their_units() {
        assert_eq!(tied("(98 %): 2 min 36 s, 3 trips"), "(98\u{a0}%): 2\u{a0}min 36\u{a0}s, 3 trips");
    }

    #[test]
    fn wide_characters_and_words_longer_than_a_line_stay_within_it() {
        let lines = wrap("表表表表表 x\u{301}\u{301}\u{301}\u{301}\u{301}", 5, 9);
        assert_eq!(lines, ["表表", "表表", "表 x\u{301}", "\u{301}\u{301}\u{301}\u{301}"]);
        assert!(wrap(&"x".repeat(1 << 20), 50, 2).iter().all(|line| width(line) <= 50));
    }
}
