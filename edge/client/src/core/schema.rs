//! Statements that change tables, and what they mean for prepared statements. The server refuses a prepared statement
//! whose result has other columns than it had. In a transaction, that is the end of the transaction.

use super::Connection;

impl Connection {
    /// Prepares all statements anew when they are next used, without a trip of its own: for whoever knows that tables
    /// have changed, by another connection.
    pub fn forget_statements(&mut self) {
        self.statements.renew_all();
    }

    /// Statements stay prepared once they have run so often; [`Limits::prepare_after`](super::Limits::prepare_after).
    pub fn set_prepare_after(&mut self, runs: u32) {
        self.limits.prepare_after = runs;
    }

    /// Whether statements stay prepared at all.
    pub(super) fn prepares(&self) -> bool {
        self.limits.prepare_after < u32::MAX
    }

    /// A statement is done; it may have changed tables, or taken such changes back.
    pub(super) fn tables_may_have_changed(&mut self, tag: &[u8]) {
        let changes = [&b"ALTER "[..], b"CREATE ", b"DROP "].iter().any(|word| tag.starts_with(word));
        if changes || (self.has_changed_tables && tag == b"ROLLBACK") {
            self.statements.renew_all();
        }
        let ends = matches!(tag, b"COMMIT" | b"ROLLBACK");
        self.has_changed_tables = changes || (self.has_changed_tables && !ends);
    }
}
