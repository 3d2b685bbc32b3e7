//! Messages of the server: each is booked as the reply that the queue expects, and goes to whoever takes it.

use onetrip_ledger::{Moment, Outcome, Remedy, Statement, TransactionStatus};
use onetrip_wire::pg::TransactionStatus as WireStatus;
use onetrip_wire::pg::{
    CommandComplete, ErrorResponse, FrameHeader, HEADER_BYTES, ParameterDescription, backend,
};

use super::Session;
use super::core::{Capture, Core};
use crate::contract::{INSPECT_BYTES_MAX, LENGTH_MAX, SessionError, Verdict};
use crate::events::Event;
use crate::reply_queue::{Due, Expect, NO_UNIT, Reply};
use crate::rows::Rows;

/// A server that claims more rows cannot be believed.
const ROWS_MAX: u64 = 1 << 47;

impl Session {
    /// A message of the server to a client that has been let in: booked, and forwarded as it came unless it answers the
    /// session's own messages.
    pub(crate) fn handle_reply(&mut self, now: Moment, input: &[u8]) -> Result<Verdict, SessionError> {
        if self.core.is_passive {
            return self.pass_all(
                input,
                |session, input| session.watch_reply(now, input),
                Self::goes_on_down,
            );
        }
        if self.is_delivering() {
            return Ok(Verdict::Hold); // amid a row, maybe
        }
        self.one_reply(now, input)
    }

    /// The same where all remedies are off.
    fn watch_reply(&mut self, now: Moment, input: &[u8]) -> Result<Verdict, SessionError> {
        match self.whole_rows(now, input) {
            0 => self.one_reply(now, input),
            rows => Ok(Verdict::Forward(rows)),
        }
    }

    /// Whether the next message may pass at once. Whether an error does, the driver is asked.
    fn goes_on_down(&self, rest: &[u8]) -> bool {
        self.core.server_passing == 0
            && rest.first() != Some(&backend::ERROR_RESPONSE)
            && matches!(FrameHeader::peek(rest, LENGTH_MAX), Some(Ok(_)))
    }

    #[inline]
    fn one_reply(&mut self, now: Moment, input: &[u8]) -> Result<Verdict, SessionError> {
        let header = match FrameHeader::peek(input, LENGTH_MAX) {
            None => return Ok(Verdict::Wait),
            Some(Err(error)) => return Err(self.server_broke(error)),
            Some(Ok(header)) => header,
        };
        let length = header.frame_len();
        if input.len() < length.min(INSPECT_BYTES_MAX)
            && self.is_inspected_reply(header.tag)
            && !self.core.is_cut
        {
            return Ok(Verdict::Wait);
        }
        let available = input.len().min(length);
        let body = &input[HEADER_BYTES..available.min(INSPECT_BYTES_MAX)];
        let is_whole = length <= INSPECT_BYTES_MAX && !(self.core.is_cut && available < length);
        let reply = self.book_reply(now, header.tag, body, is_whole, available);
        let verdict = self.pass_reply(now, header.tag, &input[..available], length, reply)?;
        self.core.server_passing = length - available;
        self.core.server_dropping =
            matches!(verdict, Verdict::Replace(_)) && !self.acting.cursors.passes_rest();
        if header.tag == backend::READY_FOR_QUERY {
            self.core.server_status = body.first().copied().unwrap_or_default();
            self.got_ready(now);
        }
        Ok(verdict)
    }

    /// The server is ready: there is time for questions.
    pub(crate) fn got_ready(&mut self, now: Moment) {
        if self.core.queue.is_empty() {
            // A Query behind an open group has run: no error has the server skip to a Sync.
            self.core.in_group = false;
        }
        let is_quiet = !self.core.is_passive
            && self.core.queue.is_empty()
            && self.core.units.len() == 0
            && !self.core.in_group
            && !self.core.is_ending;
        if is_quiet && self.core.may_send_own() {
            self.inquire(now);
        }
    }

    fn book_reply(&mut self, now: Moment, tag: u8, body: &[u8], is_whole: bool, bytes: usize) -> Reply {
        let mut skipped = std::mem::take(&mut self.core.skipped);
        let reply = self.core.queue.received(tag, |due| skipped.push(due));
        if !self.core.is_passive {
            self.see_reply(now, tag, reply, is_whole.then_some(body), &skipped);
            self.hand_back(&skipped);
        }
        if reply.is_own() {
            self.core.last_reply_unit = NO_UNIT;
            skipped.retain(|due| !due.is_own() || due.taker.is(Remedy::Cursors));
        }
        match reply {
            _ if reply.is_own() => self.book_read(now, tag, body, reply, bytes),
            Reply::Part(due) | Reply::Last(due) | Reply::Failed(due) | Reply::CopyIn(due) => {
                self.core.last_reply_unit = due.unit;
                self.core.units.bytes_received(due.unit, bytes, now);
            }
            Reply::Async | Reply::Unasked => self.core.last_reply_unit = NO_UNIT,
        }
        match reply {
            _ if reply.is_own() => {}
            Reply::Part(due) => {
                if tag == backend::DATA_ROW && !self.core.is_passive {
                    self.acting.cursors.native_row(due.unit, bytes);
                }
                self.book_part(due, tag, body, is_whole);
            }
            Reply::Last(due) => {
                self.book_part(due, tag, body, is_whole);
                self.core.units.settled(due.unit);
            }
            Reply::Failed(due) => self.book_failure(now, due, body),
            Reply::CopyIn(due) => self.book_copy_in(due),
            Reply::Async => self.book_async(tag, body),
            Reply::Unasked => {
                self.core.is_ending |= tag == backend::ERROR_RESPONSE;
                self.core.unasked_replies += 1;
            }
        }
        for due in skipped.drain(..) {
            // Inside COPY data a Sync does not count; after an error, what was skipped never ran.
            if matches!(reply, Reply::Failed(_)) {
                self.mark_skipped(due);
            }
            self.core.units.settled(due.unit);
        }
        self.core.skipped = skipped;
        self.book_answered(now);
        reply
    }

    /// A reply that a remedy makes the client's.
    fn book_read(&mut self, now: Moment, tag: u8, body: &[u8], reply: Reply, bytes: usize) {
        let Some(due) = reply.due().filter(|due| due.taker.is(Remedy::Cursors) && due.unit != NO_UNIT) else {
            return;
        };
        self.core.last_reply_unit = due.unit;
        self.core.units.bytes_received(due.unit, bytes, now);
        match reply {
            Reply::Failed(_) => self.book_failure(now, due, body),
            Reply::Last(_) => {
                if tag == backend::READY_FOR_QUERY {
                    self.book_part(due, tag, body, true);
                }
                self.core.units.settled(due.unit);
            }
            _ => {}
        }
    }

    pub(crate) fn book_part(&mut self, due: Due, tag: u8, body: &[u8], is_whole: bool) {
        match tag {
            backend::DATA_ROW => self.row(due, body, is_whole),
            backend::COMMAND_COMPLETE => self.command_complete(due, body),
            backend::ROW_DESCRIPTION if is_whole => self.row_description(due, body),
            backend::FUNCTION_CALL_RESPONSE if is_whole => self.function_result(due, body),
            backend::PARAMETER_DESCRIPTION => self.parameter_description(due, body),
            backend::PORTAL_SUSPENDED => {
                if !self.core.is_passive {
                    self.acting.cursors.native_piece_ends(due, false, 0);
                }
                if let Some(statement) = due.statement.and_then(|slot| self.statement_mut(due.unit, slot)) {
                    statement.suspended = true;
                }
            }
            backend::READY_FOR_QUERY => self.book_ready(due, body),
            _ => {}
        }
    }

    fn book_ready(&mut self, due: Due, body: &[u8]) {
        match WireStatus::decode(body) {
            Ok(WireStatus::Idle) => {
                self.unit_ready(due.unit, TransactionStatus::Idle);
                self.tell(&Event::TransactionOver);
                if self.core.queue.is_empty() {
                    self.core.portals.clear(); // they end with their transaction
                }
            }
            Ok(WireStatus::Active) => self.unit_ready(due.unit, TransactionStatus::Active),
            Ok(WireStatus::Failed) => self.unit_ready(due.unit, TransactionStatus::Failed),
            Err(_) => self.core.undecoded += 1,
        }
    }

    fn unit_ready(&mut self, unit: u64, status: TransactionStatus) {
        self.core.status = status;
        self.tell(&Event::UnitReady { unit, status });
    }

    fn row_description(&mut self, due: Due, body: &[u8]) {
        let layout = self.core.names.layout(body, &mut self.core.stream);
        if !self.core.is_passive {
            self.acting.cursors.native_piece_described(due, body);
        }
        if due.expect == Expect::Query {
            self.capture_rows(due, layout);
        } else {
            if let Some(template) = self.core.template_of(due) {
                if !self.core.learned.describe(template, layout, body) {
                    self.core.names.leave_out_results();
                }
            }
            let serial =
                due.statement.and_then(|slot| self.core.units.run_mut(due.unit, slot)).map(|run| run.serial);
            if self.config.remedies.has(Remedy::Cursors) {
                self.acting.cursors.statement_described(serial.unwrap_or(0), body);
            }
        }
    }

    fn parameter_description(&mut self, due: Due, body: &[u8]) {
        let Ok(description) = ParameterDescription::decode(body) else {
            self.core.undecoded += 1;
            return;
        };
        if let Some(template) = self.core.template_of(due) {
            self.core.learned.set_types(template, description.oids());
        }
    }

    /// Keeps a row's keys and adds the row to the result's digest.
    fn row(&mut self, due: Due, body: &[u8], is_whole: bool) {
        let Some(slot) = due.statement else { return };
        self.row_comes(due, slot);
        let is_captured = (self.core.capture.unit, self.core.capture.statement) == (due.unit, slot);
        if is_whole && is_captured && self.may_remedy(Remedy::Lobs) {
            let Self { core, facts, acting, .. } = self;
            acting.lobs.see_objects((core, facts), (due, slot), core.capture.layout, body);
        }
        if let Some(mut rows) = self.rows(due, slot) {
            rows.add(body, is_whole);
        }
    }

    /// Where the next row of this result goes, and those that follow it: see [`Rows::add`].
    pub(crate) fn next_rows(&mut self, due: Due) -> Option<Rows<'_>> {
        let slot = due.statement?;
        self.row_comes(due, slot);
        self.rows(due, slot)
    }

    /// A row of this result is next: its keys are kept if its columns are known.
    fn row_comes(&mut self, due: Due, slot: u16) {
        let is_new = !self.core.capture.active
            || self.core.capture.unit != due.unit
            || self.core.capture.statement != slot;
        if is_new && due.expect == Expect::Execute {
            let template = self.core.template_of(due);
            let learned = template.and_then(|template| self.core.learned.get(template));
            let layout = learned.map_or(0, |learned| learned.layout);
            self.capture_rows(due, layout);
        } else if is_new {
            self.core.capture.active = false; // a row that was not described
        }
    }

    fn rows(&mut self, due: Due, slot: u16) -> Option<Rows<'_>> {
        let Core { units, names, values, capture, undecoded, .. } = &mut self.core;
        Some(Rows {
            unit: due.unit,
            are_counted: due.expect == Expect::Execute,
            book: units.result_mut(due.unit, slot)?,
            keys: names.layout_of(capture.layout).map_or(&[], |layout| &layout.keys),
            keeps_keys: &mut capture.active,
            values,
            undecoded,
        })
    }

    fn command_complete(&mut self, due: Due, body: &[u8]) {
        self.core.capture.active = false;
        let Ok(complete) = CommandComplete::decode(body) else {
            self.core.undecoded += 1;
            return;
        };
        if matches!(complete.tag, b"DISCARD ALL" | b"DEALLOCATE ALL" | b"DEALLOCATE") {
            self.deallocated(due.unit, complete.tag);
        }
        if !self.core.is_passive {
            self.acting.lobs.statement_ran(due.unit, due.statement, complete.tag);
            self.acting.cursors.native_piece_ends(due, true, complete.rows().unwrap_or(0));
        }
        self.raised.statement_succeeded(&mut self.core, due);
        let rows = complete.rows().filter(|rows| *rows <= ROWS_MAX).unwrap_or(0);
        let Some(statement) = due.statement.and_then(|slot| self.statement_mut(due.unit, slot)) else {
            return self.core.units.cut_ended(due.unit, Some(rows));
        };
        match due.expect {
            Expect::Query => statement.rows = (statement.rows + rows).min(ROWS_MAX),
            // Of a result fetched in pieces the tag counts the last piece, and so do the rows seen.
            _ => statement.rows = statement.rows.max(rows),
        }
    }

    pub(crate) fn book_failure(&mut self, now: Moment, due: Due, body: &[u8]) {
        self.core.capture.active = false;
        if !self.config.remedies.is_none() {
            if due.expect == Expect::Parse {
                self.core.prepared.for_each(|prepared| prepared.parse_fails_in(due.unit));
            }
            self.core.prepared.for_each(|prepared| prepared.fails_in(due.unit));
        }
        self.tell(&Event::UnitFailed { unit: due.unit });
        let failure = failure(body);
        if let Outcome::Failed(sqlstate) = failure {
            let Self { core, facts, config, raised, .. } = self;
            raised.statement_failed((core, facts), config, due, &sqlstate);
        }
        if failure == Outcome::Failed(*b"0A000") {
            self.forget_statements(now);
        }
        if due.statement.is_none() && due.expect != Expect::Sync {
            self.core.units.cut_ended(due.unit, None);
        }
        if let Some(exchange) = self.core.units.exchange_mut(due.unit) {
            if exchange.outcome == Outcome::Done {
                exchange.outcome = failure;
            }
            if let Some(statement) =
                due.statement.and_then(|slot| exchange.statements.get_mut(usize::from(slot)))
            {
                statement.outcome = failure;
            }
        }
        if due.expect == Expect::Query {
            // A COPY that failed has no use for the rest of its data, whenever the client learns of it.
            self.core.units.end(due.unit);
        }
        if !matches!(due.expect, Expect::Query | Expect::Sync | Expect::FunctionCall) {
            self.core.units.settled(due.unit);
        }
    }

    /// The server skips a message after an error: what it is about does not run.
    pub(crate) fn mark_skipped(&mut self, due: Due) {
        let Some(exchange) = self.core.units.exchange_mut(due.unit) else { return };
        if exchange.outcome == Outcome::Done {
            exchange.outcome = Outcome::Skipped;
        }
        let statement = due.statement.and_then(|slot| exchange.statements.get_mut(usize::from(slot)));
        if let Some(statement) = statement.filter(|statement| statement.outcome == Outcome::Done) {
            statement.outcome = Outcome::Skipped;
        }
    }

    /// The server waits for COPY data: the unit that asked for it is answered, what the client sends now is the next.
    fn book_copy_in(&mut self, due: Due) {
        if !self.core.queue.is_copying_in() {
            return; // the data was sent ahead
        }
        let template =
            due.statement.and_then(|slot| self.statement_mut(due.unit, slot)).map(|asking| asking.template);
        let Some(unit) = self.core.units.expect_copy(due.unit) else { return };
        self.core.units.settled(due.unit);
        // What the COPY comes to is booked where its data is: rows, an error, the statement that the trip was for.
        let statement = template.map(|template| Statement { template, ..Statement::default() });
        let slot = statement.and_then(|statement| self.core.units.add_statement(unit, statement));
        self.core.queue.move_front(unit, slot);
    }

    fn book_async(&mut self, tag: u8, body: &[u8]) {
        if tag == backend::PARAMETER_STATUS {
            self.parameter_changed(body);
        }
    }

    /// Starts keeping the rows of a result, if the exchange has no later one yet: results are kept in order.
    fn capture_rows(&mut self, due: Due, layout: u32) {
        let Some(slot) = due.statement else { return };
        let width = self.core.names.layout_of(layout).map_or(0, |layout| layout.keys.len());
        let mut active = width > 0;
        if let Some(exchange) = self.core.units.exchange_mut(due.unit) {
            active &= exchange.statements.iter().skip(usize::from(slot) + 1).all(|later| later.results == 0);
            if let Some(statement) = exchange.statements.get_mut(usize::from(slot)) {
                // A second result of one text has other columns: only the first is kept.
                active &= statement.results == 0;
                if active {
                    statement.columns = layout;
                    statement.key_columns = width as u16;
                }
            }
        }
        self.core.capture = Capture { unit: due.unit, statement: slot, layout, active };
    }

    fn is_inspected_reply(&self, tag: u8) -> bool {
        tag != backend::COPY_DATA
    }
}

/// What an ErrorResponse makes of a statement.
pub(crate) fn failure(body: &[u8]) -> Outcome {
    let sqlstate = ErrorResponse::decode(body).ok().and_then(|error| error.sqlstate());
    Outcome::Failed(sqlstate.unwrap_or(*b"?????"))
}
