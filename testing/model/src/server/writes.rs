//! Statements that write rows or lock them: row by row, as they may have to wait at each.

use std::cmp::Ordering;
use std::sync::Arc;

use super::backend::{Backend, Output, Turn, World};
use super::evaluate::Scope;
use super::failure::Failure;
use super::rows::{Deed, Row, Standing};
use super::schema::{TABLES, Table};
use super::statements::{Worked, done, tagged};
use super::syntax::{Change, Expression, Insert, Level, Select};
use super::value::{Type, Value};

/// How far a statement has come that waits for others.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    candidates: Vec<usize>,
    at: usize,
    count: usize,
    pub(crate) returned: Vec<Row>,
}

/// Which rows a statement is about.
struct Wanted<'a> {
    table: Table,
    condition: Option<&'a Expression>,
    parameters: &'a [Value],
    kinds: &'a [Type],
}

impl<'a> Wanted<'a> {
    fn scope(&self, row: &'a Row) -> Scope<'a> {
        Scope { row: Some(row), parameters: self.parameters, kinds: self.kinds, table: Some(self.table) }
    }
}

impl Backend {
    pub(super) fn make(&mut self, world: &mut World, table: Table, row: Row) -> usize {
        let number = self.number;
        let transaction = self.transaction();
        let xid = transaction.xid(number, &mut world.rows);
        let at = world.rows.make(table, row, xid);
        transaction.did(table, at, Deed::Made);
        at
    }

    pub(super) fn refuse_read_only(&mut self, what: &str) -> Result<(), Failure> {
        if self.transaction().read_only {
            let message = format!("cannot execute {what} in a read-only transaction");
            return Err(Failure::new("25006", message));
        }
        Ok(())
    }

    pub(super) fn insert(
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
    pub(super) fn change(
        &mut self,
        world: &mut World,
        change: &Change,
        verb: &str,
        parameters: &[Value],
        kinds: &[Type],
    ) -> Worked<Output> {
        self.refuse_read_only(verb)?;
        let table = change.table;
        let wanted = Wanted { table, condition: change.condition.as_ref(), parameters, kinds };
        let mut progress = match self.progress.take() {
            Some(progress) => progress,
            None => self.candidates(world, &wanted)?,
        };
        while progress.at < progress.candidates.len() {
            let found = self.row_to_change(world, &mut progress, &wanted)?;
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
    fn candidates(&mut self, world: &World, wanted: &Wanted<'_>) -> Result<Progress, Failure> {
        let transaction = self.transaction();
        let snapshot = transaction.snapshot(&world.rows);
        let mut candidates = Vec::new();
        for (at, row) in world.rows.seen(wanted.table, snapshot, transaction.xid) {
            if wanted.scope(row).admits(wanted.condition)? {
                candidates.push(at);
            }
        }
        candidates.sort_by(|one, two| {
            let key = |at: &usize| &world.rows.row(wanted.table, *at)[0];
            key(one).compare(key(two)).unwrap_or(Ordering::Equal)
        });
        Ok(Progress { candidates, ..Progress::default() })
    }

    /// The version of the next candidate that is to be changed, if it still is one.
    fn row_to_change(
        &mut self,
        world: &mut World,
        progress: &mut Progress,
        wanted: &Wanted<'_>,
    ) -> Worked<Option<usize>> {
        let transaction = self.transaction();
        let (own, level) = (transaction.xid, transaction.level);
        loop {
            let at = progress.candidates[progress.at];
            match world.rows.standing(wanted.table, at, own) {
                Standing::Free => return Ok(Turn::Done(Some(at))),
                Standing::Waits(other) => {
                    return Ok(Turn::Blocked(vec![other]));
                }
                Standing::Own => {
                    progress.at += 1;
                    return Ok(Turn::Done(None));
                }
                Standing::Changed(next) if level == Level::RepeatableRead => {
                    let what = if next.is_some() { "update" } else { "delete" };
                    let message = format!("could not serialize access due to concurrent {what}");
                    return Err(Failure::new("40001", message));
                }
                Standing::Changed(None) => {
                    progress.at += 1;
                    return Ok(Turn::Done(None));
                }
                Standing::Changed(Some(next)) => {
                    if !wanted.scope(world.rows.row(wanted.table, next)).admits(wanted.condition)? {
                        progress.at += 1;
                        return Ok(Turn::Done(None));
                    }
                    progress.candidates[progress.at] = next;
                }
            }
        }
    }

    pub(super) fn select_for_update(
        &mut self,
        world: &mut World,
        select: &Select,
        parameters: &[Value],
        kinds: &[Type],
    ) -> Worked<Output> {
        let Some(table) = select.table else { return Err(Failure::unknown("this FOR UPDATE")) };
        self.refuse_read_only("SELECT FOR UPDATE")?;
        let wanted = Wanted { table, condition: select.condition.as_ref(), parameters, kinds };
        let mut progress = match self.progress.take() {
            Some(progress) => progress,
            None => self.candidates(world, &wanted)?,
        };
        while progress.at < progress.candidates.len() {
            let at = match self.row_to_change(world, &mut progress, &wanted) {
                Ok(Turn::Done(Some(at))) => at,
                Ok(Turn::Done(None)) => continue,
                Ok(Turn::Blocked(by)) => {
                    self.progress = Some(progress);
                    return Ok(Turn::Blocked(by));
                }
                // Rows are told as they are locked.
                Err(failure) => {
                    let (rows, tag) = (progress.returned, "SELECT".to_owned());
                    return Ok(Turn::Done(Output { rows, tag, failure: Some(failure), ..Output::default() }));
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
}

/// What a statement that wrote gives.
fn written(verb: &str, progress: Progress) -> Output {
    Output { rows: progress.returned, ..tagged(&format!("{verb} {}", progress.count)) }
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
