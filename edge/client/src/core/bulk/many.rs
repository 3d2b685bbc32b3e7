use onetrip_wire::pg::TransactionStatus;
use postgres_types::Type;

use super::insert::Insert;
use super::values::{self, Misfit};
use super::{
    Bulk, BulkDone, BulkError, Piece, Sets, parameter_types, pays, push_arrays, push_facts, with_set,
};
use crate::core::{Connection, OnError, OperationId, Request};
use crate::{Done, Error, Outcome, Usage};

/// One statement with many sets of parameters, without its waiting: call [`step`](Self::step) and do what it says,
/// until it says that all is done.
///
/// ```text
///   Start --> Asked --> Pushing … Pushing --> Ended --> done
///     ^         |          |                    |
///     |         |          '--> GivenUp --> the set's error
///     '---------'---------------(one by one)----'
/// ```
#[derive(Debug)]
pub struct Many {
    statement: String,
    insert: Option<Insert>,
    /// BEGIN goes before the sets, in their trip.
    begins: bool,
    wanted: Bulk,
    way: Bulk,
    types: Option<Vec<Type>>,
    /// The next set.
    next: usize,
    /// Sets before this go one by one, since no other way takes them.
    singly_until: usize,
    /// The first sets of what was pushed, with its operation and its way.
    pushed: Vec<(OperationId, usize, Bulk)>,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Start,
    /// The question what the table is like is under way.
    Asked(OperationId),
    Pushing,
    Ended,
    GivenUp(BulkError),
}

/// What is to be done before the next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManyStep {
    /// Something was pushed: send, if enough is there.
    Send,
    /// Wait until this operation is answered.
    Answer(OperationId),
    /// Wait until all is answered.
    Settle,
    /// Nothing: this is what the sets did.
    Done(BulkDone),
}

impl Many {
    /// A call with these sets. With `begins`, BEGIN travels along if no transaction is open.
    ///
    /// # Errors
    /// [`Usage::NotPlainInsert`] for a statement that cannot go the wanted way.
    pub fn new(
        core: &Connection,
        wanted: Bulk,
        statement: &str,
        sets: &dyn Sets,
        begins: bool,
    ) -> Result<Self, Error> {
        let is_known = |insert: &Insert| sets.count() > 0 && insert.width == sets.width(0);
        let insert = Insert::of(statement).filter(is_known);
        let way = match wanted {
            Bulk::Auto if insert.is_none() || !pays(sets.count(), core.round_trip()) => Bulk::Pipeline,
            Bulk::Unnest if insert.is_none() && sets.count() > 0 => return Err(Usage::NotPlainInsert.into()),
            Bulk::Copy
                if insert.as_ref().is_none_or(|insert| insert.columns.is_empty()) && sets.count() > 0 =>
            {
                return Err(Usage::NotPlainInsert.into());
            }
            way => way,
        };
        let mut types = None;
        if way == Bulk::Unnest && sets.count() > 0 {
            types = parameter_types(core, statement, sets, true);
        }
        Ok(Self {
            statement: statement.to_owned(),
            insert,
            begins: begins && core.transaction_status() == TransactionStatus::Idle,
            wanted,
            way,
            types: types.filter(|types| types.iter().all(values::has_plain_arrays)),
            next: 0,
            singly_until: 0,
            pushed: Vec::new(),
            stage: Stage::Start,
        })
    }

    /// Goes on, after what the last step asked for has been done. `sets` are those of the whole call.
    ///
    /// # Errors
    /// Which set failed, and with what: then all is over, and answered.
    pub fn step(&mut self, core: &mut Connection, sets: &dyn Sets) -> Result<ManyStep, BulkError> {
        match std::mem::replace(&mut self.stage, Stage::Pushing) {
            Stage::Start => self.start(core, sets),
            Stage::Asked(asked) if self.learn(core, asked, sets) => self.push_next(core, sets),
            Stage::Asked(_) => {
                core.end_block()?;
                self.one_by_one();
                Ok(ManyStep::Settle)
            }
            Stage::Pushing => self.push_next(core, sets),
            Stage::Ended => match self.finish(core) {
                Err(failed) if self.goes_again(core, &failed) => {
                    self.one_by_one();
                    self.step(core, sets)
                }
                done => done.map(ManyStep::Done),
            },
            Stage::GivenUp(failed) => Err(failed),
        }
    }

    /// Ends the block before all sets are pushed; outside of a transaction nothing of them is kept.
    pub fn give_up(&self, core: &mut Connection) {
        // Failures here are those of a connection that is lost, which has nothing to take back.
        if self.takes_back(core) {
            let _ = core.push(&Request::new("ROLLBACK", &[]), None);
        }
        let _ = core.end_block();
    }

    fn start(&mut self, core: &mut Connection, sets: &dyn Sets) -> Result<ManyStep, BulkError> {
        core.begin_block(OnError::Abort)?;
        if self.begins && core.transaction_status() == TransactionStatus::Failed {
            core.push(&Request::new("ROLLBACK", &[]), None)?;
        }
        if self.begins && core.transaction_status() != TransactionStatus::Active {
            core.push_begin()?;
        }
        let is_open = self.way == Bulk::Auto || (self.way == Bulk::Unnest && self.types.is_none());
        match self.insert.as_ref().filter(|_| is_open) {
            None => self.push_next(core, sets),
            Some(insert) => {
                let asked = push_facts(core, &self.statement, sets, &insert.table)?;
                self.stage = Stage::Asked(asked);
                Ok(ManyStep::Answer(asked))
            }
        }
    }

    /// Takes the answer; false where there is none, and the block has to end before the sets can go one by one.
    fn learn(&mut self, core: &mut Connection, asked: OperationId, sets: &dyn Sets) -> bool {
        let facts = core.take_result(asked);
        let types = parameter_types(core, &self.statement, sets, false);
        self.types = types.filter(|types| types.iter().all(values::has_plain_arrays));
        if self.wanted == Bulk::Auto {
            let (same, copied) = facts.as_ref().map_or((false, false), read_facts);
            let names_columns = self.insert.as_ref().is_some_and(|insert| !insert.columns.is_empty());
            self.way = match (same, copied && names_columns, &self.types) {
                (true, true, _) => Bulk::Copy,
                (true, false, Some(_)) => Bulk::Unnest,
                _ => Bulk::Pipeline,
            };
        }
        facts.is_ok()
    }

    fn push_next(&mut self, core: &mut Connection, sets: &dyn Sets) -> Result<ManyStep, BulkError> {
        let first = self.next;
        let pushed = match self.next(sets) {
            Ok(None) => {
                core.end_block()?;
                self.stage = Stage::Ended;
                return Ok(ManyStep::Settle);
            }
            Ok(Some(piece)) => self.push(core, sets, &piece, first),
            Err(failed) => Err(failed),
        };
        match pushed {
            Ok(()) => Ok(ManyStep::Send),
            Err(failed) => {
                self.give_up(core);
                self.stage = Stage::GivenUp(failed);
                Ok(ManyStep::Settle)
            }
        }
    }

    fn push(
        &mut self,
        core: &mut Connection,
        sets: &dyn Sets,
        piece: &Piece,
        first: usize,
    ) -> Result<(), BulkError> {
        let (pushed, way) = match piece {
            Piece::Set => {
                let push = |set: &[&dyn crate::Param]| core.push(&Request::new(&self.statement, set), None);
                let pushed = with_set(sets, first, push);
                (pushed.map_err(|error| BulkError { set: Some(first), error })?, Bulk::Pipeline)
            }
            Piece::Arrays { text, arrays } => (push_arrays(core, text, arrays)?, Bulk::Unnest),
            Piece::Copy { text, data } => {
                let request = Request { copy: Some(data), ..Request::new(text, &[]) };
                (core.push(&request, None)?, Bulk::Copy)
            }
        };
        self.pushed.push((pushed, first, way));
        Ok(())
    }

    /// What to push next; `None` once all sets are.
    fn next(&mut self, sets: &dyn Sets) -> Result<Option<Piece>, BulkError> {
        let start = self.next;
        if start >= sets.count() {
            return Ok(None);
        }
        let piece = match (self.way, &self.insert) {
            (Bulk::Copy, Some(insert)) if start >= self.singly_until => self.copy(insert, sets),
            (Bulk::Unnest, Some(insert)) if start >= self.singly_until => self.unnest(insert, sets),
            _ => Ok((Piece::Set, start + 1)),
        };
        match piece {
            Ok((piece, end)) => {
                self.next = end;
                Ok(Some(piece))
            }
            Err((set, error)) if self.wanted != Bulk::Auto => Err(BulkError { set: Some(set), error }),
            Err(_) if self.way == Bulk::Copy && self.types.is_some() => {
                self.way = Bulk::Unnest;
                self.next(sets)
            }
            Err((set, _)) => {
                // Those up to the one that does not fit.
                self.singly_until = set + 1;
                self.next += 1;
                Ok(Some(Piece::Set))
            }
        }
    }

    /// The next sets as a COPY, and where they end.
    fn copy(&self, insert: &Insert, sets: &dyn Sets) -> Result<(Piece, usize), Misfit> {
        let (data, end) = values::copy_data(sets, self.next, insert.width, self.types.as_deref())?;
        Ok((Piece::Copy { text: format!("COPY {} {} FROM STDIN", insert.table, insert.columns), data }, end))
    }

    /// The next sets as arrays, and where they end.
    fn unnest(&self, insert: &Insert, sets: &dyn Sets) -> Result<(Piece, usize), Misfit> {
        let no_types = || {
            let problem = "some parameter has a type that unnest does not take".into();
            (self.next, Error::Parameter { number: 1, problem })
        };
        let types = self.types.as_deref().ok_or_else(no_types)?;
        let (arrays, end) = values::arrays(sets, self.next, types)?;
        let arrays = arrays.into_iter().map(|array| (array.format, array.bytes)).collect();
        let array = |(index, ty): (usize, &Type)| format!("${}::pg_catalog.\"{}\"[]", index + 1, ty.name());
        let parameters: Vec<_> = types.iter().enumerate().map(array).collect();
        let Insert { table, columns, .. } = insert;
        let text = format!("INSERT INTO {table} {columns} SELECT * FROM unnest({})", parameters.join(", "));
        Ok((Piece::Arrays { text, arrays }, end))
    }

    /// What all of them did, once the block has ended.
    fn finish(&self, core: &Connection) -> Result<BulkDone, BulkError> {
        let (mut rows, mut tag) = (0, None);
        let mut undone = None;
        for (operation, first, way) in &self.pushed {
            match core.outcome(*operation) {
                Some(Outcome::Done(done)) => {
                    rows += done.count();
                    tag = Some(done.tag);
                }
                Some(Outcome::Failed(error)) => {
                    let set =
                        if self.is_the_only_failed(core) { self.set_of(*first, *way, error) } else { None };
                    return Err(BulkError { set, error: (**error).clone() });
                }
                Some(outcome) => undone = undone.or(outcome.clone().into_result().err()),
                None => {}
            }
        }
        undone.map_or(Ok(BulkDone { rows, way: self.way, tag }), |error| Err(error.into()))
    }

    /// A commit that fails, or a connection that is lost, fails several.
    fn is_the_only_failed(&self, core: &Connection) -> bool {
        let is_failed = |id| matches!(core.outcome(id), Some(Outcome::Failed(_)));
        self.pushed.iter().filter(|(operation, ..)| is_failed(*operation)).count() == 1
    }

    fn set_of(&self, first: usize, way: Bulk, error: &Error) -> Option<usize> {
        let server = error.server()?;
        match way {
            Bulk::Copy => {
                let context = server.field(b'W')?;
                Some(first + self.insert.as_ref()?.row_of_copy(context)?.checked_sub(1)?)
            }
            Bulk::Unnest => None,
            Bulk::Pipeline | Bulk::Auto => Some(first),
        }
    }

    /// Whether the sets go one by one next, because only so it can be told which of them fails. Nothing of them holds.
    fn goes_again(&self, core: &Connection, failed: &BulkError) -> bool {
        // Classes of what a row can do wrong, and of what only the rewritten statement can.
        let class = failed.error.sqlstate().and_then(|code| code.get(..2));
        let is_of_a_row =
            class.is_some_and(|class| ["0A", "21", "22", "23", "42", "44", "P0"].contains(&class));
        // In a transaction of its own there is nothing else to lose.
        let is_alone = self.begins || core.transaction_status() == TransactionStatus::Idle;
        let is_open = failed.set.is_none() && is_of_a_row && is_alone;
        is_open && self.pushed.iter().any(|(.., way)| *way == Bulk::Unnest)
    }

    /// Whether sets were pushed that would be kept without those that cannot be.
    fn takes_back(&self, core: &Connection) -> bool {
        !self.pushed.is_empty() && !core.block_in_transaction() && !core.is_lost()
    }

    /// From the first set on, one by one.
    fn one_by_one(&mut self) {
        self.way = Bulk::Pipeline;
        self.next = 0;
        self.pushed.clear();
        self.stage = Stage::Start;
    }
}

fn read_facts(done: &Done) -> (bool, bool) {
    let row = done.rows.as_ref().and_then(|rows| rows.rows().next());
    row.map_or((false, false), |row| (row.get(0).unwrap_or_default(), row.get(1).unwrap_or_default()))
}
