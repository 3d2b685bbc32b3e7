//! What statements do.

use std::sync::Arc;

use super::backend::{Backend, Output, Portal, PortalState, Prepared, Turn, World};
use super::catalogue;
use super::evaluate::Scope;
use super::failure::Failure;
use super::locks::Mode;
use super::rows::{Deed, Row, Standing};
use super::schema::{self, LOG, TABLES, Table};
use super::syntax::{Change, Expression, Insert, Item, Level, Rows, Select, Statement};
use super::transaction::Block;
use super::value::{Type, Value};

/// How far a statement has come that waits for others.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    candidates: Vec<usize>,
    at: usize,
    count: usize,
    returned: Vec<Row>,
}

type Worked<T> = Result<Turn<T>, Failure>;

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

    fn lock(&mut self, world: &mut World, table: Table, mode: Mode) -> Worked<()> {
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
        done!(self.lock_for(world, statement));
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
    fn project(&mut self, world: &mut World, items: &[Item], scope: &Scope<'_>) -> Worked<Row> {
        let mut row = Vec::with_capacity(items.len());
        for item in items {
            row.push(match &item.expression {
                Expression::Side(inner) => {
                    let value = scope.value(inner)?;
                    done!(self.side(world, &value));
                    value
                }
                Expression::SetConfig(name, value, is_local) => {
                    self.set(name, Some(value), *is_local)?;
                    Value::Text(value.as_str().into())
                }
                Expression::CurrentSetting(name) => Value::Text(self.show(name)?.into()),
                other => scope.value(other)?,
            });
        }
        Ok(Turn::Done(row.into()))
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

    fn make(&mut self, world: &mut World, table: Table, row: Row) -> usize {
        let number = self.number;
        let transaction = self.transaction();
        let xid = transaction.xid(number, &mut world.rows);
        let at = world.rows.make(table, row, xid);
        transaction.did(table, at, Deed::Made);
        at
    }

    fn refuse_read_only(&mut self, what: &str) -> Result<(), Failure> {
        if self.transaction().read_only {
            let message = format!("cannot execute {what} in a read-only transaction");
            return Err(Failure::new("25006", message));
        }
        Ok(())
    }

    fn insert(
        &mut self,
        world: &mut World,
        insert: &Insert,
        parameters: &[Value],
        kinds: &[Type],
    ) -> Worked<Output> {
        self.refuse_read_only("INSERT")?;
        let mut progress = self.progress.take().unwrap_or_default();
        let table = insert.table;
        while let Some(expressions) = insert.rows.get(progress.at) {
            let scope = Scope { row: None, parameters, kinds, table: None };
            let mut row = expressions
                .iter()
                .zip(TABLES[table].columns)
                .map(|(expression, (_, kind, _))| converted(scope.value(expression)?, *kind))
                .collect::<Result<Vec<_>, _>>()?;
            row.resize(TABLES[table].columns.len(), Value::Null);
            check_nulls(table, &row)?;
            if TABLES[table].has_key() {
                let own = self.transaction().xid;
                match world.rows.is_taken(table, &row[0], own) {
                    Err(other) => {
                        // The server has written the row when it finds the other one.
                        let number = self.number;
                        self.transaction().xid(number, &mut world.rows);
                        self.progress = Some(progress);
                        return Ok(Turn::Blocked(vec![other]));
                    }
                    Ok(true) => return Err(taken(table)),
                    Ok(false) => {}
                }
            }
            let row: Row = row.into();
            self.make(world, table, Arc::clone(&row));
            if !insert.returning.is_empty() {
                let scope = Scope { row: Some(&row), parameters, kinds, table: Some(table) };
                progress.returned.push(done!(self.project(world, &insert.returning, &scope)));
            }
            (progress.at, progress.count) = (progress.at + 1, progress.count + 1);
        }
        Ok(Turn::Done(written("INSERT 0", progress)))
    }

    /// UPDATE and DELETE.
    fn change(
        &mut self,
        world: &mut World,
        change: &Change,
        verb: &str,
        parameters: &[Value],
        kinds: &[Type],
    ) -> Worked<Output> {
        self.refuse_read_only(verb)?;
        let table = change.table;
        let condition = change.condition.as_ref();
        let mut progress = match self.progress.take() {
            Some(progress) => progress,
            None => self.candidates(world, table, condition, parameters, kinds)?,
        };
        while progress.at < progress.candidates.len() {
            let found =
                self.row_to_change(world, &mut progress, table, condition, parameters, kinds, verb)?;
            let at = match found {
                Turn::Done(Some(at)) => at,
                Turn::Done(None) => continue,
                Turn::Blocked(by) => {
                    self.progress = Some(progress);
                    return Ok(Turn::Blocked(by));
                }
            };
            let old = Arc::clone(world.rows.row(table, at));
            let scope = Scope { row: Some(&old), parameters, kinds, table: Some(table) };
            let new = match verb {
                "UPDATE" => Some(changed(change, &scope, &old)?),
                _ => None,
            };
            let next = new.as_ref().map(|row| self.make(world, table, Arc::clone(row)));
            let number = self.number;
            let transaction = self.transaction();
            let xid = transaction.xid(number, &mut world.rows);
            world.rows.end(table, at, xid, next);
            transaction.did(table, at, Deed::Ended);
            if !change.returning.is_empty() {
                let row = new.unwrap_or(old);
                let scope = Scope { row: Some(&row), parameters, kinds, table: Some(table) };
                progress.returned.push(done!(self.project(world, &change.returning, &scope)));
            }
            (progress.at, progress.count) = (progress.at + 1, progress.count + 1);
        }
        Ok(Turn::Done(written(verb, progress)))
    }

    /// The rows that a statement's snapshot shows, by their keys.
    fn candidates(
        &mut self,
        world: &World,
        table: Table,
        condition: Option<&Expression>,
        parameters: &[Value],
        kinds: &[Type],
    ) -> Result<Progress, Failure> {
        let transaction = self.transaction();
        let snapshot = transaction.snapshot(&world.rows);
        let mut candidates = Vec::new();
        for (at, row) in world.rows.seen(table, snapshot, transaction.xid) {
            if (Scope { row: Some(row), parameters, kinds, table: Some(table) }).admits(condition)? {
                candidates.push(at);
            }
        }
        candidates.sort_by(|one, two| {
            let key = |at: &usize| &world.rows.row(table, *at)[0];
            key(one).compare(key(two)).unwrap_or(std::cmp::Ordering::Equal)
        });
        Ok(Progress { candidates, ..Progress::default() })
    }

    /// The version of the next candidate that is to be changed, if it still is one.
    #[expect(clippy::too_many_arguments, reason = "they are those of the statement")]
    fn row_to_change(
        &mut self,
        world: &mut World,
        progress: &mut Progress,
        table: Table,
        condition: Option<&Expression>,
        parameters: &[Value],
        kinds: &[Type],
        verb: &str,
    ) -> Worked<Option<usize>> {
        let transaction = self.transaction();
        let (own, level) = (transaction.xid, transaction.level);
        loop {
            let at = progress.candidates[progress.at];
            match world.rows.standing(table, at, own) {
                Standing::Free => return Ok(Turn::Done(Some(at))),
                Standing::Waits(other) => {
                    return Ok(Turn::Blocked(vec![other]));
                }
                Standing::Own => {
                    progress.at += 1;
                    return Ok(Turn::Done(None));
                }
                Standing::Changed(next) if level == Level::RepeatableRead => {
                    let _ = verb;
                    let what = if next.is_some() { "update" } else { "delete" };
                    let message = format!("could not serialize access due to concurrent {what}");
                    return Err(Failure::new("40001", message));
                }
                Standing::Changed(None) => {
                    progress.at += 1;
                    return Ok(Turn::Done(None));
                }
                Standing::Changed(Some(next)) => {
                    let row = world.rows.row(table, next);
                    let scope = Scope { row: Some(row), parameters, kinds, table: Some(table) };
                    if !scope.admits(condition)? {
                        progress.at += 1;
                        return Ok(Turn::Done(None));
                    }
                    progress.candidates[progress.at] = next;
                }
            }
        }
    }

    fn select_for_update(
        &mut self,
        world: &mut World,
        select: &Select,
        parameters: &[Value],
        kinds: &[Type],
    ) -> Worked<Output> {
        let Some(table) = select.table else { return Err(Failure::unknown("this FOR UPDATE")) };
        self.refuse_read_only("SELECT FOR UPDATE")?;
        let condition = select.condition.as_ref();
        let mut progress = match self.progress.take() {
            Some(progress) => progress,
            None => self.candidates(world, table, condition, parameters, kinds)?,
        };
        while progress.at < progress.candidates.len() {
            let found =
                self.row_to_change(world, &mut progress, table, condition, parameters, kinds, "SELECT")?;
            let at = match found {
                Turn::Done(Some(at)) => at,
                Turn::Done(None) => continue,
                Turn::Blocked(by) => {
                    self.progress = Some(progress);
                    return Ok(Turn::Blocked(by));
                }
            };
            let number = self.number;
            let transaction = self.transaction();
            let xid = transaction.xid(number, &mut world.rows);
            if !world.rows.is_locked_by(table, at, xid) {
                world.rows.lock(table, at, xid);
                transaction.did(table, at, Deed::Locked);
            }
            let row = Arc::clone(world.rows.row(table, at));
            let scope = Scope { row: Some(&row), parameters, kinds, table: Some(table) };
            progress.returned.push(done!(self.project(world, &select.items, &scope)));
            progress.at += 1;
        }
        Ok(Turn::Done(Output { rows: progress.returned, tag: "SELECT".to_owned(), ..Output::default() }))
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
            if let Turn::Blocked(by) = self.lock(world, *table, mode)? {
                if nowait {
                    let message = format!("could not obtain lock on relation \"{}\"", TABLES[*table].name);
                    return Err(Failure::new("55P03", message));
                }
                return Ok(Turn::Blocked(by));
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
            Statement::Question(question) => Ok(catalogue::answer(self, question)),
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
            let transaction = self.transaction();
            (transaction.block, transaction.level, transaction.read_only) =
                (Block::Explicit, level, read_only);
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
            }),
            "transaction_read_only" => Ok(if self.transaction().read_only { "on" } else { "off" }.to_owned()),
            _ => self.settings.get(name).map(str::to_owned),
        }
    }

    fn cursors(&mut self, world: &mut World, statement: &Statement) -> Result<Output, Failure> {
        match statement {
            Statement::Declare { name, holds, scroll, select } => {
                if !holds {
                    self.needs_block("DECLARE CURSOR")?;
                }
                if self.portals.contains_key(name.as_bytes()) {
                    return Err(Failure::new("42P03", format!("cursor \"{name}\" already exists")));
                }
                self.declare(world, name, *holds, *scroll, select)?;
                Ok(tagged("DECLARE CURSOR"))
            }
            Statement::Fetch { name, rows, is_move } => self.fetch(name, *rows, *is_move),
            Statement::Close(None) => {
                self.portals.retain(|name, _| name.is_empty());
                Ok(tagged("CLOSE CURSOR ALL"))
            }
            Statement::Close(Some(name)) => {
                self.portals.remove(name.as_bytes()).ok_or_else(|| no_cursor(name))?;
                Ok(tagged("CLOSE CURSOR"))
            }
            Statement::Deallocate(None) => {
                self.prepared.retain(|name, _| name.is_empty());
                Ok(tagged("DEALLOCATE ALL"))
            }
            Statement::Deallocate(Some(name)) => {
                let missing =
                    || Failure::new("26000", format!("prepared statement \"{name}\" does not exist"));
                self.prepared.remove(name.as_bytes()).ok_or_else(missing)?;
                Ok(tagged("DEALLOCATE"))
            }
            Statement::DiscardAll => {
                if self.is_in_block() {
                    let message = "DISCARD ALL cannot run inside a transaction block";
                    return Err(Failure::new("25001", message));
                }
                self.portals.retain(|name, _| name.is_empty());
                self.prepared.retain(|name, _| name.is_empty());
                self.settings.reset_all();
                Ok(tagged("DISCARD ALL"))
            }
            _ => Err(Failure::unknown("this statement")),
        }
    }

    fn declare(
        &mut self,
        world: &mut World,
        name: &str,
        holds: bool,
        scroll: Option<bool>,
        select: &Arc<Select>,
    ) -> Result<(), Failure> {
        let statement = Statement::Select(Arc::clone(select));
        let analyzed = super::analysis::analyze(&statement, &[])?;
        let output = match self.select(world, select, &[], &[])? {
            Turn::Done(output) => output,
            Turn::Blocked(_) => return Err(Failure::unknown("a cursor that waits")),
        };
        let goes_back =
            scroll.unwrap_or_else(|| select.table.is_some() && !select.is_aggregate() && !select.locks);
        let portal = Portal {
            prepared: Arc::new(Prepared { statement: Some(statement), analyzed }),
            parameters: Vec::new(),
            formats: vec![],
            state: PortalState::Rows { output, at: 0, at_end: false },
            depth: self.depth(),
            holds,
            is_held: false,
            goes_back,
        };
        self.portals.insert(name.as_bytes().to_vec(), portal);
        Ok(())
    }

    fn fetch(&mut self, name: &str, rows: Rows, is_move: bool) -> Result<Output, Failure> {
        let portal = self.portals.get_mut(name.as_bytes()).ok_or_else(|| no_cursor(name))?;
        let columns = portal.prepared.analyzed.columns.as_deref().map(Arc::from);
        let goes_back = portal.goes_back;
        let PortalState::Rows { output, at, at_end } = &mut portal.state else {
            return Err(Failure::new("55000", format!("portal \"{name}\" cannot be run")));
        };
        let length = output.rows.len();
        let back = || match goes_back {
            true => Ok(()),
            false => Err(Failure::new("55000", "cursor can only scan forward")),
        };
        let taken: Vec<Row> = match rows {
            Rows::Forward(0) => return Err(Failure::unknown("FETCH 0")),
            Rows::Forward(_) | Rows::All => {
                let wanted = if let Rows::Forward(wanted) = rows { wanted } else { usize::MAX };
                let count = wanted.min(length - *at);
                let taken = output.rows[*at..*at + count].to_vec();
                if count < wanted {
                    if let Some(failure) = output.failure.clone() {
                        portal.state = PortalState::Failed;
                        return Err(failure);
                    }
                    *at_end = true;
                }
                *at += count;
                taken
            }
            Rows::Backward(wanted) => {
                back()?;
                let current = if *at_end { length + 1 } else { *at };
                let count = wanted.min(current.saturating_sub(1));
                let taken = (1..=count).map(|step| Arc::clone(&output.rows[current - step - 1])).collect();
                (*at, *at_end) = (if count == wanted { current - count } else { 0 }, false);
                taken
            }
            Rows::Absolute(place) => {
                let current = if *at_end { length + 1 } else { *at };
                if place <= current {
                    back()?;
                }
                if place > length && output.failure.is_some() {
                    return Err(Failure::unknown("a failure that is moved over"));
                }
                (*at, *at_end) = (place.min(length), place > length);
                (1..=length)
                    .contains(&place)
                    .then(|| Arc::clone(&output.rows[place - 1]))
                    .into_iter()
                    .collect()
            }
        };
        if is_move {
            return Ok(tagged(&format!("MOVE {}", taken.len())));
        }
        Ok(Output { columns, rows: taken, ..tagged("FETCH") })
    }
}

fn no_cursor(name: &str) -> Failure {
    Failure::new("34000", format!("cursor \"{name}\" does not exist"))
}

fn tagged(tag: &str) -> Output {
    Output { tag: tag.to_owned(), ..Output::default() }
}

/// What a statement that wrote gives.
fn written(verb: &str, progress: Progress) -> Output {
    Output { rows: progress.returned, ..tagged(&format!("{verb} {}", progress.count)) }
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

fn converted(value: Value, kind: Type) -> Result<Value, Failure> {
    match (&value, kind) {
        (Value::Text(text), Type::Int4 | Type::Int8) => Value::parse(text, kind),
        _ => value.fits(kind),
    }
}

fn changed(change: &Change, scope: &Scope<'_>, old: &Row) -> Result<Row, Failure> {
    let mut row = old.to_vec();
    for (column, expression) in &change.set {
        row[*column] = converted(scope.value(expression)?, TABLES[change.table].columns[*column].1)?;
    }
    check_nulls(change.table, &row)?;
    Ok(row.into())
}

fn check_nulls(table: Table, row: &[Value]) -> Result<(), Failure> {
    for (value, (name, _, not_null)) in row.iter().zip(TABLES[table].columns) {
        if *not_null && *value == Value::Null {
            let message = format!("null value in column \"{name}\" violates not-null constraint");
            return Err(Failure::new("23502", message));
        }
    }
    Ok(())
}

fn taken(table: Table) -> Failure {
    let message = format!("duplicate key value violates unique constraint \"{}_pkey\"", TABLES[table].name);
    Failure::new("23505", message)
}
