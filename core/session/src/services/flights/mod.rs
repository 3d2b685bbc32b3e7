//! The service `flights`: what a program will ask for next is run ahead, and its answers wait until it asks.
//!
//! ```text
//!   loops, lobs     watch: this was asked for  ----------->  Predictor  ---- guesses ----+
//!   (who propose)   ask: is it there?          ----------->  Buffer  <---- answers ---+  |
//!        ^                                                                            |  v
//!        +---- key_of, put_guess, put_calls, call_reply ------------------------- one shield per write (shield)
//! ```
//!
//! What comes next is guessed by `onetrip-loops`, whoever has asked; what a guess is on the wire, and whether it may be run,
//! its remedy says (`Proposes`). All that leaves with one write shares one shield. Whether an answer may be served is
//! decided by the bytes of the request alone (`Buffer::ask`).

mod examples;
mod shield;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use onetrip_ledger::{Moment, Remedy};
use onetrip_loops::{
    Answer, Arrival, Asking, Buffer, Column, Edges, Flight, Format as ColumnFormat, Guess, Origin, Outcome,
    Predictor, Ticket,
};
use onetrip_wire::pg::{Format, RowDescription, backend};

use self::examples::Examples;
pub(crate) use self::examples::{Example, Request};
use self::shield::InFlight;
pub(crate) use self::shield::{Ended, name_of_example, put_parse, put_sync};
use super::Said;
use crate::config::SessionConfig;
use crate::events::Event;
use crate::facts::Facts;
use crate::reply_queue::{Due, Expect};
use crate::rules::Rule;
use crate::session::core::Core;

/// The server is shown a sign of the program after so long without one, if the program asked for something.
const SIGN_AFTER: Duration = Duration::from_millis(10);

/// What one session runs ahead.
#[derive(Debug, Default)]
pub(crate) struct Flights {
    predictor: Predictor,
    buffer: Buffer,
    examples: Examples,
    /// Guesses that are to leave when the unit under way is complete.
    planned: Flight,
    in_flight: InFlight,
    /// The program's statement that is being run, and where it is booked.
    running: Option<Running>,
    /// When the unit in front came, if it had to wait, and for which flight.
    held: Option<(Moment, u64)>,
    /// The last flight that a unit waited for.
    waited_for: u64,
    /// When the server last heard from the session.
    contact_at: Moment,
    /// Hits up to which what was learnt has been shared.
    hits_shared: u64,
    /// Epoch of the catalogue in which a unit was last asked for.
    epoch: u64,
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

/// A panic elsewhere leaves what was learnt whole.
fn lock(edges: &Mutex<Edges>) -> MutexGuard<'_, Edges> {
    edges.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The clock of `onetrip-loops`.
pub(crate) fn since_start(now: Moment) -> Duration {
    Duration::from_nanos(now.0)
}

/// Shows a row to the predictor, if that has a use for it.
fn feed_row(predictor: &mut Predictor, example: Option<&Example>, ticket: Ticket, body: &[u8]) {
    if !predictor.wants_rows(ticket) {
        return;
    }
    let columns = example.map_or(&[][..], |example| &example.columns);
    predictor.result_row_as_sent(ticket, columns, body);
}

/// The columns that a RowDescription tells.
fn columns_of(body: &[u8]) -> Option<Vec<Column>> {
    let description = RowDescription::decode(body).ok()?;
    let columns = description.columns();
    Some(columns.map(|column| Column { oid: column.type_oid, format: format_of(column.format) }).collect())
}

pub(crate) fn format_of(format: Format) -> ColumnFormat {
    match format {
        Format::Text => ColumnFormat::Text,
        Format::Binary => ColumnFormat::Binary,
    }
}

/// What is asked for: kinds of requests, and what waits for them.
impl Flights {
    /// The example of this name.
    pub(crate) fn find_example(&self, name: &[u8]) -> Option<u32> {
        self.examples.find(name)
    }

    /// One more of `by`'s, if there is room; those of the same `kin` have their values in common.
    pub(crate) fn add_example(&mut self, by: Remedy, name: &[u8], kin: &[u8], template: u32) -> Option<u32> {
        self.examples.add(by, name, kin, template)
    }

    /// The example of this number.
    pub(crate) fn example(&self, example: u32) -> Option<&Example> {
        self.examples.get(example)
    }

    /// The same, to be changed.
    pub(crate) fn example_mut(&mut self, example: u32) -> Option<&mut Example> {
        self.examples.get_mut(example)
    }

    /// Who asks the server for what this guess stands for.
    pub(crate) fn proposer_of(&self, guess: &Guess<'_>) -> Option<Remedy> {
        self.examples.get(guess.template).map(|example| example.by)
    }

    /// Whether an answer waits for this request, or is under way; and whether it is that of a request of the program's own,
    /// made before.
    pub(crate) fn ask(&mut self, request: &Request<'_>, asking: &Asking) -> (Answer<'_>, bool) {
        let answer = self.buffer.ask(&request.key, asking);
        let is_repeat = matches!(answer, Answer::Serve(ticket, _) if self.predictor.is_repeat(ticket));
        (answer, is_repeat)
    }

    /// The client waits for an answer that is under way.
    pub(crate) fn hold(&mut self, now: Moment, ticket: Ticket) {
        let flight = self.in_flight.flight_of(ticket);
        self.held.get_or_insert((now, flight));
    }

    /// The client does not wait for a guess.
    pub(crate) fn forget_hold(&mut self) {
        self.held = None;
    }

    /// The client has what it waited for. Returns when its unit came, and whether that was a trip: units that wait for one
    /// flight wait for one.
    pub(crate) fn end_hold(&mut self, now: Moment) -> (Moment, bool) {
        let held = self.held.take();
        let is_trip = held.is_some_and(|(_, flight)| flight > self.waited_for);
        if is_trip {
            self.waited_for = held.map_or(0, |(_, flight)| flight);
        }
        (held.map_or(now, |(arrived_at, _)| arrived_at), is_trip)
    }

    /// The program was given this answer.
    pub(crate) fn served(&mut self, now: Moment, ticket: Ticket) {
        self.predictor.served(since_start(now), ticket);
    }

    /// Whether guesses are to leave when the unit under way is complete.
    pub(crate) fn has_planned(&self) -> bool {
        !self.planned.is_empty()
    }

    /// Asks the predictor for more.
    pub(crate) fn plan(&mut self) {
        self.predictor.plan(&mut self.planned);
    }

    /// What is to leave now.
    pub(crate) fn take_planned(&mut self) -> Flight {
        std::mem::take(&mut self.planned)
    }

    /// What was to leave has left: its room is for the next.
    pub(crate) fn planned_left(&mut self, mut planned: Flight) {
        planned.clear();
        self.planned = planned;
    }

    /// Makes room for the answer of a guess that stands for this request, if it may be run. Returns whether there is some.
    pub(crate) fn expect(&mut self, now: Moment, guess: &Guess<'_>, key: Option<&[u8]>) -> bool {
        let is_kept =
            key.is_some_and(|key| self.buffer.expect(since_start(now), guess.ticket, key, Origin::Guess));
        if !is_kept {
            self.predictor.failed(guess.ticket);
        }
        is_kept
    }

    /// More of a guess's answer. Returns whether there was room.
    pub(crate) fn append(&mut self, ticket: Ticket, reply: &[u8]) -> bool {
        self.buffer.append(ticket, reply)
    }

    /// The answer of a guess is whole, or `is_spoilt`.
    pub(crate) fn guess_ends(&mut self, ticket: Ticket, is_spoilt: bool, outcome: Outcome) {
        if is_spoilt {
            self.buffer.fail(ticket);
            self.predictor.failed(ticket);
        } else {
            self.buffer.complete(ticket);
            self.predictor.result_end(ticket, outcome);
        }
    }
}

/// What the program runs itself.
impl Flights {
    /// A request goes to the server as the next unit: one that `is_pure`, known to only read, may be one of a loop, the rows
    /// of others may be what a loop takes its values from.
    pub(crate) fn watch(
        &mut self,
        core: &Core,
        now: Moment,
        request: &Request<'_>,
        is_pure: bool,
        plans: bool,
    ) {
        let unit = core.units().oldest(); // the next one: nothing is under way
        let Some(example) = self.examples.get(request.example) else { return };
        let arrival = Arrival { template: example.guessed, values: &request.values };
        let ticket = if is_pure {
            let ticket = self.predictor.statement(since_start(now), &arrival);
            self.buffer.expect(since_start(now), ticket, &request.key, Origin::Program);
            ticket
        } else {
            self.predictor.source(&arrival)
        };
        if plans {
            self.predictor.plan(&mut self.planned);
        }
        self.running = Some(Running {
            unit,
            ticket,
            example: request.example,
            sent_at: now,
            rows: 0,
            bytes: 0,
            is_spoilt: request.begins, // the answer of BEGIN comes with it
        });
    }

    /// The server answers the program's statement that is watched. Returns whether that was the end of it.
    pub(crate) fn watch_reply(&mut self, distance: Duration, due: Due, said: &Said<'_>) -> bool {
        let Self { predictor, buffer, examples, running: slot, .. } = self;
        let Some(running) = slot.as_mut().filter(|running| running.unit == due.unit) else { return false };
        let (message, body, is_whole) = (said.message, said.body(), said.is_whole);
        running.bytes += message.len();
        let ticket = running.ticket;
        match said.tag {
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
                let waited = Duration::from_nanos(said.now.since(running.sent_at));
                let execution = waited.saturating_sub(distance);
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
                return true;
            }
            backend::PARSE_COMPLETE | backend::BIND_COMPLETE => {}
            _ => running.is_spoilt = true,
        }
        false
    }

    /// The program was answered from memory: a server that has not heard of it for long gets a sign (rule P18).
    pub(crate) fn show_presence(&mut self, core: &mut Core, now: Moment) {
        let silence = now.since(self.contact_at);
        if silence >= SIGN_AFTER.as_nanos() as u64 && Rule::Sign.is_kept() {
            self.put_sign(core, now);
        }
    }

    /// Something was sent to the server.
    pub(crate) fn note_contact(&mut self, now: Moment) {
        self.contact_at = now;
    }
}

/// What happens.
impl Flights {
    #[inline(always)] // see `tell`
    pub(crate) fn on_event(&mut self, config: &SessionConfig, facts: &Facts, event: &Event<'_>) {
        match *event {
            Event::PathMeasured(distance) => self.predictor.set_round_trip(distance),
            Event::ParameterReported { .. }
            | Event::UnknownReported
            | Event::SavepointSent
            | Event::LevelChanges { .. }
            | Event::StateChanges { .. }
            | Event::ReadSent { is_proven: false }
            | Event::Disproved => self.flush(),
            Event::TransactionBegun { .. } => {
                // What other sessions learnt is taken over.
                let is_on = |remedy| config.remedies.has(remedy) && facts.path.is_worth_it();
                if is_on(Remedy::Loops) || is_on(Remedy::Lobs) {
                    self.predictor.absorb(&lock(&config.common.edges));
                }
            }
            Event::EndSent { .. } | Event::TransactionOver => self.transaction_ended(&config.common.edges),
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
            | Event::UnnamedPortalEnds
            | Event::UnnamedPortalMade
            | Event::UnnamedStatementMade { .. }
            | Event::UnnamedStatementGone => {}
        }
    }

    /// Names mean what the catalogue says when a statement is parsed, within a snapshot, too. What was read in another epoch of
    /// it goes, although the statement may be proven anew in this one (P4).
    pub(crate) fn keep_of_epoch(&mut self, epoch: u64) {
        if std::mem::replace(&mut self.epoch, epoch) != epoch {
            self.flush();
        }
    }

    /// Something that is not a proven read goes to the server: nothing that was read before is served behind it (P7).
    fn flush(&mut self) {
        if Rule::Flush.is_kept() {
            self.predictor.flush();
            self.buffer.flush();
        }
        self.planned.clear();
    }

    /// The transaction is over; what was learnt in it is there for others.
    fn transaction_ended(&mut self, edges: &Mutex<Edges>) {
        if self.predictor.counters().hits > self.hits_shared {
            self.hits_shared = self.predictor.counters().hits;
            lock(edges).absorb(self.predictor.edges());
        }
        self.predictor.transaction_ended();
        self.buffer.flush();
        self.planned.clear();
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
