//! Running what was bound: by SQLite, statement by statement, or by the session itself.

use std::rc::Rc;
use std::sync::atomic::Ordering;

use onetrip_wire::pg::backend;

use super::output::Output;
use super::portal::{Portal, Reading, put_description};
use super::transaction::Block;
use super::{Failure, Session, errors};
use crate::error::{SqlError, SqlResult};
use crate::sql::{Ddl, Run, Statement, Utility, Verb};

impl<'c> Session<'c> {
    /// Runs a portal: its rows, then CommandComplete or PortalSuspended. `is_alone` says that nothing else belongs
    /// to the same transaction, so that SQLite's own is enough; `is_described` that a RowDescription goes first.
    pub(super) fn run(
        &mut self,
        portal: &mut Portal<'c>,
        limit: Option<u64>,
        (is_alone, is_described): (bool, bool),
        out: &mut Output<'_>,
    ) -> Result<(), Failure> {
        let prepared = Rc::clone(&portal.prepared);
        if self.transaction.block == Block::Idle {
            self.facts.forget_transaction_start();
        }
        let timeout = self.facts.settings().statement_timeout();
        self.facts.watch.limit(timeout);
        match &prepared.statement {
            Statement::Empty => {
                out.bare(backend::EMPTY_QUERY_RESPONSE);
                Ok(())
            }
            Statement::Run(run) => self.run_in_sqlite(run, portal, limit, (is_alone, is_described), out),
            Statement::Ddl(ddl) => {
                self.transaction.check_usable()?;
                self.enter(true, is_alone && ddl.statements.len() < 2, ddl.tag)?;
                self.define(ddl)?;
                let rows = (ddl.tag == "SELECT").then(|| self.connection.changes());
                out.command_complete(ddl.tag, rows);
                Ok(())
            }
            Statement::Utility(Utility::Declare { cursor, is_held, .. }) => {
                self.transaction.check_usable()?;
                Ok(self.declare(cursor, portal, *is_held, out)?)
            }
            Statement::Utility(Utility::Question(question)) => {
                self.transaction.check_usable()?;
                Ok(self.answer(question, portal.asked.as_deref(), is_described, out)?)
            }
            Statement::Utility(utility) => {
                self.utility(utility, &portal.formats, (is_alone, is_described), out)
            }
        }
    }

    fn run_in_sqlite(
        &mut self,
        run: &Run,
        portal: &mut Portal<'c>,
        limit: Option<u64>,
        (is_alone, is_described): (bool, bool),
        out: &mut Output<'_>,
    ) -> Result<(), Failure> {
        self.transaction.check_usable()?;
        let writes = run.verb != Verb::Select && run.verb != Verb::Explain;
        self.enter(writes, is_alone, verb_word(run.verb))?;
        if is_described && !run.columns.is_empty() {
            put_description(&mut out.buffer, &run.columns, &portal.formats);
        }
        let mut rows = 0;
        match (portal.read(limit, false, &mut rows, out)?, run.verb) {
            (Reading::Suspended, _) => out.bare(backend::PORTAL_SUSPENDED),
            (Reading::Done, Verb::Explain) => out.command_complete("EXPLAIN", None),
            (Reading::Done, Verb::Select) => out.command_complete("SELECT", Some(rows)),
            (Reading::Done, verb) => out.command_complete(verb_tag(verb), Some(self.connection.changes())),
        }
        Ok(())
    }

    /// Opens the implicit transaction where one is needed, and guards read-only ones.
    pub(super) fn enter(&mut self, writes: bool, is_alone: bool, what: &str) -> SqlResult<()> {
        let is_read_only = self.transaction.is_read_only
            || (self.is_read_only_by_default && self.transaction.block != Block::Explicit);
        if writes && is_read_only {
            let message = format!("cannot execute {what} in a read-only transaction");
            return Err(SqlError::new("25006", message));
        }
        if !is_alone && self.transaction.block == Block::Idle {
            self.transaction.begin(Block::Implicit)?;
        }
        Ok(())
    }

    fn define(&mut self, ddl: &Ddl) -> SqlResult<()> {
        // SQLite refuses to change tables that an open cursor reads.
        self.plans.clear();
        self.changed_schema = true;
        let is_own = self.transaction.block == Block::Idle && ddl.statements.len() > 1;
        if is_own {
            self.transaction.begin(Block::Implicit)?;
        }
        for statement in &ddl.statements {
            self.connection.execute_batch(statement).map_err(|error| errors::from_sqlite(&error))?;
        }
        if is_own {
            self.transaction.commit()?;
        }
        self.common.schema_epoch.fetch_add(1, Ordering::AcqRel);
        if self.transaction.block == Block::Idle {
            self.changed_schema = false;
        }
        Ok(())
    }
}

fn verb_tag(verb: Verb) -> &'static str {
    match verb {
        Verb::Insert => "INSERT 0",
        other => verb_word(other),
    }
}

fn verb_word(verb: Verb) -> &'static str {
    match verb {
        Verb::Select => "SELECT",
        Verb::Insert => "INSERT",
        Verb::Update => "UPDATE",
        Verb::Delete => "DELETE",
        Verb::Explain => "EXPLAIN",
    }
}
