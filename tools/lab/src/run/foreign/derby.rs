//! Apache Derby's network server, as a Java program that also tells what its threads have allocated.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::Mutex;

use serde::Deserialize;
use tempfile::TempDir;

use crate::LabError;
use crate::cell::Allocated;
use crate::database::process::{command, free_port};

/// Rounds until Java's compiler has done what it wants to do.
pub(super) const WARM_UP_ROUNDS: usize = 5;
const LIBRARIES: &str = "clients/java/target/lib";
const CLASSES: &str = "clients/java/target/lab";

/// A running server; it ends when its input does.
#[derive(Debug)]
pub(in crate::run) struct Server {
    process: Child,
    address: SocketAddr,
    version: String,
    talk: Mutex<Talk>,
    _directory: TempDir,
}

#[derive(Debug)]
struct Talk {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

/// A line that the program writes, first and for each that it reads.
#[derive(Debug, Deserialize)]
struct State {
    version: String,
    /// Bytes that its threads have allocated.
    allocated: u64,
}

impl Server {
    /// Starts it, or says why it is not there.
    pub(super) fn start(clients: Option<&Path>) -> Result<Result<Self, String>, LabError> {
        let missing = |what: &str| Ok(Err(format!("derby needs {what}")));
        let Some(clients) = clients else { return missing("the programs of --clients DIRECTORY") };
        if !clients.join(CLASSES).exists() {
            return missing("clients/java, which `scripts/setup` builds");
        }
        let directory =
            tempfile::Builder::new().prefix("onetrip-lab-").tempdir().map_err(|error| failed(&error))?;
        let clients = clients.canonicalize().map_err(LabError::file(clients))?;
        let port = free_port()?;
        let mut java = command("KILL", None, Path::new("java"), directory.path());
        java.arg(format!("-Dderby.system.home={}", directory.path().display()));
        let [libraries, classes] =
            [LIBRARIES, CLASSES].map(|folder| clients.join(folder).display().to_string());
        java.arg("-cp").arg(format!("{libraries}/*:{classes}")).arg("DerbyServer").arg(port.to_string());
        let log = std::fs::File::create(directory.path().join("log")).map_err(|error| failed(&error))?;
        java.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        let mut process = java.spawn().map_err(|error| failed(&error))?;
        let (Some(input), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(failed(&"no pipes"));
        };
        let talk = Mutex::new(Talk { input, output: BufReader::new(output) });
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut server = Self { process, address, version: String::new(), talk, _directory: directory };
        server.version = server.state()?.version;
        Ok(Ok(server))
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn version(&self) -> &str {
        &self.version
    }

    pub(super) fn process(&self) -> u32 {
        self.process.id()
    }

    /// What its threads have allocated so far.
    pub(super) fn allocated(&self) -> Result<Allocated, LabError> {
        Ok(Allocated { count: None, bytes: self.state()?.allocated })
    }

    fn state(&self) -> Result<State, LabError> {
        let mut talk = self.talk.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut line = String::new();
        talk.input.write_all(b"\n").map_err(|error| failed(&error))?;
        talk.output.read_line(&mut line).map_err(|error| failed(&error))?;
        serde_json::from_str(&line).map_err(|error| failed(&format!("{line:?}: {error}")))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Its database is in memory: there is nothing to be saved. Both fail when it has ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn failed(reason: &dyn std::fmt::Display) -> LabError {
    LabError::Database(format!("derby: {reason}"))
}
