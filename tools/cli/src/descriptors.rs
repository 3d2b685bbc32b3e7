//! How many files and sockets onetrip may have open: two for each connection of the program.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limit as it was, which is the program's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Descriptors {
    before: Rlimit,
}

impl Descriptors {
    /// Takes as many as the hard limit lets us. Where the system refuses, all stays as it was.
    pub(crate) fn raise() -> Self {
        let before = getrlimit(Resource::Nofile);
        let _ = setrlimit(Resource::Nofile, Rlimit { current: before.maximum, ..before });
        Self { before }
    }

    /// Starts a program under the limit as it was: one that waits by select(2), or closes all that there may be, needs it.
    pub(crate) fn start<T>(self, start: impl FnOnce() -> T) -> T {
        let raised = getrlimit(Resource::Nofile);
        let _ = setrlimit(Resource::Nofile, self.before);
        let started = start();
        let _ = setrlimit(Resource::Nofile, raised);
        started
    }
}
