//! PostgreSQL's catalogue: stub
use crate::sql::Column;
pub(crate) fn columns(_schema: Option<&str>, _name: &str) -> Option<Vec<Column>> {
    None
}
pub(crate) fn is_catalog(schema: Option<&str>, name: &str) -> bool {
    matches!(schema, Some("pg_catalog" | "information_schema")) || name.starts_with("pg_")
}
pub(crate) fn function_query(_name: &str) -> Option<&'static str> {
    None
}
pub(crate) fn quote_identifier(name: &str) -> String {
    let is_plain = name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if is_plain { name.to_owned() } else { crate::sql::token::quote_name(name) }
}
pub(crate) fn install(_connection: &rusqlite::Connection) -> rusqlite::Result<()> {
    Ok(())
}
