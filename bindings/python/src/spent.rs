//! What all connections of this process have spent, for tests that are held to a number of trips.

use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;

static TRIPS: AtomicU64 = AtomicU64::new(0);
static CONNECTIONS: AtomicU64 = AtomicU64::new(0);

/// A connection was opened.
pub(crate) fn opened() {
    CONNECTIONS.fetch_add(1, Ordering::Relaxed);
}

/// A connection has spent so many more trips.
pub(crate) fn spent(trips: u64) {
    TRIPS.fetch_add(trips, Ordering::Relaxed);
}

/// Trips that this process's connections have spent after they were open, and how many were opened.
#[pyfunction]
pub(crate) fn counts() -> (u64, u64) {
    (TRIPS.load(Ordering::Relaxed), CONNECTIONS.load(Ordering::Relaxed))
}
