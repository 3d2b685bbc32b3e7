//! Lines for whoever looks at standard error.

use std::fmt::Display;
use std::io::{self, Write};

/// Prints a line; nobody may be there to read it, and the work goes on.
pub(crate) fn say(line: impl Display) {
    let _ = writeln!(io::stderr(), "onetrip: {line}");
}

/// An error with its causes on one line, none told twice.
pub(crate) fn explained(error: &anyhow::Error) -> String {
    onetrip_gateway::with_causes(&**error)
}
