//! Answers from memory, and what the server has to be told about them later.

use onetrip_ledger::{Moment, TransactionStatus};
use onetrip_loops::Ticket;
use onetrip_wire::pg::{
    Bind, FrameHeader, HEADER_BYTES, Parse, StatementOrPortal, TransactionStatus as WireStatus, backend,
    frame, frontend,
};

use super::request::Request;
use super::{Loops, remedy_of, since_start};
use crate::remedies::Rule;
use crate::remedies::arrived::Arrived;
use crate::remedies::own::put_answer;
use crate::reply_queue::{Due, Expect, Service, Taker};
use crate::session::{LENGTH_MAX, Session, Verdict};

impl Session {
    /// Answers a unit with what was read ahead.
    pub(super) fn serve(
        &mut self,
        now: Moment,
        unit: Arrived<'_>,
        request: &Request<'_>,
        ticket: Ticket,
        reply: &[u8],
    ) -> Verdict {
        let remedy = remedy_of(&self.loops.predictor, ticket);
        let held = self.loops.held.take();
        let arrived_at = held.map_or(now, |(arrived_at, _)| arrived_at);
        let number = self.core.units().oldest(); // the next one: nothing is under way
        self.book_unit(arrived_at, unit, Taker::Nobody);
        let reply_at = self.core.client_outbox().len();
        put_answer(self.core.client_outbox(), unit, b"", reply, WireStatus::Active); // a description is in front of its rows
        let length = self.core.client_outbox().len() - reply_at;
        let template = self.loops.template_of(request);
        let Self { core, config, shadow, .. } = self;
        let is_verified = shadow.verify(core, config, unit, template, reply_at);
        self.book_served(number, unit, reply);
        // Units that wait for one flight wait for one trip.
        let is_trip = held.is_some_and(|(_, flight)| flight > self.loops.waited_for);
        if is_trip {
            self.loops.waited_for = held.map_or(0, |(_, flight)| flight);
        } else {
            self.core.answered_by(number, remedy);
            self.facts.used();
        }
        self.core.bytes_sent(unit.len());
        self.core.bytes_received(number, length, now);
        self.book_answered(now);
        if !request.key.starts_with(b"Q") {
            self.loops.unseen = (!is_verified).then(|| without_sync(unit));
        }
        self.loops.predictor.served(since_start(now), ticket);
        self.plan_flight(now);
        self.show_presence(now);
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

    /// Where the server's unnamed statement or portal is not the one that the program believes in, and the unit at the
    /// front of `input` may use it, the last unit that was served is run for real first (rule P22).
    pub(crate) fn show_unseen(&mut self, tag: u8, input: &[u8]) -> Option<Verdict> {
        let Some(unseen) = &self.loops.unseen else { return None };
        let has_portal = unseen.len() > parse_len(unseen);
        let needs = |unit| Unnamed::of(unit).is_none_or(|unnamed| unnamed.needs(has_portal));
        let is_sure = tag == frontend::QUERY || Arrived::peek(input).is_some_and(|unit| !needs(unit));
        if is_sure
            || !Rule::Unnamed.is_kept()
            || self.closes_unseen(input)
            || self.fails_without_unseen(input)
        {
            return None;
        }
        let unseen = self.loops.unseen.take()?;
        self.tell_unseen(&unseen);
        Some(Verdict::Replace(0))
    }

    /// A transaction that has failed runs no statement again, and closes what it is asked to.
    fn closes_unseen(&mut self, input: &[u8]) -> bool {
        let Some(unit) = Arrived::peek(input).filter(|_| self.core.status() == TransactionStatus::Failed)
        else {
            return false;
        };
        if !unit.messages().all(|(tag, _)| matches!(tag, frontend::CLOSE | frontend::SYNC)) {
            return false;
        }
        let unnamed = StatementOrPortal::Statement(b"");
        let is_gone = unit.messages().any(|(_, body)| StatementOrPortal::decode(body) == Ok(unnamed));
        match &mut self.loops.unseen {
            Some(unseen) if !is_gone => keep_parse(unseen),
            unseen => *unseen = None,
        }
        true
    }

    /// A transaction that has failed refuses a portal, and says of a statement whether it is there: that is the server's to
    /// tell, if the last unit that was served has not made it.
    fn fails_without_unseen(&self, input: &[u8]) -> bool {
        let makes_statement =
            self.loops.unseen.as_ref().is_some_and(|unseen| unseen.first() == Some(&frontend::PARSE));
        let is_failed = self.core.status() == TransactionStatus::Failed;
        let asks_portal = |unit| Unnamed::of(unit).is_none_or(|unnamed| unnamed.asks_portal);
        is_failed && !makes_statement && Arrived::peek(input).is_some_and(|unit| !asks_portal(unit))
    }

    fn tell_unseen(&mut self, unseen: &[u8]) {
        let mut rest = unseen;
        while let Some(Ok(header)) = FrameHeader::peek(rest, LENGTH_MAX) {
            rest = rest.get(header.frame_len()..).unwrap_or_default();
            let expect = match header.tag {
                frontend::PARSE => Expect::Parse,
                frontend::BIND => Expect::Bind,
                frontend::DESCRIBE => Expect::DescribePortal,
                _ => Expect::Execute,
            };
            self.core.owe_own(Due::own(Service::Unseen, expect));
        }
        self.core.server_outbox().extend_from_slice(unseen);
    }
}

impl Loops {
    /// The session's number of a request's template.
    fn template_of(&self, request: &Request<'_>) -> u32 {
        self.examples.get(request.example).map_or(0, |example| example.template)
    }

    /// The program's unnamed portal is made anew.
    pub(super) fn portal_replaced(&mut self) {
        self.unseen = self.unseen.take().and_then(|mut unseen| {
            keep_parse(&mut unseen);
            (!unseen.is_empty()).then_some(unseen)
        });
    }
}

/// Leaves the Parse alone: portals end with their transaction.
pub(super) fn keep_parse(unseen: &mut Vec<u8>) {
    unseen.truncate(parse_len(unseen));
}

/// Length of the Parse that begins a unit, 0 if none does.
fn parse_len(unit: &[u8]) -> usize {
    let is_parse = unit.first() == Some(&frontend::PARSE);
    let header = FrameHeader::peek(unit, LENGTH_MAX).and_then(Result::ok).filter(|_| is_parse);
    header.map_or(0, |header| header.frame_len())
}

fn without_sync(unit: Arrived<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(unit.len());
    for (tag, body) in unit.messages().filter(|(tag, _)| *tag != frontend::SYNC) {
        frame(&mut out, tag, |out| out.extend_from_slice(body));
    }
    out
}

/// What a unit does with the unnamed statement and the unnamed portal.
#[derive(Clone, Copy, Default)]
struct Unnamed {
    makes_statement: bool,
    makes_portal: bool,
    /// It uses the statement before it makes one.
    asks_statement: bool,
    /// It describes or executes the portal before it makes one.
    asks_portal: bool,
    /// It closes the portal before it makes one.
    closes_portal: bool,
}

impl Unnamed {
    /// `None` for a unit with a message that cannot be read.
    fn of(unit: Arrived<'_>) -> Option<Self> {
        let mut unnamed = Self::default();
        for (tag, body) in unit.messages() {
            unnamed.see(tag, body)?;
        }
        Some(unnamed)
    }

    fn see(&mut self, tag: u8, body: &[u8]) -> Option<()> {
        match tag {
            frontend::PARSE => self.makes_statement |= Parse::decode(body).ok()?.statement.is_empty(),
            frontend::BIND => {
                let bind = Bind::decode(body).ok()?;
                self.asks_statement |= bind.statement.is_empty() && !self.makes_statement;
                self.makes_portal |= bind.portal.is_empty();
            }
            frontend::DESCRIBE | frontend::CLOSE => match StatementOrPortal::decode(body).ok()? {
                StatementOrPortal::Statement(name) => {
                    self.asks_statement |= name.is_empty() && !self.makes_statement;
                }
                StatementOrPortal::Portal(name) => {
                    let asks =
                        if tag == frontend::CLOSE { &mut self.closes_portal } else { &mut self.asks_portal };
                    *asks |= name.is_empty() && !self.makes_portal;
                }
            },
            frontend::EXECUTE => self.asks_portal |= body.first() == Some(&0) && !self.makes_portal,
            _ => {}
        }
        Some(())
    }

    /// Whether a unit that was served has to be run before this one. Without its portal, which another has taken the place
    /// of (`has_portal`), only a use of the statement needs it. With it, a unit that makes a statement alone leaves the portal
    /// to later ones.
    fn needs(self, has_portal: bool) -> bool {
        let touches_portal = self.asks_portal || self.closes_portal;
        let leaves_portal = self.makes_statement && !self.makes_portal;
        self.asks_statement || has_portal && (touches_portal || leaves_portal)
    }
}
