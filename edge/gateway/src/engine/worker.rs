//! A worker: one thread, one loop, many connections.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{io, mem};

use mio::{Events, Poll};
use slab::Slab;

use super::Crew;
use super::connection::{Served, Side, Then, Turn, Visit};
use super::inbox::{self, Errand, Inbox};
use super::load::{Load, Meter};
use crate::GatewayError;
use crate::notice::{Kind, notice, tell_end};
use crate::recorder::Batch;
use crate::shared::{LAST_WORDS_MAX, Stop};
use crate::spin::Spinner;

/// What the loop is told at once.
const EVENTS_MAX: usize = 256;
/// Records of all connections are handed over at least this often, so that a trace can be read while it is written.
const HAND_OVER: Duration = Duration::from_millis(50);
/// A worker that has shared its connections looks so long later whether that was enough.
const SHARES_AGAIN: Duration = Duration::from_millis(250);

/// A thread's connections, and what they wait for.
pub(super) struct Worker {
    crew: Arc<Crew>,
    inbox: Arc<Inbox>,
    poll: Poll,
    seats: Slab<Seat>,
    /// Seats whose connections are to have a turn.
    ready: Vec<usize>,
    /// When connections want a turn, with their seats and numbers. One entry each at most is not stale, as a connection
    /// is asked again when it is due: so timers that are put off cost nothing, and there are few of them at all.
    timers: BinaryHeap<Reverse<(Instant, usize, u32)>>,
    /// Seats whose connections may have records, or do not rest yet.
    stirred: Vec<usize>,
    /// When these are looked at.
    books_at: Option<Instant>,
    spinner: Spinner,
    load: Arc<Load>,
    meter: Meter,
    /// A worker that spins is always busy.
    has_spun: bool,
    shares_from: Instant,
    stop: Stop,
    /// Connections that are left then go without last words.
    gone_by: Option<Instant>,
    is_closed: bool,
}

/// One connection's place.
struct Seat {
    connection: Box<dyn Served>,
    number: u32,
    is_ready: bool,
    is_stirred: bool,
    /// When its timer rings that is not stale.
    rings_at: Option<Instant>,
    /// The last period in which it was in use.
    in_use: u64,
}

impl Worker {
    pub(super) fn new(crew: Arc<Crew>) -> io::Result<(Self, Arc<Inbox>, Arc<Load>)> {
        let poll = Poll::new()?;
        let inbox = Arc::new(Inbox::new(poll.registry())?);
        let load = Arc::new(Load::new());
        let now = Instant::now();
        let worker = Self {
            crew,
            inbox: Arc::clone(&inbox),
            poll,
            seats: Slab::new(),
            ready: Vec::new(),
            timers: BinaryHeap::new(),
            stirred: Vec::new(),
            books_at: None,
            spinner: Spinner::new(),
            load: Arc::clone(&load),
            meter: Meter::start(now),
            has_spun: false,
            shares_from: now,
            stop: Stop::No,
            gone_by: None,
            is_closed: false,
        };
        Ok((worker, inbox, load))
    }

    /// Serves until no connection is left and none comes any more.
    #[inline(never)] // so that profiles have it by name
    pub(super) fn run(mut self) {
        let mut events = Events::with_capacity(EVENTS_MAX);
        let mut now = Instant::now();
        self.meter = Meter::start(now); // it measures the thread that it runs in
        while !self.is_over(now) {
            let patience = self.patience(now);
            match self.poll.poll(&mut events, patience) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    let text = format!("a worker cannot wait for its connections, and drops them: {error}");
                    return notice(Kind::Server, None, &text);
                }
            }
            now = Instant::now();
            let mut has_errands = false;
            for event in &events {
                if event.token() == inbox::TOKEN {
                    has_errands = true;
                    continue;
                }
                let (seat, side) = Side::of(event.token());
                if let Some(found) = self.seats.get_mut(seat) {
                    found.connection.heard(side, event);
                    get_ready(&mut self.ready, seat, found);
                }
            }
            // After all events: from here on a seat may be another's.
            if has_errands {
                self.do_errands(now);
            }
            self.ring(now);
            self.give_turns(now);
            if self.books_at.is_some_and(|at| at <= now) {
                self.keep_books(now);
            }
        }
        self.spinner.stop(&self.crew.shared.spin);
    }

    fn is_over(&mut self, now: Instant) -> bool {
        if self.gone_by.is_some_and(|at| at <= now) {
            // Those that are slow to take their last words go without.
            for seat in self.seats.drain() {
                contain(|| drop(seat));
                self.load.goes();
            }
        }
        self.is_closed && self.seats.is_empty()
    }

    /// How long to wait for something to come; `None` is for ever.
    fn patience(&mut self, now: Instant) -> Option<Duration> {
        if !self.ready.is_empty() {
            return Some(Duration::ZERO);
        }
        if !self.seats.is_empty() && self.spinner.may_spin(now, &self.crew.shared.spin) {
            self.has_spun = true;
            return Some(Duration::ZERO);
        }
        let timer = self.timers.peek().map(|Reverse((at, ..))| *at);
        let gone_by = self.gone_by.filter(|_| !self.seats.is_empty());
        let next = [timer, self.books_at, gone_by].into_iter().flatten().min()?;
        Some(next.saturating_duration_since(now))
    }

    fn do_errands(&mut self, now: Instant) {
        for errand in self.inbox.take() {
            match errand {
                Errand::Serve(connection) => self.seat(connection),
                Errand::Look { seat, number } => {
                    let found = self.seats.get_mut(seat).filter(|found| found.number == number);
                    if let Some(found) = found {
                        get_ready(&mut self.ready, seat, found);
                    }
                }
                Errand::Stop(stop) => {
                    self.stop = stop;
                    if stop == Stop::Now {
                        self.gone_by = Some(now + LAST_WORDS_MAX);
                    }
                    for (seat, found) in &mut self.seats {
                        found.connection.look();
                        get_ready(&mut self.ready, seat, found);
                    }
                }
                Errand::Close => self.is_closed = true,
            }
        }
    }

    fn seat(&mut self, mut connection: Box<dyn Served>) {
        let peer = connection.peer();
        let entry = self.seats.vacant_entry();
        let seat = entry.key();
        if let Err(error) = connection.sit_down(self.poll.registry(), &self.inbox, seat) {
            self.load.goes();
            return notice(Kind::Accept, Some(peer), &format!("the client was lost: {error}"));
        }
        let found = entry.insert(Seat {
            connection,
            number: peer.number,
            is_ready: false,
            is_stirred: false,
            rings_at: None,
            in_use: 0,
        });
        get_ready(&mut self.ready, seat, found);
    }

    /// Connections whose time has come are to have a turn.
    fn ring(&mut self, now: Instant) {
        while let Some(Reverse((at, seat, number))) = self.timers.peek().copied() {
            if at > now {
                return;
            }
            self.timers.pop();
            let found = self.seats.get_mut(seat);
            if let Some(found) = found.filter(|found| found.number == number && found.rings_at == Some(at)) {
                found.rings_at = None;
                get_ready(&mut self.ready, seat, found);
            }
        }
    }

    /// Each that is ready has one turn; who goes on has the next one when all have had theirs.
    fn give_turns(&mut self, woken_at: Instant) {
        let count = self.ready.len();
        let mut moved = false;
        for place in 0..count {
            // The first follows at once, the others when those before them are done.
            let now = if place == 0 { woken_at } else { Instant::now() };
            moved |= self.give_turn(self.ready[place], now);
        }
        self.ready.drain(..count);
        if moved {
            self.spinner.moved(woken_at, &self.crew.shared.spin);
            if self.books_at.is_none() {
                self.books_at = Some(woken_at + HAND_OVER);
            }
        }
    }

    /// Returns whether something was moved.
    fn give_turn(&mut self, seat: usize, now: Instant) -> bool {
        let Some(found) = self.seats.get_mut(seat) else { return false };
        found.is_ready = false;
        let shared = &self.crew.shared;
        let visit =
            Visit { registry: self.poll.registry(), seat, now, moment: shared.moment(now), stop: self.stop };
        let turn = contain(|| found.connection.turn(&visit)).unwrap_or(Turn::LAST);
        if turn.moved {
            shared.spin.note_in_use(&mut found.in_use, now);
            if !found.is_stirred {
                found.is_stirred = true;
                self.stirred.push(seat);
            }
        }
        match turn.then {
            Then::Ends(end) => {
                let ended = self.seats.remove(seat);
                self.load.goes();
                let peer = ended.connection.peer();
                contain(|| drop(ended));
                tell_end(peer, &end);
                return turn.moved;
            }
            Then::GoesOn => get_ready(&mut self.ready, seat, found),
            Then::Waits => {}
        }
        if let Some(at) =
            found.connection.due_at().filter(|at| found.rings_at.is_none_or(|rings| *at < rings))
        {
            found.rings_at = Some(at);
            self.timers.push(Reverse((at, seat, found.number)));
        }
        turn.moved
    }

    /// Hands over what connections have recorded, and sees whether there is too much to do.
    fn keep_books(&mut self, now: Instant) {
        let mut batch = Batch::new();
        let seats = &mut self.seats;
        self.stirred.retain(|seat| {
            let Some(found) = seats.get_mut(*seat).filter(|found| found.is_stirred) else { return false };
            let rests = contain(|| found.connection.hand_over_records(now, &mut batch));
            found.is_stirred = rests == Some(false);
            found.is_stirred
        });
        self.crew.recorder.take_batch(batch);
        let is_busy = self.meter.measure(now, &self.load) && !mem::take(&mut self.has_spun);
        if is_busy && self.stirred.len() > 1 && now >= self.shares_from {
            self.shares_from = now + SHARES_AGAIN;
            self.share(now);
        }
        self.books_at = (!self.stirred.is_empty()).then(|| now + HAND_OVER);
    }

    /// Gives every other connection that is in use to a worker that has less to do, if there is one.
    fn share(&mut self, now: Instant) {
        let Some((inbox, load)) = Crew::helper(&self.crew, &self.inbox, now) else { return };
        let (kept, given): (Vec<_>, Vec<_>) =
            self.stirred.drain(..).enumerate().partition(|(place, _)| place % 2 == 0);
        self.stirred.extend(kept.into_iter().map(|(_, seat)| seat));
        for (_, seat) in given {
            let Some(Seat { mut connection, .. }) = self.seats.try_remove(seat) else { continue };
            self.load.goes();
            match connection.get_up(self.poll.registry()) {
                Ok(()) => {
                    load.comes();
                    inbox.send(Errand::Serve(connection));
                }
                Err(source) => {
                    let peer = connection.peer();
                    contain(|| drop(connection));
                    tell_end(peer, &Err(GatewayError::Socket { side: "the loop", source }));
                }
            }
        }
    }
}

/// What goes wrong with one connection is no other's affair: a panic in it ends it alone. The panic's own message tells of it.
fn contain<T>(act: impl FnOnce() -> T) -> Option<T> {
    // What a panic leaves half done is dropped.
    panic::catch_unwind(AssertUnwindSafe(act)).ok()
}

fn get_ready(ready: &mut Vec<usize>, seat: usize, found: &mut Seat) {
    if !found.is_ready {
        found.is_ready = true;
        ready.push(seat);
    }
}
