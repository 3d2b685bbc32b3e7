//! Whether a program's threads take their connections from a pool that hands out the one given back last.
//!
//! Such a pool serves many threads by few connections while the database is near, and by all of them when it is far.
//! Near the database, one connection carried the requests of several threads, one after the other. Far from it, these
//! threads will wait at the same time.

use std::collections::BTreeSet;

use onetrip_ledger::timeline::{Lane, Waterfall};

/// Connections that must be idle for the one taken to count as a choice.
const IDLE_MIN: usize = 3;
/// Choices that must have been seen.
const CHOICES_MIN: u32 = 20;
/// Share of the choices that must have fallen on the connection given back last. Chance is a third of them at most,
/// and threads with connections of their own come below it, because the last one back has just begun to think; pools
/// that do not keep strictly to the order (pgx's has two stacks) were seen at 0.62.
const LAST_BACK_MIN: f64 = 0.5;
/// Trips of one connection that are no further apart belong to one use of it: a driver that prepares and then runs.
const TURN_NS: u64 = 100_000;

/// One use of a connection by one thread: a trip, the trips of a transaction, or trips without a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Use {
    lane: usize,
    /// Its trips by place in the lane: from the first to the one before the last bound.
    first: usize,
    end: usize,
    started_ns: u64,
    ended_ns: u64,
}

/// The threads that took turns at the connections of a pool: for every lane of the waterfall, as
/// [`Waterfall::all_lanes`] gives them, the thread of each span. `None` if the connections do not look like a pool's,
/// or if nothing says that several threads use it.
pub(crate) fn threads(waterfall: &Waterfall) -> Option<Vec<Vec<usize>>> {
    if waterfall.is_joined() {
        return None;
    }
    let lanes: Vec<&Lane> = waterfall.all_lanes().collect();
    let connections = lanes.iter().filter(|lane| carries_work(lane)).count();
    let mut uses: Vec<Use> =
        lanes.iter().enumerate().flat_map(|(place, lane)| uses_of(place, lane)).collect();
    uses.sort_by_key(|one| (one.started_ns, one.lane));
    let threads = if gives_out_the_last(&uses, lanes.len()) { concurrency(&uses, connections) } else { 1 };
    (threads > 1).then(|| deal(&uses, &lanes, threads))
}

/// Whether anything but the opening of a session went over the connection; drivers that are refused TLS, for one,
/// give theirs up and open another.
fn carries_work(lane: &Lane) -> bool {
    lane.spans.iter().any(|span| !span.connect)
}

fn uses_of(place: usize, lane: &Lane) -> Vec<Use> {
    let mut uses: Vec<Use> = Vec::new();
    let mut goes_on = false;
    for (number, span) in lane.spans.iter().enumerate() {
        match uses.last_mut() {
            Some(last) if goes_on || span.started_ns.saturating_sub(last.ended_ns) < TURN_NS => {
                last.end = number + 1;
                last.ended_ns = last.ended_ns.max(span.ended_ns);
            }
            _ => uses.push(Use {
                lane: place,
                first: number,
                end: number + 1,
                started_ns: span.started_ns,
                ended_ns: span.ended_ns,
            }),
        }
        goes_on = span.in_transaction || span.connect;
    }
    uses
}

/// Whether a connection that was taken was mostly the one that had been given back last.
fn gives_out_the_last(uses: &[Use], lanes: usize) -> bool {
    let (choices, last_back) = choices(uses, lanes);
    choices >= CHOICES_MIN && f64::from(last_back) >= LAST_BACK_MIN * f64::from(choices)
}

/// How often a connection was taken while others were idle, and how often it was the one given back last.
fn choices(uses: &[Use], lanes: usize) -> (u32, u32) {
    let mut given_back: Vec<Option<u64>> = vec![None; lanes];
    let mut left = vec![0_u32; lanes];
    uses.iter().for_each(|one| left[one.lane] += 1);
    // Those that are used again, by when they were given back.
    let mut waiting: BTreeSet<(u64, usize)> = BTreeSet::new();
    let (mut choices, mut last_back) = (0_u32, 0_u32);
    for one in uses {
        if let Some(own) = given_back[one.lane] {
            waiting.remove(&(own, one.lane));
            let mut idle = waiting.range(..=(one.started_ns, usize::MAX));
            let last = idle.next_back();
            let others = usize::from(last.is_some()) + idle.take(IDLE_MIN).count();
            if others + 1 >= IDLE_MIN {
                choices += 1;
                last_back += u32::from(last.is_none_or(|(other, _)| own >= *other));
            }
        }
        left[one.lane] -= 1;
        given_back[one.lane] = Some(one.ended_ns);
        if left[one.lane] > 0 {
            waiting.insert((one.ended_ns, one.lane));
        }
    }
    (choices, last_back)
}

/// The largest number of threads, one for each connection at most, that explains how often a use began while another
/// was under way: of `n` threads that are each busy for a share `b` of the time, one finds another busy with
/// probability `1 − (1 − b)^(n − 1)`.
fn concurrency(uses: &[Use], connections: usize) -> usize {
    let (Some(first), Some(last)) = (uses.first(), uses.iter().map(|one| one.ended_ns).max()) else {
        return 1;
    };
    let elapsed = last.saturating_sub(first.started_ns).max(1) as f64;
    let busy = uses.iter().map(|one| one.ended_ns - one.started_ns).sum::<u64>() as f64 / elapsed;
    let mut latest_end = 0;
    let mut overlapping = 0_u32;
    for one in uses {
        overlapping += u32::from(one.started_ns < latest_end);
        latest_end = latest_end.max(one.ended_ns);
    }
    let seen = f64::from(overlapping) / uses.len() as f64;
    let doubt = 3.0 * (seen.max(0.01) * (1.0 - seen).max(0.01) / uses.len() as f64).sqrt();
    let explains = |threads: &usize| {
        let share = (busy / *threads as f64).min(1.0);
        let foretold = 1.0 - (1.0 - share).powi(*threads as i32 - 1);
        overlapping > 0 && foretold <= seen + doubt
    };
    (2..=connections).rev().find(explains).unwrap_or(1)
}

/// Deals the uses out: a new connection to a new thread, or to the one that gave up another before it could work with
/// it; any other to the thread that has been idle for longest.
fn deal(uses: &[Use], lanes: &[&Lane], threads: usize) -> Vec<Vec<usize>> {
    let mut chosen: Vec<Vec<usize>> = lanes.iter().map(|lane| vec![0; lane.spans.len()]).collect();
    let mut free_since: Vec<u64> = Vec::with_capacity(threads);
    // Threads that wait for the connection that replaces one they gave up.
    let mut without: Vec<usize> = Vec::new();
    for one in uses {
        let is_new = one.first == 0;
        let replaces = is_new && carries_work(lanes[one.lane]);
        let replaced = without.iter().position(|thread| replaces && free_since[*thread] <= one.started_ns);
        let thread = match replaced {
            Some(place) => without.remove(place),
            None if is_new && free_since.len() < threads => {
                free_since.push(0);
                free_since.len() - 1
            }
            None => (0..free_since.len()).min_by_key(|thread| free_since[*thread]).unwrap_or(0),
        };
        if !carries_work(lanes[one.lane]) {
            without.push(thread);
        }
        free_since[thread] = one.ended_ns;
        chosen[one.lane][one.first..one.end].fill(thread);
    }
    chosen
}

#[cfg(test)]
mod tests {
    use onetrip_ledger::timeline::TripSample;

    use super::*;

    const TRIP_NS: u64 = 300_000;

    /// Threads that think for two to six milliseconds between trips of a pool: `(thread, connection, start)`.
    fn pooled(threads: usize, trips_each: usize, last_back: bool) -> Vec<(usize, u32, u64)> {
        let mut random = fastrand::Rng::with_seed(7);
        let mut think = || random.u64(2_000_000..6_000_000);
        let mut next: Vec<(u64, usize, usize)> =
            (0..threads).map(|thread| (1000 * thread as u64, thread, 0)).collect();
        let mut free_at: Vec<(u64, u32)> = Vec::new();
        let mut trips = Vec::new();
        while let Some(place) = (0..next.len()).min_by_key(|place| next[*place]) {
            let (now, thread, done) = next[place];
            let idle = free_at.iter().enumerate().filter(|(_, (at, _))| *at <= now);
            let taken = if last_back { idle.max_by_key(|(_, free)| **free) } else { None };
            let connection = match taken.map(|(place, _)| place) {
                Some(place) => free_at.remove(place).1,
                None if last_back => free_at.len() as u32 + 100 * thread as u32,
                None => thread as u32,
            };
            free_at.push((now + TRIP_NS, connection));
            trips.push((thread, connection, now));
            next[place] = (now + TRIP_NS + think(), thread, done + 1);
            if done + 1 == trips_each {
                next.remove(place);
            }
        }
        trips
    }

    fn waterfall(trips: &[(usize, u32, u64)]) -> Waterfall {
        let mut waterfall = Waterfall::default();
        for (_, connection, started_ns) in trips {
            let ended_ns = started_ns + TRIP_NS;
            let (connection, started_ns) = (*connection, *started_ns);
            waterfall.add(TripSample { connection, started_ns, ended_ns, ..TripSample::default() });
        }
        waterfall
    }

    #[test]
    fn a_pools_trips_are_dealt_out_evenly() {
        let trips = pooled(8, 50, true);
        let waterfall = waterfall(&trips);
        let busiest = waterfall.all_lanes().map(|lane| lane.trips).max().unwrap();
        assert!(busiest > 80, "of 400 trips, more than an eighth go over one connection: {busiest}");
        let chosen = threads(&waterfall).expect("a pool");
        let count = |thread: usize| chosen.iter().flatten().filter(|one| **one == thread).count();
        let counts: Vec<usize> = (0..waterfall.connections()).map(count).collect();
        assert!(counts.iter().all(|count| (40..=60).contains(count)), "{counts:?}");
    }

    /// What [`choices`] says, by looking at all connections for each use.
    fn by_looking_at_all(uses: &[Use], lanes: usize) -> (u32, u32) {
        let mut given_back: Vec<Option<u64>> = vec![None; lanes];
        let (mut choices, mut last_back) = (0, 0);
        for (place, one) in uses.iter().enumerate() {
            let is_used_again = |lane: usize| uses[place..].iter().any(|later| later.lane == lane);
            if let Some(own) = given_back[one.lane] {
                let idle = (0..lanes).filter(|lane| *lane != one.lane && is_used_again(*lane));
                let since = idle.filter_map(|lane| given_back[lane]);
                let others: Vec<u64> = since.filter(|at| *at <= one.started_ns).collect();
                if others.len() + 1 >= IDLE_MIN {
                    choices += 1;
                    last_back += u32::from(others.iter().all(|other| own >= *other));
                }
            }
            given_back[one.lane] = Some(one.ended_ns);
        }
        (choices, last_back)
    }

    #[test]
    fn choices_are_those_that_a_look_at_all_connections_finds() {
        let mut random = fastrand::Rng::with_seed(29);
        let (mut chosen, mut last) = (0, 0);
        for _ in 0..1_000 {
            let (lanes, moments) = (random.usize(1..12), random.u64(1..200));
            let mut uses: Vec<Use> = (0..random.usize(1..60))
                .map(|_| {
                    let started_ns = random.u64(0..moments);
                    let ended_ns = started_ns + random.u64(0..20);
                    Use { lane: random.usize(0..lanes), first: 0, end: 1, started_ns, ended_ns }
                })
                .collect();
            uses.sort_by_key(|one| (one.started_ns, one.lane));
            let found = choices(&uses, lanes);
            assert_eq!(found, by_looking_at_all(&uses, lanes), "{uses:?}");
            chosen += found.0;
            last += found.1;
        }
        assert!(chosen > 5_000 && last > 1_000 && last < chosen, "{chosen} {last}");
    }

    #[test]
    fn connections_of_their_own_are_no_pool() {
        assert_eq!(threads(&waterfall(&pooled(8, 50, false))), None);
    }

    #[test]
    fn one_thread_that_goes_back_to_one_of_its_connections_is_one_thread() {
        let opened = (0..3).map(|number| (0, number, u64::from(number) * 1_000_000));
        let looped = (3..200).map(|number| (0, 2, number * 1_000_000));
        let closed = (0..3).map(|number| (0, number, (300 + u64::from(number)) * 1_000_000));
        let trips: Vec<_> = opened.chain(looped).chain(closed).collect();
        assert_eq!(threads(&waterfall(&trips)), None);
    }

    #[test]
    fn the_trips_of_a_transaction_stay_with_one_thread() {
        let mut spans = Waterfall::default();
        for (number, in_transaction) in [(0, true), (1, true), (2, false), (3, false)] {
            let started_ns = number * 1_000_000;
            let ended_ns = started_ns + TRIP_NS;
            spans.add(TripSample { started_ns, ended_ns, in_transaction, ..TripSample::default() });
        }
        let uses = uses_of(0, spans.all_lanes().next().unwrap());
        assert_eq!(uses.iter().map(|one| (one.first, one.end)).collect::<Vec<_>>(), [(0, 3), (3, 4)]);
    }
}
