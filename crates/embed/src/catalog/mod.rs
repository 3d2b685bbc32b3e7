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
