//! Sequences: rows of a table of this server's, made with the first sequence.
//!
//! `SELECT nextval('…')` and `SELECT setval('…', n)` alone are changes of that row. Unlike PostgreSQL's sequences,
//! these belong to their transaction, and a rollback undoes them.

use super::ddl::{Ddl, if_not_exists};
use super::parser::Parser;
use super::statement::{OutputColumn, Run, Verb};
use super::token::{Kind, quote_text};
use super::tree::{Node, Query, Tree};
use crate::error::{SqlError, SqlResult};
use crate::types::SqlType;

const TABLE: &str = "main.onetrip_sequence";

/// CREATE SEQUENCE, its name at hand.
pub(super) fn create(mut parser: Parser<'_>) -> SqlResult<Ddl> {
    let is_lenient = !if_not_exists(&mut parser).is_empty();
    let (_, name) = parser.qualified_name()?;
    let (mut increment, mut start) = (1, None);
    while !parser.is_at_end() {
        if parser.take_word("increment") {
            parser.take_word("by");
            increment = integer(&mut parser)?;
        } else if parser.take_word("start") {
            parser.take_word("with");
            start = Some(integer(&mut parser)?);
        } else if parser.take_word("cache") || parser.take_word("minvalue") || parser.take_word("maxvalue") {
            integer(&mut parser)?;
        } else if parser.take_word("as") {
            parser.type_name()?;
        } else if parser.take_word("no") {
            parser.name()?;
        } else {
            return Err(parser.syntax_error());
        }
    }
    let verb = if is_lenient { "INSERT OR IGNORE" } else { "INSERT" };
    let start = start.unwrap_or(if increment < 0 { -1 } else { 1 });
    Ok(Ddl {
        statements: vec![
            format!(
                "CREATE TABLE IF NOT EXISTS {TABLE} (name text PRIMARY KEY, last_value int8 NOT NULL, \
                 increment int8 NOT NULL, is_called bool NOT NULL)"
            ),
            format!("{verb} INTO {TABLE} VALUES ({}, {start}, {increment}, 0)", quote_text(&name)),
        ],
        tag: "CREATE SEQUENCE",
    })
}

/// DROP SEQUENCE, IF EXISTS or the first name at hand.
pub(super) fn drop(parser: &mut Parser<'_>) -> SqlResult<Ddl> {
    let is_lenient = parser.take_words(&["if", "exists"]);
    let mut statements = Vec::new();
    loop {
        let (_, name) = parser.qualified_name()?;
        let name = quote_text(&name);
        let found = if is_lenient { name } else { existing(&name) };
        statements.push(format!("DELETE FROM {TABLE} WHERE name = {found}"));
        if !parser.take(Kind::Comma) {
            break;
        }
    }
    if !parser.take_word("cascade") {
        parser.take_word("restrict");
    }
    if parser.is_at_end() { Ok(Ddl { statements, tag: "DROP SEQUENCE" }) } else { Err(parser.syntax_error()) }
}

fn integer(parser: &mut Parser<'_>) -> SqlResult<i64> {
    let sign = if parser.take_operator("-") { "-" } else { "" };
    let number = format!("{sign}{}", parser.token_text(parser.position()));
    parser.expect(Kind::Integer)?;
    number.parse().map_err(|_| SqlError::out_of_range("bigint"))
}

/// The name, or an error where there is no such sequence.
fn existing(name: &str) -> String {
    format!("onetrip_relation((SELECT name FROM {TABLE} WHERE name = {name}), {name})")
}

/// The change that `SELECT nextval('…')` is, if the query is one.
pub(super) fn run(query: &Query, tree: &Tree, text_of: impl Fn(usize) -> String) -> Option<Run> {
    let [arm] = query.arms.as_slice() else { return None };
    let [item] = arm.items.as_slice() else { return None };
    let Node::Call(call) = &tree.exprs[item.expr].node else { return None };
    let name = match &tree.exprs[*call.args.first()?].node {
        Node::Text(name) => name,
        Node::Cast { arg, .. } => match &tree.exprs[*arg].node {
            Node::Text(name) => name,
            _ => return None,
        },
        _ => return None,
    };
    let name = existing(&quote_text(name.rsplit('.').next().unwrap_or(name).trim_matches('"')));
    let change = match (call.name.as_str(), call.args.as_slice()) {
        ("nextval", [_]) => {
            "last_value = last_value + CASE WHEN is_called THEN increment ELSE 0 END, is_called = 1"
                .to_owned()
        }
        ("setval", [_, value]) => format!("last_value = {}, is_called = 1", text_of(*value)),
        ("setval", [_, value, is_called]) => {
            format!("last_value = {}, is_called = {}", text_of(*value), text_of(*is_called))
        }
        _ => return None,
    };
    Some(Run {
        sql: format!("UPDATE {TABLE} SET {change} WHERE name = {name} RETURNING last_value"),
        verb: Verb::Select,
        parameters: Vec::new(),
        columns: vec![OutputColumn {
            name: item.alias.clone().unwrap_or_else(|| call.name.clone()),
            ty: SqlType::INT8,
            scale: None,
            source: 0,
        }],
        uses_catalog: false,
    })
}
