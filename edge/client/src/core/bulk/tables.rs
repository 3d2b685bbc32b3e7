//! What has to be known about a table before its rows may come by one statement, or by COPY.

use std::collections::HashMap;

use onetrip_wire::pg::Oid;

use crate::{Done, Error};

/// Tables that a connection remembers. If there is one more, it forgets all of them.
const TABLES_MAX: usize = 256;

/// Whether rows of a table mean the same when they come by one statement.
///
/// Triggers could look at the rows before theirs, and so could a foreign key into the table itself, which is made of
/// triggers, too; a rule rewrites INSERT and not COPY. A transaction that keeps its snapshot does not see a trigger that was
/// made after it, though the trigger runs.
macro_rules! same {
    () => {
        "c.relkind = 'r' AND NOT c.relhasrules \
         AND (NOT c.relhastriggers OR \
         (NOT EXISTS (SELECT FROM pg_catalog.pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal) \
         AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint k WHERE k.contype = 'f' AND k.conrelid = c.oid AND k.confrelid = c.oid))) \
         AND pg_catalog.current_setting('transaction_isolation') LIKE 'read %'"
    };
}

/// Whether they also mean the same by COPY, which overrides identity columns and does not know row security.
macro_rules! copied {
    () => {
        "NOT c.relrowsecurity \
         AND NOT EXISTS (SELECT FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND a.attidentity = 'a')"
    };
}

/// What is asked about a table.
pub(super) const FACTS: &str = concat!(
    "SELECT c.oid, ",
    same!(),
    ", ",
    copied!(),
    " FROM pg_catalog.pg_class c WHERE c.oid = pg_catalog.to_regclass($1)"
);

/// `division_by_zero`: what a guard fails with if the facts are others.
pub(super) const GUARD_FAILS: &str = "22012";

/// What was asked about a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Facts {
    /// What the name means; zero is no table.
    pub(super) table: Oid,
    /// Rows mean the same by one statement.
    pub(super) same: bool,
    /// They do so by COPY, too.
    pub(super) copied: bool,
}

impl Facts {
    /// Of the answer. Who may not ask, or has no such table, takes the way that is always right.
    pub(super) fn of(answer: &Result<Done, Error>) -> Self {
        let row = answer.as_ref().ok().and_then(|done| done.rows.as_ref()?.rows().next());
        row.map_or_else(Self::default, |row| Self {
            table: row.get(0).unwrap_or_default(),
            same: row.get(1).unwrap_or_default(),
            copied: row.get(2).unwrap_or_default(),
        })
    }

    /// What divides by zero unless the name means the same table and these are the facts, as far as a way needs them.
    ///
    /// A plan of it takes the server ten times as long as a run, and this text is planned once. It has no parameters, for
    /// which the server would make a plan for each of the first runs; and the table's number is no `oid`, for the server
    /// takes such a constant for a use of the table, and plans again after each TRUNCATE of it.
    pub(super) fn guard(self, name: &str, is_copy: bool) -> String {
        let name = name.replace('\\', "\\\\").replace('\'', "''");
        let of_table = format!(
            "SELECT 1 / count(*) FROM pg_catalog.pg_class c \
             WHERE c.oid = pg_catalog.to_regclass(E'{name}') AND c.oid::pg_catalog.int8 = {}",
            self.table
        );
        let also = if is_copy { concat!(" AND ", copied!()) } else { "" };
        format!("{of_table}{}{also}", concat!(" AND ", same!()))
    }
}

/// The tables of a connection, by their names as statements write them. What is known is a guess that a guard checks:
/// the table may be another one by now, and the name may mean another table.
#[derive(Debug, Default)]
pub(in crate::core) struct Tables(HashMap<String, Facts>);

impl Tables {
    pub(super) fn get(&self, table: &str) -> Option<Facts> {
        self.0.get(table).copied()
    }

    pub(super) fn forget(&mut self, table: &str) {
        self.0.remove(table);
    }

    pub(super) fn put(&mut self, table: &str, facts: Facts) {
        if self.0.len() >= TABLES_MAX && !self.0.contains_key(table) {
            self.0.clear();
        }
        self.0.insert(table.to_owned(), facts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_table_too_many_makes_it_forget_all() {
        let mut tables = Tables::default();
        let facts = Facts { table: 1, same: true, copied: false };
        for number in 0..TABLES_MAX {
            tables.put(&format!("t{number}"), facts);
        }
        tables.put("t0", Facts::default());
        assert_eq!((tables.get("t0"), tables.get("t1")), (Some(Facts::default()), Some(facts)));
        tables.put("one more", facts);
        assert_eq!((tables.get("one more"), tables.get("t1")), (Some(facts), None));
    }
}
