//! TCP's congestion window as a Linux sender keeps it on a path without loss. Sources: RFC 5681, RFC 6928 (initial
//! window), RFC 7661 in spirit (a window grows only while it is used), and `net/ipv4/tcp_output.c` of Linux:
//! `tcp_cwnd_validate`, `tcp_cwnd_restart`, `tcp_slow_start_after_idle_check`.

use std::collections::VecDeque;
use std::time::Duration;

use crate::Moment;

/// Payload of a full segment on Ethernet: 1500 less 20 (IP), 20 (TCP) and 12 (timestamps).
pub const MSS: usize = 1448;

/// Segments a fresh connection may have under way (RFC 6928).
pub const INITIAL_WINDOW: usize = 10;

/// Linux adds this to the smoothed round-trip time to get the time after which an idle sender distrusts its window.
pub const RTO_FLOOR: Duration = Duration::from_millis(200);

/// What one sender may have under way. It starts at [`INITIAL_WINDOW`] segments, grows by what is acknowledged while
/// it is in full use (so it doubles per round trip), and is halved per retransmission timeout of idleness, down to
/// where it started. Without loss nothing else shrinks it.
#[derive(Debug, Clone)]
pub struct TcpWindow {
    window: usize,
    timeout: Duration,
    in_flight: VecDeque<Flight>,
    /// Sequence numbers, in segments: sent so far, acknowledged so far.
    sent: u64,
    acknowledged: u64,
    last_sent: Option<Moment>,
    /// Whether this burst has had to wait for an acknowledgement. From then on each acknowledgement lets its share
    /// go, so that the window stays full until the burst ends, however little of it is left for the last round trip.
    waited: bool,
    usage: Usage,
}

#[derive(Debug, Clone, Copy)]
struct Flight {
    acknowledged_at: Moment,
    segments: usize,
}

/// How much of the window was used, over the last window's worth of data.
#[derive(Debug, Clone, Copy, Default)]
struct Usage {
    full: bool,
    segments_max: usize,
    valid_until: u64,
}

impl TcpWindow {
    /// A fresh connection over a path of this round-trip time.
    pub fn new(rtt: Duration) -> Self {
        Self {
            window: INITIAL_WINDOW,
            timeout: rtt + RTO_FLOOR,
            in_flight: VecDeque::new(),
            sent: 0,
            acknowledged: 0,
            last_sent: None,
            waited: false,
            usage: Usage::default(),
        }
    }

    /// Segments that may be under way, as of the last call of [`room`](Self::room).
    pub fn segments(&self) -> usize {
        self.window
    }

    /// Notes that the application writes at `now`, after everything it wrote before had left. A sender that was idle
    /// for longer than its timeout distrusts its window.
    pub fn begin_burst(&mut self, now: Moment) {
        self.take_acknowledgements(now);
        self.waited = false;
        let Some(last_sent) = self.last_sent else { return };
        if !self.in_flight.is_empty() {
            return;
        }
        let mut idle = now.saturating_sub(last_sent);
        while idle > self.timeout && self.window > INITIAL_WINDOW {
            idle -= self.timeout;
            self.window = (self.window / 2).max(INITIAL_WINDOW);
        }
    }

    /// Bytes that may leave at `now`, in whole segments. Takes in every acknowledgement that is back by then; never
    /// call it with an earlier moment than before.
    pub fn room(&mut self, now: Moment) -> usize {
        self.take_acknowledgements(now);
        let segments = self.window.saturating_sub(self.in_flight_segments());
        self.waited |= segments == 0;
        segments * MSS
    }

    /// Notes that `bytes`, at most [`room`](Self::room), left at `now` and will be acknowledged at `acknowledged_at`.
    pub fn sent(&mut self, now: Moment, bytes: usize, acknowledged_at: Moment) {
        let segments = bytes.div_ceil(MSS);
        self.sent += segments as u64;
        self.last_sent = Some(now);
        match self.in_flight.back_mut() {
            Some(last) if last.acknowledged_at == acknowledged_at => last.segments += segments,
            _ => self.in_flight.push_back(Flight { acknowledged_at, segments }),
        }
        let under_way = self.in_flight_segments();
        let full = self.waited || under_way >= self.window;
        let outdated = self.acknowledged >= self.usage.valid_until;
        if outdated || full || (!self.usage.full && under_way > self.usage.segments_max) {
            self.usage = Usage { full, segments_max: under_way, valid_until: self.sent };
        }
    }

    /// When the next acknowledgement comes back; `None` when nothing is under way.
    pub fn next_acknowledgement(&self) -> Option<Moment> {
        self.in_flight.front().map(|flight| flight.acknowledged_at)
    }

    fn in_flight_segments(&self) -> usize {
        (self.sent - self.acknowledged) as usize
    }

    fn take_acknowledgements(&mut self, now: Moment) {
        while let Some(flight) = self.in_flight.front().filter(|flight| flight.acknowledged_at <= now) {
            let segments = flight.segments;
            self.in_flight.pop_front();
            self.acknowledge(segments);
        }
    }

    fn acknowledge(&mut self, segments: usize) {
        self.acknowledged += segments as u64;
        let limit = if self.usage.full { WINDOW_MAX } else { 2 * self.usage.segments_max };
        self.window = self.window.max((self.window + segments).min(limit));
    }
}

/// Extra round trips that a burst of `bytes` spends waiting for its own acknowledgements, when a window of
/// `window_segments` is open at its start: nought if the burst fits. Counted by [`TcpWindow`] itself, on a path
/// whose bandwidth does not matter.
pub fn slow_start_rounds(bytes: usize, window_segments: usize) -> u32 {
    let rtt = Duration::from_secs(1);
    let mut window = TcpWindow::new(rtt);
    window.window = window_segments.max(1);
    let mut left = bytes;
    let mut rounds = 0;
    let mut now = Moment::ZERO;
    loop {
        let sent = left.min(window.room(now));
        window.sent(now, sent, now + rtt);
        left -= sent;
        if left == 0 {
            return rounds;
        }
        rounds += 1;
        now += rtt;
    }
}

/// Segments under way beyond which a Linux receiver with default settings (`tcp_rmem`: 6 MiB) stops the sender:
/// 3.93 MB, measured on Linux 6.18; before 6.6 it was 3 MiB.
const WINDOW_MAX: usize = 2714;

/// Bytes under way beyond which that receiver stops the sender.
pub(crate) const WINDOW_MAX_BYTES: usize = WINDOW_MAX * MSS;

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    fn ms(value: u64) -> Moment {
        Moment::from_millis(value)
    }

    /// Sends as much as the window allows, once per round trip.
    fn fill_rounds(window: &mut TcpWindow, start: Moment, rounds: u32) -> Vec<usize> {
        let round = |index| {
            let now = start + RTT * index;
            let room = window.room(now);
            window.sent(now, room, now + RTT);
            room / MSS
        };
        (0..rounds).map(round).collect()
    }

    #[test]
    fn a_window_in_full_use_doubles_per_round_trip() {
        let mut window = TcpWindow::new(RTT);
        assert_eq!(fill_rounds(&mut window, ms(0), 5), [10, 20, 40, 80, 160]);
    }

    #[test]
    fn a_burst_that_ends_early_in_a_round_still_opens_the_window_by_it() {
        let mut window = TcpWindow::new(RTT);
        window.begin_burst(ms(0));
        for (round, segments) in [10, 5].into_iter().enumerate() {
            window.room(RTT * round as u32);
            window.sent(RTT * round as u32, segments * MSS, RTT * (round as u32 + 1));
            window.room(RTT * round as u32 + ms(1));
        }
        assert_eq!(window.room(RTT * 2), 25 * MSS);
    }

    #[test]
    fn a_receiver_bounds_the_window() {
        let mut window = TcpWindow::new(RTT);
        let rounds = fill_rounds(&mut window, ms(0), 12);
        assert_eq!(rounds[8..], [2560, WINDOW_MAX, WINDOW_MAX, WINDOW_MAX]);
    }

    #[test]
    fn small_exchanges_do_not_open_the_window() {
        let mut window = TcpWindow::new(RTT);
        for trip in 0..100 {
            assert_eq!(window.room(RTT * trip), 10 * MSS);
            window.sent(RTT * trip, 200, RTT * (trip + 1));
        }
        assert_eq!(window.segments(), 10);
    }

    #[test]
    fn a_window_used_by_more_than_half_still_grows() {
        let mut window = TcpWindow::new(RTT);
        assert_eq!(window.room(ms(0)), 10 * MSS);
        window.sent(ms(0), 6 * MSS, RTT);
        assert_eq!(window.room(RTT), 12 * MSS); // up to twice what was used, as tcp_is_cwnd_limited allows
    }

    #[test]
    fn bytes_under_way_take_up_room_until_acknowledged() {
        let mut window = TcpWindow::new(RTT);
        assert_eq!(window.room(ms(0)), 10 * MSS);
        window.sent(ms(0), 4 * MSS + 1, RTT);
        assert_eq!(window.room(ms(99)), 5 * MSS);
        assert_eq!(window.next_acknowledgement(), Some(RTT));
        assert_eq!(window.room(ms(100)), 10 * MSS);
        assert_eq!(window.next_acknowledgement(), None);
    }

    #[test]
    fn idleness_halves_the_window_per_timeout_down_to_the_initial_one() {
        let opened = || {
            let mut window = TcpWindow::new(RTT); // timeout: 300 ms
            fill_rounds(&mut window, ms(0), 4);
            assert_eq!(window.room(ms(400)), 160 * MSS); // last sent at 300 ms
            window
        };
        let room_at = |now| {
            let mut window = opened();
            window.begin_burst(now);
            window.room(now) / MSS
        };
        assert_eq!(room_at(ms(600)), 160);
        assert_eq!(room_at(ms(601)), 80);
        assert_eq!(room_at(ms(901)), 40);
        assert_eq!(room_at(ms(60_000)), 10);
    }

    #[test]
    fn rounds_count_the_waits_of_a_burst() {
        let kib = 1024;
        assert_eq!(slow_start_rounds(0, 10), 0);
        assert_eq!(slow_start_rounds(10 * MSS, 10), 0);
        assert_eq!(slow_start_rounds(10 * MSS + 1, 10), 1);
        assert_eq!(slow_start_rounds(30 * MSS, 10), 1);
        assert_eq!(slow_start_rounds(30 * MSS + 1, 10), 2);
        assert_eq!(slow_start_rounds(1024 * kib, 10), 6); // 10+20+40+80+160+320 segments hold 890 KiB
        assert_eq!(slow_start_rounds(1024 * kib, 1000), 0);
    }
}
