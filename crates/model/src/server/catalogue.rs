//! Answers to what a session of onetrip asks.

use std::sync::Arc;

use super::backend::{Backend, Output};
use super::rows::Row;
use super::schema::{self, TABLES};
use super::syntax::Question;
use super::value::Value;

pub(crate) fn answer(backend: &Backend, question: &Question) -> Output {
    let rows = match question {
        Question::State => {
            vec![row(&[Some("{pg_catalog,public}"), Some("onetrip"), Some("f"), Some("16384")])]
        }
        // The model has no PREPARE.
        Question::Names => vec![row(&[Some("f")])],
        Question::Cursor(name) => {
            let portal = backend.portals.get(name.as_bytes());
            let goes_back = |goes_back| row(&[Some(if goes_back { "t" } else { "f" })]);
            portal.map(|portal| goes_back(portal.goes_back)).into_iter().collect()
        }
        Question::Catalogue => catalogue(),
    };
    Output { rows, tag: "SELECT".to_owned(), ..Output::default() }
}

fn catalogue() -> Vec<Row> {
    let mut rows = vec![
        row(&[Some("v"), None, Some("150000"), None, None]),
        row(&[Some("u"), None, Some("onetrip"), None, None]),
        row(&[Some("l"), None, Some("onetrip"), None, None]),
        row(&[Some("s"), None, Some("pg_catalog"), Some("1"), None]),
        row(&[Some("s"), None, Some("public"), Some("2"), None]),
        row(&[Some("d"), None, None, Some(""), None]),
        row(&[Some("f"), Some("public"), Some("side"), Some("1"), None]),
    ];
    for (number, table) in TABLES.iter().enumerate() {
        let oid = schema::oid(number).to_string();
        rows.push(row(&[Some("r"), Some("public"), Some(table.name), Some("r"), Some(&oid)]));
    }
    rows
}

fn row(values: &[Option<&str>]) -> Row {
    let value = |value: &Option<&str>| value.map_or(Value::Null, |text| Value::Text(text.into()));
    Arc::from(values.iter().map(value).collect::<Vec<_>>())
}
