//! The remedy `commit`: the end of a transaction that only read is answered at once and sent along.
//!
//! ```text
//!  client            session                       server
//!    | Query COMMIT ->| Query COMMIT ------------->|   AccessShare locks are still held
//!    |<- COMMIT, I ---|                            |   fence: strong locks of other sessions wait
//!    | Query BEGIN -->| ...                        |
//!    |                |<------------- COMMIT, I ---|   dropped; the fence goes down
//! ```

use std::collections::VecDeque;

use onetrip_ledger::{Moment, Remedy, TransactionStatus};
use onetrip_sql::StatementKind;
use onetrip_wire::pg::{
    Bind, CommandComplete, Execute, Parse, TransactionStatus as WireStatus, backend, frame, frontend,
};

use super::Rule;
use super::remedy::{Answer, Asked, Change, Cx, Need, Texts, Told};
use crate::contract::SessionError;
use crate::events::Event;
use crate::facts::Common;
use crate::facts::common::CONFIRMED_WITHIN;
use crate::reading::{Effect, grammar};
use crate::remedies::Session;
use crate::services::Arrived;
use crate::services::{Own, Said};
use crate::services::{put_answer, read_only_text};
use crate::slots::Slot;
use crate::statements::Text;

/// Locks that a statement may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Locks {
    /// None with which a reader's lock conflicts.
    Weak,
    /// The same, unless a function of a user takes others.
    OfTriggers,
    Strong,
}

/// Ends that were answered, and what waits for those of others.
#[derive(Debug)]
pub(crate) struct Commit {
    /// Its number in the fence.
    member: u64,
    /// What the server says to the end in front.
    claimed: Option<&'static [u8]>,
    /// The last transaction that was answered when the unit in front came, if that waits for the fence.
    fenced_until: Option<u64>,
    /// When ends were answered that the server has not confirmed.
    unconfirmed: VecDeque<Moment>,
}

impl Commit {
    /// One more session joins the fence.
    pub(crate) fn new(common: &Common) -> Self {
        Self { member: common.fence.join(), claimed: None, fenced_until: None, unconfirmed: VecDeque::new() }
    }

    /// The session is over: nobody waits for it any more.
    pub(crate) fn leave(&self, common: &Common) {
        common.fence.leave(self.member);
    }
}

/// Facts hold all that it depends on.
impl super::remedy::Remedy for Commit {
    #[inline(always)] // see `tell`
    fn on_event(&mut self, _: &mut Cx<'_>, event: &Event<'_>) {
        match *event {
            Event::Opened(_)
            | Event::PathMeasured(_)
            | Event::ParameterReported { .. }
            | Event::UnknownReported
            | Event::SetRead(_)
            | Event::Followed
            | Event::StatementSent { .. }
            | Event::ReadSent { .. }
            | Event::SavepointSent
            | Event::TransactionBegun { .. }
            | Event::LevelChanges
            | Event::StateChanges { .. }
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
            | Event::CameUnasked { .. }
            | Event::Disproved => {}
        }
    }

    /// The server ends a transaction whose end was answered: CommandComplete must name an end and ReadyForQuery an idle
    /// session, else this session ends. With ReadyForQuery the fence falls.
    fn own_reply(&mut self, cx: &mut Cx<'_>, _: Slot, said: &Said<'_>) -> Result<Own, SessionError> {
        let is_good = match said.tag {
            backend::ERROR_RESPONSE => false,
            backend::COMMAND_COMPLETE => {
                CommandComplete::decode(said.body()).is_ok_and(|complete| grammar::is_end_tag(complete.tag))
            }
            backend::READY_FOR_QUERY => said.body() == b"I",
            _ => true,
        };
        if !is_good && Rule::EndFails.is_kept() {
            let message =
                "a transaction that only read, and whose end onetrip had answered, did not end well";
            let hint =
                "Nothing was written in it. Connect again; leave the remedy out by --remedies exact,-commit.";
            cx.core.refuse("08006", message, Some(hint));
            return Err(SessionError::CommitRefused);
        }
        if said.tag == backend::READY_FOR_QUERY && said.is_last() {
            cx.config.common.fence.lower(self.member);
            self.unconfirmed.pop_front();
        }
        Ok(Own::Dropped)
    }

    /// The end itself has failed, and that ends the session.
    fn own_skipped(&mut self, _: Slot) {}
}

impl Texts for Commit {
    /// The end of a transaction, with nothing of the client's under way.
    fn claims(&mut self, cx: &mut Cx<'_>, asked: &Asked<'_>) -> Option<Need> {
        if !cx.may_remedy(Remedy::Commit) || cx.core.status() != TransactionStatus::Active {
            return None;
        }
        let tag = read_only_text((&*cx.core, &mut *cx.facts), asked.unit()?, grammar::end)?;
        self.claimed = Some(tag).filter(|_| asked.is_quiet);
        self.claimed.map(|_| Need::Proof)
    }

    /// Answered if the transaction is proven to have only read, at a level at which nobody else can make its end fail. The
    /// fence goes up: until the server has ended it, nothing passes that its locks might stop.
    fn answer(&mut self, cx: &mut Cx<'_>, asked: &Asked<'_>) -> Answer {
        let (Some(unit), Some(tag)) = (asked.unit(), self.claimed.take()) else { return Answer::NotKnown };
        if !Rule::OnlyReads.requires(cx.facts.is_known()) {
            return Answer::NotKnown;
        }
        if cx.facts.transaction.is_level_asked() {
            return Answer::Hold;
        }
        // The end cannot fail for what others did (rule C1).
        let transaction = &cx.facts.transaction;
        if !Rule::Level.requires(transaction.is_seen() && transaction.isolation().is_plain()) {
            return Answer::NotKnown;
        }
        cx.facts.used();
        let also_for_writes = cx.facts.takes_locks(asked.now) != Some(false);
        let (mut described, mut ended) = (Vec::new(), Vec::new());
        frame(&mut described, backend::NO_DATA, |_| ());
        CommandComplete { tag }.encode(&mut ended);
        let out = cx.core.client_outbox();
        let reply_at = out.len();
        put_answer(out, unit, &described, &ended, WireStatus::Idle);
        let reply = out.len() - reply_at;
        if Rule::Fence.is_kept() {
            cx.config.common.fence.raise(self.member, cx.facts.database_name(), also_for_writes);
            self.unconfirmed.push_back(asked.now);
        }
        Answer::Told(Told {
            by: Remedy::Commit,
            reply,
            taker: Some(Remedy::Commit.into()),
            change: Change::Ends,
        })
    }
}

impl Session {
    /// Whether what comes next might meet locks of a transaction that was answered before it ended (rule C3).
    pub(crate) fn is_fenced(&mut self, now: Moment, input: &[u8]) -> bool {
        if !self.config.remedies.has(Remedy::Commit)
            || !Rule::Fence.is_kept()
            || self.core.units().is_open()
            || self.config.common.fence.is_down()
        {
            self.commit.fenced_until = None;
            return false;
        }
        let fence = &self.config.common.fence;
        let until = *self.commit.fenced_until.get_or_insert_with(|| fence.answered());
        let is_up = |session: &Self, writes| {
            let database = session.facts.database_name();
            session.config.common.fence.is_up(session.commit.member, database, until, writes)
        };
        let is_fenced = is_up(self, false)
            && match self.locks_of(now, input) {
                Locks::Weak => false,
                Locks::OfTriggers => is_up(self, true),
                Locks::Strong => true,
            };
        if !is_fenced {
            self.commit.fenced_until = None;
        }
        is_fenced
    }

    /// The locks that the unit in `input` may take.
    fn locks_of(&mut self, now: Moment, input: &[u8]) -> Locks {
        let Some(unit) = Arrived::peek(input) else { return Locks::Strong };
        let (mut parsed, mut bound): (Vec<&[u8]>, Vec<&[u8]>) = Default::default();
        let mut locks = Locks::Weak;
        for (tag, body) in unit.messages() {
            locks = locks.max(match tag {
                frontend::QUERY => self.locks_of_bytes(now, body.strip_suffix(b"\0")),
                frontend::PARSE => {
                    let Ok(parse) = Parse::decode(body) else { return Locks::Strong };
                    parsed.push(parse.statement);
                    self.locks_of_bytes(now, Some(parse.text))
                }
                frontend::BIND => {
                    let Ok(bind) = Bind::decode(body) else { return Locks::Strong };
                    bound.push(bind.portal);
                    let prepared = self.core.prepared(bind.statement).map(|prepared| prepared.text.clone());
                    match prepared {
                        // It was looked at with its Parse.
                        _ if parsed.contains(&bind.statement) => Locks::Weak,
                        Some(text) => self.locks_of_text(now, &text),
                        None => Locks::Strong,
                    }
                }
                frontend::EXECUTE => match Execute::decode(body) {
                    Ok(execute) if bound.contains(&execute.portal) => Locks::Weak,
                    Ok(execute) => {
                        let portal = self.core.portal(execute.portal).map(|portal| portal.text.clone());
                        portal.map_or(Locks::Strong, |text| self.locks_of_text(now, &text))
                    }
                    Err(_) => Locks::Strong,
                },
                // It ends the transaction of what a Flush has left open.
                frontend::SYNC
                    if self.core.is_in_group() && self.core.status() == TransactionStatus::Idle =>
                {
                    Locks::OfTriggers
                }
                _ => Locks::Weak,
            });
        }
        locks
    }

    fn locks_of_bytes(&mut self, now: Moment, text: Option<&[u8]>) -> Locks {
        let Some(text) = text.map(<[u8]>::to_vec) else { return Locks::Strong };
        let text = self.read_text(&text);
        self.locks_of_text(now, &text)
    }

    fn locks_of_text(&mut self, now: Moment, text: &Text) -> Locks {
        match (text.effect, text.kind) {
            // Deferred triggers run, and cursors WITH HOLD are stored.
            (Effect::End, StatementKind::Commit) => {
                let only_read = self.facts.transaction.is_clean() && self.has_only_read(now, Rule::OnlyReads);
                if only_read { Locks::Weak } else { Locks::OfTriggers }
            }
            (Effect::Begin | Effect::End | Effect::Nothing | Effect::Savepoint, _) => Locks::Weak,
            (Effect::Deallocates, _) => Locks::Weak,
            (Effect::WritesRows, _) => Locks::OfTriggers,
            (Effect::Read, _) if self.only_reads(now, text.template) => Locks::Weak,
            // A setting locks nothing, but SET CONSTRAINTS runs deferred triggers.
            (Effect::Unknown, StatementKind::Set) => Locks::OfTriggers,
            (Effect::Unknown, StatementKind::Reset) => Locks::Weak,
            (Effect::Read | Effect::Unknown | Effect::MayDefine, _) => Locks::Strong,
        }
    }

    /// When the session is to be looked at, if nothing happens before.
    pub fn deadline(&self) -> Option<Moment> {
        [self.confirmed_by(), self.runs_long_at()].into_iter().flatten().min()
    }

    /// When the server is to have confirmed the end that it owes.
    fn confirmed_by(&self) -> Option<Moment> {
        let answered_at = self.commit.unconfirmed.front()?;
        Some(Moment(answered_at.0.saturating_add(CONFIRMED_WITHIN.as_nanos() as u64)))
    }

    /// Looks at the session when its [`Self::deadline`] has come.
    ///
    /// # Errors
    ///
    /// [`SessionError::CommitRefused`] where the server has not confirmed an end for too long that was answered: other
    /// sessions wait for it. The outbox for the client says so.
    pub fn meet_deadline(&mut self, now: Moment) -> Result<(), SessionError> {
        self.look_at_long(now);
        if self.confirmed_by().is_none_or(|at| now < at) || !Rule::Fence.is_kept() {
            return Ok(());
        }
        let message = "the server did not confirm for 5 s the end of a transaction that had only read, and that onetrip \
             had answered";
        let hint =
            "Nothing was written in it. Connect again; leave the remedy out by --remedies exact,-commit.";
        self.refuse("08006", message, Some(hint));
        Err(SessionError::CommitRefused)
    }
}
