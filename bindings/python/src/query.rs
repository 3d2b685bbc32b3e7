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
    /// How each of its parameters is to be written.
    pub(crate) forms: Vec<Form>,
}

/// Where its parameters come from.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Placeholders {
    /// By position; how many.
    Positions(usize),
    /// By name: the name of `$1`, of `$2`, …
    Names(Vec<String>),
    /// By position, and the server counts them: the statement was written with `$1`, `$2`, …
    Numbers,
}

/// How a parameter is to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Form {
    /// `%s`: whichever is faster.
    #[default]
    Any,
    /// `%t`.
    Text,
    /// `%b`.
    Binary,
}

impl Form {
    fn of(sign: char) -> Option<Self> {
        match sign {
            's' => Some(Self::Any),
            't' => Some(Self::Text),
            'b' => Some(Self::Binary),
            _ => None,
        }
    }

    /// The sign that asks for it.
    pub(crate) fn sign(self) -> &'static str {
        match self {
            Self::Any => "s",
            Self::Text => "t",
            Self::Binary => "b",
        }
    }
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
    /// A statement that is written as the server wants it.
    pub(crate) fn raw(text: &str) -> Self {
        Self { text: text.to_owned(), placeholders: Placeholders::Numbers, forms: Vec::new() }
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
        let Split { texts, numbers, placeholders, forms } = Split::of(written, known)?;
        let numbers: Vec<String> = numbers.iter().map(|number| format!("${number}")).collect();
        Ok(Self { text: joined(&texts, &numbers), placeholders, forms })
    }
}

/// A statement apart from its placeholders.
pub(crate) struct Split {
    /// What stands around the placeholders, with percent signs for double ones.
    pub(crate) texts: Vec<String>,
    /// The numbers of the parameters between them.
    pub(crate) numbers: Vec<usize>,
    pub(crate) placeholders: Placeholders,
    /// How each parameter is to be written.
    pub(crate) forms: Vec<Form>,
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
        let mut forms = vec![Form::Any; names.len()];
        let mut rest = written;
        while let Some(at) = rest.find('%') {
            text.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            let number = if let Some(after) = rest.strip_prefix('%') {
                text.push('%');
                rest = after;
                continue;
            } else if let Some(form) = rest.chars().next().and_then(Form::of) {
                rest = &rest[1..];
                forms.push(form);
                positions += 1;
                positions
            } else {
                let (name, form, after) = named(rest)?;
                rest = after;
                match names.iter().position(|known| known == name) {
                    Some(at) if forms[at] != form => {
                        return Err(format!(
                            "the placeholder {name} is written with '{}' and with '{}': it can have one format only",
                            forms[at].sign(),
                            form.sign()
                        ));
                    }
                    Some(at) => at + 1,
                    None => {
                        names.push(name.to_owned());
                        forms.push(form);
                        names.len()
                    }
                }
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
        Ok(Self { texts, numbers, placeholders, forms })
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

/// The name and the format of `(name)s`, and what follows.
fn named(rest: &str) -> Result<(&str, Form, &str), String> {
    let wrong = || {
        let sign: String = rest.chars().take(1).collect();
        format!(
            "only '%s', '%b', '%t' and '%(name)s' are placeholders, got '%{sign}': write %% for a percent sign"
        )
    };
    let (name, after) = rest.strip_prefix('(').and_then(|rest| rest.split_once(')')).ok_or_else(wrong)?;
    let form = after.chars().next().and_then(Form::of).ok_or_else(wrong)?;
    Ok((name, form, &after[1..]))
}
