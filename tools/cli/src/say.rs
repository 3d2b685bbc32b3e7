//! Lines for whoever looks at standard error.

use std::fmt::Display;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Lines are left out instead of waiting for whoever reads standard error.
static WAITS_FOR_NOBODY: AtomicBool = AtomicBool::new(false);
/// How long a reader has the first time.
const PATIENCE: Duration = Duration::from_secs(1);

/// Prints a line; nobody may be there to read it, and the work goes on.
pub(crate) fn say(line: impl Display) {
    if WAITS_FOR_NOBODY.load(Ordering::Relaxed) && !is_read() {
        return;
    }
    let _ = writeln!(io::stderr(), "onetrip: {line}");
}

/// From here on, a pipe that nobody reads holds nobody up.
pub(crate) fn wait_for_nobody() {
    WAITS_FOR_NOBODY.store(true, Ordering::Relaxed);
}

/// Whether standard error takes a line. Once it did not in time, it is waited for no more.
fn is_read() -> bool {
    static IS_FULL: AtomicBool = AtomicBool::new(false);
    let patience = if IS_FULL.load(Ordering::Relaxed) { Duration::ZERO } else { PATIENCE };
    let error = io::stderr();
    let mut asked = [PollFd::new(&error, PollFlags::OUT)];
    let limit = Timespec { tv_sec: patience.as_secs() as i64, tv_nsec: patience.subsec_nanos().into() };
    let is_full = matches!(poll(&mut asked, Some(&limit)), Ok(0));
    IS_FULL.store(is_full, Ordering::Relaxed);
    !is_full
}

/// An error with its causes on one line, none told twice.
pub(crate) fn explained(error: &anyhow::Error) -> String {
    onetrip_gateway::with_causes(&**error)
}
