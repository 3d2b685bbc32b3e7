//! Looks after leaders: one that is kept up by a connection is relieved, and one that is always busy gets help.
//!
//! It looks every two milliseconds while something is going on, and sleeps otherwise.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::{self, Thread};
use std::time::Duration;

use super::Crew;
use super::cores::Cores;
use super::poll_set::PollSet;

/// Between two looks. A leader that runs the same member at both is relieved.
const TICK: Duration = Duration::from_millis(2);

/// Looks without anything going on, before it sleeps.
const QUIET_TICKS: u32 = 10;

/// Looks between two decisions on help.
const WINDOW: u32 = 100;

/// In how many of them a leader runs something if it is always busy: the rest is asking who is ready.
const BUSY: u32 = 60;

/// Idle time of all cores in a window that is worth another leader, in ticks of 10 ms: a third of a core.
const IDLE_TICKS: u64 = 7;

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
    let Some(mut seen) = crew.upgrade().map(|crew| see(&crew)) else { return };
    let (mut quiet, mut looks) = (0, 0);
    let mut need = Need::default();
    loop {
        thread::sleep(TICK);
        let Some(crew) = crew.upgrade().filter(|crew| !crew.lookout.is_stopping()) else { return };
        looks += 1;
        quiet = if look(&crew, &mut seen) { quiet + 1 } else { 0 };
        if looks == WINDOW {
            if need.is_there(&seen) && help(&crew, &seen) {
                seen = see(&crew);
            }
            looks = 0;
            seen.iter_mut().for_each(|seen| seen.busy = 0);
        }
        if quiet >= QUIET_TICKS {
            crew.lookout.sleep(|| seen.iter().all(|seen| seen.set.beats() == seen.beats));
            (quiet, looks) = (0, 0);
            seen.iter_mut().for_each(|seen| seen.busy = 0);
            need.idle_before = None;
        }
    }
}

/// All sets; nobody but the lookout adds one.
fn see(crew: &Crew) -> Vec<Seen> {
    crew.sets().iter().map(Seen::new).collect()
}

/// Whether a leader needs help, and there is a core for it.
#[derive(Default)]
struct Need {
    cores: Cores,
    /// Idle time of the cores at the end of the last window, if that had a leader that needs help.
    idle_before: Option<Option<u64>>,
}

impl Need {
    fn is_there(&mut self, seen: &[Seen]) -> bool {
        if busiest(seen).is_none() {
            self.idle_before = None;
            return false;
        }
        let idle = self.cores.idle_ticks();
        self.has_idle_core(idle)
    }

    /// Whether the cores were idle for long enough in the window that ends now.
    fn has_idle_core(&mut self, now: Option<u64>) -> bool {
        let Some(before) = self.idle_before.replace(now) else { return false };
        let has_idle_core =
            before.zip(now).is_none_or(|(before, now)| now.saturating_sub(before) >= IDLE_TICKS);
        if has_idle_core {
            self.idle_before = None;
        }
        has_idle_core
    }
}

/// A leader that is always busy, with more than one connection.
fn busiest(seen: &[Seen]) -> Option<&Seen> {
    seen.iter().max_by_key(|seen| seen.busy).filter(|seen| seen.busy >= BUSY && seen.set.len() > 1)
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

/// Gives half of what the busiest leader has to one that is not busy, or to a new one.
fn help(crew: &Arc<Crew>, seen: &[Seen]) -> bool {
    let Some(busiest) = busiest(seen) else { return false };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let helper = if seen.len() < cores {
        crew.add_set().ok()
    } else {
        let freest = seen.iter().min_by_key(|seen| seen.busy).filter(|seen| seen.busy < BUSY / 2);
        freest.map(|seen| Arc::clone(&seen.set))
    };
    let Some(helper) = helper else { return false };
    busiest.set.move_half(&helper, |turn| crew.start_leader(&helper, turn));
    true
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Client, connect};
    use super::*;

    #[test]
    fn a_leader_that_is_always_busy_gets_help_and_no_other_one_does() {
        let crew = Crew::without_lookout().unwrap();
        let mut clients: [Client; 8] = connect(&crew, |_, _| {});
        let mut seen = see(&crew);
        seen[0].busy = BUSY - 1;
        assert!(!help(&crew, &seen));
        seen[0].busy = BUSY;
        let cores = thread::available_parallelism().map_or(1, usize::from);
        // With one core there is nobody who could.
        assert_eq!(help(&crew, &seen), cores > 1);
        let lengths: Vec<usize> = crew.sets().iter().map(|set| set.len()).collect();
        assert_eq!(lengths, if cores > 1 { vec![4, 4] } else { vec![8] });
        for client in &mut clients {
            client.send(b'a');
            assert_eq!(client.receive(), Some(b'a'));
        }
        crew.stop(Duration::from_secs(20));
    }

    #[test]
    fn help_needs_a_window_with_a_third_of_a_core_idle() {
        let mut need = Need::default();
        let windows = [Some(100), Some(100 + IDLE_TICKS - 1), Some(106 + IDLE_TICKS), Some(500), Some(501)];
        assert_eq!(windows.map(|idle| need.has_idle_core(idle)), [false, false, true, false, false]);
        // Where the system does not say, nothing is known to be busy.
        assert!(need.has_idle_core(None));
    }
}
