//! Operations of a pipeline's block.

use onetrip_client::blocking::{Client, Pipeline};
use onetrip_client::core::Request;
use onetrip_client::{
    BulkError, Done, Error, Format, Oid, OnError, OperationId, Outcome, Outcomes, TransactionStatus, Usage,
};
use pyo3::prelude::*;

use crate::answer::Answer;
use crate::asked::Asked;
use crate::encoding::{Checked, foreign, raising};
use crate::errors::of_row;
use crate::many::{failure, same_width};
use crate::parameters::{Parameters, references};
use crate::query::Query;
use crate::session::{ENCODING, Session};

/// Executions whose parameters are written before the GIL is released and they are sent.
const BATCH: usize = 512;

/// What an operation's failure does to the others.
pub(crate) fn mode(goes_on: bool) -> OnError {
    if goes_on { OnError::Continue } else { OnError::Abort }
}

/// Adds a statement; its operation's number.
pub(crate) fn push(
    client: &mut Client,
    asked: &Asked,
    goes_on: Option<bool>,
    begin: bool,
) -> Result<u64, Error> {
    let mut pipeline = client.open_pipeline()?;
    if begin {
        pipeline.begin()?;
    }
    let id = asked.request(|request| pipeline.push(request, goes_on.map(mode)))?;
    Ok(id.number())
}

/// Opens a block that aborts, with BEGIN in it if asked for and no transaction is open; says whether it is.
pub(crate) fn open(client: &mut Client, begins: bool) -> Result<(Pipeline<'_>, bool), Error> {
    let begins = begins && client.transaction_status() == TransactionStatus::Idle;
    let mut pipeline = client.pipeline(OnError::Abort)?;
    if begins {
        pipeline.begin()?;
    }
    Ok((pipeline, begins))
}

/// Runs a statement once for each row of parameters, in one block, as the rows come: how many rows were changed, the results
/// if wanted, in a format, and the last statement's tag.
pub(crate) fn run_many(
    session: &Session,
    py: Python<'_>,
    query: &Query,
    rows: &Bound<'_, PyAny>,
    begins: bool,
    keeps: Option<Format>,
) -> PyResult<(i64, Vec<Checked>, Option<String>)> {
    let (begins, is_implicit) = session.with(py, |client| {
        let is_idle = client.transaction_status() == TransactionStatus::Idle;
        let (_, begins) = open(client, begins)?;
        Ok((begins, is_idle && !begins))
    })?;
    let sent = push_many(session, py, query, rows, keeps.unwrap_or_default());
    // After a mistake in a later row, what was pushed before is not to be committed by the end of the block.
    let undoes = sent.is_err() && is_implicit;
    let done = session.with(py, |client| {
        let mut pipeline = client.open_pipeline()?;
        if undoes {
            pipeline.rollback()?;
        }
        pipeline.end().map(drop)
    });
    sent?;
    done?;
    let taken = session.with(py, |client| Ok(take_all(client, begins, keeps.is_some())))?;
    let (count, done, tag) = taken.map_err(|failed| failure(py, &failed))?;
    let checked = |done| session.with(py, |client| Checked::of(done, client.setting(ENCODING)));
    Ok((count, done.into_iter().map(checked).collect::<PyResult<_>>()?, tag))
}

/// Adds an execution for each row of parameters. The GIL is released after each [`BATCH`].
fn push_many(
    session: &Session,
    py: Python<'_>,
    query: &Query,
    rows: &Bound<'_, PyAny>,
    format: Format,
) -> PyResult<()> {
    let mut parameters = Parameters::default();
    let (mut types, mut count) = (Vec::new(), 0);
    let mut width = None;
    for (at, row) in rows.try_iter()?.enumerate() {
        let before = parameters.count();
        let added = parameters.add(query, &row?);
        let checked = added.and_then(|()| same_width(py, &mut width, parameters.count() - before));
        checked.map_err(|error| of_row(py, error, Some(at)))?;
        count += 1;
        if count == BATCH {
            send(session, py, query, format, &mut parameters, &mut types, count)?;
            count = 0;
        }
    }
    send(session, py, query, format, &mut parameters, &mut types, count)
}

fn send(
    session: &Session,
    py: Python<'_>,
    query: &Query,
    format: Format,
    parameters: &mut Parameters,
    types: &mut Vec<Oid>,
    count: usize,
) -> PyResult<()> {
    if count == 0 {
        return Ok(());
    }
    let width = parameters.written().len() / count;
    parameters.unify(types, width);
    session.with(py, |client| {
        if let Some(encoding) = foreign(client.setting(ENCODING)) {
            raising(|py| parameters.encode(py, encoding))?;
        }
        let written = parameters.written();
        let references = references(&written);
        let mut pipeline = client.open_pipeline()?;
        for at in 0..count {
            let plain = Request::new(&query.text, &references[at * width..(at + 1) * width]);
            pipeline.push(&Request { format, ..plain }, None)?;
        }
        Ok(())
    })?;
    parameters.clear();
    Ok(())
}

/// The rows that all operations of a block changed, and their results if wanted.
///
/// # Errors
/// Which row failed, and with what.
fn take_all(
    client: &mut Client,
    begins: bool,
    keeps: bool,
) -> Result<(i64, Vec<Done>, Option<String>), BulkError> {
    let mut outcomes = client.outcomes();
    outcomes.check().map_err(|error| BulkError { set: failed_row(&outcomes, begins), error })?;
    let last = outcomes.iter().skip(usize::from(begins)).last();
    let tag = last.and_then(|(_, outcome)| match outcome {
        Outcome::Done(done) => Some(done.tag.as_str().to_owned()),
        _ => None,
    });
    if keeps {
        let ids: Vec<OperationId> = outcomes.iter().skip(usize::from(begins)).map(|(id, _)| id).collect();
        let done: Vec<Done> = ids.into_iter().map(|id| outcomes.take(id)).collect::<Result<_, _>>()?;
        let count: u64 = done.iter().map(Done::count).sum();
        return Ok((i64::try_from(count).unwrap_or(i64::MAX), done, tag));
    }
    let counts = outcomes.iter().skip(usize::from(begins)).map(|(_, outcome)| match outcome {
        Outcome::Done(done) => done.count(),
        _ => 0,
    });
    Ok((i64::try_from(counts.sum::<u64>()).unwrap_or(i64::MAX), Vec::new(), tag))
}

/// The row whose operation failed. A commit that fails, or a connection that is lost, fails several.
fn failed_row(outcomes: &Outcomes<'_>, begins: bool) -> Option<usize> {
    let is_failed =
        |(at, (_, outcome)): (usize, (_, &Outcome))| matches!(outcome, Outcome::Failed(_)).then_some(at);
    let mut failed = outcomes.iter().enumerate().filter_map(is_failed);
    let first = failed.next()?;
    if failed.next().is_some() { None } else { first.checked_sub(usize::from(begins)) }
}

/// Waits until an operation is answered.
pub(crate) fn process(client: &mut Client, operation: u64) -> Result<(), Error> {
    let mut pipeline = client.open_pipeline()?;
    let id = pipeline.operation(operation).ok_or(Usage::UnknownOperation)?;
    pipeline.process(id)
}

/// Takes the result of an operation that was answered.
pub(crate) fn take(client: &mut Client, operation: u64) -> Result<Done, Error> {
    let mut outcomes = client.outcomes();
    let id = outcomes.operation(operation).ok_or(Usage::UnknownOperation)?;
    outcomes.take(id)
}

/// The results of operations, or the errors in their place.
pub(crate) fn each(
    py: Python<'_>,
    operations: Vec<u64>,
    take: impl Fn(u64) -> PyResult<Answer>,
) -> PyResult<Vec<Py<PyAny>>> {
    let taken = |operation| match take(operation) {
        Ok(answer) => Ok(Py::new(py, answer)?.into_any()),
        Err(error) => Ok(error.into_value(py).into_any()),
    };
    operations.into_iter().map(taken).collect()
}
