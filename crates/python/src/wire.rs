//! A connection without its socket, for event loops: bytes in, bytes out.

use std::sync::{Arc, Mutex};

use onetrip_client::core::{Connection, Event, Gather, Opening, Security, Step};
use onetrip_client::{Config, ConnectError, Done, Error, TargetSession, TransactionStatus, Usage};
use onetrip_target::Host;
use onetrip_target::address::{Address, candidates};
use onetrip_target::tls::connector;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::answer::Answer;
use crate::block::mode;
use crate::errors::{exception, misuse};
use crate::many::{ManyRows, Rows, Wait, failure, way};
use crate::query::Queries;
use crate::session::{Asked, asked, config, locked, translated};
use crate::spent::{opened, spent};

/// How to connect with one of the servers that connection text names.
#[pyclass(frozen, module = "onetrip._native")]
pub(crate) struct Candidate {
    config: Arc<Config>,
    host: Host,
    address: Address,
}

#[pymethods]
impl Candidate {
    /// Host and port; the path and no port for a unix socket.
    #[getter]
    fn address(&self) -> (String, Option<u16>) {
        match &self.address {
            Address::Tcp(address) => (address.ip().to_string(), Some(address.port())),
            Address::Unix(path) => (path.to_string_lossy().into_owned(), None),
        }
    }

    /// Longest wait for the connection, in seconds.
    #[getter]
    fn timeout(&self) -> Option<f64> {
        self.config.conninfo.connect_timeout.map(|timeout| timeout.as_secs_f64())
    }

    /// Whether each of TLS and plain may be tried, in order.
    fn ways(&self, py: Python<'_>) -> PyResult<Vec<bool>> {
        let plan = connector(&self.config.conninfo).map_err(|error| refused(py, error.into()))?;
        Ok(match plan.filter(|plan| plan.applies_to(&self.host)) {
            None => vec![false],
            Some(plan) if plan.starts_plain() => vec![false, true],
            Some(plan) if plan.may_be_plain() => vec![true, false],
            Some(_) => vec![true],
        })
    }
}

fn refused(py: Python<'_>, error: ConnectError) -> PyErr {
    exception(py, &error.into())
}

/// The servers to try, in order. Names are looked up here: that may wait, without the GIL.
#[pyfunction]
pub(crate) fn addresses(
    py: Python<'_>,
    text: &str,
    keywords: Vec<(String, String)>,
) -> PyResult<Vec<Candidate>> {
    let config = config(py, text, keywords)?;
    match config.target_session() {
        Ok(TargetSession::Any) => {}
        Ok(_) => {
            return Err(misuse(py, "unsupported", "onetrip.aio cannot tell servers by target_session_attrs"));
        }
        Err(error) => return Err(refused(py, error)),
    }
    let found = py.detach(|| {
        let found = candidates(&config.conninfo).map(|(host, address)| {
            let config = Arc::clone(&config);
            Ok(Candidate { config, host: host.clone(), address: address.map_err(ConnectError::from)? })
        });
        found.collect::<Vec<Result<_, ConnectError>>>()
    });
    // A name that is not known is no reason not to try the others.
    let (mut known, mut failed) = (Vec::new(), None);
    for candidate in found {
        match candidate {
            Ok(candidate) => known.push(candidate),
            Err(error) => failed = Some(error),
        }
    }
    match failed {
        Some(error) if known.is_empty() => Err(refused(py, error)),
        _ => Ok(known),
    }
}

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
    loaders: Py<PyDict>,
}

struct State {
    phase: Phase,
    gather: Gather,
    /// The BEGIN of the call under way, whose result nobody wants.
    begins: bool,
}

impl State {
    fn core(&mut self) -> Result<&mut Connection, Error> {
        match &mut self.phase {
            Phase::Open(core) => Ok(core),
            _ => Err(Error::Closed),
        }
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
                        self.phase = Phase::Open(Box::new(opening.into_connection()));
                        opened();
                    }
                }
                Phase::Open(core) => {
                    let count = fill(core.input_space(), &mut data);
                    core.received(count)?;
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
            if !matches!(event, Event::Ready(_)) {
                self.gather.take(core, event);
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
        done.map_err(|error| exception(py, &error))
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
        let state = State { phase, gather: Gather::default(), begins: false };
        let (state, queries) = (Mutex::new(state), Mutex::new(Queries::default()));
        Ok(Self { state, queries, loaders: PyDict::new(py).unbind() })
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
            Phase::Open(core) => core.sent(count),
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

    /// Asks for a statement, or several where there are no parameters; with `begins`, BEGIN goes before it.
    #[pyo3(signature = (text, given, begins, /))]
    fn ask(
        &self,
        py: Python<'_>,
        text: &str,
        given: Option<&Bound<'_, PyAny>>,
        begins: bool,
    ) -> PyResult<()> {
        let asked = asked(&self.queries, py, text, given)?;
        self.with(py, |state| {
            state.gather = Gather::default();
            let core = state.core()?;
            let (begins, _) = match &asked {
                Asked::Script(text) => core.submit_script_in_transaction(text, begins)?,
                asked => asked.request(|request| core.submit_in_transaction(request, begins))?,
            };
            state.begins = begins;
            Ok(())
        })
    }

    /// What the statements did that [`ask`](Self::ask) asked for.
    fn answers(&self, py: Python<'_>) -> PyResult<Vec<Answer>> {
        let mut done: Vec<Done> = self.with(py, |state| std::mem::take(&mut state.gather).finish())?;
        let begins = usize::from(std::mem::take(&mut locked(&self.state).begins));
        done.drain(..begins.min(done.len()));
        done.into_iter().map(|done| Answer::new(done, self.loaders.bind(py))).collect()
    }

    /// Opens a block.
    fn begin_block(&self, py: Python<'_>, goes_on: bool) -> PyResult<()> {
        self.with(py, |state| state.core()?.begin_block(mode(goes_on)))
    }

    /// Adds a statement to the block; its operation's number.
    #[pyo3(signature = (text, given, begin, /))]
    fn push(
        &self,
        py: Python<'_>,
        text: &str,
        given: Option<&Bound<'_, PyAny>>,
        begin: bool,
    ) -> PyResult<u64> {
        let asked = asked(&self.queries, py, text, given)?;
        self.with(py, |state| {
            let core = state.core()?;
            if begin {
                core.push(&onetrip_client::core::Request::new("BEGIN", &[]), None)?;
            }
            asked.request(|request| core.push(request, None)).map(|id| id.number())
        })
    }

    /// Begins to run a statement once for each of rows, in one of the ways that [`way`] knows.
    fn many(
        &self,
        py: Python<'_>,
        text: &str,
        rows: &Bound<'_, PyAny>,
        begins: bool,
        by: &str,
    ) -> PyResult<ManyRows> {
        let (query, way) = (translated(&self.queries, py, text)?, way(by)?);
        let rows = Rows::of(&query, rows, way)?;
        self.with(py, |state| ManyRows::new(state.core()?, way, &query.text, rows, begins))
    }

    /// Goes on with them. Says what to wait for before the next call: "room", the "answer" to an operation, or "all"
    /// answers; or that all is "done", and how many rows were changed.
    fn step(&self, py: Python<'_>, many: &ManyRows) -> PyResult<(&'static str, u64)> {
        let step = self.with(py, |state| Ok(many.step(state.core()?)))?;
        Ok(match step.map_err(|failed| failure(py, &failed))? {
            Wait::Room => ("room", 0),
            Wait::Answer(operation) => ("answer", operation),
            Wait::All => ("all", 0),
            Wait::Done(rows) => ("done", rows),
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

    /// Takes the result of an operation, or raises its error.
    fn take(&self, py: Python<'_>, operation: u64) -> PyResult<Answer> {
        let done = self.with(py, |state| {
            let outcome = state.core()?.take_outcome_number(operation).ok_or(Usage::UnknownOperation)?;
            outcome.into_result()
        })?;
        Answer::new(done, self.loaders.bind(py))
    }

    /// The first operation of the last block that failed.
    fn first_failed(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        self.with(py, |state| Ok(state.core()?.first_failed().map(|id| id.number())))
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
        self.loaders.clone_ref(py)
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

    /// The next notification that has come: channel, payload, process id.
    fn notification(&self, py: Python<'_>) -> PyResult<Option<(String, String, u32)>> {
        let heard = self.with(py, |state| Ok(state.core()?.take_notification()))?;
        Ok(heard.map(|heard| (heard.channel, heard.payload, heard.process_id)))
    }
}
