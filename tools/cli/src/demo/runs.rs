//! The same work in several ways and from several distances, each run counted and timed.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use onetrip_forecast::{Forecast, Path, Prediction};
use onetrip_gateway::{Gateway, GatewayConfig, Remedies};
use onetrip_ledger::{Analysis, Mutes};
use onetrip_link::{LinkSpec, LinkStats};
use onetrip_report::count;

use super::data::Staff;
use super::database::{Database, Session, driver_config};
use super::interrupt::Interruptible;
use super::program::Way;
use crate::progress::Progress;

/// The distance within one place: another machine at the same switch.
const NEAR: Duration = Duration::from_micros(389);
/// A loop that would wait for longer runs over the first employees only.
const LOOP_WAIT_MAX: Duration = Duration::from_millis(6_500);
/// Fewest employees that a loop runs over.
const SAMPLE_MIN: usize = 10;
/// The program is one short session, and its database is not optimised where `make demo` has built it: what is removed must
/// not depend on the time that questions take.
const QUESTION_BURST: Duration = Duration::from_secs(60);
/// So many quantiles of an error make its mean.
const ERROR_QUANTILES: u32 = 100;
/// What a statement costs beside its database, where nothing is optimised, and what everything else costs; measured on two idle cores.
const STATEMENT: Duration = Duration::from_micros(300);
const SETUP: Duration = Duration::from_secs(4);
/// The announced duration is a multiple of this.
const ANNOUNCED_STEP_S: u64 = 5;

/// What is run.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// Added round-trip times, none first and the farthest last.
    pub(super) distances: Vec<Duration>,
    /// How many employees there are.
    pub(super) employees: usize,
    /// How many of them the loop runs over where all would take too long; `None` if that is nowhere.
    pub(super) sample: Option<usize>,
}

/// One way over so many employees, at all distances.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) way: Way,
    pub(super) employees: usize,
    /// The run without a distance; of what is removed, the farthest one.
    pub(super) analysis: Analysis,
    /// What the program took in that run before its first byte and after the last reply: no distance changes it.
    alone: Duration,
    /// One for each distance of the plan.
    pub(super) cells: Vec<Cell>,
}

/// What a way costs at one distance.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell {
    /// `None` where it takes too long to be run.
    pub(super) measured: Option<Duration>,
    /// What the run without a distance says about this one; `None` for itself, and for what is removed.
    pub(super) forecast: Option<Prediction>,
    /// How much longer than its distance the link made a trip, on average.
    pub(super) late: Duration,
}

impl Plan {
    /// Runs over so many employees, from at most as far as `far`.
    pub(super) fn new(employees: usize, far: Duration, full: bool) -> Self {
        let mut distances = vec![Duration::ZERO, NEAR, far];
        distances.sort();
        distances.dedup();
        let mut plan = Self { distances, employees, sample: None };
        let farthest = plan.distances.last().copied().unwrap_or_default();
        if !full && !plan.is_short(farthest) {
            let fitting = (LOOP_WAIT_MAX.as_nanos() / farthest.as_nanos().max(1)) as usize;
            plan.sample = Some(rounded_down(fitting).clamp(SAMPLE_MIN, employees));
        }
        plan.sample = plan.sample.filter(|sample| *sample < employees);
        plan
    }

    /// The distance that the story is about.
    pub(super) fn farthest(&self) -> Duration {
        self.distances.last().copied().unwrap_or_default()
    }

    /// What will be run and how long that takes, for people; no line wider than 100 columns.
    pub(super) fn announcement(&self) -> String {
        let mut lines = vec![format!(
            "a program lists {} employees, then asks for the salaries of each, at {} distances.",
            count(self.employees as u64),
            self.distances.len()
        )];
        lines.extend(self.sample.map(|sample| {
            let farthest = milliseconds(self.farthest());
            format!(
                "At {farthest} it asks for those of the first {} only; --full asks for all.",
                count(sample as u64)
            )
        }));
        lines.push("Two more programs get the same answer with one or two statements.".to_owned());
        lines.push(format!(
            "At last --remedies exact removes the loop's round trips. About {} s on two idle cores.",
            self.duration_s()
        ));
        lines.iter().map(|line| format!("onetrip: {line}")).collect::<Vec<_>>().join("\n")
    }

    /// How long all loops take: that of `exact` runs beside the database, nearly.
    fn duration_s(&self) -> u64 {
        let loops =
            self.lines().into_iter().filter(|(way, _)| *way == Way::AsIs).flat_map(|(way, employees)| {
                let distances =
                    self.distances.iter().filter(move |at| self.is_measured(way, employees, **at));
                distances.map(move |distance| (STATEMENT + *distance) * employees as u32)
            });
        let exact = STATEMENT * self.employees as u32;
        let total = loops.sum::<Duration>() + exact + SETUP;
        total.as_secs().next_multiple_of(ANNOUNCED_STEP_S)
    }

    /// Ways and the employees that they run over.
    fn lines(&self) -> Vec<(Way, usize)> {
        let mut lines = vec![(Way::AsIs, self.employees)];
        lines.extend(self.sample.map(|sample| (Way::AsIs, sample)));
        lines.extend([Way::Any, Way::Join].map(|way| (way, self.employees)));
        lines
    }

    fn is_measured(&self, way: Way, employees: usize, distance: Duration) -> bool {
        let has_time = self.sample.is_none() || self.is_short(distance);
        way != Way::AsIs || employees < self.employees || has_time
    }

    /// Whether a loop over all employees is short enough to be run.
    fn is_short(&self, distance: Duration) -> bool {
        distance.as_nanos() * self.employees as u128 <= LOOP_WAIT_MAX.as_nanos()
    }

    /// Runs everything; `on_first` is given the first run as soon as it ends.
    pub(super) fn run(
        &self,
        database: &Database,
        staff: &Staff,
        work: &mut Interruptible,
        on_first: impl FnOnce(&Analysis) -> Result<()>,
    ) -> Result<Vec<Line>> {
        let runs = Runs { database, staff };
        let mut lines = Vec::new();
        let mut on_first = Some(on_first);
        for (way, employees) in self.lines() {
            let run = runs.run(way, employees, Duration::ZERO, work)?;
            if let Some(on_first) = on_first.take() {
                on_first(&run.analysis)?;
            }
            let cell = Cell { measured: Some(run.time), forecast: None, late: run.late };
            let alone = run.time.saturating_sub(Duration::from_nanos(run.analysis.summary.elapsed_ns));
            lines.push(Line { way, employees, analysis: run.analysis, alone, cells: vec![cell] });
        }
        for distance in self.distances.iter().copied().skip(1) {
            for line in &mut lines {
                let mut cell =
                    Cell { measured: None, forecast: Some(line.forecast(distance)), late: Duration::ZERO };
                if self.is_measured(line.way, line.employees, distance) {
                    let run = runs.run(line.way, line.employees, distance, work)?;
                    (cell.measured, cell.late) = (Some(run.time), run.late);
                }
                line.cells.push(cell);
            }
        }
        lines.extend(self.run_exact(&runs, work)?);
        Ok(lines)
    }

    /// The loop over all employees from the farthest place, through a gateway that removes trips: what is nearer is told
    /// by the other lines.
    fn run_exact(&self, runs: &Runs<'_>, work: &mut Interruptible) -> Result<Option<Line>> {
        let (way, employees, distance) = (Way::Exact, self.employees, self.farthest());
        if distance.is_zero() {
            return Ok(None);
        }
        let run = runs.run(way, employees, distance, work)?;
        let nothing = Cell { measured: None, forecast: None, late: Duration::ZERO };
        let mut cells = vec![nothing; self.distances.len()];
        if let Some(last) = cells.last_mut() {
            (last.measured, last.late) = (Some(run.time), run.late);
        }
        Ok(Some(Line { way, employees, analysis: run.analysis, alone: Duration::ZERO, cells }))
    }
}

impl Line {
    /// What this way will take with so much more distance.
    fn forecast(&self, more: Duration) -> Prediction {
        let forecast = Forecast::new(&self.analysis.summary, &self.analysis.timeline);
        let conversation = forecast.at(Path { rtt: forecast.measured_rtt() + more, bandwidth: None });
        let alone_ns = u64::try_from(self.alone.as_nanos()).unwrap_or(u64::MAX);
        let with_rest = |time_ns: u64| time_ns.saturating_add(alone_ns);
        Prediction {
            time_ns: with_rest(conversation.time_ns),
            low_ns: with_rest(conversation.low_ns),
            high_ns: with_rest(conversation.high_ns),
        }
    }
}

/// What every run needs.
struct Runs<'d> {
    database: &'d Database,
    staff: &'d Staff,
}

/// One run of the program.
struct Run {
    /// From connecting to the last answer.
    time: Duration,
    analysis: Analysis,
    late: Duration,
}

impl Runs<'_> {
    fn run(&self, way: Way, employees: usize, distance: Duration, work: &mut Interruptible) -> Result<Run> {
        let Database { conninfo, tables, .. } = self.database;
        let link = (!distance.is_zero()).then(|| LinkSpec::with_rtt(distance));
        let remedies = if way == Way::Exact { Remedies::exact() } else { Remedies::default() };
        let config = GatewayConfig {
            link,
            remedies,
            question_burst: QUESTION_BURST,
            ..GatewayConfig::new(conninfo.clone())
        };
        let gateway = Gateway::start(config)?;
        let config = driver_config(conninfo, &gateway)?;
        let statements = if matches!(way, Way::AsIs | Way::Exact) { employees + 1 } else { 1 };
        let title = match distance {
            Duration::ZERO => way.to_string(),
            distance => format!("{way}, {} away", milliseconds(distance)),
        };
        let progress = Progress::of_steps(title, statements as u64);
        let (time, found) = work
            .run(async {
                let started = Instant::now();
                let session = Session::open(&config).await?;
                let found = tables.salaries(&session.client, way, employees, || progress.advance(1)).await?;
                let time = started.elapsed();
                session.close().await?;
                Ok((time, found))
            })
            .with_context(|| format!("the run {way} failed"))?;
        drop(progress);
        let outcome = gateway.stop();
        if found != self.staff.paid_to_first(employees) {
            bail!("the run {way} got a wrong answer: {} salaries, not those that were made", found.len());
        }
        let late = outcome.links.iter().filter_map(|link| Some(2 * error_mean(link.stats.as_ref().ok()?)));
        let late = late.max().unwrap_or_default(); // a trip goes both ways
        Ok(Run { time, analysis: outcome.analyzer.finish(&Mutes::default()), late })
    }
}

/// `12.9 ms`: all of a round-trip time's digits.
pub(super) fn milliseconds(rtt: Duration) -> String {
    format!("{} ms", rtt.as_nanos() as f64 / 1e6)
}

/// The mean of a link's release errors, but for the worst half of a hundredth.
fn error_mean(stats: &LinkStats) -> Duration {
    let sum: Duration = (0..ERROR_QUANTILES)
        .map(|index| stats.error_at((f64::from(index) + 0.5) / f64::from(ERROR_QUANTILES)))
        .sum();
    sum / ERROR_QUANTILES
}

/// To one digit and zeros.
fn rounded_down(number: usize) -> usize {
    let unit = 10_usize.pow(number.checked_ilog10().unwrap_or(0));
    number / unit * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAR: Duration = Duration::from_micros(12_900);

    #[test]
    fn from_afar_the_loop_runs_over_few_employees_unless_all_are_asked_for() {
        let plan = Plan::new(10_000, FAR, false);
        assert_eq!((plan.distances.len(), plan.sample), (3, Some(500)));
        assert!(plan.is_measured(Way::AsIs, 10_000, NEAR));
        assert!(!plan.is_measured(Way::AsIs, 10_000, FAR));
        assert!(plan.is_measured(Way::AsIs, 500, FAR) && plan.is_measured(Way::Join, 10_000, FAR));
        let full = Plan::new(10_000, FAR, true);
        assert_eq!((full.sample, full.is_measured(Way::AsIs, 10_000, FAR)), (None, true));
    }

    #[test]
    fn the_announcement_says_what_is_run_and_how_long_it_takes() {
        let short = Plan::new(10_000, FAR, false).announcement();
        for said in ["10,000 employees", "first 500 only", "12.9 ms", "3 distances", "exact", "About 25 s"] {
            assert!(short.contains(said), "{said}: {short}");
        }
        assert!(short.lines().all(|line| line.chars().count() <= 100), "{short}");
        let full = Plan::new(10_000, FAR, true).announcement();
        assert!(full.contains("About 150 s") && !full.contains("--full"), "{full}");
    }

    #[test]
    fn a_short_loop_is_run_as_a_whole() {
        assert_eq!(Plan::new(50, FAR, false).sample, None);
        assert_eq!(Plan::new(5, Duration::from_secs(1), false).sample, None);
        assert_eq!(Plan::new(50, Duration::from_secs(1), false).sample, Some(SAMPLE_MIN));
    }

    #[test]
    fn the_same_distance_is_not_gone_twice() {
        assert_eq!(Plan::new(50, NEAR, false).distances, [Duration::ZERO, NEAR]);
    }
}
