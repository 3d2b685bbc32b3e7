//! Outside snapshots (READ COMMITTED), every statement sees the latest commit. An answer from memory is then legal only
//! if what the program sees never goes back in time. This model, which nothing but this test uses, explores a loop of
//! two statements per row, level by level or in program order, and shows why results of one flight may be served only
//! while nothing else of the session has run since: without that rule it finds the trap.

use std::collections::VecDeque;

/// T1(row 0), T2(row 0), T1(row 1), T2(row 1): the order in which the program asks.
const STATEMENTS: usize = 4;

const STEPS: usize = 8;

/// One to go back behind, and one more.
const COMMITS_MAX: u32 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The statements of one level, T1 or T2, leave for all rows that the program has not come to.
    FlyLevel(usize),
    /// So many statements from the program's place on leave in its order.
    FlyOrdered(usize),
    /// The server runs the oldest flight.
    Run,
    /// The program asks for its next statement.
    Ask,
    /// Another session commits.
    Commit,
}

/// A flight on its way, or an answer's origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Flight {
    first: usize,
    is_ordered: bool,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    flight: Flight,
    /// The commits that the answer has seen.
    version: u32,
    /// Something has run since that forbids to serve it.
    is_broken: bool,
}

#[derive(Debug, Clone, Default)]
struct World {
    commits: u32,
    queue: VecDeque<(Flight, Vec<usize>)>,
    /// By statement.
    entries: [Option<Entry>; STATEMENTS],
    asked: usize,
    /// The versions that the program saw, one after the other; and which came from memory.
    seen: Vec<(u32, bool)>,
}

impl World {
    fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        if self.commits < COMMITS_MAX {
            steps.push(Step::Commit);
        }
        if self.asked < STATEMENTS {
            steps.extend([Step::Ask, Step::FlyLevel(0), Step::FlyLevel(1)]);
            steps.extend((1..=2).map(Step::FlyOrdered));
        }
        if !self.queue.is_empty() {
            steps.push(Step::Run);
        }
        steps
    }

    fn fly(&mut self, statements: Vec<usize>, is_ordered: bool) {
        let Some(&first) = statements.first() else {
            return;
        };
        self.queue.push_back((Flight { first, is_ordered }, statements));
    }

    fn run(&mut self) {
        if let Some((flight, statements)) = self.queue.pop_front() {
            self.breaks(Some(flight));
            for statement in statements {
                self.entries[statement] = Some(Entry { flight, version: self.commits, is_broken: false });
            }
        }
    }

    /// Rule (a): what runs on the server ends the time in which earlier results may be served. Not so later flights of
    /// the loop, if all are in the order of the program.
    fn breaks(&mut self, flight: Option<Flight>) {
        for entry in self.entries.iter_mut().flatten() {
            let goes_on = flight.is_some_and(|flight| {
                flight.is_ordered && entry.flight.is_ordered && flight.first > entry.flight.first
            });
            entry.is_broken |= !goes_on;
        }
    }

    fn take(&mut self, step: Step, with_rule: bool) {
        match step {
            Step::Commit => self.commits += 1,
            Step::FlyLevel(level) => {
                let rows = (self.asked..STATEMENTS).filter(|statement| statement % 2 == level);
                self.fly(rows.filter(|statement| self.entries[*statement].is_none()).collect(), false);
            }
            Step::FlyOrdered(count) => {
                let unknown = (self.asked..STATEMENTS).filter(|statement| self.entries[*statement].is_none());
                self.fly(unknown.take(count).collect(), true);
            }
            Step::Run => self.run(),
            Step::Ask => self.ask(with_rule),
        }
    }

    fn ask(&mut self, with_rule: bool) {
        while !self.queue.is_empty() {
            self.run(); // what is on its way is ahead of the program's request
        }
        let statement = self.asked;
        self.asked += 1;
        let entry = self.entries[statement].filter(|entry| !with_rule || !entry.is_broken);
        match entry {
            Some(entry) => self.seen.push((entry.version, true)),
            None => {
                self.breaks(None);
                self.seen.push((self.commits, false));
            }
        }
    }

    fn goes_back(&self) -> bool {
        self.seen.windows(2).any(|pair| pair[1].0 < pair[0].0)
    }
}

#[derive(Debug, Default)]
struct Explored {
    cases: u64,
    served: u64,
    traps: Vec<Vec<Step>>,
}

fn visit(world: &World, with_rule: bool, path: &mut Vec<Step>, explored: &mut Explored) {
    if world.goes_back() {
        explored.traps.push(path.clone());
        return;
    }
    if path.len() == STEPS {
        explored.cases += 1;
        explored.served += world.seen.iter().filter(|(_, from_memory)| *from_memory).count() as u64;
        return;
    }
    for step in world.steps() {
        let mut next = world.clone();
        next.take(step, with_rule);
        path.push(step);
        visit(&next, with_rule, path, explored);
        path.pop();
    }
}

fn explore(with_rule: bool) -> Explored {
    let mut explored = Explored::default();
    visit(&World::default(), with_rule, &mut Vec::new(), &mut explored);
    explored
}

#[test]
fn with_the_rule_a_program_never_goes_back_in_time() {
    let explored = explore(true);
    assert_eq!(explored.traps.first(), None);
    assert!(explored.cases > 50_000 && explored.served > 50_000, "{} {}", explored.cases, explored.served);
}

#[test]
fn without_the_rule_the_level_order_trap_is_found() {
    let explored = explore(false);
    // T1 of both rows, a commit, T2 of both rows; the program then asks T1, T2 and T1, and the last one is older
    let trap = [
        Step::FlyLevel(0),
        Step::Run,
        Step::Commit,
        Step::FlyLevel(1),
        Step::Run,
        Step::Ask,
        Step::Ask,
        Step::Ask,
    ];
    assert!(explored.traps.iter().any(|found| found == &trap), "{:?}", explored.traps.first());
}
