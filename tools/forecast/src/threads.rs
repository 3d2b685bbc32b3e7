//! Which connections are used by one thread of the program, one after the other.
//!
//! A trace shows connections, not threads. Two connections may have trips that never overlap, although chance would
//! have made them overlap several times. One thread uses such connections: a trip of one delays the other. The same
//! holds for a connection that is opened after another one's last trip. All others are independent. [`crate::pool`]
//! handles connections of a pool that hands out the one given back last.

use std::collections::BTreeSet;

use onetrip_ledger::timeline::Waterfall;

use crate::pool;

/// Overlaps that chance must predict before their absence proves anything: with four, one in fifty independent pairs
/// is mistaken for one thread.
const EXPECTED_OVERLAPS_MIN: f64 = 4.0;
/// Threads that a connection is held against for taking turns; more are taken to be independent.
const COMPARED_MAX: usize = 64;

/// Start and end of something, in nanoseconds.
type Interval = (u64, u64);

/// What is known of one thread while connections are dealt out.
#[derive(Debug, Default)]
struct Thread {
    /// Trips in order.
    busy: Vec<Interval>,
    busy_ns: u64,
    last_end: u64,
}

/// The thread of every span of every lane of the waterfall, as [`Waterfall::all_lanes`] gives them; threads count up
/// from nought in the order in which they begin.
pub(crate) fn threads(waterfall: &Waterfall) -> Vec<Vec<usize>> {
    pool::threads(waterfall).unwrap_or_else(|| {
        let lanes = waterfall.all_lanes().zip(of_lanes(waterfall));
        lanes.map(|(lane, thread)| vec![thread; lane.spans.len()]).collect()
    })
}

/// The thread of every lane, where connections are not shared by threads.
fn of_lanes(waterfall: &Waterfall) -> Vec<usize> {
    let mut lanes: Vec<(usize, u32, Interval)> = waterfall
        .all_lanes()
        .enumerate()
        .filter_map(|(place, lane)| {
            let first = lane.spans.first()?;
            let last = lane.spans.iter().map(|span| span.ended_ns).max()?;
            Some((place, lane.connection, (first.started_ns, last)))
        })
        .collect();
    lanes.sort_by_key(|(place, _, life)| (life.0, *place));
    let mut threads: Vec<Thread> = Vec::new();
    // Threads by the ends of their last trips.
    let mut ends: BTreeSet<(u64, usize)> = BTreeSet::new();
    let mut chosen = vec![0; waterfall.connections()];
    for (place, connection, life) in lanes {
        let trips = waterfall.trips_apart(connection);
        let thread = choose(&threads, &ends, &trips, life).unwrap_or_else(|| {
            threads.push(Thread::default());
            threads.len() - 1
        });
        ends.remove(&(threads[thread].last_end, thread));
        threads[thread].take(&trips, life);
        ends.insert((threads[thread].last_end, thread));
        chosen[place] = thread;
    }
    chosen
}

/// The thread that used the connection, if it is one that is known.
fn choose(
    threads: &[Thread],
    ends: &BTreeSet<(u64, usize)>,
    trips: &[Interval],
    life: Interval,
) -> Option<usize> {
    if let Some((_, thread)) = ends.range(..=(life.0, usize::MAX)).next_back() {
        return Some(*thread);
    }
    threads.iter().take(COMPARED_MAX).position(|thread| thread.takes_turns_with(trips, life))
}

impl Thread {
    fn take(&mut self, trips: &[Interval], life: Interval) {
        let is_sorted = trips.is_sorted() && self.busy.last().is_none_or(|last| Some(last) <= trips.first());
        self.busy.extend_from_slice(trips);
        // Connections mostly come one after another.
        if !is_sorted {
            self.busy.sort_unstable();
        }
        self.busy_ns += busy_ns(trips);
        self.last_end = self.last_end.max(life.1);
    }

    /// Whether no trip overlaps although chance would have made some do so.
    fn takes_turns_with(&self, trips: &[Interval], life: Interval) -> bool {
        let (Some(own_first), Some(own_last)) = (self.busy.first(), self.busy.last()) else { return false };
        let common = (own_first.0.max(life.0), own_last.1.min(life.1));
        let within = |(start, end): &Interval| *start >= common.0 && *end <= common.1;
        let window = common.1.saturating_sub(common.0);
        if window == 0 {
            return false;
        }
        let (theirs, own): (Vec<Interval>, Vec<Interval>) = (
            trips.iter().copied().filter(within).collect(),
            self.busy.iter().copied().filter(within).collect(),
        );
        let share = |trips: &[Interval]| busy_ns(trips) as f64 / window as f64;
        let expected = theirs.len() as f64 * share(&own) + own.len() as f64 * share(&theirs);
        expected >= EXPECTED_OVERLAPS_MIN && !overlap(&self.busy, trips)
    }
}

fn busy_ns(trips: &[Interval]) -> u64 {
    trips.iter().map(|(start, end)| end - start).sum()
}

/// Whether any interval of one list, both sorted, overlaps one of the other.
fn overlap(one: &[Interval], other: &[Interval]) -> bool {
    let (mut left, mut right) = (one.iter().peekable(), other.iter().peekable());
    while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
        if a.0 < b.1 && b.0 < a.1 {
            return true;
        }
        if a.1 <= b.1 {
            left.next()
        } else {
            right.next()
        };
    }
    false
}

#[cfg(test)]
mod tests {
    use onetrip_ledger::timeline::TripSample;

    use super::*;

    const MS: u64 = 1_000_000;

    fn waterfall(trips: impl IntoIterator<Item = (u32, u64, u64)>) -> Waterfall {
        let mut waterfall = Waterfall::default();
        for (connection, started_ns, ended_ns) in trips {
            waterfall.add(TripSample { connection, started_ns, ended_ns, ..TripSample::default() });
        }
        waterfall
    }

    #[test]
    fn connections_one_after_another_are_one_thread() {
        let trips =
            (0..5).map(|number| (number, u64::from(number) * 10 * MS, (u64::from(number) * 10 + 4) * MS));
        assert_eq!(of_lanes(&waterfall(trips)), [0, 0, 0, 0, 0]);
    }

    #[test]
    fn connections_that_take_turns_are_one_thread() {
        let trips = (0..40)
            .map(|number| (number % 2, u64::from(number) * 10 * MS, (u64::from(number) * 10 + 4) * MS));
        assert_eq!(of_lanes(&waterfall(trips)), [0, 0]);
    }

    #[test]
    fn connections_that_overlap_once_are_two_threads() {
        let turns = (0..40)
            .map(|number| (number % 2, u64::from(number) * 10 * MS, (u64::from(number) * 10 + 4) * MS));
        let trips = turns.chain([(0, 500 * MS, 510 * MS), (1, 505 * MS, 515 * MS)]);
        assert_eq!(of_lanes(&waterfall(trips)), [0, 1]);
    }

    #[test]
    fn a_few_short_trips_that_miss_each_other_prove_nothing() {
        let trips =
            (0..10).map(|number| (number % 2, u64::from(number) * 10 * MS, u64::from(number) * 10 * MS + MS));
        assert_eq!(of_lanes(&waterfall(trips)), [0, 1]);
    }

    #[test]
    fn a_connection_follows_the_thread_that_was_free_last() {
        let trips = [(1, 0, 9), (2, 2, 6), (3, 7, 8), (4, 10, 12)];
        assert_eq!(of_lanes(&waterfall(trips)), [0, 1, 1, 0]);
    }
}
