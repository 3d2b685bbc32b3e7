//! What one connection's segments tell of its path: times, losses, stalls.

use onetrip_ledger::network::{ConnectionPath, Direction};

use super::marks::Noted;
use super::{TIMESTAMP_BYTES, Way, is_after, is_full};
use crate::segment::Segment;

/// An acknowledgement that was held so long was held on purpose: systems hold them for 40 ms or more.
const HELD_MIN_NS: u64 = 30_000_000;
/// Time in which a system sends what it held back for an acknowledgement.
const RELEASE_NS: u64 = 1_000_000;
/// Time in which a sender that waited for its window goes on.
const REACTION_NS: u64 = 3_000_000;
/// A pause after which senders begin anew to find out how much the path takes.
const IDLE_NS: u64 = 1_000_000_000;
/// Where the longest segment is not known.
const SEGMENT_BYTES: u32 = 1_460;

/// Gathers it.
#[derive(Debug, Default)]
pub(crate) struct Path {
    pub(crate) facts: ConnectionPath,
    /// The client's last SYN: when, the number behind it, and how many bytes of data came with it.
    syn: Option<(u64, u32, u32)>,
    syn_ack_at_ns: Option<u64>,
    /// Times of the legs that acknowledgements have measured, of the client's and the server's: few are counted.
    measured: [u8; 2],
    up: Sender,
    down: Sender,
    turn: Turn,
}

/// What one side does.
#[derive(Debug, Default)]
struct Sender {
    segment_bytes: u32,
    /// Its last short segment, while nothing came in reply: when, and the number after it.
    short: Option<(u64, u32)>,
    /// That segment was acknowledged late: when, and by how much.
    held: Option<(u64, u64)>,
    /// It takes nothing since then.
    closed_at_ns: Option<u64>,
    last_data_ns: u64,
    /// The other side acknowledged something then.
    acknowledged_at_ns: u64,
    /// Its window is as small as at the beginning, and grows: it sends after a pause of its own.
    slow_start: Option<SlowStart>,
}

/// Bytes of the rounds in which a sender finds out how much the path takes.
#[derive(Debug, Default)]
struct SlowStart {
    round_bytes: u64,
    /// Of the round before; zero in the first one.
    before_bytes: u64,
}

impl SlowStart {
    /// A round is over; whether the window still grows. It doubles, or grows by half where acknowledgements are held.
    fn next_round(&mut self) -> bool {
        let grows = self.before_bytes == 0 || 4 * self.round_bytes >= 5 * self.before_bytes;
        self.before_bytes = std::mem::take(&mut self.round_bytes);
        grows
    }
}

/// Request and reply by whose turn it is.
#[derive(Debug, Default)]
struct Turn {
    is_reply: bool,
    request_ends_ns: Option<u64>,
    reply_ends_ns: Option<u64>,
    /// The clock was set since it began: how long it took is not known.
    is_untimed: bool,
}

impl Turn {
    /// The last byte of a reply was its end.
    fn book_reply(&self, facts: &mut ConnectionPath) {
        if self.is_untimed {
            return;
        }
        if let (Some(request_ns), Some(reply_ns)) = (self.request_ends_ns, self.reply_ends_ns) {
            facts.last_byte.add(reply_ns.saturating_sub(request_ns));
        }
    }
}

impl Path {
    /// Takes a segment.
    pub(crate) fn see(&mut self, way: Way, segment: &Segment<'_>, noted: &Noted) {
        self.handshake(way, segment);
        self.count(way, segment, noted);
        self.rtt(way, noted);
        self.stalls(way, segment);
        if segment.length > 0 && !noted.marks.keep_alive && !noted.marks.retransmission {
            self.turn(way, segment);
            self.data(way, segment);
        }
        if segment.flags.ack() {
            self.acknowledgement(way, segment, noted);
        }
    }

    /// The clock was set: nothing that goes on now is measured from what was before.
    pub(crate) fn forget_times(&mut self) {
        (self.syn, self.syn_ack_at_ns) = (None, None);
        self.turn.is_untimed = self.turn.request_ends_ns.is_some();
        for sender in [&mut self.up, &mut self.down] {
            (sender.short, sender.held, sender.slow_start) = (None, None, None);
        }
    }

    /// Round-trip time between the client and where the capture was made, in nanoseconds: zero where it is not known.
    pub(crate) fn client_leg_ns(&self) -> u64 {
        self.facts.client_leg_min_ns.filter(|_| self.is_measured(Way::Up)).unwrap_or(0)
    }

    /// Whether the leg is known of the side that sends this way. One acknowledgement may have been held, or have waited for the
    /// reply: two measure it, or the handshake, whose packets are answered at once.
    fn is_measured(&self, way: Way) -> bool {
        self.facts.initial_rtt_ns.is_some() || self.measured[way as usize] >= 2
    }

    fn handshake(&mut self, way: Way, segment: &Segment<'_>) {
        let (syn, ack) = (segment.flags.syn(), segment.flags.ack());
        if syn {
            let sender = self.sender(way);
            sender.segment_bytes = u32::from(segment.offer.segment_bytes_max);
        }
        match (way, syn, ack) {
            (Way::Up, true, false) => {
                self.facts.syns += 1;
                self.syn = Some((segment.at_ns, segment.first_byte(), segment.length));
            }
            (Way::Down, true, true) => self.syn_ack_at_ns = Some(segment.at_ns),
            // The answer to the SYN need not be in the capture: this acknowledges it.
            (Way::Up, false, true) if self.facts.initial_rtt_ns.is_none() => {
                let Some((asked, first, length)) = self.syn.take() else { return };
                // The server may have taken the data of the SYN.
                if segment.sequence != first && segment.sequence != first.wrapping_add(length) {
                    return;
                }
                let Some(rtt_ns) = segment.at_ns.checked_sub(asked) else { return };
                self.facts.initial_rtt_ns = Some(rtt_ns);
                let is_between = |answered: &u64| (asked..=segment.at_ns).contains(answered);
                if let Some(answered) = self.syn_ack_at_ns.take().filter(is_between) {
                    note_min(&mut self.facts.server_leg_min_ns, answered - asked);
                    note_min(&mut self.facts.client_leg_min_ns, segment.at_ns - answered);
                }
            }
            _ => {}
        }
    }

    fn count(&mut self, way: Way, segment: &Segment<'_>, noted: &Noted) {
        let direction = self.direction(way);
        direction.segments += 1;
        direction.bytes += u64::from(segment.length);
        let marks = noted.marks;
        direction.retransmissions += u64::from(marks.retransmission);
        direction.fast_retransmissions += u64::from(marks.fast_retransmission);
        direction.spurious_retransmissions += u64::from(marks.spurious_retransmission);
        direction.out_of_order += u64::from(marks.out_of_order);
        direction.gaps += u64::from(marks.lost_segment);
        direction.acks_of_gaps += u64::from(marks.ack_lost_segment);
        direction.zero_windows += u64::from(marks.zero_window);
        direction.windows_full += u64::from(marks.window_full);
        if let Some(first_ns) = noted.first_sent_ns.filter(|_| !marks.spurious_retransmission) {
            add_ns(&mut direction.retransmission_wait_ns, segment.at_ns.saturating_sub(first_ns));
        }
    }

    /// An acknowledgement that the server sent measures the way from here to the server and back.
    fn rtt(&mut self, way: Way, noted: &Noted) {
        let Some(rtt_ns) = noted.rtt_ns else { return };
        let measured = &mut self.measured[way as usize];
        *measured = measured.saturating_add(1);
        match way {
            Way::Down => note_min(&mut self.facts.server_leg_min_ns, rtt_ns),
            Way::Up => note_min(&mut self.facts.client_leg_min_ns, rtt_ns),
        }
    }

    fn stalls(&mut self, way: Way, segment: &Segment<'_>) {
        let flags = segment.flags;
        if flags.syn() || flags.fin() || flags.rst() {
            return;
        }
        let sender = self.sender(way);
        match (sender.closed_at_ns, segment.window) {
            (None, 0) => sender.closed_at_ns = Some(segment.at_ns),
            (Some(since_ns), window) if window > 0 => {
                sender.closed_at_ns = None;
                let closed_ns = segment.at_ns.saturating_sub(since_ns);
                add_ns(&mut self.direction(way).zero_window_ns, closed_ns);
            }
            _ => {}
        }
    }

    fn turn(&mut self, way: Way, segment: &Segment<'_>) {
        let (turn, facts) = (&mut self.turn, &mut self.facts);
        match way {
            Way::Up => {
                if turn.is_reply || turn.request_ends_ns.is_none() {
                    turn.book_reply(facts);
                    let before = turn.reply_ends_ns.take();
                    if let Some(reply) = before.filter(|_| !std::mem::take(&mut turn.is_untimed)) {
                        facts.next_request.add(segment.at_ns.saturating_sub(reply));
                    }
                    facts.turns += 1;
                }
                turn.is_reply = false;
                turn.request_ends_ns = Some(segment.at_ns);
            }
            Way::Down => {
                if !turn.is_reply && !turn.is_untimed {
                    if let Some(request) = turn.request_ends_ns {
                        facts.first_byte.add(segment.at_ns.saturating_sub(request));
                    }
                }
                turn.is_reply = turn.request_ends_ns.is_some();
                turn.reply_ends_ns = Some(segment.at_ns);
            }
        }
    }

    /// The reply at hand is the last one.
    pub(crate) fn end_turn(&mut self) {
        self.turn.book_reply(&mut self.facts);
        self.turn = Turn::default();
    }

    fn data(&mut self, way: Way, segment: &Segment<'_>) {
        let rtt_ns = self.rtt_min_ns();
        let leg_ns = match way {
            Way::Up => self.facts.client_leg_min_ns.unwrap_or(0),
            Way::Down => self.facts.server_leg_min_ns.unwrap_or(0),
        };
        self.sender(way.other()).short = None;
        self.sender(way.other()).held = None;
        self.sender(way.other()).slow_start = None;
        let sender = self.sender(way);
        let held = sender.held.take();
        let longest = self.segment_bytes();
        if let Some((acknowledged_at_ns, held_ns)) = held.filter(|_| segment.length < longest) {
            // The sender's own system goes on at once; its segment passes here the way to it and back later.
            if segment.at_ns.saturating_sub(acknowledged_at_ns) <= leg_ns.saturating_add(RELEASE_NS) {
                let direction = self.direction(way);
                direction.delayed_ack_pairs += 1;
                add_ns(&mut direction.delayed_ack_ns, held_ns);
            }
        }
        let sender = self.sender(way);
        let since_ack = segment.at_ns.saturating_sub(sender.acknowledged_at_ns);
        let pause = segment.at_ns.saturating_sub(sender.last_data_ns);
        let is_idle = sender.last_data_ns > 0 && pause >= IDLE_NS;
        if is_idle {
            sender.slow_start = Some(SlowStart::default());
        }
        // It waited for an acknowledgement, which passed here and let it go on: its next segment comes here after the way to
        // it and back.
        let has_waited = !is_idle
            && rtt_ns.is_some_and(|rtt_ns| {
                rtt_ns >= 1_000_000 && pause >= rtt_ns / 2 && pause < rtt_ns.saturating_mul(3)
            })
            && since_ack <= leg_ns.saturating_add(REACTION_NS);
        let is_round =
            has_waited && sender.slow_start.as_mut().is_some_and(|slow_start| slow_start.next_round());
        if has_waited && !is_round {
            sender.slow_start = None;
        }
        if let Some(slow_start) = &mut sender.slow_start {
            slow_start.round_bytes += u64::from(segment.length);
        }
        sender.last_data_ns = segment.at_ns;
        let end = segment.sequence.wrapping_add(segment.length);
        sender.short = (!is_full(segment.length, longest)).then_some((segment.at_ns, end));
        if is_round {
            let direction = self.direction(way);
            direction.slow_start_rounds += 1;
            add_ns(&mut direction.slow_start_ns, pause);
        }
    }

    /// `way` acknowledges what the other side sent.
    fn acknowledgement(&mut self, way: Way, segment: &Segment<'_>, noted: &Noted) {
        let rtt_ns = self.rtt_min_ns().unwrap_or(0);
        let sender = self.sender(way.other());
        let is_new =
            is_after(segment.acknowledged, sender.short.map_or(segment.acknowledged, |(_, end)| end));
        sender.acknowledged_at_ns = segment.at_ns;
        let is_alone = segment.length == 0 && !noted.marks.duplicate_ack && !segment.flags.fin();
        if let Some((sent_ns, end)) = sender.short.filter(|_| is_alone && !is_new) {
            let held_ns = segment.at_ns.saturating_sub(sent_ns).saturating_sub(rtt_ns);
            if segment.acknowledged == end && held_ns >= HELD_MIN_NS {
                sender.held = Some((segment.at_ns, held_ns));
            }
        }
    }

    /// Bytes of the longest segment that both sides take.
    fn segment_bytes(&self) -> u32 {
        let offers = [self.up.segment_bytes, self.down.segment_bytes];
        let known = offers.into_iter().filter(|bytes| *bytes > 2 * TIMESTAMP_BYTES).min();
        known.unwrap_or(SEGMENT_BYTES)
    }

    /// The smallest round-trip time of the whole path that was seen.
    pub(crate) fn rtt_min_ns(&self) -> Option<u64> {
        if !self.is_measured(Way::Up) || !self.is_measured(Way::Down) {
            return None;
        }
        let legs = self.facts.client_leg_min_ns.zip(self.facts.server_leg_min_ns);
        legs.map(|(client, server)| client.saturating_add(server))
    }

    fn sender(&mut self, way: Way) -> &mut Sender {
        match way {
            Way::Up => &mut self.up,
            Way::Down => &mut self.down,
        }
    }

    fn direction(&mut self, way: Way) -> &mut Direction {
        match way {
            Way::Up => &mut self.facts.up,
            Way::Down => &mut self.facts.down,
        }
    }
}

fn note_min(least: &mut Option<u64>, value: u64) {
    *least = Some(least.map_or(value, |least| least.min(value)));
}

/// Times of a file may be anything.
fn add_ns(sum: &mut u64, value: u64) {
    *sum = sum.saturating_add(value);
}
