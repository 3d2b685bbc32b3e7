//! Connections that wait for their clients, and whose turn it is to serve them.

use std::collections::HashMap;
use std::io;
use std::mem::MaybeUninit;
use std::net::TcpStream;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::epoll;

use super::Member;

/// What the event of a stop is known by; members have 32-bit tokens.
const STOP: u64 = u64::MAX;

/// Connections of which one thread, the leader, serves those that are ready, one after the other.
pub(super) struct PollSet {
    epoll: OwnedFd,
    members: Mutex<Members>,
    /// Starts and ends of what leaders run: odd while one runs something, and others wait for it.
    beats: AtomicU64,
}

#[derive(Default)]
struct Members {
    by_token: HashMap<u32, Place, foldhash::fast::RandomState>,
    /// Which leader it is, counted; a thread whose turn is over leads no more.
    turn: u64,
    /// None before the first member comes, and none while the only member has a thread of its own.
    has_leader: bool,
    /// Whom the leader runs.
    running: Option<u32>,
}

/// A member's place, also while it is away.
struct Place {
    stream: Arc<TcpStream>,
    /// The member, unless a thread runs it. One that a thread other than the leader runs is not polled.
    resting: Option<Box<dyn Member>>,
}

/// What a leader does about an event.
pub(super) enum Next {
    Run(u32, Box<dyn Member>),
    /// Goes on with the next event.
    PassOver,
    /// Ends: its turn is over.
    Leave,
}

/// What a thread does after it has run a member.
pub(super) enum After {
    /// Goes on as the leader.
    Lead,
    /// Ends: its turn is over.
    Leave,
    /// Waits for the client of this member, and serves it again: there is no other member.
    Accompany(Box<dyn Member>),
}

impl PollSet {
    /// `stop` is readable once leaders have to end.
    pub(super) fn new(stop: BorrowedFd<'_>) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, stop, epoll::EventData::new_u64(STOP), epoll::EventFlags::IN)?;
        Ok(Self { epoll, members: Mutex::default(), beats: AtomicU64::new(0) })
    }

    fn lock(&self) -> MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn len(&self) -> usize {
        self.lock().by_token.len()
    }

    /// See the field.
    pub(super) fn beats(&self) -> u64 {
        self.beats.load(Ordering::SeqCst)
    }

    /// Notes that the leader runs nothing any more; only who has locked the members calls it.
    fn beat(&self) {
        self.beats.store(self.beats.load(Ordering::Relaxed) + 1, Ordering::Release);
    }

    /// Waits until members are ready; their events are put there.
    pub(super) fn wait<'m>(&self, memory: &'m mut [MaybeUninit<epoll::Event>]) -> &'m [epoll::Event] {
        match epoll::wait(&self.epoll, memory, None) {
            Ok((events, _)) => events,
            Err(_) => &[], // a signal came
        }
    }

    /// A member from elsewhere rests here from now on; where that fails it is dropped. `start` starts the leader of a
    /// turn where there is none.
    pub(super) fn join(
        &self,
        token: u32,
        (stream, member): (Arc<TcpStream>, Box<dyn Member>),
        start: impl FnOnce(u64) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut members = self.lock();
        if !members.has_leader {
            start(members.turn)?;
            members.has_leader = true;
        }
        // With the lock held, so that the member is there when its first event is looked at.
        self.poll(token, &stream)?;
        members.by_token.insert(token, Place { stream, resting: Some(member) });
        Ok(())
    }

    fn poll(&self, token: u32, stream: &TcpStream) -> io::Result<()> {
        let data = epoll::EventData::new_u64(token.into());
        Ok(epoll::add(&self.epoll, stream, data, epoll::EventFlags::IN)?)
    }

    /// What the leader of this turn has to do about an event. A member that is to run has to come back by
    /// [`Self::put_back`].
    pub(super) fn next(&self, turn: u64, event: epoll::Event) -> Next {
        let data = event.data.u64();
        if data == STOP {
            return Next::Leave;
        }
        let token = data as u32; // as it was added
        let mut members = self.lock();
        if members.turn != turn {
            return Next::Leave;
        }
        let resting = members.by_token.get_mut(&token).and_then(|place| place.resting.take());
        let Some(member) = resting else { return Next::PassOver };
        members.running = Some(token);
        // Before whoever looks after leaders is found asleep: see `Lookout::stir`.
        self.beats.fetch_add(1, Ordering::SeqCst);
        Next::Run(token, member)
    }

    /// Takes back a member, or what is left of one that ended, from the thread that ran it.
    pub(super) fn put_back(&self, turn: u64, token: u32, member: Option<Box<dyn Member>>) -> After {
        let mut members = self.lock();
        let is_leader = members.turn == turn;
        let after = if is_leader { After::Lead } else { After::Leave };
        if is_leader {
            members.running = None;
            self.beat();
        }
        let is_alone = members.by_token.len() == 1;
        let Some(place) = members.by_token.get_mut(&token) else { return after };
        match member {
            Some(member) if is_alone => {
                if is_leader {
                    // It fails only where it is not polled.
                    let _ = epoll::delete(&self.epoll, &*place.stream);
                    members.turn += 1;
                    members.has_leader = false;
                }
                return After::Accompany(member);
            }
            Some(member) if is_leader || self.poll(token, &place.stream).is_ok() => {
                place.resting = Some(member);
            }
            _ => {
                let ended = members.by_token.remove(&token);
                drop(members);
                if let Some(Place { stream, .. }) = ended.filter(|_| is_leader) {
                    // Whoever else has it open, for however long: nobody would look at what it is ready for.
                    let _ = epoll::delete(&self.epoll, &*stream);
                }
            }
        }
        after
    }

    /// Ends a leader's turn while it runs a member: `start` starts the leader of the turn that it is given. Nothing
    /// happens where the turn is over already, where the leader runs nothing, or where `start` fails.
    pub(super) fn relieve(&self, of: Leader, start: impl FnOnce(u64) -> io::Result<()>) {
        let mut members = self.lock();
        let is_meant = match of {
            Leader::OfTurn(turn) => members.turn == turn,
            Leader::SinceBeat(beat) => self.beats() == beat,
        };
        let Some(token) = members.running.filter(|_| is_meant) else { return };
        if start(members.turn + 1).is_err() {
            return; // the others wait, then
        }
        members.turn += 1;
        members.running = None;
        self.beat();
        if let Some(place) = members.by_token.get(&token) {
            // It fails only where it is not polled.
            let _ = epoll::delete(&self.epoll, &*place.stream);
        }
    }

    /// Moves half of the members to another set, as far as they rest.
    pub(super) fn move_half(&self, to: &Self, start: impl Fn(u64) -> io::Result<()>) {
        let mut members = self.lock();
        let half = members.by_token.len() / 2;
        let resting = members.by_token.iter().filter(|(_, place)| place.resting.is_some());
        let tokens: Vec<u32> = resting.map(|(token, _)| *token).take(half).collect();
        let mut moved = Vec::with_capacity(tokens.len());
        for token in tokens {
            if let Some(Place { stream, resting: Some(member) }) = members.by_token.remove(&token) {
                // It fails only where it is not polled.
                let _ = epoll::delete(&self.epoll, &*stream);
                moved.push((token, stream, member));
            }
        }
        drop(members);
        for (token, stream, member) in moved {
            // Where the system has no memory for it, that connection is closed.
            let _ = to.join(token, (stream, member), &start);
        }
    }
}

/// Which leader is meant.
#[derive(Debug, Clone, Copy)]
pub(super) enum Leader {
    OfTurn(u64),
    /// One that has run the same member since this beat.
    SinceBeat(u64),
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};
    use std::os::fd::AsFd;

    use rustix::event::{EventfdFlags, eventfd};

    use super::*;

    struct AtItsEnd;

    impl Member for AtItsEnd {
        fn advance(self: Box<Self>, _waits: bool) -> Option<Box<dyn Member>> {
            None
        }
    }

    #[test]
    fn a_member_that_has_ended_is_not_polled_while_somebody_has_its_socket() {
        let stop = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        let set = PollSet::new(stop.as_fd()).unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        drop(TcpStream::connect(listener.local_addr().unwrap()).unwrap());
        let stream = Arc::new(listener.accept().unwrap().0);
        set.join(7, (Arc::clone(&stream), Box::new(AtItsEnd)), |_| Ok(())).unwrap();
        let mut memory = [MaybeUninit::uninit(); 4];
        let event = set.wait(&mut memory)[0];
        let Next::Run(token, member) = set.next(0, event) else { panic!("it is ready") };
        assert!(matches!(set.put_back(0, token, member.advance(false)), After::Lead));
        let (events, _) =
            epoll::wait(&set.epoll, &mut memory, Some(&rustix::event::Timespec::default())).unwrap();
        assert!(events.is_empty());
        drop(stream);
    }
}
