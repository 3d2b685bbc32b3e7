//! What a test runner asks of its gateway, by a Unix socket whose path is in `ONETRIP_CONTROL`.
//!
//! A line is one command:
//!
//! - `test LABEL` or `scope LABEL`: from now on, what names no scope itself is booked on LABEL. Without a label, it
//!   is booked on nothing.
//! - `counts`: only asks.
//!
//! Each is answered by one JSON object with what was counted since the run began. In the report, scopes that were
//! named by `test` are tests.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use onetrip_gateway::Common;
use onetrip_ledger::judge::Reason;
use serde_json::json;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// The variable that holds the socket's path.
pub(crate) const VARIABLE: &str = "ONETRIP_CONTROL";
/// Longest line, in bytes.
const LINE_BYTES_MAX: u64 = 1024;
/// How long a line that has begun may take.
const LINE_TIME_MAX: Duration = Duration::from_secs(5);
/// Clients at a time; further ones wait.
const CLIENTS_MAX: usize = 256;

/// A socket in a directory that only this user can enter.
pub(crate) struct Control {
    directory: TempDir,
    listener: UnixListener,
    answering: Arc<Answering>,
}

/// What answers clients, side by side.
struct Answering {
    common: Arc<Common>,
    has_tests: AtomicBool,
    runners: Mutex<Runners>,
    clients: Arc<Semaphore>,
}

/// Who names tests.
#[derive(Debug, Default)]
struct Runners {
    /// The process whose test is under way.
    busy: Option<i32>,
    are_mixed: bool,
}

impl Runners {
    /// A process names its test, or says that it has ended.
    fn hear(&mut self, process: Option<i32>, is_begun: bool) {
        let Some(process) = process else { return };
        // One that has died in its test does not say that it has ended.
        let other = self.busy.filter(|busy| *busy != process && is_alive(*busy));
        self.are_mixed |= is_begun && other.is_some();
        match (is_begun, other) {
            (true, _) => self.busy = Some(process),
            (false, None) => self.busy = None,
            (false, Some(_)) => {}
        }
    }
}

fn is_alive(process: i32) -> bool {
    // Where the system does not tell, it is.
    !Path::new("/proc/self").exists() || Path::new(&format!("/proc/{process}")).exists()
}

impl Control {
    /// Listens. Needs a runtime.
    pub(crate) fn listen(common: Arc<Common>) -> Result<Self> {
        let directory = tempfile::Builder::new()
            .prefix("onetrip-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir()
            .context("no directory for a socket")?;
        let listener =
            UnixListener::bind(directory.path().join("control")).context("cannot listen for tests")?;
        let (has_tests, clients) = (AtomicBool::new(false), Arc::new(Semaphore::new(CLIENTS_MAX)));
        let answering = Answering { common, has_tests, runners: Mutex::default(), clients };
        Ok(Self { directory, listener, answering: Arc::new(answering) })
    }

    /// Where it listens.
    pub(crate) fn path(&self) -> OsString {
        self.directory.path().join("control").into_os_string()
    }

    /// A directory for what goes along with the socket.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Deletes the directory. If it `has_modules`, it stays where a process goes on that was told of it: that may start
    /// others, which do not start without them.
    pub(crate) fn close(self, has_modules: bool) {
        if has_modules && is_told_of(self.directory.path()) {
            let _ = self.directory.keep();
        }
    }

    /// Whether a runner has named a test.
    pub(crate) fn has_tests(&self) -> bool {
        self.answering.has_tests.load(Ordering::Relaxed)
    }

    /// Why trips may be booked on another test than the one that spent them: one runner named a test while that of
    /// another was under way.
    pub(crate) fn mixed_tests(&self) -> Option<Reason> {
        let are_mixed = self.answering.runners.lock().unwrap_or_else(PoisonError::into_inner).are_mixed;
        are_mixed.then(|| {
            Reason::always(
                "two test runners named tests at the same time, so trips are booked on tests of the other",
            )
        })
    }

    /// Serves clients, forever.
    pub(crate) async fn serve(&self) {
        let answer = |stream| {
            let answering = Arc::clone(&self.answering);
            async move { answering.answer(stream).await }
        };
        serve_each(&self.listener, &self.answering.clients, answer).await;
    }
}

/// Whether a process of this user has variables that name the directory, or may have: where the kernel shows none, any may.
fn is_told_of(directory: &Path) -> bool {
    let Ok(processes) = fs::read_dir("/proc") else { return true };
    let name = directory.as_os_str().as_encoded_bytes();
    let mut all_variables =
        processes.flatten().filter_map(|process| fs::read(process.path().join("environ")).ok());
    all_variables.any(|variables| variables.windows(name.len()).any(|part| part == name))
}

/// Serves each client by itself, as many at a time as there are places, forever. One that goes in the middle of a line is its own
/// affair.
pub(crate) async fn serve_each<S>(
    listener: &UnixListener,
    places: &Arc<Semaphore>,
    serve: impl Fn(UnixStream) -> S,
) where
    S: Future<Output = io::Result<()>> + Send + 'static,
{
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // Behind the client, not before it: who waits until all places are free would wait forever.
                let Ok(place) = Arc::clone(places).acquire_owned().await else { return };
                let served = serve(stream);
                tokio::spawn(async move {
                    let _ = served.await;
                    drop(place);
                });
            }
            // Out of descriptors, for one.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

impl Answering {
    async fn answer(&self, mut stream: UnixStream) -> io::Result<()> {
        let process = stream.peer_cred().ok().and_then(|peer| peer.pid());
        let (read, mut write) = stream.split();
        let mut lines = BufReader::new(read.take(LINE_BYTES_MAX));
        loop {
            if lines.fill_buf().await?.is_empty() {
                return Ok(());
            }
            let mut line = Vec::new();
            let read = timeout(LINE_TIME_MAX, lines.read_until(b'\n', &mut line)).await??;
            if read == 0 || line.pop() != Some(b'\n') {
                return Ok(());
            }
            lines.get_mut().set_limit(LINE_BYTES_MAX);
            timeout(LINE_TIME_MAX, write.write_all(self.reply(&line, process).as_bytes())).await??;
        }
    }

    fn reply(&self, line: &[u8], process: Option<i32>) -> String {
        let tally = &self.common.tally;
        let label = |word: &[u8]| {
            let rest = line.strip_prefix(word)?;
            rest.first().is_none_or(u8::is_ascii_whitespace).then(|| rest.trim_ascii())
        };
        match (label(b"test"), label(b"scope")) {
            (Some(test), _) => {
                self.has_tests.store(true, Ordering::Relaxed);
                let mut runners = self.runners.lock().unwrap_or_else(PoisonError::into_inner);
                runners.hear(process, !test.is_empty());
                tally.set_scope(test);
            }
            (None, Some(scope)) => tally.set_scope(scope),
            (None, None) if line == b"counts" => {}
            (None, None) => {
                return format!("{}\n", json!({ "error": "write `test LABEL`, `scope LABEL` or `counts`" }));
            }
        }
        let counts = tally.counts();
        let counts = json!({
            "trips": counts.work_trips,
            "connect_trips": counts.connect_trips,
            "connections": counts.connections,
            "statements": counts.statements,
        });
        format!("{counts}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_a_whole_word() {
        let clients = Arc::new(Semaphore::new(1));
        let (has_tests, runners) = (AtomicBool::new(false), Mutex::default());
        let answering = Answering { common: Arc::default(), has_tests, runners, clients };
        for line in ["testing x", "scopes", "counts x", "count", ""] {
            assert!(answering.reply(line.as_bytes(), None).contains("error"), "{line:?}");
        }
        assert!(!answering.has_tests.load(Ordering::Relaxed));
        for line in ["scope", "scope GET /", "counts", "test", "test\tone", "test one two"] {
            assert!(answering.reply(line.as_bytes(), None).contains("connect_trips"), "{line:?}");
        }
        assert!(answering.has_tests.load(Ordering::Relaxed));
    }

    #[test]
    fn runners_are_mixed_if_one_names_a_test_within_that_of_another_that_lives() {
        let me = i32::try_from(std::process::id()).unwrap();
        let other = i32::try_from(std::os::unix::process::parent_id()).unwrap();
        let heard = |lines: &[(i32, bool)]| {
            let mut runners = Runners::default();
            lines.iter().for_each(|(process, is_begun)| runners.hear(Some(*process), *is_begun));
            runners.are_mixed
        };
        assert!(heard(&[(me, true), (other, true)]));
        assert!(heard(&[(me, true), (other, false), (other, true)]));
        assert!(!heard(&[(me, true), (me, false), (other, true), (other, false), (me, true)]));
        assert!(!heard(&[(me, true), (me, true)]), "a runner need not say that a test has ended");
        assert!(!heard(&[(i32::MAX, true), (me, true)]), "it has died");
    }
}
