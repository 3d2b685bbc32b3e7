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

mod flight;
mod objects;
mod request;
mod serve;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use onetrip_ledger::{Moment, Remedy, TransactionStatus};
use onetrip_loops::{
    AGE_MAX, Answer, Arrival, Asking, Buffer, Edges, Flight, Origin, Outcome, Predictor, Ticket,
};
use onetrip_wire::pg::{DataRow, FrameHeader, HEADER_BYTES, backend, frontend};
use smallvec::SmallVec;

use self::flight::{InFlight, columns_of};
pub(crate) use self::request::Request;
use self::request::{Example, Examples};
use self::serve::keep_parse;
use super::arrived::Arrived;
use super::remedy::{Cx, Own, Said};
use super::{Common, Rule};
use crate::events::Event;
use crate::facts::Isolation;
use crate::reply_queue::{Due, Expect, Service};
use crate::session::{Session, SessionError, Verdict};
use crate::slots::Slot;

/// The server is shown a sign of the program after so long without one, if the program asked for something.
const SIGN_AFTER: Duration = Duration::from_millis(10);

/// What one session knows about its loops.
#[derive(Debug, Default)]
pub(crate) struct Loops {
    predictor: Predictor,
    buffer: Buffer,
    examples: Examples,
    /// What is to leave when the unit under way is complete.
    flight: Flight,
    in_flight: InFlight,
    /// The program's statement that is being run, and where it is booked.
    running: Option<Running>,
    /// When the unit in front came, if it had to wait, and for which flight.
    held: Option<(Moment, u64)>,
    /// The last flight that a unit waited for.
    waited_for: u64,
    /// The last unit that was served, as the server would have to be told it.
    unseen: Option<Vec<u8>>,
    /// When the server last heard from the session.
    contact_at: Moment,
    /// Hits up to which what was learnt has been shared.
    hits_shared: u64,
}

/// A panic elsewhere leaves what was learnt whole.
fn lock(edges: &Mutex<Edges>) -> MutexGuard<'_, Edges> {
    edges.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug)]
struct Running {
    unit: u64,
    ticket: Ticket,
    example: u32,
    sent_at: Moment,
    rows: u64,
    bytes: usize,
    is_spoilt: bool,
}

/// The clock of `onetrip-loops`.
fn since_start(now: Moment) -> Duration {
    Duration::from_nanos(now.0)
}

/// Which remedy answers by this.
fn remedy_of(predictor: &Predictor, ticket: Ticket) -> Remedy {
    if predictor.is_repeat(ticket) { Remedy::Repeats } else { Remedy::Loops }
}

/// Shows a row to the predictor, if that has a use for it.
fn feed_row(predictor: &mut Predictor, example: Option<&Example>, ticket: Ticket, body: &[u8]) {
    if !predictor.wants_rows(ticket) {
        return;
    }
    if let Ok(row) = DataRow::decode(body) {
        let columns = example.map_or(&[][..], |example| &example.columns);
        let values: SmallVec<[Option<&[u8]>; 16]> = row.columns.iter().collect();
        predictor.result_row(ticket, columns, &values);
    }
}

impl Loops {
    /// How far the server is.
    fn set_distance(&mut self, round_trip: Duration) {
        self.predictor.set_round_trip(round_trip);
    }

    /// Something that is not a proven read goes to the server: nothing that was read before is served behind it (P7).
    fn flush(&mut self) {
        if Rule::Flush.is_kept() {
            self.predictor.flush();
            self.buffer.flush();
        }
        self.flight.clear();
    }

    /// A transaction begins: what other sessions learnt is taken over.
    fn transaction_begins(&mut self, common: &Common) {
        self.predictor.absorb(&lock(&common.edges));
    }

    /// The transaction is over; what was learnt in it is there for others.
    fn transaction_ended(&mut self, common: &Common) {
        if self.predictor.counters().hits > self.hits_shared {
            self.hits_shared = self.predictor.counters().hits;
            lock(&common.edges).absorb(self.predictor.edges());
        }
        self.predictor.transaction_ended();
        self.buffer.flush();
        if let Some(unseen) = &mut self.unseen {
            keep_parse(unseen);
        }
        self.flight.clear();
        self.running = None;
    }

    /// Something that the server says unasked belongs to what it is running (rule P10).
    fn came_unasked(&mut self) {
        if let Some(running) = &mut self.running {
            running.is_spoilt = true;
        }
        if Rule::Silent.is_kept() {
            self.in_flight.spoil();
        }
    }
}

impl super::remedy::Remedy for Loops {
    fn on_event(&mut self, cx: &mut Cx<'_>, event: &Event<'_>) {
        match *event {
            Event::PathMeasured(distance) => self.set_distance(distance),
            Event::ParameterReported { .. }
            | Event::UnknownReported
            | Event::SavepointSent
            | Event::LevelChanges
            | Event::StateChanges { .. }
            | Event::ReadSent { is_proven: false }
            | Event::Disproved => self.flush(),
            Event::TransactionBegun { .. } => {
                if cx.may_remedy(Remedy::Loops) || cx.may_remedy(Remedy::Lobs) {
                    self.transaction_begins(&cx.config.common);
                }
            }
            Event::EndSent { .. } | Event::TransactionOver => self.transaction_ended(&cx.config.common),
            Event::UnnamedStatementGone => self.unseen = None,
            Event::UnnamedPortalMade => self.portal_replaced(),
            Event::CameUnasked { .. } => self.came_unasked(),
            Event::ReadSent { is_proven: true }
            | Event::Opened(_)
            | Event::SetRead(_)
            | Event::Followed
            | Event::StatementSent { .. }
            | Event::DescriptorsDoubted
            | Event::UnitReady { .. }
            | Event::UnitFailed { .. }
            | Event::PortalLeaves { .. }
            | Event::UnnamedPortalEnds => {}
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
        let template = self.loops.examples.get(request.example)?.template;
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
        let Loops { buffer, predictor, .. } = &mut self.loops;
        let answer = may_ask.then(|| buffer.ask(&request.key, &asking));
        match answer {
            Some(Answer::Serve(ticket, reply)) if self.config.remedies.has(remedy_of(predictor, ticket)) => {
                let reply = reply.to_vec();
                Some(self.serve(now, unit, &request, ticket, &reply))
            }
            Some(Answer::Wait(ticket)) if self.core.queue().owes(Service::Flights) => {
                let flight = self.loops.in_flight.flight_of(ticket);
                self.loops.held.get_or_insert((now, flight));
                Some(Verdict::Hold)
            }
            _ => {
                self.loops.held = None;
                let verdict = self.show_unseen(header.tag, input);
                if verdict.is_none() {
                    let plans = self.is_in_snapshot();
                    self.watch(now, &request, is_pure, plans);
                }
                verdict
            }
        }
    }

    /// Whether a read may be answered by what was read before, ahead of the program or by itself.
    fn may_answer_reads(&self) -> bool {
        [Remedy::Loops, Remedy::Repeats, Remedy::Lobs].into_iter().any(|one| self.may_remedy(one))
    }

    /// Whether a statement of this template may be run although nobody asked for it (rule P4): it only reads, and the
    /// session has no temporary objects that its names could mean.
    fn may_run_ahead(&mut self, now: Moment, template: u32) -> bool {
        self.prove(now);
        Rule::Pure.requires(self.facts.is_known() && self.only_reads(now, template))
    }

    /// Whether what was read ahead goes when a statement is sent that is not proven to only read.
    pub(crate) fn flushes_unproven(&self) -> bool {
        self.may_answer_reads() && Rule::Pure.is_kept()
    }

    /// Whether all reads see one snapshot, and it was taken (rules P1 and P2): the server has told the level, and a
    /// statement of the transaction has succeeded.
    fn is_in_snapshot(&self) -> bool {
        let is_told = self.facts.transaction.is_seen() && self.facts.transaction.isolation().is_snapshot();
        self.core.status() == TransactionStatus::Active && Rule::Snapshot.requires(is_told)
    }

    /// A statement goes to the server: one that is known to only read may be one of a loop, the rows of others may be
    /// what a loop takes its values from.
    fn watch(&mut self, now: Moment, request: &Request<'_>, is_pure: bool, plans: bool) {
        let unit = self.core.units().oldest(); // the next one: nothing is under way
        let plans = plans && self.may_plan();
        let Some(example) = self.loops.examples.get(request.example) else { return };
        let arrival = Arrival { template: example.guessed, values: &request.values };
        let loops = &mut self.loops;
        let ticket = if is_pure {
            let ticket = loops.predictor.statement(since_start(now), &arrival);
            loops.buffer.expect(since_start(now), ticket, &request.key, Origin::Program);
            ticket
        } else {
            loops.predictor.source(&arrival)
        };
        if plans {
            loops.predictor.plan(&mut loops.flight);
        }
        loops.running = Some(Running {
            unit,
            ticket,
            example: request.example,
            sent_at: now,
            rows: 0,
            bytes: 0,
            is_spoilt: request.begins, // the answer of BEGIN comes with it
        });
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
        let template = self.loops.examples.get(request.example).map(|example| example.template);
        let is_pure = template.is_some_and(|template| self.may_run_ahead(now, template));
        self.watch(now, &request, is_pure, false);
    }

    /// A unit of the program's has gone to the server: what was planned with it goes behind it.
    pub(crate) fn unit_sent(&mut self, now: Moment) {
        if !self.may_send_own() {
            return;
        }
        self.loops.contact_at = now;
        self.plan_ahead(now);
        if !self.loops.flight.is_empty() || self.lobs.has_steps() {
            self.send_planned(now);
        }
    }

    /// Whether anything may be run ahead of a loop.
    fn may_plan(&self) -> bool {
        self.may_remedy(Remedy::Loops) || self.may_remedy(Remedy::Lobs)
    }

    /// Asks the predictor for more, and sends it at once.
    fn plan_flight(&mut self, now: Moment) {
        if !self.may_plan() || !self.is_in_snapshot() || !self.may_send_own() || !self.loops.flight.is_empty()
        {
            return;
        }
        self.loops.predictor.plan(&mut self.loops.flight);
        self.send_planned(now);
    }

    fn send_planned(&mut self, now: Moment) {
        let mut flight = std::mem::take(&mut self.loops.flight);
        self.send_flight(now, &flight);
        flight.clear();
        self.loops.flight = flight;
    }

    /// The server answers the program's statement that is watched.
    pub(crate) fn watch_reply(&mut self, now: Moment, due: Due, tag: u8, message: &[u8], is_whole: bool) {
        let body = &message[HEADER_BYTES..];
        let Loops { predictor, buffer, examples, running: slot, .. } = &mut self.loops;
        let Some(running) = slot.as_mut().filter(|running| running.unit == due.unit) else { return };
        running.bytes += message.len();
        let ticket = running.ticket;
        match tag {
            backend::ROW_DESCRIPTION | backend::NO_DATA => {
                if let (Some(example), Some(columns)) = (examples.get_mut(running.example), columns_of(body))
                {
                    example.columns = columns;
                }
                running.is_spoilt |= !is_whole || !buffer.append(ticket, message);
            }
            backend::DATA_ROW => {
                running.rows += 1;
                running.is_spoilt |= !is_whole || !buffer.append(ticket, message);
                if is_whole {
                    feed_row(predictor, examples.get(running.example), ticket, body);
                }
            }
            backend::COMMAND_COMPLETE if matches!(due.expect, Expect::Query | Expect::Execute) => {
                running.is_spoilt |= !is_whole || !buffer.append(ticket, message);
            }
            backend::READY_FOR_QUERY => {
                let waited = Duration::from_nanos(now.since(running.sent_at));
                let execution = waited.saturating_sub(self.facts.path.distance());
                // One late reply says nothing: the shorter of two counts.
                let last = examples.get_mut(running.example).map(|example| &mut example.last_execution);
                let last = last.and_then(|last| last.replace(execution));
                let execution = last.map(|last| last.min(execution));
                let outcome = Outcome { execution, bytes: running.bytes, rows: running.rows };
                if body == b"T" {
                    predictor.result_end(ticket, outcome);
                } else {
                    predictor.failed(ticket);
                    running.is_spoilt = true;
                }
                match running.is_spoilt {
                    true => buffer.fail(ticket),
                    false => buffer.complete(ticket),
                }
                *slot = None;
                self.plan_flight(now);
            }
            backend::PARSE_COMPLETE | backend::BIND_COMPLETE => {}
            _ => running.is_spoilt = true,
        }
    }
}
