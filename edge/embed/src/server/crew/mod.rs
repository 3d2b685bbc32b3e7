//! Threads that serve many connections: leaders and followers.
//!
//! A connection that waits for its client rests in a [`PollSet`] and takes no thread. A set has one leader: a thread
//! that waits for all its connections at once, and serves those that are ready one after the other. So nobody switches
//! threads between two statements.
//!
//! ```text
//!                     ready                       before it waits, or found waiting
//!   resting in a set ───────▶ run by the leader ─────────────────────────▶ run by a thread that leads no more
//!          ▲                        │                                                  │
//!          └────────────────────────┴──────────────────────────────────────────────────┘
//! ```
//!
//! The only connection of a set keeps its thread, which waits for that client alone, until another connection comes.
//!
//! What a connection runs may wait itself: for a lock, a disk, a client that does not read. Before that,
//! [`crate::blocking::announce`] hands the set to another thread, the next leader, and the old one goes on with its
//! connection alone. What waits or computes unannounced is found by the [`lookout`].

mod cores;
mod lookout;
mod poll_set;
mod threads;

use std::cell::RefCell;
use std::io;
use std::mem::MaybeUninit;
use std::net::TcpStream;
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};

use crate::blocking::Announcing;
use lookout::Lookout;
use poll_set::{After, Leader, Next, PollSet};
use threads::{Job, Threads};

/// Most events that a leader takes at a time.
const EVENTS_MAX: usize = 64;

/// A connection that threads serve by turns.
pub(super) trait Member: Send {
    /// Serves the client until it has to say more; `None` where the connection has ended. Where the client has said
    /// nothing yet, it waits for that, or comes back.
    fn advance(self: Box<Self>, waits: bool) -> Option<Box<dyn Member>>;
}

/// All threads and poll sets of a server.
pub(super) struct Crew {
    threads: Arc<Threads>,
    /// At least one, and at most one for each core.
    sets: Mutex<Vec<Arc<PollSet>>>,
    /// Readable once leaders have to end.
    stop: OwnedFd,
    lookout: Lookout,
    hand_overs: AtomicU64,
    take_overs: AtomicU64,
}

/// How often a poll set changed its leader.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Changes {
    pub(super) hand_overs: u64,
    pub(super) take_overs: u64,
}

/// What a thread leads.
struct Led {
    crew: Arc<Crew>,
    set: Arc<PollSet>,
    turn: u64,
}

thread_local! {
    static LED: RefCell<Option<Led>> = const { RefCell::new(None) };
}

impl Crew {
    pub(super) fn new() -> io::Result<Arc<Self>> {
        let crew = Self::without_lookout()?;
        crew.lookout.start(&crew)?;
        Ok(crew)
    }

    fn without_lookout() -> io::Result<Arc<Self>> {
        let crew = Arc::new(Self {
            threads: Arc::default(),
            sets: Mutex::default(),
            stop: eventfd(0, EventfdFlags::CLOEXEC)?,
            lookout: Lookout::default(),
            hand_overs: AtomicU64::new(0),
            take_overs: AtomicU64::new(0),
        });
        crew.add_set()?;
        Ok(crew)
    }

    fn sets(&self) -> MutexGuard<'_, Vec<Arc<PollSet>>> {
        self.sets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add_set(self: &Arc<Self>) -> io::Result<Arc<PollSet>> {
        let set = Arc::new(PollSet::new(self.stop.as_fd())?);
        self.sets().push(Arc::clone(&set));
        Ok(set)
    }

    fn start_leader(self: &Arc<Self>, set: &Arc<PollSet>, turn: u64) -> io::Result<()> {
        let led = Led { crew: Arc::clone(self), set: Arc::clone(set), turn };
        self.threads.start(Job::Lead(led))
    }

    /// Starts the leader after another one, and counts that.
    fn start_next(self: &Arc<Self>, set: &Arc<PollSet>, turn: u64, counter: &AtomicU64) -> io::Result<()> {
        self.start_leader(set, turn)?;
        counter.fetch_add(1, Ordering::Relaxed); // it serves nobody before the set is unlocked
        Ok(())
    }

    /// Runs what may wait, on a thread of its own.
    pub(super) fn run(&self, job: impl FnOnce() + Send + 'static) -> io::Result<()> {
        self.threads.start(Job::Run(Box::new(job)))
    }

    /// Lets a connection rest until its client says something. No two connections have the same token.
    pub(super) fn add(
        self: &Arc<Self>,
        token: u32,
        stream: Arc<TcpStream>,
        member: Box<dyn Member>,
    ) -> io::Result<()> {
        let fewest = self.sets().iter().min_by_key(|set| set.len()).cloned();
        let Some(set) = fewest else { return Err(io::ErrorKind::NotConnected.into()) };
        set.join(token, (stream, member), |turn| self.start_leader(&set, turn))
    }

    /// Gives the set of a leader that has run the same member since this beat to another thread.
    fn take_over(self: &Arc<Self>, set: &Arc<PollSet>, beat: u64) {
        set.relieve(Leader::SinceBeat(beat), |turn| self.start_next(set, turn, &self.take_overs));
    }

    pub(super) fn changes(&self) -> Changes {
        Changes {
            hand_overs: self.hand_overs.load(Ordering::Relaxed),
            take_overs: self.take_overs.load(Ordering::Relaxed),
        }
    }

    /// Lets all threads end once they have nothing to do, and waits for them, but not longer than this.
    pub(super) fn stop(&self, patience: Duration) {
        // Fails only when the counter is full, and then it is readable.
        let _ = rustix::io::write(&self.stop, &1u64.to_ne_bytes());
        self.lookout.stop();
        self.threads.stop(patience);
        self.sets().clear();
    }
}

/// Serves the connections of a set until it is another thread's turn.
fn lead(led: Led) {
    let (crew, set, turn) = (Arc::clone(&led.crew), Arc::clone(&led.set), led.turn);
    LED.set(Some(led));
    let announcing = Announcing::start(hand_over);
    let mut memory = [MaybeUninit::uninit(); EVENTS_MAX];
    'turn: loop {
        for &event in set.wait(&mut memory) {
            let (token, member) = match set.next(turn, event) {
                Next::Run(token, member) => (token, member),
                Next::PassOver => continue,
                Next::Leave => break 'turn,
            };
            crew.lookout.stir();
            match set.put_back(turn, token, advance(member, false)) {
                After::Lead => {}
                After::Leave => break 'turn,
                After::Accompany(member) => {
                    accompany(&set, turn, token, member);
                    break 'turn;
                }
            }
        }
    }
    drop(announcing);
    LED.set(None);
}

/// Serves one connection for as long as its set has no other: waiting for one costs less than asking who is ready.
fn accompany(set: &PollSet, turn: u64, token: u32, mut member: Box<dyn Member>) {
    while let After::Accompany(same) = set.put_back(turn, token, advance(member, true)) {
        member = same;
    }
}

fn advance(member: Box<dyn Member>, waits: bool) -> Option<Box<dyn Member>> {
    // The panic hook has reported it; the member is dropped, and with it its connection.
    catch_unwind(AssertUnwindSafe(|| member.advance(waits))).unwrap_or_default()
}

/// Gives the set that this thread leads to another one; nothing happens where its turn is over already.
fn hand_over() {
    LED.with_borrow(|led| {
        let Some(Led { crew, set, turn }) = led else { return };
        set.relieve(Leader::OfTurn(*turn), |next| crew.start_next(set, next, &crew.hand_overs));
    });
}

#[cfg(test)]
mod tests;
