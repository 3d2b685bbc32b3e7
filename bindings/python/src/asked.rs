//! What a call asks for: a statement as the server wants it, its parameters, and how its rows are to come.

use std::sync::{Arc, Mutex};

use onetrip_client::{Error, Format};
use pyo3::prelude::*;

use crate::encoding;
use crate::errors::misuse;
use crate::locked::locked;
use crate::parameters::{Parameters, references};
use crate::query::{Queries, Query, may_be_several};

/// How a statement is written, and how its rows are wanted: bits of a number.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct How(pub(crate) u8);

impl How {
    /// Whether rows are to come in their types' binary form.
    fn is_binary(self) -> bool {
        self.0 & 1 != 0
    }

    /// Whether the statement has `$1`, `$2`, … of its own.
    pub(crate) fn is_raw(self) -> bool {
        self.0 & 2 != 0
    }

    /// Whether the statement is to stay prepared, where somebody says so.
    fn keeps(self) -> Option<bool> {
        match self.0 & 12 {
            4 => Some(false),
            8 => Some(true),
            _ => None,
        }
    }

    pub(crate) fn format(self) -> Format {
        if self.is_binary() { Format::Binary } else { Format::Text }
    }
}

/// What a call asks for.
pub(crate) struct Asked {
    pub(crate) what: What,
    /// How its rows are to be written.
    format: Format,
    /// Whether the statement is to stay prepared.
    keeps: Option<bool>,
}

/// The statement or statements.
pub(crate) enum What {
    /// Statements without parameters.
    Script(String),
    /// One statement with parameters.
    One(Arc<Query>, Parameters),
    /// One statement without.
    Plain(String),
}

impl Asked {
    /// The statement's text.
    pub(crate) fn text(&self) -> &str {
        match &self.what {
            What::Script(text) | What::Plain(text) => text,
            What::One(query, _) => &query.text,
        }
    }

    /// Writes parameters in the session's encoding, where that is not UTF-8; the client does so with the statement.
    pub(crate) fn encode(&mut self, encoding: Option<&str>) -> Result<(), Error> {
        let Some(encoding) = encoding::foreign(encoding) else { return Ok(()) };
        if !self.text().is_ascii() {
            encoding::raising(|py| encoding::encoded(py, encoding, self.text()))?;
        }
        match &mut self.what {
            What::One(_, parameters) if !parameters.is_ascii() => {
                encoding::raising(|py| parameters.encode(py, encoding))
            }
            _ => Ok(()),
        }
    }

    /// Makes a request of it.
    pub(crate) fn request<T>(&self, with: impl FnOnce(&onetrip_client::core::Request<'_>) -> T) -> T {
        let written = match &self.what {
            What::One(_, parameters) => parameters.written(),
            _ => Vec::new(),
        };
        let references = references(&written);
        let plain = onetrip_client::core::Request::new(self.text(), &references);
        with(&onetrip_client::core::Request { format: self.format, keeps: self.keeps, ..plain })
    }
}

/// Translates a statement and writes its parameters.
pub(crate) fn asked(
    queries: &Mutex<Queries>,
    py: Python<'_>,
    text: &str,
    given: Option<&Bound<'_, PyAny>>,
    how: How,
) -> PyResult<Asked> {
    let (format, keeps) = (how.format(), how.keeps());
    let Some(given) = given else {
        let text = text.to_owned();
        // The simple protocol has text only.
        let is_script = !how.is_binary() && may_be_several(&text);
        let what = if is_script { What::Script(text) } else { What::Plain(text) };
        return Ok(Asked { what, format, keeps });
    };
    let query = translated(queries, py, text, how)?;
    let parameters = Parameters::of(&query, given)?;
    // Parameters that are empty are none.
    let is_script = !how.is_binary() && parameters.written().is_empty() && may_be_several(&query.text);
    let what = if is_script { What::Script(query.text.clone()) } else { What::One(query, parameters) };
    Ok(Asked { what, format, keeps })
}

/// The statement as the server wants it.
pub(crate) fn translated(
    queries: &Mutex<Queries>,
    py: Python<'_>,
    text: &str,
    how: How,
) -> PyResult<Arc<Query>> {
    if how.is_raw() {
        return Ok(Arc::new(Query::raw(text)));
    }
    let query = locked(queries).get(text);
    query.map_err(|problem| misuse(py, "usage", &problem))
}
