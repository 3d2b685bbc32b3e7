//! The installed PostgreSQL, started for a run in a directory of its own and gone after it.
//!
//! `initdb` refuses root, so as root the server runs as `postgres` or `nobody`.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::process::{command, free_port, own_directory};
use crate::LabError;

/// Superuser of the clusters made here.
pub(super) const USER: &str = "onetrip";
/// Where Debian and others put the programs of each version; newest first.
const FOLDERS: [&str; 2] = ["/usr/lib/postgresql", "/usr/local/pgsql"];
/// Longest wait for the server to accept sessions.
const START_MAX: Duration = Duration::from_secs(60);
/// Longest wait for it to end.
const STOP_MAX: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);
/// Not durable on purpose: round trips and CPU are what is measured, not the disk.
const SETTINGS: [&str; 9] = [
    "fsync=off",
    "synchronous_commit=off",
    "full_page_writes=off",
    "autovacuum=off",
    "shared_buffers=256MB",
    "max_wal_size=8GB",
    "max_connections=200",
    "timezone=UTC",
    "listen_addresses=127.0.0.1",
];

/// A running server.
#[derive(Debug)]
pub(super) struct Installed {
    process: Child,
    port: u16,
    account: Option<String>,
    programs: PathBuf,
    /// Last, so that the directory goes after the server.
    _directory: TempDir,
}

impl Installed {
    /// Starts the newest PostgreSQL that is installed; `None` if there is none.
    pub(super) fn start() -> Result<Option<Self>, LabError> {
        let Some(programs) = newest_programs() else { return Ok(None) };
        let (directory, account) = own_directory()?;
        let data = directory.path().join("data");
        initialize(&programs, account.as_deref(), directory.path(), &data)?;
        let port = free_port()?;
        let process = spawn(&programs, account.as_deref(), directory.path(), &data, port)?;
        let mut server = Self { process, port, account, programs, _directory: directory };
        server.wait_until_ready(&data)?;
        Ok(Some(server))
    }

    /// The server's process, whose children are its sessions.
    pub(super) fn process(&self) -> u32 {
        self.process.id()
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn description(&self) -> String {
        let account = self.account.as_deref().map(|name| format!(" as {name}")).unwrap_or_default();
        format!(
            "the PostgreSQL of {}, started on port {}{account}, not durable",
            self.programs.display(),
            self.port
        )
    }

    /// The server writes `ready` as the last line of its pid file.
    fn wait_until_ready(&mut self, data: &Path) -> Result<(), LabError> {
        let began = Instant::now();
        let is_ready = || {
            let text = fs::read_to_string(data.join("postmaster.pid")).unwrap_or_default();
            text.lines().nth(7).is_some_and(|line| line.trim() == "ready")
        };
        while !is_ready() {
            let ended = self.process.try_wait().map_err(LabError::file(data))?;
            if ended.is_some() || began.elapsed() > START_MAX {
                let log = fs::read_to_string(data.with_file_name("log")).unwrap_or_default();
                return Err(LabError::Database(format!("postgres did not start: {}", log.trim())));
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        let process = i32::try_from(self.process.id()).ok().and_then(rustix::process::Pid::from_raw);
        if let Some(process) = process {
            // A server that is gone already needs no signal.
            let _ = rustix::process::kill_process(process, rustix::process::Signal::INT);
        }
        let began = Instant::now();
        while matches!(self.process.try_wait(), Ok(None)) && began.elapsed() < STOP_MAX {
            std::thread::sleep(PAUSE);
        }
        // Both fail when it has ended, as it should have.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn newest_programs() -> Option<PathBuf> {
    let mut found: Vec<(u32, PathBuf)> = Vec::new();
    for folder in FOLDERS {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let version = entry.file_name().to_str().and_then(|name| name.parse().ok());
            let programs = entry.path().join("bin");
            if let Some(version) = version.filter(|_| programs.join("initdb").exists()) {
                found.push((version, programs));
            }
        }
    }
    found.into_iter().max().map(|(_, programs)| programs)
}

fn initialize(programs: &Path, account: Option<&str>, directory: &Path, data: &Path) -> Result<(), LabError> {
    let mut initdb = command("INT", account, &programs.join("initdb"), directory);
    initdb.arg("-D").arg(data).args(["-U", USER, "--auth=trust", "--encoding=UTF8", "--locale=C"]);
    initdb.args(["--no-sync", "--no-instructions"]);
    let done =
        initdb.output().map_err(|error| LabError::Database(format!("initdb cannot be run: {error}")))?;
    if done.status.success() {
        return Ok(());
    }
    Err(LabError::Database(format!("initdb failed: {}", String::from_utf8_lossy(&done.stderr).trim())))
}

fn spawn(
    programs: &Path,
    account: Option<&str>,
    directory: &Path,
    data: &Path,
    port: u16,
) -> Result<Child, LabError> {
    let log_path = directory.join("log");
    let log = fs::File::create(&log_path).map_err(LabError::file(&log_path))?;
    let errors = log.try_clone().map_err(LabError::file(&log_path))?;
    let mut postgres = command("INT", account, &programs.join("postgres"), directory);
    postgres.arg("-D").arg(data);
    for setting in SETTINGS {
        postgres.args(["-c", setting]);
    }
    postgres.args(["-c", &format!("port={port}")]);
    postgres.args(["-c", &format!("unix_socket_directories={}", directory.display())]);
    // A group of its own: Ctrl-C is for the lab, which ends the server when it has tidied up.
    postgres.stdout(log).stderr(errors).process_group(0);
    postgres.spawn().map_err(|error| LabError::Database(format!("postgres cannot be run: {error}")))
}
