//! What a path's bandwidth and TCP's window add to trips that move many bytes.
//!
//! The window and the bottleneck are those of the simulated link, so that a forecast and a run over the link agree
//! by construction: see `docs/link.md` for their sources.

use std::time::Duration;

use onetrip_ledger::timeline::{Bulk, Lane as Connection, Span};
use onetrip_link::{Bottleneck, Lane, LinkSpec, MSS};

use crate::Path;

/// Pieces, at most, in which a reply's bytes are taken to be made, evenly over the time that it took.
const PIECES: usize = 32;

/// Both directions of one connection on a path.
#[derive(Debug)]
pub(crate) struct Transfers<'t> {
    path: Path,
    up: Direction,
    down: Direction,
    /// Trips that move many bytes, not yet carried.
    bulks: &'t [Bulk],
    scale: f64,
}

#[derive(Debug)]
struct Direction {
    lane: Lane,
    bottleneck: Bottleneck,
    one_way: Duration,
}

impl<'t> Transfers<'t> {
    /// A fresh connection, with its bulk trips in order and how many there were for each one known.
    pub(crate) fn new(path: Path, bulks: &'t [Bulk], scale: f64) -> Self {
        Self { path, up: Direction::new(path), down: Direction::new(path), bulks, scale }
    }

    /// Time that the path adds to the span's bytes, in nanoseconds, when the span starts `shift` later than observed.
    pub(crate) fn delay_ns(&mut self, connection: &Connection, span: &Span, shift: i64) -> i64 {
        let small = self.path.bandwidth.map_or(0, |bandwidth| nanoseconds(bandwidth.time_for(span.bytes)));
        if self.bulks.is_empty() {
            return small;
        }
        let at = |observed: u64| Duration::from_nanos((observed as i64 + shift).max(0) as u64);
        self.up.touch(at(span.started_ns));
        self.down.touch(at(span.started_ns));
        let mut added = 0;
        while let Some((bulk, rest)) = self.bulks.split_first() {
            if bulk.started_ns > span.ended_ns {
                break;
            }
            debug_assert_eq!(bulk.connection, connection.connection);
            self.bulks = rest;
            let replied = bulk.first_reply_ns;
            let sent = self.up.carry(at(bulk.started_ns), replied - bulk.started_ns, bulk.bytes_sent);
            let begun = at(replied) + sent;
            added += nanoseconds(sent)
                + nanoseconds(self.down.carry(begun, bulk.ended_ns - replied, bulk.bytes_received));
        }
        small + (added as f64 * self.scale) as i64
    }
}

impl Direction {
    fn new(path: Path) -> Self {
        let link = LinkSpec { bandwidth: path.bandwidth, ..LinkSpec::with_rtt(path.rtt) };
        Self {
            lane: Lane::new(&link, Duration::ZERO, 0),
            bottleneck: Bottleneck::new(path.bandwidth),
            one_way: link.one_way(),
        }
    }

    /// Something small is sent: the connection is not idle.
    fn touch(&mut self, now: Duration) {
        self.lane.carry(now, 1, &mut self.bottleneck);
    }

    /// Carries `bytes` that are made from `now` on for `made_in_ns`; returns how much later than one way after they
    /// were made the last of them arrives.
    fn carry(&mut self, now: Duration, made_in_ns: u64, bytes: u64) -> Duration {
        if bytes == 0 {
            return Duration::ZERO;
        }
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        // Whole segments, so that pieces do not make more of them than the bytes need.
        let piece = bytes.div_ceil(PIECES).next_multiple_of(MSS);
        let pieces = bytes.div_ceil(piece);
        let made = |number: usize| {
            let share = u128::from(made_in_ns) * number as u128 / pieces as u128;
            now + Duration::from_nanos(share as u64)
        };
        (1..pieces).for_each(|number| self.lane.admit(made(number), piece, &mut self.bottleneck));
        let end = made(pieces);
        let last = bytes - piece * (pieces - 1);
        let arrived = self.lane.carry(end, last, &mut self.bottleneck).last;
        arrived.saturating_sub(end + self.one_way)
    }
}

fn nanoseconds(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use onetrip_ledger::timeline::{Timeline, TripSample};
    use onetrip_link::{BitsPerSecond, slow_start_rounds};

    use super::*;

    const MS: u64 = 1_000_000;

    /// What the path adds to each of some replies of `bytes`, made at once, `gap_ns` apart.
    fn delays(path: Path, bytes: u64, gap_ns: u64, replies: u64) -> Vec<i64> {
        let mut timeline = Timeline::default();
        for number in 0..replies {
            let started_ns = number * gap_ns;
            timeline.add(TripSample {
                started_ns,
                first_reply_ns: started_ns + MS,
                ended_ns: started_ns + MS,
                bytes_sent: 50,
                bytes_received: bytes,
                ..TripSample::default()
            });
        }
        let mut transfers = Transfers::new(path, timeline.bulks(), timeline.bulk_scale());
        let lane = timeline.waterfall.all_lanes().next().unwrap();
        let mut shift = 0;
        let mut delays = Vec::new();
        for span in &lane.spans {
            let delay = transfers.delay_ns(lane, span, shift);
            shift += delay + nanoseconds(path.rtt);
            delays.push(delay);
        }
        delays
    }

    #[test]
    fn a_large_reply_waits_for_the_rounds_of_a_fresh_window_and_the_next_for_none() {
        let path = Path { rtt: Duration::from_millis(20), bandwidth: None };
        let rounds = i64::from(slow_start_rounds(1_000_000, 10));
        assert_eq!(rounds, 6);
        let expected = rounds * 20 * MS as i64;
        // The acknowledgement of the request, a millisecond earlier, lets a part of the last round go with it.
        assert_eq!(delays(path, 1_000_000, 50 * MS, 2), [expected - MS as i64, 0]);
    }

    #[test]
    fn an_idle_connection_distrusts_its_window() {
        let path = Path { rtt: Duration::from_millis(20), bandwidth: None };
        let delays = delays(path, 1_000_000, 60_000 * MS, 2);
        assert_eq!(delays[0], delays[1]);
    }

    #[test]
    fn bytes_take_their_time_on_a_narrow_path() {
        let path = Path { rtt: Duration::ZERO, bandwidth: BitsPerSecond::new(8_000_000) };
        assert_eq!(delays(path, 10_000, 50 * MS, 1), [10_050_000], "a byte takes a microsecond");
        let bulk = delays(path, 1_000_000, 50 * MS, 1);
        assert!((1_000_000_000..1_003_000_000).contains(&bulk[0]), "{bulk:?}");
    }
}
