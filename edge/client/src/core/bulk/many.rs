use onetrip_wire::pg::{Oid, TransactionStatus};
use postgres_types::Type;

use super::insert::Insert;
use super::tables::{Facts, GUARD_FAILS, Needs};
use super::values::{self, Misfit};
use super::{
    ARRAYS_SETS, Bulk, BulkDone, BulkError, KNOWN_SETS_MIN, Piece, Sets, parameter_types, pays, push_arrays,
    push_guard, push_question, with_set,
};
use crate::core::{Connection, OnError, OperationId, Request};
use crate::{Error, Outcome, Usage};

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
    asks: Asks,
    types: Option<Vec<Type>>,
    /// The types of the columns, if values have types of their own and go by COPY.
    columns: Option<Vec<Oid>>,
    /// The next set.
    next: usize,
    /// Sets before this go one by one, since no other way takes them.
    singly_until: usize,
    /// The first sets of what was pushed, with its operation and its way.
    pushed: Vec<(OperationId, usize, Bulk)>,
    stage: Stage,
}

/// How it is made sure that another way means the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asks {
    /// Not at all: the way is the caller's own choice, or it is the pipeline.
    Nothing,
    /// By a question before the sets.
    First,
    /// By a question for the next call.
    Along,
    /// It was pushed.
    Beside(OperationId),
    /// By a statement before the sets that fails.
    Guarded,
    /// It was pushed.
    GuardedBy(OperationId),
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
    /// [`Usage::NotPlainInsert`] for a statement that cannot go the wanted way, and [`Usage::Encoding`] for a session whose text
    /// cannot.
    pub fn new(
        core: &Connection,
        wanted: Bulk,
        statement: &str,
        sets: &dyn Sets,
        begins: bool,
    ) -> Result<Self, Error> {
        let is_known = |insert: &Insert| sets.count() > 0 && insert.width == sets.width(0);
        let insert = Insert::of(statement).filter(is_known);
        let names_columns = insert.as_ref().is_some_and(Insert::names_columns);
        let is_escaped = sets.count() > 0 && core.embeds_ascii();
        match wanted {
            Bulk::Unnest | Bulk::Copy if is_escaped => return Err(Usage::Encoding.into()),
            Bulk::Unnest if insert.is_none() && sets.count() > 0 => return Err(Usage::NotPlainInsert.into()),
            Bulk::Copy if !names_columns && sets.count() > 0 => return Err(Usage::NotPlainInsert.into()),
            _ => {}
        }
        let mut many = Self {
            statement: statement.to_owned(),
            insert,
            begins: begins && core.transaction_status() == TransactionStatus::Idle,
            wanted,
            way: wanted,
            asks: Asks::Nothing,
            types: None,
            columns: None,
            next: 0,
            singly_until: 0,
            pushed: Vec::new(),
            stage: Stage::Start,
        };
        match wanted {
            Bulk::Auto if is_escaped => many.way = Bulk::Pipeline,
            Bulk::Auto => many.choose(core, sets),
            Bulk::Unnest if many.insert.is_some() => {
                many.take_types(core, sets, true);
                many.asks = if many.types.is_none() { Asks::First } else { Asks::Nothing };
            }
            _ => {}
        }
        Ok(many)
    }

    /// What `Auto` does, as far as that is clear before anything is asked.
    fn choose(&mut self, core: &Connection, sets: &dyn Sets) {
        self.way = Bulk::Pipeline;
        let count = sets.count();
        let Some(insert) = self.insert.as_ref().filter(|_| count >= KNOWN_SETS_MIN) else { return };
        let known = core.tables.get(&insert.table);
        // In an open transaction a guard that fails would undo what is not its own.
        let is_alone = core.transaction_status() == TransactionStatus::Idle;
        self.take_types(core, sets, true);
        let best = match &known {
            Some(facts) if is_alone => self.best(facts, sets),
            _ => Bulk::Pipeline,
        };
        (self.way, self.asks) = match best {
            Bulk::Pipeline if pays(count, core.round_trip()) => (Bulk::Auto, Asks::First),
            Bulk::Pipeline if is_alone && known.is_none() => (Bulk::Pipeline, Asks::Along),
            Bulk::Pipeline => (Bulk::Pipeline, Asks::Nothing),
            way => (way, Asks::Guarded),
        };
    }

    /// The fastest way that means the same for such a table.
    fn best(&mut self, facts: &Facts, sets: &dyn Sets) -> Bulk {
        let mut is_copied = facts.copied && self.insert.as_ref().is_some_and(Insert::names_columns);
        self.columns = None;
        if is_copied && values::has_types(sets) {
            let names = self.insert.as_ref().and_then(Insert::column_names);
            let columns = names.and_then(|names| facts.types_of(&names));
            self.columns = columns.filter(|columns| values::has_types_of(sets, columns));
            is_copied = self.columns.is_some();
        }
        match facts.same {
            true if self.types.is_some() && (ARRAYS_SETS.contains(&sets.count()) || !is_copied) => {
                Bulk::Unnest
            }
            true if is_copied => Bulk::Copy,
            _ => Bulk::Pipeline,
        }
    }

    /// Takes the types of the parameters, if all of them can be arrays; with `is_ready`, only of a statement that is prepared.
    fn take_types(&mut self, core: &Connection, sets: &dyn Sets, is_ready: bool) {
        let types = parameter_types(core, &self.statement, sets, is_ready);
        self.types = types.filter(|types| types.iter().all(values::has_plain_arrays));
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
            Stage::Ended => {
                self.hear(core);
                match self.finish(core) {
                    Err(failed) if self.goes_again(core, &failed) => {
                        self.one_by_one();
                        self.step(core, sets)
                    }
                    done => done.map(ManyStep::Done),
                }
            }
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
        if let (Asks::Along, Some(insert)) = (self.asks, &self.insert) {
            // In a transaction of its own, so that its failure is nobody's. What is prepared from here on is about the table
            // that the answer is about.
            let asked = push_question(core, Some(OnError::Continue), &self.statement, sets, &insert.table)?;
            self.asks = Asks::Beside(asked);
        }
        if self.begins && core.transaction_status() == TransactionStatus::Failed {
            core.push(&Request::new("ROLLBACK", &[]), None)?;
        }
        if self.begins && core.transaction_status() != TransactionStatus::Active {
            core.push_begin()?;
        }
        match (self.asks, &self.insert) {
            (Asks::First, Some(insert)) => {
                // In a transaction an error of the question is nobody's.
                let on_error = core.block_in_transaction().then_some(OnError::Continue);
                let asked = push_question(core, on_error, &self.statement, sets, &insert.table)?;
                self.stage = Stage::Asked(asked);
                Ok(ManyStep::Answer(asked))
            }
            (Asks::Guarded, Some(insert)) => {
                let facts = core.tables.get(&insert.table).unwrap_or_default();
                let needs = match (self.way, &self.columns) {
                    (Bulk::Copy, None) => Needs::Copied,
                    (Bulk::Copy, Some(_)) => Needs::Types,
                    _ => Needs::Same,
                };
                let guard = facts.guard(&insert.table, needs);
                let guard = push_guard(core, &guard, &self.statement, sets)?;
                self.asks = Asks::GuardedBy(guard);
                self.push_next(core, sets)
            }
            _ => self.push_next(core, sets),
        }
    }

    /// Takes the answer; false where there is none, and the block has to end before the sets can go one by one.
    fn learn(&mut self, core: &mut Connection, asked: OperationId, sets: &dyn Sets) -> bool {
        let answer = core.take_result(asked);
        self.take_types(core, sets, false);
        if self.wanted == Bulk::Auto {
            let facts = Facts::of(&answer);
            self.way = self.best(&facts, sets);
            self.remember(core, facts);
        }
        answer.is_ok()
    }

    /// Takes what was asked beside the sets, or what a guard has found.
    fn hear(&self, core: &mut Connection) {
        match self.asks {
            Asks::Beside(asked) => {
                let answer = core.take_result(asked);
                // Where the server has forgotten the question it is asked again.
                if !answer.as_ref().is_err_and(is_stale) {
                    self.remember(core, Facts::of(&answer));
                }
            }
            Asks::GuardedBy(_) => match (self.failed_guard(core), &self.insert) {
                (Some(error), Some(insert)) if error.sqlstate() == Some(GUARD_FAILS) => {
                    core.tables.fail(&insert.table);
                }
                // It has not run: a value does not fit, or the server has forgotten a statement.
                (Some(_), Some(insert)) => core.tables.forget(&insert.table),
                _ => {}
            },
            _ => {}
        }
    }

    fn remember(&self, core: &mut Connection, facts: Facts) {
        if let Some(insert) = &self.insert {
            core.tables.put(&insert.table, facts);
        }
    }

    /// What a guard has failed with.
    fn failed_guard<'c>(&self, core: &'c Connection) -> Option<&'c Error> {
        let Asks::GuardedBy(guard) = self.asks else { return None };
        match core.outcome(guard) {
            Some(Outcome::Failed(error)) => Some(error),
            _ => None,
        }
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
        let (data, end) = match &self.columns {
            Some(columns) => values::binary_copy_data(sets, self.next, columns)?,
            None => values::copy_data(sets, self.next, insert.width, self.types.as_deref())?,
        };
        let format = if self.columns.is_some() { " (FORMAT binary)" } else { "" };
        let text = format!("COPY {} {} FROM STDIN{format}", insert.table, insert.columns);
        Ok((Piece::Copy { text, data }, end))
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
        if let Some(error) = self.failed_guard(core) {
            return Err(error.clone().into());
        }
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

    /// Whether the sets go one by one next: because only so it can be told which of them fails and with what, or because a
    /// guard has failed. Nothing of them holds.
    fn goes_again(&self, core: &Connection, failed: &BulkError) -> bool {
        // Classes of what a row can do wrong, of what only the rewritten statement can, and of what guards fail with, which
        // is also that the server has forgotten a statement.
        let class = failed.error.sqlstate().and_then(|code| code.get(..2));
        let is_of_a_row = class
            .is_some_and(|class| ["0A", "21", "22", "23", "25", "26", "42", "44", "P0"].contains(&class));
        // In a transaction of its own there is nothing else to lose.
        let is_alone = self.begins || core.transaction_status() == TransactionStatus::Idle;
        let went = |way| self.pushed.iter().any(|(.., pushed)| *pushed == way);
        // COPY tells the row of most errors. It reads rows before it checks those before them, so that another row may fail
        // first: who has chosen it wants that.
        let is_open = went(Bulk::Unnest) && failed.set.is_none()
            || went(Bulk::Copy) && self.wanted == Bulk::Auto
            || self.failed_guard(core).is_some();
        is_open && is_of_a_row && is_alone
    }

    /// Whether sets were pushed that would be kept without those that cannot be.
    fn takes_back(&self, core: &Connection) -> bool {
        !self.pushed.is_empty() && !core.block_in_transaction() && !core.is_lost()
    }

    /// From the first set on, one by one.
    fn one_by_one(&mut self) {
        self.way = Bulk::Pipeline;
        self.asks = Asks::Nothing;
        self.next = 0;
        self.pushed.clear();
        self.stage = Stage::Start;
    }
}

/// Whether the server has forgotten the statement.
fn is_stale(error: &Error) -> bool {
    matches!(error, Error::Server(error) if error.is_about_a_stale_statement())
}
