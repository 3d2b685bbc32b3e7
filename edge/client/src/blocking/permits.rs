use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How many may have something at once.
#[derive(Debug)]
pub(super) struct Permits {
    taken: Arc<Taken>,
    size: usize,
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub(super) struct Permit(Arc<Taken>);

#[derive(Debug, Default)]
struct Taken {
    count: Mutex<usize>,
    returned: Condvar,
}

impl Permits {
    /// So many of them, one at least.
    pub(super) fn new(size: usize) -> Self {
        Self { taken: Arc::default(), size: size.max(1) }
    }

    /// Waits for one, at most this long.
    pub(super) fn take(&self, wait: Duration) -> Option<Permit> {
        // A wait that no clock can count to has no end.
        let deadline = Instant::now().checked_add(wait);
        let mut count = self.taken.lock();
        while *count >= self.size {
            let returned = &self.taken.returned;
            count = match deadline {
                None => returned.wait(count).unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return None;
                    }
                    returned.wait_timeout(count, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        *count += 1;
        Some(Permit(Arc::clone(&self.taken)))
    }

    /// How many are taken.
    pub(super) fn in_use(&self) -> usize {
        *self.taken.lock()
    }
}

impl Taken {
    fn lock(&self) -> MutexGuard<'_, usize> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        *self.0.lock() -= 1;
        self.0.returned.notify_one();
    }
}
