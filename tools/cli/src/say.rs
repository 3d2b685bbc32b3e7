//! Lines for whoever looks at standard error.

use std::fmt::Display;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// The gateway's thread writes the lines.
static WAITS_FOR_NOBODY: AtomicBool = AtomicBool::new(false);

/// Prints a line; nobody may be there to read it, and the work goes on.
pub(crate) fn say(line: impl Display) {
    let line = format!("onetrip: {line}\n");
    if WAITS_FOR_NOBODY.load(Ordering::Relaxed) {
        return onetrip_gateway::tell(line);
    }
    let _ = io::stderr().write_all(line.as_bytes());
}

/// From here on, a standard error that nobody reads holds nobody up.
pub(crate) fn wait_for_nobody() {
    WAITS_FOR_NOBODY.store(true, Ordering::Relaxed);
}

/// An error with its causes on one line, none told twice.
pub(crate) fn explained(error: &anyhow::Error) -> String {
    onetrip_gateway::with_causes(&**error)
}
