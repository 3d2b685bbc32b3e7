//! What the client's tests share: real servers.
#![allow(dead_code)]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

/// Where a server is, as `scripts/pgserver.py` tells it.
#[derive(Debug, Clone, serde::Deserialize)]
pub(crate) struct Address {
    pub(crate) port: u16,
    pub(crate) host: String,
    pub(crate) socket_dir: PathBuf,
    pub(crate) user: String,
    pub(crate) password: String,
    pub(crate) ca: Option<PathBuf>,
}

/// A throw-away server; it ends when this value does, at the latest with the test process.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) at: Address,
    process: Child,
}

impl Server {
    /// Starts one; `arguments` are those of `scripts/pgserver.py`.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut process = Command::new("python3")
            .arg(repository.join("scripts/pgserver.py"))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 runs");
        let mut line = String::new();
        let stdout = process.stdout.take().expect("its output is a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("it says where it is");
        let at = serde_json::from_str(&line).expect("pgserver.py prints an address (or says above why not)");
        Self { at, process }
    }

    /// PostgreSQL 15 that lets everybody in; one per test binary.
    pub(crate) fn shared() -> &'static Self {
        static SERVER: OnceLock<Server> = OnceLock::new();
        SERVER.get_or_init(|| Self::start(&["--auth", "trust", "--set", "max_connections=200"]))
    }

    /// A URL without TLS, with room for more parameters behind it.
    pub(crate) fn url(&self) -> String {
        self.url_at(self.at.port)
    }

    /// The same by another port.
    pub(crate) fn url_at(&self, port: u16) -> String {
        let Address { user, password, host, .. } = &self.at;
        format!("postgres://{user}:{password}@{host}:{port}/postgres?sslmode=disable")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        // It stops by itself once its input is closed.
        let _ = self.process.wait();
    }
}
