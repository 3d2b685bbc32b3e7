//! Locks.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A lock that a panic elsewhere does not take away.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
