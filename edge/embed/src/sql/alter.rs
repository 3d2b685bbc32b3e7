//! ALTER, DROP and TRUNCATE.

use super::ddl::{Ddl, TableEdits, finish_columns, render};
use super::parser::Parser;
use super::schema::Schema;
use super::sequence;
use super::token::{Kind, Token, quote_name};
use crate::error::{SqlError, SqlResult};

fn names_with_commas(parser: &mut Parser<'_>) -> SqlResult<Vec<String>> {
    let mut names = Vec::new();
    loop {
        parser.take_word("only");
        let (schema, name) = parser.qualified_name()?;
        let place = if matches!(schema.as_deref(), Some("public" | "main")) { "main." } else { "" };
        names.push(format!("{place}{}", quote_name(&name)));
        if !parser.take(Kind::Comma) {
            return Ok(names);
        }
    }
}

pub(super) fn drop_objects(parser: &mut Parser<'_>) -> SqlResult<Ddl> {
    let (word, tag) = match parser.name()?.as_str() {
        "table" => ("TABLE", "DROP TABLE"),
        "view" => ("VIEW", "DROP VIEW"),
        "index" => ("INDEX", "DROP INDEX"),
        "sequence" => return sequence::drop(parser),
        other => {
            return Err(SqlError::unsupported(format!("DROP {} is not supported", other.to_uppercase())));
        }
    };
    parser.take_word("concurrently");
    let exists = if parser.take_words(&["if", "exists"]) { "IF EXISTS " } else { "" };
    let names = names_with_commas(parser)?;
    if !parser.take_word("cascade") {
        parser.take_word("restrict");
    }
    if !parser.is_at_end() {
        return Err(parser.syntax_error());
    }
    let statements = names.into_iter().map(|name| format!("DROP {word} {exists}{name}")).collect();
    Ok(Ddl { statements, tag })
}

pub(super) fn truncate(parser: &mut Parser<'_>) -> SqlResult<Ddl> {
    parser.take_word("table");
    let names = names_with_commas(parser)?;
    if !parser.take_words(&["restart", "identity"]) {
        parser.take_words(&["continue", "identity"]);
    }
    if !parser.take_word("cascade") {
        parser.take_word("restrict");
    }
    if !parser.is_at_end() {
        return Err(parser.syntax_error());
    }
    let statements = names.into_iter().map(|name| format!("DELETE FROM {name}")).collect();
    Ok(Ddl { statements, tag: "TRUNCATE TABLE" })
}

pub(super) fn alter(
    text: &str,
    tokens: &[Token],
    mut parser: Parser<'_>,
    schema: &dyn Schema,
) -> SqlResult<Ddl> {
    let unsupported = || SqlError::unsupported("this form of ALTER is not supported");
    if !parser.take_word("table") {
        return Err(unsupported());
    }
    parser.take_words(&["if", "exists"]);
    parser.take_word("only");
    let (_, table) = parser.qualified_name()?;
    let quoted = quote_name(&table);
    let tag = "ALTER TABLE";
    let statement = if parser.take_word("rename") {
        if parser.take_word("to") {
            format!("ALTER TABLE {quoted} RENAME TO {}", quote_name(&parser.name()?))
        } else {
            parser.take_word("column");
            let from = parser.name()?;
            parser.expect_word("to")?;
            format!(
                "ALTER TABLE {quoted} RENAME COLUMN {} TO {}",
                quote_name(&from),
                quote_name(&parser.name()?)
            )
        }
    } else if parser.take_word("drop") {
        parser.take_word("column");
        parser.take_words(&["if", "exists"]);
        let column = parser.name()?;
        if !parser.take_word("cascade") {
            parser.take_word("restrict");
        }
        format!("ALTER TABLE {quoted} DROP COLUMN {}", quote_name(&column))
    } else if parser.take_word("add") {
        return add(text, tokens, parser, schema, &table);
    } else {
        return Err(unsupported());
    };
    if parser.is_at_end() { Ok(Ddl { statements: vec![statement], tag }) } else { Err(unsupported()) }
}

/// ADD COLUMN, and keys, which become unique indexes.
fn add(
    text: &str,
    tokens: &[Token],
    mut parser: Parser<'_>,
    schema: &dyn Schema,
    table: &str,
) -> SqlResult<Ddl> {
    let quoted = quote_name(table);
    let constraint = if parser.take_word("constraint") { Some(parser.name()?) } else { None };
    let is_primary = parser.take_words(&["primary", "key"]);
    if is_primary || (constraint.is_some() && parser.take_word("unique")) {
        let columns = parser.optional_names()?;
        let suffix = if is_primary { "pkey".to_owned() } else { format!("{}_key", columns.join("_")) };
        let name = constraint.unwrap_or_else(|| format!("{table}_{suffix}"));
        let list: Vec<_> = columns.iter().map(|column| quote_name(column)).collect();
        let statement =
            format!("CREATE UNIQUE INDEX main.{} ON {quoted} ({})", quote_name(&name), list.join(", "));
        return Ok(Ddl { statements: vec![statement], tag: "ALTER TABLE" });
    }
    if constraint.is_some() || parser.starts_table_constraint() {
        return Err(SqlError::unsupported("SQLite can add no such constraint to an existing table"));
    }
    parser.take_word("column");
    let exists = parser.take_words(&["if", "not", "exists"]);
    let first = parser.position();
    let mut edits = TableEdits::default();
    parser.table_element(&mut edits)?;
    if !parser.is_at_end() {
        return Err(SqlError::unsupported("ALTER TABLE with more than one action is not supported"));
    }
    let name = edits.columns.first().map(|column| column.name.clone()).unwrap_or_default();
    let already =
        schema.table(None, table).is_some_and(|columns| columns.iter().any(|column| column.name == name));
    if exists && already {
        return Ok(Ddl { statements: Vec::new(), tag: "ALTER TABLE" });
    }
    finish_columns(&mut edits)?;
    let body = render(text, tokens, parser, schema, edits, first, tokens.len() - 1)?;
    Ok(Ddl { statements: vec![format!("ALTER TABLE {quoted} ADD COLUMN {body}")], tag: "ALTER TABLE" })
}
