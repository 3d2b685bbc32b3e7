//! What statements do.

use std::sync::Arc;

use super::backend::{Backend, Output, Prepared, Turn, World};
use super::catalogue;
use super::evaluate::Scope;
use super::failure::Failure;
use super::locks::Mode;
use super::rows::Row;
use super::schema::{self, LOG, TABLES, Table};
use super::syntax::{Expression, Item, Level, Rows, Select, Statement};
use super::transaction::Block;
use super::value::{Type, Value};

pub(super) type Worked<T> = Result<Turn<T>, Failure>;

/// Runs a step, and returns if it waits.
macro_rules! done {
    ($step:expr) => {
        match $step? {
            Turn::Done(value) => value,
            Turn::Blocked(by) => return Ok(Turn::Blocked(by)),
        }
    };
}
pub(crate) use done;

/// Whether its analysis looks at tables, and takes a snapshot.
pub(crate) fn is_optimizable(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::Select(_)
            | Statement::Insert(_)
            | Statement::Update(_)
            | Statement::Delete(_)
            | Statement::Declare { .. }
            | Statement::Question(_)
    )
}

/// Whether it runs in a transaction that has failed.
pub(crate) fn ends_transaction(statement: Option<&Statement>) -> bool {
    matches!(
        statement,
        Some(Statement::Commit { .. } | Statement::Rollback { .. } | Statement::RollbackTo(_))
    )
}

impl Backend {
    /// Takes the locks that a statement's analysis takes.
    pub(crate) fn lock_for(&mut self, world: &mut World, statement: &Statement) -> Worked<()> {
        let wanted = match statement {
            Statement::Select(select) | Statement::Declare { select, .. } => {
                let mode = if select.locks { Mode::RowShare } else { Mode::AccessShare };
                select.table.map(|table| (table, mode))
            }
            Statement::Insert(insert) => Some((insert.table, Mode::RowExclusive)),
            Statement::Update(change) | Statement::Delete(change) => Some((change.table, Mode::RowExclusive)),
            _ => None,
        };
        if is_optimizable(statement) {
            self.transaction().snapshot(&world.rows);
        }
        match wanted {
            Some((table, mode)) => self.lock(world, table, mode),
            None => Ok(Turn::Done(())),
        }
    }

    pub(super) fn lock(&mut self, world: &mut World, table: Table, mode: Mode) -> Worked<()> {
        match world.locks.take(self.number, table, mode, self.depth()) {
            Ok(()) => Ok(Turn::Done(())),
            Err(ahead) => Ok(Turn::Blocked(ahead)),
        }
    }

    /// Runs a statement that is not a portal's rows.
    pub(crate) fn run(
        &mut self,
        world: &mut World,
        prepared: &Prepared,
        parameters: &[Value],
    ) -> Worked<Output> {
        let Some(statement) = &prepared.statement else { return Ok(Turn::Done(Output::default())) };
        if let Err(failure) = world.faults.admits(self.number, statement) {
            if matches!(statement, Statement::Commit { .. }) {
                self.roll_back(world);
            }
            return Err(failure);
        }
        done!(self.lock_for(world, statement));
        // Of statements that are not planned, these run with a snapshot (`PlannedStmtRequiresSnapshot`).
        if matches!(statement, Statement::Close(_) | Statement::Deallocate(_) | Statement::DiscardAll) {
            self.transaction().snapshot(&world.rows);
        }
        let kinds = &prepared.analyzed.parameters;
        let columns = prepared.analyzed.columns.as_deref().map(Arc::from);
        let mut output = match statement {
            Statement::Select(select) => done!(self.select(world, select, parameters, kinds)),
            Statement::Insert(insert) => done!(self.insert(world, insert, parameters, kinds)),
            Statement::Update(change) => done!(self.change(world, change, "UPDATE", parameters, kinds)),
            Statement::Delete(change) => done!(self.change(world, change, "DELETE", parameters, kinds)),
            Statement::Lock { tables, is_exclusive, nowait } => {
                done!(self.lock_tables(world, tables, *is_exclusive, *nowait))
            }
            Statement::Alter { is_wide } => {
                if self.is_in_block() {
                    return Err(Failure::unknown("ALTER TABLE in a transaction"));
                }
                done!(self.lock(world, schema::WIDENED.0, Mode::AccessExclusive));
                world.is_wide = *is_wide;
                tagged("ALTER TABLE")
            }
            Statement::Question(question) => catalogue::answer(world, self, question, parameters),
            other => self.utility(world, other)?,
        };
        if output.columns.is_none() {
            output.columns = columns;
        }
        Ok(Turn::Done(output))
    }

    pub(crate) fn select(
        &mut self,
        world: &mut World,
        select: &Select,
        parameters: &[Value],
        kinds: &[Type],
    ) -> Worked<Output> {
        if let Some(table) = select.table {
            world.faults.allows(table)?;
        }
        if select.locks {
            return self.select_for_update(world, select, parameters, kinds);
        }
        let snapshot = self.transaction().snapshot(&world.rows);
        let mut found: Vec<Row> = Vec::new();
        let mut output = Output::default();
        let scope = Scope { row: None, parameters, kinds, table: select.table };
        match select.table {
            None if scope.admits(select.condition.as_ref())? => found.push(Vec::new().into()),
            None => {}
            Some(table) => {
                let own = self.transaction().xid;
                for (_, row) in world.rows.seen(table, snapshot, own) {
                    if (Scope { row: Some(row), ..scope }).admits(select.condition.as_ref())? {
                        found.push(Arc::clone(row));
                    }
                }
                sort(&mut found, select);
                output.warning = world.faults.warning(select.table, &found);
            }
        }
        if select.is_aggregate() {
            output.rows.push(aggregate(select, &found));
        } else {
            for row in found.iter().take(select.limit.unwrap_or(usize::MAX)) {
                let scope = Scope { row: select.table.map(|_| row), ..scope };
                match self.project(world, &select.items, &scope) {
                    Ok(Turn::Done(row)) => output.rows.push(row),
                    Ok(Turn::Blocked(by)) => return Ok(Turn::Blocked(by)),
                    // What depends on no row is worked out with the plan.
                    Err(failure) if select.table.is_none() && !select.acts() => return Err(failure),
                    Err(failure) => {
                        output.failure = Some(failure);
                        break;
                    }
                }
            }
        }
        output.tag = "SELECT".to_owned();
        Ok(Turn::Done(output))
    }

    /// The columns of one row.
    pub(super) fn project(&mut self, world: &mut World, items: &[Item], scope: &Scope<'_>) -> Worked<Row> {
        let mut row = Vec::with_capacity(items.len());
        for item in items {
            row.push(match &item.expression {
                Expression::Side(inner) => {
                    let value = scope.value(inner)?;
                    done!(self.side(world, &value));
                    value
                }
                Expression::TryLock(key) => match scope.value(key)? {
                    Value::Integer(key) => {
                        Value::Boolean(*world.advisory.entry(key).or_insert(self.number) == self.number)
                    }
                    _ => Value::Null,
                },
                Expression::SetConfig(name, value, is_local) => {
                    self.set(name, Some(value), *is_local)?;
                    Value::Text(value.as_str().into())
                }
                Expression::Moves => {
                    self.fetch("c1", Rows::Forward(3), true)?;
                    Value::Integer(3)
                }
                Expression::UnlockAll => self.unlock_all(world)?,
                Expression::CurrentSetting(name) => Value::Text(self.show(name)?.into()),
                other => scope.value(other)?,
            });
        }
        Ok(Turn::Done(row.into()))
    }

    /// The server's function, or the one of a user's that hides it in another schema: that one fails now and then.
    fn unlock_all(&mut self, world: &mut World) -> Result<Value, Failure> {
        if !self.settings.has_builtins_first() {
            world.calls += 1;
            return match world.calls % 3 {
                0 => Err(Failure::new("P0001", "the third call")),
                _ => Ok(Value::Text("".into())),
            };
        }
        world.advisory.retain(|_, holder| *holder != self.number);
        Ok(Value::Text("".into()))
    }

    /// The function of a user's that writes.
    fn side(&mut self, world: &mut World, value: &Value) -> Worked<()> {
        let table = schema::table_named(LOG).unwrap_or_default();
        self.refuse_read_only("INSERT")?;
        done!(self.lock(world, table, Mode::RowExclusive));
        let Some(text) = value.text() else {
            return Err(Failure::new("23502", "null value in column \"what\" violates not-null constraint"));
        };
        let row = [Value::Text(format!("side {text}").into())];
        self.make(world, table, Arc::new(row));
        Ok(Turn::Done(()))
    }

    fn lock_tables(
        &mut self,
        world: &mut World,
        tables: &[Table],
        is_exclusive: bool,
        nowait: bool,
    ) -> Worked<Output> {
        self.needs_block("LOCK TABLE")?;
        let mode = if is_exclusive { Mode::AccessExclusive } else { Mode::AccessShare };
        for table in tables {
            // Up to PostgreSQL 17, NOWAIT does not go ahead of those who wait for the session itself.
            let has_to_queue = nowait
                && world.version < 18
                && !world.locks.has(self.number, *table, mode)
                && world.locks.is_awaited(self.number, *table, mode);
            match if has_to_queue { Turn::Blocked(Vec::new()) } else { self.lock(world, *table, mode)? } {
                Turn::Done(()) => {}
                Turn::Blocked(_) if nowait => {
                    let message = format!("could not obtain lock on relation \"{}\"", TABLES[*table].name);
                    return Err(Failure::new("55P03", message));
                }
                Turn::Blocked(by) => return Ok(Turn::Blocked(by)),
            }
        }
        Ok(Turn::Done(tagged("LOCK TABLE")))
    }

    /// Statements that never wait.
    fn utility(&mut self, world: &mut World, statement: &Statement) -> Result<Output, Failure> {
        match statement {
            Statement::Begin { modes, starts } => {
                let is_in_block = self.is_in_block();
                let transaction = self.transaction();
                transaction.block = Block::Explicit;
                let warning = is_in_block.then_some(("25001", "there is already a transaction in progress"));
                self.set_modes(*modes).map_err(|failure| failure.behind(warning))?;
                Ok(Output { warning, ..tagged(if *starts { "START TRANSACTION" } else { "BEGIN" }) })
            }
            Statement::Commit { chain } => self.end(world, true, *chain),
            Statement::Rollback { chain } => self.end(world, false, *chain),
            Statement::Savepoint(name) => {
                self.needs_block("SAVEPOINT")?;
                let before = self.settings.before();
                self.transaction().save(name.clone(), before);
                Ok(tagged("SAVEPOINT"))
            }
            Statement::Release(name) => self.release(name, world).map(|()| tagged("RELEASE")),
            Statement::RollbackTo(name) => self.roll_back_to(name, world).map(|()| tagged("ROLLBACK")),
            Statement::SetTransaction(modes) => {
                let warning = (!self.is_in_block())
                    .then_some(("25P01", "SET TRANSACTION can only be used in transaction blocks"));
                self.set_modes(*modes)?;
                Ok(Output { warning, ..tagged("SET") })
            }
            Statement::Set { name, value, is_local } => {
                let warning = (*is_local && !self.is_in_block())
                    .then_some(("25P01", "SET LOCAL can only be used in transaction blocks"));
                self.transaction();
                self.set(name, value.as_deref(), *is_local)?;
                Ok(Output { warning, ..tagged(if value.is_some() { "SET" } else { "RESET" }) })
            }
            Statement::ResetAll => {
                self.transaction();
                self.settings.reset_all();
                Ok(tagged("RESET"))
            }
            Statement::Show(name) => {
                let row: Row = Arc::new([Value::Text(self.show(name)?.into())]);
                Ok(Output { rows: vec![row], ..tagged("SHOW") })
            }
            other => self.cursors(world, other),
        }
    }

    fn end(&mut self, world: &mut World, commits: bool, chain: bool) -> Result<Output, Failure> {
        let verb = if commits { "COMMIT" } else { "ROLLBACK" };
        let is_in_block = self.is_in_block();
        if chain {
            self.needs_block(&format!("{verb} AND CHAIN"))?;
        }
        let (level, read_only) = (self.transaction().level, self.transaction().read_only);
        let has_failed = self.has_failed();
        if commits && !has_failed {
            self.commit(world)?;
        } else {
            self.roll_back(world);
        }
        if chain {
            self.transaction().follow(level, read_only);
        }
        let warning = (!is_in_block).then_some(("25P01", "there is no transaction in progress"));
        Ok(Output { warning, ..tagged(if has_failed { "ROLLBACK" } else { verb }) })
    }

    fn set(&mut self, name: &str, value: Option<&str>, is_local: bool) -> Result<(), Failure> {
        if name == "transaction_read_only" {
            let read_only = Some(value == Some("on"));
            return self.set_modes(super::syntax::Modes { level: None, read_only });
        }
        self.settings.set(name, value, is_local)
    }

    fn show(&mut self, name: &str) -> Result<String, Failure> {
        match name {
            "transaction_isolation" => Ok(match self.transaction().level {
                Level::ReadCommitted => "read committed".to_owned(),
                Level::RepeatableRead => "repeatable read".to_owned(),
                Level::Serializable => "serializable".to_owned(),
            }),
            "transaction_read_only" => Ok(if self.transaction().read_only { "on" } else { "off" }.to_owned()),
            _ => self.settings.get(name).map(str::to_owned),
        }
    }
}

pub(super) fn tagged(tag: &str) -> Output {
    Output { tag: tag.to_owned(), ..Output::default() }
}

fn sort(rows: &mut [Row], select: &Select) {
    let Some((column, descends)) = select.order else { return };
    rows.sort_by(|one, two| {
        let order = one[column].compare(&two[column]).unwrap_or(std::cmp::Ordering::Equal);
        if descends { order.reverse() } else { order }
    });
}

fn aggregate(select: &Select, found: &[Row]) -> Row {
    let value = |item: &Item| match &item.expression {
        Expression::Max(column) => {
            let values = found.iter().map(|row| &row[*column]).filter(|value| **value != Value::Null);
            values
                .max_by(|one, two| one.compare(two).unwrap_or(std::cmp::Ordering::Equal))
                .cloned()
                .unwrap_or(Value::Null)
        }
        _ => Value::Integer(found.len() as i64),
    };
    select.items.iter().map(value).collect::<Vec<_>>().into()
}
