//! Answers that are kept until somebody wants them, whatever else the connection does meanwhile.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::{Connection, Event, OperationId, Request};
use crate::{Done, Error, ResultSet, TransactionStatus};

/// Where an answer is put.
type Place = Mutex<Option<Result<Done, Error>>>;

/// The answer to an operation of [`Kept`]. Dropped before it came, nobody wants it.
#[derive(Debug, Clone)]
pub struct KeptAnswer {
    operation: OperationId,
    place: Arc<Place>,
}

impl KeptAnswer {
    /// Whose.
    pub fn operation(&self) -> OperationId {
        self.operation
    }

    /// Bytes of memory that it takes.
    pub fn memory(&self) -> usize {
        match &*locked(&self.place) {
            Some(Ok(Done { rows: Some(rows), .. })) => rows.memory(),
            _ => 0,
        }
    }

    /// Takes it, once it has come.
    pub fn take(&self) -> Option<Result<Done, Error>> {
        locked(&self.place).take()
    }
}

/// Operations outside of blocks that nobody waits for yet, oldest first.
#[derive(Debug, Default)]
pub struct Kept {
    awaited: VecDeque<Awaited>,
}

#[derive(Debug)]
struct Awaited {
    operation: OperationId,
    rows: Option<Box<ResultSet>>,
    place: Weak<Place>,
}

impl Kept {
    /// Asks for a statement. [`Connection::sync`] has to follow.
    ///
    /// # Errors
    /// As [`Connection::submit`].
    pub fn submit(&mut self, core: &mut Connection, request: &Request<'_>) -> Result<KeptAnswer, Error> {
        let operation = core.submit(request)?;
        let place = Arc::default();
        self.awaited.push_back(Awaited { operation, rows: None, place: Arc::downgrade(&place) });
        Ok(KeptAnswer { operation, place })
    }

    /// Takes what belongs to one of the operations; gives back what does not.
    pub fn route(&mut self, core: &Connection, event: Event) -> Option<Event> {
        let Some(operation) = event.operation() else { return Some(event) };
        // Answers come in order.
        while self.awaited.front().is_some_and(|awaited| awaited.operation < operation) {
            self.awaited.pop_front();
        }
        let Some(awaited) = self.awaited.front_mut().filter(|awaited| awaited.operation == operation) else {
            return Some(event);
        };
        let answer = match event {
            Event::Bound { .. } => {
                let columns = core.front_columns().clone();
                awaited.rows = Some(Box::new(ResultSet::new(columns, core.front_format())));
                return None;
            }
            Event::Row { row, .. } => {
                if let Some(rows) = &mut awaited.rows {
                    rows.push(core.row(row).body());
                }
                return None;
            }
            Event::Complete { tag, .. } => Ok(Done { tag, rows: awaited.rows.take(), has_more: false }),
            Event::Failed { error, .. } => Err(error),
            other => return Some(other),
        };
        if let Some(place) = awaited.place.upgrade() {
            *locked(&place) = Some(answer);
        }
        self.awaited.pop_front();
        None
    }
}

impl Connection {
    /// Whether a statement can be asked for whose answer nobody waits for yet, without going in between what belongs
    /// together; and without beginning a transaction, where `begins` says that a statement would.
    pub fn can_ask_ahead(&self, begins: bool) -> bool {
        let is_apart = match self.transaction_status() {
            TransactionStatus::Idle => !begins,
            TransactionStatus::Active => true,
            TransactionStatus::Failed => false,
        };
        is_apart && self.limits.pipelining && !self.is_lost() && !self.block.is_open && !self.is_unsynced
    }
}

fn locked(place: &Place) -> MutexGuard<'_, Option<Result<Done, Error>>> {
    place.lock().unwrap_or_else(PoisonError::into_inner)
}
