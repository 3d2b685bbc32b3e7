//! What a server does that no program asks it for.

use super::failure::{Failure, Warning};
use super::rows::Row;
use super::schema::{self, TABLES, Table};
use super::settings::Settings;
use super::syntax::Statement;
use super::value::Value;

/// What goes wrong, and what the server is.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    /// What the names of savepoints begin with of which the next one cannot be rolled back to.
    pub(crate) back_to: Option<&'static str>,
    /// A session, and the beginning of the next statement of it that fails.
    refuses: Option<(usize, &'static str)>,
    /// The key of a row of `p` of which the server warns.
    pub(crate) warns: Option<i64>,
    /// What the name of a savepoint begins with behind which the next piece of a result fails.
    pub(crate) ahead: Option<&'static str>,
    /// Pieces that have failed so.
    pub(crate) failed_ahead: u64,
    /// The session whose next statement meets a cancel request.
    pub(crate) cancelled: Option<usize>,
    /// It follows another server, and writes nothing.
    pub(crate) stands_by: bool,
    /// A pooler gives all sessions one session of the server, with these settings.
    pub(crate) shared: Option<Settings>,
    /// What nobody may read or write any more.
    revoked: Vec<Table>,
}

impl Faults {
    pub(crate) fn refuse(&mut self, session: usize, beginning: &'static str) {
        self.refuses = Some((session, beginning));
    }

    pub(crate) fn revoke(&mut self, table: &str) {
        self.revoked.extend(schema::table_named(table));
    }

    /// Fails where it is this session's statement that is to fail.
    pub(crate) fn admits(&mut self, session: usize, statement: &Statement) -> Result<(), Failure> {
        if self.cancelled.take_if(|number| *number == session).is_some() {
            return Err(Failure::new("57014", "canceling statement due to user request"));
        }
        let is_meant = |(whose, beginning)| whose == session && is_beginning(beginning, statement);
        match self.refuses.take_if(|refused| is_meant(*refused)) {
            Some(_) => Err(Failure::new("53200", "out of memory")),
            None => Ok(()),
        }
    }

    /// Fails where a piece of a result is to fail behind this savepoint, the innermost one.
    pub(crate) fn admits_piece(&mut self, savepoint: Option<&str>) -> Result<(), Failure> {
        let is_behind = |beginning: &str| savepoint.is_some_and(|name| name.starts_with(beginning));
        if self.ahead.take_if(|beginning| is_behind(beginning)).is_none() {
            return Ok(());
        }
        self.failed_ahead += 1;
        Err(Failure::new("53200", "out of memory"))
    }

    /// What is said of an answer of one row.
    pub(crate) fn warning(&self, table: Option<Table>, rows: &[Row]) -> Option<Warning> {
        let key = self.warns.filter(|_| table == schema::table_named("p"))?;
        match rows {
            [row] if row[0] == Value::Integer(key) => Some(("01000", "this row is odd")),
            _ => None,
        }
    }

    /// Fails where nobody may use the table.
    pub(crate) fn allows(&self, table: Table) -> Result<(), Failure> {
        if !self.revoked.contains(&table) {
            return Ok(());
        }
        Err(Failure::new("42501", format!("permission denied for table {}", TABLES[table].name)))
    }
}

/// Sessions of onetrip begin their own transactions with BEGIN, so that START is surely a program's.
fn is_beginning(text: &str, statement: &Statement) -> bool {
    match statement {
        Statement::Begin { starts, .. } => *starts && text == "START",
        Statement::Commit { .. } => text == "COMMIT",
        Statement::DiscardAll => text == "DISCARD",
        Statement::ResetAll => text == "RESET",
        _ => false,
    }
}
