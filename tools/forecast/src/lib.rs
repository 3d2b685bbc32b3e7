//! The time of a counted run at another distance from its database.
//!
//! The rule: `time(rtt', bw') = think + server + trips × rtt' + waits for TCP's window + bytes / bw'`, with
//! concurrent connections overlapped as they were observed. A [`Forecast`] plays the trips of a [`Timeline`] again.
//! Each is longer by what the new path adds to it. `docs/forecast.md` has the method and its assumptions, and
//! `docs/benchmarks.md` compares forecasts with measured runs.
//!
//! No clock and no I/O here: a trace in, times out.
//!
//! Non-scope: counting (`ledger`), keeping a schedule for real connections (`link`'s relay), drawing (`report`).

mod curve;
mod ended;
mod pool;
mod prices;
mod replay;
mod threads;
mod transfer;

use std::time::Duration;

use onetrip_ledger::Summary;
use onetrip_ledger::timeline::Timeline;
use onetrip_link::BitsPerSecond;

pub use curve::{Curve, CurveLine, CurvePoint};
pub use prices::{DISTANCES, Price, Prices};

use crate::replay::{Change, Outcome, Replay};

/// What a trip takes longer when its threads sleep at all, in nanoseconds: they are woken, on both sides.
const WAKE_NS: f64 = 80e3;
/// What it takes longer still when they sleep for long, in nanoseconds: caches and sleeping cores are cold.
const COLD_NS: f64 = 700e3;
/// Time in which most of that is lost, in nanoseconds.
const COOLING_NS: f64 = 20e6;
/// What a run of the same program differs by anyway, as a share of the time that the path does not explain.
const RUN_SPREAD: f64 = 0.05;

/// A path between a program and its database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Path {
    /// Round-trip time.
    pub rtt: Duration,
    /// Bandwidth of each direction; `None` where it does not matter.
    pub bandwidth: Option<BitsPerSecond>,
}

/// How long the run takes on a path, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Prediction {
    /// From the first byte of the first connection to the last reply.
    pub time_ns: u64,
    /// The least that it may take.
    pub low_ns: u64,
    /// The most that it may take.
    pub high_ns: u64,
}

/// A run that can be played again on other paths.
#[derive(Debug)]
pub struct Forecast<'t> {
    summary: &'t Summary,
    replay: Replay<'t>,
    /// Time that is the program's and the database's own, in nanoseconds, as it was measured.
    own_ns: f64,
    /// Trips that remedies took out of the run.
    removed: u64,
    /// Trips that remedies would take out at least; nought where some were on, and what is left stays for a reason.
    removable: u64,
}

impl<'t> Forecast<'t> {
    /// Prepares to play the trips of `timeline`, which `summary` counts.
    pub fn new(summary: &'t Summary, timeline: &'t Timeline) -> Self {
        let removed = summary.removed.values().sum();
        let removable = if removed > 0 { 0 } else { summary.would_remove().exact };
        let mut forecast = Self { summary, replay: Replay::new(timeline), own_ns: 0.0, removed, removable };
        let path = Path { rtt: forecast.measured_rtt(), bandwidth: None };
        let seen = forecast.scaled(forecast.replay.play(Change { path, per_trip_ns: 0.0 }).outcome);
        let on_the_path = seen.trips as f64 * prices::nanoseconds(path.rtt) as f64;
        let server = (seen.observed_ns as f64 - on_the_path).max(0.0);
        forecast.own_ns = seen.time_ns as f64 - seen.waited_ns as f64 + server;
        forecast
    }

    /// Round-trip time at which the run was counted: the smallest that the kernel saw; nought on a Unix socket.
    pub fn measured_rtt(&self) -> Duration {
        Duration::from_micros(self.summary.rtt_min_us.unwrap_or(0).into())
    }

    /// How long the run takes on `path`.
    pub fn at(&self, path: Path) -> Prediction {
        self.price(path).as_is
    }

    /// Whether there was a network between the program and its database.
    fn has_path(&self) -> bool {
        self.summary.rtt_min_us.is_some()
    }

    fn price(&self, path: Path) -> Price {
        let measured = prices::nanoseconds(self.measured_rtt()) as f64;
        let rtt = prices::nanoseconds(path.rtt) as f64;
        let farther = rtt - measured;
        let is_measured = farther == 0.0 && path.bandwidth.is_none();
        let wake = self.more_waking_ns(rtt);
        let played = self.replay.play(Change { path, per_trip_ns: farther + wake });
        let like = |per_trip_ns: f64| self.scaled(self.replay.play_like(&played, per_trip_ns));
        let expected = self.scaled(played.outcome);
        let (low, high) = if is_measured {
            (expected, expected)
        } else {
            (like(farther * self.certain_share() + wake.min(0.0)), like(farther + 2.0 * wake.max(0.0)))
        };
        let spread = if is_measured {
            0.0
        } else {
            RUN_SPREAD * (expected.time_ns as f64 - expected.trips as f64 * rtt).max(0.0)
        };
        let prediction = |cost: fn(&Self, &Outcome, f64) -> f64| {
            let at = |outcome: &Outcome| cost(self, outcome, rtt).max(0.0);
            let time = at(&expected);
            let spread = spread * time / (expected.time_ns as f64).max(1.0);
            Prediction {
                time_ns: time as u64,
                low_ns: (at(&low) - spread).max(0.0).min(time) as u64,
                high_ns: (at(&high) + spread).max(time) as u64,
            }
        };
        let as_is = prediction(|_, outcome, _| outcome.time_ns as f64);
        // They may be slow, or find something else in the way.
        let remedied = || Prediction { high_ns: as_is.time_ns, ..prediction(Self::remedied_ns) };
        let bytes = self.summary.bytes_sent.max(self.summary.bytes_received);
        Price {
            rtt_ns: prices::nanoseconds(path.rtt),
            measured: false,
            as_is,
            fixed: prediction(Self::fixed_ns),
            limit: prediction(Self::limit_ns),
            with_remedies: (self.removable > 0).then(remedied),
            without_remedies: (self.removed > 0).then(|| prediction(Self::unremedied_ns)),
            bits_per_second: (bytes as f64 * 8e9 / expected.time_ns.max(1) as f64) as u64,
        }
    }

    /// The run with the findings' fixes made: waiting shrinks by the share that the avoidable trips have of it.
    fn fixed_ns(&self, outcome: &Outcome, rtt_ns: f64) -> f64 {
        let trip = self.trip_ns(rtt_ns);
        let saved = self.summary.findings.iter().map(|finding| finding.price_ns(trip)).sum();
        self.without_ns(saved, outcome, rtt_ns)
    }

    /// The run with what remedies take out at least taken out: the server's part of these trips stays.
    fn remedied_ns(&self, outcome: &Outcome, rtt_ns: f64) -> f64 {
        self.without_ns(self.removable as f64 * self.trip_ns(rtt_ns), outcome, rtt_ns)
    }

    /// The run without so much waiting on all its chains: the one that ends last has its share of that.
    fn without_ns(&self, saved: f64, outcome: &Outcome, rtt_ns: f64) -> f64 {
        let share = (saved / (outcome.waited_in_all_ns as f64).max(1.0)).min(1.0);
        (outcome.time_ns as f64 - share * outcome.waited_ns as f64).max(self.limit_ns(outcome, rtt_ns))
    }

    /// What a trip that is not made saves: it wakes nobody either.
    fn trip_ns(&self, rtt_ns: f64) -> f64 {
        rtt_ns + self.more_waking_ns(rtt_ns)
    }

    /// The run with the trips that remedies took out: on the chain that ends last, as many as it has of the waiting.
    fn unremedied_ns(&self, outcome: &Outcome, rtt_ns: f64) -> f64 {
        let chain = outcome.waited_ns as f64 / (outcome.waited_in_all_ns as f64).max(1.0);
        outcome.time_ns as f64 + self.removed as f64 * chain * self.trip_ns(rtt_ns)
    }

    /// The run if one trip carried everything: the database's and the program's own time, and one round trip.
    fn limit_ns(&self, outcome: &Outcome, rtt_ns: f64) -> f64 {
        (self.own_ns + rtt_ns).min(outcome.time_ns as f64)
    }

    /// What waking takes longer than it did where the run was measured.
    fn more_waking_ns(&self, rtt_ns: f64) -> f64 {
        waking_ns(rtt_ns) - waking_ns(prices::nanoseconds(self.measured_rtt()) as f64)
    }

    /// Trips that certainly were trips, as a share of those counted.
    fn certain_share(&self) -> f64 {
        let trips = &self.summary.trips;
        trips.at_least() as f64 / trips.total.max(1) as f64
    }

    /// Stretched by the trips that the timeline had no room for.
    fn scaled(&self, outcome: Outcome) -> Outcome {
        let kept = self.replay.trips().max(1);
        let more = self.summary.trips.total.max(kept) as f64 / kept as f64;
        Outcome { time_ns: (outcome.time_ns as f64 * more) as u64, ..outcome }
    }
}

/// What waking takes after a wait of one round trip, as it was measured on a virtual machine (`docs/forecast.md`); who
/// waits for less than the time of waking has not slept deeply yet.
fn waking_ns(rtt_ns: f64) -> f64 {
    let cold = COLD_NS * (1.0 - (-rtt_ns / COOLING_NS).exp());
    (WAKE_NS + cold).min(rtt_ns / 4.0)
}

#[cfg(test)]
mod tests {
    use onetrip_ledger::timeline::TripSample;
    use onetrip_ledger::{Code, Driver, Evidence, Finding, Obstacle, Remedy, Would};

    use super::*;

    #[test]
    fn the_one_trip_limit_never_falls_with_distance() {
        let mut timeline = Timeline::default();
        let mut add = |connection, started_ns, ended_ns| {
            timeline.add(TripSample { connection, started_ns, ended_ns, ..TripSample::default() });
        };
        // One thread waits once for a slow statement, another one often for quick ones: far away, that one ends last.
        add(1, 0, 400 * MS);
        (0..50).for_each(|number| add(2, number * 4 * MS, (number * 4 + 1) * MS));
        let mut summary = Summary::default();
        summary.trips.total = 51;
        let forecast = Forecast::new(&summary, &timeline);
        let limits: Vec<u64> = [0, 1, 5, 10, 20, 40, 80]
            .map(|rtt| {
                forecast.price(Path { rtt: Duration::from_millis(rtt), bandwidth: None }).limit.time_ns
            })
            .into();
        assert!(limits.is_sorted(), "{limits:?}");
        assert_eq!(limits[6], 480 * MS);
    }

    const MS: u64 = 1_000_000;

    /// So many trips of half a millisecond, one each millisecond.
    fn trips(number: u64) -> (Summary, Timeline) {
        let mut timeline = Timeline::default();
        for number in 0..number {
            let started_ns = number * MS;
            timeline.add(TripSample { started_ns, ended_ns: started_ns + MS / 2, ..TripSample::default() });
        }
        let mut summary = Summary::default();
        summary.trips.total = number;
        (summary, timeline)
    }

    fn loop_of(trips: u64) -> Finding {
        Finding {
            code: Code::Loop,
            statements: Vec::new(),
            driver: Driver::UNKNOWN,
            scopes: Vec::new(),
            occurrences: 1,
            trips,
            avoidable: trips - 1,
            removed: 0,
            would: Default::default(),
            left: [(Obstacle::Off, trips)].into(),
            impure: None,
            waited_ns: (trips - 1) * MS / 2,
            wire_ns: 0,
            evidence: Evidence::Walk { sources: Vec::new(), rows: (1, trips) },
            spots: Vec::new(),
            sites: Vec::new(),
            fix: String::new(),
        }
    }

    fn at_13_ms(forecast: &Forecast<'_>) -> Price {
        forecast.price(Path { rtt: Duration::from_millis(13), bandwidth: None })
    }

    #[test]
    fn trips_that_are_fixed_wake_nobody() {
        let (mut summary, timeline) = trips(1000);
        summary.findings.push(loop_of(1000));
        let price = at_13_ms(&Forecast::new(&summary, &timeline));
        assert!(price.as_is.time_ns > 13_400 * MS, "{price:?}");
        assert!(price.fixed.time_ns < 1_020 * MS, "the program's own time and one trip: {price:?}");
    }

    #[test]
    fn remedies_leave_what_is_the_servers_and_the_programs() {
        let (mut summary, timeline) = trips(1000);
        assert_eq!(at_13_ms(&Forecast::new(&summary, &timeline)).with_remedies, None, "nothing is found");
        summary.findings.push(loop_of(900));
        summary.would.insert(Remedy::Loops, Would { exact: 899, isolated: 0 });
        let price = at_13_ms(&Forecast::new(&summary, &timeline));
        let with = price.with_remedies.expect("something is found");
        // The loop but for one trip, and what the others and the server take.
        let saved = price.as_is.time_ns - with.time_ns;
        assert!((899 * 13 * MS..900 * 14 * MS).contains(&saved), "{price:?}");
        assert_eq!(with.high_ns, price.as_is.time_ns);
        assert_eq!(price.without_remedies, None);
    }

    #[test]
    fn what_remedies_took_out_costs_its_trips_without_them() {
        let (mut summary, timeline) = trips(10);
        summary.findings.push(loop_of(5));
        summary.removed.insert(Remedy::Loops, 990);
        let price = at_13_ms(&Forecast::new(&summary, &timeline));
        let without = price.without_remedies.expect("trips were taken out");
        let added = without.time_ns - price.as_is.time_ns;
        assert!((990 * 13 * MS..991 * 14 * MS).contains(&added), "{price:?}");
        assert_eq!(price.with_remedies, None, "they were on");
    }
}
