//! Savepoints: SQLite keeps the rows, the session its settings and portals.

use super::output::Output;
use super::{Failure, Session};
use crate::sql::token::quote_name;

/// A savepoint of the open transaction.
pub(super) struct Savepoint {
    name: String,
    /// How many settings the transaction had changed.
    settings: usize,
    is_read_only: bool,
}

impl Session<'_> {
    pub(super) fn save(&mut self, name: &str, out: &mut Output<'_>) -> Result<(), Failure> {
        self.in_block("SAVEPOINT")?;
        self.run_plain(&format!("SAVEPOINT {}", quote_name(name)), "SAVEPOINT", out)?;
        let settings = self.facts.settings().mark();
        let is_read_only = self.transaction.is_read_only;
        self.savepoints.push(Savepoint { name: name.to_owned(), settings, is_read_only });
        Ok(())
    }

    pub(super) fn release(&mut self, name: &str, out: &mut Output<'_>) -> Result<(), Failure> {
        self.in_block("RELEASE SAVEPOINT")?;
        self.run_plain(&format!("RELEASE {}", quote_name(name)), "RELEASE", out)?;
        let place = self.place_of(name);
        self.savepoints.truncate(place);
        for portal in self.portals.values_mut().chain(&mut self.unnamed_portal) {
            portal.depth = portal.depth.min(place);
        }
        Ok(())
    }

    /// Undoes what was done since a savepoint; portals that were opened before it stay where they are.
    pub(super) fn roll_back_to(&mut self, name: &str, out: &mut Output<'_>) -> Result<(), Failure> {
        self.in_block("ROLLBACK TO SAVEPOINT")?;
        let place = self.place_of(name);
        self.close_portals_above(place);
        self.run_plain(&format!("ROLLBACK TO {}", quote_name(name)), "ROLLBACK", out)?;
        self.transaction.has_failed = false;
        if let Some(savepoint) = self.savepoints.get(place) {
            self.facts.settings().roll_back_to(savepoint.settings);
            self.transaction.is_read_only = savepoint.is_read_only;
        }
        self.savepoints.truncate(place + 1);
        Ok(())
    }

    /// Where the savepoint of this name is that was made last. SQLite says where there is none.
    fn place_of(&self, name: &str) -> usize {
        self.savepoints.iter().rposition(|savepoint| savepoint.name == name).unwrap_or(self.savepoints.len())
    }
}
