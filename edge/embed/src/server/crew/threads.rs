//! Threads that take the next job where there is one, and end after a while without.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::{Led, lead};

/// Stack of a thread, which the deepest statement fits in even without optimization. Memory is taken only for what is
/// used of it.
const STACK_BYTES: usize = 32 << 20;

/// How long a thread waits for its next job.
const IDLE_MAX: Duration = Duration::from_secs(10);

/// What a thread does next.
pub(super) enum Job {
    /// Leads a poll set. This is no closure, so that a change of leaders takes no memory.
    Lead(Led),
    Run(Box<dyn FnOnce() + Send>),
}

impl Job {
    fn run(self) {
        match self {
            Self::Lead(led) => lead(led),
            Self::Run(run) => run(),
        }
    }
}

/// As many threads as have something to do, and those that had until a while ago.
#[derive(Default)]
pub(super) struct Threads {
    state: Mutex<State>,
    wanted: Condvar,
    ended: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    count: usize,
    /// Those of them that have no job; each job in the queue is for one of these.
    idle: usize,
    is_stopping: bool,
}

impl Threads {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a job done by a thread that waits for one, or by a new one.
    pub(super) fn start(self: &Arc<Self>, job: Job) -> io::Result<()> {
        let mut state = self.lock();
        if state.is_stopping {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if state.idle <= state.jobs.len() {
            let threads = Arc::clone(self);
            let builder = thread::Builder::new().name("onetrip-session".to_owned()).stack_size(STACK_BYTES);
            builder.spawn(move || threads.work())?;
            state.idle += 1;
            state.count += 1;
        }
        state.jobs.push_back(job);
        drop(state);
        self.wanted.notify_one();
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.lock().count
    }

    fn work(&self) {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                state.idle -= 1;
                drop(state);
                // The panic hook has reported it; what the job had is dropped.
                let _ = catch_unwind(AssertUnwindSafe(|| job.run()));
                state = self.lock();
                state.idle += 1;
                continue;
            }
            if state.is_stopping {
                break;
            }
            let waited = self.wanted.wait_timeout(state, IDLE_MAX).unwrap_or_else(PoisonError::into_inner);
            state = waited.0;
            if waited.1.timed_out() && state.jobs.is_empty() {
                break;
            }
        }
        state.idle -= 1;
        state.count -= 1;
        self.ended.notify_all();
    }

    /// Lets all threads end, and waits for them, but not longer than this.
    pub(super) fn stop(&self, patience: Duration) {
        let start = Instant::now();
        let mut state = self.lock();
        state.is_stopping = true;
        self.wanted.notify_all();
        while state.count > 0 {
            let left = patience.saturating_sub(start.elapsed());
            if left.is_zero() {
                return;
            }
            state = self.ended.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
