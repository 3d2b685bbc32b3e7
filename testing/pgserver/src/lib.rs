//! Throw-away PostgreSQL servers for tests, started by `scripts/pgserver.py`.
//!
//! What goes wrong ends the test: these functions panic, and the script has said on standard error why.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

/// The repository's root.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the crate is in a repository")
}

/// Where a server is, and how to log in as its superuser.
#[derive(Debug, Clone, serde::Deserialize)]
pub struct Address {
    /// Of TCP.
    pub port: u16,
    /// Of TCP.
    pub host: String,
    /// Directory of its unix socket.
    pub socket_dir: PathBuf,
    /// Superuser.
    pub user: String,
    /// The superuser's.
    pub password: String,
    /// Process that other processes of the server come from.
    pub pid: u32,
    /// Certificate that signed the server's own, if it has TLS.
    pub ca: Option<PathBuf>,
}

/// A running server; it ends when this value does, at the latest with the test process.
#[derive(Debug)]
pub struct PgServer {
    /// Where it is.
    pub at: Address,
    process: Child,
}

impl PgServer {
    /// Starts one; `arguments` are those of `scripts/pgserver.py`.
    pub fn start(arguments: &[&str]) -> Self {
        let mut process = Command::new("python3")
            .arg(repository().join("scripts/pgserver.py"))
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

    /// PostgreSQL 15 that lets everybody in; one per test program.
    pub fn shared() -> &'static Self {
        static SERVER: OnceLock<PgServer> = OnceLock::new();
        SERVER.get_or_init(|| Self::start(&["--auth", "trust", "--set", "max_connections=200"]))
    }

    /// A URL without TLS by another port, with room for more parameters behind it.
    pub fn url_at(&self, port: u16) -> String {
        let Address { user, password, host, .. } = &self.at;
        format!("postgres://{user}:{password}@{host}:{port}/postgres?sslmode=disable")
    }

    /// A URL without TLS, with room for more parameters behind it.
    pub fn url(&self) -> String {
        self.url_at(self.at.port)
    }
}

impl Drop for PgServer {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        // A server that does not stop is reported by pgserver.py.
        let _ = self.process.wait();
    }
}
