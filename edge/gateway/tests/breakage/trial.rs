//! One run of one session, with something that breaks in it.

use std::thread;
use std::time::{Duration, Instant};

use crate::common::client::{Endpoint, RawClient};
use crate::common::messages::terminate;
use crate::common::transcript::Message;
use crate::rig::family::{Family, script};
use crate::rig::lane::Lane;
use crate::rig::random::Random;
use crate::rig::schema;
use crate::rig::script::{Script, interleave};
use crate::rig::state::{self, Observer, State};
use crate::rig::step::Step;

/// Longest time for the answer to a step, broken or not.
const HANG: Duration = Duration::from_secs(10);
const FAMILIES: [Family; 5] =
    [Family::Loops, Family::Loops, Family::Portals, Family::Cursors, Family::Commits];

/// A program of one session that leaves the tables' definitions alone.
pub(crate) fn program(random: &mut Random) -> Vec<Step> {
    loop {
        let family = random.pick(&FAMILIES);
        let script = script(family, random, Script::new(0).calm(true), 2);
        let mut program = interleave(random, vec![script]);
        program.steps.retain(|step| step.session == 0);
        if !program.changes_schema() && program.steps.len() > 5 {
            return program.steps;
        }
    }
}

/// What breaks, and when.
pub(crate) struct Fault<'a> {
    /// The step that is under way.
    pub(crate) step: usize,
    /// Time since it was sent.
    pub(crate) delay: Duration,
    /// Whether its answer has to be there.
    pub(crate) when_idle: bool,
    /// Takes the session.
    pub(crate) strike: &'a dyn Fn(&Lane),
}

/// What became of a program.
#[derive(Debug)]
pub(crate) struct Trial {
    /// The answer to each step that was taken.
    pub(crate) replies: Vec<Vec<Message>>,
    /// The connection is over.
    pub(crate) is_over: bool,
    /// A step had no answer for too long.
    pub(crate) hangs: bool,
    /// The tables when the session and its process were gone.
    pub(crate) left: State,
}

/// Where trials run: tables that are filled anew for each.
pub(crate) struct Site<'a> {
    pub(crate) endpoint: &'a Endpoint,
    pub(crate) direct: &'a Endpoint,
    pub(crate) database: &'a str,
}

/// Takes steps one by one; stops when the connection is over.
pub(crate) fn run(steps: &[Step], site: &Site<'_>, fault: Option<&Fault<'_>>) -> Trial {
    RawClient::session(site.direct, site.database).query(&schema::refill());
    let mut lane = Lane::open(site.endpoint, site.database, "trial");
    let mut observer = Observer::open(site.direct, site.database);
    lane.process = observer.processes(&["trial".to_owned()])[0];
    let mut starts = Vec::new();
    let mut hangs = false;
    for (number, step) in steps.iter().enumerate() {
        if lane.has_ended() || hangs {
            break;
        }
        lane.send(step);
        starts.push(lane.start());
        let fault = fault.filter(|fault| fault.step == number);
        if let Some(fault) = fault.filter(|fault| !fault.when_idle) {
            thread::sleep(fault.delay);
            (fault.strike)(&lane);
        }
        hangs = !lane.is_done_within(HANG);
        if let Some(fault) = fault.filter(|fault| fault.when_idle) {
            thread::sleep(fault.delay);
            (fault.strike)(&lane);
            thread::sleep(fault.delay);
        }
    }
    let (is_over, process) = (lane.has_ended(), lane.process);
    let transcript = lane.finish(&terminate());
    let ends = starts.iter().skip(1).copied().chain([transcript.messages.len()]);
    let replies =
        starts.iter().zip(ends).map(|(start, end)| transcript.messages[*start..end].to_vec()).collect();
    let deadline = Instant::now() + HANG;
    while observer.rows(&format!("SELECT 1 FROM pg_stat_activity WHERE pid = {process}")) == ["1"] {
        hangs |= Instant::now() > deadline;
        if hangs {
            break;
        }
        thread::sleep(Duration::from_millis(1));
    }
    Trial { replies, is_over, hangs, left: state::closed(&mut observer) }
}
