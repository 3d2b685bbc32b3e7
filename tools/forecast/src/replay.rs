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
use crate::ended::{Ended, Lives};
use crate::threads::threads;
use crate::transfer::Transfers;

/// A timeline's trips in the order in which they start, with the thread that made each.
#[derive(Debug)]
pub(crate) struct Replay<'t> {
    timeline: &'t Timeline,
    lanes: Vec<&'t Lane>,
    steps: Vec<Step<'t>>,
    lives: Lives,
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

/// A play, and what bytes took longer in each of its steps.
#[derive(Debug)]
pub(crate) struct Played {
    pub(crate) outcome: Outcome,
    bytes_ns: Vec<i64>,
}

/// One thread's progress.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
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
        Self::by(timeline, &threads(&timeline.waterfall))
    }

    /// With the thread of every span of every lane.
    fn by(timeline: &'t Timeline, chosen: &[Vec<usize>]) -> Self {
        let lanes: Vec<&Lane> = timeline.waterfall.all_lanes().collect();
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
        Self { timeline, lanes, steps, lives: Lives::new(lives), bulks }
    }

    /// Trips that were kept.
    pub(crate) fn trips(&self) -> u64 {
        self.steps.iter().map(|step| step.span.trips).sum()
    }

    /// Plays everything.
    pub(crate) fn play(&self, change: Change) -> Played {
        let mut bytes_ns = Vec::with_capacity(self.steps.len());
        let mut transfers = self.transfers(change.path);
        let outcome = self.play_by(change.per_trip_ns, |step, shift| {
            let added = transfers[step.lane].delay_ns(self.lanes[step.lane], step.span, shift);
            bytes_ns.push(added);
            added
        });
        Played { outcome, bytes_ns }
    }

    /// Plays everything, with what bytes took longer in another play on the same path, at about the same moments.
    pub(crate) fn play_like(&self, played: &Played, per_trip_ns: f64) -> Outcome {
        let mut bytes_ns = played.bytes_ns.iter();
        self.play_by(per_trip_ns, |_, _| bytes_ns.next().copied().unwrap_or_default())
    }

    /// Plays everything; `bytes_ns` says what the bytes of a step take longer if it starts so much later than observed.
    fn play_by(&self, per_trip_ns: f64, mut bytes_ns: impl FnMut(&Step<'t>, i64) -> i64) -> Outcome {
        let mut play = Play::new(self);
        for step in &self.steps {
            let progress = play.begin(step);
            let added = (step.trips as f64 * per_trip_ns) as i64 + bytes_ns(step, progress.shift);
            play.end(step, progress, added);
        }
        play.outcome()
    }

    /// Both directions of each connection.
    fn transfers(&self, path: Path) -> Vec<Transfers<'_>> {
        let none: &[Bulk] = &[];
        let scale = self.timeline.bulk_scale();
        let bulks = |lane: &&Lane| self.bulks.get(&lane.connection).map_or(none, Vec::as_slice);
        self.lanes.iter().map(|lane| Transfers::new(path, bulks(lane), scale)).collect()
    }
}

/// One play that is under way.
#[derive(Debug)]
struct Play<'r, 't> {
    replay: &'r Replay<'t>,
    threads: Vec<Thread>,
    ended: Ended<'r>,
    last_at: i64,
    outcome: Outcome,
}

impl<'r, 't> Play<'r, 't> {
    fn new(replay: &'r Replay<'t>) -> Self {
        Self {
            replay,
            threads: vec![Thread::default(); replay.lives.count()],
            ended: Ended::new(&replay.lives),
            last_at: 0,
            outcome: Outcome::default(),
        }
    }

    /// How far the thread of `step` is when that starts.
    fn begin(&mut self, step: &Step<'_>) -> Progress {
        let Self { threads, ended, .. } = self;
        let started = step.span.started_ns;
        ended.pass(started, |thread| threads[thread].now.shift);
        let own = &threads[step.thread];
        if own.begun {
            let awaited = ended.latest_awaited(own.last_end).map(|thread| threads[thread].now);
            return awaited.filter(|other| other.shift > own.now.shift).unwrap_or(own.now);
        }
        let seen = |thread: &Thread| if thread.last_end <= started { thread.now } else { thread.before };
        let parent = if self.replay.lives.first_goes_on(started) { Some(0) } else { ended.last() };
        parent.map_or_else(Progress::default, |parent| seen(&threads[parent]))
    }

    /// The thread of `step` was so far, and makes it, which takes so much longer than observed.
    fn end(&mut self, step: &Step<'_>, mut progress: Progress, added: i64) {
        self.threads[step.thread].before = progress;
        let busy = step.span.busy_ns as i64;
        let added = added.max(-busy);
        progress.shift += added;
        progress.waited += busy + added;
        progress.observed += step.span.busy_ns;
        progress.trips += step.trips;
        self.outcome.waited_in_all_ns += (busy + added) as u64;
        let thread = &mut self.threads[step.thread];
        (thread.begun, thread.now) = (true, progress);
        thread.last_end = thread.last_end.max(step.span.ended_ns);
        self.ended.moved(step.thread, progress.shift);
        let end = step.span.ended_ns as i64 + progress.shift;
        if end > self.last_at {
            self.last_at = end;
            self.outcome.waited_ns = progress.waited.max(0) as u64;
            self.outcome.observed_ns = progress.observed;
            self.outcome.trips = progress.trips;
        }
    }

    fn outcome(self) -> Outcome {
        let first_at = self.replay.steps.first().map_or(0, |step| step.span.started_ns) as i64;
        Outcome { time_ns: (self.last_at - first_at).max(0) as u64, ..self.outcome }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use fastrand::Rng;
    use onetrip_ledger::timeline::TripSample;

    use super::*;

    const MS: u64 = 1_000_000;

    fn timeline(trips: impl IntoIterator<Item = (u32, u64, u64)>) -> Timeline {
        let mut timeline = Timeline::default();
        for (connection, started_ns, ended_ns) in trips {
            timeline.add(TripSample { connection, started_ns, ended_ns, ..TripSample::default() });
        }
        timeline
    }

    fn play(trips: impl IntoIterator<Item = (u32, u64, u64)>, rtt_ms: u64) -> Outcome {
        let timeline = timeline(trips);
        let path = Path { rtt: Duration::from_millis(rtt_ms), bandwidth: None };
        Replay::new(&timeline).play(Change { path, per_trip_ns: (rtt_ms * MS) as f64 }).outcome
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
    fn a_play_like_another_has_its_bytes_and_its_own_trips() {
        let mut timeline = Timeline::default();
        for number in 0..50 {
            let started_ns = number * 5 * MS;
            let ended_ns = started_ns + MS;
            let first_reply_ns = ended_ns;
            timeline.add(TripSample {
                started_ns,
                first_reply_ns,
                ended_ns,
                bytes_received: 1_000_000,
                ..TripSample::default()
            });
        }
        let path = Path { rtt: Duration::from_millis(20), bandwidth: None };
        let replay = Replay::new(&timeline);
        let played = replay.play(Change { path, per_trip_ns: 20e6 });
        assert!(played.outcome.time_ns > (246 + 50 * 20 + 60) * MS, "the window takes its rounds");
        assert_eq!(replay.play_like(&played, 20e6), played.outcome);
        let nearer = replay.play_like(&played, 19e6);
        assert_eq!(nearer.time_ns, played.outcome.time_ns - 50 * MS);
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
        let outcome = Replay::new(&timeline).play(Change { path, per_trip_ns: 1e7 }).outcome;
        assert_eq!(outcome.time_ns, (5 + 4 * 10) * MS);
    }

    /// What [`Play::begin`] says, found by walking back over all threads that are over.
    fn by_walking(lives: &[(u64, u64)], threads: &[Thread], step: &Step<'_>) -> Progress {
        let own = &threads[step.thread];
        let started = step.span.started_ns;
        let mut over: Vec<usize> = (0..threads.len()).filter(|thread| lives[*thread].1 <= started).collect();
        over.sort_by_key(|thread| lives[*thread].1);
        if !own.begun {
            let parent = if lives[0].1 > started { Some(&0) } else { over.last() };
            let seen = |thread: &Thread| if thread.last_end <= started { thread.now } else { thread.before };
            return parent.map_or_else(Progress::default, |parent| seen(&threads[*parent]));
        }
        let mut latest = own.now;
        for thread in over.into_iter().rev().take_while(|thread| lives[*thread].1 > own.last_end) {
            let (began, ended) = lives[thread];
            let is_silent_for_most = ended - began.max(own.last_end) >= (ended - began) / 2;
            let other = threads[thread].now;
            if is_silent_for_most && thread != step.thread && other.shift > latest.shift {
                latest = other;
            }
        }
        latest
    }

    /// Up to so many connections, of few trips or many, at once or one after another, on a clock of few moments or many.
    fn made_up(random: &mut Rng) -> Timeline {
        let connections = random.u32(1..40);
        let (trips_max, life) = (random.choice([2, 4, 30]).unwrap(), random.choice([4, 50, 2_000]).unwrap());
        let (busy, spread) = (random.u64(1..20), random.u64(1..3_000));
        let mut trips = Vec::new();
        for connection in 0..connections {
            let mut now = random.u64(0..spread);
            for _ in 0..random.u64(1..trips_max) {
                let end = now + random.u64(0..busy);
                trips.push((connection, now, end));
                now = end + random.u64(0..life);
            }
        }
        timeline(trips)
    }

    #[test]
    fn who_has_waited_for_whom_is_what_a_walk_over_all_threads_finds() {
        let mut random = Rng::with_seed(29);
        let (mut steps, mut waited, mut late) = (0, 0, 0);
        for _ in 0..2_000 {
            let timeline = made_up(&mut random);
            let count = random.usize(1..=timeline.waterfall.connections());
            let is_shared = random.bool();
            let mut thread = |place: usize| if is_shared { random.usize(0..count) } else { place };
            let lanes = timeline.waterfall.all_lanes().enumerate();
            let chosen: Vec<Vec<usize>> =
                lanes.map(|(place, lane)| lane.spans.iter().map(|_| thread(place)).collect()).collect();
            let per_trip_ns = random.choice([-3, 0, 1, 7, 900]).unwrap();
            let replay = Replay::by(&timeline, &chosen);
            let mut play = Play::new(&replay);
            for step in &replay.steps {
                let expected = by_walking(&replay.lives.spans, &play.threads, step);
                let own = play.threads[step.thread];
                late += u32::from(play.ended.has(step.thread));
                let progress = play.begin(step);
                assert_eq!(progress, expected, "{step:?}");
                steps += 1;
                waited += u32::from(own.begun && progress != own.now);
                play.end(step, progress, step.trips as i64 * per_trip_ns);
            }
        }
        assert!(steps > 100_000 && waited > 2_000 && late > 100, "{steps} {waited} {late}");
    }

    #[test]
    fn who_goes_on_after_many_threads_does_not_look_at_each() {
        const EACH: u32 = 1_000;
        // They make a trip, wait for others that have short lives at once, and make another trip.
        let first = (0..EACH).map(|number| (number, u64::from(number), 2_000));
        let short =
            (0..EACH).map(|number| (EACH + number, 3_000 + u64::from(number), 5_000 + u64::from(number)));
        let last = (0..EACH).map(|number| (number, 9_000, 9_100));
        let timeline = timeline(first.chain(short).chain(last));
        let replay =
            Replay::by(&timeline, &(0..2 * EACH as usize).map(|thread| vec![thread; 2]).collect::<Vec<_>>());
        let mut play = Play::new(&replay);
        for step in &replay.steps {
            let progress = play.begin(step);
            play.end(step, progress, 5 * step.trips as i64);
        }
        let (steps, looked_at) = (replay.steps.len() as u64, play.ended.looked_at.get());
        assert_eq!(play.outcome().trips, 3, "a first one, a short one that is waited for, and a last one");
        assert!(looked_at <= steps * 40, "{looked_at} for {steps} steps");
    }
}
