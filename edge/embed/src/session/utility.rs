//! What the session does itself: transactions, settings, cursors, statements by SQL.

use onetrip_wire::pg::{Format, backend, frame};

use super::errors::from_sqlite;
use super::extended::no_portal;
use super::output::Output;
use super::portal::{Portal, Reading, put_description};
use super::transaction::Block;
use super::{Failure, Session};
use crate::error::{SqlError, SqlResult};
use crate::sql::{Modes, Statement, Utility};

impl<'c> Session<'c> {
    pub(super) fn utility(
        &mut self,
        utility: &Utility,
        formats: &[Format],
        (is_alone, is_described): (bool, bool),
        out: &mut Output<'_>,
    ) -> Result<(), Failure> {
        if !matches!(utility, Utility::Commit | Utility::Rollback | Utility::RollbackTo(_)) {
            self.transaction.check_usable()?;
        }
        match utility {
            Utility::Commit => Ok(self.end_block(true, out)?),
            Utility::Rollback => Ok(self.end_block(false, out)?),
            Utility::RollbackTo(name) => self.roll_back_to(name, out),
            // The caller does it, who has the portal.
            Utility::Declare { .. } | Utility::Question(_) => Ok(()),
            Utility::Begin(modes) => Ok(self.begin_block(*modes, out)?),
            Utility::Savepoint(name) => self.save(name, out),
            Utility::Release(name) => self.release(name, out),
            Utility::Set { .. } | Utility::SetTransaction { .. } | Utility::Reset(_) => {
                Ok(self.change_setting(utility, out)?)
            }
            Utility::Show(name) => Ok(self.show(name, is_described, out)?),
            Utility::Discard => Ok(self.discard(out)?),
            Utility::Deallocate(name) => Ok(self.deallocate(name.as_deref(), out)?),
            Utility::Prepare { name, types, text } => {
                let prepared = self.prepare(text, types)?;
                self.name_statement(name.as_bytes(), prepared)?;
                self.has_sql_statements = true;
                out.command_complete("PREPARE", None);
                Ok(())
            }
            Utility::Execute { name, arguments } => {
                self.execute_by_name(name, arguments, formats, (is_alone, is_described), out)
            }
            Utility::Fetch { cursor, count, is_move } => {
                self.fetch(cursor, *count, formats, (*is_move, is_described), out)
            }
            Utility::CloseCursor(name) => Ok(self.close_cursor(name.as_deref(), out)?),
            Utility::Nothing(tag) => {
                out.command_complete(tag, None);
                Ok(())
            }
            Utility::Analyze => self.run_plain("ANALYZE main", "ANALYZE", out),
            Utility::Vacuum => {
                self.outside_block("VACUUM")?;
                self.run_plain("VACUUM main", "VACUUM", out)
            }
            Utility::Copy(copy) => self.copy_start(copy, false, out),
        }
    }

    pub(super) fn run_plain(&self, sql: &str, tag: &str, out: &mut Output<'_>) -> Result<(), Failure> {
        self.connection.execute_batch(sql).map_err(|error| from_sqlite(&error))?;
        out.command_complete(tag, None);
        Ok(())
    }

    fn outside_block(&self, what: &str) -> SqlResult<()> {
        if self.transaction.block == Block::Idle {
            return Ok(());
        }
        Err(SqlError::new("25001", format!("{what} cannot run inside a transaction block")))
    }

    fn discard(&mut self, out: &mut Output<'_>) -> SqlResult<()> {
        if self.transaction.block == Block::Explicit {
            self.outside_block("DISCARD ALL")?;
        }
        self.statements.clear();
        self.has_sql_statements = false;
        self.close_portals();
        self.reset_all();
        out.command_complete("DISCARD ALL", None);
        Ok(())
    }

    /// SET, SET TRANSACTION and RESET.
    fn change_setting(&mut self, utility: &Utility, out: &mut Output<'_>) -> SqlResult<()> {
        match utility {
            Utility::Set { name, value, is_local } => self.set(name, value.as_deref(), *is_local)?,
            Utility::SetTransaction { modes, is_session: true } => {
                self.is_read_only_by_default = modes.is_read_only.unwrap_or(self.is_read_only_by_default);
                if let Some(level) = modes.isolation {
                    self.facts.settings().set("default_transaction_isolation", Some(level), false)?;
                }
            }
            Utility::SetTransaction { modes, is_session: false } => self.set_modes(*modes)?,
            Utility::Reset(Some(name)) => self.set(name, None, false)?,
            Utility::Reset(None) => self.reset_all(),
            _ => {}
        }
        let is_reset = matches!(utility, Utility::Reset(_));
        out.command_complete(if is_reset { "RESET" } else { "SET" }, None);
        Ok(())
    }

    /// Gives the open transaction what BEGIN or SET TRANSACTION says.
    fn set_modes(&mut self, modes: Modes) -> SqlResult<()> {
        self.transaction.is_read_only = modes.is_read_only.unwrap_or(self.transaction.is_read_only);
        match modes.isolation {
            Some(level) => self.facts.settings().set("transaction_isolation", Some(level), true),
            None => Ok(()),
        }
    }

    fn begin_block(&mut self, modes: Modes, out: &mut Output<'_>) -> SqlResult<()> {
        if self.transaction.block == Block::Explicit {
            warn(out, "25001", "there is already a transaction in progress");
        } else {
            self.transaction.begin(Block::Explicit)?;
            self.transaction.is_read_only = self.is_read_only_by_default;
            let level = self.facts.settings().get("default_transaction_isolation")?.to_owned();
            self.facts.settings().set("transaction_isolation", Some(&level), true)?;
            self.set_modes(modes)?;
        }
        out.command_complete("BEGIN", None);
        Ok(())
    }

    /// COMMIT or ROLLBACK; a failed transaction can only be rolled back, and its COMMIT says so.
    fn end_block(&mut self, commits: bool, out: &mut Output<'_>) -> SqlResult<()> {
        if self.transaction.block == Block::Idle {
            warn(out, "25P01", "there is no transaction in progress");
            out.command_complete(if commits { "COMMIT" } else { "ROLLBACK" }, None);
            return Ok(());
        }
        if commits && !self.transaction.has_failed {
            self.commit()?;
            out.command_complete("COMMIT", None);
        } else {
            self.roll_back();
            out.command_complete("ROLLBACK", None);
        }
        Ok(())
    }

    pub(super) fn in_block(&self, what: &str) -> SqlResult<()> {
        if self.transaction.block == Block::Idle {
            return Err(SqlError::new("25P01", format!("{what} can only be used in transaction blocks")));
        }
        Ok(())
    }

    fn set(&mut self, name: &str, value: Option<&str>, is_local: bool) -> SqlResult<()> {
        let is_on = value.is_some_and(|value| matches!(value, "on" | "true" | "1" | "yes"));
        match name {
            "default_transaction_read_only" => self.is_read_only_by_default = is_on,
            "transaction_read_only" => self.transaction.is_read_only = is_on,
            _ => {}
        }
        self.facts.settings().set(name, value, is_local)
    }

    fn reset_all(&mut self) {
        self.is_read_only_by_default = false;
        self.facts.settings().reset_all();
    }

    fn show(&self, name: &str, is_described: bool, out: &mut Output<'_>) -> SqlResult<()> {
        let settings = self.facts.settings();
        let columns = self.utility_columns(&Statement::Utility(Utility::Show(name.to_owned())))?;
        if is_described {
            put_description(&mut out.buffer, &columns.unwrap_or_default(), &[]);
        }
        if name == "all" {
            for (name, value) in settings.all() {
                out.text_row(&[name, value, ""]);
            }
        } else {
            out.text_row(&[settings.get(name)?]);
        }
        out.command_complete("SHOW", None);
        Ok(())
    }

    fn deallocate(&mut self, name: Option<&str>, out: &mut Output<'_>) -> SqlResult<()> {
        match name {
            None => {
                self.statements.clear();
                self.has_sql_statements = false;
                out.command_complete("DEALLOCATE ALL", None);
            }
            Some(name) => {
                self.find_statement(name.as_bytes())?;
                self.statements.remove(name.as_bytes());
                out.command_complete("DEALLOCATE", None);
            }
        }
        Ok(())
    }

    fn execute_by_name(
        &mut self,
        name: &str,
        arguments: &[Option<String>],
        formats: &[Format],
        how: (bool, bool),
        out: &mut Output<'_>,
    ) -> Result<(), Failure> {
        let prepared = self.find_statement(name.as_bytes())?;
        if matches!(prepared.statement, Statement::Utility(Utility::Execute { .. })) {
            return Err(SqlError::unsupported("EXECUTE of an EXECUTE is not supported").into());
        }
        prepared.refresh(&self.schema, self.schema_epoch())?;
        let mut portal = self.open_portal(prepared)?;
        portal.formats.extend_from_slice(formats);
        let done = match portal.bind_texts(arguments) {
            Ok(()) => self.run(&mut portal, None, how, out),
            Err(error) => Err(error.into()),
        };
        self.spare_formats = portal.close();
        done
    }

    /// Makes a cursor of what a bound DECLARE holds.
    pub(super) fn declare(
        &mut self,
        cursor: &str,
        bound: &mut Portal<'c>,
        is_held: bool,
        out: &mut Output<'_>,
    ) -> SqlResult<()> {
        if !is_held {
            self.in_block("DECLARE CURSOR")?;
        }
        self.check_portals(cursor.as_bytes(), bound.bytes)?;
        let declared = bound.prepared.declared.clone();
        let (Some(prepared), Some(compiled)) = (declared, bound.compiled.take()) else {
            return Err(SqlError::new("34000", "the portal of a DECLARE runs once"));
        };
        let portal = Portal {
            prepared,
            compiled: Some(compiled),
            formats: Vec::new(),
            bytes: bound.bytes,
            is_done: false,
            is_held,
            depth: self.savepoints.len(),
            asked: None,
        };
        self.portals.insert(cursor.as_bytes().to_vec(), portal);
        out.command_complete("DECLARE CURSOR", None);
        Ok(())
    }

    fn fetch(
        &mut self,
        cursor: &str,
        count: Option<u64>,
        formats: &[Format],
        (is_move, is_described): (bool, bool),
        out: &mut Output<'_>,
    ) -> Result<(), Failure> {
        let (name, mut portal) = self
            .portals
            .remove_entry(cursor.as_bytes())
            .ok_or_else(|| SqlError::new("34000", format!("cursor \"{cursor}\" does not exist")))?;
        portal.formats.clear();
        portal.formats.extend_from_slice(formats);
        if is_described && !is_move {
            put_description(&mut out.buffer, portal.prepared.columns(), &portal.formats);
        }
        let mut rows = 0;
        let read = portal.read(count, is_move, &mut rows, out);
        self.portals.insert(name, portal);
        let _: Reading = read?;
        out.command_complete(if is_move { "MOVE" } else { "FETCH" }, Some(rows));
        Ok(())
    }

    fn close_cursor(&mut self, name: Option<&str>, out: &mut Output<'_>) -> SqlResult<()> {
        match name {
            None => {
                for (_, portal) in self.portals.drain() {
                    portal.close();
                }
                out.command_complete("CLOSE CURSOR ALL", None);
            }
            Some(name) => {
                let portal =
                    self.portals.remove(name.as_bytes()).ok_or_else(|| no_portal(name.as_bytes()))?;
                portal.close();
                out.command_complete("CLOSE CURSOR", None);
            }
        }
        Ok(())
    }
}

/// A NoticeResponse of severity WARNING.
fn warn(out: &mut Output<'_>, sqlstate: &str, message: &str) {
    frame(&mut out.buffer, backend::NOTICE_RESPONSE, |out| {
        for (letter, value) in [(b'S', "WARNING"), (b'V', "WARNING"), (b'C', sqlstate), (b'M', message)] {
            out.push(letter);
            out.extend_from_slice(value.as_bytes());
            out.push(0);
        }
        out.push(0);
    });
}
