//! Errors and warnings, in PostgreSQL's words.

use onetrip_wire::pg::{ErrorFields, Severity, encode_error};

/// What a statement fails with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) sqlstate: &'static str,
    pub(crate) message: String,
}

/// What the model does not know.
const UNKNOWN: &str = "XXMOD";

impl Failure {
    pub(crate) fn new(sqlstate: &'static str, message: impl Into<String>) -> Self {
        Self { sqlstate, message: message.into() }
    }

    pub(crate) fn unknown(what: &str) -> Self {
        Self::new(UNKNOWN, format!("the model does not know {what}"))
    }

    pub(crate) fn aborted() -> Self {
        Self::new("25P02", "current transaction is aborted, commands ignored until end of transaction block")
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let Self { sqlstate, message } = self;
        encode_error(out, ErrorFields { severity: Severity::Error, sqlstate, message, hint: None });
    }
}
