//! `%s` and `%(name)s`, the placeholders of DB-API's `format` and `pyformat`, as PostgreSQL's `$n`.

use std::collections::HashMap;
use std::sync::Arc;

/// Statements whose translation is kept.
const KEPT_MAX: usize = 512;

/// A statement as the server wants it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Query {
    pub(crate) text: String,
    pub(crate) placeholders: Placeholders,
}

/// Where its parameters come from.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Placeholders {
    /// By position; how many.
    Positions(usize),
    /// By name: the name of `$1`, of `$2`, …
    Names(Vec<String>),
}

/// Translations of statements, by what was written.
#[derive(Debug, Default)]
pub(crate) struct Queries {
    known: HashMap<String, Arc<Query>>,
}

impl Queries {
    /// The translation of a statement.
    ///
    /// # Errors
    /// What is wrong with its placeholders.
    pub(crate) fn get(&mut self, written: &str) -> Result<Arc<Query>, String> {
        if let Some(query) = self.known.get(written) {
            return Ok(Arc::clone(query));
        }
        let query = Arc::new(Query::translate(written, Vec::new())?);
        if self.known.len() >= KEPT_MAX {
            self.known.clear();
        }
        self.known.insert(written.to_owned(), Arc::clone(&query));
        Ok(query)
    }
}

impl Query {
    /// How many parameters an execution has.
    pub(crate) fn width(&self) -> usize {
        match &self.placeholders {
            Placeholders::Positions(count) => *count,
            Placeholders::Names(names) => names.len(),
        }
    }

    /// A statement whose `$1`, `$2`, … have these names and no others.
    ///
    /// # Errors
    /// What is wrong with its placeholders.
    pub(crate) fn with_names(written: &str, names: &[&str]) -> Result<String, String> {
        let known = names.iter().map(|name| (*name).to_owned()).collect();
        let query = Self::translate(written, known)?;
        match query.placeholders {
            Placeholders::Names(used) if used.len() == names.len() => Ok(query.text),
            _ => Err(format!("the statement may have the placeholders {}, by name", names.join(", "))),
        }
    }

    fn translate(written: &str, known: Vec<String>) -> Result<Self, String> {
        let Split { texts, numbers, placeholders } = Split::of(written, known)?;
        let numbers: Vec<String> = numbers.iter().map(|number| format!("${number}")).collect();
        Ok(Self { text: joined(&texts, &numbers), placeholders })
    }
}

/// A statement apart from its placeholders.
pub(crate) struct Split {
    /// What stands around the placeholders, with percent signs for double ones.
    pub(crate) texts: Vec<String>,
    /// The numbers of the parameters between them.
    pub(crate) numbers: Vec<usize>,
    pub(crate) placeholders: Placeholders,
}

impl Split {
    /// Names that are not among those known get the numbers after theirs.
    ///
    /// # Errors
    /// What is wrong with the placeholders.
    pub(crate) fn of(written: &str, known: Vec<String>) -> Result<Self, String> {
        let (mut texts, mut numbers) = (Vec::new(), Vec::new());
        let mut text = String::with_capacity(written.len());
        let (mut positions, mut names) = (0, known);
        let mut rest = written;
        while let Some(at) = rest.find('%') {
            text.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            let number = if let Some(after) = rest.strip_prefix('%') {
                text.push('%');
                rest = after;
                continue;
            } else if let Some(after) = rest.strip_prefix(['s', 't', 'b']) {
                rest = after;
                positions += 1;
                positions
            } else {
                let (name, after) = named(rest)?;
                rest = after;
                names.iter().position(|known| known == name).map_or_else(
                    || {
                        names.push(name.to_owned());
                        names.len()
                    },
                    |at| at + 1,
                )
            };
            texts.push(std::mem::take(&mut text));
            numbers.push(number);
        }
        text.push_str(rest);
        texts.push(text);
        let placeholders = match (positions, names.is_empty()) {
            (positions, true) => Placeholders::Positions(positions),
            (0, false) => Placeholders::Names(names),
            _ => return Err("positional and named placeholders cannot be mixed".to_owned()),
        };
        Ok(Self { texts, numbers, placeholders })
    }
}

/// Texts with something between each two.
pub(crate) fn joined(texts: &[String], between: &[String]) -> String {
    let mut joined = String::new();
    let mut between = between.iter();
    for text in texts {
        joined.push_str(text);
        joined.push_str(between.next().map_or("", String::as_str));
    }
    joined
}

/// Whether a statement without parameters may be several: then the simple protocol has to run it.
pub(crate) fn may_be_several(text: &str) -> bool {
    let text = text.trim_end();
    text.strip_suffix(';').unwrap_or(text).contains(';')
}

/// The name of `(name)s`, and what follows.
fn named(rest: &str) -> Result<(&str, &str), String> {
    let wrong = || {
        let sign: String = rest.chars().take(1).collect();
        format!(
            "only '%s', '%b', '%t' and '%(name)s' are placeholders, got '%{sign}': write %% for a percent sign"
        )
    };
    let (name, after) = rest.strip_prefix('(').and_then(|rest| rest.split_once(')')).ok_or_else(wrong)?;
    Ok((name, after.strip_prefix(['s', 't', 'b']).ok_or_else(wrong)?))
}
