//! `onetrip analyze --client --server`: the second capture of a path, and what both say together.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::{Context, Result, bail};
use clap::Args;
use onetrip_capture::sides::Side;
use onetrip_capture::source::{Progress, SourceError, Sources};
use onetrip_capture::{CaptureConfig, Packet};
use onetrip_ledger::sides::TwoSides;

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Two captures of one path")]
pub(crate) struct SidesOptions {
    /// Capture made at the client, in place of FILE; give it once for each file
    ///
    /// The report is that of this capture. With the server's it also says where each millisecond went: client, wire there, server,
    /// wire back. The clocks need not agree: onetrip estimates their offset from the packets, and says how exact it is.
    #[arg(long, value_name = "FILE", requires = "server", conflicts_with = "follow")]
    pub(crate) client: Vec<PathBuf>,
    /// Capture of the same time made at the server; give it once for each file
    #[arg(long, value_name = "FILE", requires = "client")]
    pub(crate) server: Vec<PathBuf>,
}

/// Both captures while they are read: the client's first, by whoever has it.
pub(crate) struct Both {
    client: Side,
    server: Side,
    sources: Sources,
    progress: Arc<Progress>,
}

impl SidesOptions {
    /// Opens the server's capture; `None` where there is one capture only.
    pub(crate) fn open(&self, config: &CaptureConfig, progress: &Arc<Progress>) -> Result<Option<Both>> {
        if self.server.is_empty() {
            return Ok(None);
        }
        let named = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
        let of_client: Vec<_> = self.client.iter().map(named).collect();
        if let Some(path) = self.server.iter().find(|path| of_client.contains(&named(path))) {
            bail!("{} is given for both sides; it can be the capture of one", path.display());
        }
        let sources =
            Sources::open(&self.server, false, Arc::clone(progress)).context("cannot read the capture")?;
        let (client, server) = (Side::new(config), Side::new(config));
        Ok(Some(Both { client, server, sources, progress: Arc::clone(progress) }))
    }
}

impl Both {
    /// A packet of the client's capture.
    pub(crate) fn packet(&mut self, packet: &Packet<'_>) {
        self.client.packet(packet);
    }

    /// Reads the server's capture: what both say. `None` where reading was stopped before it.
    pub(crate) fn merge(mut self, problem: impl FnMut(SourceError)) -> Option<TwoSides> {
        if self.progress.stop.load(Ordering::Relaxed) {
            return None;
        }
        let server = &mut self.server;
        self.sources.read(|packet| server.packet(packet), problem);
        Some(self.client.merge(self.server))
    }
}
