//! URLs of servers within longer values: options of a JVM, JSON of a hosting service, lists.

use std::ops::Range;

use crate::Protocol;

/// What no URL holds unless it is encoded (RFC 3986), and what therefore ends one.
const ENDS: &str = "\"'`<>{}|\\^";
/// What may end a URL, but more likely separates it from what follows.
const SEPARATORS: &str = ",;)";
const SCHEME_END: &str = "://";

/// Where URLs of databases stand in a text, also one that is such a URL as a whole.
pub(super) fn urls(text: &str) -> Vec<Range<usize>> {
    let starts: Vec<usize> = text.match_indices(SCHEME_END).filter_map(|(at, _)| start(text, at)).collect();
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    starts.iter().zip(ends).map(|(start, next)| *start..end(text, *start, next)).collect()
}

/// Where the scheme before `://` begins, if it is a database's.
fn start(text: &str, colon: usize) -> Option<usize> {
    let is_of_scheme = |letter: char| letter.is_ascii_alphanumeric() || "+-._:".contains(letter);
    let scheme = text[..colon].trim_end_matches(is_of_scheme).len()..colon;
    Protocol::of_scheme(&text[scheme.clone()]).map(|_| scheme.start)
}

fn end(text: &str, start: usize, next: usize) -> usize {
    let rest = &text[start..next];
    let is_end = |letter: char| letter.is_whitespace() || letter.is_control() || ENDS.contains(letter);
    let url = rest.split(is_end).next().unwrap_or_default();
    let is_list = |letter: char| letter == ']' && !url.contains('['); // not an address of IPv6
    start + url.trim_end_matches(|letter: char| SEPARATORS.contains(letter) || is_list(letter)).len()
}

#[cfg(test)]
mod tests {
    use super::urls;

    fn found(text: &str) -> Vec<&str> {
        urls(text).into_iter().map(|bytes| &text[bytes]).collect()
    }

    #[test]
    fn urls_end_where_their_surroundings_say() {
        for (text, expected) in [
            ("postgres://db/shop", &["postgres://db/shop"][..]),
            (
                "-Xmx1g -Durl=jdbc:postgresql://db:1/shop?a=b&c=d -Dx=y",
                &["jdbc:postgresql://db:1/shop?a=b&c=d"],
            ),
            (r#"{"a":"postgres://u:p@db/x","b":[]}"#, &["postgres://u:p@db/x"]),
            ("a: postgresql+psycopg://db/x\nb: 1", &["postgresql+psycopg://db/x"]),
            (
                "postgres://a/x,postgres://b/y; ecto://c/z",
                &["postgres://a/x", "postgres://b/y", "ecto://c/z"],
            ),
            ("(see postgres://[::1]:5432/x)", &["postgres://[::1]:5432/x"]),
            ("[postgres://a/x, postgres://[::1]]", &["postgres://a/x", "postgres://[::1]]"]), // the latter is no URL
            ("https://db/x redis://db/x mypostgres://db/x ://", &[]),
            (r#"{"url":"mysql+pymysql://u@db:3306/x"}"#, &["mysql+pymysql://u@db:3306/x"]),
            ("", &[]),
        ] {
            assert_eq!(found(text), expected, "{text}");
        }
    }
}
