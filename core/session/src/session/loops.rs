//! How `loops` is asked: what a unit asks for, whether it is answered from memory, and what is watched.

use std::time::Duration;

use onetrip_ledger::{Moment, Remedy, TransactionStatus};
use onetrip_loops::{AGE_MAX, Answer, Asking, Ticket};
use onetrip_sql::purity::is_harmless_parameter_type;
use onetrip_wire::pg::{
    Bind, Execute, FrameHeader, HEADER_BYTES, Oid, Parse, StatementOrPortal, TransactionStatus as WireStatus,
    backend, frontend,
};
use smallvec::SmallVec;

use super::{Acting, Session};
use crate::contract::{LENGTH_MAX, Verdict};
use crate::facts::Isolation;
use crate::reading::Effect;
use crate::reply_queue::{Due, Expect, Service, Taker};
use crate::rules::Rule;
use crate::services::flights::{Request, since_start};
use crate::services::{Arrived, put_answer};

/// Which remedy answers by this.
fn remedy_of(is_repeat: bool) -> Remedy {
    if is_repeat { Remedy::Repeats } else { Remedy::Loops }
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
            || self.acting.shadow.has_failed()
            || !is_sure
            || !is_in_place
            || !self.is_answered()
        {
            return None;
        }
        // Nothing of it is answered from memory, objects that its rows name among it (rule L2), and it is forgotten at the end.
        let is_level_open = self.facts.transaction.may_tell_level() || self.acting.cursors.follows_any();
        if self.is_past_proof() && !is_level_open {
            self.acting.flights.forget_hold();
            return None;
        }
        let unit = Arrived::peek(input)?;
        let request = self.request_of(now, unit)?;
        if self.core.status() == TransactionStatus::Idle && !request.begins {
            return None;
        }
        let template = self.acting.flights.example(request.example)?.template;
        let is_pure = self.may_run_ahead(now, template);
        self.acting.flights.keep_of_epoch(self.facts.changes().epoch());
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
        let answer = may_ask.then(|| self.acting.flights.ask(&request, &asking));
        match answer {
            Some((Answer::Serve(ticket, reply), is_repeat))
                if self.config.remedies.has(remedy_of(is_repeat)) =>
            {
                let reply = reply.to_vec();
                Some(self.serve(now, unit, &request, (remedy_of(is_repeat), ticket), &reply))
            }
            Some((Answer::Wait(ticket), _)) if self.core.queue().owes(Service::Flights) => {
                self.acting.flights.hold(now, ticket);
                Some(Verdict::Hold)
            }
            _ => {
                self.acting.flights.forget_hold();
                let verdict = self.acting.unseen.show(&mut self.core, &self.own_names, header.tag, input);
                if verdict.is_none() {
                    let plans = self.is_in_snapshot() && self.may_plan();
                    self.acting.flights.watch(&self.core, now, &request, is_pure, plans);
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
        let template = self.acting.flights.example(request.example).map(|example| example.template);
        let is_pure = template.is_some_and(|template| self.may_run_ahead(now, template));
        self.acting.flights.watch(&self.core, now, &request, is_pure, false);
    }
}

/// Answers from memory.
impl Session {
    /// Answers a unit with what was read ahead.
    fn serve(
        &mut self,
        now: Moment,
        unit: Arrived<'_>,
        request: &Request<'_>,
        (remedy, ticket): (Remedy, Ticket),
        reply: &[u8],
    ) -> Verdict {
        let (arrived_at, is_trip) = self.acting.flights.end_hold(now);
        let number = self.core.units().oldest(); // the next one: nothing is under way
        self.book_unit(arrived_at, unit, Taker::Nobody);
        let reply_at = self.core.client_outbox().len();
        put_answer(self.core.client_outbox(), unit, b"", reply, WireStatus::Active); // a description is in front of its rows
        let length = self.core.client_outbox().len() - reply_at;
        let template = self.acting.flights.example(request.example).map_or(0, |example| example.template);
        let Self { core, config, acting, .. } = self;
        let is_verified = acting.shadow.verify(core, config, unit, template, reply_at);
        self.book_served(number, unit, reply);
        if !is_trip {
            self.core.answered_by(number, remedy);
            self.facts.used();
        }
        self.core.bytes_sent(unit.len());
        self.core.bytes_received(number, length, now);
        self.book_answered(now);
        if !request.key.starts_with(b"Q") {
            self.acting.unseen.served(unit, is_verified);
        }
        self.acting.flights.served(now, ticket);
        self.plan_flight(now);
        self.acting.flights.show_presence(&mut self.core, now);
        Verdict::Replace(unit.len())
    }

    /// Books rows and completion as if they had come.
    fn book_served(&mut self, number: u64, unit: Arrived<'_>, reply: &[u8]) {
        let is_query = unit.messages().any(|(tag, _)| tag == frontend::QUERY);
        let expect = if is_query { Expect::Query } else { Expect::Execute };
        let mut rest = reply;
        while let Some(Ok(header)) = FrameHeader::peek(rest, LENGTH_MAX) {
            let Some((message, after)) = rest.split_at_checked(header.frame_len()) else { return };
            let is_described = matches!(header.tag, backend::ROW_DESCRIPTION | backend::NO_DATA);
            let expect = if is_described && !is_query { Expect::DescribePortal } else { expect };
            let due = Due { taker: Taker::Nobody, ..Due::of_client(expect, number, Some(0)) };
            self.book_part(due, header.tag, &message[HEADER_BYTES..], true);
            rest = after;
        }
    }
}

/// What a unit asks for.
impl Session {
    /// What a unit asks for, if it is one statement of which all rows are asked for; a BEGIN may be in front of it.
    fn request_of<'a>(&mut self, now: Moment, unit: Arrived<'a>) -> Option<Request<'a>> {
        let mut group = Group::default();
        for (tag, body) in unit.messages() {
            if tag == frontend::QUERY {
                return self.simple_request(body.strip_suffix(b"\0")?);
            }
            if group.executed && tag != frontend::SYNC {
                // Another statement: what is in front of it can only be a BEGIN.
                let is_begin = self.is_begin(&group);
                group = Group { begins: is_begin.then_some(true)?, ..Group::default() };
            }
            group.take(tag, body)?;
        }
        let bind = group.bound.filter(|_| group.executed)?;
        let request = match group.parsed {
            None => self.prepared_request(now, &bind, group.describes),
            Some(parse) => self.parsed_request(&parse, &bind, group.describes),
        };
        let names = group.parsed.is_some_and(|parse| !parse.statement.is_empty());
        request.map(|request| Request { begins: group.begins, names, ..request })
    }

    fn is_begin(&mut self, group: &Group<'_>) -> bool {
        let text = match (group.parsed, group.bound) {
            (Some(parse), _) => parse.text.to_vec(),
            (None, Some(bind)) => match self.facts.surely_prepared(&self.core, bind.statement) {
                Some(text) => text.to_vec(),
                None => return false,
            },
            (None, None) => return false,
        };
        !group.begins && self.effect_of(&text).0 == Effect::Begin
    }

    fn simple_request<'a>(&mut self, text: &'a [u8]) -> Option<Request<'a>> {
        // A simple query ends the unnamed statement, which would still be there if it were not sent.
        if self.core.prepared(b"").is_some() {
            return None;
        }
        let (effect, template) = self.effect_of(text);
        (effect == Effect::Read).then_some(())?;
        let Acting { flights, loops, .. } = &mut *self.acting;
        loops.simple_request(flights, text, template)
    }

    fn parsed_request<'a>(
        &mut self,
        parse: &Parse<'_>,
        bind: &Bind<'a>,
        describes: bool,
    ) -> Option<Request<'a>> {
        let (effect, template) = self.effect_of(parse.text);
        let types: SmallVec<[Oid; 8]> = parse.parameter_oids().collect();
        let is_read = effect == Effect::Read && types.iter().all(|oid| is_harmless_parameter_type(*oid));
        is_read.then_some(())?;
        let learned = self.core.learned(template);
        let Acting { flights, loops, .. } = &mut *self.acting;
        loops.extended_request(flights, (parse.text, None), types, bind, describes, (template, learned))
    }

    /// What a unit asks for that runs the statement of a Parse that went before it.
    fn request_behind<'a>(&mut self, unit: Arrived<'a>, parse: &[u8]) -> Option<Request<'a>> {
        let parse = Parse::decode(parse.get(HEADER_BYTES..)?).ok()?;
        let mut group = Group::default();
        unit.messages().try_for_each(|(tag, body)| group.take(tag, body))?;
        let bind = group.bound.filter(|_| group.executed)?;
        self.parsed_request(&parse, &bind, group.describes)
    }

    fn prepared_request<'a>(&mut self, now: Moment, bind: &Bind<'a>, describes: bool) -> Option<Request<'a>> {
        let source = self.facts.surely_prepared(&self.core, bind.statement)?.to_vec();
        let prepared = self.core.prepared(bind.statement)?;
        let (text, types) = (prepared.text.clone(), prepared.types.clone());
        // What was parsed under the same settings, in the same snapshot, is what a guess would parse.
        let is_of_text = prepared.span().is_some() && prepared.span() == self.span();
        let own = (!is_of_text).then_some((bind.statement, prepared.serial));
        // The server's unnamed statement is another where the last Parse was answered from memory.
        own.is_none_or(|(name, _)| !name.is_empty()).then_some(())?;
        (text.effect == Effect::Read && self.is_as_parsed(now, bind.statement)).then_some(())?;
        let learned = self.core.learned(text.template);
        let Acting { flights, loops, .. } = &mut *self.acting;
        loops.extended_request(flights, (&source, own), types, bind, describes, (text.template, learned))
    }
}

/// The messages of one statement in an extended group.
#[derive(Default)]
struct Group<'a> {
    parsed: Option<Parse<'a>>,
    bound: Option<Bind<'a>>,
    describes: bool,
    executed: bool,
    /// A BEGIN is in front of it.
    begins: bool,
}

impl<'a> Group<'a> {
    /// Takes the next message; `None` if the group is not Parse, Bind, Describe, Execute of one statement and the
    /// unnamed portal.
    fn take(&mut self, tag: u8, body: &'a [u8]) -> Option<()> {
        match tag {
            frontend::PARSE if self.parsed.is_none() && self.bound.is_none() => {
                self.parsed = Some(Parse::decode(body).ok()?);
            }
            frontend::BIND if self.bound.is_none() => {
                let bind = Bind::decode(body).ok().filter(|bind| bind.portal.is_empty())?;
                self.parsed.is_none_or(|parse| parse.statement == bind.statement).then_some(())?;
                self.bound = Some(bind);
            }
            frontend::DESCRIBE if self.bound.is_some() && !self.describes => {
                let object = StatementOrPortal::decode(body).ok()?;
                (object == StatementOrPortal::Portal(b"")).then_some(())?;
                self.describes = true;
            }
            frontend::EXECUTE if self.bound.is_some() => {
                let execute = Execute::decode(body).ok()?;
                (execute.portal.is_empty() && execute.row_limit.is_none()).then_some(())?;
                self.executed = true;
            }
            frontend::SYNC => {}
            _ => return None,
        }
        Some(())
    }
}
