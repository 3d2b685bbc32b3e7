//! Changes to a statement's tokens, and the text they make.

use std::collections::HashMap;

use super::token::Token;

/// What happens to tokens; tokens without an entry stay as they are.
#[derive(Debug, Default)]
pub(crate) struct Edits {
    by_token: HashMap<usize, Edit>,
}

#[derive(Debug, Default)]
struct Edit {
    /// Inner ones first.
    before: Vec<String>,
    replacement: Option<String>,
    /// Inner ones first.
    after: Vec<String>,
}

impl Edits {
    /// Puts text in front of a token, outside of what was put there earlier.
    pub(crate) fn before(&mut self, token: usize, text: impl Into<String>) {
        self.by_token.entry(token).or_default().before.push(text.into());
    }

    /// Puts text behind a token, outside of what was put there earlier.
    pub(crate) fn after(&mut self, token: usize, text: impl Into<String>) {
        self.by_token.entry(token).or_default().after.push(text.into());
    }

    pub(crate) fn replace(&mut self, token: usize, text: impl Into<String>) {
        self.by_token.entry(token).or_default().replacement = Some(text.into());
    }

    /// Drops tokens; what was put around them stays.
    pub(crate) fn remove(&mut self, tokens: impl IntoIterator<Item = usize>) {
        for token in tokens {
            self.replace(token, "");
        }
    }

    /// Replaces tokens and everything that was put around them.
    pub(crate) fn replace_range(&mut self, first: usize, last: usize, text: impl Into<String>) {
        for token in first..=last {
            self.by_token.insert(token, Edit { replacement: Some(String::new()), ..Edit::default() });
        }
        self.replace(first, text);
    }

    /// The text of these tokens with their changes; comments become a blank.
    pub(crate) fn render(&self, text: &str, tokens: &[Token], first: usize, last: usize) -> String {
        let mut out = String::with_capacity(text.len() + 16);
        let mut end = None;
        for (index, token) in tokens.iter().enumerate().take(last + 1).skip(first) {
            if let Some(end) = end {
                push_gap(&mut out, &text[end..token.start as usize]);
            }
            end = Some(token.end as usize);
            match self.by_token.get(&index) {
                None => out.push_str(token.text(text)),
                Some(edit) => {
                    edit.before.iter().rev().for_each(|before| out.push_str(before));
                    out.push_str(edit.replacement.as_deref().unwrap_or(token.text(text)));
                    edit.after.iter().for_each(|after| out.push_str(after));
                }
            }
        }
        out
    }
}

fn push_gap(out: &mut String, gap: &str) {
    if gap.contains("--") || gap.contains("/*") {
        out.push(' ');
    } else {
        out.push_str(gap);
    }
}
