//! Prepared statements: the text, what it became, and SQLite's statements for it.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use rusqlite::{Connection, StatementStatus};

use super::errors::from_sqlite;
use crate::catalog;
use crate::error::{SqlError, SqlResult};
use crate::sql::{LiveSchema, OutputColumn, Run, Statement, Utility, Verb, translate};
use crate::types::{SqlType, declared_type};

/// Texts that are kept translated when no name holds them, and the longest such text.
const PLANS_MAX: usize = 64;
const PLAN_BYTES_MAX: usize = 32 << 10;

/// Most statements that a session has names for.
const STATEMENTS_MAX: usize = 10_000;

/// Most parameters: SQLite's default limit.
const PARAMETERS_MAX: usize = 32_766;

/// Bytes that the named statements of a session may take together.
const STATEMENTS_BYTES_MAX: usize = 32 << 20;

/// What a statement takes beside its texts and what SQLite made of it, roughly.
const STATEMENT_BYTES: usize = 1 << 10;

/// A statement ready to be bound, any number of times at once.
pub(super) struct Prepared<'c> {
    pub(super) text: Box<str>,
    pub(super) given: Box<[SqlType]>,
    pub(super) statement: Statement,
    /// What a DECLARE declares a cursor for, which takes its parameters.
    pub(super) declared: Option<Rc<Prepared<'c>>>,
    /// SQLite's statements that no portal uses.
    idle: RefCell<Vec<rusqlite::Statement<'c>>>,
    /// What it takes, roughly: texts, and what SQLite made of them.
    pub(super) bytes: usize,
    /// Schema epoch of the translation.
    epoch: Cell<u64>,
}

impl<'c> Prepared<'c> {
    /// Translates and compiles; `epoch` is the schema's.
    pub(super) fn new(schema: &LiveSchema<'c>, text: &str, given: &[SqlType], epoch: u64) -> SqlResult<Self> {
        let connection = schema.connection;
        let mut statement = translate(text, given, schema)?;
        let mut idle = Vec::new();
        // As the tokens and the tree of a text are freed, what is left of it is the text itself.
        let mut bytes = STATEMENT_BYTES + text.len();
        let mut declared = None;
        if let Statement::Utility(Utility::Declare { text, .. }) = &statement {
            let inner = Self::new(schema, text, given, epoch)?;
            if !matches!(&inner.statement, Statement::Run(run) if run.verb == Verb::Select) {
                return Err(SqlError::new("42601", "a cursor is declared for a SELECT"));
            }
            bytes += inner.bytes;
            declared = Some(Rc::new(inner));
        }
        if let Statement::Run(run) = &mut statement {
            if run.parameters.len() > PARAMETERS_MAX {
                return Err(SqlError::new("54023", "too many parameters"));
            }
            if run.uses_catalog {
                catalog::install(connection).map_err(|error| from_sqlite(&error))?;
            }
            let compiled = connection.prepare(&run.sql).map_err(|error| from_sqlite(&error))?;
            describe(run, &compiled);
            let compiled_bytes = usize::try_from(compiled.get_status(StatementStatus::MemUsed)).unwrap_or(0);
            bytes += run.sql.len() + compiled_bytes;
            idle.push(compiled);
        }
        Ok(Self {
            text: text.into(),
            given: given.into(),
            statement,
            declared,
            idle: RefCell::new(idle),
            bytes,
            epoch: Cell::new(epoch),
        })
    }

    pub(super) fn parameters(&self) -> &[SqlType] {
        match (&self.statement, &self.declared) {
            (Statement::Run(run), _) => &run.parameters,
            (Statement::Utility(Utility::Question(question)), _) => question.parameters(),
            (_, Some(declared)) => declared.parameters(),
            _ => &[],
        }
    }

    pub(super) fn columns(&self) -> &[OutputColumn] {
        match &self.statement {
            Statement::Run(run) => &run.columns,
            _ => &[],
        }
    }

    /// A compiled statement for a portal to use.
    pub(super) fn check_out(&self, connection: &'c Connection) -> SqlResult<Option<rusqlite::Statement<'c>>> {
        if let Some(declared) = &self.declared {
            return declared.check_out(connection);
        }
        let Statement::Run(run) = &self.statement else { return Ok(None) };
        if let Some(idle) = self.idle.borrow_mut().pop() {
            return Ok(Some(idle));
        }
        connection.prepare(&run.sql).map(Some).map_err(|error| from_sqlite(&error))
    }

    /// Takes a compiled statement back for the next portal.
    pub(super) fn check_in(&self, mut compiled: rusqlite::Statement<'c>) {
        drop(compiled.raw_query()); // resets it
        if let Some(declared) = &self.declared {
            return declared.check_in(compiled);
        }
        let mut idle = self.idle.borrow_mut();
        let idle_max = if self.text.len() <= PLAN_BYTES_MAX { 4 } else { 1 };
        if idle.len() < idle_max {
            idle.push(compiled);
        }
    }

    /// Checks that a change of the schema left the translation as it was.
    pub(super) fn refresh(&self, schema: &LiveSchema<'c>, epoch: u64) -> SqlResult<()> {
        if self.epoch.get() == epoch {
            return Ok(());
        }
        if let Some(declared) = &self.declared {
            return declared.refresh(schema, epoch);
        }
        let Statement::Run(run) = &self.statement else {
            self.epoch.set(epoch);
            return Ok(());
        };
        schema.refresh(epoch);
        let anew = Prepared::new(schema, &self.text, &self.given, epoch)?;
        let Statement::Run(now) = &anew.statement else { return Ok(()) };
        let same_columns = run.columns.len() == now.columns.len()
            && run.columns.iter().zip(&now.columns).all(|(a, b)| a.ty == b.ty && a.name == b.name);
        if !same_columns {
            return Err(SqlError::new("0A000", "cached plan must not change result type"));
        }
        if run.sql != now.sql || run.parameters != now.parameters {
            return Err(SqlError::new("0A000", "the schema changed; prepare the statement again"));
        }
        self.epoch.set(epoch);
        Ok(())
    }
}

/// Takes SQLite's word for the columns where it has others than the translator found.
fn describe(run: &mut Run, compiled: &rusqlite::Statement<'_>) {
    if run.verb == Verb::Explain || compiled.column_count() == run.columns.len() {
        return;
    }
    run.columns = compiled
        .columns()
        .iter()
        .enumerate()
        .map(|(source, column)| OutputColumn {
            name: column.name().to_owned(),
            ty: column.decl_type().and_then(declared_type).unwrap_or(SqlType::TEXT),
            scale: None,
            source,
        })
        .collect();
}

/// The statements that a session has names for.
#[derive(Default)]
pub(super) struct Named<'c> {
    by_name: HashMap<Vec<u8>, Rc<Prepared<'c>>>,
    bytes: usize,
}

impl<'c> Named<'c> {
    pub(super) fn get(&self, name: &[u8]) -> Option<&Rc<Prepared<'c>>> {
        self.by_name.get(name)
    }

    pub(super) fn insert(&mut self, name: &[u8], prepared: Rc<Prepared<'c>>) -> SqlResult<()> {
        if self.by_name.contains_key(name) {
            let name = String::from_utf8_lossy(name);
            return Err(SqlError::new("42P05", format!("prepared statement \"{name}\" already exists")));
        }
        if self.by_name.len() >= STATEMENTS_MAX {
            return Err(SqlError::new("53000", "too many prepared statements"));
        }
        let bytes = cost(name, &prepared);
        if self.bytes + bytes > STATEMENTS_BYTES_MAX {
            let mebibytes = STATEMENTS_BYTES_MAX >> 20;
            let message = format!("prepared statements of a session would take more than {mebibytes} MiB");
            return Err(SqlError::new("54000", message));
        }
        self.bytes += bytes;
        self.by_name.insert(name.to_vec(), prepared);
        Ok(())
    }

    pub(super) fn remove(&mut self, name: &[u8]) {
        if let Some(prepared) = self.by_name.remove(name) {
            self.bytes -= cost(name, &prepared);
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

fn cost(name: &[u8], prepared: &Prepared<'_>) -> usize {
    name.len() + prepared.bytes
}

/// The statements used last, by their text, so that a text sent again need not be translated again.
#[derive(Default)]
pub(super) struct Plans<'c> {
    recent: Vec<Rc<Prepared<'c>>>,
    epoch: u64,
}

impl<'c> Plans<'c> {
    /// The statement of this text, from memory or made now.
    pub(super) fn get(
        &mut self,
        schema: &LiveSchema<'c>,
        text: &str,
        given: &[SqlType],
        epoch: u64,
    ) -> SqlResult<Rc<Prepared<'c>>> {
        if self.epoch != epoch {
            self.recent.clear();
            self.epoch = epoch;
        }
        let found = self.recent.iter().rposition(|plan| *plan.text == *text && *plan.given == *given);
        if let Some(index) = found {
            let plan = self.recent.remove(index);
            self.recent.push(Rc::clone(&plan));
            return Ok(plan);
        }
        if schema.refresh(epoch) {
            self.recent.clear();
        }
        let plan = Rc::new(Prepared::new(schema, text, given, epoch)?);
        if text.len() <= PLAN_BYTES_MAX {
            if self.recent.len() == PLANS_MAX {
                self.recent.remove(0);
            }
            self.recent.push(Rc::clone(&plan));
        }
        Ok(plan)
    }

    pub(super) fn clear(&mut self) {
        self.recent.clear();
    }
}
