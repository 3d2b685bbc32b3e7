//! What became of the operations of one block.

use onetrip_wire::pg::Format;

use super::OperationId;
use crate::error::Usage;
use crate::{Columns, CommandTag, Error, ResultSet};

/// What the failure of an operation does to those after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OnError {
    /// Those after it do not run. Outside of a transaction those before it, back to the last point that was
    /// committed, are undone with it.
    #[default]
    Abort,
    /// Those after it run, and those before it hold.
    Continue,
}

/// What became of one operation.
#[derive(Debug, Clone, Default)]
pub enum Outcome {
    /// It has not been answered in full; its rows so far.
    Waiting(Option<Box<ResultSet>>),
    /// It ran.
    Done(Done),
    /// It failed, and did not take effect.
    Failed(Box<Error>),
    /// It did not run, since another failed before it.
    Aborted {
        /// The one that failed.
        by: OperationId,
    },
    /// It ran, and was undone with the implicit transaction that it shared with one that failed after it.
    Undone {
        /// The one that failed.
        by: OperationId,
    },
    /// Its result was taken.
    #[default]
    Taken,
}

/// What an operation did.
#[derive(Debug, Clone)]
pub struct Done {
    /// As the server words it.
    pub tag: CommandTag,
    /// Its rows, for a statement that returns some.
    pub rows: Option<Box<ResultSet>>,
    /// Whether its portal has more rows to fetch.
    pub has_more: bool,
}

impl Done {
    /// Rows of a statement that is under way.
    pub fn part(rows: Box<ResultSet>) -> Self {
        Self { tag: CommandTag::new(b""), rows: Some(rows), has_more: true }
    }
}

impl Done {
    /// Rows that were returned or changed.
    pub fn count(&self) -> u64 {
        if self.has_more { self.rows.as_ref().map_or(0, |rows| rows.len() as u64) } else { self.tag.rows() }
    }
}

impl Outcome {
    /// Whether the operation ran, with or without rows to show for it.
    fn has_run(&self) -> bool {
        match self {
            Self::Done(_) => true,
            Self::Failed(error) => matches!(**error, Error::RowsTooLarge { .. }),
            _ => false,
        }
    }

    /// What the operation did.
    ///
    /// # Errors
    /// Why it did nothing; or that nobody knows yet.
    pub fn into_result(self) -> Result<Done, Error> {
        match self {
            Self::Done(done) => Ok(done),
            Self::Failed(error) => Err(*error),
            Self::Aborted { by } => Err(Error::Aborted { by }),
            Self::Undone { by } => Err(Error::Undone { by }),
            Self::Waiting(_) => Err(Usage::Unanswered.into()),
            Self::Taken => Err(Usage::UnknownOperation.into()),
        }
    }
}

/// The operations that were pushed since a block began. Its memory serves the next block too.
#[derive(Debug, Default)]
pub(crate) struct Block {
    pub(crate) is_open: bool,
    pub(crate) on_error: OnError,
    /// Where the transaction will stand once everything pushed has run.
    pub(crate) in_transaction: bool,
    /// The savepoint of a pipeline that goes on is set.
    pub(crate) is_shielded: bool,
    /// The last operation whose failure stops the others, while no Sync follows it: the server itself then skips them.
    pub(crate) abortable: Option<u64>,
    /// The last such operation that a Sync follows: outside of a transaction the server forgets its failure there.
    pub(crate) forgettable: Option<u64>,
    /// The operation whose failure stopped the block.
    pub(crate) stopped_by: Option<OperationId>,
    /// The first operation of the implicit transaction that the answers have reached; `None` in an explicit one.
    pub(crate) implicit_from: Option<u64>,
    /// Bytes of rows that are kept.
    pub(crate) bytes: usize,
    first: u64,
    outcomes: Vec<Outcome>,
}

impl Block {
    pub(crate) fn begin(&mut self, on_error: OnError, first: u64, in_transaction: bool) {
        self.outcomes.clear();
        let outcomes = std::mem::take(&mut self.outcomes);
        let implicit_from = (!in_transaction).then_some(first);
        *self = Self {
            is_open: true,
            on_error,
            in_transaction,
            implicit_from,
            first,
            outcomes,
            ..Self::default()
        };
    }

    pub(crate) fn add(&mut self, outcome: Outcome) {
        self.outcomes.push(outcome);
    }

    pub(crate) fn remove_last(&mut self) {
        self.outcomes.pop();
    }

    pub(crate) fn outcomes(&self) -> impl Iterator<Item = (OperationId, &Outcome)> {
        let first = self.first;
        self.outcomes.iter().enumerate().map(move |(at, outcome)| (OperationId(first + at as u64), outcome))
    }

    pub(crate) fn get(&self, id: u64) -> Option<&Outcome> {
        self.outcomes.get(usize::try_from(id.checked_sub(self.first)?).ok()?)
    }

    fn get_mut(&mut self, id: u64) -> Option<&mut Outcome> {
        self.outcomes.get_mut(usize::try_from(id.checked_sub(self.first)?).ok()?)
    }

    /// Whether the operation is of this block.
    pub(crate) fn holds(&self, id: u64) -> bool {
        self.get(id).is_some()
    }

    /// Takes an outcome that is final.
    pub(crate) fn take(&mut self, id: u64) -> Option<Outcome> {
        let outcome = self.get_mut(id)?;
        if let Outcome::Waiting(_) = outcome {
            return Some(Outcome::Waiting(None));
        }
        let taken = std::mem::take(outcome);
        if let Outcome::Done(Done { rows: Some(rows), .. }) = &taken {
            self.bytes = self.bytes.saturating_sub(rows.memory());
        }
        Some(taken)
    }

    /// Keeps a row; one too many, and the operation's rows are thrown away.
    pub(crate) fn add_row(&mut self, id: u64, columns: &Columns, format: Format, body: &[u8], limit: usize) {
        let kept = self.bytes;
        let Some(outcome) = self.get_mut(id) else { return };
        let Outcome::Waiting(rows) = outcome else { return };
        let rows = rows.get_or_insert_with(|| Box::new(ResultSet::new(columns.clone(), format)));
        let before = rows.memory();
        rows.push(body);
        let after = rows.memory();
        let others = kept.saturating_sub(before);
        if others + after > limit {
            *outcome = Outcome::Failed(Box::new(Error::RowsTooLarge { limit }));
            self.bytes = others;
        } else {
            self.bytes = others + after;
        }
    }

    /// The operation is done. A statement that returns rows has some, if only none.
    pub(crate) fn complete(
        &mut self,
        id: u64,
        tag: CommandTag,
        has_more: bool,
        columns: &Columns,
        format: Format,
    ) {
        let Some(outcome @ Outcome::Waiting(_)) = self.get_mut(id) else { return };
        let Outcome::Waiting(rows) = std::mem::take(outcome) else { return };
        let none = || columns.is_result().then(|| Box::new(ResultSet::new(columns.clone(), format)));
        *outcome = Outcome::Done(Done { tag, rows: rows.or_else(none), has_more });
    }

    /// The operation failed, even if it seemed to be done.
    pub(crate) fn fail(&mut self, id: u64, error: Error) {
        if let Some(outcome) = self.get_mut(id) {
            *outcome = Outcome::Failed(Box::new(error));
        }
    }

    /// The operation seemed to be done, and does not hold.
    pub(crate) fn fail_done(&mut self, id: u64, error: Error) {
        if let Some(outcome) = self.get_mut(id).filter(|outcome| outcome.has_run()) {
            *outcome = Outcome::Failed(Box::new(error));
        }
    }

    pub(crate) fn abort(&mut self, id: u64, by: OperationId) {
        if let Some(outcome) = self.get_mut(id) {
            *outcome = Outcome::Aborted { by };
        }
    }

    /// The implicit transaction was undone: what ran in it did not take effect.
    pub(crate) fn undo_implicit(&mut self, until: u64, by: Option<OperationId>, error: Option<&Error>) {
        let Some(from) = self.implicit_from else { return };
        for id in from..until {
            let Some(outcome) = self.get_mut(id).filter(|outcome| outcome.has_run()) else { continue };
            *outcome = match (by, error) {
                (Some(by), _) => Outcome::Undone { by },
                (None, Some(error)) => Outcome::Failed(Box::new(error.clone())),
                (None, None) => continue,
            };
        }
    }
}
