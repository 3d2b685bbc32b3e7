//! Answers from memory.

use onetrip_ledger::{Moment, Remedy};
use onetrip_loops::Ticket;
use onetrip_wire::pg::{FrameHeader, HEADER_BYTES, TransactionStatus as WireStatus, backend, frontend};

use crate::contract::{LENGTH_MAX, Verdict};
use crate::remedies::Session;
use crate::reply_queue::{Due, Expect, Taker};
use crate::services::Arrived;
use crate::services::flights::Request;
use crate::services::put_answer;

impl Session {
    /// Answers a unit with what was read ahead.
    pub(super) fn serve(
        &mut self,
        now: Moment,
        unit: Arrived<'_>,
        request: &Request<'_>,
        (remedy, ticket): (Remedy, Ticket),
        reply: &[u8],
    ) -> Verdict {
        let (arrived_at, is_trip) = self.flights.end_hold(now);
        let number = self.core.units().oldest(); // the next one: nothing is under way
        self.book_unit(arrived_at, unit, Taker::Nobody);
        let reply_at = self.core.client_outbox().len();
        put_answer(self.core.client_outbox(), unit, b"", reply, WireStatus::Active); // a description is in front of its rows
        let length = self.core.client_outbox().len() - reply_at;
        let template = self.flights.example(request.example).map_or(0, |example| example.template);
        let Self { core, config, shadow, .. } = self;
        let is_verified = shadow.verify(core, config, unit, template, reply_at);
        self.book_served(number, unit, reply);
        if !is_trip {
            self.core.answered_by(number, remedy);
            self.facts.used();
        }
        self.core.bytes_sent(unit.len());
        self.core.bytes_received(number, length, now);
        self.book_answered(now);
        if !request.key.starts_with(b"Q") {
            self.unseen.served(unit, is_verified);
        }
        self.flights.served(now, ticket);
        self.plan_flight(now);
        self.flights.show_presence(&mut self.core, now);
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
