//! A connection without its socket, for event loops: bytes in, bytes out.

use std::sync::Mutex;
use std::time::Instant;

use onetrip_client::core::{
    Connection, Event, Gather, Limits, Opening, OutputSource, Request, Security, Step,
};
use onetrip_client::{ConnectError, Done, Error, OnError, ServerError, TransactionStatus, Usage};
use onetrip_target::tls::connector;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::adapters::Functions;
use crate::answer::Answer;
use crate::asked::{How, What, asked, translated};
use crate::block::{each, mode};
use crate::candidate::{Candidate, refused};
use crate::copying::CopyBuffer;
use crate::encoding::{Checked, codec, take_raised};
use crate::errors::{exception, fields};
use crate::loading;
use crate::lob::{Lob, LobFetch, Plan, level};
use crate::locked::locked;
use crate::many::{ManyRows, Rows, Wait, failure, way};
use crate::query::Queries;
use crate::session::{ENCODING, Loaders, output_source, pairs};
use crate::spent::{opened, spent};

/// The two lives of a connection.
enum Phase {
    Opening(Box<Opening>),
    Open(Box<Connection>),
    /// Between the two, and after a failure to get in.
    Gone,
}

/// A connection whose bytes somebody else moves.
#[pyclass(frozen, module = "onetrip._native")]
pub(crate) struct Wire {
    state: Mutex<State>,
    queries: Mutex<Queries>,
    loaders: Loaders,
}

struct State {
    phase: Phase,
    gather: Gather,
    /// The BEGIN of the call under way, whose result nobody wants.
    begins: bool,
    copying: Copying,
    /// What a COPY has given so far.
    copied: Vec<Vec<u8>>,
    copied_bytes: usize,
}

/// Where the data of the call under way goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Copying {
    Nowhere,
    In,
    Out,
    /// It is a statement's rows that are taken as they arrive.
    Rows,
}

impl State {
    fn core(&mut self) -> Result<&mut Connection, Error> {
        match &mut self.phase {
            Phase::Open(core) => Ok(core),
            _ => Err(Error::Closed),
        }
    }

    /// Pushes what `plan` says, as a block of its own.
    fn fetch_lobs(
        &mut self,
        lobs: Vec<Py<Lob>>,
        begins: bool,
        plan: impl FnOnce(&[Py<Lob>], &Limits) -> Plan,
    ) -> Result<Option<LobFetch>, Error> {
        let core = self.core()?;
        let plan = plan(&lobs, core.limits());
        if plan.is_empty() {
            return Ok(None);
        }
        core.begin_block(OnError::Abort)?;
        let begins = begins && core.transaction_status() == TransactionStatus::Idle;
        let begun = if begins { core.push_begin().map(drop) } else { Ok(()) };
        let fetch = begun.and_then(|()| plan.push(lobs, |request| core.push(request, None)));
        core.end_block()?;
        fetch.map(Some)
    }

    fn trips(&self) -> u64 {
        if let Phase::Open(core) = &self.phase { core.trips() } else { 0 }
    }

    fn receive(&mut self, mut data: &[u8]) -> Result<bool, Error> {
        while !data.is_empty() {
            match &mut self.phase {
                Phase::Opening(opening) => {
                    let count = fill(opening.input_space(), &mut data);
                    if opening.received(count)? == Step::Open {
                        let Phase::Opening(opening) = std::mem::replace(&mut self.phase, Phase::Gone) else {
                            return Err(Error::Closed);
                        };
                        let mut core = opening.into_connection();
                        core.set_codec(codec());
                        self.phase = Phase::Open(Box::new(core));
                        opened();
                    }
                }
                Phase::Open(core) => {
                    let count = fill(core.input_space(), &mut data);
                    core.received(count)?;
                    core.heard(Instant::now);
                    // Rows stand in the input buffer only until more comes.
                    self.gather_events()?;
                }
                Phase::Gone => return Err(Error::Closed),
            }
        }
        Ok(matches!(&self.phase, Phase::Open(core) if core.is_settled()))
    }

    fn gather_events(&mut self) -> Result<(), Error> {
        let Phase::Open(core) = &mut self.phase else { return Ok(()) };
        while let Some(event) = core.next_event()? {
            match event {
                Event::Ready(_) => {}
                Event::CopyData { data, .. } if self.copying == Copying::Out => {
                    let piece = core.copied(data);
                    self.copied_bytes += piece.len();
                    self.copied.push(piece.to_vec());
                }
                // The data is on its way without being waited for.
                Event::CopyIn { .. } if self.copying == Copying::In => {}
                Event::CopyIn { .. } if self.copying == Copying::Out => {
                    core.copy_refuse("this call takes data, and has none to give");
                }
                event => self.gather.take(core, event),
            }
        }
        Ok(())
    }
}

fn fill(space: &mut [u8], data: &mut &[u8]) -> usize {
    let count = space.len().min(data.len());
    space[..count].copy_from_slice(&data[..count]);
    *data = &data[count..];
    count
}

impl Wire {
    fn with<T>(&self, py: Python<'_>, call: impl FnOnce(&mut State) -> Result<T, Error>) -> PyResult<T> {
        // Nothing here waits, so that the lock is never held for long; a loop has one thread anyway.
        let mut state = locked(&self.state);
        let before = state.trips();
        let done = call(&mut state);
        spent(state.trips() - before);
        done.map_err(|error| take_raised().unwrap_or_else(|| exception(py, &error)))
    }

    fn answer(&self, py: Python<'_>, done: Done) -> PyResult<Answer> {
        let done = self.with(py, |state| match &mut state.phase {
            Phase::Open(core) => Checked::of(done, core.setting(ENCODING)),
            _ => Checked::of(done, None),
        })?;
        self.loaders.with(py, |own| Answer::new(done, own, || self.settings(py)))
    }

    /// What of the session's settings says how values are written.
    fn settings(&self, py: Python<'_>) -> PyResult<loading::Session> {
        self.with(py, |state| {
            let core = state.core()?;
            Ok(loading::Session::of(|name| core.setting(name).map(str::to_owned)))
        })
    }
}

#[pymethods]
impl Wire {
    /// Begins a connection with one of [`addresses`]; the first bytes are in the output.
    #[new]
    fn new(py: Python<'_>, candidate: &Candidate, tls: bool) -> PyResult<Self> {
        let open = || -> Result<Opening, ConnectError> {
            let Candidate { config, host, .. } = candidate;
            let plan = if tls { connector(&config.conninfo)? } else { None };
            let security = plan.map_or(Security::Plain, Security::Tls);
            Opening::new(host.clone(), config.login(host)?, security, config.limits.clone())
        };
        let opening = open().map_err(|error| refused(py, error))?;
        let phase = Phase::Opening(Box::new(opening));
        let state = State {
            phase,
            gather: Gather::default(),
            begins: false,
            copying: Copying::Nowhere,
            copied: Vec::new(),
            copied_bytes: 0,
        };
        let (state, queries) = (Mutex::new(state), Mutex::new(Queries::default()));
        Ok(Self { state, queries, loaders: Loaders::new(py) })
    }

    /// Takes what is to be sent now.
    fn output<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let mut state = locked(&self.state);
        let (bytes, count) = match &mut state.phase {
            Phase::Opening(opening) => {
                let output = opening.output();
                (PyBytes::new(py, output), output.len())
            }
            Phase::Open(core) => {
                let output = core.output();
                (PyBytes::new(py, output), output.len())
            }
            Phase::Gone => (PyBytes::new(py, b""), 0),
        };
        match &mut state.phase {
            Phase::Opening(opening) => opening.sent(count),
            Phase::Open(core) => {
                core.leaves(Instant::now);
                core.sent(count);
            }
            Phase::Gone => {}
        }
        bytes
    }

    /// Takes what has come. Says whether the connection is open and all that was asked is answered.
    fn received(&self, py: Python<'_>, data: &[u8]) -> PyResult<bool> {
        self.with(py, |state| state.receive(data))
    }

    /// The connection has ended: what was asked fails.
    fn lost(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |state| {
            let core = state.core()?;
            core.lost(None);
            // The core says by an error that all has been failed.
            let _ = state.gather_events();
            Ok(())
        })
    }

    /// Says what begins a transaction.
    fn set_begin(&self, py: Python<'_>, statement: String) -> PyResult<()> {
        self.with(py, |state| {
            state.core()?.set_begin(statement);
            Ok(())
        })
    }

    /// Says how often a statement runs before it stays prepared; never for `None`.
    fn set_prepare_after(&self, py: Python<'_>, runs: Option<u32>) -> PyResult<()> {
        self.with(py, |state| {
            state.core()?.set_prepare_after(runs.unwrap_or(u32::MAX));
            Ok(())
        })
    }

    /// All settings that the server reports.
    fn all_settings(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        self.with(py, |state| Ok(pairs(state.core()?.settings())))
    }

    /// Process id of the backend.
    #[getter]
    fn backend(&self, py: Python<'_>) -> PyResult<Option<u32>> {
        self.with(py, |state| Ok(state.core()?.cancel_key().map(|key| key.process_id())))
    }

    /// Asks for a statement, or several where there are no parameters; with `begins`, BEGIN goes before it.
    /// `how` is as [`crate::session::Session::run`] has it. With `streams`, rows are to be taken by
    /// [`rows_here`](Self::rows_here) as they arrive.
    #[pyo3(signature = (text, given, begins, how = 0, streams = false, /))]
    fn ask(
        &self,
        py: Python<'_>,
        text: &str,
        given: Option<&Bound<'_, PyAny>>,
        begins: bool,
        how: u8,
        streams: bool,
    ) -> PyResult<()> {
        let mut asked = asked(&self.queries, py, text, given, How(how))?;
        self.with(py, |state| {
            state.gather = Gather::from_here(state.core()?);
            state.copying = if streams { Copying::Rows } else { Copying::Nowhere };
            let core = state.core()?;
            asked.encode(core.setting(ENCODING))?;
            let (begins, _) = match &asked.what {
                What::Script(text) => core.submit_script_in_transaction(text, begins)?,
                _ => asked.request(|request| core.submit_in_transaction(request, begins))?,
            };
            state.begins = begins;
            Ok(())
        })
    }

    /// Asks for a COPY: with `gives`, of data that [`send_copy`](Self::send_copy) gives, else of data that comes.
    fn ask_copy(&self, py: Python<'_>, text: &str, gives: bool, begins: bool) -> PyResult<()> {
        self.with(py, |state| {
            state.gather = Gather::from_here(state.core()?);
            state.copied.clear();
            state.copied_bytes = 0;
            state.copying = if gives { Copying::In } else { Copying::Out };
            let core = state.core()?;
            let (begins, _) = core.submit_copy_in_transaction(&Request::new(text, &[]), begins)?;
            if !gives {
                core.sync();
            }
            state.begins = begins;
            Ok(())
        })
    }

    /// Gives what waits; false where the COPY has failed already.
    fn send_copy(&self, py: Python<'_>, buffer: &CopyBuffer) -> PyResult<bool> {
        self.with(py, |state| {
            state.core()?.copy_data(&buffer.take());
            Ok(!state.gather.has_failed())
        })
    }

    /// Ends the data, or gives the COPY up for a reason: then nothing of it is kept.
    fn end_copy(&self, py: Python<'_>, buffer: &CopyBuffer, why: Option<&str>) -> PyResult<()> {
        self.with(py, |state| {
            let core = state.core()?;
            match why {
                None => {
                    core.copy_data(&buffer.take_last());
                    core.copy_done();
                }
                Some(why) => core.copy_fail(why),
            }
            core.sync();
            Ok(())
        })
    }

    /// Takes the data that has come of the COPY that was asked for.
    fn copied<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        let mut state = locked(&self.state);
        state.copied_bytes = 0;
        std::mem::take(&mut state.copied).iter().map(|piece| PyBytes::new(py, piece)).collect()
    }

    /// Takes the rows that have come of the statement that was asked for; `None` where none have.
    fn rows_here(&self, py: Python<'_>) -> PyResult<Option<Answer>> {
        let rows = locked(&self.state).gather.take_rows();
        let done = rows.map(Done::part);
        done.map(|done| self.answer(py, done)).transpose()
    }

    /// Nobody wants the data or the rows that are left.
    fn drop_copied(&self) {
        let mut state = locked(&self.state);
        if state.copying == Copying::Rows {
            if let Ok(core) = state.core() {
                state.gather = Gather::from_here(core);
            }
        }
        state.copying = Copying::Nowhere;
        state.copied.clear();
        state.copied_bytes = 0;
    }

    /// Bytes that [`copied`](Self::copied) or [`rows_here`](Self::rows_here) would take.
    #[getter]
    fn copied_bytes(&self) -> usize {
        let state = locked(&self.state);
        if state.copying == Copying::Rows { state.gather.rows_bytes() } else { state.copied_bytes }
    }

    /// Makes the values of an answer by these functions.
    fn load_by(
        &self,
        py: Python<'_>,
        answer: &mut Answer,
        texts: &Bound<'_, PyDict>,
        binaries: &Bound<'_, PyDict>,
    ) -> PyResult<()> {
        answer.load_by(&Functions { texts, binaries }, || self.settings(py))
    }

    /// What the statements did that [`ask`](Self::ask) asked for.
    fn answers(&self, py: Python<'_>) -> PyResult<Vec<Answer>> {
        let mut done: Vec<Done> = self.with(py, |state| std::mem::take(&mut state.gather).finish())?;
        let begins = usize::from(std::mem::take(&mut locked(&self.state).begins));
        done.drain(..begins.min(done.len()));
        done.into_iter().map(|done| self.answer(py, done)).collect()
    }

    /// Opens a block.
    fn begin_block(&self, py: Python<'_>, goes_on: bool) -> PyResult<()> {
        self.with(py, |state| state.core()?.begin_block(mode(goes_on)))
    }

    /// Adds a statement to the block; its operation's number.
    #[pyo3(signature = (text, given, goes_on, begin, how = 0, /))]
    fn push(
        &self,
        py: Python<'_>,
        text: &str,
        given: Option<&Bound<'_, PyAny>>,
        goes_on: Option<bool>,
        begin: bool,
        how: u8,
    ) -> PyResult<u64> {
        let mut asked = asked(&self.queries, py, text, given, How(how))?;
        self.with(py, |state| {
            let core = state.core()?;
            asked.encode(core.setting(ENCODING))?;
            if begin {
                core.push_begin()?;
            }
            asked.request(|request| core.push(request, goes_on.map(mode))).map(|id| id.number())
        })
    }

    /// Whether all operations before have to be answered before one of this kind can be pushed; then it sees to it that
    /// they will be.
    fn needs_answers(&self, py: Python<'_>, goes_on: Option<bool>) -> PyResult<bool> {
        self.with(py, |state| {
            let core = state.core()?;
            let needs = core.needs_barrier(goes_on.map(mode));
            if needs {
                core.put_barrier();
            }
            Ok(needs)
        })
    }

    /// Asks for what is wanted of large values before anybody reads, in one block. `None` where that is nothing.
    fn ask_lobs(
        &self,
        py: Python<'_>,
        lobs: Vec<Py<Lob>>,
        prefetch: Option<&str>,
        begins: bool,
    ) -> PyResult<Option<LobFetch>> {
        let level = level(py, prefetch)?;
        self.with(py, |state| state.fetch_lobs(lobs, begins, |lobs, limits| Plan::first(lobs, limits, level)))
    }

    /// Asks for what is missing of a large value for so many bytes or characters to be here, in one block.
    fn ask_lob(&self, py: Python<'_>, lob: Py<Lob>, most: u64, begins: bool) -> PyResult<Option<LobFetch>> {
        self.with(py, |state| {
            state.fetch_lobs(vec![lob], begins, |lobs, limits| Plan::more(lobs, limits, most))
        })
    }

    /// Takes what came of large values.
    fn take_lobs(&self, py: Python<'_>, fetch: &LobFetch) -> PyResult<()> {
        self.with(py, |state| {
            let core = state.core()?;
            core.check_outcomes()?;
            fetch.came(|operation| core.take_outcome(operation).ok_or(Usage::UnknownOperation)?.into_result())
        })
    }

    /// Begins to run a statement once for each of rows, in one of the ways that [`way`] knows.
    #[pyo3(signature = (text, rows, begins, by, how = 0))]
    fn many(
        &self,
        py: Python<'_>,
        text: &str,
        rows: &Bound<'_, PyAny>,
        begins: bool,
        by: &str,
        how: u8,
    ) -> PyResult<ManyRows> {
        let (query, way) = (translated(&self.queries, py, text, How(how))?, way(by)?);
        let mut rows = Rows::of(&query, rows, way)?;
        self.with(py, |state| {
            rows.encode(state.core()?.setting(ENCODING))?;
            ManyRows::new(state.core()?, way, &query.text, rows, begins)
        })
    }

    /// Goes on with them. Says what to wait for before the next call: "room", the "answer" to an operation, or "all"
    /// answers; or that all is "done", how many rows were changed, and the last statement's tag.
    fn step(&self, py: Python<'_>, many: &ManyRows) -> PyResult<(&'static str, u64, Option<String>)> {
        let step = self.with(py, |state| Ok(many.step(state.core()?)))?;
        Ok(match step.map_err(|failed| failure(py, &failed))? {
            Wait::Room => ("room", 0, None),
            Wait::Answer(operation) => ("answer", operation, None),
            Wait::All => ("all", 0, None),
            Wait::Done(rows, tag) => ("done", rows, tag),
        })
    }

    /// Ends their block early: outside of a transaction nothing of them is kept.
    fn give_up(&self, py: Python<'_>, many: &ManyRows) -> PyResult<()> {
        self.with(py, |state| {
            many.give_up(state.core()?);
            Ok(())
        })
    }

    /// Lets the server send what it has for the block.
    fn request_replies(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |state| {
            state.core()?.request_replies();
            Ok(())
        })
    }

    /// Whether an operation of the block is answered.
    fn is_answered(&self, py: Python<'_>, operation: u64) -> PyResult<bool> {
        self.with(py, |state| Ok(state.core()?.is_answered_number(operation)))
    }

    /// Ends the block.
    fn end_block(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |state| state.core()?.end_block())
    }

    /// Whether the next operation of the block will run in a transaction.
    #[getter]
    fn block_in_transaction(&self, py: Python<'_>) -> PyResult<bool> {
        self.with(py, |state| Ok(state.core()?.block_in_transaction()))
    }

    /// Takes the result of an operation, or raises its error.
    fn take(&self, py: Python<'_>, operation: u64) -> PyResult<Answer> {
        let done = self.with(py, |state| {
            let outcome = state.core()?.take_outcome_number(operation).ok_or(Usage::UnknownOperation)?;
            outcome.into_result()
        })?;
        self.answer(py, done)
    }

    /// Takes the results of operations, each of them or its error.
    fn take_all(&self, py: Python<'_>, operations: Vec<u64>) -> PyResult<Vec<Py<PyAny>>> {
        each(py, operations, |operation| self.take(py, operation))
    }

    /// The first operation of the last block that failed, `but` for these.
    fn first_failed(&self, py: Python<'_>, but: Vec<u64>) -> PyResult<Option<u64>> {
        self.with(py, |state| Ok(state.core()?.first_failed(&but).map(|id| id.number())))
    }

    /// What interrupts the session from another connection.
    fn cancel_packet(&self, py: Python<'_>) -> PyResult<Option<Vec<u8>>> {
        self.with(py, |state| Ok(state.core()?.cancel_key().map(|key| key.packet())))
    }

    /// Says goodbye.
    fn terminate(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |state| {
            state.core()?.terminate();
            Ok(())
        })
    }

    /// Where the session stands, as [`crate::session::Session`] says it.
    #[getter]
    fn status(&self) -> i32 {
        match &locked(&self.state).phase {
            Phase::Open(core) if !core.is_lost() => match core.transaction_status() {
                TransactionStatus::Idle => 0,
                TransactionStatus::Active => 2,
                TransactionStatus::Failed => 3,
            },
            _ => 4,
        }
    }

    /// Round trips since the session was open.
    #[getter]
    fn trips(&self) -> u64 {
        locked(&self.state).trips()
    }

    /// The connection's own loaders, by type id.
    #[getter]
    fn loaders(&self, py: Python<'_>) -> Py<PyDict> {
        self.loaders.texts.clone_ref(py)
    }

    /// Those that take the binary form.
    #[getter]
    fn binary_loaders(&self, py: Python<'_>) -> Py<PyDict> {
        self.loaders.binaries.clone_ref(py)
    }

    /// Closes a cursor of the server's, along with the next statement.
    fn close_portal(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        self.with(py, |state| {
            state.core()?.close_portal(name);
            Ok(())
        })
    }

    /// Prepares all statements anew when they are next used.
    fn forget_statements(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |state| {
            state.core()?.forget_statements();
            Ok(())
        })
    }

    /// A setting that the server reports.
    fn setting(&self, py: Python<'_>, name: &str) -> PyResult<Option<String>> {
        self.with(py, |state| Ok(state.core()?.setting(name).map(str::to_owned)))
    }

    /// What has to run before output is collected; it fails where there is none.
    #[staticmethod]
    fn opening(source: &str) -> PyResult<&'static str> {
        output_source(source).map(OutputSource::opening)
    }

    /// From now on, output of the session comes along with the answers of calls.
    fn collect_output(&self, py: Python<'_>, source: &str) -> PyResult<()> {
        let source = output_source(source)?;
        self.with(py, |state| {
            state.core()?.collect_output(Some(source));
            Ok(())
        })
    }

    /// What statements have printed since the last call.
    fn lines(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.with(py, |state| {
            let core = state.core()?;
            Ok(std::iter::from_fn(|| core.take_line()).collect())
        })
    }

    /// The notices since the last call, field by field.
    fn notices<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let notices: Vec<ServerError> = self.with(py, |state| {
            let core = state.core()?;
            Ok(std::iter::from_fn(|| core.take_notice()).collect())
        })?;
        notices.iter().map(|notice| fields(py, notice)).collect()
    }

    /// The next notification that has come: channel, payload, process id.
    fn notification(&self, py: Python<'_>) -> PyResult<Option<(String, String, u32)>> {
        let heard = self.with(py, |state| Ok(state.core()?.take_notification()))?;
        Ok(heard.map(|heard| (heard.channel, heard.payload, heard.process_id)))
    }
}
