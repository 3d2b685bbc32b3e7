//! What the tests of the command share: throw-away servers, and the command with a clean environment.
#![allow(dead_code, reason = "each test program uses its part")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

/// A throw-away PostgreSQL, gone when dropped.
pub(crate) struct Server {
    process: Child,
    address: Value,
}

impl Server {
    /// Starts one through `scripts/pgserver.py`, which takes these arguments.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut process = Command::new("python3")
            .arg(repository().join("scripts/pgserver.py"))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 starts");
        let mut line = String::new();
        let output = process.stdout.take().expect("its output is piped");
        BufReader::new(output).read_line(&mut line).expect("the server's address can be read");
        let address = serde_json::from_str(&line).expect("pgserver.py prints its address");
        Self { process, address }
    }

    pub(crate) fn port(&self) -> u16 {
        self.address["port"].as_u64().and_then(|port| port.try_into().ok()).expect("a port")
    }

    /// A piece of the address, such as `socket_dir` or `ca`.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.address[name].as_str().expect("a text")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It stops when its input closes, which waiting does first.
        let _ = self.process.wait();
    }
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The command, with no setting of this machine's user but the role and database of the throw-away servers.
pub(crate) fn onetrip() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onetrip"));
    for (name, _) in std::env::vars_os() {
        let is_setting = name.to_str().is_some_and(|name| name.starts_with("PG") || name == "DATABASE_URL");
        if is_setting {
            command.env_remove(name);
        }
    }
    command.env("HOME", "/nonexistent").env("PGUSER", "onetrip").env("PGDATABASE", "postgres");
    command
}
