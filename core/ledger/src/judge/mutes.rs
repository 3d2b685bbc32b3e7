//! A file of mutes, as somebody wrote it who meant to mute something.

use crate::Mutes;
use crate::findings::MuteError;

/// A file of mutes that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadMutes {
    /// No file of mutes.
    #[error(transparent)]
    Unreadable(#[from] MuteError),
    /// A blank part of a text is in every one.
    #[error(
        "mute rule {0} has a blank statement, which would mute everything; write a part of the statement, or leave the key out"
    )]
    Blank(usize),
}

/// Reads a file of mutes.
///
/// # Errors
///
/// What [`Mutes::parse`] refuses, and a blank statement.
pub fn parse_file(text: &str) -> Result<Mutes, BadMutes> {
    let mutes = Mutes::parse(text)?;
    let table: toml::Table = toml::from_str(text).map_err(MuteError::from)?;
    let rules = table.get("mute").and_then(toml::Value::as_array).into_iter().flatten();
    let mut statements = rules.map(|rule| rule.get("statement").and_then(toml::Value::as_str));
    match statements.position(|statement| statement.is_some_and(|text| text.trim().is_empty())) {
        Some(place) => Err(BadMutes::Blank(place + 1)),
        None => Ok(mutes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blank_statement_mutes_nothing_as_it_would_mute_everything() {
        for blank in ["\"\"", "\" \"", "\"\\t\\n\"", "''"] {
            for code in ["", "code = \"OT001\"\n"] {
                let text = format!("[[mute]]\nscope = \"a\"\n[[mute]]\n{code}statement = {blank}\n");
                let refused = parse_file(&text).unwrap_err().to_string();
                assert!(refused.starts_with("mute rule 2 has a blank statement"), "{refused}");
            }
        }
        assert!(parse_file("[[mute]]\nwhy = \"\"\n").unwrap_err().to_string().contains("mute rule 1"));
        assert!(parse_file("[[mute]]\nstatement = \"FROM books\"\n[[mute]]\ncode = \"OT001\"\n").is_ok());
        assert_eq!(parse_file("").unwrap(), Mutes::default());
    }
}
