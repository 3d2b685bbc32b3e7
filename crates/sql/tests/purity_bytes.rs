//! Texts and catalogue rows that nobody meant: no panic, and nothing is pure by accident.

use onetrip_sql::purity::{
    CATALOGUE_BYTES_MAX, CATALOGUE_ROWS_MAX, Catalogue, CatalogueBuilder, CatalogueError, Impure, read,
};
use proptest::prelude::*;

type Row<'a> = [Option<&'a str>; 5];

const SESSION: [Row; 5] = [
    [Some("v"), None, Some("150018"), None, None],
    [Some("u"), None, Some("app"), None, None],
    [Some("l"), None, Some("app"), None, None],
    [Some("s"), None, Some("public"), Some("1"), None],
    [Some("d"), None, None, Some(""), None],
];

fn add(builder: &mut CatalogueBuilder, row: Row) -> Result<(), CatalogueError> {
    builder.row(&row.map(|column| column.map(str::as_bytes)))
}

fn catalogue(rows: &[Row]) -> Result<Catalogue, CatalogueError> {
    let mut builder = Catalogue::builder();
    SESSION.iter().chain(rows).try_for_each(|row| add(&mut builder, *row))?;
    builder.finish()
}

fn verdict(rows: &[Row], statement: &str) -> Result<(), Impure> {
    let catalogue = catalogue(rows).expect("good rows");
    read(statement).and_then(|needs| catalogue.check(&needs)).map(|_| ())
}

#[test]
fn rows_that_are_not_of_the_query_are_malformed() {
    let bad: [Row; 16] = [
        [None, None, None, None, None],
        [Some("x"), Some("public"), Some("t"), Some("r"), Some("1")],
        [Some("r"), None, Some("t"), Some("r"), Some("1")],
        [Some("r"), Some("public"), None, Some("r"), Some("1")],
        [Some("r"), Some("public"), Some("t"), None, Some("1")],
        [Some("r"), Some("public"), Some("t"), Some("q"), Some("1")],
        [Some("r"), Some("public"), Some("t"), Some("r?"), Some("1")],
        [Some("r"), Some("public"), Some("t"), Some("r"), None],
        [Some("r"), Some("public"), Some("t"), Some("r"), Some("-1")],
        [Some("f"), Some("public"), Some("f"), Some("f"), None],
        [Some("o"), Some("public"), Some("+"), Some("b"), None],
        [Some("o"), Some("public"), Some("+"), Some("bbb"), None],
        [Some("w"), Some("public"), Some("v"), Some("n"), None],
        [Some("w"), Some("public"), Some("v"), Some("z"), Some("1")],
        [Some("d"), None, None, Some("z"), None],
        [Some("s"), None, Some("public"), Some("first"), None],
    ];
    for row in bad {
        assert_eq!(catalogue(&[row]).err(), Some(CatalogueError::Malformed), "{row:?}");
    }
    let mut builder = Catalogue::builder();
    assert_eq!(builder.row(&[Some(b"v")]), Err(CatalogueError::Malformed));
    assert_eq!(builder.row(&[Some(b"u"), None, Some(b"\xff"), None, None]), Err(CatalogueError::Malformed));
}

#[test]
fn a_catalogue_that_lacks_a_fact_is_none() {
    let parts = ["server version", "current user", "session user", "search path", "facts of the database"];
    for (at, part) in parts.into_iter().enumerate() {
        let mut builder = Catalogue::builder();
        for (_, row) in SESSION.iter().enumerate().filter(|(other, _)| *other != at) {
            add(&mut builder, *row).expect("a good row");
        }
        assert_eq!(builder.finish().err(), Some(CatalogueError::Missing(part)));
    }
}

#[test]
fn a_server_of_another_version_is_not_judged() {
    for (version, is_known) in
        [("110022", false), ("120000", true), ("180006", true), ("190000", false), ("0", false)]
    {
        let known = catalogue(&[[Some("v"), None, Some(version), None, None]]);
        assert_eq!(known.is_ok(), is_known, "{version}");
    }
}

#[test]
fn a_database_with_too_many_objects_is_not_judged() {
    let row: Row = [Some("t"), Some("public"), Some("t"), Some("e"), None];
    let mut builder = Catalogue::builder();
    for _ in 0..CATALOGUE_ROWS_MAX {
        add(&mut builder, row).expect("there is room");
    }
    assert_eq!(add(&mut builder, row), Err(CatalogueError::TooLarge));

    let name = "n".repeat(CATALOGUE_BYTES_MAX / 4);
    let row: Row = [Some("t"), Some(&name), Some(&name), Some("e"), None];
    let mut builder = Catalogue::builder();
    assert_eq!(add(&mut builder, row), Ok(()));
    assert_eq!(add(&mut builder, row), Err(CatalogueError::TooLarge));
}

#[test]
fn a_view_whose_tree_was_not_understood_is_refused() {
    let view: Row = [Some("r"), Some("public"), Some("v"), Some("v"), Some("20000")];
    let table: Row = [Some("r"), Some("public"), Some("t"), Some("r"), Some("20001")];
    let understood: Row = [Some("w"), Some("public"), Some("v"), Some("q"), None];
    let reads: Row = [Some("w"), Some("public"), Some("v"), Some("r"), Some("20001")];
    let reads_another: Row = [Some("w"), Some("public"), Some("v"), Some("r"), Some("1259")];
    assert!(verdict(&[view, table, understood, reads], "TABLE v").is_ok());
    assert!(verdict(&[view, table], "TABLE v").is_err());
    assert!(verdict(&[view, table, reads], "TABLE v").is_err());
    assert!(verdict(&[view, table, understood, reads, reads_another], "TABLE v").is_err());
}

#[test]
fn views_are_looked_through_to_a_bounded_depth() {
    let names: Vec<_> = (0..20).map(|at| (format!("v{at}"), (20_000 + at).to_string())).collect();
    let mut rows = Vec::new();
    for (at, (name, oid)) in names.iter().enumerate() {
        rows.push([Some("r"), Some("public"), Some(name.as_str()), Some("v"), Some(oid.as_str())]);
        rows.push([Some("w"), Some("public"), Some(name), Some("q"), None]);
        if let Some((_, next)) = names.get(at + 1) {
            rows.push([Some("w"), Some("public"), Some(name), Some("r"), Some(next)]);
        }
    }
    assert!(verdict(&rows, "TABLE v10").is_ok());
    assert!(verdict(&rows, "TABLE v0").is_err());
    // A view that names itself, as the trees of older servers do, or a ring of views, comes to an end.
    rows.push([Some("w"), Some("public"), Some("v19"), Some("r"), Some("20010")]);
    assert!(verdict(&rows, "TABLE v10").is_ok());
}

#[test]
fn facts_of_the_whole_database_make_every_statement_unsafe() {
    let reasons = [
        ("c", "a cast between built-in types calls a user's function"),
        ("o", "a user's operator class sorts or hashes a built-in type or an enum"),
        ("x", "an extension may answer from other servers"),
    ];
    for (flag, reason) in reasons {
        let refused = verdict(&[[Some("d"), None, None, Some(flag), None]], "SELECT 1").expect_err(flag);
        assert_eq!(refused.to_string(), reason);
    }
    assert!(verdict(&[[Some("d"), None, None, Some("tle"), None]], "SELECT 1").is_ok());
}

/// Pieces of SQL that parse surprisingly often when put side by side.
const PIECES: [&str; 60] = [
    "SELECT",
    "FROM",
    "t",
    "WHERE",
    "a",
    "=",
    "1",
    "'x'",
    "$1",
    "(",
    ")",
    ",",
    "WITH",
    "AS",
    "UNION",
    "VALUES",
    "TABLE",
    "INTO",
    "FOR UPDATE",
    "ORDER BY",
    "LIMIT",
    "random()",
    "nextval('s')",
    "t.a",
    "*",
    "NOT",
    "CASE",
    "WHEN",
    "THEN",
    "END",
    "::",
    "int",
    "regclass",
    "[1]",
    ".",
    ";",
    "--",
    "/*",
    "*/",
    "$$",
    "\"",
    "'",
    "E'\\'",
    "JOIN",
    "ON",
    "USING",
    "LATERAL",
    "DELETE",
    "INSERT",
    "RETURNING",
    "OVER",
    "FILTER",
    "COLLATE",
    "IN",
    "ANY",
    "ARRAY",
    "INTERVAL",
    "\\",
    "DROP FUNCTION f",
    "TABLESAMPLE",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn no_text_makes_reading_panic(text in any::<String>()) {
        let _ = read(&text);
    }

    #[test]
    fn no_mixture_of_sql_makes_reading_panic(pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..24)) {
        let text = pieces.join(" ");
        if let Ok(needs) = read(&text) {
            let catalogue = catalogue(&[]).expect("an empty database");
            let verdict = catalogue.check(&needs);
            // There are no relations here, so what is pure names none.
            prop_assert!(verdict.is_err() || needs.relations.is_empty(), "{text}");
        }
    }

    #[test]
    fn no_row_makes_the_builder_panic(
        rows in prop::collection::vec(prop::collection::vec(prop::option::of("[a-z0-9-]{0,3}"), 4..6), 0..8)
    ) {
        let mut builder = Catalogue::builder();
        for row in &rows {
            let columns: Vec<_> = row.iter().map(|column| column.as_deref().map(str::as_bytes)).collect();
            let _ = builder.row(&columns);
        }
        let _ = builder.finish();
    }
}
