//! A flight: guesses that go to the server together, inside a savepoint that is rolled back whatever becomes of them.
//!
//! ```text
//!  [the program's statement, Sync]                          proves that the statement runs here (rule P11)
//!  SAVEPOINT s; set_config(lock_timeout, ...), Sync          rules P9, P11, P24
//!  Bind Describe Execute Close, Sync      for each guess     a Sync each: statement_timeout counts up to the next one
//!  ROLLBACK TO s; RELEASE s, Sync                            locks and settings of the guesses are gone
//! ```
//!
//! A guess at a run of the program's own prepared statement binds that one. All other names are the session's own, made of
//! random bytes; the program's unnamed statement and portal stay as they are.

use std::time::Duration;

use onetrip_ledger::{Moment, Remedy};
use onetrip_loops::{Column, Flight, Format as ColumnFormat, Guess, Origin, Outcome, Ticket};
use onetrip_wire::pg::{
    Bind, Execute, Format, Formats, HEADER_BYTES, Parse, RowDescription, StatementOrPortal, Values, backend,
    frame, frontend,
};

use super::request::{Way, encoded_values};
use super::{feed_row, since_start};
use crate::remedies::inquiry::NO_LIMIT;
use crate::remedies::{Rule, Step, object_of};
use crate::reply_queue::{Due, Expect, Reply, Service, Taker};
use crate::session::{Session, SessionError, Verdict};
use crate::slots::{Slot, Slots};

/// No guess waits longer for a lock, and none runs longer: what the program sends next is behind it (rule P11). Going
/// read-only is the second line behind the proof that the statement only reads.
const SETTINGS: &str = "SELECT pg_catalog.set_config('lock_timeout', '2ms', true), \
     pg_catalog.set_config('statement_timeout', '100ms', true), \
     pg_catalog.set_config('transaction_read_only', 'on', true)";

/// What the server is about to answer, part by part; the messages of a part have one slot, and a ReadyForQuery ends it.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    parts: Slots<Part>,
    /// The server's status when the flight began.
    status_before: u8,
    /// Something of the front part must not be kept.
    is_spoilt: bool,
    /// Flights that were sent.
    sent: u64,
    /// When the last part ended.
    part_ended_at: Moment,
    /// What the front guess's answer has come to so far.
    bytes: usize,
    rows: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// The savepoint.
    Head,
    Guess {
        ticket: Ticket,
        example: u32,
        flight: u64,
    },
    /// A call that reads a large object.
    Call(Step),
    /// The end of the guesses' limits: the way back is not to be ended by them. It fails where a guess has, and then the
    /// limits have ended with that.
    Unlimited,
    /// The way back.
    Tail,
    /// A Sync that shows the server that the program is there (rule P18).
    Sign,
}

impl InFlight {
    /// The number of the flight that brings this guess's answer, counted from one.
    pub(super) fn flight_of(&self, ticket: Ticket) -> u64 {
        let flight_of = |part: &Part| match part {
            Part::Guess { ticket: of, flight, .. } if *of == ticket => Some(*flight),
            _ => None,
        };
        self.parts.iter().find_map(flight_of).unwrap_or(self.sent + 1)
    }

    /// Something came that the guess's answer would have to bring along (rule P10).
    pub(super) fn spoil(&mut self) {
        self.is_spoilt = true;
    }
}

impl Session {
    /// Sends the guesses of `flight`.
    pub(super) fn send_flight(&mut self, now: Moment, flight: &Flight) {
        let accepted: Vec<(Guess<'_>, Vec<u8>)> =
            flight.guesses().filter_map(|guess| Some((guess, self.expect_guess(now, &guess)?))).collect();
        let steps = self.take_steps();
        if accepted.is_empty() && steps.is_empty() {
            return;
        }
        let head = self.put_part(Part::Head);
        let savepoint = self.private_name(None);
        self.put_own_statement(head, &[b"SAVEPOINT ", savepoint.as_slice()].concat());
        if Rule::Harmless.is_kept() {
            self.put_own_statement(head, SETTINGS.as_bytes());
        }
        self.put_sync(head);
        self.put_steps(steps);
        let mut prepared: Vec<u32> = Vec::new();
        for (guess, _) in &accepted {
            self.put_guess(now, guess, &mut prepared);
        }
        if Rule::Harmless.is_kept() {
            let unlimited = self.put_part(Part::Unlimited);
            self.put_own_statement(unlimited, NO_LIMIT.as_bytes());
            self.put_sync(unlimited);
        }
        let tail = self.put_part(Part::Tail);
        self.put_own_statement(tail, &[b"ROLLBACK TO SAVEPOINT ", savepoint.as_slice()].concat());
        self.put_own_statement(tail, &[b"RELEASE SAVEPOINT ", savepoint.as_slice()].concat());
        for example in prepared {
            let name = self.private_name(Some(example));
            self.put_close(tail, StatementOrPortal::Statement(&name));
        }
        self.put_sync(tail);
        self.loops.in_flight.sent += 1;
        self.loops.contact_at = now;
    }

    /// Lets the server see that the program is there (rule P18).
    pub(super) fn send_sign(&mut self, now: Moment) {
        let sign = self.put_part(Part::Sign);
        self.put_sync(sign);
        self.loops.contact_at = now;
    }

    /// Makes room for the answer of a guess; its key, if there was room.
    fn expect_guess(&mut self, now: Moment, guess: &Guess<'_>) -> Option<Vec<u8>> {
        let key = self.loops.examples.get(guess.template).and_then(|example| example.way.key_of(guess));
        let may_run = self.may_guess(now, guess);
        let loops = &mut self.loops;
        let is_kept = key
            .as_ref()
            .filter(|_| may_run)
            .is_some_and(|key| loops.buffer.expect(since_start(now), guess.ticket, key, Origin::Guess));
        if !is_kept {
            loops.predictor.failed(guess.ticket);
        }
        key.filter(|_| is_kept)
    }

    /// The messages of this part follow; who takes their replies.
    fn put_part(&mut self, part: Part) -> Taker {
        Taker::Service(Service::Flights, self.loops.in_flight.parts.put(part))
    }

    /// A name of the session's own; with a number for the statement of an example.
    fn private_name(&self, example: Option<u32>) -> Vec<u8> {
        let mut name = self.own_names.name().to_vec();
        if let Some(example) = example {
            name.extend_from_slice(format!("_{example}").as_bytes());
        }
        name
    }

    /// Whether the remedy of this guess is on, and may make it.
    fn may_guess(&mut self, now: Moment, guess: &Guess<'_>) -> bool {
        let example = self.loops.examples.get(guess.template);
        match example.map(|example| matches!(example.way, Way::Object { .. })) {
            Some(true) => {
                let oid = object_of(guess);
                self.may_remedy(Remedy::Lobs) && oid.is_some_and(|oid| self.may_open_ahead(now, oid))
            }
            _ => self.may_remedy(Remedy::Loops),
        }
    }

    fn put_steps(&mut self, steps: Vec<Step>) {
        for step in steps {
            let call = self.put_part(Part::Call(step));
            self.put_call_ahead(call, step);
        }
    }

    fn put_guess(&mut self, now: Moment, guess: &Guess<'_>, prepared: &mut Vec<u32>) {
        let way = self.loops.examples.get(guess.template).map(|example| example.way.clone());
        if let Some(Way::Object { mode }) = way {
            return self.put_steps(self.chain_of(now, guess, mode));
        }
        let flight = self.loops.in_flight.sent + 1;
        let part = self.put_part(Part::Guess { ticket: guess.ticket, example: guess.template, flight });
        let Some(way) = way else { return self.put_sync(part) };
        let portal = self.private_name(None);
        match &way {
            Way::Object { .. } => {}
            Way::Simple { .. } => {
                let text = way.text_of(guess).unwrap_or_default();
                let statement = portal.clone();
                self.put_parse(part, &statement, &text, &[]);
                self.put_run(part, &portal, &statement, (&[], &[0, 0], &[]), true);
                self.put_close(part, StatementOrPortal::Statement(&statement));
            }
            Way::Extended { text, types, parameter_codes, result_codes, describes, prepared: own } => {
                let statement = match own {
                    Some(own) => own.name.to_vec(),
                    None => self.private_name(Some(guess.template)),
                };
                if own.is_none() && !prepared.contains(&guess.template) {
                    prepared.push(guess.template);
                    let types: Vec<u8> = types.iter().flat_map(|oid| oid.to_be_bytes()).collect();
                    self.put_parse(part, &statement, &text.bytes, &types);
                }
                let values = encoded_values(guess);
                let given = (parameter_codes.as_slice(), values.as_slice(), result_codes.as_slice());
                self.put_run(part, &portal, &statement, given, *describes);
            }
        }
        self.put_sync(part);
    }

    /// Prepares a statement. An error may have left one of this name, and a Parse that fails for that would end the
    /// program's transaction.
    fn put_parse(&mut self, part: Taker, statement: &[u8], text: &[u8], types: &[u8]) {
        self.put_close(part, StatementOrPortal::Statement(statement));
        Parse::typed(statement, text, types).encode(self.core.server_outbox());
        self.core.owe_own(Due::own(part, Expect::Parse));
    }

    /// Binds, describes, executes and closes; `given` are format codes, values and the result's format codes.
    fn put_run(
        &mut self,
        part: Taker,
        portal: &[u8],
        statement: &[u8],
        given: (&[u8], &[u8], &[u8]),
        describes: bool,
    ) {
        let (parameter_codes, values, result_codes) = given;
        self.put_close(part, StatementOrPortal::Portal(portal));
        let out = self.core.server_outbox();
        Bind {
            portal,
            statement,
            parameter_formats: Formats::of_codes(parameter_codes),
            parameters: Values::decode(values).unwrap_or_default(),
            result_formats: Formats::of_codes(result_codes),
        }
        .encode(out);
        self.core.owe_own(Due::own(part, Expect::Bind));
        if describes {
            StatementOrPortal::Portal(portal).encode(frontend::DESCRIBE, self.core.server_outbox());
            self.core.owe_own(Due::own(part, Expect::DescribePortal));
        }
        Execute { portal, row_limit: None }.encode(self.core.server_outbox());
        self.core.owe_own(Due::own(part, Expect::Execute));
        self.put_close(part, StatementOrPortal::Portal(portal));
    }

    fn put_close(&mut self, part: Taker, object: StatementOrPortal<'_>) {
        object.encode(frontend::CLOSE, self.core.server_outbox());
        self.core.owe_own(Due::own(part, Expect::Close));
    }

    fn put_sync(&mut self, part: Taker) {
        frame(self.core.server_outbox(), frontend::SYNC, |_| ());
        self.core.owe_own(Due::own(part, Expect::Sync));
    }

    /// The server answers a flight.
    pub(crate) fn flight_reply(
        &mut self,
        now: Moment,
        slot: Slot,
        tag: u8,
        reply: Reply,
        message: &[u8],
        is_whole: bool,
    ) -> Result<Verdict, SessionError> {
        let body = &message[HEADER_BYTES..];
        if let Reply::Failed(_) = reply {
            self.loops.in_flight.spoil();
        }
        match self.loops.in_flight.parts.get(slot).copied() {
            Some(Part::Head) if self.loops.in_flight.status_before == 0 => {
                self.loops.in_flight.status_before = self.core.server_status();
            }
            Some(Part::Guess { ticket, example, .. }) => {
                self.guess_reply(ticket, example, tag, message, is_whole)
            }
            Some(Part::Call(step)) if !self.ahead_reply(now, step, tag, message, is_whole)? => {
                self.loops.in_flight.spoil();
            }
            _ => {}
        }
        if tag == backend::READY_FOR_QUERY {
            self.part_ends(now, slot, body)?;
        }
        Ok(Verdict::Replace(message.len()))
    }

    fn guess_reply(&mut self, ticket: Ticket, example: u32, tag: u8, message: &[u8], is_whole: bool) {
        let loops = &mut self.loops;
        let is_kept = match tag {
            backend::ROW_DESCRIPTION | backend::NO_DATA | backend::DATA_ROW | backend::COMMAND_COMPLETE => {
                is_whole && loops.buffer.append(ticket, message)
            }
            backend::PARSE_COMPLETE
            | backend::BIND_COMPLETE
            | backend::CLOSE_COMPLETE
            | backend::READY_FOR_QUERY => true,
            _ => false,
        };
        if !is_kept {
            return loops.in_flight.spoil();
        }
        loops.in_flight.bytes += message.len();
        loops.in_flight.rows += u64::from(tag == backend::DATA_ROW);
        if tag == backend::DATA_ROW {
            feed_row(&mut loops.predictor, loops.examples.get(example), ticket, &message[HEADER_BYTES..]);
        }
    }

    /// A ReadyForQuery ends a part of a flight.
    fn part_ends(&mut self, now: Moment, slot: Slot, status: &[u8]) -> Result<(), SessionError> {
        let in_flight = &mut self.loops.in_flight;
        let is_spoilt = std::mem::take(&mut in_flight.is_spoilt);
        let execution = Duration::from_nanos(now.since(in_flight.part_ended_at));
        in_flight.part_ended_at = now;
        let (bytes, rows) = (std::mem::take(&mut in_flight.bytes), std::mem::take(&mut in_flight.rows));
        match in_flight.parts.take(slot) {
            Some(Part::Guess { ticket, .. }) if is_spoilt => {
                self.loops.buffer.fail(ticket);
                self.loops.predictor.failed(ticket);
            }
            Some(Part::Guess { ticket, .. }) => {
                self.loops.buffer.complete(ticket);
                let outcome = Outcome { execution: Some(execution), bytes, rows };
                self.loops.predictor.result_end(ticket, outcome);
            }
            Some(Part::Call(step)) => self.ahead_ends(step, is_spoilt, execution),
            Some(Part::Tail) => {
                let before = std::mem::take(&mut in_flight.status_before);
                if status != [before] && Rule::ShieldEnds.is_kept() {
                    let message = "onetrip could not take back what it had read ahead in this transaction";
                    let hint = "Connect again; leave the remedy out by --remedies exact,-loops.";
                    self.refuse("08006", message, Some(hint));
                    return Err(SessionError::ShieldBroken);
                }
                self.plan_flight(now);
            }
            Some(Part::Head | Part::Unlimited | Part::Sign) | None => {}
        }
        Ok(())
    }
}

/// The columns that a RowDescription tells.
pub(super) fn columns_of(body: &[u8]) -> Option<Vec<Column>> {
    let description = RowDescription::decode(body).ok()?;
    let columns = description.columns();
    Some(columns.map(|column| Column { oid: column.type_oid, format: format_of(column.format) }).collect())
}

pub(super) fn format_of(format: Format) -> ColumnFormat {
    match format {
        Format::Text => ColumnFormat::Text,
        Format::Binary => ColumnFormat::Binary,
    }
}
