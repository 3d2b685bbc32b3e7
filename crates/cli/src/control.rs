//! What a test runner asks of the gateway that it runs behind: a unix socket whose path is in `ONETRIP_CONTROL`.
//!
//! A line is `scope LABEL` (what names no scope itself is booked on LABEL from now on; without one, on nothing) or
//! `counts`. Each is answered by one JSON object with what was counted since the run began.

use std::ffi::OsString;
use std::io;
use std::sync::Arc;

use anyhow::{Context, Result};
use onetrip_gateway::Common;
use serde_json::json;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};

/// The variable that holds the socket's path.
pub(crate) const VARIABLE: &str = "ONETRIP_CONTROL";
/// Longest line, in bytes.
const LINE_BYTES_MAX: u64 = 1024;

/// A socket in a directory that only this user can enter.
pub(crate) struct Control {
    directory: TempDir,
    listener: UnixListener,
    common: Arc<Common>,
}

impl Control {
    /// Listens. Needs a runtime.
    pub(crate) fn listen(common: Arc<Common>) -> Result<Self> {
        let directory =
            tempfile::Builder::new().prefix("onetrip-").tempdir().context("no directory for a socket")?;
        let listener =
            UnixListener::bind(directory.path().join("control")).context("cannot listen for tests")?;
        Ok(Self { directory, listener, common })
    }

    /// Where it listens.
    pub(crate) fn path(&self) -> OsString {
        self.directory.path().join("control").into_os_string()
    }

    /// Serves one client after the other, forever.
    pub(crate) async fn serve(&self) {
        loop {
            // A client that goes in the middle of a line is its own affair.
            if let Ok((stream, _)) = self.listener.accept().await {
                let _ = self.answer(stream).await;
            }
        }
    }

    async fn answer(&self, mut stream: UnixStream) -> io::Result<()> {
        let (read, mut write) = stream.split();
        let mut lines = BufReader::new(read.take(LINE_BYTES_MAX));
        loop {
            let mut line = Vec::new();
            if lines.read_until(b'\n', &mut line).await? == 0 || line.pop() != Some(b'\n') {
                return Ok(());
            }
            lines.get_mut().set_limit(LINE_BYTES_MAX);
            write.write_all(self.reply(&line).as_bytes()).await?;
        }
    }

    fn reply(&self, line: &[u8]) -> String {
        match line.strip_prefix(b"scope").map(<[u8]>::trim_ascii) {
            Some(label) => self.common.tally.set_scope(label),
            None if line == b"counts" => {}
            None => return format!("{}\n", json!({ "error": "write `scope LABEL` or `counts`" })),
        }
        let counts = self.common.tally.counts();
        let counts = json!({
            "trips": counts.work_trips,
            "connect_trips": counts.connect_trips,
            "connections": counts.connections,
            "statements": counts.statements,
        });
        format!("{counts}\n")
    }
}
