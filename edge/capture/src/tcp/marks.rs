//! What a segment is, seen from where it was captured: sent again, out of order, after a gap. The terms and their rules are
//! those of Wireshark's `tcp.analysis` fields, so that numbers can be compared.

use std::collections::VecDeque;

use super::{Way, is_after};
use crate::segment::Segment;

/// Segments per direction that wait for their acknowledgement and are remembered.
const UNACKNOWLEDGED_MAX: usize = 512;
/// Duplicate acknowledgements that make a sender send again at once, less those that were not captured.
const DUPLICATES_MIN: u32 = 2;
/// A segment sent again so soon after them was sent again because of them.
const FAST_NS: u64 = 20_000_000;
/// Segments closer together than this may have been reordered, where the round-trip time is not known.
const REORDER_NS: u64 = 3_000_000;

/// What a segment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Marks {
    /// Its bytes were sent before, in any of the ways below.
    pub retransmission: bool,
    /// It was sent again because of duplicate acknowledgements.
    pub fast_retransmission: bool,
    /// It was sent again although its bytes had been acknowledged.
    pub spurious_retransmission: bool,
    /// It came after one that was sent later.
    pub out_of_order: bool,
    /// Segments before it are missing.
    pub lost_segment: bool,
    /// It acknowledges bytes that were not captured.
    pub ack_lost_segment: bool,
    /// It only asks whether the other side is there.
    pub keep_alive: bool,
    /// It says that its sender takes no more.
    pub zero_window: bool,
    /// It uses up what its receiver takes.
    pub window_full: bool,
    /// It acknowledges what was acknowledged before, and nothing else.
    pub duplicate_ack: bool,
}

/// Looks at the segments of one connection in the order of the capture.
#[derive(Debug, Default)]
pub(crate) struct Watcher {
    up: Half,
    down: Half,
    /// From a SYN to the acknowledgement that ends the handshake, in nanoseconds.
    pub(crate) initial_rtt_ns: Option<u64>,
}

/// What one side has sent.
#[derive(Debug, Default)]
struct Half {
    /// The number after its last byte.
    next: Option<u32>,
    next_at_ns: u64,
    acknowledged: u32,
    acknowledged_at_ns: u64,
    duplicates: u32,
    window: u16,
    scale: Option<u8>,
    /// A gap at the end of its bytes was marked at an acknowledgement, and it has acknowledged nothing new since: further
    /// acknowledgements are about the same gap.
    is_gap_marked: bool,
    /// Its last segment only asked whether the other side is there.
    is_keep_alive: bool,
    /// All before this number was captured.
    whole_until: Option<u32>,
    unacknowledged: VecDeque<Sent>,
}

#[derive(Debug, Clone, Copy)]
struct Sent {
    start: u32,
    end: u32,
    at_ns: u64,
    is_again: bool,
}

/// What a segment means beyond its marks.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Noted {
    pub(crate) marks: Marks,
    /// Time from the last segment that it acknowledges to itself.
    pub(crate) rtt_ns: Option<u64>,
    /// When the bytes that are sent again were sent first, or should have been.
    pub(crate) first_sent_ns: Option<u64>,
}

impl Watcher {
    pub(crate) fn see(&mut self, way: Way, segment: &Segment<'_>) -> Noted {
        let initial_rtt_ns = self.initial_rtt_ns;
        let (from, to) = match way {
            Way::Up => (&mut self.up, &mut self.down),
            Way::Down => (&mut self.down, &mut self.up),
        };
        if segment.flags.syn() {
            from.scale = segment.offer.window_scale;
        }
        let length = segment.length + u32::from(segment.flags.syn()) + u32::from(segment.flags.fin());
        let end = segment.sequence.wrapping_add(length);
        let mut noted = Noted::default();
        let marks = &mut noted.marks;
        from.mark_forward(to, segment, marks);
        let goes_beyond = to.whole_until.is_some_and(|until| is_after(segment.acknowledged, until));
        if segment.flags.ack() && goes_beyond {
            let is_before_its_last = to.whole_until != to.next;
            marks.ack_lost_segment = is_before_its_last || (!to.is_gap_marked && to.duplicates == 0);
            to.is_gap_marked |= !is_before_its_last;
            to.whole_until = to.next;
        }
        if length > 0 && !marks.keep_alive {
            from.mark_again(to, segment, end, initial_rtt_ns, marks);
            if marks.retransmission {
                let first = from.unacknowledged.iter().find(|sent| sent.start == segment.sequence);
                noted.first_sent_ns = Some(first.map_or(from.next_at_ns, |sent| sent.at_ns));
            }
        }
        from.sent(segment, end, length, marks);
        if segment.flags.ack() {
            noted.rtt_ns = to.acknowledge(segment);
        }
        noted
    }
}

impl Watcher {
    /// The clock was set: what is acknowledged now measures no round trip.
    pub(crate) fn forget_times(&mut self) {
        let halves = [&mut self.up, &mut self.down];
        halves.into_iter().flat_map(|half| &mut half.unacknowledged).for_each(|sent| sent.is_again = true);
    }
}

impl Half {
    /// Marks that depend on the window and on what was sent before.
    fn mark_forward(&mut self, to: &Self, segment: &Segment<'_>, marks: &mut Marks) {
        let flags = segment.flags;
        let opens_or_ends = flags.syn() || flags.fin() || flags.rst();
        let is_probe = segment.length == 1 && self.next == Some(segment.sequence) && to.window == 0;
        marks.zero_window = segment.window == 0 && !opens_or_ends;
        if is_probe {
            return;
        }
        let Some(next) = self.next else { return };
        marks.lost_segment = is_after(segment.sequence, next) && !flags.rst();
        marks.keep_alive = segment.length <= 1 && segment.sequence == next.wrapping_sub(1) && !opens_or_ends;
        if segment.length > 0 && !opens_or_ends {
            if let Some(scale) = to.scale {
                let edge = to.acknowledged.wrapping_add(u32::from(to.window) << scale);
                marks.window_full = segment.sequence.wrapping_add(segment.length) == edge;
            }
        }
        // What answers a keep-alive is no duplicate.
        marks.duplicate_ack = !to.is_keep_alive
            && segment.length == 0
            && segment.window != 0
            && segment.window == self.window
            && segment.sequence == next
            && segment.acknowledged == self.acknowledged
            && !opens_or_ends;
        match marks.duplicate_ack {
            true => self.duplicates += 1,
            false if segment.acknowledged != self.acknowledged => self.duplicates = 0,
            false => {}
        }
    }

    /// Whether the bytes were sent before.
    fn mark_again(
        &self,
        to: &Self,
        segment: &Segment<'_>,
        end: u32,
        initial_rtt_ns: Option<u64>,
        marks: &mut Marks,
    ) {
        let Some(next) = self.next else { return };
        let mut goes_back = is_after(next, segment.sequence);
        if segment.length > 1 && next.wrapping_sub(1) == segment.sequence {
            goes_back = false; // a window probe has sent its first byte
        }
        let data_end = segment.sequence.wrapping_add(segment.length);
        if segment.length > 0 && to.acknowledged_at_ns > 0 && !is_after(data_end, to.acknowledged) {
            marks.retransmission = true;
            marks.spurious_retransmission = true;
            return;
        }
        if !goes_back {
            return;
        }
        let since_ack = segment.at_ns.saturating_sub(to.acknowledged_at_ns);
        if to.duplicates >= DUPLICATES_MIN && to.acknowledged == segment.sequence && since_ack < FAST_NS {
            marks.retransmission = true;
            marks.fast_retransmission = true;
            return;
        }
        let since_next = segment.at_ns.saturating_sub(self.next_at_ns);
        let is_known = self
            .unacknowledged
            .iter()
            .any(|sent| !is_after(sent.start, segment.sequence) && !is_after(data_end, sent.end));
        if since_next < initial_rtt_ns.unwrap_or(REORDER_NS) && next != end && !is_known {
            marks.out_of_order = true;
        } else {
            marks.retransmission = true;
        }
    }

    fn sent(&mut self, segment: &Segment<'_>, end: u32, length: u32, marks: &Marks) {
        if self.next.is_none_or(|next| is_after(end, next)) {
            self.next = Some(end);
            self.next_at_ns = segment.at_ns;
        }
        match self.whole_until {
            None => self.whole_until = self.next,
            Some(until) if until == segment.sequence => self.whole_until = self.next,
            Some(_) => {}
        }
        if length > 0 && !marks.keep_alive {
            if self.unacknowledged.len() >= UNACKNOWLEDGED_MAX {
                self.unacknowledged.pop_front();
            }
            let is_again = marks.retransmission || marks.out_of_order;
            if is_again {
                let overlaps =
                    |sent: &&mut Sent| is_after(end, sent.start) && is_after(sent.end, segment.sequence);
                self.unacknowledged.iter_mut().filter(overlaps).for_each(|sent| sent.is_again = true);
            }
            let (start, at_ns) = (segment.sequence, segment.at_ns);
            self.unacknowledged.push_back(Sent { start, end, at_ns, is_again });
        }
        self.is_keep_alive = marks.keep_alive;
        self.is_gap_marked &= segment.acknowledged == self.acknowledged;
        self.window = segment.window;
        self.acknowledged = segment.acknowledged;
        self.acknowledged_at_ns = segment.at_ns;
    }

    /// The other side has what was sent before this number; how long that took for the last segment of it, if it was sent
    /// once (Karn's rule).
    fn acknowledge(&mut self, segment: &Segment<'_>) -> Option<u64> {
        let mut sample = None;
        while let Some(sent) = self.unacknowledged.front() {
            if is_after(sent.end, segment.acknowledged) {
                break;
            }
            let taken = segment.at_ns.checked_sub(sent.at_ns);
            sample = taken.filter(|_| !sent.is_again && sent.end == segment.acknowledged).or(sample);
            self.unacknowledged.pop_front();
        }
        sample
    }
}
