//! Cursors of SQL, and what else is known by a name.

use std::sync::Arc;

use super::backend::{Backend, Output, Portal, PortalState, Prepared, Turn, World};
use super::failure::Failure;
use super::rows::Row;
use super::statements::tagged;
use super::syntax::{Rows, Select, Statement};
use super::transaction::Transaction;

impl Backend {
    pub(super) fn cursors(&mut self, world: &mut World, statement: &Statement) -> Result<Output, Failure> {
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
            Statement::Fetch { name, rows, is_move } => {
                let savepoint = self.transaction.as_ref().and_then(Transaction::innermost);
                if let Err(failure) = world.faults.admits_piece(savepoint) {
                    let portal = self.portals.get_mut(name.as_bytes());
                    portal.into_iter().for_each(|portal| portal.state = PortalState::Failed);
                    return Err(failure);
                }
                self.fetch(name, *rows, *is_move)
            }
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
                world.advisory.retain(|_, holder| *holder != self.number);
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
        let analyzed = super::analysis::analyze(&statement, &[], world.is_wide)?;
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

    pub(super) fn fetch(&mut self, name: &str, rows: Rows, is_move: bool) -> Result<Output, Failure> {
        let portal = self.portals.get_mut(name.as_bytes()).ok_or_else(|| no_cursor(name))?;
        let columns = portal.prepared.analyzed.columns.as_deref().map(Arc::from);
        let table = portal.prepared.statement.as_ref().and_then(Statement::read_from);
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
        let reached = *at;
        if let (Some(table), Some(transaction)) = (table, &mut self.transaction) {
            transaction.fetched(table, reached);
        }
        if is_move {
            return Ok(tagged(&format!("MOVE {}", taken.len())));
        }
        Ok(Output { columns, rows: taken, ..tagged("FETCH") })
    }
}

fn no_cursor(name: &str) -> Failure {
    Failure::new("34000", format!("cursor \"{name}\" does not exist"))
}
