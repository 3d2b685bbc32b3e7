//! SQLite's errors in PostgreSQL's codes and words.

use rusqlite::ffi;

use crate::error::SqlError;
use crate::functions::raised_error;

/// What a client is told of an error of SQLite.
pub(crate) fn from_sqlite(error: &rusqlite::Error) -> SqlError {
    match error {
        rusqlite::Error::SqliteFailure(code, message) => {
            from_code(code.extended_code, message.as_deref().unwrap_or("unknown error"))
        }
        rusqlite::Error::SqlInputError { error, msg, .. } => from_code(error.extended_code, msg),
        rusqlite::Error::UserFunctionError(inner) => {
            let message = inner.to_string();
            raised_error(&message).unwrap_or_else(|| SqlError::new("XX000", message))
        }
        other => SqlError::new("XX000", other.to_string()),
    }
}

fn from_code(code: i32, message: &str) -> SqlError {
    if let Some(error) = raised_error(message) {
        return error;
    }
    let plain = |sqlstate| SqlError::new(sqlstate, message.to_owned());
    match code {
        ffi::SQLITE_CONSTRAINT_UNIQUE => unique_violation(message, false),
        ffi::SQLITE_CONSTRAINT_PRIMARYKEY | ffi::SQLITE_CONSTRAINT_ROWID => unique_violation(message, true),
        ffi::SQLITE_CONSTRAINT_NOTNULL => not_null_violation(message),
        ffi::SQLITE_CONSTRAINT_FOREIGNKEY | ffi::SQLITE_CONSTRAINT_TRIGGER => {
            SqlError::new("23503", "insert or update or delete violates foreign key constraint")
        }
        ffi::SQLITE_CONSTRAINT_CHECK => check_violation(message),
        ffi::SQLITE_CONSTRAINT_DATATYPE => plain("42804"),
        ffi::SQLITE_BUSY_SNAPSHOT => {
            SqlError::new("40001", "could not serialize access due to concurrent update")
        }
        _ => from_primary_code(code & 0xff, message),
    }
}

fn from_primary_code(code: i32, message: &str) -> SqlError {
    let plain = |sqlstate| SqlError::new(sqlstate, message.to_owned());
    match code {
        ffi::SQLITE_ERROR => from_message(message),
        ffi::SQLITE_CONSTRAINT => plain("23000"),
        ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED => {
            SqlError::new(SqlError::LOCKED, "could not obtain the database's write lock in time")
        }
        ffi::SQLITE_INTERRUPT => SqlError::cancelled(),
        ffi::SQLITE_READONLY => plain("25006"),
        ffi::SQLITE_FULL => plain("53100"),
        ffi::SQLITE_NOMEM => SqlError::new("53200", "out of memory"),
        ffi::SQLITE_TOOBIG => SqlError::new("54000", "string or blob too big"),
        ffi::SQLITE_RANGE => SqlError::new("42P02", "there is no such parameter"),
        ffi::SQLITE_MISMATCH => plain("22P02"),
        ffi::SQLITE_IOERR | ffi::SQLITE_CANTOPEN => plain("58030"),
        ffi::SQLITE_CORRUPT | ffi::SQLITE_NOTADB => plain("XX001"),
        ffi::SQLITE_AUTH => SqlError::new("42501", "permission denied"),
        _ => plain("XX000"),
    }
}

/// `UNIQUE constraint failed: t.a, t.b` or `… index 'name'`.
fn unique_violation(message: &str, is_primary: bool) -> SqlError {
    const TEXT: &str = "duplicate key value violates unique constraint";
    let what = message.split_once(": ").map_or(message, |(_, what)| what);
    if let Some(index) = what.strip_prefix("index '").and_then(|rest| rest.strip_suffix('\'')) {
        return violation("23505", TEXT, index);
    }
    let (table, columns) = table_and_columns(what);
    let constraint =
        if is_primary { format!("{table}_pkey") } else { format!("{table}_{}_key", columns.join("_")) };
    let mut error = violation("23505", TEXT, &constraint);
    error.more().detail = Some(format!("Key ({}) already exists.", columns.join(", ")));
    error.more().table = Some(table);
    error
}

fn violation(sqlstate: &'static str, text: &str, constraint: &str) -> SqlError {
    let mut error = SqlError::new(sqlstate, format!("{text} \"{constraint}\""));
    error.more().constraint = Some(constraint.to_owned());
    error
}

fn table_and_columns(list: &str) -> (String, Vec<String>) {
    let mut table = String::new();
    let columns = list
        .split(", ")
        .map(|pair| match pair.split_once('.') {
            Some((owner, column)) => {
                owner.clone_into(&mut table);
                column.to_owned()
            }
            None => pair.to_owned(),
        })
        .collect();
    (table, columns)
}

fn not_null_violation(message: &str) -> SqlError {
    let what = message.split_once(": ").map_or(message, |(_, what)| what);
    let (table, columns) = table_and_columns(what);
    let column = columns.first().cloned().unwrap_or_default();
    let text =
        format!("null value in column \"{column}\" of relation \"{table}\" violates not-null constraint");
    let mut error = SqlError::new("23502", text);
    error.more().table = Some(table);
    error.more().column = Some(column);
    error
}

fn check_violation(message: &str) -> SqlError {
    let what = message.split_once(": ").map_or(message, |(_, what)| what);
    violation("23514", "new row violates check constraint", what)
}

/// Plain errors are told apart by SQLite's words, which its tests fix.
fn from_message(message: &str) -> SqlError {
    let behind = |prefix: &str| message.strip_prefix(prefix).map(str::to_owned);
    let unqualified = |name: &str| name.rsplit('.').next().unwrap_or(name).to_owned();
    if let Some(table) = behind("no such table: ").or_else(|| behind("no such view: ")) {
        return SqlError::new("42P01", format!("relation \"{}\" does not exist", unqualified(&table)));
    }
    if let Some(name) = message.strip_suffix(" already exists") {
        let name = name.trim_start_matches("table ").trim_start_matches("view ").trim_start_matches("index ");
        return SqlError::new("42P07", format!("relation \"{}\" already exists", name.trim_matches('"')));
    }
    if let Some(column) = behind("no such column: ") {
        return SqlError::new("42703", format!("column \"{column}\" does not exist"));
    }
    if let Some(function) = behind("no such function: ") {
        return SqlError::new("42883", format!("function {function} does not exist"));
    }
    if let Some(name) = behind("ambiguous column name: ") {
        return SqlError::new("42702", format!("column reference \"{name}\" is ambiguous"));
    }
    if let Some(index) = behind("no such index: ") {
        return SqlError::new("42704", format!("index \"{index}\" does not exist"));
    }
    if let Some(savepoint) = behind("no such savepoint: ") {
        return SqlError::new("3B001", format!("savepoint \"{savepoint}\" does not exist"));
    }
    if let Some((table, column)) =
        message.strip_prefix("table ").and_then(|rest| rest.split_once(" has no column named "))
    {
        return SqlError::new("42703", format!("column \"{column}\" of relation \"{table}\" does not exist"));
    }
    const BY_PART: [(&str, &str); 19] = [
        ("there is already", "42P07"),
        ("duplicate column name", "42701"),
        ("syntax error", "42601"),
        ("incomplete input", "42601"),
        ("unrecognized token", "42601"),
        (" values for ", "42601"),
        ("do not have the same number of result columns", "42601"),
        ("all VALUES must have the same number of terms", "42601"),
        ("ORDER BY term does not match", "42P10"),
        ("ORDER BY term out of range", "42P10"),
        ("GROUP BY term out of range", "42P10"),
        ("wrong number of arguments", "42883"),
        ("misuse of aggregate", "42803"),
        ("misuse of window", "42P20"),
        ("integer overflow", "22003"),
        ("malformed JSON", "22P02"),
        ("does not match any PRIMARY KEY or UNIQUE constraint", "42P10"),
        ("too many SQL variables", "54023"),
        ("too many", "54000"),
    ];
    let found = BY_PART.iter().find(|(part, _)| message.contains(part));
    SqlError::new(found.map_or("42000", |(_, sqlstate)| sqlstate), message.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constraint_errors_name_table_column_and_constraint() {
        let mut error = from_code(ffi::SQLITE_CONSTRAINT_UNIQUE, "UNIQUE constraint failed: t.a, t.b");
        assert_eq!(error.sqlstate, "23505");
        assert_eq!(error.more().constraint.as_deref(), Some("t_a_b_key"));
        assert_eq!(error.more().table.as_deref(), Some("t"));
        let mut error = from_code(ffi::SQLITE_CONSTRAINT_NOTNULL, "NOT NULL constraint failed: t.a");
        assert_eq!(error.sqlstate, "23502");
        assert_eq!(error.more().column.as_deref(), Some("a"));
    }
}
