use anyhow::{Context, Result};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Ctrl-C, or a request to end.
pub(crate) struct Stop {
    interrupt: Signal,
    terminate: Signal,
}

impl Stop {
    /// From now on both signals are ours. Needs a runtime.
    pub(crate) fn listen() -> Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen for Ctrl-C");
        Ok(Self { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())? })
    }

    /// Waits for one of them.
    pub(crate) async fn requested(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// The same for commands that have no runtime of their own.
pub(crate) struct Waiter {
    runtime: Runtime,
    stop: Stop,
}

impl Waiter {
    /// From now on both signals are ours.
    pub(crate) fn new() -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build().context("no runtime")?;
        let stop = runtime.block_on(async { Stop::listen() })?;
        Ok(Self { runtime, stop })
    }

    /// Blocks until one comes.
    pub(crate) fn wait(mut self) {
        self.runtime.block_on(self.stop.requested());
    }
}
