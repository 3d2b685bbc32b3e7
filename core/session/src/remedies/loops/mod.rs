//! The remedy `loops`: statements that a loop will send are run ahead, and answered from memory when they come.
//!
//! Only inside REPEATABLE READ, where a statement's answer does not depend on when it runs. What comes next is guessed by
//! `onetrip-loops`; whether an answer may be served is decided by the bytes of the request alone (`Buffer::ask`).
//!
//! ```text
//!  client            session                                          server
//!    | T(1) --------->| T(1), SAVEPOINT, T(2) ... T(9), ROLLBACK TO --->|
//!    |<---------------|<------------------------------ answer of T(1) --|
//!    | T(2) --------->| <- waits, if its answer is still under way -----|
//!    |<--- from memory|                                                 |
//! ```

mod guess;
mod request;
mod serve;

use std::time::Duration;

use onetrip_ledger::{Moment, Remedy, TransactionStatus};
use onetrip_loops::{AGE_MAX, Answer, Asking};
use onetrip_wire::pg::{FrameHeader, frontend};

use self::request::Ways;
use super::Rule;
use super::remedy::Cx;
use crate::contract::{SessionError, Verdict};
use crate::events::Event;
use crate::facts::Isolation;
use crate::remedies::Session;
use crate::reply_queue::Service;
use crate::services::Arrived;
use crate::services::flights::since_start;
use crate::services::{Own, Said};
use crate::slots::Slot;

/// How one session's program writes its statements; what it will ask for is guessed by the flights.
#[derive(Debug, Default)]
pub(crate) struct Loops {
    ways: Ways,
}

/// Which remedy answers by this.
fn remedy_of(is_repeat: bool) -> Remedy {
    if is_repeat { Remedy::Repeats } else { Remedy::Loops }
}

impl super::remedy::Remedy for Loops {
    /// What a statement is written like changes by no event.
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

    /// What it sends goes by the flights.
    fn own_reply(&mut self, _: &mut Cx<'_>, _: Slot, _: &Said<'_>) -> Result<Own, SessionError> {
        Ok(Own::PassedOn)
    }

    fn own_skipped(&mut self, _: Slot) {}
}

impl Session {
    /// Answers the unit in `input` from memory, or prepares for those that will follow it.
    pub(crate) fn answer_loops(&mut self, now: Moment, header: FrameHeader, input: &[u8]) -> Option<Verdict> {
        let level = self.facts.transaction.isolation();
        let may_be_snapshot = level.is_snapshot() || level == Isolation::Unknown;
        // A list elsewhere is one that nothing is opened ahead for, either (rule L2).
        let is_sure = Rule::Ahead.requires(Rule::Snapshot.requires(may_be_snapshot));
        // A group may bring its BEGIN along.
        let is_in_place = self.core.status() == TransactionStatus::Active
            || self.core.status() == TransactionStatus::Idle && header.tag != frontend::QUERY;
        if !self.may_answer_reads()
            || self.shadow.has_failed()
            || !is_sure
            || !is_in_place
            || !self.is_answered()
        {
            return None;
        }
        let unit = Arrived::peek(input)?;
        let request = self.request_of(now, unit)?;
        if self.core.status() == TransactionStatus::Idle && !request.begins {
            return None;
        }
        let template = self.flights.example(request.example)?.template;
        let is_pure = self.may_run_ahead(now, template);
        let may_serve = self.is_in_snapshot() && !request.begins;
        let asking = Asking {
            now: since_start(now),
            in_transaction: may_serve,
            is_pure,
            all_rows: true,
            nothing_ahead: true,
            age_max: if Rule::Age.is_kept() { AGE_MAX } else { Duration::MAX },
        };
        // A statement of a name is for the server to see, and so is the Sync of a group that a Flush left open.
        let may_ask = self.is_quiet() && !request.names;
        let answer = may_ask.then(|| self.flights.ask(&request, &asking));
        match answer {
            Some((Answer::Serve(ticket, reply), is_repeat))
                if self.config.remedies.has(remedy_of(is_repeat)) =>
            {
                let reply = reply.to_vec();
                Some(self.serve(now, unit, &request, (remedy_of(is_repeat), ticket), &reply))
            }
            Some((Answer::Wait(ticket), _)) if self.core.queue().owes(Service::Flights) => {
                self.flights.hold(now, ticket);
                Some(Verdict::Hold)
            }
            _ => {
                self.flights.forget_hold();
                let verdict = self.unseen.show(&mut self.core, &self.own_names, header.tag, input);
                if verdict.is_none() {
                    let plans = self.is_in_snapshot() && self.may_plan();
                    self.flights.watch(&self.core, now, &request, is_pure, plans);
                }
                verdict
            }
        }
    }

    /// Whether a statement of this template may be run although nobody asked for it (rule P4): it only reads, and the
    /// session has no temporary objects that its names could mean.
    fn may_run_ahead(&mut self, now: Moment, template: u32) -> bool {
        Rule::Pure.requires(self.surely_reads(now, template))
    }

    /// The unit that runs a statement goes to the server, and this Parse was answered before: it is watched as others
    /// are. What it leads to is run ahead once it is answered.
    pub(crate) fn watch_behind(&mut self, now: Moment, unit: Arrived<'_>, parse: &[u8]) {
        if !self.may_answer_reads()
            || self.core.status() != TransactionStatus::Active
            || self.core.units().len() > 0
        {
            return;
        }
        let Some(request) = self.request_behind(unit, parse) else { return };
        let template = self.flights.example(request.example).map(|example| example.template);
        let is_pure = template.is_some_and(|template| self.may_run_ahead(now, template));
        self.flights.watch(&self.core, now, &request, is_pure, false);
    }
}
