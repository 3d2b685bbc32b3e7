//! Looks after leaders: one that is kept up by a connection is relieved, and one that is always busy gets help.
//!
//! It looks once a millisecond while something is going on, and sleeps otherwise.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::{self, Thread};
use std::time::Duration;

use super::poll_set::PollSet;
use super::{Crew, cores};

/// Between two looks. A leader that runs the same member at both is relieved.
const TICK: Duration = Duration::from_millis(1);

/// Looks without anything going on, before it sleeps.
const QUIET_TICKS: u32 = 20;

/// Looks between two decisions on help.
const WINDOW: u32 = 100;

/// In how many of them a leader runs something if it is always busy: the rest is asking who is ready.
const BUSY: u32 = 60;

/// What the thread is told by others.
#[derive(Default)]
pub(super) struct Lookout {
    is_asleep: AtomicBool,
    is_stopping: AtomicBool,
    thread: OnceLock<Thread>,
}

impl Lookout {
    pub(super) fn start(&self, crew: &Arc<Crew>) -> io::Result<()> {
        let theirs = Arc::downgrade(crew);
        let builder = thread::Builder::new().name("onetrip-lookout".to_owned());
        let handle = builder.spawn(move || watch(&theirs))?;
        let _ = self.thread.set(handle.thread().clone()); // started once
        Ok(())
    }

    /// Something is going on. The leader's beat comes first, so that a thread that falls asleep sees it.
    pub(super) fn stir(&self) {
        if self.is_asleep.load(Ordering::SeqCst) && self.is_asleep.swap(false, Ordering::SeqCst) {
            self.wake();
        }
    }

    pub(super) fn stop(&self) {
        self.is_stopping.store(true, Ordering::SeqCst);
        self.wake();
    }

    fn wake(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::SeqCst)
    }

    /// Sleeps until something goes on, if `is_quiet` still holds once others know that they have to wake it.
    fn sleep(&self, is_quiet: impl Fn() -> bool) {
        self.is_asleep.store(true, Ordering::SeqCst);
        while self.is_asleep.load(Ordering::SeqCst) && !self.is_stopping() && is_quiet() {
            thread::park();
        }
        self.is_asleep.store(false, Ordering::SeqCst);
    }
}

/// What was seen of a poll set.
struct Seen {
    set: Arc<PollSet>,
    beats: u64,
    /// Looks of this window that found its leader running something.
    busy: u32,
}

impl Seen {
    fn new(set: &Arc<PollSet>) -> Self {
        Self { set: Arc::clone(set), beats: set.beats(), busy: 0 }
    }
}

fn watch(crew: &Weak<Crew>) {
    let (mut seen, mut quiet, mut looks) = (Vec::new(), 0, 0);
    let mut idle_before = None;
    loop {
        thread::sleep(TICK);
        let Some(crew) = crew.upgrade().filter(|crew| !crew.lookout.is_stopping()) else { return };
        if looks == 0 {
            seen = crew.sets().iter().map(Seen::new).collect();
            idle_before = cores::idle_ticks();
        }
        looks += 1;
        quiet = if look(&crew, &mut seen) { quiet + 1 } else { 0 };
        if looks == WINDOW {
            help(&crew, &seen, idle_before);
            looks = 0;
        }
        if quiet >= QUIET_TICKS {
            crew.lookout.sleep(|| seen.iter().all(|seen| seen.set.beats() == seen.beats));
            (quiet, looks) = (0, 0);
        }
    }
}

/// Relieves whoever runs the same member as at the last look; whether nothing is going on.
fn look(crew: &Arc<Crew>, seen: &mut [Seen]) -> bool {
    let mut is_quiet = true;
    for seen in seen {
        let beats = seen.set.beats();
        let is_running = beats % 2 == 1;
        if is_running && beats == seen.beats {
            crew.take_over(&seen.set, beats);
        }
        is_quiet &= !is_running && beats == seen.beats;
        seen.busy += u32::from(is_running);
        seen.beats = beats;
    }
    is_quiet
}

/// Gives half of what a busy leader has to one that is not, or to a new one, where cores have time for it.
fn help(crew: &Arc<Crew>, seen: &[Seen], idle_before: Option<u64>) {
    let Some(busiest) = seen.iter().max_by_key(|seen| seen.busy).filter(|seen| seen.busy >= BUSY) else { return };
    if busiest.set.len() < 2 || !has_idle_core(idle_before) {
        return;
    }
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let helper = if seen.len() < cores {
        crew.add_set().ok()
    } else {
        let freest = seen.iter().min_by_key(|seen| seen.busy).filter(|seen| seen.busy < BUSY / 2);
        freest.map(|seen| Arc::clone(&seen.set))
    };
    if let Some(helper) = helper {
        busiest.set.move_half(&helper);
    }
}

/// Whether a core's worth of time, or most of it, was idle since then; yes, where the system does not say.
fn has_idle_core(before: Option<u64>) -> bool {
    const TICK_MS: u32 = 10;
    let Some((before, now)) = before.zip(cores::idle_ticks()) else { return true };
    let window_ticks = WINDOW * TICK.as_millis() as u32 / TICK_MS;
    now.saturating_sub(before) * 3 >= u64::from(window_ticks) * 2
}
