//! Many programs, on a few databases at once.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread;

use onetrip_gateway::{GatewayConfig, Remedies, Verify};
use onetrip_ledger::{Mutes, Remedy};
use onetrip_wire::pg::backend;

use super::compare::{Masked, difference};
use super::family::{FAMILIES, Row, of_seed};
use super::minima::{self, Served};
use super::perturb::{PERTURBS, RELOADS};
use super::run::{Outcome, Place, Seen, Taken, run};
use super::shrink::cut_down;
use super::state::Observer;
use super::step::Program;
use super::{schema, state};
use crate::common::client::{Endpoint, RawClient};
use crate::common::server::{RunningGateway, Server, config, repository};

/// How often a program that is `is_timed` is run again, and in how many of these runs it has to differ: else it was the machine
/// that held it up.
const TIMED_CHANCES: usize = 6;
const TIMED_REPEATS: usize = 3;
/// Of all timed programs, how many may be held up.
const HELD_UP_SHARE_MAX: f64 = 0.01;

/// Programs that run at once, each on databases of its own.
const WORKERS: usize = 4;
/// Of all steps, how many two direct runs may disagree on.
const MASKED_SHARE_MAX: f64 = 0.005;

/// Programs of a run from which on each family must have removed its least.
const LARGE: u64 = 1000;

/// How often a program is run again directly whose runs disagree on more than a tenth of its steps.
const DIRECT_RETRIES: usize = 3;

/// How often a program is run again directly whose run through the gateway is another.
const DIRECT_CHANCES: usize = 6;

/// What was asked for in the environment.
struct Wanted {
    seeds: std::ops::Range<u64>,
    /// Programs that differ until no more are tried.
    failures_max: usize,
    remedies: Remedies,
    verify: Option<Verify>,
    /// Whether to be content with what was removed, whatever it is.
    is_special: bool,
}

impl Wanted {
    fn read(programs: u64) -> Self {
        let number = |name: &str| {
            let text = std::env::var(name).ok()?;
            Some(text.parse::<u64>().unwrap_or_else(|_| panic!("{name}={text}: a number is needed")))
        };
        let seed = number("ONETRIP_SEED");
        let from = number("ONETRIP_FROM").unwrap_or_else(slice_of_commit);
        let all = from..from + number("ONETRIP_PROGRAMS").unwrap_or(programs);
        let seeds = seed.map_or(all, |seed| seed..seed + 1);
        println!(
            "programs {seeds:?}; ONETRIP_FROM={} ONETRIP_PROGRAMS={} runs them again",
            seeds.start,
            seeds.end - seeds.start
        );
        let failures_max = number("ONETRIP_FAILURES").unwrap_or(1) as usize;
        let text = std::env::var("ONETRIP_REMEDIES").ok();
        let remedies =
            text.as_ref().map_or_else(Remedies::exact, |text| text.parse().expect("ONETRIP_REMEDIES are"));
        let verify = std::env::var("ONETRIP_VERIFY").ok();
        let verify = match verify.as_deref() {
            Some("none") => None,
            text => Some(text.unwrap_or("1/2").parse().expect("ONETRIP_VERIFY is 1/n, or none")),
        };
        let is_special = seed.is_some() || text.is_some();
        Self { seeds, failures_max, remedies, verify, is_special }
    }
}

/// The first program of a commit: each commit runs others, and the same ones again.
fn slice_of_commit() -> u64 {
    let git = Command::new("git").args(["rev-parse", "HEAD"]).current_dir(repository()).output();
    let hash = git.ok().filter(|done| done.status.success()).map(|done| done.stdout).unwrap_or_default();
    let digits = String::from_utf8_lossy(&hash[..hash.len().min(6)]).into_owned();
    // What is no checkout has no commit.
    1000 * u64::from_str_radix(&digits, 16).unwrap_or(0)
}

/// Counts of one family.
#[derive(Debug, Default, Clone, Copy)]
struct Count {
    programs: u64,
    steps: u64,
    masked: u64,
    /// Steps that were answered by an error.
    failed: u64,
    /// Steps that waited for another session.
    blocked: u64,
    /// Programs that a machine which stands still for a moment runs otherwise.
    timed: u64,
    /// Timed programs that differed now and then.
    held_up: u64,
}

impl Count {
    /// A program that was run, as a direct run has seen it.
    fn of(program: &Program, seen: &Seen, masked: &Masked) -> Self {
        let count = |is: &dyn Fn(&Taken) -> bool| seen.taken.iter().filter(|taken| is(taken)).count() as u64;
        let has_error =
            |taken: &Taken| taken.messages.iter().any(|message| message.tag == backend::ERROR_RESPONSE);
        Self {
            programs: 1,
            steps: seen.taken.len() as u64,
            masked: masked.steps.len() as u64,
            failed: count(&has_error),
            blocked: count(&|taken| taken.outcome == Outcome::Blocked),
            timed: u64::from(is_timed(program)),
            held_up: 0,
        }
    }

    fn add(&mut self, other: Self) {
        self.programs += other.programs;
        self.steps += other.steps;
        self.masked += other.masked;
        self.failed += other.failed;
        self.blocked += other.blocked;
        self.timed += other.timed;
        self.held_up += other.held_up;
    }
}

/// Whether it has a limit of milliseconds. A machine that stands still for so long, for either of two runs, makes them differ.
fn is_timed(program: &Program) -> bool {
    let limit = |shown: &str| {
        let (_, value) = shown.split_once("_timeout = '")?;
        value.split('\'').next()?.ends_with("ms").then_some(())
    };
    program.steps.iter().any(|step| limit(&step.shown).is_some())
}

/// Where programs come from.
pub(crate) struct Source<'a> {
    /// Kinds of programs; each has a gateway of its own.
    pub(crate) rows: &'a [Row],
    /// The kind and the program of a seed.
    pub(crate) program: Box<dyn Fn(u64) -> (usize, Program) + Sync + 'a>,
    /// Each run has a database of its own, made from this one; otherwise those with the rig's tables are used again.
    pub(crate) template: Option<&'a str>,
    /// Of all steps, how many two direct runs may disagree on.
    pub(crate) masked_max: f64,
    /// Trips that must have been removed per program, on average, for it to have tested anything.
    pub(crate) removed_min: f64,
    /// Whether its shapes are those of the table of minima.
    pub(crate) has_minima: bool,
    /// The port of a pooler that all runs go through, the direct ones, too.
    pub(crate) pooler: Option<u16>,
}

impl Source<'_> {
    /// The rig's own families.
    fn families() -> Self {
        let program = |seed| {
            let row = row_wanted().unwrap_or_else(|| of_seed(seed));
            let place = FAMILIES.iter().position(|other| other.name == row.name).expect("it is one");
            (place, row.perturbed(seed))
        };
        Source {
            rows: &FAMILIES,
            program: Box::new(program),
            template: None,
            masked_max: MASKED_SHARE_MAX,
            removed_min: 2.0,
            has_minima: true,
            pooler: None,
        }
    }
}

/// The way to a server that is called direct.
fn way(server: &Server, pooler: Option<u16>) -> Endpoint {
    pooler.map_or_else(|| server.direct(), Endpoint::tcp)
}

/// The family that is asked for.
fn row_wanted() -> Option<&'static Row> {
    let name = std::env::var("ONETRIP_FAMILY").ok()?;
    Some(FAMILIES.iter().find(|row| row.name == name).expect("ONETRIP_FAMILY is one"))
}

/// Runs programs of the rig's families.
pub(crate) fn prove(server: &Server, programs: u64) {
    prove_of(server, &Source::families(), programs);
}

/// The same with a pooler in between.
pub(crate) fn prove_behind(server: &Server, pooler: u16, programs: u64) {
    let source = Source { pooler: Some(pooler), has_minima: false, masked_max: 0.02, ..Source::families() };
    prove_of(server, &source, programs);
}

/// Runs programs; panics at the first that a gateway with remedies changes, and where too little was removed.
pub(crate) fn prove_of(server: &Server, source: &Source<'_>, programs: u64) {
    let wanted = Wanted::read(programs);
    let traces = tempfile::tempdir().expect("a directory");
    let gateways: Vec<RunningGateway> =
        source.rows.iter().map(|row| gateway(server, source.pooler, row, &wanted, traces.path())).collect();
    let endpoints: Vec<Endpoint> = gateways.iter().map(RunningGateway::endpoint).collect();
    let next = AtomicU64::new(wanted.seeds.start);
    let counts = Mutex::new(vec![Count::default(); source.rows.len()]);
    let failures = Mutex::new(Vec::new());
    let (serializable, reloads) = (RwLock::new(()), RwLock::new(()));
    server.psql("postgres", &schema::create_role());
    // Before any program changes the configuration.
    let benches: Vec<Bench<'_>> = (0..WORKERS).map(|worker| Bench::set_up(server, worker, source)).collect();
    thread::scope(|scope| {
        for bench in &benches {
            let (next, counts, failures) = (&next, &counts, &failures);
            let (serializable, reloads) = (&serializable, &reloads);
            let (endpoints, wanted) = (&endpoints, &wanted);
            scope.spawn(move || {
                loop {
                    let seed = next.fetch_add(1, Ordering::SeqCst);
                    let has_failed = failures.lock().expect("no panic").len() >= wanted.failures_max;
                    if seed >= wanted.seeds.end || has_failed {
                        break;
                    }
                    let (place, program) = (source.program)(seed);
                    let name = source.rows[place].name;
                    if wanted.seeds.end - wanted.seeds.start == 1 {
                        println!("{name}:\n{}", program.shown());
                    }
                    let _alone = Turn::take(serializable, reloads, &program);
                    let named = Named(format!("ONETRIP_FAMILY={name} ONETRIP_SEED={seed}"));
                    match bench.try_program(&program, &endpoints[place], &named.0) {
                        Ok(count) => counts.lock().expect("no panic")[place].add(count),
                        Err(found) => {
                            let named = format!("{}: {found}", named.0);
                            println!("CUT DOWN: {named}");
                            failures.lock().expect("no panic").push(named);
                        }
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().expect("no panic");
    let is_special = wanted.is_special || !failures.is_empty();
    judge(source, gateways, &traces, &counts.into_inner().expect("no panic"), is_special);
    assert!(failures.is_empty(), "{} programs differ:\n{}", failures.len(), failures.join("\n"));
}

/// A program under way: one in which the rig panics is told, too.
struct Named(String);

impl Drop for Named {
    fn drop(&mut self) {
        if thread::panicking() {
            println!("PANICKED: {}", self.0);
        }
    }
}

/// What a program shares with those of other databases of its server, or does not.
struct Turn<'a> {
    _serializable: Share<'a>,
    _configuration: Share<'a>,
}

enum Share<'a> {
    Alone(RwLockWriteGuard<'a, ()>),
    WithOthers(RwLockReadGuard<'a, ()>),
    Nothing,
}

impl<'a> Share<'a> {
    fn alone(lock: &'a RwLock<()>) -> Self {
        Self::Alone(lock.write().unwrap_or_else(PoisonError::into_inner))
    }

    fn with_others(lock: &'a RwLock<()>) -> Self {
        Self::WithOthers(lock.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<'a> Turn<'a> {
    /// A transaction that is deferrable waits for all serializable ones of the server, those of other databases, too; and a
    /// configuration is all sessions'.
    fn take(serializable: &'a RwLock<()>, reloads: &'a RwLock<()>, program: &Program) -> Self {
        let says =
            |word: &str| program.steps.iter().any(|step| step.shown.to_ascii_uppercase().contains(word));
        let configuration = match says(&RELOADS.to_ascii_uppercase()) {
            true => Share::alone(reloads),
            false => Share::with_others(reloads),
        };
        let serializable = match () {
            () if says("DEFERRABLE") => Share::alone(serializable),
            () if says("SERIALIZABLE") => Share::with_others(serializable),
            () => Share::Nothing,
        };
        Self { _serializable: serializable, _configuration: configuration }
    }
}

fn gateway(
    server: &Server,
    pooler: Option<u16>,
    row: &Row,
    wanted: &Wanted,
    traces: &Path,
) -> RunningGateway {
    let config = config(pooler.map_or_else(|| server.upstream(), |port| server.upstream_by(port)));
    let (remedies, verify) = (wanted.remedies, wanted.verify);
    let (link, trace) = (Some(row.link()), Some(traces.join(row.name)));
    RunningGateway::start(GatewayConfig { remedies, verify, link, trace, ..config })
}

/// Shows what was counted, and panics if it is not enough.
fn judge(
    source: &Source<'_>,
    gateways: Vec<RunningGateway>,
    traces: &tempfile::TempDir,
    counts: &[Count],
    is_special: bool,
) {
    let mut short = Vec::new();
    let mut totals: BTreeMap<Remedy, u64> = BTreeMap::new();
    let mut served = Served::default();
    // In fewer programs one or the other may be missing by chance.
    let is_large = !is_special && counts.iter().map(|count| count.programs).sum::<u64>() >= LARGE;
    for ((row, gateway), count) in source.rows.iter().zip(gateways).zip(counts) {
        let summary = gateway.stop().analyzer.finish(&Mutes::default()).summary;
        served.add(&traces.path().join(row.name));
        assert_eq!(summary.differed, 0, "{}: wrong answers: {:?}", row.name, summary.differences);
        let removed: BTreeMap<Remedy, u64> = summary.removed;
        println!(
            "{:<11} {:>5} programs {:>7} steps {:>6} errors {:>5} waits {:>4} masked, removed {removed:?}",
            row.name, count.programs, count.steps, count.failed, count.blocked, count.masked
        );
        for (name, per_program) in row.removed_min {
            let Ok(remedy) = name.parse::<Remedy>() else { continue };
            let (is, least) =
                (removed.get(&remedy).copied().unwrap_or(0), per_program * count.programs as f64);
            *totals.entry(remedy).or_default() += is;
            if (is as f64) < least && is_large {
                short.push(format!("{}: {name} removed {is}, and {least} is the least", row.name));
            }
        }
    }
    let (programs, removed) =
        (counts.iter().map(|count| count.programs).sum::<u64>(), totals.values().sum::<u64>());
    if (removed as f64) < source.removed_min * programs as f64 && !is_special {
        short.push(format!("{removed} trips were removed from {programs} programs"));
    }
    if source.has_minima {
        let is_whole = !is_special && programs >= minima::PROGRAMS_MIN;
        let (table, wrong) = served.table(is_whole);
        println!("{table}");
        // What must never be served must not be by any run.
        short.extend(wrong);
    }
    let (steps, masked) =
        counts.iter().fold((0, 0), |sum, count| (sum.0 + count.steps, sum.1 + count.masked));
    let (timed, held_up) =
        counts.iter().fold((0, 0), |sum, count| (sum.0 + count.timed, sum.1 + count.held_up));
    println!("{held_up} of {timed} programs with limits of milliseconds differed now and then");
    println!("{masked} of {steps} steps are masked: two direct runs disagree");
    assert!(short.is_empty(), "{}", short.join("\n"));
    assert!(
        held_up as f64 <= (HELD_UP_SHARE_MAX * timed as f64).max(1.0),
        "{held_up} of {timed} programs with limits of milliseconds differed now and then"
    );
    assert!(
        masked as f64 <= source.masked_max * steps as f64 || is_special,
        "{masked} of {steps} steps are masked"
    );
}

/// Two databases: one that is only reached directly, one that is only reached through gateways.
struct Bench<'a> {
    server: &'a Server,
    way: Endpoint,
    is_pooled: bool,
    template: Option<&'a str>,
    direct: String,
    through: String,
    /// Sessions of the one and of the other, where these are used again.
    observers: [Mutex<Option<Observer>>; 2],
}

impl<'a> Bench<'a> {
    fn set_up(server: &'a Server, worker: usize, source: &Source<'a>) -> Self {
        let template = source.template;
        let names = ["direct", "through"].map(|kind| format!("rig_{kind}_{worker}"));
        for name in names.iter().filter(|_| template.is_none()) {
            server.psql("postgres", &format!("CREATE DATABASE {name}"));
            server.psql(name, &schema::create());
        }
        let [direct, through] = names;
        // What is made anew for each run may have one name.
        let through = if template.is_some() { direct.clone() } else { through };
        Self {
            server,
            way: way(server, source.pooler),
            is_pooled: source.pooler.is_some(),
            template,
            direct,
            through,
            observers: Default::default(),
        }
    }

    /// What was counted, or how the gateway differs from the server.
    fn try_program(&self, program: &Program, gateway: &Endpoint, name: &str) -> Result<Count, String> {
        let (found, count) = self.difference(program, gateway);
        if found.is_none() {
            return Ok(count);
        }
        let is_timed = is_timed(program);
        let (chances, repeats) = if is_timed { (TIMED_CHANCES, TIMED_REPEATS) } else { (2, 1) };
        let fails = |program: &Program| {
            let differing = (0..chances).filter(|_| self.difference(program, gateway).0.is_some());
            differing.take(repeats).count() == repeats
        };
        let is_repeated = fails(program);
        if is_timed && !is_repeated {
            println!("HELD UP: {name}: {}", found.unwrap_or_default());
            return Ok(Count { held_up: 1, ..count });
        }
        // Before the program is cut down, which takes long.
        println!("DIFFERENT: {name}");
        // The first run may have met a moment that does not come back; it counts all the same.
        if !is_repeated {
            return Err(format!("now and then, {}\n{}", found.unwrap_or_default(), program.shown()));
        }
        let program = cut_down(program.clone(), fails);
        let again = (0..3).find_map(|_| self.difference(&program, gateway).0);
        Err(format!("{}\n{}", again.or(found).unwrap_or_default(), program.shown()))
    }

    /// How a run through the gateway differs from a direct one. Where it does, what a second direct run does otherwise is forgiven,
    /// and counted.
    fn difference(&self, program: &Program, gateway: &Endpoint) -> (Option<String>, Count) {
        let direct = &self.way;
        let mut first = self.run(program, direct, None, false);
        let through = self.run(program, gateway, Some(&first.state), false);
        let mut found = difference(&first, &through, &Masked::default());
        if found.is_none() {
            return (None, Count::of(program, &first, &Masked::default()));
        }
        let mut second = self.run(program, direct, None, false);
        let mut masked = Masked::between(&first, &second);
        // A busy machine may have held up one of them: what follows in it is worth little.
        for _ in 0..DIRECT_RETRIES {
            if masked.steps.len() * 10 <= first.taken.len() {
                break;
            }
            (first, second) = (second, self.run(program, direct, None, false));
            masked = Masked::between(&first, &second);
        }
        if let Some(first) = &masked.first {
            println!("two direct runs, {:.300}", first);
        }
        found = difference(&first, &through, &masked);
        // Which of two sessions goes on that waited for a third is chance: what any direct run does is allowed.
        for _ in 0..DIRECT_CHANCES {
            if found.is_none() {
                break;
            }
            masked.add(Masked::between(&first, &self.run(program, direct, None, false)));
            found = difference(&first, &through, &masked);
        }
        // When a session notices what another one has changed in the catalogue is chance, too (`docs/safety.md`, "What may
        // differ"). Direct runs alone do not show it: their server is at rest.
        if found.is_some() && program.steps.iter().any(|step| step.shown.starts_with(PERTURBS)) {
            masked.add(Masked::between(&first, &self.run(program, direct, None, true)));
            found = difference(&first, &through, &masked);
        }
        (found, Count::of(program, &first, &masked))
    }

    /// Runs a program on fresh tables.
    fn run(
        &self,
        program: &Program,
        endpoint: &Endpoint,
        expected: Option<&state::State>,
        spreads: bool,
    ) -> Seen {
        let direct = self.server.direct();
        let is_through = expected.is_some();
        let database = if is_through { &self.through } else { &self.direct };
        if let Some(template) = self.template {
            self.server.psql("postgres", &format!("DROP DATABASE IF EXISTS {database} WITH (FORCE)"));
            self.server.psql("postgres", &format!("CREATE DATABASE {database} TEMPLATE {template}"));
        }
        let mut kept = self.observers[usize::from(is_through)].lock().expect("no panic");
        let mut observer = kept.take().unwrap_or_else(|| Observer::open(&direct, database));
        let place = Place {
            endpoint,
            direct: &direct,
            database,
            is_pooled: self.is_pooled,
            spreads: spreads.then_some(self.server),
        };
        let seen = run(program, &place, &mut observer, expected);
        if program.steps.iter().any(|step| step.shown.contains(RELOADS)) {
            self.server.psql("postgres", "ALTER SYSTEM RESET ALL");
            self.server.psql("postgres", "SELECT pg_reload_conf(), pg_sleep(0.1)");
        }
        if self.template.is_some() {
            return seen;
        }
        // What changes tables goes the way of the program; contents alone are no business of a gateway's.
        if program.changes_schema() {
            let (reset, mut client) = (schema::create(), RawClient::session(endpoint, database));
            let errors = client.query(&reset);
            assert!(errors.iter().all(|message| message.tag != b'E'), "{reset}: {errors:?}");
        } else {
            observer.rows(&schema::refill());
        }
        observer.forget();
        *kept = Some(observer);
        seen
    }
}
