//! Errors and warnings, in PostgreSQL's words.

use onetrip_wire::pg::{ErrorFields, Severity, backend, encode_error, frame};

/// What a statement fails with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) sqlstate: &'static str,
    pub(crate) message: String,
    /// What is said before it.
    warning: Option<Warning>,
}

/// SQLSTATE and text.
pub(crate) type Warning = (&'static str, &'static str);

/// What the model does not know.
const UNKNOWN: &str = "XXMOD";

impl Failure {
    pub(crate) fn new(sqlstate: &'static str, message: impl Into<String>) -> Self {
        Self { sqlstate, message: message.into(), warning: None }
    }

    pub(crate) fn unknown(what: &str) -> Self {
        Self::new(UNKNOWN, format!("the model does not know {what}"))
    }

    pub(crate) fn aborted() -> Self {
        Self::new("25P02", "current transaction is aborted, commands ignored until end of transaction block")
    }

    /// The same behind a warning.
    pub(crate) fn behind(self, warning: Option<Warning>) -> Self {
        Self { warning, ..self }
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let Self { sqlstate, message, warning } = self;
        if let Some(warning) = warning {
            put_warning(*warning, out);
        }
        encode_error(out, ErrorFields { severity: Severity::Error, sqlstate, message, hint: None });
    }
}

/// A warning, as a message.
pub(crate) fn put_warning((sqlstate, text): Warning, out: &mut Vec<u8>) {
    frame(out, backend::NOTICE_RESPONSE, |out| {
        let fields = format!("SWARNING\0VWARNING\0C{sqlstate}\0M{text}\0\0");
        out.extend_from_slice(fields.as_bytes());
    });
}
