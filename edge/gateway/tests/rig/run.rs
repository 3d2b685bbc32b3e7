//! The schedule: the next step is taken when the one before has ended, or is seen to wait for another session.

use std::thread;
use std::time::{Duration, Instant};

pub(crate) use super::asked::Outcome;
use super::lane::Lane;
use super::perturb::PERTURBS;
use super::state::{self, Observer, State};
use super::step::{Aside, Patience, Program, Step, Wait};
use crate::common::client::Endpoint;
use crate::common::messages::{query, sync, terminate};
use crate::common::server::Server;
use crate::common::transcript::Message;

/// A statement that takes longer may be waiting for another session.
const FIRST_LOOK: Duration = Duration::from_millis(4);
/// And is looked at again so long after: a look costs the server more than most statements.
const NEXT_LOOK: Duration = Duration::from_millis(3);
/// It waits for another session if it does so all this time; the servers' `deadlock_timeout` is shorter, so that of two
/// that wait for each other it is the second that fails.
const SURELY: Duration = Duration::from_millis(20);
/// The same for a second session: with it the program ends, and on a busy machine the server finds a deadlock late.
const SURELY_AS_SECOND: Duration = Duration::from_millis(80);
/// Longest time for anything.
const PATIENCE: Duration = Duration::from_secs(15);
/// Steps in a failed transaction after which a program gives it up.
const FAILED_STEPS_MAX: usize = 3;
/// The servers' `deadlock_timeout`.
pub(crate) const DEADLOCK_TIMEOUT: &str = "deadlock_timeout=5ms";
/// Functions that jit has inlined tell other lines of PostgreSQL's source in their errors, and costs decide which are.
pub(crate) const NO_INLINING: &str = "jit_inline_above_cost=-1";

/// A step and all that came between it and the next of its session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Taken {
    /// The session and what it did.
    pub(crate) shown: String,
    pub(crate) outcome: Outcome,
    pub(crate) messages: Vec<Message>,
}

/// What a run has shown.
#[derive(Debug)]
pub(crate) struct Seen {
    /// In the order of the program, with a ROLLBACK where a transaction has failed for long; then what each session was
    /// asked in the end.
    pub(crate) taken: Vec<Taken>,
    /// The state at the end, while transactions were open, and after.
    pub(crate) state: State,
    /// The step at which a second session came to wait for others: from here on much is left to chance.
    pub(crate) raced_at: Option<usize>,
}

/// Where programs run.
pub(crate) struct Place<'a> {
    pub(crate) endpoint: &'a Endpoint,
    pub(crate) direct: &'a Endpoint,
    pub(crate) database: &'a str,
    /// Whether a session has no process of the server before its first statement.
    pub(crate) is_pooled: bool,
    /// The server, if what one session changes in its catalogue is to reach the others at once.
    pub(crate) spreads: Option<&'a Server>,
}

/// Runs a program on tables that are as created; `expected` is the state that is waited for, for a moment.
pub(crate) fn run(
    program: &Program,
    place: &Place<'_>,
    observer: &mut Observer,
    expected: Option<&State>,
) -> Seen {
    let mut run = Run::open(program, place, observer);
    for step in &program.steps {
        if run.raced_at.is_some() {
            break;
        }
        if run.lanes[step.session].has_failed_for() >= FAILED_STEPS_MAX {
            run.take(&simple(step.session, "ROLLBACK"));
        }
        run.take(step);
        if let Some(server) = place.spreads.filter(|_| step.shown.starts_with(PERTURBS)) {
            server.spread_changes();
        }
    }
    run.close(expected, place.is_pooled)
}

fn simple(session: usize, text: &str) -> Step {
    Step { patience: Patience::Ends, ..Step::new(session, query(text), Wait::Ready(1), text) }
}

struct Run<'o> {
    /// The step at which two sessions came to wait for others: which of them goes on first is left to chance, and nothing is done
    /// any more.
    raced_at: Option<usize>,
    lanes: Vec<Lane>,
    observer: &'o mut Observer,
    taken: Vec<Taken>,
    /// Of each taken step: its session, and where its messages begin.
    starts: Vec<Option<(usize, usize)>>,
}

impl<'o> Run<'o> {
    fn open(program: &Program, place: &Place<'_>, observer: &'o mut Observer) -> Self {
        let lane = |number| Lane::open(place.endpoint, place.database, &format!("rig_{number}"));
        let mut lanes: Vec<Lane> = (0..program.sessions).map(lane).collect();
        // The neighbour, who does not use the gateway.
        lanes.push(Lane::open(place.direct, place.database, &format!("rig_{}", program.sessions)));
        if place.is_pooled {
            lanes.iter_mut().for_each(Lane::greet);
        }
        let names: Vec<String> = (0..lanes.len()).map(|number| format!("rig_{number}")).collect();
        for (lane, process) in lanes.iter_mut().zip(observer.processes(&names)) {
            lane.process = process;
        }
        Self { raced_at: None, lanes, observer, taken: Vec::new(), starts: Vec::new() }
    }

    fn take(&mut self, step: &Step) {
        if !step.pause.is_zero() {
            thread::sleep(step.pause);
        }
        let lane = &mut self.lanes[step.session];
        let skipped = match () {
            () if lane.has_ended() => Some(Outcome::Over),
            () if lane.is_blocked() => Some(Outcome::PassedOver),
            () => None,
        };
        if let Some(outcome) = skipped {
            self.note(step, outcome, None);
            return;
        }
        if let Some(Aside::Cancels) = step.aside {
            lane.cancel();
            self.note(step, Outcome::Done, None);
            return;
        }
        let before = lane.status();
        lane.send(step);
        let start = lane.start();
        let outcome = self.settle(step.session, step.patience);
        self.note(step, outcome, Some((step.session, start)));
        let after = self.lanes[step.session].status();
        self.lanes[step.session].count_failed(after == b'E');
        let releases = ["ROLLBACK", "CHAIN", "unlock"].iter().any(|word| step.shown.contains(word));
        if outcome == Outcome::Done && (after == b'I' || after != before || releases) {
            self.look_at_blocked();
        }
    }

    fn note(&mut self, step: &Step, outcome: Outcome, start: Option<(usize, usize)>) {
        let shown = format!("{}: {}", step.session, step.shown);
        self.taken.push(Taken { shown, outcome, messages: Vec::new() });
        self.starts.push(start);
    }

    /// Waits for the end of a session's step, or for its wait for another session.
    fn settle(&mut self, session: usize, patience: Patience) -> Outcome {
        let begun = Instant::now();
        let others = (0..self.lanes.len()).filter(|other| *other != session);
        let is_second = others.filter(|other| self.lanes[*other].is_blocked()).count() > 0;
        let surely = if is_second { SURELY_AS_SECOND } else { SURELY };
        let mut waits_since = None;
        let mut limit = FIRST_LOOK;
        loop {
            if self.lanes[session].is_done_within(limit) {
                self.lanes[session].set_blocked(false);
                return Outcome::Done;
            }
            limit = NEXT_LOOK;
            if begun.elapsed() > PATIENCE {
                return Outcome::Hung;
            }
            if patience == Patience::Ends {
                continue;
            }
            if !self.observer.waits(self.lanes[session].process) {
                waits_since = None;
                continue;
            }
            let since = *waits_since.get_or_insert_with(Instant::now);
            if since.elapsed() >= surely {
                self.lanes[session].set_blocked(true);
                if is_second {
                    self.raced_at.get_or_insert(self.taken.len());
                }
                return Outcome::Blocked;
            }
        }
    }

    /// Something may have set waiting sessions free.
    fn look_at_blocked(&mut self) {
        for session in 0..self.lanes.len() {
            if self.lanes[session].is_blocked() {
                self.settle(session, Patience::Blocks);
            }
        }
    }

    /// Looks at everything, ends all transactions, looks again.
    fn close(mut self, expected: Option<&State>, is_pooled: bool) -> Seen {
        let mut state = state::open(self.observer, &self.lanes, expected);
        for session in 0..self.lanes.len() {
            for text in ["", "ROLLBACK", state::STATEMENTS, state::CURSORS, state::SETTINGS] {
                self.ask(session, text);
            }
        }
        let settled = self.taken.len();
        for _ in 0..self.lanes.len() {
            self.look_at_blocked();
            // One that has waited amid a group holds the locks of that, and has not ended it above.
            for session in 0..self.lanes.len() {
                self.ask(session, "");
                self.ask(session, "ROLLBACK");
            }
        }
        if self.raced_at.is_none() {
            state.extend(state::closed(self.observer));
        }
        let transcripts: Vec<_> = self.lanes.into_iter().map(|lane| lane.finish(&terminate())).collect();
        self.observer.await_rest(is_pooled);
        for (number, start) in self.starts.iter().enumerate() {
            let Some((session, start)) = *start else { continue };
            let next = self.starts[number + 1..].iter().flatten().find(|(other, _)| *other == session);
            let messages = &transcripts[session].messages;
            self.taken[number].messages =
                messages[start..next.map_or(messages.len(), |(_, next)| *next)].to_vec();
        }
        if self.raced_at.is_some() {
            self.taken.truncate(settled);
            let blocked = self.taken.iter_mut().filter(|taken| taken.outcome == Outcome::Blocked);
            blocked.for_each(|taken| taken.messages.clear());
        }
        Seen { taken: self.taken, state, raced_at: self.raced_at }
    }

    /// One of the last questions; "" ends an open group, and ROLLBACK is for transactions that have failed.
    fn ask(&mut self, session: usize, text: &str) {
        let lane = &self.lanes[session];
        let is_due = match text {
            "" => lane.is_amid_group(),
            "ROLLBACK" => lane.status() != b'I',
            _ => true,
        };
        if is_due {
            let bytes = if text.is_empty() { sync() } else { query(text) };
            self.take(&Step { bytes, ..simple(session, text) });
        }
    }
}
