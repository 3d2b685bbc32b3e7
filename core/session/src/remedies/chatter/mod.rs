//! The remedy `chatter`: housekeeping that the server has done before, and that can change nothing since, is answered at
//! once and sent along.
//!
//! ```text
//!  client               session                       server
//!    | RESET ALL; ... -->| RESET ALL; ... ------------->|  the first time: the answer is kept
//!    |<- RESET, I -------|<------------------ RESET, I -|
//!    | reads             | ...                          |
//!    | RESET ALL; ... -->| RESET ALL; ... ------------->|
//!    |<- RESET, I -------|                              |
//!    | SELECT ---------->| ...                          |
//!    |                   |<------------------ RESET, I -|  compared, and dropped
//! ```

mod housekeeping;

use std::collections::VecDeque;

use onetrip_ledger::{Moment, Remedy, TransactionStatus};
use onetrip_wire::pg::backend;

use self::housekeeping::Act;
use super::Rule;
use super::remedy::{Answer, Asked, Change, Cx, Need, Texts, Told};
use crate::contract::SessionError;
use crate::events::Event;
use crate::reply_queue::{Due, Taker};
use crate::services::read_only_text;
use crate::services::{Own, Said};
use crate::slots::{Slot, Slots};

/// Units that are kept.
const KEPT_MAX: usize = 32;
/// Bytes of one unit, and of its answer.
const BYTES_MAX: usize = 4096;
/// Bytes of answers that the server has not confirmed.
const UNCONFIRMED_MAX: usize = 64 * 1024;

/// What a session knows of its program's housekeeping.
#[derive(Debug, Default)]
pub(crate) struct Chatter {
    /// What the server has done, and would do again without a change.
    kept: VecDeque<Kept>,
    /// What the unit in front is about.
    claimed: Vec<Act>,
    /// What it is doing.
    running: Option<Running>,
    /// What it will say to that which was answered.
    expected: Slots<Expected>,
    /// Bytes of that.
    unconfirmed: usize,
}

/// An answer that the server has not confirmed.
#[derive(Debug)]
struct Expected {
    reply: Vec<u8>,
    /// So much of it was said.
    said: usize,
}

/// A unit and its answer.
#[derive(Debug, Default)]
struct Kept {
    request: Box<[u8]>,
    acts: Vec<Act>,
    reply: Vec<u8>,
}

#[derive(Debug)]
struct Running {
    unit: u64,
    kept: Kept,
    is_spoilt: bool,
}

impl Kept {
    fn depends_on(&self, others: &[Act]) -> bool {
        self.acts.iter().any(|act| others.iter().any(|other| act.depends_on(other)))
    }
}

impl Expected {
    /// The server says this; whether it is what comes next.
    fn says(&mut self, message: &[u8]) -> bool {
        let is_same = self.reply[self.said..].starts_with(message);
        self.said = (self.said + message.len()).min(self.reply.len());
        is_same
    }
}

impl Chatter {
    /// Whether this unit is housekeeping that the server is sent for its answer.
    pub(crate) fn runs(&self, unit: u64) -> bool {
        self.running.as_ref().is_some_and(|running| running.unit == unit)
    }

    /// Whether this unit surely takes no prepared statement away.
    pub(crate) fn leaves_prepared(&self, unit: u64) -> bool {
        let running = self.running.as_ref().filter(|running| running.unit == unit);
        running.is_some_and(|running| !running.kept.acts.contains(&Act::DiscardsAll))
    }

    /// A part of this unit may change the session: only housekeeping leaves what it does not touch.
    fn forget(&mut self, unit: u64) {
        match &self.running {
            Some(running) if self.runs(unit) => {
                self.kept.retain(|kept| !kept.depends_on(&running.kept.acts));
            }
            _ => {
                self.running = None;
                self.kept.clear();
            }
        }
    }

    /// Whether a parameter was set in this session, so that nothing but the session changes it.
    fn has_set(&self, parameter: &str) -> bool {
        let sets = |act: &Act| matches!(act, Act::Sets(name) if name == parameter);
        self.kept.iter().any(|kept| kept.acts.iter().any(sets))
    }

    fn keep(&mut self, kept: Kept) {
        self.kept.retain(|other| other.request != kept.request);
        if self.kept.len() == KEPT_MAX {
            self.kept.pop_front();
        }
        self.kept.push_back(kept);
    }

    /// Something comes that an answer would not bring along.
    fn spoil(&mut self) {
        if let Some(running) = &mut self.running {
            running.is_spoilt = true;
        }
    }
}

impl super::remedy::Remedy for Chatter {
    #[inline(always)] // see `tell`
    fn on_event(&mut self, _: &mut Cx<'_>, event: &Event<'_>) {
        match *event {
            Event::StateChanges { unit, .. } => {
                if Rule::Neutral.is_kept() {
                    self.forget(unit);
                }
            }
            Event::CameUnasked { is_parameter: false } => self.spoil(),
            Event::CameUnasked { is_parameter: true }
            | Event::Opened(_)
            | Event::PathMeasured(_)
            | Event::ParameterReported { .. }
            | Event::UnknownReported
            | Event::SetRead(_)
            | Event::Followed
            | Event::StatementSent { .. }
            | Event::ReadSent { .. }
            | Event::SavepointSent
            | Event::TransactionBegun { .. }
            | Event::LevelChanges { .. }
            | Event::DescriptorsDoubted
            | Event::EndSent { .. }
            | Event::UnitReady { .. }
            | Event::TransactionOver
            | Event::UnitFailed { .. }
            | Event::PortalLeaves { .. }
            | Event::UnnamedPortalEnds
            | Event::UnnamedPortalMade
            | Event::UnnamedStatementMade { .. }
            | Event::UnnamedStatementGone
            | Event::Disproved => {}
        }
    }

    /// The server has done what was answered: it must say the same.
    fn own_reply(&mut self, cx: &mut Cx<'_>, slot: Slot, said: &Said<'_>) -> Result<Own, SessionError> {
        let is_same = self.expected.get_mut(slot).is_some_and(|expected| expected.says(said.message));
        if said.tag == backend::READY_FOR_QUERY {
            self.unconfirmed -= self.expected.take(slot).map_or(0, |expected| expected.reply.len());
        }
        if Rule::SameAnswer.requires(is_same) {
            return Ok(Own::Dropped);
        }
        let message =
            "the server did not answer a setting or reset as it had before, and as onetrip had answered it";
        let hint = "Connect again; leave the remedy out by --remedies exact,-chatter.";
        cx.core.refuse("08006", message, Some(hint));
        Err(SessionError::ChatterRefused)
    }

    /// The error in front of it is another answer.
    fn own_skipped(&mut self, _: Slot) {}
}

impl Texts for Chatter {
    /// Housekeeping, whether it was done before or not.
    fn claims(&mut self, cx: &mut Cx<'_>, asked: &Asked<'_>) -> Option<Need> {
        if !cx.may_remedy(Remedy::Chatter)
            || cx.core.status() != TransactionStatus::Idle
            || cx.facts.path.standby().is_none()
        // before PostgreSQL 14 a SET is reported also where it changes nothing
        {
            return None;
        }
        let unit = asked.unit().filter(|unit| unit.len() <= BYTES_MAX)?;
        self.claimed = read_only_text((&*cx.core, &mut *cx.facts), unit, housekeeping::acts)?;
        // What was sent before is looked into first: it may be that something changes.
        Some(Need::Proof)
    }

    /// Answers what was done before; listens to the server if it is other.
    fn answer(&mut self, cx: &mut Cx<'_>, asked: &Asked<'_>) -> Answer {
        let acts = std::mem::take(&mut self.claimed);
        let is_neutral = Rule::Neutral.requires(cx.facts.is_known());
        if !asked.is_quiet || !self.is_meant(cx, &acts) {
            if !is_neutral && acts.contains(&Act::Calls) {
                want_neutral(cx, asked.now); // whose function it is depends on the search path
            }
            self.running = None;
            return Answer::NotKnown;
        }
        let kept = self.kept.iter().find(|kept| *kept.request == *asked.input);
        let reply = kept.map(|kept| kept.reply.clone());
        if reply.is_some() && !is_neutral {
            want_neutral(cx, asked.now);
        }
        let has_room = |reply: &Vec<u8>| self.unconfirmed + reply.len() <= UNCONFIRMED_MAX;
        let unit = cx.core.units().oldest(); // the next one: nothing is under way
        match reply.filter(|reply| is_neutral && has_room(reply)) {
            Some(reply) => Answer::Told(self.told(cx, unit, &acts, reply)),
            None => {
                cx.facts.want_state_again();
                let kept = Kept { request: Box::from(asked.input), acts, reply: Vec::new() };
                self.running = Some(Running { unit, kept, is_spoilt: false });
                Answer::NotKnown
            }
        }
    }
}

impl Chatter {
    /// Whether the statements surely do what they are known for: no function of a user is called, and what is shown is
    /// the session's own.
    fn is_meant(&self, cx: &Cx<'_>, acts: &[Act]) -> bool {
        acts.iter().all(|act| match act {
            Act::Calls => Rule::Builtin.requires(cx.facts.has_builtins_first()),
            Act::Shows(parameter) => Rule::OwnSetting.requires(self.has_set(parameter)),
            _ => true,
        })
    }

    fn told(&mut self, cx: &mut Cx<'_>, unit: u64, acts: &[Act], reply: Vec<u8>) -> Told {
        cx.facts.used();
        if acts.contains(&Act::DiscardsAll) {
            cx.facts.doubt_prepared(unit);
        }
        let length = reply.len();
        cx.core.client_outbox().extend_from_slice(&reply);
        self.unconfirmed += length;
        let slot = self.expected.put(Expected { reply, said: 0 });
        let taker = Some(Taker::Remedy(Remedy::Chatter, slot));
        Told { by: Remedy::Chatter, reply: length, taker, change: Change::None }
    }
}

/// A unit was not answered because the session's state is not known, or what was read since not proven.
fn want_neutral(cx: &mut Cx<'_>, now: Moment) {
    cx.facts.miss_state();
    cx.facts.want_proofs(now);
}

impl Chatter {
    /// The server answers a unit of the client's, which may be the one that is listened to.
    pub(crate) fn client_reply(&mut self, due: Due, said: &Said<'_>) {
        let Some(running) = self.running.as_mut().filter(|running| running.unit == due.unit) else { return };
        let kept = &mut running.kept.reply;
        let has_room = kept.len() + said.message.len() <= BYTES_MAX;
        running.is_spoilt |= !said.is_whole || !has_room || said.is_failure();
        if !running.is_spoilt {
            kept.extend_from_slice(said.message);
        }
        if said.tag == backend::READY_FOR_QUERY {
            let is_good = !running.is_spoilt && said.body() == b"I";
            if let Some(running) = self.running.take().filter(|_| is_good) {
                self.keep(running.kept);
            }
        }
    }
}
