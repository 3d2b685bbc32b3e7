//! What has to be known about a table before its rows may come by one statement, or by COPY.

use std::collections::HashMap;

use crate::{Done, Error};

/// Tables that a connection remembers. If there is one more, it forgets all of them.
const TABLES_MAX: usize = 256;

/// Whether rows of a table mean the same when they come by one statement.
///
/// Triggers could look at the rows before theirs, and so could a foreign key into the table itself; a rule rewrites INSERT
/// and not COPY. A transaction that keeps its snapshot does not see a trigger that was made after it, though the trigger
/// runs.
macro_rules! same {
    () => {
        "c.relkind = 'r' AND NOT c.relhasrules \
         AND NOT EXISTS (SELECT FROM pg_catalog.pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal) \
         AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint k WHERE k.contype = 'f' AND k.conrelid = c.oid AND k.confrelid = c.oid) \
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

macro_rules! of_table {
    () => {
        " FROM pg_catalog.pg_class c WHERE c.oid = pg_catalog.to_regclass($1)"
    };
}

/// What is asked about a table.
pub(super) const FACTS: &str = concat!("SELECT ", same!(), ", ", copied!(), of_table!());

/// What divides by zero if rows of the table do not mean the same by one statement.
const GUARD: &str = concat!("SELECT 1 / count(*)", of_table!(), " AND ", same!());

/// The same for COPY.
const GUARD_OF_COPY: &str = concat!("SELECT 1 / count(*)", of_table!(), " AND ", same!(), " AND ", copied!());

/// What was asked about a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Facts {
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
            same: row.get(0).unwrap_or_default(),
            copied: row.get(1).unwrap_or_default(),
        })
    }

    /// What fails unless these are the facts, as far as a way needs them.
    pub(super) fn guard(is_copy: bool) -> &'static str {
        if is_copy { GUARD_OF_COPY } else { GUARD }
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
        let facts = Facts { same: true, copied: false };
        for number in 0..TABLES_MAX {
            tables.put(&format!("t{number}"), facts);
        }
        tables.put("t0", Facts::default());
        assert_eq!((tables.get("t0"), tables.get("t1")), (Some(Facts::default()), Some(facts)));
        tables.put("one more", facts);
        assert_eq!((tables.get("one more"), tables.get("t1")), (Some(facts), None));
    }
}
