//! Words of a statement.

use super::failure::Failure;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Token {
    /// In lower case.
    Word(String),
    Quoted(String),
    Number(i64),
    Text(String),
    Parameter(usize),
    Sign(&'static str),
}

const SIGNS: [&str; 19] =
    ["<>", "<=", ">=", "||", "::", "!=", "(", ")", ",", ";", "=", "<", ">", "+", "-", "*", "/", "%", "."];

/// Cuts a text into words; comments are blanks.
pub(crate) fn tokens(text: &str) -> Result<Vec<Token>, Failure> {
    let mut out = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            '\'' => {
                let end = 1 + rest[1..].find('\'').ok_or_else(|| bad(rest))?;
                out.push(Token::Text(rest[1..end].to_owned()));
                end + 1
            }
            '"' => {
                let end = 1 + rest[1..].find('"').ok_or_else(|| bad(rest))?;
                out.push(Token::Quoted(rest[1..end].to_owned()));
                end + 1
            }
            '$' => {
                let digits = run(&rest[1..], |one| one.is_ascii_digit());
                let number: usize = rest[1..1 + digits].parse().map_err(|_| bad(rest))?;
                out.push(Token::Parameter(number.checked_sub(1).ok_or_else(|| bad(rest))?));
                1 + digits
            }
            '0'..='9' => {
                let digits = run(rest, |one| one.is_ascii_digit());
                out.push(Token::Number(rest[..digits].parse().map_err(|_| bad(rest))?));
                digits
            }
            _ if first.is_alphabetic() || first == '_' => {
                let length = run(rest, |one| one.is_alphanumeric() || one == '_');
                out.push(Token::Word(rest[..length].to_lowercase()));
                length
            }
            _ => {
                let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign)).ok_or_else(|| bad(rest))?;
                out.push(Token::Sign(sign));
                sign.len()
            }
        };
        rest = rest[length..].trim_start();
    }
    Ok(out)
}

fn run(text: &str, is_part: impl Fn(char) -> bool) -> usize {
    text.find(|one| !is_part(one)).unwrap_or(text.len())
}

fn bad(near: &str) -> Failure {
    Failure::new("42601", format!("syntax error at or near \"{near}\""))
}
