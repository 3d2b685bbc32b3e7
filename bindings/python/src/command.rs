//! The `onetrip` command, so that the wheel carries it.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs the command with these arguments, the program's name first; what to exit with.
#[pyfunction]
pub(crate) fn command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| onetrip_command::main(arguments))
}
