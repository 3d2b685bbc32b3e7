//! What has to be known about a table before its rows may come by one statement, or by COPY.

use std::collections::HashMap;

use onetrip_wire::pg::Oid;

use crate::{Done, Error};

/// Tables that a connection remembers. If there is one more, it forgets all of them.
const TABLES_MAX: usize = 256;

/// `=` of a program's own is another operator, and may come first in its `search_path`.
macro_rules! is {
    () => {
        " OPERATOR(pg_catalog.=) "
    };
}

/// Whether rows of a table mean the same when they come by one statement.
///
/// Triggers could look at the rows before theirs, and so could a foreign key into the table itself, which is made of
/// triggers, too. That of a partition may be one into the whole. A rule rewrites INSERT and not COPY. A transaction that keeps its snapshot does not see a trigger that was
/// made after it, though the trigger runs.
macro_rules! same {
    () => {
        concat!(
            "c.relkind",
            is!(),
            "'r' AND NOT c.relhasrules AND (NOT c.relhastriggers OR \
             (NOT EXISTS (SELECT FROM pg_catalog.pg_trigger t WHERE t.tgrelid",
            is!(),
            "c.oid AND NOT t.tgisinternal) AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint k WHERE k.contype",
            is!(),
            "'f' AND k.conrelid",
            is!(),
            "c.oid AND (k.confrelid",
            is!(),
            "c.oid OR c.relispartition)))) AND pg_catalog.current_setting('transaction_isolation') OPERATOR(pg_catalog.~~) 'read %'"
        )
    };
}

/// Whether they also mean the same by COPY, which overrides identity columns and does not know row security. It reads text by
/// a column's modifier: a parameter is read without it, and cast to it then. That is the same for numeric, varchar, char,
/// timestamp, timestamptz, time, timetz, bit and varbit, and not for interval: '1' in a column of years. And it puts NULL
/// into a column that it is not given though the column's domain forbids that; types below 10,000 are none.
macro_rules! copied {
    () => {
        concat!(
            "NOT c.relrowsecurity AND NOT EXISTS (SELECT FROM pg_catalog.pg_attribute a WHERE a.attrelid",
            is!(),
            "c.oid AND (a.attidentity",
            is!(),
            "'a' OR a.atttypmod OPERATOR(pg_catalog.>=) 0 AND NOT a.atttypid",
            is!(),
            "ANY ('{1700,1043,1042,1114,1184,1083,1266,1560,1562}'::pg_catalog.oid[]) \
             OR a.atttypid::pg_catalog.int8 OPERATOR(pg_catalog.>=) 10000 \
             AND EXISTS (SELECT FROM pg_catalog.pg_type y WHERE y.oid",
            is!(),
            "a.atttypid AND y.typtype",
            is!(),
            "'d')))"
        )
    };
}

/// The types of a table's columns and their names: a number, a blank and hexadecimal digits of UTF-8 for each, and commas
/// between them.
macro_rules! columns {
    () => {
        concat!(
            "(SELECT pg_catalog.string_agg(pg_catalog.concat(a.atttypid, ' ', \
             pg_catalog.encode(pg_catalog.convert_to(a.attname::pg_catalog.text, 'UTF8'), 'hex')), ',' ORDER BY a.attnum) \
             FROM pg_catalog.pg_attribute a WHERE a.attrelid",
            is!(),
            "c.oid AND a.attnum OPERATOR(pg_catalog.>) 0 AND NOT a.attisdropped)"
        )
    };
}

/// Longest text about columns that is kept, in bytes.
const COLUMNS_BYTES_MAX: usize = 4096;

/// What is asked about a table.
pub(super) const FACTS: &str = concat!(
    "SELECT c.oid, ",
    same!(),
    ", ",
    copied!(),
    ", ",
    columns!(),
    " FROM pg_catalog.pg_class c WHERE c.oid",
    is!(),
    "pg_catalog.to_regclass($1)"
);

/// `division_by_zero`: what a guard fails with if the facts are others.
pub(super) const GUARD_FAILS: &str = "22012";

/// How much of the facts a way needs; each has those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Needs {
    /// Arrays: rows mean the same by one statement.
    Same,
    /// COPY.
    Copied,
    /// COPY of values that have types of their own: they are those of the columns.
    Types,
}

/// What was asked about a table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Facts {
    /// What the name means; zero is no table.
    pub(super) table: Oid,
    /// Rows mean the same by one statement.
    pub(super) same: bool,
    /// They do so by COPY, too.
    pub(super) copied: bool,
    /// The types and names of the columns as the server has told them; empty where they are too many.
    pub(super) columns: String,
}

impl Facts {
    /// Of the answer. Who may not ask, or has no such table, takes the way that is always right.
    pub(super) fn of(answer: &Result<Done, Error>) -> Self {
        let row = answer.as_ref().ok().and_then(|done| done.rows.as_ref()?.rows().next());
        row.map_or_else(Self::default, |row| Self {
            table: row.get(0).unwrap_or_default(),
            same: row.get(1).unwrap_or_default(),
            copied: row.get(2).unwrap_or_default(),
            columns: row
                .get::<String>(3)
                .ok()
                .filter(|text| text.len() <= COLUMNS_BYTES_MAX)
                .unwrap_or_default(),
        })
    }

    /// The types of these columns, if all of them are known.
    pub(super) fn types_of(&self, names: &[String]) -> Option<Vec<Oid>> {
        let column = |entry: &str| {
            let (oid, name) = entry.split_once(' ')?;
            Some((oid.parse::<Oid>().ok()?, name.to_owned()))
        };
        let known: Vec<(Oid, String)> = self.columns.split(',').map(column).collect::<Option<_>>()?;
        let oid = |name: &String| {
            let digits: String = name.bytes().map(|byte| format!("{byte:02x}")).collect();
            known.iter().find(|(_, known)| *known == digits).map(|(oid, _)| *oid)
        };
        names.iter().map(oid).collect()
    }

    /// What divides by zero unless the name means the same table and these are the facts, as far as a way needs them.
    ///
    /// A plan of it takes the server ten times as long as a run, and this text is planned once. It has no parameters, for
    /// which the server would make a plan for each of the first runs; and the table's number is no `oid`, for the server
    /// takes such a constant for a use of the table, and plans again after each TRUNCATE of it.
    pub(super) fn guard(&self, name: &str, needs: Needs) -> String {
        let name = name.replace('\\', "\\\\").replace('\'', "''");
        let is = is!();
        let mut guard = format!(
            "SELECT 1 OPERATOR(pg_catalog./) pg_catalog.count(*) FROM pg_catalog.pg_class c \
             WHERE c.oid{is}pg_catalog.to_regclass(E'{name}') AND c.oid::pg_catalog.int8{is}{}::pg_catalog.int8 AND {}",
            self.table,
            same!()
        );
        if needs >= Needs::Copied {
            guard += concat!(" AND ", copied!());
        }
        if needs >= Needs::Types {
            guard += &format!(" AND {}{is}'{}'", columns!(), self.columns);
        }
        guard
    }
}

/// How often a guard of a table may find other facts, until nothing is asked about it any more: a program that makes a table
/// for each call would pay for a guard that always fails.
const GUARDS_FAILED_MAX: u8 = 2;

/// The tables of a connection, by their names as statements write them. What is known is a guess that a guard checks:
/// the table may be another one by now, and the name may mean another table.
#[derive(Debug, Default)]
pub(in crate::core) struct Tables(HashMap<String, Known>);

#[derive(Debug, Default)]
struct Known {
    facts: Option<Facts>,
    guards_failed: u8,
}

impl Tables {
    pub(super) fn get(&self, table: &str) -> Option<Facts> {
        self.0.get(table)?.facts.clone()
    }

    /// A guard has not run.
    pub(super) fn forget(&mut self, table: &str) {
        self.entry(table).facts = None;
    }

    /// A guard has found other facts.
    pub(super) fn fail(&mut self, table: &str) {
        let known = self.entry(table);
        known.guards_failed = known.guards_failed.saturating_add(1);
        known.facts = (known.guards_failed >= GUARDS_FAILED_MAX).then(Facts::default);
    }

    pub(super) fn put(&mut self, table: &str, facts: Facts) {
        self.entry(table).facts = Some(facts);
    }

    fn entry(&mut self, table: &str) -> &mut Known {
        if self.0.len() >= TABLES_MAX && !self.0.contains_key(table) {
            self.0.clear();
        }
        self.0.entry(table.to_owned()).or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_columns_are_found_by_their_names() {
        let facts = Facts { columns: "23 6964,1043 c3a9".to_owned(), ..Facts::default() };
        let types =
            |names: &[&str]| facts.types_of(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(types(&["é", "id"]), Some(vec![1043, 23]));
        assert_eq!(types(&["id", "other"]), None);
        assert_eq!(Facts::default().types_of(&["id".to_owned()]), None);
    }

    #[test]
    fn a_table_is_asked_about_again_until_guards_have_failed_too_often() {
        let mut tables = Tables::default();
        let facts = Facts { table: 1, same: true, ..Facts::default() };
        tables.put("t", facts.clone());
        tables.fail("t");
        assert_eq!(tables.get("t"), None);
        tables.put("t", facts.clone());
        tables.forget("t");
        assert_eq!(tables.get("t"), None);
        tables.put("t", facts);
        tables.fail("t");
        assert_eq!(tables.get("t"), Some(Facts::default()));
    }

    #[test]
    fn one_table_too_many_makes_it_forget_all() {
        let mut tables = Tables::default();
        let facts = Facts { table: 1, same: true, ..Facts::default() };
        for number in 0..TABLES_MAX {
            tables.put(&format!("t{number}"), facts.clone());
        }
        tables.put("t0", Facts::default());
        assert_eq!((tables.get("t0"), tables.get("t1")), (Some(Facts::default()), Some(facts.clone())));
        tables.put("one more", facts.clone());
        assert_eq!((tables.get("one more"), tables.get("t1")), (Some(facts), None));
    }
}
