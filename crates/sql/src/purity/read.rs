//! From a text to what it needs.

use super::impure::Impure;
use super::needs::Needs;

/// Longest text that is parsed, in bytes.
pub const TEXT_BYTES_MAX: usize = 16 * 1024;

/// Parses one statement and lists what must be checked in the catalogue.
///
/// # Errors
///
/// The construct that is not known to be harmless.
pub fn read(text: &str) -> Result<Needs, Impure> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(Impure::TooLong(text.len()));
    }
    let parsed = pg_query::parse(text, 0).map_err(|_| Impure::NotParsed)?;
    Err(Impure::StatementCount(parsed.protobuf.stmts.len()))
}
