//! What a session should book, worked out from the same passing of messages by one who knows what the server will
//! make of each: no queue, no guessing.

use std::collections::{BTreeSet, VecDeque};

use onetrip_ledger::{Exchange, Moment, Outcome, Steps, TransactionStatus, UnitKind, ValueHasher};
use onetrip_wire::pg::{CommandComplete, HEADER_BYTES, TransactionStatus as Letter, backend};

use crate::backend::{Backend, SQLSTATE};
use crate::message::{Kind, Message};

const FAILED: Outcome = match SQLSTATE.as_bytes().first_chunk::<5>() {
    Some(sqlstate) => Outcome::Failed(*sqlstate),
    None => Outcome::Done,
};

/// A statement run by a unit.
#[derive(Debug, Clone)]
struct Ran {
    message: usize,
    rows: u64,
    suspended: bool,
    outcome: Outcome,
    parameters: Vec<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct Unit {
    kind: UnitKind,
    members: Vec<usize>,
    pending: BTreeSet<usize>,
    closed: bool,
    sent_at: Option<Moment>,
    starts_trip: bool,
    outcome: Outcome,
    status: TransactionStatus,
    answered_at: Moment,
    runs: Vec<Ran>,
    /// Its COPY data belong to this message.
    copies: Option<usize>,
}

#[derive(Debug, Default)]
pub(crate) struct Books {
    live: VecDeque<Unit>,
    pub(crate) answered: Vec<Unit>,
    unanswered: usize,
    sent: usize,
    passed: usize,
    status: TransactionStatus,
    /// The COPY whose data is on its way.
    copying: Option<usize>,
    copy_ends: BTreeSet<usize>,
    serving: bool,
    pub(crate) trips: u64,
}

impl Books {
    pub(crate) fn unanswered(&self) -> usize {
        self.unanswered
    }

    /// A message's first byte passed the gateway.
    pub(crate) fn sent(&mut self, index: usize, messages: &[Message], now: Moment) {
        self.sent = index + 1;
        let message = &messages[index];
        match &message.kind {
            Kind::Connect(entries) => {
                self.join(index, UnitKind::Connect, now, !entries.is_empty());
                self.close(None);
            }
            Kind::Query(_) => {
                self.join(index, UnitKind::Query, now, true);
                self.run(index, message);
                self.close(None);
            }
            Kind::FunctionCall { .. } => {
                self.join(index, UnitKind::FunctionCall, now, true);
                self.run(index, message);
                self.close(None);
            }
            Kind::Execute(_) => {
                self.join(index, UnitKind::Group, now, true);
                self.run(index, message);
            }
            Kind::Step { .. } => self.join(index, UnitKind::Group, now, true),
            Kind::Sync { .. } if self.copying.is_some() => self.join(index, UnitKind::Group, now, false),
            Kind::Sync { .. } => {
                self.join(index, UnitKind::Group, now, true);
                self.close(None);
            }
            Kind::Flush if self.copying.is_none() => self.close(Some(UnitKind::FlushedGroup)),
            Kind::Flush => {}
            Kind::CopyData if self.copying.is_some() => self.join(index, UnitKind::CopyIn, now, false),
            Kind::CopyData => {}
            Kind::CopyEnd { .. } => {
                self.copy_ends.insert(index);
                if let Some(copying) = self.copying.take() {
                    self.join(index, UnitKind::CopyIn, now, false);
                    if matches!(messages[copying].kind, Kind::Query(_)) {
                        self.close(None);
                    }
                }
            }
        }
    }

    /// What became of messages is known by now, as far as the replies that have passed tell it.
    pub(crate) fn settle(&mut self, backend: &Backend, now: Moment) {
        for unit in &mut self.live {
            let ended = |index: &usize| backend.fates.get(*index).and_then(|fate| fate.ended_by);
            for index in unit.members.iter().filter(|index| ended(index).is_some_and(|by| by < self.passed)) {
                if unit.pending.remove(index) && backend.fates[*index].skipped {
                    unit.outcome = first(unit.outcome, Outcome::Skipped);
                    for run in unit.runs.iter_mut().filter(|run| run.message == *index) {
                        run.outcome = first(run.outcome, Outcome::Skipped);
                    }
                }
            }
        }
        while self.live.front().is_some_and(|unit| unit.closed && unit.pending.is_empty()) {
            let Some(mut unit) = self.live.pop_front() else { return };
            if unit.sent_at.is_some() {
                self.unanswered -= 1;
                unit.status = self.status;
                unit.answered_at = now;
                self.answered.push(unit);
            }
        }
    }

    /// A reply's first byte passed the gateway.
    pub(crate) fn passed(&mut self, number: usize, backend: &Backend, messages: &[Message]) {
        self.passed = number + 1;
        let reply = &backend.replies[number];
        let Some(message) = reply.answers else { return };
        if reply.tag == backend::READY_FOR_QUERY {
            if self.serving {
                self.status = match Letter::decode(&reply.bytes[HEADER_BYTES..]) {
                    Ok(Letter::Active) => TransactionStatus::Active,
                    Ok(Letter::Failed) => TransactionStatus::Failed,
                    _ => TransactionStatus::Idle,
                };
            }
            self.serving = true;
        }
        if reply.tag == backend::COPY_IN_RESPONSE {
            return self.copy_asked(message);
        }
        let is_simple = matches!(messages[message].kind, Kind::Query(_));
        if self.copying == Some(message) && matches!(reply.tag, backend::ERROR_RESPONSE) {
            self.copying = None;
            if is_simple {
                self.close(None);
            }
        }
        let Some(unit) = self.live.iter_mut().find(|unit| unit.pending.contains(&message)) else { return };
        let run = unit.runs.iter_mut().find(|run| run.message == message);
        match reply.tag {
            backend::ERROR_RESPONSE => {
                unit.outcome = first(unit.outcome, FAILED);
                if let Some(run) = run {
                    run.outcome = first(run.outcome, FAILED);
                }
            }
            backend::FUNCTION_CALL_RESPONSE => {
                if let Some(run) = run {
                    run.rows = 1;
                }
            }
            backend::DATA_ROW if !is_simple => {
                if let Some(run) = run {
                    run.rows += 1;
                }
            }
            backend::COMMAND_COMPLETE => {
                let complete = CommandComplete::decode(&reply.bytes[HEADER_BYTES..]).expect("a tag");
                let rows = complete.rows().unwrap_or(0);
                if let Some(run) = run {
                    run.rows = if is_simple { run.rows + rows } else { run.rows.max(rows) };
                }
            }
            backend::PORTAL_SUSPENDED => {
                if let Some(run) = run {
                    run.suspended = true;
                }
            }
            _ => {}
        }
    }

    /// The server asks for COPY data; what comes is a unit of its own, unless it is already there.
    fn copy_asked(&mut self, message: usize) {
        if self.copy_ends.range(message..).next().is_some() {
            return;
        }
        self.copying = Some(message);
        self.close(None);
        let asking = self.live.iter_mut().find(|unit| unit.pending.contains(&message));
        if let Some(asking) = asking {
            asking.pending.remove(&message);
        }
        let run = Ran { message, rows: 0, suspended: false, outcome: Outcome::Done, parameters: Vec::new() };
        let mut unit = Unit::new(UnitKind::CopyIn);
        unit.copies = Some(message);
        unit.runs.push(run);
        unit.members.push(message);
        unit.pending.insert(message);
        self.live.push_back(unit);
    }

    fn join(&mut self, index: usize, kind: UnitKind, now: Moment, owes: bool) {
        if self.live.back().is_none_or(|unit| unit.closed) {
            self.live.push_back(Unit::new(kind));
        }
        let Some(unit) = self.live.back_mut() else { return };
        if unit.sent_at.is_none() {
            unit.sent_at = Some(now);
            unit.starts_trip = self.unanswered == 0;
            self.trips += u64::from(unit.starts_trip);
            self.unanswered += 1;
        } else if matches!(kind, UnitKind::Query | UnitKind::FunctionCall) {
            unit.kind = kind;
        }
        unit.members.push(index);
        if owes {
            unit.pending.insert(index);
        }
    }

    fn close(&mut self, kind: Option<UnitKind>) {
        if let Some(unit) = self.live.back_mut().filter(|unit| !unit.closed) {
            unit.closed = true;
            unit.kind = kind.filter(|_| unit.kind == UnitKind::Group).unwrap_or(unit.kind);
        }
    }

    fn run(&mut self, index: usize, message: &Message) {
        let (Some(unit), Some(run)) = (self.live.back_mut(), &message.run) else { return };
        let here = run.bound_by.is_none_or(|bound| unit.members.contains(&bound));
        unit.runs.push(Ran {
            message: index,
            rows: 0,
            suspended: false,
            outcome: Outcome::Done,
            parameters: if here { run.parameters.clone() } else { Vec::new() },
        });
    }
}

impl Unit {
    fn new(kind: UnitKind) -> Self {
        Self {
            kind,
            members: Vec::new(),
            pending: BTreeSet::new(),
            closed: false,
            sent_at: None,
            starts_trip: false,
            outcome: Outcome::Done,
            status: TransactionStatus::Idle,
            answered_at: Moment(0),
            runs: Vec::new(),
            copies: None,
        }
    }

    /// Where an exchange differs from this.
    pub(crate) fn compare(&self, exchange: &Exchange, check: &Check<'_>) -> Result<(), String> {
        let kept = (
            exchange.kind,
            exchange.starts_trip,
            exchange.outcome,
            exchange.status,
            Some(exchange.sent_at),
            exchange.last_reply_at,
        );
        let expected =
            (self.kind, self.starts_trip, self.outcome, self.status, self.sent_at, self.answered_at);
        if kept != expected {
            return Err(format!("a unit is booked as {kept:?} and is {expected:?}: {self:?} {exchange:?}"));
        }
        let mut parameters = exchange.parameters.iter();
        let mut kept = Vec::new();
        for statement in &exchange.statements {
            let own: Vec<u64> = parameters.by_ref().take(statement.parameters.into()).copied().collect();
            if statement.steps.has(Steps::EXECUTE) || self.copies.is_some() {
                kept.push((statement, own));
            }
        }
        if kept.len() != self.runs.len() {
            return Err(format!("{} statements run, {} booked: {self:?}", self.runs.len(), kept.len()));
        }
        for (run, (statement, parameters)) in self.runs.iter().zip(kept) {
            let Some(sent) = &check.messages[run.message].run else { continue };
            let hashes: Vec<u64> =
                run.parameters.iter().map(|value| check.hasher.hash(value.as_bytes())).collect();
            let template = check.templates.get(statement.template as usize).map(String::as_str);
            let row_limit = if self.copies.is_some() { 0 } else { sent.row_limit };
            let expected = (Some(sent.template.as_str()), run.rows, run.suspended, row_limit, hashes);
            let booked = (template, statement.rows, statement.suspended, statement.row_limit, parameters);
            let same_outcome = match run.outcome {
                // A failure of its Bind is its failure.
                Outcome::Skipped => statement.outcome != Outcome::Done,
                outcome => statement.outcome == outcome,
            };
            if booked != expected || !same_outcome {
                return Err(format!("{booked:?} booked, {expected:?} ran: {run:?} {statement:?}"));
            }
        }
        Ok(())
    }
}

/// What it takes to compare.
pub(crate) struct Check<'a> {
    pub(crate) messages: &'a [Message],
    pub(crate) templates: &'a [String],
    pub(crate) hasher: &'a ValueHasher,
}

fn first(outcome: Outcome, next: Outcome) -> Outcome {
    if outcome == Outcome::Done { next } else { outcome }
}
