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
use onetrip_wire::pg::{CommandComplete, TransactionStatus as WireStatus, backend, frame};

use super::Rule;
use super::remedy::{Answer, Asked, Change, Cx, Need, Texts, Told};
use crate::contract::SessionError;
use crate::events::Event;
use crate::facts::Common;
use crate::facts::common::CONFIRMED_WITHIN;
use crate::reading::grammar;
use crate::services::{Own, Said};
use crate::services::{put_answer, read_only_text};
use crate::slots::Slot;

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

    /// What comes next passes the fence, or there is none.
    pub(crate) fn passes(&mut self) {
        self.fenced_until = None;
    }

    /// Whether what comes next in the database of this name, with writes or without, has to wait for transactions that were
    /// answered when it came.
    pub(crate) fn is_fenced(&mut self, common: &Common, database: &[u8], writes: bool) -> bool {
        let until = *self.fenced_until.get_or_insert_with(|| common.fence.answered());
        common.fence.is_up(self.member, database, until, writes)
    }

    /// When the server is to have confirmed the end that it owes.
    pub(crate) fn confirmed_by(&self) -> Option<Moment> {
        let answered_at = self.unconfirmed.front()?;
        Some(Moment(answered_at.0.saturating_add(CONFIRMED_WITHIN.as_nanos() as u64)))
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
            | Event::LevelChanges { .. }
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
