//! One capture's part: when each byte of each connection passed.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use onetrip_ledger::sides::TwoSides;

use super::merge::merge;
use crate::capture::{CaptureConfig, roles};
use crate::file::Packet;
use crate::fragments::Fragments;
use crate::link::ip_packet;
use crate::segment::{Endpoint, Segment};
use crate::tcp::{Stream, Way, is_after, is_full};

/// Time in which a sender that waited for the acknowledgement of all that it had sent goes on.
const REACTION_NS: u64 = 1_000_000;
/// Where the longest segment is not known.
const SEGMENT_BYTES: u32 = 1_460;
/// Longest segments that are shorter are not believed.
const SEGMENT_BYTES_MIN: u32 = 64;

/// The packets of a capture that was made at one end of a path. It keeps 24 bytes for each segment with new data.
#[derive(Debug)]
pub struct Side {
    config: CaptureConfig,
    open: HashMap<(Endpoint, Endpoint), Log, RandomState>,
    done: Vec<Log>,
    fragments: Fragments,
    /// Step of the capture's clock.
    resolution_ns: u64,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) client: Endpoint,
    pub(super) server: Endpoint,
    /// Numbers of the SYNs, of client and server.
    pub(super) isns: [Option<u32>; 2],
    pub(super) marks: Vec<Mark>,
    streams: [Stream; 2],
    senders: [Sender; 2],
}

/// All bytes before a place in a direction's stream have passed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    pub(super) at_ns: u64,
    /// Time since the mark before in which the sender waited for the path.
    pub(super) waited_ns: u64,
    /// The number of the next byte.
    pub(super) end: u32,
    pub(super) way: Way,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A SYN: no data.
    Syn,
    Data,
    /// Some of them passed before others that come earlier in the stream. The receiver has them all now; when they left is not
    /// known, as no sender begins with the later ones.
    Filled,
    /// The capture has not seen some of them; they were acknowledged.
    Missed,
}

impl Kind {
    /// Its time is when the last of the bytes arrived, if they arrived there.
    pub(super) fn has_arrival(self) -> bool {
        self != Self::Missed
    }

    /// Its time is when the last of the bytes left, if they came from there.
    pub(super) fn has_leaving(self) -> bool {
        matches!(self, Self::Syn | Self::Data)
    }
}

/// What tells that a sender waits for the path.
#[derive(Debug, Default)]
struct Sender {
    segment_bytes: u32,
    /// Its last segment with data, while the other side has sent none: when, and whether it was as long as can be.
    last: Option<(u64, bool)>,
    acknowledged: Option<u32>,
    /// When something new was acknowledged.
    acknowledged_at_ns: u64,
}

impl Side {
    /// A capture of which nothing was read. Ports are those of the configuration; nothing else of it matters.
    pub fn new(config: &CaptureConfig) -> Self {
        Self {
            config: config.clone(),
            open: HashMap::default(),
            done: Vec::new(),
            fragments: Fragments::default(),
            resolution_ns: 1_000_000_000,
        }
    }

    /// Takes a packet.
    pub fn packet(&mut self, packet: &Packet<'_>) {
        while self.resolution_ns > 1 && packet.at_ns % self.resolution_ns != 0 {
            self.resolution_ns /= 10;
        }
        let Some(ip) = ip_packet(packet.link, packet.data) else { return };
        let wire_bytes = packet.length.saturating_sub(packet.data.len() - ip.len());
        let mut fragments = std::mem::take(&mut self.fragments);
        if let Ok(segment) = Segment::of_ip_packet(ip, wire_bytes, packet.at_ns, &mut fragments) {
            self.segment(&segment);
        }
        self.fragments = fragments;
    }

    /// What this capture, made at the client, and one that was made at the server say together.
    pub fn merge(self, server: Self) -> TwoSides {
        let step_ns = self.resolution_ns.max(server.resolution_ns);
        merge(&self.logs(), &server.logs(), step_ns)
    }

    fn logs(self) -> Vec<Log> {
        let mut logs = self.done;
        logs.extend(self.open.into_values());
        logs.retain(Log::has_data);
        logs.sort_by_key(|log| (log.marks[0].at_ns, log.client, log.server));
        logs
    }

    fn segment(&mut self, segment: &Segment<'_>) {
        let (source, destination) = (segment.source, segment.destination);
        let key = (source.min(destination), source.max(destination));
        let is_new = match self.open.get(&key) {
            Some(known) if known.is_replaced_by(segment) => {
                self.done.extend(self.open.remove(&key));
                true
            }
            known => known.is_none(),
        };
        if is_new {
            let (client, server) = roles(segment, &self.config);
            let is_wanted = self.config.ports.is_empty() || self.config.ports.contains(&server.port);
            if !is_wanted || segment.flags.rst() || (segment.flags.fin() && segment.length == 0) {
                return;
            }
            self.open.insert(key, Log::new(client, server));
        }
        if let Some(log) = self.open.get_mut(&key) {
            log.take(segment);
        }
    }
}

impl Log {
    fn new(client: Endpoint, server: Endpoint) -> Self {
        Self {
            client,
            server,
            isns: [None; 2],
            marks: Vec::new(),
            streams: Default::default(),
            senders: Default::default(),
        }
    }

    fn has_data(&self) -> bool {
        self.marks.iter().any(|mark| mark.kind != Kind::Syn)
    }

    fn is_replaced_by(&self, segment: &Segment<'_>) -> bool {
        segment.flags.syn() && !segment.flags.ack() && self.isns[0] != Some(segment.sequence)
    }

    fn take(&mut self, segment: &Segment<'_>) {
        let way = if segment.source == self.client { Way::Up } else { Way::Down };
        if segment.flags.syn() {
            self.opens(way, segment);
        }
        if segment.flags.ack() && !segment.flags.rst() {
            self.acknowledges(way, segment);
        }
        if segment.length > 0 {
            self.carries(way, segment);
        }
        if segment.flags.fin() {
            self.streams[way as usize].finish();
        }
    }

    fn opens(&mut self, way: Way, segment: &Segment<'_>) {
        let sender = &mut self.senders[way as usize];
        sender.segment_bytes = segment.offer.segment_bytes_max.into();
        if self.isns[way as usize].replace(segment.sequence).is_none() {
            let end = segment.sequence.wrapping_add(1);
            self.streams[way as usize].begin(end);
            self.marks.push(Mark { at_ns: segment.at_ns, waited_ns: 0, end, way, kind: Kind::Syn });
        }
    }

    /// `way` has received what the other side sent.
    fn acknowledges(&mut self, way: Way, segment: &Segment<'_>) {
        let other = way.other();
        let stream = &mut self.streams[other as usize];
        if stream.acknowledged(segment.acknowledged, &mut |_| {}) > 0 {
            let end = stream.next_sequence();
            self.marks.push(Mark { at_ns: segment.at_ns, waited_ns: 0, end, way: other, kind: Kind::Missed });
        }
        let sender = &mut self.senders[other as usize];
        let acknowledged = segment.acknowledged;
        if sender.acknowledged.is_none_or(|before| is_after(acknowledged, before)) {
            sender.acknowledged = Some(acknowledged);
            sender.acknowledged_at_ns = segment.at_ns;
        }
    }

    fn carries(&mut self, way: Way, segment: &Segment<'_>) {
        let stream = &mut self.streams[way as usize];
        let first = segment.first_byte();
        let end = first.wrapping_add(segment.length);
        let before = stream.is_begun().then(|| stream.next_sequence());
        stream.push(first, &[], segment.length, &mut |_| {});
        let next = stream.next_sequence();
        if before == Some(next) {
            return; // sent again, or after a gap
        }
        let kind = match before {
            // The gap was given up.
            Some(before) if is_after(first, before) => Kind::Missed,
            _ if next != end => Kind::Filled,
            _ => Kind::Data,
        };
        let segment_bytes = self.segment_bytes();
        self.senders[way.other() as usize].last = None;
        let sender = &mut self.senders[way as usize];
        let waited_ns = before.map_or(0, |before| sender.waited_ns(segment.at_ns, before));
        sender.last = Some((segment.at_ns, is_full(segment.length, segment_bytes)));
        self.marks.push(Mark { at_ns: segment.at_ns, waited_ns, end: next, way, kind });
    }

    /// Bytes of the longest segment that both sides take.
    fn segment_bytes(&self) -> u32 {
        let offers = self.senders.iter().map(|sender| sender.segment_bytes);
        offers.filter(|bytes| *bytes >= SEGMENT_BYTES_MIN).min().unwrap_or(SEGMENT_BYTES)
    }
}

impl Sender {
    /// How long it waited for the path before it sends the bytes from `next` on: after a segment as long as can be, it goes on only
    /// after an acknowledgement, at once or with more bytes on their way. A sender with nothing to say ends with a shorter one.
    fn waited_ns(&self, now_ns: u64, next: u32) -> u64 {
        let Some((last_ns, true)) = self.last else { return 0 };
        let is_acknowledged = self.acknowledged_at_ns > last_ns;
        let is_at_once = now_ns.saturating_sub(self.acknowledged_at_ns) <= REACTION_NS;
        let is_under_way = self.acknowledged.is_some_and(|end| is_after(next, end));
        if is_acknowledged && (is_at_once || is_under_way) { now_ns.saturating_sub(last_ns) } else { 0 }
    }
}
