//! The trips of a timeline, played again on another path.
//!
//! Each thread of the program keeps a shift: how much later than observed it is. A trip adds to its thread's shift
//! what the path adds to the trip. The time between trips stays.
//!
//! A thread that begins takes the shift of the first thread. If that has ended, it takes the shift of the thread that
//! ended last. A thread may be silent for most of another one's life, until that ends. Such a thread has waited for
//! the other.

use std::collections::HashMap;

use onetrip_ledger::timeline::{Bulk, Lane, Span, Timeline};

use crate::Path;
use crate::threads::threads;
use crate::transfer::Transfers;

/// A timeline's trips in the order in which they start, with the thread that made each.
#[derive(Debug)]
pub(crate) struct Replay<'t> {
    timeline: &'t Timeline,
    lanes: Vec<&'t Lane>,
    steps: Vec<Step<'t>>,
    /// When each thread's first trip started, and its last one ended.
    lives: Vec<(u64, u64)>,
    bulks: HashMap<u32, Vec<Bulk>>,
}

#[derive(Debug)]
struct Step<'t> {
    span: &'t Span,
    lane: usize,
    thread: usize,
    /// Trips that it stands for, the TCP handshake of a connection that it opens among them.
    trips: u64,
}

/// How a replay differs from what was observed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Change {
    pub(crate) path: Path,
    /// What a trip takes longer than observed, in nanoseconds, bytes aside.
    pub(crate) per_trip_ns: f64,
}

/// Where a replay ends, and what its longest chain of trips is made of; all in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) time_ns: u64,
    /// Time in trips on the chain that ends last.
    pub(crate) waited_ns: u64,
    /// Time in trips of that chain as observed, and how many they are.
    pub(crate) observed_ns: u64,
    pub(crate) trips: u64,
    /// Time in trips on all chains.
    pub(crate) waited_in_all_ns: u64,
}

/// One thread's progress.
#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    shift: i64,
    waited: i64,
    observed: u64,
    trips: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Thread {
    begun: bool,
    now: Progress,
    /// Before its last step, for whoever looks while that is under way.
    before: Progress,
    last_end: u64,
}

impl<'t> Replay<'t> {
    pub(crate) fn new(timeline: &'t Timeline) -> Self {
        let lanes: Vec<&Lane> = timeline.waterfall.all_lanes().collect();
        let chosen = threads(&timeline.waterfall);
        let mut steps = Vec::new();
        let mut lives = vec![(u64::MAX, 0); chosen.iter().flatten().max().map_or(0, |last| last + 1)];
        for (place, lane) in lanes.iter().enumerate() {
            for (number, span) in lane.spans.iter().enumerate() {
                let thread = chosen[place][number];
                let handshake = u64::from(number == 0 && span.connect);
                steps.push(Step { span, lane: place, thread, trips: span.trips + handshake });
                let (began, ended) = lives[thread];
                lives[thread] = (span.started_ns.min(began), span.ended_ns.max(ended));
            }
        }
        steps.sort_by_key(|step| (step.span.started_ns, step.span.ended_ns, step.lane));
        let mut bulks: HashMap<u32, Vec<Bulk>> = HashMap::new();
        for bulk in timeline.bulks() {
            bulks.entry(bulk.connection).or_default().push(*bulk);
        }
        Self { timeline, lanes, steps, lives, bulks }
    }

    /// Trips that were kept.
    pub(crate) fn trips(&self) -> u64 {
        self.steps.iter().map(|step| step.span.trips).sum()
    }

    /// Plays everything.
    pub(crate) fn play(&self, change: Change) -> Outcome {
        let none: &[Bulk] = &[];
        let scale = self.timeline.bulk_scale();
        let bulks = |lane: &&Lane| self.bulks.get(&lane.connection).map_or(none, Vec::as_slice);
        let mut transfers: Vec<Transfers<'_>> =
            self.lanes.iter().map(|lane| Transfers::new(change.path, bulks(lane), scale)).collect();
        let mut threads = vec![Thread::default(); self.lives.len()];
        // Threads by their end, for those who go on afterwards.
        let mut over: Vec<usize> = (0..threads.len()).collect();
        over.sort_by_key(|thread| self.lives[*thread].1);
        let mut over = over.into_iter().peekable();
        let mut ended: Vec<(u64, usize)> = Vec::new();
        let mut outcome = Outcome::default();
        let (first_at, mut last_at) = (self.steps.first().map_or(0, |step| step.span.started_ns) as i64, 0);
        for step in &self.steps {
            let started = step.span.started_ns;
            while let Some(thread) = over.next_if(|thread| self.lives[*thread].1 <= started) {
                ended.push((self.lives[thread].1, thread));
            }
            let mut progress = self.progress_at(step, &threads, &ended);
            threads[step.thread].before = progress;
            let busy = step.span.busy_ns as i64;
            let path = (step.trips as f64 * change.per_trip_ns) as i64;
            let bytes = transfers[step.lane].delay_ns(self.lanes[step.lane], step.span, progress.shift);
            let added = (path + bytes).max(-busy);
            progress.shift += added;
            progress.waited += busy + added;
            progress.observed += step.span.busy_ns;
            progress.trips += step.trips;
            outcome.waited_in_all_ns += (busy + added) as u64;
            let thread = &mut threads[step.thread];
            (thread.begun, thread.now) = (true, progress);
            thread.last_end = thread.last_end.max(step.span.ended_ns);
            let end = step.span.ended_ns as i64 + progress.shift;
            if end > last_at {
                last_at = end;
                outcome.waited_ns = progress.waited.max(0) as u64;
                outcome.observed_ns = progress.observed;
                outcome.trips = progress.trips;
            }
        }
        outcome.time_ns = (last_at - first_at).max(0) as u64;
        outcome
    }

    /// How far the thread of `step` is when that starts.
    fn progress_at(&self, step: &Step<'_>, threads: &[Thread], ended: &[(u64, usize)]) -> Progress {
        let own = &threads[step.thread];
        let started = step.span.started_ns;
        let seen = |thread: &Thread| if thread.last_end <= started { thread.now } else { thread.before };
        if !own.begun {
            let first_goes_on = self.lives.first().is_some_and(|(_, end)| *end > started);
            let parent = if first_goes_on { Some(0) } else { ended.last().map(|(_, thread)| *thread) };
            return parent.map_or_else(Progress::default, |parent| seen(&threads[parent]));
        }
        let since = ended.iter().rev().take_while(|(end, _)| *end > own.last_end);
        let silent_for_most = |thread: &usize| {
            let (began, ended) = self.lives[*thread];
            ended - began.max(own.last_end) >= (ended - began) / 2
        };
        let awaited = since.map(|(_, thread)| *thread).filter(silent_for_most);
        let others = awaited.filter(|thread| *thread != step.thread).map(|thread| threads[thread].now);
        others.fold(own.now, |latest, other| if other.shift > latest.shift { other } else { latest })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use onetrip_ledger::timeline::TripSample;

    use super::*;

    const MS: u64 = 1_000_000;

    fn play(trips: impl IntoIterator<Item = (u32, u64, u64)>, rtt_ms: u64) -> Outcome {
        let mut timeline = Timeline::default();
        for (connection, started_ns, ended_ns) in trips {
            timeline.add(TripSample { connection, started_ns, ended_ns, ..TripSample::default() });
        }
        let path = Path { rtt: Duration::from_millis(rtt_ms), bandwidth: None };
        Replay::new(&timeline).play(Change { path, per_trip_ns: (rtt_ms * MS) as f64 })
    }

    fn at_ms(connection: u32, start: u64, end: u64) -> (u32, u64, u64) {
        (connection, start * MS, end * MS)
    }

    #[test]
    fn a_loop_takes_a_round_trip_more_for_each_trip() {
        let trips = || (0..100).map(|number| at_ms(1, number * 3, number * 3 + 1));
        assert_eq!(play(trips(), 0).time_ns, 298 * MS);
        let far = play(trips(), 70);
        assert_eq!((far.time_ns, far.waited_ns, far.trips), ((298 + 7000) * MS, 7100 * MS, 100));
        assert_eq!(far.observed_ns, 100 * MS);
    }

    #[test]
    fn threads_wait_at_the_same_time() {
        let worker = |worker: u32| {
            (0..50).map(move |number| {
                at_ms(worker, number * 6 + u64::from(worker), number * 6 + u64::from(worker) + 5)
            })
        };
        let trips = (1..=4).flat_map(worker);
        assert_eq!(play(trips, 10).time_ns, (49 * 6 + 3 + 5 + 500) * MS);
    }

    #[test]
    fn a_program_that_waits_for_its_workers_goes_on_after_the_last() {
        let main = [at_ms(1, 0, 2), at_ms(1, 100, 102)];
        let worker =
            |worker: u32| (0..9).map(move |number| at_ms(worker, 10 + number * 10, 15 + number * 10));
        let trips = main.into_iter().chain((2..=3).flat_map(worker));
        // One trip, then nine of both workers at once, then the last one.
        assert_eq!(play(trips, 20).time_ns, (102 + 11 * 20) * MS);
    }

    #[test]
    fn workers_that_end_one_after_the_other_do_not_wait_for_each_other() {
        let worker = |worker: u32| {
            let end = 20 + 2 * u64::from(worker);
            (0..end).map(move |number| at_ms(worker, number * 10 + u64::from(worker), number * 10 + 9))
        };
        // The last of eight has 36 trips, and thinks while the others end.
        assert_eq!(play((1..=8).flat_map(worker), 20).time_ns, (358 + 36 * 20) * MS);
    }

    #[test]
    fn opening_a_connection_takes_the_handshake_too() {
        let mut timeline = Timeline::default();
        for number in 0..3 {
            let started_ns = number * 2 * MS;
            let ended_ns = started_ns + MS;
            timeline.add(TripSample { started_ns, ended_ns, connect: number < 2, ..TripSample::default() });
        }
        let path = Path { rtt: Duration::from_millis(10), bandwidth: None };
        let outcome = Replay::new(&timeline).play(Change { path, per_trip_ns: 1e7 });
        assert_eq!(outcome.time_ns, (5 + 4 * 10) * MS);
    }
}
