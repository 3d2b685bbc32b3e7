//! Python's collector of cycles.

use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// Spares the collector a tuple that cannot be part of a cycle, since what it holds refers to nothing. The collector
/// finds that out by itself when it first meets such a tuple; for many rows that takes longer than making them.
#[inline]
#[allow(unsafe_code)]
pub(crate) fn leave_out(tuple: &Bound<'_, PyTuple>) {
    // SAFETY: a tuple that `Bound` holds is alive and of a type that the collector knows; for one that it does not
    // track, this does nothing.
    unsafe { pyo3::ffi::PyObject_GC_UnTrack(tuple.as_ptr().cast()) }
}
