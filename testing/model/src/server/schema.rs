//! The tables that there are: the same in the model and, by [`schema`], in PostgreSQL.

use std::fmt::Write as _;

use onetrip_testkit::tables::PARENTS;

use super::value::{self, Type, Value};

/// Where a table is in [`TABLES`].
pub(crate) type Table = usize;

/// Name and columns; the first column is the primary key where it is named `id`.
#[derive(Debug)]
pub struct TableOf {
    /// Its name.
    pub name: &'static str,
    pub(crate) columns: &'static [(&'static str, Type, bool)],
}

const NOT_NULL: bool = true;

/// All tables.
pub const TABLES: [TableOf; 6] = [
    TableOf {
        name: "p",
        columns: &[
            ("id", Type::Int4, NOT_NULL),
            ("grp", Type::Int4, NOT_NULL),
            ("ref", Type::Int8, false),
            ("name", Type::Text, NOT_NULL),
        ],
    },
    TableOf {
        name: "c",
        columns: &[
            ("id", Type::Int8, NOT_NULL),
            ("pid", Type::Int8, NOT_NULL),
            ("val", Type::Text, NOT_NULL),
        ],
    },
    TableOf {
        name: "d",
        columns: &[
            ("id", Type::Int4, NOT_NULL),
            ("pid", Type::Int4, NOT_NULL),
            ("note", Type::Text, false),
            ("made", Type::Time, NOT_NULL),
        ],
    },
    TableOf { name: "w", columns: &[("id", Type::Int4, NOT_NULL), ("v", Type::Int4, NOT_NULL)] },
    TableOf {
        name: "n",
        columns: &[("id", Type::Int4, NOT_NULL), ("v", Type::Int4, NOT_NULL), ("t", Type::Text, NOT_NULL)],
    },
    TableOf { name: LOG, columns: &[("what", Type::Text, NOT_NULL)] },
];

/// What the function `side` writes to.
pub(crate) const LOG: &str = "log";

/// The table and the column that ALTER TABLE knows: `w.v`.
pub(crate) const WIDENED: (Table, usize) = (3, 1);

/// The relation's number, in the model.
pub(crate) fn oid(table: Table) -> u32 {
    20_001 + table as u32
}

pub(crate) fn table_named(name: &str) -> Option<Table> {
    TABLES.iter().position(|table| table.name == name)
}

impl TableOf {
    pub(crate) fn column_named(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|(column, ..)| *column == name)
    }

    pub(crate) fn has_key(&self) -> bool {
        self.columns[0].0 == "id"
    }
}

/// The rows that a table begins with.
pub(crate) fn rows(table: Table) -> Vec<Vec<Value>> {
    let text = |text: String| Value::Text(text.into());
    let parent = |(place, id): (usize, i64)| {
        let reference = (place % 4 != 3).then_some(1000 + 10 * ((place as i64 * 7) % 20) + 1);
        let reference = reference.map_or(Value::Null, Value::Integer);
        vec![Value::Integer(id), Value::Integer(place as i64 % 3), reference, text(format!("parent {id}"))]
    };
    let parents = || PARENTS.into_iter().enumerate();
    match TABLES[table].name {
        "p" => parents().map(parent).collect(),
        "c" => parents()
            .flat_map(|(place, id)| {
                (1..=place as i64 % 4).map(move |number| (1000 + 10 * place as i64 + number, id))
            })
            .map(|(child, id)| {
                vec![Value::Integer(child), Value::Integer(id), text(format!("child {child}"))]
            })
            .collect(),
        "d" => parents()
            .filter(|(_, id)| id % 2 == 1)
            .map(|(place, id)| {
                let (number, made) = (Value::Integer(place as i64), Value::Integer(720 + 300 * place as i64));
                vec![number, Value::Integer(id), text(format!("note {place}")), made]
            })
            .collect(),
        "w" => (1..=6).map(|id| vec![Value::Integer(id), Value::Integer(0)]).collect(),
        "n" => (1..=40)
            .map(|id| vec![Value::Integer(id), Value::Integer(id * id), text(format!("row {id}"))])
            .collect(),
        _ => Vec::new(),
    }
}

/// SQL that makes the same tables and rows on PostgreSQL, whatever was there.
pub fn schema() -> String {
    let mut out = "DROP SCHEMA IF EXISTS public CASCADE; CREATE SCHEMA public;\n".to_owned();
    for table in &TABLES {
        let columns = table.columns.iter().enumerate().map(|(place, (name, kind, not_null))| {
            let is_key = place == 0 && table.has_key();
            let key = if is_key {
                " PRIMARY KEY"
            } else if *not_null {
                " NOT NULL"
            } else {
                ""
            };
            format!("{name} {}{key}", kind.name())
        });
        let columns = columns.collect::<Vec<_>>().join(", ");
        let _ = writeln!(out, "CREATE TABLE {} ({columns});", table.name);
    }
    out.push_str("CREATE INDEX ON c (pid); CREATE INDEX ON d (pid);\n");
    out.push_str(
        "CREATE FUNCTION side(i int) RETURNS int LANGUAGE plpgsql AS \
         'BEGIN INSERT INTO log VALUES (''side '' || i); RETURN i; END';\n",
    );
    out.push_str(&refill());
    out
}

/// SQL that gives the tables their first rows.
pub fn refill() -> String {
    let names: Vec<_> = TABLES.iter().map(|table| table.name).collect();
    let mut out = format!("TRUNCATE {};\n", names.join(", "));
    for (number, table) in TABLES.iter().enumerate() {
        let rows = rows(number);
        if rows.is_empty() {
            continue;
        }
        let row = |row: &Vec<Value>| {
            let values = row.iter().zip(table.columns).map(|(value, (_, kind, _))| literal(value, *kind));
            format!("({})", values.collect::<Vec<_>>().join(", "))
        };
        let rows = rows.iter().map(row).collect::<Vec<_>>().join(", ");
        let _ = writeln!(out, "INSERT INTO {} VALUES {rows};", table.name);
    }
    out
}

fn literal(value: &Value, kind: Type) -> String {
    match value {
        Value::Integer(minutes) if kind == Type::Time => format!("'{}'", value::time(*minutes, 0)),
        Value::Integer(number) => number.to_string(),
        Value::Text(text) => format!("'{text}'"),
        Value::Null => "NULL".to_owned(),
        Value::Boolean(is) => is.to_string(),
    }
}
