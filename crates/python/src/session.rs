//! A connection that waits, with the GIL released.

use std::cell::Cell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use onetrip_client::blocking::{Canceller, Client};
use onetrip_client::core::{Limits, OutputSource};
use onetrip_client::{Bulk, Config, ConnectError, Done, Error, Format, TransactionStatus};
use onetrip_target::{Conninfo, Environment, Host, HostName, Settings};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::answer::Answer;
use crate::block;
use crate::copying::CopyBuffer;
use crate::errors::{exception, fields, misuse};
use crate::held::Held;
use crate::loading;
use crate::lob::{Lob, Plan, level, made};
use crate::many::{Rows, failure, way};
use crate::parameters::{Parameters, references};
use crate::query::{Queries, Query, may_be_several};
use crate::spent::{opened, spent};

/// Data of a COPY that is taken out of the client at once, in bytes.
const COPY_BYTES: usize = 64 * 1024;

/// One connection with a server, as the classes of `onetrip` use it. Threads may share it: each call has it for itself.
#[pyclass(frozen, module = "onetrip._native")]
pub(crate) struct Session {
    client: Mutex<Option<Held>>,
    canceller: Option<Canceller>,
    queries: Mutex<Queries>,
    loaders: Py<PyDict>,
}

/// Connection text and keywords as settings of the client.
pub(crate) fn config(py: Python<'_>, text: &str, keywords: Vec<(String, String)>) -> PyResult<Arc<Config>> {
    let config = || -> Result<Config, ConnectError> {
        let is_empty = text.trim().is_empty();
        let mut settings = if is_empty { Settings::default() } else { Settings::parse(text)? };
        for (keyword, value) in keywords {
            settings.set(&keyword, value);
        }
        let mut config = Config::of(Conninfo::complete(settings, &Environment::of_this_process())?)?;
        // Dates are read in this style only; the order of day and month in what is written stays as it is.
        config.settings.push(("DateStyle".to_owned(), "ISO".to_owned()));
        Ok(config)
    };
    config().map(Arc::new).map_err(|error| exception(py, &error.into()))
}

/// A lock that a panic elsewhere does not take away.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a call asks for.
pub(crate) enum Asked {
    /// Statements without parameters.
    Script(String),
    /// One statement with parameters.
    One(Arc<Query>, Parameters),
    /// One statement without.
    Plain(String),
}

impl Asked {
    /// The statement's text.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Script(text) | Self::Plain(text) => text,
            Self::One(query, _) => &query.text,
        }
    }

    /// Makes a request of it, whose rows come as text.
    pub(crate) fn request<T>(&self, with: impl FnOnce(&onetrip_client::core::Request<'_>) -> T) -> T {
        let written = match self {
            Self::One(_, parameters) => parameters.written(),
            _ => Vec::new(),
        };
        let references = references(&written);
        let plain = onetrip_client::core::Request::new(self.text(), &references);
        with(&onetrip_client::core::Request { format: Format::Text, ..plain })
    }
}

/// Translates a statement and writes its parameters.
pub(crate) fn asked(
    queries: &Mutex<Queries>,
    py: Python<'_>,
    text: &str,
    given: Option<&Bound<'_, PyAny>>,
) -> PyResult<Asked> {
    let Some(given) = given else {
        let text = text.to_owned();
        return Ok(if may_be_several(&text) { Asked::Script(text) } else { Asked::Plain(text) });
    };
    let query = translated(queries, py, text)?;
    let parameters = Parameters::of(&query, given)?;
    Ok(Asked::One(query, parameters))
}

/// Where a connection leads, by libpq's keywords.
pub(crate) fn target(config: &Config, host: &Host) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            pairs.push((name.to_owned(), value));
        }
    };
    match &host.name {
        HostName::Tcp { name, address } => {
            add("host", Some(name.clone()));
            add("hostaddr", address.map(|address| address.to_string()));
        }
        HostName::Unix(directory) => add("host", Some(directory.to_string_lossy().into_owned())),
    }
    add("port", Some(host.port.to_string()));
    let conninfo = &config.conninfo;
    add("user", conninfo.user.clone());
    add("dbname", conninfo.dbname.clone());
    add("options", conninfo.options.clone());
    add("application_name", conninfo.application_name.clone());
    pairs
}

/// Another call has ended a COPY.
fn given_up(py: Python<'_>) -> PyErr {
    misuse(py, "usage", "the COPY has ended: another call came in between")
}

/// Where a session's output is kept, by its name.
pub(crate) fn output_source(name: &str) -> PyResult<OutputSource> {
    match name {
        "dbms_output" => Ok(OutputSource::DbmsOutput),
        "functions" => Ok(OutputSource::Functions),
        _ => {
            let problem = format!("source has to be 'dbms_output' or 'functions', not {name:?}");
            Err(PyValueError::new_err(problem))
        }
    }
}

/// The statement as the server wants it.
pub(crate) fn translated(queries: &Mutex<Queries>, py: Python<'_>, text: &str) -> PyResult<Arc<Query>> {
    let query = locked(queries).get(text);
    query.map_err(|problem| misuse(py, "usage", &problem))
}

thread_local! {
    /// What a signal's handler raised while this thread waited for the server.
    static INTERRUPT: Cell<Option<PyErr>> = const { Cell::new(None) };
}

/// Runs Python's handlers of the signals that came, KeyboardInterrupt's among them; whether one of them raised.
fn is_interrupted() -> bool {
    let raised = Python::attach(|py| py.check_signals().err());
    let is_raised = raised.is_some();
    INTERRUPT.set(raised);
    is_raised
}

impl Session {
    /// A session over a connection.
    pub(crate) fn of(py: Python<'_>, mut client: Held) -> Self {
        client.set_interrupt(is_interrupted);
        // The last user of a pool's connection may have had other wishes.
        client.set_begin("BEGIN");
        if client.core().trips() == 0 {
            opened();
        }
        Self {
            canceller: client.canceller(),
            client: Mutex::new(Some(client)),
            queries: Mutex::new(Queries::default()),
            loaders: PyDict::new(py).unbind(),
        }
    }

    /// Calls with the client and without the GIL.
    pub(crate) fn with<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&mut Client) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        let done = py.detach(|| match locked(&self.client).as_mut() {
            Some(client) => {
                let before = client.core().trips();
                let done = call(client);
                spent(client.core().trips() - before);
                done
            }
            None => Err(Error::Closed),
        });
        // What a signal's handler raised goes before the error of the statement that it cancelled.
        match INTERRUPT.take() {
            Some(raised) => Err(raised),
            None => done.map_err(|error| exception(py, &error)),
        }
    }

    /// Translates a statement and writes its parameters.
    pub(crate) fn asked(
        &self,
        py: Python<'_>,
        text: &str,
        given: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Asked> {
        asked(&self.queries, py, text, given)
    }

    /// Runs in one block what `plan` says, with BEGIN if asked for and no transaction is open.
    pub(crate) fn fetch_lobs(
        &self,
        py: Python<'_>,
        lobs: Vec<Py<Lob>>,
        begins: bool,
        plan: impl FnOnce(&[Py<Lob>], &Limits) -> Plan + Send,
    ) -> PyResult<()> {
        self.with(py, |client| {
            let plan = plan(&lobs, client.core().limits());
            if plan.is_empty() {
                return Ok(());
            }
            let (mut pipeline, _) = block::open(client, begins)?;
            let fetch = plan.push(lobs, |request| pipeline.push(request, None))?;
            let mut outcomes = pipeline.end()?;
            outcomes.check()?;
            fetch.came(|operation| outcomes.take(operation))
        })
    }

    fn answers(&self, py: Python<'_>, done: Vec<Done>) -> PyResult<Vec<Answer>> {
        done.into_iter().map(|done| self.answer(py, done)).collect()
    }

    fn answer(&self, py: Python<'_>, done: Done) -> PyResult<Answer> {
        Answer::new(done, self.loaders.bind(py), || self.settings(py))
    }

    /// What of the session's settings says how values are written.
    fn settings(&self, py: Python<'_>) -> PyResult<loading::Session> {
        self.with(py, |client| Ok(loading::Session::of(|name| client.setting(name).map(str::to_owned))))
    }
}

#[pymethods]
impl Session {
    /// Connects.
    #[staticmethod]
    fn connect(py: Python<'_>, text: &str, keywords: Vec<(String, String)>) -> PyResult<Self> {
        let config = config(py, text, keywords)?;
        let client = py.detach(|| Client::connect_with(config)).map_err(|error| exception(py, &error))?;
        Ok(Self::of(py, Held::Own(Box::new(client))))
    }

    /// Says what begins a transaction.
    fn set_begin(&self, py: Python<'_>, statement: String) -> PyResult<()> {
        self.with(py, |client| {
            client.set_begin(statement);
            Ok(())
        })
    }

    /// All settings that the server reports.
    fn all_settings(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        self.with(py, |client| Ok(client.core().settings()))
    }

    /// Where the connection leads: the keywords that say so, by libpq's names, without the password.
    fn target(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        self.with(py, |client| Ok(target(client.config(), client.host())))
    }

    /// Runs a statement, or several where there are no parameters; with `begins`, BEGIN travels along.
    #[pyo3(signature = (text, given, begins, /))]
    fn run(
        &self,
        py: Python<'_>,
        text: &str,
        given: Option<&Bound<'_, PyAny>>,
        begins: bool,
    ) -> PyResult<Vec<Answer>> {
        let asked = self.asked(py, text, given)?;
        let done: Vec<Done> = self.with(py, |client| match &asked {
            Asked::Script(text) => client.run_script(text, begins),
            asked => asked.request(|request| client.run(request, begins)).map(|done| vec![done]),
        })?;
        self.answers(py, done)
    }

    /// Runs a statement once for each row of parameters, in one of the ways that [`way`] knows; returns the rows that
    /// were changed, and the results if they are wanted, which only the pipeline has.
    fn run_many(
        &self,
        py: Python<'_>,
        text: &str,
        rows: &Bound<'_, PyAny>,
        begins: bool,
        keeps: bool,
        by: &str,
    ) -> PyResult<(i64, Vec<Answer>)> {
        let query = translated(&self.queries, py, text)?;
        // Rows that nobody can count go as they come.
        let has_choice = || rows.len().is_ok_and(|count| Bulk::has_choice(&query.text, count));
        let (count, done) = match way(by)? {
            Bulk::Auto if keeps || !has_choice() => block::run_many(self, py, &query, rows, begins, keeps)?,
            Bulk::Pipeline => block::run_many(self, py, &query, rows, begins, keeps)?,
            _ if keeps => return Err(misuse(py, "usage", "only by='pipeline' returns results")),
            way => {
                let rows = Rows::of(&query, rows, way)?;
                let done = self.with(py, |client| Ok(client.run_many(way, &query.text, &rows, begins)))?;
                let done = done.map_err(|failed| failure(py, &failed))?;
                (i64::try_from(done.rows).unwrap_or(i64::MAX), Vec::new())
            }
        };
        Ok((count, self.answers(py, done)?))
    }

    /// Opens a block.
    fn begin_block(&self, py: Python<'_>, goes_on: bool) -> PyResult<()> {
        self.with(py, |client| client.pipeline(block::mode(goes_on)).map(drop))
    }

    /// Adds a statement to the block; its operation's number. `begin` adds BEGIN before it.
    #[pyo3(signature = (text, given, goes_on, begin, /))]
    fn push(
        &self,
        py: Python<'_>,
        text: &str,
        given: Option<&Bound<'_, PyAny>>,
        goes_on: Option<bool>,
        begin: bool,
    ) -> PyResult<u64> {
        let asked = self.asked(py, text, given)?;
        self.with(py, |client| block::push(client, &asked, goes_on, begin))
    }

    /// Waits until an operation is answered.
    fn process(&self, py: Python<'_>, operation: u64) -> PyResult<()> {
        self.with(py, |client| block::process(client, operation))
    }

    /// Ends the block.
    fn end_block(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |client| client.open_pipeline()?.end().map(drop))
    }

    /// Whether the next operation of the block will run in a transaction.
    #[getter]
    fn block_in_transaction(&self, py: Python<'_>) -> PyResult<bool> {
        self.with(py, |client| Ok(client.core().block_in_transaction()))
    }

    /// Takes the result of an operation, or raises its error.
    fn take(&self, py: Python<'_>, operation: u64) -> PyResult<Answer> {
        let done = self.with(py, |client| block::take(client, operation))?;
        self.answer(py, done)
    }

    /// The first operation of the last block that did not run, if there is one, `but` for these.
    fn first_failed(&self, py: Python<'_>, but: Vec<u64>) -> PyResult<Option<u64>> {
        self.with(py, |client| Ok(client.core().first_failed(&but).map(|id| id.number())))
    }

    /// Fetches what is wanted of large values before anybody reads, all of it in one trip.
    fn prefetch(
        &self,
        py: Python<'_>,
        lobs: Vec<Py<Lob>>,
        prefetch: Option<&str>,
        begins: bool,
    ) -> PyResult<()> {
        let level = level(py, prefetch)?;
        self.fetch_lobs(py, lobs, begins, move |lobs, limits| Plan::first(lobs, limits, level))
    }

    /// The next bytes or characters of a large value, at most so many; fewer at the end only.
    fn read_lob<'py>(
        &self,
        py: Python<'py>,
        lob: Py<Lob>,
        most: u64,
        begins: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut taken = Vec::new();
        let mut wanted = most;
        let position = lob.get().position();
        loop {
            let (left, is_text) = lob.get().take_into(wanted, &mut taken);
            if left == 0 {
                return made(py, &taken, is_text);
            }
            wanted = left;
            let one = vec![lob.clone_ref(py)];
            let fetched =
                self.fetch_lobs(py, one, begins, move |lobs, limits| Plan::more(lobs, limits, left));
            if let Err(error) = fetched {
                lob.get().seek(position); // what was taken has not been read
                return Err(error);
            }
        }
    }

    /// Begins a COPY: with `gives`, of data that [`send_copy`](Self::send_copy) gives, else of data that comes.
    fn begin_copy(&self, py: Python<'_>, text: &str, gives: bool, begins: bool) -> PyResult<()> {
        self.with(py, |client| {
            if gives {
                client.run_copy_in(text, begins)?.pause();
            } else {
                client.run_copy_out(text, begins)?.pause();
            }
            Ok(())
        })
    }

    /// Sends what waits.
    fn send_copy(&self, py: Python<'_>, buffer: &CopyBuffer) -> PyResult<()> {
        let data = buffer.take();
        let sent = self.with(py, |client| {
            let Some(mut copy) = client.resume_copy_in() else { return Ok(None) };
            let sent = copy.send(&data);
            // An error is to be heard at the end too.
            copy.pause();
            sent.map(Some)
        })?;
        sent.ok_or_else(|| given_up(py))
    }

    /// Ends the data, or gives the COPY up for a reason; how many rows were copied.
    fn end_copy(&self, py: Python<'_>, buffer: &CopyBuffer, why: Option<&str>) -> PyResult<u64> {
        let data = buffer.take_last();
        let rows = self.with(py, |client| {
            let Some(mut copy) = client.resume_copy_in() else { return Ok(None) };
            if let Some(why) = why {
                return copy.give_up(why).map(Some);
            }
            // What fails here shows at the end, with the server's reason.
            let _ = copy.send(&data);
            copy.finish().map(Some)
        })?;
        rows.ok_or_else(|| given_up(py))
    }

    /// The next pieces of data, a row each in the text formats; none at the end, and then how many rows it was.
    fn receive_copy<'py>(&self, py: Python<'py>) -> PyResult<(Vec<Bound<'py, PyBytes>>, Option<u64>)> {
        let received = self.with(py, |client| {
            let Some(mut copy) = client.resume_copy_out() else { return Ok(None) };
            let (mut pieces, mut bytes): (Vec<Vec<u8>>, usize) = (Vec::new(), 0);
            // What has come is given out before more is waited for.
            let mut next = copy.next_piece()?;
            while let Some(piece) = next {
                pieces.push(piece.to_vec());
                bytes += piece.len();
                next = if bytes < COPY_BYTES { copy.piece_here()? } else { None };
            }
            let rows = if pieces.is_empty() { copy.rows() } else { None };
            copy.pause();
            Ok(Some((pieces, rows)))
        })?;
        let (pieces, rows) = received.ok_or_else(|| given_up(py))?;
        Ok((pieces.iter().map(|piece| PyBytes::new(py, piece)).collect(), rows))
    }

    /// Waits for the end of a COPY whose rest nobody wants; how many rows it was.
    fn drain_copy(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        self.with(py, |client| {
            let Some(mut copy) = client.resume_copy_out() else { return Ok(None) };
            while copy.next_piece()?.is_some() {}
            Ok(copy.rows())
        })
    }

    /// Where the session stands: libpq's numbers for idle, in a transaction, in a failed one, unknown.
    #[getter]
    fn status(&self, py: Python<'_>) -> i32 {
        let status = py.detach(|| {
            let client = locked(&self.client);
            client.as_ref().filter(|client| !client.is_closed()).map(|client| client.transaction_status())
        });
        match status {
            Some(TransactionStatus::Idle) => 0,
            Some(TransactionStatus::Active) => 2,
            Some(TransactionStatus::Failed) => 3,
            None => 4,
        }
    }

    /// The connection's own loaders, by type id.
    #[getter]
    fn loaders(&self, py: Python<'_>) -> Py<PyDict> {
        self.loaders.clone_ref(py)
    }

    /// Closes a cursor of the server's, along with the next statement.
    fn close_portal(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        self.with(py, |client| {
            client.close_portal(name);
            Ok(())
        })
    }

    /// Prepares all statements anew when they are next used.
    fn forget_statements(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |client| {
            client.forget_statements();
            Ok(())
        })
    }

    /// A setting that the server reports.
    fn setting(&self, py: Python<'_>, name: &str) -> PyResult<Option<String>> {
        self.with(py, |client| Ok(client.setting(name).map(str::to_owned)))
    }

    /// Process id of the backend.
    #[getter]
    fn backend(&self, py: Python<'_>) -> PyResult<Option<u32>> {
        self.with(py, |client| Ok(client.core().cancel_key().map(|key| key.process_id())))
    }

    /// Round trips since the session was open.
    #[getter]
    fn trips(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |client| Ok(client.core().trips()))
    }

    /// Whether the connection has ended.
    #[getter]
    fn closed(&self, py: Python<'_>) -> bool {
        py.detach(|| locked(&self.client).as_ref().is_none_or(|client| client.is_closed()))
    }

    /// Ends the session.
    fn close(&self, py: Python<'_>) {
        py.detach(|| {
            if let Some(client) = locked(&self.client).take() {
                client.close();
            }
        });
    }

    /// Interrupts what runs, from another thread.
    fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        let Some(canceller) = &self.canceller else { return Ok(()) };
        py.detach(|| canceller.cancel()).map_err(|error| exception(py, &error))
    }

    /// Longest wait of a call, in seconds.
    fn set_timeout(&self, py: Python<'_>, seconds: Option<f64>) -> PyResult<()> {
        let timeout = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        self.with(py, |client| {
            client.set_timeout(timeout);
            Ok(())
        })
    }

    /// The notices that nobody took: their fields.
    fn notices<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let notices = self.with(py, |client| {
            let mut notices = Vec::new();
            while let Some(notice) = client.take_notice() {
                notices.push(notice);
            }
            Ok(notices)
        })?;
        let made: PyResult<Vec<Bound<'py, PyDict>>> =
            notices.iter().map(|notice| fields(py, notice)).collect();
        PyList::new(py, made?)
    }

    /// From now on, output of the session comes along with the answers of calls; false where there is no such source.
    fn collect_output(&self, py: Python<'_>, source: &str) -> PyResult<bool> {
        let source = output_source(source)?;
        self.with(py, |client| client.collect_output(source))
    }

    /// What statements have printed since the last call.
    fn lines(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.with(py, Client::lines)
    }

    /// The next notification: channel, payload, process id. Waits for one, at most so many seconds.
    fn notification(&self, py: Python<'_>, seconds: f64) -> PyResult<Option<(String, String, u32)>> {
        let wait = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let heard = self.with(py, |client| client.notification(wait))?;
        Ok(heard.map(|heard| (heard.channel, heard.payload, heard.process_id)))
    }
}
