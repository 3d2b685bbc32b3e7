//! Work that Ctrl-C ends between two waits, so that whoever started it can tidy up.

use std::future::Future;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::runtime::{Builder, Runtime};

use crate::stop::Stop;

/// Ctrl-C, or a request to end, came before the work was done.
#[derive(Debug, thiserror::Error)]
#[error("stopped")]
pub(super) struct Interrupted;

/// A runtime that ends when it is told to.
pub(super) struct Interruptible {
    runtime: Runtime,
    stop: Stop,
}

impl Interruptible {
    /// From now on Ctrl-C is ours.
    pub(super) fn new() -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build().context("no runtime")?;
        let stop = runtime.block_on(async { Stop::listen() })?;
        Ok(Self { runtime, stop })
    }

    /// Does the work unless Ctrl-C comes first; then the error is [`Interrupted`].
    pub(super) fn run<T>(&mut self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let stop = &mut self.stop;
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                () = stop.requested() => Err(Interrupted.into()),
                done = work => done,
            }
        })
    }

    /// Does what must not be left half done, Ctrl-C or not, but not for longer than this.
    pub(super) fn finish<T>(&self, timeout: Duration, work: impl Future<Output = Result<T>>) -> Result<T> {
        self.runtime.block_on(async {
            tokio::time::timeout(timeout, work)
                .await
                .with_context(|| format!("no answer in {} s", timeout.as_secs()))?
        })
    }
}
