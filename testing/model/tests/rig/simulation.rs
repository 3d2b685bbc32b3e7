//! A program on the model, by itself or through sessions with remedies; the clock is a number.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use onetrip_ledger::{Analyzer, Moment, Mutes, Remedy, Summary, ValueHasher};
use onetrip_model::Server;
use onetrip_session::{Common, Opening, Remedies, Session, SessionConfig, SessionError, Verdict};
use onetrip_testkit::asked::Outcome;
use onetrip_testkit::messages::{query, startup_with, sync};
use onetrip_testkit::random::Random;
use onetrip_testkit::step::{Aside, Patience, Program, Step, Wait};

use super::lane::{Lane, Taken};

/// What every name of a session's own begins with.
pub(crate) const PRIVATE: &str = "onetrip_";
/// What the model takes for a statement.
const EXECUTION: u64 = 15_000;
/// Longer than anything is under way.
const REST: u64 = 1_000_000_000;
/// Events after which a run is given up.
const EVENTS_MAX: usize = 200_000;
/// Steps in a failed transaction after which a program gives it up.
const FAILED_STEPS_MAX: usize = 3;

/// The server's major version, where none is given.
const VERSION: u32 = 15;

/// How the clients reach the server.
#[derive(Debug, Clone)]
pub(crate) enum Way {
    Direct,
    /// To a server of this major version.
    DirectTo(u32),
    /// Through sessions with these remedies, so far away; with a seed, messages of two sessions overtake each other.
    Through {
        remedies: Remedies,
        rtt: Duration,
        shaken_by: Option<u64>,
    },
}

/// What a run has shown.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) taken: Vec<Taken>,
    /// Trips that each remedy has removed.
    pub(crate) removed: BTreeMap<Remedy, u64>,
    /// Pieces that were read ahead and failed.
    pub(crate) failed_ahead: u64,
    /// Of each session, the steps that its client took, and the trips that were counted, the removed ones among them.
    pub(crate) counted: Vec<(u64, u64)>,
}

/// Runs a program; a seed gives the same run.
pub(crate) fn run(program: &Program, way: &Way) -> Seen {
    let mut run = Simulation::open(program, way);
    for step in &program.steps {
        if let Some(aside) = step.aside {
            run.happens_aside(step, aside);
            continue;
        }
        if run.lanes[step.session].failed >= FAILED_STEPS_MAX {
            run.take(&simple(step.session, "ROLLBACK"));
        }
        run.take(step);
    }
    run.close()
}

fn simple(session: usize, text: &str) -> Step {
    Step { patience: Patience::Ends, ..Step::new(session, query(text), Wait::Ready(1), text) }
}

/// When, in which order, upwards or not, whose, what.
type Event = (u64, u64, bool, usize, Vec<u8>);

struct Simulation {
    server: Server,
    lanes: Vec<Lane>,
    gates: Vec<Option<Gate>>,
    /// What was counted of sessions that are over.
    closed: BTreeMap<usize, Summary>,
    events: BinaryHeap<Reverse<Event>>,
    serial: u64,
    now: u64,
    one_way: u64,
    random: Option<Random>,
    /// When the last message of each direction arrives.
    arrivals: BTreeMap<(bool, usize), u64>,
    taken: Vec<Taken>,
    starts: Vec<Option<(usize, usize)>>,
    /// Whose next step is followed by a cancel request.
    cancels: Option<usize>,
    /// How many commits there were, and what the rows came to then.
    rows: (u64, u64),
}

/// One session between a client and the server.
struct Gate {
    session: Session,
    up: Vec<u8>,
    down: Vec<u8>,
}

impl Simulation {
    fn open(program: &Program, way: &Way) -> Self {
        let sessions = program.sessions;
        let is = |aside: Aside| program.steps.iter().any(|step| step.aside == Some(aside));
        let (remedies, one_way, random) = match way {
            Way::Direct | Way::DirectTo(_) => (None, 0, None),
            Way::Through { remedies, rtt, shaken_by } => {
                (Some(remedies), rtt.as_nanos() as u64 / 2, shaken_by.map(Random::new))
            }
        };
        let common = Arc::<Common>::default();
        let gate = |number: usize| {
            let config = SessionConfig {
                hasher: ValueHasher::new(),
                cancel_key: *b"mine",
                keep_values: false,
                remedies: *remedies?,
                common: Arc::clone(&common),
                verify: None,
                lobs: Arc::default(),
                isolation: None,
                question_burst: Duration::from_secs(60),
                texts: Default::default(),
                private: (0x5eed_0000 + number as u64).to_be_bytes(),
                overflow: None,
            };
            Some(Gate { session: Session::new(config), up: Vec::new(), down: Vec::new() })
        };
        let mut run = Self {
            server: Server::new(if let Way::DirectTo(version) = way { *version } else { VERSION }),
            lanes: (0..sessions).map(|_| Lane::new()).collect(),
            gates: (0..sessions).map(gate).collect(),
            closed: BTreeMap::new(),
            events: BinaryHeap::new(),
            serial: 0,
            now: 0,
            one_way,
            random,
            arrivals: BTreeMap::new(),
            taken: Vec::new(),
            starts: Vec::new(),
            cancels: None,
            rows: (u64::MAX, 0),
        };
        if is(Aside::StandsBy) {
            run.server.stand_by();
        }
        for aside in program.steps.iter().filter_map(|step| step.aside) {
            if let Aside::Warns(key) = aside {
                run.server.warn_of(key);
            }
        }
        if is(Aside::Moves) {
            run.server.have_moves();
        }
        if is(Aside::Shares) {
            run.server.share_one_session();
        }
        for _ in 0..sessions {
            run.server.connect();
        }
        for number in 0..sessions {
            let replicates = |step: &Step| step.session == number && step.aside == Some(Aside::Replicates);
            let mut parameters = vec![("user", "onetrip"), ("database", "model")];
            if program.steps.iter().any(replicates) {
                parameters.push(("replication", "database"));
            }
            run.client_sends(number, &startup_with(&parameters));
            if let Some(gate) = &mut run.gates[number] {
                let rtt_us = (2 * one_way / 1000) as u32;
                gate.session.path_measured(Moment(0), rtt_us, rtt_us);
            }
            run.run_until_done(number);
        }
        run
    }

    fn client_sends(&mut self, number: usize, bytes: &[u8]) {
        match &mut self.gates[number] {
            None => self.send(true, number, bytes.to_vec(), 0),
            Some(gate) => {
                gate.up.extend_from_slice(bytes);
                while self.pump(number) {}
            }
        }
    }

    /// Something is on its way for as long as the path takes.
    fn send(&mut self, is_up: bool, number: usize, bytes: Vec<u8>, after: u64) {
        if bytes.is_empty() {
            return;
        }
        let half = self.one_way as usize / 2;
        let shake = self.random.as_mut().map_or(0, |random| random.below(half + 1) as u64);
        let last = self.arrivals.entry((is_up, number)).or_default();
        let at = (self.now + after + self.one_way + shake).max(*last);
        *last = at;
        self.serial += 1;
        self.events.push(Reverse((at, self.serial, is_up, number, bytes)));
    }

    /// Lets a session decide about what has come from both sides; whether it took any of it.
    fn pump(&mut self, number: usize) -> bool {
        let Some(gate) = &mut self.gates[number] else { return false };
        let mut for_server = std::mem::take(gate.session.to_server());
        let mut for_client = Vec::new();
        let now = Moment(self.now);
        let mut has_ended = false;
        let (mut is_pulled, mut has_moved) = (true, false);
        while is_pulled && !has_ended {
            is_pulled = false;
            for is_up in [false, true] {
                let (input, out) = match is_up {
                    true => (&mut gate.up, &mut for_server),
                    false => (&mut gate.down, &mut for_client),
                };
                while !input.is_empty() && !has_ended {
                    let verdict = match is_up {
                        true if gate.session.is_opening() => open(&mut gate.session, now, input),
                        true => gate.session.handle_client(now, input),
                        false => gate.session.handle_server(now, input),
                    };
                    let used = match verdict {
                        Ok(Verdict::Wait | Verdict::Hold) => break,
                        Ok(Verdict::Forward(bytes)) => {
                            out.extend_from_slice(&input[..bytes]);
                            bytes
                        }
                        Ok(Verdict::Replace(bytes)) => bytes,
                        Err(_) => {
                            has_ended = true;
                            break;
                        }
                    };
                    input.drain(..used);
                    (is_pulled, has_moved) = (true, true);
                    if is_up {
                        out.append(gate.session.to_server());
                    } else {
                        out.append(gate.session.to_client());
                    }
                }
                for_server.append(gate.session.to_server());
                for_client.append(gate.session.to_client());
            }
        }
        self.lanes[number].receive(&for_client);
        self.lanes[number].has_ended |= has_ended;
        if has_ended {
            for_server = onetrip_testkit::messages::terminate();
            if let Some(gate) = self.gates[number].take() {
                self.closed.insert(number, books(gate.session, now));
            }
        }
        self.send(true, number, for_server, 0);
        has_moved
    }

    /// The next thing happens; false if there is none.
    fn happens(&mut self) -> bool {
        let event = self.events.peek().map(|Reverse((at, ..))| *at);
        let deadline = self.server.next_deadline();
        if let Some(at) = deadline.filter(|deadline| event.is_none_or(|event| *deadline < event)) {
            self.now = self.now.max(at);
            self.server.handle_deadline(self.now);
            self.server_speaks();
            return true;
        }
        let Some(Reverse((at, _, is_up, number, bytes))) = self.events.pop() else { return false };
        self.now = self.now.max(at);
        if is_up {
            let before = self.server.ran(number);
            self.server.receive(self.now, number, &bytes);
            let took = EXECUTION * (self.server.ran(number) - before);
            let said = self.server.said(number);
            self.send(false, number, said, if self.one_way == 0 { 0 } else { took });
            self.server_speaks();
        } else if let Some(gate) = &mut self.gates[number] {
            gate.down.extend_from_slice(&bytes);
            // What one session learns may be what another waits for.
            while (0..self.lanes.len()).fold(false, |moved, number| self.pump(number) | moved) {}
        } else if !self.closed.contains_key(&number) {
            self.lanes[number].receive(&bytes);
        }
        true
    }

    fn server_speaks(&mut self) {
        for number in 0..self.lanes.len() {
            let said = self.server.said(number);
            self.send(false, number, said, 0);
        }
    }

    /// Lets time pass until a session's step is answered; false if it never is.
    fn run_until_done(&mut self, number: usize) -> bool {
        for _ in 0..EVENTS_MAX {
            if self.lanes[number].is_done() {
                return true;
            }
            if !self.happens() {
                return false;
            }
        }
        false
    }

    /// So much time passes; without a distance, what is under way arrives.
    fn rest(&mut self, nanos: u64) {
        let end = self.now + nanos;
        for _ in 0..EVENTS_MAX {
            let event = self.events.peek().map(|Reverse((at, ..))| *at);
            let next = [event, self.server.next_deadline()].into_iter().flatten().min();
            if next.is_none_or(|at| at > end) {
                break;
            }
            self.happens();
        }
        self.now = end;
    }

    fn happens_aside(&mut self, step: &Step, aside: Aside) {
        if !matches!(aside, Aside::ConfiguresAtOnce(..) | Aside::Notifies | Aside::CancelsNext) {
            self.rest(REST);
        }
        match aside {
            Aside::Configures(name, value) | Aside::ConfiguresAtOnce(name, value) => {
                self.server.configure(name, value);
            }
            Aside::Refuses(beginning) => self.server.refuse_rollback_to(beginning),
            Aside::RefusesNext(beginning) => self.server.refuse(step.session, beginning),
            Aside::Widens => self.server.widen(),
            Aside::Notifies => self.server.notify(step.session),
            Aside::Revokes(table) => self.server.revoke(table),
            Aside::FailsAhead(beginning) => self.server.fail_ahead(beginning),
            Aside::CancelsNext => self.cancels = Some(step.session),
            Aside::StandsBy
            | Aside::Warns(_)
            | Aside::Moves
            | Aside::Shares
            | Aside::Replicates
            | Aside::Cancels => {}
        }
        self.note(step, Outcome::Done, None);
        // Sessions are told of their configuration with the end of the next thing that their server does.
        let is_told = matches!(aside, Aside::Configures(..));
        for number in (0..self.lanes.len()).filter(|_| is_told) {
            self.take(&simple(number, "SHOW lock_timeout"));
        }
    }

    fn take(&mut self, step: &Step) {
        let number = step.session;
        if self.lanes[number].is_blocked {
            let is_done = self.run_until_done(number);
            self.lanes[number].is_blocked = !is_done;
        }
        let skipped = match &self.lanes[number] {
            lane if lane.has_ended => Some(Outcome::Over),
            lane if lane.is_blocked => Some(Outcome::PassedOver),
            _ => None,
        };
        if let Some(outcome) = skipped {
            return self.note(step, outcome, None);
        }
        let bytes = self.lanes[number].send(step);
        let start = self.lanes[number].start();
        self.client_sends(number, &bytes);
        if self.cancels.take_if(|whose| *whose == number).is_some() {
            self.cancel(number);
        }
        let is_done = self.run_until_done(number);
        let outcome = match () {
            () if is_done => Outcome::Done,
            () if self.server.is_blocked(number) => Outcome::Blocked,
            () => Outcome::Hung,
        };
        let lane = &mut self.lanes[number];
        lane.is_blocked = !is_done;
        lane.failed = if lane.status == b'E' { lane.failed + 1 } else { 0 };
        self.rest(step.pause.as_nanos() as u64);
        self.note(step, outcome, Some((number, start)));
    }

    /// A cancel request is at the server as soon as the session lets it pass, unless there is nothing left to cancel.
    fn cancel(&mut self, number: usize) {
        let waits = |gate: &Option<Gate>| gate.as_ref().is_some_and(|gate| !gate.session.may_cancel());
        while waits(&self.gates[number]) && !self.lanes[number].is_done() && self.happens() {}
        if !self.lanes[number].is_done() {
            self.server.cancel(number);
            self.run_until_done(number);
        }
        self.server.forget_cancel();
    }

    fn note(&mut self, step: &Step, outcome: Outcome, start: Option<(usize, usize)>) {
        let shown = format!("{}: {}", step.session, step.shown);
        if self.rows.0 != self.server.commits() {
            let mut hasher = DefaultHasher::new();
            self.server.rows().hash(&mut hasher);
            self.rows = (self.server.commits(), hasher.finish());
        }
        let rows = self.rows.1;
        // A Parse that was answered may wait for a lock that another session has taken meanwhile.
        let rests = |number: usize| self.server.is_idle(number) || self.lanes[number].is_blocked;
        let is_at_rest = !step.pause.is_zero() && self.events.is_empty() && (0..self.lanes.len()).all(rests);
        let state = is_at_rest.then(|| self.state());
        let is_lock_awaited = self.lanes.iter().any(|lane| lane.is_blocked);
        self.taken.push(Taken { shown, outcome, messages: Vec::new(), rows, state, is_lock_awaited });
        self.starts.push(start);
    }

    fn state(&self) -> Vec<String> {
        let of = |number: usize| {
            let told = format!("session {number}: told {}", char::from(self.lanes[number].status));
            let lines = self.server.state(number, PRIVATE).into_iter();
            lines.map(move |line| format!("session {number}: {line}")).chain([told])
        };
        (0..self.lanes.len()).flat_map(of).collect()
    }

    /// Ends all transactions and looks at what is left.
    fn close(mut self) -> Seen {
        for _ in 0..self.lanes.len() {
            for number in 0..self.lanes.len() {
                if self.lanes[number].is_blocked {
                    let is_done = self.run_until_done(number);
                    self.lanes[number].is_blocked = !is_done;
                }
                if self.lanes[number].is_amid_group() {
                    self.take(&Step { bytes: sync(), ..simple(number, "") });
                }
                if self.lanes[number].status != b'I' {
                    self.take(&simple(number, "ROLLBACK"));
                }
            }
        }
        self.rest(REST);
        let last = Step { pause: Duration::from_millis(1), ..simple(0, "the end") };
        self.note(&last, Outcome::Done, None);
        for (place, start) in self.starts.iter().enumerate() {
            let Some((number, start)) = *start else { continue };
            let next = self.starts[place + 1..].iter().flatten().find(|(other, _)| *other == number);
            let messages = &self.lanes[number].messages;
            self.taken[place].messages =
                messages[start..next.map_or(messages.len(), |(_, next)| *next)].to_vec();
        }
        let (mut removed, mut counted) = (BTreeMap::new(), Vec::new());
        for (number, gate) in self.gates.into_iter().enumerate() {
            if let Some(gate) = gate {
                self.closed.insert(number, books(gate.session, Moment(self.now)));
            }
        }
        for summary in self.closed.into_values() {
            counted.push((0, summary.trips.work() + summary.removed.values().sum::<u64>()));
            for (remedy, trips) in summary.removed {
                *removed.entry(remedy).or_default() += trips;
            }
        }
        for (session, _) in self.starts.iter().flatten() {
            if let Some((steps, _)) = counted.get_mut(*session) {
                *steps += 1;
            }
        }
        Seen { taken: self.taken, removed, failed_ahead: self.server.failed_ahead(), counted }
    }
}

/// What a session decides about what comes before there is a server.
fn open(session: &mut Session, now: Moment, input: &[u8]) -> Result<Verdict, SessionError> {
    Ok(match session.handle_opening(now, input)? {
        Opening::Wait => Verdict::Wait,
        Opening::Answer(bytes) | Opening::Connect(bytes) | Opening::Cancel { bytes, .. } => {
            Verdict::Replace(bytes)
        }
    })
}

/// What was counted of a session.
fn books(mut session: Session, now: Moment) -> Summary {
    session.close(now);
    let block = session.stream().take_block();
    let mut analyzer = Analyzer::new();
    analyzer.block(1, &block).expect("own records read back");
    analyzer.finish(&Mutes::default()).summary
}
