//! Generated programs run on the model by themselves and through sessions with all remedies: every byte that a program
//! sees, the rows that are committed after each step, and what there is of the sessions whenever nothing is under way are
//! the same. The clock is a number and nothing sleeps: a seed gives the same run.
//!
//! `ONETRIP_PROGRAMS=100000` runs more, `ONETRIP_FROM=5000` others, `ONETRIP_FAMILY=loops ONETRIP_SEED=7` the one program
//! that a failure names, `ONETRIP_REMEDIES=exact,-begin` other remedies (without minima for what they remove).

mod rig;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use onetrip_ledger::Remedy;
use onetrip_session::Remedies;
use onetrip_testkit::asked::Outcome;
use onetrip_testkit::messages::query;
use onetrip_testkit::shrink::cut_down;
use onetrip_testkit::step::{Aside, Program, Step, Wait};
use rig::compare::{difference, is_own_end};
use rig::family::{FAMILIES, Family, distance, is_shaken, of_seed};

use rig::simulation::{Seen, Way, run};

/// Programs of the short form.
const PROGRAMS: u64 = 4000;
/// Programs of a family from which on what was removed from them is judged; of fewer, too little may be by chance.
const JUDGED_MIN: u64 = 50;

/// What was asked for in the environment.
struct Wanted {
    seeds: std::ops::Range<u64>,
    family: Option<&'static Family>,
    remedies: Remedies,
    /// Whether to be content with what was removed, whatever it is.
    is_special: bool,
}

impl Wanted {
    fn read() -> Self {
        let number = |name: &str| {
            let text = std::env::var(name).ok()?;
            Some(text.parse::<u64>().unwrap_or_else(|_| panic!("{name}={text}: a number is needed")))
        };
        let seed = number("ONETRIP_SEED");
        let from = number("ONETRIP_FROM").unwrap_or(0);
        let all = from..from + number("ONETRIP_PROGRAMS").unwrap_or(PROGRAMS);
        let name = std::env::var("ONETRIP_FAMILY").ok();
        let find = |name: &String| {
            FAMILIES.iter().find(|family| family.name == name).expect("ONETRIP_FAMILY is one")
        };
        let text = std::env::var("ONETRIP_REMEDIES").ok();
        Self {
            seeds: seed.map_or(all, |seed| seed..seed + 1),
            family: name.as_ref().map(find),
            remedies: text
                .as_ref()
                .map_or_else(Remedies::exact, |text| text.parse().expect("ONETRIP_REMEDIES are")),
            is_special: seed.is_some() || text.is_some(),
        }
    }
}

/// Counts of one family.
#[derive(Debug, Default, Clone)]
struct Count {
    programs: u64,
    steps: u64,
    blocked: u64,
    failed: u64,
    at_rest: u64,
    /// Sessions that could not go on, and said so.
    ended: u64,
    /// Pieces that were read ahead and failed.
    failed_ahead: u64,
    removed: BTreeMap<Remedy, u64>,
}

impl Count {
    fn add(&mut self, seen: &Seen) {
        let count = |is: &dyn Fn(&rig::lane::Taken) -> bool| {
            seen.taken.iter().filter(|taken| is(taken)).count() as u64
        };
        self.programs += 1;
        self.steps += seen.taken.len() as u64;
        self.blocked += count(&|taken| taken.outcome == Outcome::Blocked);
        self.failed += count(&|taken| taken.messages.iter().any(|message| message.tag == b'E'));
        self.at_rest += count(&|taken| taken.state.is_some());
        self.failed_ahead += seen.failed_ahead;
        self.ended += count(&|taken| taken.messages.iter().any(is_own_end));
        for (remedy, trips) in &seen.removed {
            *self.removed.entry(*remedy).or_default() += trips;
        }
    }
}

/// How the program of a seed reaches the server.
fn through(seed: u64, remedies: &Remedies) -> Way {
    let is_kept =
        |remedy: &Remedy| remedies.has(*remedy) && !(is_shaken(seed) && *remedy == Remedy::Statements);
    let remedies = Remedy::ALL.into_iter().filter(is_kept).collect();
    Way::Through { remedies, rtt: distance(seed), shaken_by: is_shaken(seed).then_some(seed) }
}

/// A program's run through sessions, or where it differs from the direct one.
fn compared(program: &Program, seed: u64, remedies: &Remedies) -> Result<Seen, String> {
    let direct = run(program, &Way::Direct);
    let through = run(program, &through(seed, remedies));
    let found = difference(program, &direct, &through);
    if found.is_some() && is_cancelled(program) {
        // A cancel request may come too late for what it is meant for.
        let mut late = program.clone();
        late.steps.retain(|step| step.aside != Some(Aside::CancelsNext));
        let (mut through, direct) = (through, run(&late, &Way::Direct));
        through.taken.retain(|taken| !taken.shown.ends_with("CancelsNext"));
        return difference(&late, &direct, &through).map_or(Ok(through), Err);
    }
    found.or_else(|| miscounted(&through)).map_or(Ok(through), Err)
}

/// A session whose trips are not as many as the steps that its client has taken, whether they were removed or not. One that
/// had to end has not answered its last.
fn miscounted(through: &Seen) -> Option<String> {
    let has_ended = |session: usize| {
        let is_its = |taken: &&rig::lane::Taken| taken.shown.starts_with(&format!("{session}:"));
        through.taken.iter().filter(is_its).any(|taken| taken.messages.iter().any(is_own_end))
    };
    let is_wrong = |(session, (steps, trips)): &(usize, &(u64, u64))| steps != trips && !has_ended(*session);
    let (session, (steps, trips)) = through.counted.iter().enumerate().find(is_wrong)?;
    Some(format!("session {session} has taken {steps} steps, and {trips} trips are counted"))
}

fn is_cancelled(program: &Program) -> bool {
    program.steps.iter().any(|step| step.aside == Some(Aside::CancelsNext))
}

#[test]
fn programs_see_the_same_through_sessions() {
    let wanted = Wanted::read();
    let next = AtomicU64::new(wanted.seeds.start);
    let counts = Mutex::new(vec![Count::default(); FAMILIES.len()]);
    let failure = Mutex::new(None);
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::SeqCst);
                    if seed >= wanted.seeds.end || failure.lock().expect("no panic").is_some() {
                        break;
                    }
                    let family = wanted.family.unwrap_or_else(|| of_seed(seed));
                    let place =
                        FAMILIES.iter().position(|other| other.name == family.name).expect("it is one");
                    match compared(&family.program(seed), seed, &wanted.remedies) {
                        Ok(seen) => counts.lock().expect("no panic")[place].add(&seen),
                        Err(found) => {
                            // Before the program is cut down, which may take long.
                            println!("DIFFERENT: ONETRIP_FAMILY={} ONETRIP_SEED={seed}", family.name);
                            failure.lock().expect("no panic").get_or_insert((family, seed, found));
                        }
                    }
                }
            });
        }
    });
    if let Some((family, seed, found)) = failure.into_inner().expect("no panic") {
        let fails = |program: &Program| compared(program, seed, &wanted.remedies).is_err();
        let program = cut_down(family.program(seed), fails);
        let found = compared(&program, seed, &wanted.remedies).err().unwrap_or(found);
        panic!("ONETRIP_FAMILY={} ONETRIP_SEED={seed}: {found}\n{}", family.name, program.shown());
    }
    judge(&counts.into_inner().expect("no panic"), wanted.is_special);
}

/// Panics where too little was removed for the programs to have tested anything.
fn judge(counts: &[Count], is_special: bool) {
    let mut shown = String::new();
    let mut missing = Vec::new();
    for (family, count) in FAMILIES.iter().zip(counts) {
        let Count { programs, steps, blocked, failed, at_rest, ended, failed_ahead, removed } = count;
        let _ = write!(
            shown,
            "{}: {programs} programs, {steps} steps, {failed} failed, {blocked} blocked, {at_rest} at rest, {ended} ended, {failed_ahead} errors ahead",
            family.name
        );
        for (remedy, trips) in removed {
            let _ = write!(shown, ", {} {:.2}", remedy.as_str(), *trips as f64 / *programs as f64);
        }
        shown.push('\n');
        if (*ended as f64) < family.ended_min * *programs as f64 {
            missing.push(format!("{}: {ended} sessions of {programs} programs had to end", family.name));
        }
        if family.name == "failing_pieces" && *programs > 20 && *failed_ahead == 0 {
            missing.push(format!("{}: no error has met a piece that was read ahead", family.name));
        }
        for (name, least) in family.removed_min {
            let trips: u64 =
                removed.iter().filter(|(one, _)| one.as_str() == *name).map(|(_, trips)| trips).sum();
            if *programs >= JUDGED_MIN && (trips as f64) < least * *programs as f64 {
                missing.push(format!(
                    "{}: {name} has removed {trips} trips of {programs} programs",
                    family.name
                ));
            }
        }
    }
    println!("{shown}");
    assert!(is_special || missing.is_empty(), "{missing:?}");
}

#[test]
fn a_seed_gives_the_same_run_again() {
    for family in &FAMILIES {
        let run = |seed| run(&family.program(seed), &through(seed, &Remedies::exact()));
        let (one, two) = (run(5), run(5));
        assert_eq!((one.taken, one.removed), (two.taken, two.removed));
    }
}

#[test]
fn what_waits_for_a_lock_is_committed_once_the_end_that_was_answered_has_arrived() {
    let mut program = by_hand(&[
        (0, "SELECT 1"),
        (1, "SELECT 1"),
        (2, "SELECT 1"),
        (1, "BEGIN ISOLATION LEVEL REPEATABLE READ"),
        (1, "SELECT id FROM p WHERE id = 104"),
        (2, "BEGIN; LOCK TABLE p; ROLLBACK"),
        (0, "UPDATE p SET name = name || '*'"),
        (1, "ROLLBACK"),
        (1, "SELECT 1"),
    ]);
    // The answer comes before the server has the end.
    program.steps[7].pause = Duration::ZERO;
    assert!(removed_unseen(&program, Remedy::Commit) >= 1);
}

/// A program of simple queries, by session; time passes behind each.
fn by_hand(steps: &[(usize, &str)]) -> Program {
    let step = |(session, text): &(usize, &str)| {
        let step = Step::new(*session, query(text), Wait::Ready(1), *text);
        Step { pause: Duration::from_millis(100), ..step }
    };
    let sessions = steps.iter().map(|(session, _)| session + 1).max().unwrap_or(1);
    Program { sessions, steps: steps.iter().map(step).collect() }
}

/// Trips that a remedy has removed from a program that sees no difference.
fn removed_unseen(program: &Program, remedy: Remedy) -> u64 {
    let seen = compared(program, 0, &Remedies::exact()).expect("no difference");
    seen.removed.get(&remedy).copied().unwrap_or_default()
}

#[test]
fn a_chained_transaction_reads_anew() {
    let read = "SELECT v FROM w WHERE id = 3";
    let program = by_hand(&[
        (0, "SELECT 1"),
        (1, "SELECT 1"),
        (0, "BEGIN ISOLATION LEVEL REPEATABLE READ"),
        (0, read),
        (0, read),
        (0, read),
        (0, "COMMIT AND CHAIN"),
        (1, "UPDATE w SET v = v + 1 WHERE id = 3"),
        (0, read),
        (0, "COMMIT"),
    ]);
    assert!(removed_unseen(&program, Remedy::Repeats) >= 1);
}

#[test]
fn a_declare_that_fails_leaves_the_cursor_of_its_name() {
    let (declare, fetch) =
        ("DECLARE c1 CURSOR WITH HOLD FOR SELECT id FROM n ORDER BY id", "FETCH 10 FROM c1");
    let program = by_hand(&[
        (0, "SELECT 1"),
        (0, declare),
        (0, fetch),
        (0, fetch),
        (0, declare),
        (0, fetch),
        (0, fetch),
        (0, fetch),
    ]);
    assert!(removed_unseen(&program, Remedy::Cursors) >= 1);
}

#[test]
fn a_chain_behind_a_failure_has_the_level_that_the_failure_left() {
    let read = "SELECT v FROM w WHERE id = 3";
    let program = by_hand(&[
        (0, "SELECT 1"),
        (1, "SELECT 1"),
        (0, "BEGIN ISOLATION LEVEL REPEATABLE READ"),
        (0, read),
        (0, "SELECT 1 / 0"),
        (0, "ROLLBACK AND CHAIN"),
        (0, read),
        (0, read),
        (1, "UPDATE w SET v = v + 1 WHERE id = 3"),
        (0, read),
        (0, "COMMIT"),
    ]);
    assert_eq!(removed_unseen(&program, Remedy::Repeats), 0);
}

#[test]
fn a_level_that_is_set_again_is_the_one_that_counts() {
    let read = "SELECT v FROM w WHERE id = 3";
    let program = by_hand(&[
        (0, "SELECT 1"),
        (1, "SELECT 1"),
        (0, "BEGIN ISOLATION LEVEL REPEATABLE READ"),
        (0, "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"),
        (0, read),
        (0, read),
        (1, "UPDATE w SET v = v + 1 WHERE id = 3"),
        (0, read),
        (0, "COMMIT"),
    ]);
    assert_eq!(removed_unseen(&program, Remedy::Repeats), 0);
}
