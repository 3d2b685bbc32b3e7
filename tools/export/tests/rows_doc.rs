//! `docs/rows.md` has the columns that the code has: `cargo xtask docs` writes its tables.

use std::fs;
use std::path::Path;

use onetrip_export::{COLUMNS, Column, STATEMENT_COLUMNS};

const HEAD: &str = "| column | type | unit | meaning |\n|---|---|---|---|\n";

fn table(columns: &[Column]) -> String {
    let line = |Column { name, kind, unit, meaning }: &Column| {
        let unit = if unit.is_empty() { String::new() } else { format!("{unit} ") };
        format!("| `{name}` | {kind} | {unit}| {meaning} |\n")
    };
    HEAD.to_owned() + &columns.iter().map(line).collect::<String>()
}

/// The page with its tables as they ought to be.
fn expected(page: &str) -> String {
    let mut parts = page.split(HEAD);
    let mut made = parts.next().unwrap_or_default().to_owned();
    for (columns, part) in [COLUMNS, STATEMENT_COLUMNS].into_iter().zip(parts.by_ref()) {
        let after = part.find("\n\n").map_or("", |end| &part[end + 1..]);
        made += &table(columns);
        made += after;
    }
    assert!(parts.next().is_none(), "docs/rows.md has more than two tables of columns");
    made
}

#[test]
fn the_page_has_the_columns_that_the_code_has() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/rows.md");
    let page = fs::read_to_string(&path).unwrap();
    assert_eq!(page.matches(HEAD).count(), 2, "docs/rows.md has a table of columns and one of statements");
    let expected = expected(&page);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, expected).unwrap();
    } else {
        assert_eq!(page, expected, "run: cargo xtask docs");
    }
}
