//! Which line of the program sent an exchange: what runtimes tell over a socket of their own.
//!
//! A runtime tells of each call that may have waited for the database: on which of its connections, and when it began and ended
//! on the gateway's clock. An exchange whose first byte came within one call is that call's. So nothing changes between
//! the client and the database. The lines are described in `onetrip_call_sites.py`; `call_sites.js`,
//! `call_sites.rb` and the agent in `jvm/` write the same.

mod jvm;
mod program;

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use onetrip_gateway::Gateway;
use onetrip_ledger::{Finding, Spot};
use onetrip_target::launch::Redirect;
use rustix::time::{ClockId, clock_gettime};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;

use crate::args::CallSitesWhen;
use crate::control::serve_each;
use program::{WORDS_MAX, places, put_first};

pub(crate) use jvm::load_agent;

/// The variable that holds the socket's path.
const VARIABLE: &str = "ONETRIP_CALLS";
/// Files that Python imports, by name.
const PYTHON: [(&str, &str); 2] = [
    ("sitecustomize.py", include_str!("sitecustomize.py")),
    ("onetrip_call_sites.py", include_str!("onetrip_call_sites.py")),
];
/// What Node requires first.
const NODE: (&str, &str) = ("call_sites.js", include_str!("call_sites.js"));
/// What Ruby requires first.
const RUBY: (&str, &str) = ("call_sites.rb", include_str!("call_sites.rb"));
/// Longest line, in bytes.
const LINE_BYTES_MAX: u64 = 4096;
/// Processes that tell at a time; further ones wait.
const PROCESSES_MAX: usize = 1024;
/// Calls that are kept, of all connections: what comes later has no line.
const CALLS_MAX: usize = 2_000_000;
/// Sites and connections that are kept.
const SITES_MAX: usize = 100_000;
/// Calls within one that are looked through for it.
const WITHIN_MAX: usize = 1000;
/// Looks at both clocks.
const LOOKS: usize = 16;

/// The socket, and what came over it.
pub(crate) struct CallSites {
    listener: UnixListener,
    calls: Arc<Mutex<Calls>>,
    processes: Arc<Semaphore>,
}

impl CallSites {
    /// Listens in `directory`, and lets runtimes tell that can: Python finds a module first in `PYTHONPATH`, Node requires what
    /// `NODE_OPTIONS` names, Ruby what `RUBYOPT` does. Needs a runtime.
    pub(crate) fn listen(
        directory: &Path,
        calls: Arc<Mutex<Calls>>,
        redirect: &mut Redirect,
    ) -> Result<Self> {
        if !is_plain(directory) {
            bail!("options cannot hold the path {}. Set TMPDIR to another directory", directory.display());
        }
        let path = directory.join("calls");
        let listener = UnixListener::bind(&path).context("cannot listen")?;
        let modules = directory.join("modules");
        std::fs::create_dir(&modules).context("no place for modules")?;
        for (name, text) in PYTHON.into_iter().chain([NODE, RUBY]) {
            std::fs::write(modules.join(name), text).context("no place for modules")?;
        }
        let named = |option: &str, name: &str| {
            let mut option = OsString::from(option);
            option.push(modules.join(name));
            option
        };
        put_first(redirect, "PYTHONPATH", modules.clone().into_os_string(), ":");
        put_first(redirect, "NODE_OPTIONS", named("--require ", NODE.0), " ");
        put_first(redirect, "RUBYOPT", named("-r", RUBY.0), " ");
        redirect.set.push((VARIABLE.to_owned(), path.into_os_string()));
        Ok(Self { listener, calls, processes: Arc::new(Semaphore::new(PROCESSES_MAX)) })
    }

    /// Hears runtimes, forever.
    pub(crate) async fn serve(&self) {
        let hear = |stream| {
            let calls = Arc::clone(&self.calls);
            async move { hear(stream, &calls).await }
        };
        serve_each(&self.listener, &self.processes, hear).await;
    }

    /// Takes what processes have told before they ended. One that outlives the program goes on telling, and is not waited for.
    pub(crate) async fn drain(&self) {
        // One that came last may not have been let in yet.
        tokio::time::sleep(Duration::from_millis(5)).await;
        let all = self.processes.acquire_many(PROCESSES_MAX as u32);
        let _ = tokio::time::timeout(Duration::from_millis(500), all).await;
    }
}

/// Whether a path stays one word, and whole, in PYTHONPATH, RUBYOPT and options of a JVM. A runtime whose options are torn does
/// not start.
fn is_plain(path: &Path) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-+@%~,".contains(byte);
    path.as_os_str().as_encoded_bytes().iter().all(is_plain)
}

/// Whether runtimes are asked to tell.
pub(crate) fn are_wanted(when: CallSitesWhen, command: &[OsString]) -> bool {
    match when {
        CallSitesWhen::Off => false,
        CallSitesWhen::On => true,
        CallSitesWhen::Auto => {
            jvm::java_in(command).is_some() || command.iter().take(WORDS_MAX).any(|word| is_runtime(word))
        }
    }
}

/// Whether a word of a command line is Python, Node or Ruby, or the name of a script that one of them runs.
fn is_runtime(word: &OsStr) -> bool {
    let name = Path::new(word).file_name().and_then(OsStr::to_str).unwrap_or_default();
    if ["python", "pypy", "ruby"].iter().any(|runtime| name.starts_with(runtime))
        || name == "node"
        || name == "nodejs"
    {
        return true;
    }
    let first = places(word).into_iter().find(|place| place.is_file());
    first.and_then(|script| first_line(&script).ok()).is_some_and(|line| {
        line.starts_with("#!") && ["python", "node", "ruby"].iter().any(|runtime| line.contains(runtime))
    })
}

/// The first bytes of a file up to the end of its first line.
fn first_line(file: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    io::Read::take(std::fs::File::open(file)?, 256).read_to_end(&mut bytes)?;
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    Ok(String::from_utf8_lossy(line).into_owned())
}

async fn hear(stream: UnixStream, calls: &Mutex<Calls>) -> io::Result<()> {
    let mut lines = BufReader::new(stream.take(LINE_BYTES_MAX));
    let mut process = Process::default();
    let mut line = Vec::new();
    loop {
        lines.get_mut().set_limit(LINE_BYTES_MAX);
        line.clear();
        if lines.read_until(b'\n', &mut line).await? == 0 || line.pop() != Some(b'\n') {
            return Ok(());
        }
        let mut calls = calls.lock().unwrap_or_else(PoisonError::into_inner);
        if calls.take(&mut process, &line).is_none() {
            return Ok(()); // not one of ours
        }
    }
}

/// Numbers of one process, and what they stand for.
#[derive(Debug, Default)]
struct Process {
    sites: HashMap<u64, u32>,
    connections: HashMap<u64, u32>,
}

/// All that runtimes have told.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    /// When the gateway's clock began.
    began_ns: u64,
    sites: Vec<Vec<String>>,
    ids: HashMap<Vec<String>, u32>,
    connections: Vec<Connection>,
    calls: usize,
}

#[derive(Debug, Default)]
struct Connection {
    /// When it was opened, from and to.
    opened: (u64, u64),
    /// In the order of their ends.
    calls: Vec<Call>,
}

#[derive(Debug, Clone, Copy)]
struct Call {
    begun: u64,
    ended: u64,
    site: u32,
}

impl Calls {
    /// Nothing yet, and what the gateway's clock has to do with that of runtimes.
    pub(crate) fn of(gateway: &Gateway) -> Self {
        // A look at both clocks that was interrupted comes out too large.
        let looks = (0..LOOKS).map(|_| {
            let moment = gateway.now().0;
            let now = clock_gettime(ClockId::Monotonic);
            (now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64).saturating_sub(moment)
        });
        Self { began_ns: looks.min().unwrap_or_default(), ..Self::default() }
    }

    /// Names the lines of the program that sent the exchanges of `findings`.
    pub(crate) fn locate(&self, findings: &mut [Finding]) {
        if self.calls > 0 {
            findings.iter_mut().for_each(|finding| finding.locate(|spot| self.frames_of(spot)));
        }
    }

    /// Takes one line; `None` if it cannot be read.
    fn take(&mut self, process: &mut Process, line: &[u8]) -> Option<()> {
        let line = std::str::from_utf8(line).ok()?;
        let (kind, rest) = line.split_once(' ')?;
        if kind == "site" {
            let (number, frames) = rest.split_once(' ')?;
            let frames: Vec<String> = serde_json::from_str(frames).ok()?;
            let next = self.sites.len() as u32;
            if self.sites.len() >= SITES_MAX && !self.ids.contains_key(&frames) {
                return Some(());
            }
            let id = *self.ids.entry(frames.clone()).or_insert(next);
            if id == next {
                self.sites.push(frames);
            }
            process.sites.insert(number.parse().ok()?, id);
            return Some(());
        }
        let mut words = rest.split(' ');
        let mut number = || words.next()?.parse::<u64>().ok();
        let (connection, begun, ended) = (number()?, number()?, number()?);
        let site = words.next()?;
        if kind == "open" && self.connections.len() < SITES_MAX {
            process.connections.insert(connection, self.connections.len() as u32);
            self.connections.push(Connection { opened: (begun, ended), calls: Vec::new() });
        }
        let connection = process.connections.get(&connection);
        let site = site.parse().ok().and_then(|site: u64| process.sites.get(&site));
        if let (Some(connection), Some(site), true) = (connection, site, self.calls < CALLS_MAX) {
            self.connections[*connection as usize].calls.push(Call { begun, ended, site: *site });
            self.calls += 1;
        }
        Some(())
    }

    /// The frames of the call that has sent an exchange, if there is no doubt which that is.
    fn frames_of(&self, spot: &Spot) -> Option<&[String]> {
        let opened_at = self.began_ns + spot.opened_at.0;
        let sent_at = self.began_ns + spot.sent_at.0;
        let is_within = |(begun, ended): (u64, u64), at: u64| begun <= at && at <= ended;
        let mut sites = self
            .connections
            .iter()
            .filter(|connection| is_within(connection.opened, opened_at))
            .filter_map(|connection| connection.site_at(sent_at));
        let site = sites.next()?;
        sites.all(|other| other == site).then(|| self.sites[site as usize].as_slice())
    }
}

impl Connection {
    /// The site of the innermost call that was under way at `at`: a block that a call runs may make calls, which end first.
    fn site_at(&self, at: u64) -> Option<u32> {
        let place = self.calls.partition_point(|call| call.ended < at);
        let call = self.calls[place..].iter().take(WITHIN_MAX).find(|call| call.begun <= at)?;
        Some(call.site)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_whose_block_makes_calls_has_what_it_sent_itself() {
        let calls = [(20, 30, 1), (40, 50, 2), (10, 60, 0), (70, 80, 3)].map(|(begun, ended, site)| Call {
            begun,
            ended,
            site,
        });
        let connection = Connection { opened: (0, 5), calls: calls.to_vec() };
        let sites = [8, 12, 25, 35, 45, 55, 65, 75].map(|at| connection.site_at(at));
        assert_eq!(sites, [None, Some(0), Some(1), Some(0), Some(2), Some(0), None, Some(3)]);
    }

    #[test]
    fn a_path_that_an_option_would_tear_is_not_plain() {
        assert!(is_plain(Path::new("/tmp/onetrip-aB3_x.y")));
        for path in ["/tmp/of two words", "/tmp/a=b", "/tmp/a:b", "/tmp/it's", "/tmp/a\"b", "/tmp/a\\b"] {
            assert!(!is_plain(Path::new(path)), "{path}");
        }
    }
}
