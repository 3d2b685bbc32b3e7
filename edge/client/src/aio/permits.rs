use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many may have something at once. Those who wait get their turn in the order of their coming.
#[derive(Debug)]
pub(super) struct Permits {
    free: Arc<Semaphore>,
    size: usize,
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub(super) struct Permit(#[expect(dead_code, reason = "it is held")] OwnedSemaphorePermit);

impl Permits {
    /// So many of them, one at least.
    pub(super) fn new(size: usize) -> Self {
        let size = size.clamp(1, Semaphore::MAX_PERMITS);
        Self { free: Arc::new(Semaphore::new(size)), size }
    }

    /// Waits for one, at most this long.
    pub(super) async fn take(&self, wait: Duration) -> Option<Permit> {
        let free = Arc::clone(&self.free).acquire_owned();
        // Nobody closes the semaphore, so that only time can run out.
        tokio::time::timeout(wait, free).await.ok()?.ok().map(Permit)
    }

    /// How many are taken.
    pub(super) fn in_use(&self) -> usize {
        self.size - self.free.available_permits()
    }
}
