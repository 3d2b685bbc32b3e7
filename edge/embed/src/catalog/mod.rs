//! PostgreSQL's catalogue as temporary views over SQLite's own schema tables and pragmas.
//!
//! The views are made in a session when a statement first names one of them. Their columns are typed by the lists in
//! `views.rs` and `information.rs`, so that a catalogue query is analysed, described and run like any other.

mod information;
mod views;

use rusqlite::Connection;

use crate::sql::Column;
use crate::sql::token::quote_name;
use crate::types::{SqlType, TYPES};

/// A view of the catalogue.
pub(super) struct View {
    /// Name in the temporary schema; views of the information schema have it in front.
    name: &'static str,
    /// `name type, …`
    columns: &'static str,
    /// Empty for a view without rows.
    query: &'static str,
}

impl View {
    fn columns(&self) -> impl Iterator<Item = (&'static str, SqlType)> + use<> {
        self.columns.split(", ").filter_map(|column| {
            let (name, ty) = column.split_once(' ')?;
            let (ty, is_array) = ty.strip_suffix("[]").map_or((ty, false), |ty| (ty, true));
            // `char` here is the catalogue's one-byte type.
            let ty = if ty == "char" { "\"char\"" } else { ty };
            Some((name, SqlType::of_words(ty, &[], is_array).unwrap_or(SqlType::TEXT)))
        })
    }

    fn definition(&self) -> String {
        let names: Vec<_> = self.columns().map(|(name, _)| quote_name(name)).collect();
        let query = match self.query {
            "" => {
                let nulls: Vec<_> = names.iter().map(|_| "NULL").collect();
                format!("SELECT {} WHERE 0", nulls.join(", "))
            }
            "types" => types_query(),
            query => query.to_owned(),
        };
        format!("CREATE TEMP VIEW {} ({}) AS {query};", quote_name(self.name), names.join(", "))
    }
}

fn all() -> impl Iterator<Item = &'static View> {
    views::VIEWS.iter().chain(&information::VIEWS)
}

fn find(schema: Option<&str>, name: &str) -> Option<&'static View> {
    let in_information_schema = |view: &View| view.name.strip_prefix("information_schema.") == Some(name);
    match schema {
        Some("information_schema") => all().find(|view| in_information_schema(view)),
        None | Some("pg_catalog" | "temp") => all().find(|view| view.name == name),
        Some(_) => None,
    }
}

/// Whether this name can only be one of the catalogue.
pub(crate) fn is_catalog(schema: Option<&str>, name: &str) -> bool {
    matches!(schema, Some("pg_catalog" | "information_schema")) || find(schema, name).is_some()
}

/// The columns of a catalogue view.
pub(crate) fn columns(schema: Option<&str>, name: &str) -> Option<Vec<Column>> {
    let view = find(schema, name)?;
    Some(view.columns().map(|(name, ty)| Column::new(name, ty)).collect())
}

/// Makes the views in a session that does not have them.
pub(crate) fn install(connection: &Connection) -> rusqlite::Result<()> {
    let is_there: bool = connection.query_row(
        "SELECT EXISTS (SELECT 1 FROM temp.sqlite_master WHERE name = 'pg_class')",
        [],
        |row| row.get(0),
    )?;
    if is_there {
        return Ok(());
    }
    let definitions: String = all().map(View::definition).collect();
    connection.execute_batch(&definitions)
}

/// The query that answers a function of the catalogue; `$1` stands for its first argument.
pub(crate) fn function_query(name: &str) -> Option<&'static str> {
    // The argument may be a column called `oid`: inside, no name of a client's can be meant.
    Some(match name {
        "pg_get_indexdef" => {
            "SELECT onetrip_value FROM (SELECT oid AS onetrip_key, definition AS onetrip_value FROM temp.onetrip_index) \
             WHERE onetrip_key = $1"
        }
        "pg_get_constraintdef" => {
            "SELECT onetrip_value FROM (SELECT oid AS onetrip_key, definition AS onetrip_value \
             FROM temp.onetrip_constraint) WHERE onetrip_key = $1"
        }
        "pg_get_viewdef" => {
            "SELECT onetrip_value FROM (SELECT c.oid AS onetrip_key, v.definition AS onetrip_value \
             FROM temp.pg_views v JOIN temp.pg_class c ON c.relname = v.viewname) WHERE onetrip_key = $1"
        }
        "to_regtype" => {
            "SELECT onetrip_value FROM (SELECT typname AS onetrip_key, oid AS onetrip_value FROM temp.pg_type) \
             WHERE onetrip_key = $1"
        }
        "to_regclass" => {
            "SELECT onetrip_value FROM (SELECT relname AS onetrip_key, oid AS onetrip_value FROM temp.pg_class) \
             WHERE onetrip_key = $1"
        }
        _ => return None,
    })
}

/// What gives a relation's name for the identifier behind it.
pub(crate) const NAME_OF_RELATION: &str = "(SELECT onetrip_value FROM (SELECT oid AS onetrip_key, \
    relname AS onetrip_value FROM temp.pg_class) WHERE onetrip_key = ";

/// What gives a relation's identifier for the name behind it.
pub(crate) const RELATION_OF_NAME: &str = "(SELECT onetrip_value FROM (SELECT relname AS onetrip_key, \
    oid AS onetrip_value FROM temp.pg_class) WHERE onetrip_key = ";

/// `pg_type` from the table of types, with an array type for each that has one.
fn types_query() -> String {
    let mut rows = Vec::new();
    for facts in &TYPES {
        let collation = if matches!(facts.category, 'S') { 100 } else { 0 };
        let row = |oid, name: &str, len: i16, category, element, array| {
            format!(
                "({oid}, '{name}', 11, 10, {len}, 0, 'b', '{category}', 0, 1, ',', 0, {element}, {array}, \
                 '{name}in', '{name}out', '{name}recv', '{name}send', 0, 0, -1, 0, {collation}, NULL)"
            )
        };
        rows.push(row(facts.oid, facts.name, facts.len, facts.category, 0, facts.array_oid));
        if facts.array_oid > 0 {
            rows.push(row(facts.array_oid, &format!("_{}", facts.name), -1, 'A', facts.oid, 0).replace(
                &format!("'_{0}in', '_{0}out', '_{0}recv', '_{0}send'", facts.name),
                "'array_in', 'array_out', 'array_recv', 'array_send'",
            ));
        }
    }
    format!("VALUES {}", rows.join(", "))
}

/// A name as it must be written in SQL.
pub(crate) fn quote_identifier(name: &str) -> String {
    let is_plain = name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
        && name.chars().all(|other| other.is_ascii_lowercase() || other.is_ascii_digit() || other == '_');
    if is_plain { name.to_owned() } else { quote_name(name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_view_can_be_made_and_read() {
        let connection = Connection::open_in_memory().unwrap();
        let facts = std::sync::Arc::new(crate::functions::SessionFacts::new(
            "ann".to_owned(),
            "shop".to_owned(),
            1,
            crate::session::settings::Settings::new("ann"),
            std::sync::Arc::new(crate::watch::Watch::new(None)),
        ));
        crate::functions::register(&connection, &facts).unwrap();
        connection
            .execute_batch("CREATE TABLE t (a INTEGER PRIMARY KEY, b text UNIQUE REFERENCES t (b))")
            .unwrap();
        connection.execute_batch("CREATE INDEX i ON t (b, a)").unwrap();
        install(&connection).unwrap();
        install(&connection).unwrap();
        for view in all() {
            let query = format!("SELECT * FROM temp.{}", quote_name(view.name));
            let mut statement =
                connection.prepare(&query).unwrap_or_else(|error| panic!("{}: {error}", view.name));
            let mut rows = statement.query([]).unwrap();
            while rows.next().unwrap_or_else(|error| panic!("{}: {error}", view.name)).is_some() {}
        }
    }
}
