use std::collections::{HashMap, VecDeque};
use std::io;
use std::time::Duration;

use rustix::event::{self, PollFd, PollFlags, Timespec, epoll};
use rustix::io::Errno;
use rustix::net::SocketFlags;

use super::agenda::Agenda;
use super::connection::{Connection, Delivery, Direction, Side};
use super::priority::{self, Duty};
use super::socket::Socket;
use super::watch::Watch;
use super::{CONTROL, LISTENER, Pacer};
use crate::Moment;
use crate::bottleneck::Bottleneck;
use crate::stats::{LinkStats, Scheduling};

/// The pacer at work. Each turn delivers what is due, then does one piece of work that can wait, then waits.
pub(super) struct Running {
    pacer: Pacer,
    watch: Watch,
    scheduling: Scheduling,
    duty: Duty,
    agenda: Agenda,
    connections: HashMap<u64, Connection>,
    directions: [Direction; 2],
    /// Sides with something to read.
    readable: VecDeque<(u64, Side)>,
    /// Readable sides that have to wait until they or their direction hold less.
    paused: Vec<(u64, Side)>,
    /// Pipes with more due than one turn delivers, by the side where they start.
    owing: VecDeque<(u64, Side)>,
    arrivals: Vec<epoll::Event>,
    buffer: Box<[u8]>,
    stats: LinkStats,
}

impl Running {
    pub(super) fn new(pacer: Pacer) -> Self {
        let bottleneck = Bottleneck::new(pacer.spec.bandwidth);
        let direction = || Direction { bottleneck: bottleneck.clone(), held: 0, delivered: 0 };
        Self {
            directions: [direction(), direction()],
            watch: Watch::new(),
            duty: Duty::default(),
            agenda: Agenda::default(),
            connections: HashMap::new(),
            readable: VecDeque::new(),
            paused: Vec::new(),
            owing: VecDeque::new(),
            arrivals: Vec::with_capacity(EVENTS_AT_ONCE),
            buffer: vec![0; CHUNK].into_boxed_slice(),
            scheduling: priority::raise(),
            stats: LinkStats::default(),
            pacer,
        }
    }

    pub(super) fn run(mut self) -> io::Result<LinkStats> {
        while !self.pacer.control.is_stopped() {
            let now = self.deliver_due();
            let slack = self.agenda.next().map_or(Duration::MAX, |next| next.saturating_sub(now));
            if slack > ERRAND_TIME {
                self.run_errand();
                self.wait()?;
            }
            self.rest();
        }
        Ok(self.snapshot())
    }

    /// Everything whose moment has come.
    fn deliver_due(&mut self) -> Moment {
        loop {
            let now = self.watch.now();
            match self.agenda.pop_due(now) {
                Some((_, LISTENER)) => self.listen_again(),
                Some((at, id)) => self.handle_deadline(at, id, now),
                None => return now,
            }
        }
    }

    fn handle_deadline(&mut self, at: Moment, id: u64, now: Moment) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if connection.scheduled != Some(at) {
            return; // an entry that an earlier one overtook
        }
        connection.scheduled = None;
        for side in Side::BOTH {
            let bottleneck = &mut self.directions[side.index()].bottleneck;
            connection.pipes[side.index()].lane.advance(now, bottleneck);
        }
        if connection.dial_at.is_some_and(|at| at <= now) {
            connection.dial_at = None;
            self.dial(id, now);
        }
        for side in Side::BOTH {
            self.release(id, side);
        }
        self.settle(id);
    }

    /// Takes what has left a lane, and delivers it.
    fn release(&mut self, id: u64, from: Side) {
        loop {
            let now = self.watch.now();
            let Some(connection) = self.connections.get_mut(&id) else { return };
            let Some((release, ready)) = connection.take_due(from, now) else { return };
            if !ready {
                self.stats.blocked += 1;
            } else if self.watch.was_stalled(release.at) {
                self.stats.stalled += 1;
            } else {
                self.stats.note_error(now.saturating_sub(release.at));
            }
            self.deliver(id, from);
        }
    }

    fn deliver(&mut self, id: u64, from: Side) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        match connection.deliver(from, CHUNK, &mut self.directions[from.index()]) {
            Delivery::Done | Delivery::Blocked => {}
            Delivery::More => Self::queue_delivery(&mut self.owing, connection, id, from),
            Delivery::Refused => Self::queue_read(&mut self.readable, connection, id, from.other()),
        }
        self.readable.extend(self.paused.drain(..));
    }

    /// After anything happened to a connection: forgets it if it is over, else notes when it is next due.
    fn settle(&mut self, id: u64) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if connection.is_over() {
            for (direction, pipe) in self.directions.iter_mut().zip(&connection.pipes) {
                direction.held -= pipe.held();
            }
            self.connections.remove(&id);
            self.readable.extend(self.paused.drain(..));
            return;
        }
        let Some(next) = connection.next_event() else { return };
        if connection.scheduled.is_none_or(|scheduled| next < scheduled) {
            connection.scheduled = Some(next);
            self.agenda.add(next, id);
        }
    }

    /// One read, or one more piece of a large delivery.
    fn run_errand(&mut self) {
        if let Some((id, from)) = self.owing.pop_front() {
            if let Some(connection) = self.connections.get_mut(&id) {
                connection.pipes[from.index()].delivery_queued = false;
            }
            self.deliver(id, from);
            self.settle(id);
        }
        if let Some((id, side)) = self.readable.pop_front() {
            self.read(id, side);
            self.settle(id);
        }
    }

    fn queue_read(readable: &mut VecDeque<(u64, Side)>, connection: &mut Connection, id: u64, side: Side) {
        if connection.is_readable(side) && !connection.pipes[side.index()].read_queued {
            connection.pipes[side.index()].read_queued = true;
            readable.push_back((id, side));
        }
    }

    fn queue_delivery(owing: &mut VecDeque<(u64, Side)>, connection: &mut Connection, id: u64, from: Side) {
        if connection.owes(from) && !connection.pipes[from.index()].delivery_queued {
            connection.pipes[from.index()].delivery_queued = true;
            owing.push_back((id, from));
        }
    }

    fn read(&mut self, id: u64, side: Side) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let direction = &mut self.directions[side.index()];
        let held = connection.pipes[side.index()].held();
        let share = CONNECTION_SHARE.saturating_sub(held);
        let common = self.pacer.spec.buffer.saturating_sub(direction.held).max(share);
        let room = self.pacer.spec.connection_buffer().saturating_sub(held).min(common).min(CHUNK);
        if room == 0 {
            connection.pipes[side.index()].paused = true;
            self.paused.push((id, side)); // and stays marked as queued
            return;
        }
        connection.pipes[side.index()].read_queued = false;
        connection.read(side, &mut self.watch, &mut self.buffer[..room], direction);
        Self::queue_read(&mut self.readable, connection, id, side);
    }

    /// Sleeps as long as a real-time thread has to, or until the next deadline.
    fn rest(&mut self) {
        if self.scheduling != Scheduling::RealTime {
            return;
        }
        let now = self.watch.now();
        let owed = self.duty.sleep_owed(now);
        let until = self.agenda.next().map_or(now + owed, |next| next.min(now + owed));
        if until > now {
            self.watch.sleep_until(Some(until));
            std::thread::sleep(until - now);
            self.note_sleep(now);
        }
    }

    fn note_sleep(&mut self, since: Moment) {
        let now = self.watch.now();
        self.duty.slept(now - since, now);
    }

    /// Sleeps until something happens or the next deadline is near; only looks, if there is work to do.
    fn wait(&mut self) -> io::Result<()> {
        let busy = !self.readable.is_empty() || !self.owing.is_empty();
        let now = self.watch.now();
        let next = self.agenda.next();
        let timeout = match next {
            _ if busy => Some(Duration::ZERO),
            Some(next) => Some(next.saturating_sub(now + SPIN_TIME)),
            None => None,
        };
        let sleeps = timeout != Some(Duration::ZERO);
        if sleeps {
            self.watch.sleep_until(timeout.map(|timeout| now + timeout));
        }
        self.wait_for_events(timeout)?;
        if sleeps {
            self.note_sleep(now);
        }
        let mut arrivals = std::mem::take(&mut self.arrivals);
        for event in arrivals.drain(..) {
            match event.data.u64() {
                LISTENER => self.accept()?,
                CONTROL => self.answer(),
                token => self.handle_event(token >> 1, token & 1, event.flags),
            }
        }
        self.arrivals = arrivals;
        Ok(())
    }

    /// Takes the events that come within `timeout`. Linux before 5.11 knows `epoll_wait` with whole milliseconds only, so what
    /// is shorter is waited for by `ppoll`.
    fn wait_for_events(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let events = &self.pacer.events;
        if let Some(timeout) = timeout.filter(|timeout| !timeout.is_zero()) {
            let timeout = Timespec::try_from(timeout).ok();
            match event::poll(&mut [PollFd::new(events, PollFlags::IN)], timeout.as_ref()) {
                Ok(0) | Err(Errno::INTR) => return Ok(()),
                Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let at_once = timeout.map(|_| Timespec::default());
        match epoll::wait(events, rustix::buffer::spare_capacity(&mut self.arrivals), at_once.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn handle_event(&mut self, id: u64, side: u64, flags: epoll::EventFlags) {
        let side = Side::BOTH[side as usize];
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let Some(socket) = connection.socket(side) else { return };
        socket.note(flags);
        if side == Side::Target && connection.finish_connecting(self.watch.now()) == Some(false) {
            self.stats.refused += 1;
        }
        Self::queue_read(&mut self.readable, connection, id, side);
        Self::queue_delivery(&mut self.owing, connection, id, side.other());
        self.settle(id);
    }

    fn accept(&mut self) -> io::Result<()> {
        loop {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            match rustix::net::accept_with(&self.pacer.listener, flags) {
                Ok(fd) => self.open(Socket::accepted(fd)),
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(_) => {
                    // Most likely out of descriptors: the event would come again at once, and again.
                    epoll::delete(&self.pacer.events, &self.pacer.listener)?;
                    self.agenda.add(self.watch.now() + ACCEPT_PAUSE, LISTENER);
                    return Ok(());
                }
            }
        }
    }

    fn listen_again(&mut self) {
        let token = epoll::EventData::new_u64(LISTENER);
        if epoll::add(&self.pacer.events, &self.pacer.listener, token, epoll::EventFlags::IN).is_err() {
            self.agenda.add(self.watch.now() + ACCEPT_PAUSE, LISTENER);
        }
    }

    fn open(&mut self, client: Socket) {
        let id = self.stats.connections;
        if client.register(&self.pacer.events, token(id, Side::Client)).is_err() {
            return;
        }
        self.stats.connections += 1;
        let now = self.watch.now();
        self.connections.insert(id, Connection::new(&self.pacer.spec, client, now, id));
        self.settle(id);
    }

    fn dial(&mut self, id: u64, now: Moment) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let dialled = Socket::dial(&self.pacer.target, &self.pacer.prepare).and_then(|socket| {
            socket.register(&self.pacer.events, token(id, Side::Target))?;
            Ok(socket)
        });
        match dialled {
            Ok(socket) => connection.dialled(socket),
            // A unix socket whose queue is full: TCP would send its SYN again.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                connection.dial_at = Some(now + DIAL_PAUSE);
            }
            Err(_) => {
                self.stats.refused += 1;
                connection.broken(Side::Target, now);
            }
        }
    }

    fn answer(&mut self) {
        for asker in self.pacer.control.take_asked() {
            // Whoever asked may have gone since.
            let _ = asker.send(self.snapshot());
        }
    }

    fn snapshot(&self) -> LinkStats {
        let mut stats = self.stats.clone();
        stats.bytes_up = self.directions[Side::Client.index()].delivered;
        stats.bytes_down = self.directions[Side::Target.index()].delivered;
        stats.scheduling = self.scheduling;
        stats.stalls = self.watch.stalls;
        stats.preemptions = self.watch.preemptions;
        stats
    }
}

fn token(id: u64, side: Side) -> u64 {
    id << 1 | side.index() as u64
}

/// How long before a deadline the pacer wakes to spin: a wake-up takes 20 to 70 µs.
const SPIN_TIME: Duration = Duration::from_micros(80);

/// No read, write or look at the sockets is begun so close to a deadline.
const ERRAND_TIME: Duration = Duration::from_micros(20);

/// Bytes read or written at once: more would keep other connections waiting for longer than [`ERRAND_TIME`].
const CHUNK: usize = 64 << 10;

/// What each connection may hold however full its direction is, so that one that nobody reads from cannot stop the
/// others.
const CONNECTION_SHARE: usize = 64 << 10;

/// How long not to accept after the system refused a descriptor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// How long not to dial after the target's queue was full.
const DIAL_PAUSE: Duration = Duration::from_millis(1);

const EVENTS_AT_ONCE: usize = 64;
