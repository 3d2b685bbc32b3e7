use std::time::Duration;

use anyhow::{Context, Result};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// How often a draining gateway is asked whether it is done.
const ASK_EVERY: Duration = Duration::from_millis(20);

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
    pub(crate) fn wait(&mut self) {
        self.runtime.block_on(self.stop.requested());
    }

    /// Blocks until one comes; SIGHUP is told and changes nothing.
    ///
    /// # Errors
    ///
    /// The system has no room for one more signal handler.
    pub(crate) fn wait_through_hangups(&mut self, told: impl Fn()) -> Result<()> {
        let Self { runtime, stop } = self;
        runtime.block_on(async {
            let mut hangup = signal(SignalKind::hangup()).context("cannot listen for SIGHUP")?;
            loop {
                tokio::select! {
                    () = stop.requested() => return Ok(()),
                    _ = hangup.recv() => told(),
                }
            }
        })
    }

    /// Blocks until all is `done`, for `limit` at most, or until a signal comes. Returns whether that was it.
    pub(crate) fn wait_until(&mut self, limit: Duration, done: impl Fn() -> bool) -> bool {
        let Self { runtime, stop } = self;
        runtime.block_on(async {
            let is_done = async {
                while !done() {
                    tokio::time::sleep(ASK_EVERY).await;
                }
            };
            tokio::select! {
                biased;
                () = stop.requested() => true,
                _ = tokio::time::timeout(limit, is_done) => false,
            }
        })
    }

    /// Lets a file that has reached its size limit fail as a full disk does, instead of ending the process.
    pub(crate) fn survive_file_limits(&self) {
        self.runtime.block_on(async { survive_file_limits() });
    }

    /// From here on a signal ends the process at once, without a report. With `spares_one`, the first changes nothing: it was to
    /// end sessions, and there are none left.
    pub(crate) fn exit_on_signal(mut self, code: u8, spares_one: bool) {
        // A thread that cannot be had leaves the process to its work.
        let _ = std::thread::Builder::new().name("onetrip-signals".into()).spawn(move || {
            if spares_one {
                self.wait();
            }
            self.wait();
            std::process::exit(code.into());
        });
    }
}

/// The same, inside a runtime.
pub(crate) fn survive_file_limits() {
    /// SIGXFSZ.
    const FILE_SIZE_LIMIT: i32 = 25;
    // A handler is never taken back; without one the limit ends the process as it always did.
    let _ = signal(SignalKind::from_raw(FILE_SIZE_LIMIT));
}
