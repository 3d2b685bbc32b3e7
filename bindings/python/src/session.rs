//! A connection that waits, with the GIL released.

use std::os::fd::{AsFd, AsRawFd};
use std::sync::Mutex;
use std::time::Duration;

use onetrip_client::blocking::{Canceller, Client, Ender};
use onetrip_client::core::{Limits, OutputSource, Settings};
use onetrip_client::{Bulk, Error};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::adapters::Functions;
use crate::answer::Answer;
use crate::asked::{Asked, How, What, asked, translated};
use crate::block;
use crate::conninfo::{config, target};
use crate::copying::CopyBuffer;
use crate::encoding::{Checked, codec};
use crate::errors::{exception, fields, misuse};
use crate::held::Held;
use crate::loading;
use crate::lob::{Lob, Plan, level, made};
use crate::many::{Rows, failure, way};
use crate::query::Queries;
use crate::spent::opened;
use crate::turns::{Turns, is_interrupted};

/// Data of a COPY that is taken out of the client at once, in bytes.
const COPY_BYTES: usize = 64 * 1024;

/// The setting that says how text is encoded.
pub(crate) const ENCODING: &str = "client_encoding";

/// One connection with a server, as the classes of `onetrip` use it. Threads may share it: each call has it for itself.
/// What needs no conversation with the server waits for no call.
#[pyclass(frozen, module = "onetrip._native")]
pub(crate) struct Session {
    turns: Turns,
    canceller: Option<Canceller>,
    ender: Ender,
    backend: Option<u32>,
    fileno: i32,
    queries: Mutex<Queries>,
    loaders: Loaders,
}

/// The functions of one connection that make values, by type id: of text, and of the binary form.
pub(crate) struct Loaders {
    pub(crate) texts: Py<PyDict>,
    pub(crate) binaries: Py<PyDict>,
}

impl Loaders {
    pub(crate) fn new(py: Python<'_>) -> Self {
        Self { texts: PyDict::new(py).unbind(), binaries: PyDict::new(py).unbind() }
    }

    /// Calls with them.
    pub(crate) fn with<T>(&self, py: Python<'_>, call: impl FnOnce(&Functions<'_, '_>) -> T) -> T {
        call(&Functions { texts: self.texts.bind(py), binaries: self.binaries.bind(py) })
    }
}

/// Another call has ended a COPY.
fn given_up(py: Python<'_>) -> PyErr {
    misuse(py, "usage", "the COPY has ended: another call came in between")
}

/// Settings as Python is given them.
pub(crate) fn pairs(settings: &Settings) -> Vec<(String, String)> {
    settings.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
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

impl Session {
    /// A session over a connection.
    pub(crate) fn of(py: Python<'_>, mut client: Held) -> Self {
        client.set_interrupt(is_interrupted);
        // The last user of a pool's connection may have had other wishes.
        client.set_begin("BEGIN");
        client.set_prepare_after(0);
        client.set_codec(codec());
        if client.core().trips() == 0 {
            opened();
        }
        Self {
            canceller: client.canceller(),
            ender: client.ender(),
            backend: client.core().cancel_key().map(|key| key.process_id()),
            fileno: client.as_fd().as_raw_fd(),
            turns: Turns::of(client),
            queries: Mutex::new(Queries::default()),
            loaders: Loaders::new(py),
        }
    }

    /// Calls with the client and without the GIL, once no other thread has it for several calls.
    pub(crate) fn with<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&mut Client) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        self.turns.called(py, true, call)
    }

    /// As [`with`](Self::with), for who has the client for several calls, and for what sends nothing.
    fn within<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&mut Client) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        self.turns.called(py, false, call)
    }

    /// Translates a statement and writes its parameters.
    pub(crate) fn asked(
        &self,
        py: Python<'_>,
        text: &str,
        given: Option<&Bound<'_, PyAny>>,
        how: u8,
    ) -> PyResult<Asked> {
        asked(&self.queries, py, text, given, How(how))
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

    fn answers(&self, py: Python<'_>, done: Vec<Checked>) -> PyResult<Vec<Answer>> {
        done.into_iter().map(|done| self.answer(py, done)).collect()
    }

    fn answer(&self, py: Python<'_>, done: Checked) -> PyResult<Answer> {
        self.loaders.with(py, |own| Answer::new(done, own, || self.settings(py)))
    }

    /// What of the session's settings says how values are written.
    fn settings(&self, py: Python<'_>) -> PyResult<loading::Session> {
        let known = self.turns.known(py)?;
        Ok(loading::Session::of(|name| known.get(name).cloned()))
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
        self.within(py, |client| {
            client.set_begin(statement);
            Ok(())
        })
    }

    /// Says how often a statement runs before it stays prepared; never for `None`.
    fn set_prepare_after(&self, py: Python<'_>, runs: Option<u32>) -> PyResult<()> {
        self.within(py, |client| {
            client.set_prepare_after(runs.unwrap_or(u32::MAX));
            Ok(())
        })
    }

    /// All settings that the server reports; while a call is under way, as they were before it.
    fn all_settings(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        let known = self.turns.known(py)?;
        Ok(pairs(&known))
    }

    /// The number of the socket, for programs that wait for notifications by means of their own.
    fn fileno(&self) -> i32 {
        self.fileno
    }

    /// Where the connection leads: the keywords that say so, by libpq's names.
    fn target(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        self.within(py, |client| Ok(target(client.config(), client.host(), client.address())))
    }

    /// Runs a statement, or several where there are no parameters; with `begins`, BEGIN travels along.
    /// `how` is the sum of 1 for rows in binary, 2 for a statement with `$1`, `$2`, …, 4 for one that does not stay
    /// prepared and 8 for one that does.
    #[pyo3(signature = (text, given, begins, how = 0, /))]
    fn run(
        &self,
        py: Python<'_>,
        text: &str,
        given: Option<&Bound<'_, PyAny>>,
        begins: bool,
        how: u8,
    ) -> PyResult<Vec<Answer>> {
        let mut asked = self.asked(py, text, given, how)?;
        let done: Vec<Checked> = self.with(py, |client| {
            asked.encode(client.setting(ENCODING))?;
            let done = match &asked.what {
                What::Script(text) => client.run_script(text, begins)?,
                _ => vec![asked.request(|request| client.run(request, begins))?],
            };
            done.into_iter().map(|done| Checked::of(done, client.setting(ENCODING))).collect()
        })?;
        self.answers(py, done)
    }

    /// From now on, other threads wait until [`release`](Self::release) is called; false where that was so already.
    fn hold(&self, py: Python<'_>) -> PyResult<bool> {
        self.turns.hold(py)
    }

    /// Other threads need not wait any more.
    fn release(&self, py: Python<'_>) {
        self.turns.release(py);
    }

    /// Runs a statement whose rows [`next_rows`](Self::next_rows) takes as they arrive, until
    /// [`release`](Self::release) is called.
    #[pyo3(signature = (text, given, begins, how = 0, /))]
    fn begin_rows(
        &self,
        py: Python<'_>,
        text: &str,
        given: Option<&Bound<'_, PyAny>>,
        begins: bool,
        how: u8,
    ) -> PyResult<()> {
        let mut asked = self.asked(py, text, given, how)?;
        self.hold(py)?;
        let begun = self.within(py, |client| {
            asked.encode(client.setting(ENCODING))?;
            asked.request(|request| client.begin_rows(request, begins))
        });
        begun.inspect_err(|_| self.release(py))
    }

    /// The rows that have come of it, and whether they are the last.
    fn next_rows(&self, py: Python<'_>) -> PyResult<(Answer, bool)> {
        let (done, is_over) = self.within(py, |client| {
            let (done, is_over) = client.next_rows()?;
            Ok((Checked::of(done, client.setting(ENCODING))?, is_over))
        })?;
        Ok((self.answer(py, done)?, is_over))
    }

    /// Throws away what is left of it.
    fn leave_rows(&self, py: Python<'_>) -> PyResult<()> {
        self.within(py, Client::leave_rows)
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

    /// Runs a statement once for each row of parameters, in one of the ways that [`way`] knows; returns the rows that
    /// were changed, the results if they are wanted, which only the pipeline has, and the last statement's tag.
    #[pyo3(signature = (text, rows, begins, keeps, by, how = 0))]
    #[expect(clippy::too_many_arguments, reason = "they are the call's own")]
    fn run_many(
        &self,
        py: Python<'_>,
        text: &str,
        rows: &Bound<'_, PyAny>,
        begins: bool,
        keeps: bool,
        by: &str,
        how: u8,
    ) -> PyResult<(i64, Vec<Answer>, Option<String>)> {
        let query = translated(&self.queries, py, text, How(how))?;
        let format = How(how).format();
        // Rows that nobody can count go as they come.
        let has_choice = || rows.len().is_ok_and(|count| Bulk::has_choice(&query.text, count));
        let (count, done, tag) = match way(by)? {
            Bulk::Auto if keeps || !has_choice() => self
                .turns
                .alone(py, || block::run_many(self, py, &query, rows, begins, keeps.then_some(format)))?,
            Bulk::Pipeline => self
                .turns
                .alone(py, || block::run_many(self, py, &query, rows, begins, keeps.then_some(format)))?,
            _ if keeps => return Err(misuse(py, "usage", "only by='pipeline' returns results")),
            way => {
                let mut rows = Rows::of(&query, rows, way)?;
                let done = self.with(py, |client| {
                    rows.encode(client.setting(ENCODING))?;
                    Ok(client.run_many(way, &query.text, &rows, begins))
                })?;
                let done = done.map_err(|failed| failure(py, &failed))?;
                let tag = done.tag.map(|tag| tag.as_str().to_owned());
                (i64::try_from(done.rows).unwrap_or(i64::MAX), Vec::new(), tag)
            }
        };
        Ok((count, self.answers(py, done)?, tag))
    }

    /// Opens a block.
    fn begin_block(&self, py: Python<'_>, goes_on: bool) -> PyResult<()> {
        self.with(py, |client| client.pipeline(block::mode(goes_on)).map(drop))
    }

    /// Adds a statement to the block; its operation's number. `begin` adds BEGIN before it.
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
        let mut asked = self.asked(py, text, given, how)?;
        self.with(py, |client| {
            asked.encode(client.setting(ENCODING))?;
            block::push(client, &asked, goes_on, begin)
        })
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
        self.within(py, |client| Ok(client.core().block_in_transaction()))
    }

    /// Takes the result of an operation, or raises its error.
    fn take(&self, py: Python<'_>, operation: u64) -> PyResult<Answer> {
        let done = self.within(py, |client| {
            let done = block::take(client, operation)?;
            Checked::of(done, client.setting(ENCODING))
        })?;
        self.answer(py, done)
    }

    /// Takes the results of operations, each of them or its error.
    fn take_all(&self, py: Python<'_>, operations: Vec<u64>) -> PyResult<Vec<Py<PyAny>>> {
        block::each(py, operations, |operation| self.take(py, operation))
    }

    /// The first operation of the last block that did not run, if there is one, `but` for these.
    fn first_failed(&self, py: Python<'_>, but: Vec<u64>) -> PyResult<Option<u64>> {
        self.within(py, |client| Ok(client.core().first_failed(&but).map(|id| id.number())))
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
        self.within(py, |client| {
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
        let sent = self.within(py, |client| {
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
        let rows = self.within(py, |client| {
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
        let received = self.within(py, |client| {
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
        self.within(py, |client| {
            let Some(mut copy) = client.resume_copy_out() else { return Ok(None) };
            while copy.next_piece()?.is_some() {}
            Ok(copy.rows())
        })
    }

    /// Where the session stands: libpq's numbers for idle, in a transaction, in a failed one, unknown.
    #[getter]
    fn status(&self, py: Python<'_>) -> i32 {
        self.turns.status(py)
    }

    /// As [`status`](Self::status), and libpq's number for active while a call is under way.
    #[getter]
    fn status_now(&self) -> i32 {
        self.turns.status_now()
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
        self.within(py, |client| {
            client.close_portal(name);
            Ok(())
        })
    }

    /// Prepares all statements anew when they are next used.
    fn forget_statements(&self, py: Python<'_>) -> PyResult<()> {
        self.within(py, |client| {
            client.forget_statements();
            Ok(())
        })
    }

    /// A setting that the server reports; while a call is under way, as it was before it.
    fn setting(&self, py: Python<'_>, name: &str) -> PyResult<Option<String>> {
        Ok(self.turns.known(py)?.get(name).cloned())
    }

    /// Process id of the backend.
    #[getter]
    fn backend(&self) -> Option<u32> {
        self.backend
    }

    /// Round trips since the session was open.
    #[getter]
    fn trips(&self) -> u64 {
        self.turns.trips()
    }

    /// Whether the connection has ended; it has not while a call is under way.
    #[getter]
    fn closed(&self) -> bool {
        self.turns.is_closed()
    }

    /// Ends the session; a call that waits for the server fails.
    fn close(&self, py: Python<'_>) {
        self.turns.close(py, &self.ender);
    }

    /// Interrupts what runs, from another thread: false where the server has not taken the request within so many seconds.
    #[pyo3(signature = (seconds=None))]
    fn cancel(&self, py: Python<'_>, seconds: Option<f64>) -> PyResult<bool> {
        let Some(canceller) = &self.canceller else { return Ok(true) };
        let limit = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let taken = py.detach(|| match limit {
            Some(limit) => canceller.cancel_within(limit),
            None => canceller.cancel().map(|()| true),
        });
        taken.map_err(|error| exception(py, &error))
    }

    /// Longest wait of a call, in seconds.
    fn set_timeout(&self, py: Python<'_>, seconds: Option<f64>) -> PyResult<()> {
        let timeout = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        self.within(py, |client| {
            client.set_timeout(timeout);
            Ok(())
        })
    }

    /// The notices that nobody took: their fields.
    fn notices<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let notices = self.within(py, |client| {
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

    /// The next notification that has come: channel, payload, process id.
    fn heard(&self, py: Python<'_>) -> PyResult<Option<(String, String, u32)>> {
        let heard = self.within(py, |client| Ok(client.take_notification()))?;
        Ok(heard.map(|heard| (heard.channel, heard.payload, heard.process_id)))
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
