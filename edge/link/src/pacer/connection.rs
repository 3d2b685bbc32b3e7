use std::collections::VecDeque;

use super::socket::{Read, Socket, Written};
use super::watch::Watch;
use crate::Moment;
use crate::bottleneck::Bottleneck;
use crate::lane::{Lane, Payload, Release};
use crate::spec::LinkSpec;

/// One end of a connection, and the direction that starts there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Target,
}

impl Side {
    pub(super) const BOTH: [Self; 2] = [Self::Client, Self::Target];

    pub(super) fn other(self) -> Self {
        match self {
            Self::Client => Self::Target,
            Self::Target => Self::Client,
        }
    }

    pub(super) fn index(self) -> usize {
        self as usize
    }
}

/// What all connections of one direction share.
#[derive(Debug)]
pub(super) struct Direction {
    pub(super) bottleneck: Bottleneck,
    /// Bytes read and not yet delivered.
    pub(super) held: usize,
    /// Bytes delivered so far.
    pub(super) delivered: u64,
}

/// A relayed connection: two ends, and a pipe from each to the other.
#[derive(Debug)]
pub(super) struct Connection {
    ends: [End; 2],
    pub(super) pipes: [Pipe; 2],
    /// When the SYN reaches the target.
    pub(super) dial_at: Option<Moment>,
    /// The earliest entry of this connection in the agenda.
    pub(super) scheduled: Option<Moment>,
}

#[derive(Debug)]
enum End {
    /// The SYN is still on its way.
    Awaited,
    Connecting(Socket),
    Open(Socket),
    /// It sent a reset, or there was nobody.
    Gone,
}

/// One direction of one connection.
#[derive(Debug)]
pub(super) struct Pipe {
    pub(super) lane: Lane,
    bytes: VecDeque<u8>,
    /// How many of the bytes have left the lane and are due at the receiver.
    due: usize,
    /// What is due after them.
    ending: Option<Payload>,
    source: Source,
    /// The receiver knows that nothing will follow.
    ended: bool,
    /// What is there to be read has waited because the pipe or the direction was full: its stamp says nothing about the path.
    pub(super) paused: bool,
    /// Marks of the pacer's queues.
    pub(super) read_queued: bool,
    pub(super) delivery_queued: bool,
}

/// What the sender of a pipe may still say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Open,
    /// It sent FIN; a reset may follow.
    Finished,
    Reset,
}

/// How far a delivery came.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    /// All that was due is delivered.
    Done,
    /// There is more, after the others had their turn.
    More,
    /// The receiver has to take or say something first.
    Blocked,
    /// The receiver takes no more; what it still said is to be read.
    Refused,
}

impl Connection {
    pub(super) fn new(link: &LinkSpec, client: Socket, now: Moment, number: u64) -> Self {
        let up = Lane::new(link, Lane::client_opens_at(link, now), 2 * number);
        let down = Lane::new(link, Lane::server_opens_at(link, now), 2 * number + 1);
        Self {
            ends: [End::Open(client), End::Awaited],
            pipes: [Pipe::new(up), Pipe::new(down)],
            dial_at: Some(now + link.one_way()),
            scheduled: None,
        }
    }

    /// When there next is something to do without anything happening.
    pub(super) fn next_event(&self) -> Option<Moment> {
        let lanes = self.pipes.iter().filter_map(|pipe| pipe.lane.next_event());
        lanes.chain(self.dial_at).min()
    }

    /// The connection to the target is being made.
    pub(super) fn dialled(&mut self, target: Socket) {
        self.ends[Side::Target.index()] = End::Connecting(target);
    }

    /// The socket of a side, as long as it has one.
    pub(super) fn socket(&mut self, side: Side) -> Option<&mut Socket> {
        match &mut self.ends[side.index()] {
            End::Connecting(socket) | End::Open(socket) => Some(socket),
            End::Awaited | End::Gone => None,
        }
    }

    /// Looks how connecting went, if it has ended: `Some(false)` when nobody was there.
    pub(super) fn finish_connecting(&mut self, now: Moment) -> Option<bool> {
        let end = &mut self.ends[Side::Target.index()];
        match std::mem::replace(end, End::Gone) {
            End::Connecting(socket) if socket.writable => {
                if socket.connected() {
                    *end = End::Open(socket);
                    return Some(true);
                }
                self.broken(Side::Target, now);
                Some(false)
            }
            other => {
                *end = other;
                None
            }
        }
    }

    /// A side is gone: the other hears of it over the path, and what is on its way to that side goes nowhere.
    pub(super) fn broken(&mut self, side: Side, now: Moment) {
        self.ends[side.index()] = End::Gone;
        let pipe = &mut self.pipes[side.index()];
        if pipe.source != Source::Reset {
            pipe.source = Source::Reset;
            pipe.lane.abort(now);
        }
    }

    /// Whether `side` has something to read, and may.
    pub(super) fn is_readable(&self, side: Side) -> bool {
        matches!(&self.ends[side.index()], End::Open(socket) if socket.readable)
    }

    /// Reads once from `side` into its lane, at most `buffer`.
    pub(super) fn read(
        &mut self,
        side: Side,
        watch: &mut Watch,
        buffer: &mut [u8],
        direction: &mut Direction,
    ) {
        let End::Open(socket) = &mut self.ends[side.index()] else { return };
        let pipe = &mut self.pipes[side.index()];
        match socket.read(buffer) {
            Read::Bytes(count, stamp) => {
                let stamp = stamp.filter(|_| !pipe.paused);
                pipe.paused &= socket.readable;
                pipe.bytes.extend(&buffer[..count]);
                direction.held += count;
                pipe.lane.admit(watch.arrival(stamp), count, &mut direction.bottleneck);
            }
            Read::End if pipe.source == Source::Open => {
                pipe.source = Source::Finished;
                pipe.lane.finish(watch.now(), &mut direction.bottleneck);
            }
            Read::Nothing | Read::End => pipe.paused &= socket.readable,
            Read::Broken => self.broken(side, watch.now()),
        }
    }

    /// Takes what has left the lane from `from` by `now`. `Some(true)` if the receiver was ready for it.
    pub(super) fn take_due(&mut self, from: Side, now: Moment) -> Option<(Release, bool)> {
        let pipe = &mut self.pipes[from.index()];
        let release = pipe.lane.pop_due(now)?;
        let ready =
            pipe.due == 0 && matches!(&self.ends[from.other().index()], End::Open(socket) if socket.writable);
        match release.payload {
            Payload::Bytes(bytes) => pipe.due += bytes,
            ending => (pipe.ending, pipe.ended) = (Some(ending), false),
        }
        Some((release, ready))
    }

    /// Hands the receiver what is due, at most `limit` bytes.
    pub(super) fn deliver(&mut self, from: Side, limit: usize, direction: &mut Direction) -> Delivery {
        let pipe = &mut self.pipes[from.index()];
        let end = &mut self.ends[from.other().index()];
        let mut left = limit;
        while pipe.due > 0 {
            let chunk = pipe.bytes.as_slices().0;
            let chunk = &chunk[..chunk.len().min(pipe.due).min(left)];
            let written = match end {
                End::Gone => Written::Broken,
                End::Open(_) if chunk.is_empty() => return Delivery::More,
                End::Open(socket) if socket.writable => socket.write(chunk),
                _ => return Delivery::Blocked,
            };
            match written {
                Written::Bytes(count) => {
                    left -= count;
                    direction.delivered += count as u64;
                    pipe.drop_due(count, direction);
                }
                Written::Nothing => return Delivery::Blocked,
                Written::Broken => {
                    pipe.drop_due(pipe.due, direction);
                    if matches!(end, End::Open(_)) {
                        return Delivery::Refused;
                    }
                }
            }
        }
        self.deliver_ending(from)
    }

    fn deliver_ending(&mut self, from: Side) -> Delivery {
        let pipe = &mut self.pipes[from.index()];
        let end = &self.ends[from.other().index()];
        match (pipe.ending, end) {
            (None, _) => return Delivery::Done,
            (Some(Payload::Reset), End::Open(socket) | End::Connecting(socket)) => socket.reset_on_close(),
            (Some(_), End::Awaited | End::Connecting(_)) => return Delivery::Blocked,
            (Some(_), End::Open(socket)) => socket.finish(),
            (Some(_), End::Gone) => {}
        }
        pipe.ended = true;
        Delivery::Done
    }

    /// Whether `from`'s pipe has something due.
    pub(super) fn owes(&self, from: Side) -> bool {
        let pipe = &self.pipes[from.index()];
        pipe.due > 0 || (pipe.ending.is_some() && !pipe.ended)
    }

    /// Both streams have ended, or somebody heard of a reset.
    pub(super) fn is_over(&self) -> bool {
        let reset = |pipe: &Pipe| pipe.ended && pipe.ending == Some(Payload::Reset);
        self.pipes.iter().any(reset) || self.pipes.iter().all(|pipe| pipe.ended)
    }
}

impl Pipe {
    fn new(lane: Lane) -> Self {
        Self {
            lane,
            bytes: VecDeque::new(),
            due: 0,
            ending: None,
            source: Source::Open,
            ended: false,
            paused: false,
            read_queued: false,
            delivery_queued: false,
        }
    }

    /// Bytes read and not yet delivered.
    pub(super) fn held(&self) -> usize {
        self.bytes.len()
    }

    fn drop_due(&mut self, count: usize, direction: &mut Direction) {
        self.bytes.drain(..count);
        self.due -= count;
        direction.held -= count;
        if self.bytes.is_empty() && self.bytes.capacity() > CAPACITY_KEPT {
            self.bytes.shrink_to(CAPACITY_KEPT);
        }
    }
}

/// A pipe that was once full gives back memory beyond this.
const CAPACITY_KEPT: usize = 256 << 10;
