//! What the server answers: rows, ends and errors, each booked on its unit.

use onetrip_ledger::{Moment, Outcome};
use onetrip_wire::mysql::dialogue::{Reply, ReplyKind, Row, Side};
use onetrip_wire::mysql::{BinaryRow, ColumnDefinition, ErrPacket, PrepareOk, Status, TextRow, command};

use super::books::{Books, Capture, Phase, Sent, failure, state_of};
use super::columns::Described;
use super::login::on_wire;
use super::values::{self, Form};
use crate::contract::INSPECT_BYTES_MAX;

/// A server that claims more rows cannot be believed.
const ROWS_MAX: u64 = 1 << 47;

impl Books {
    /// A statement is prepared; definitions of its parameters and columns follow.
    pub(super) fn prepared(&mut self, ok: &PrepareOk) {
        match ok.metadata_follows {
            Some(false) => self.describing.begin(0, 0),
            _ => self.describing.begin(ok.parameters, ok.columns.into()),
        }
    }

    /// A result begins.
    pub(super) fn columns(&mut self, count: u64) {
        let Some(sent) = self.awaited.front().copied() else { return };
        self.describing.begin(0, count);
        // Of a prepared statement, definitions may be left out that have not changed.
        let described = self.described_of(sent);
        self.capture_rows(sent, described);
    }

    pub(super) fn column(&mut self, column: &ColumnDefinition<'_>) {
        if !self.describing.take(column, self.config.keep_values) {
            return;
        }
        let Some(sent) = self.awaited.front().copied() else { return };
        let described = self.describing.described(&mut self.names, &mut self.stream);
        let statement = if sent.code == command::STMT_PREPARE { Some(sent.unit) } else { sent.prepared_by };
        if let Some(unit) = statement {
            let described = described.clone();
            self.statements.change(unit, |prepared| prepared.described = described);
        }
        if sent.code != command::STMT_PREPARE {
            self.capture_rows(sent, described);
        }
    }

    fn described_of(&self, sent: Sent) -> Described {
        let prepared = sent.prepared_by.and_then(|unit| self.statements.get(unit));
        prepared.map(|prepared| prepared.described.clone()).unwrap_or_default()
    }

    /// Starts keeping the rows of a result, if its unit has none yet: only the first is kept.
    fn capture_rows(&mut self, sent: Sent, described: Described) {
        let width = self.names.layout_of(described.layout).map_or(0, |layout| layout.keys.len());
        let mut is_active = false;
        if let Some(statement) = self.statement_mut(sent).filter(|statement| statement.results == 0) {
            is_active = width > 0;
            statement.columns = described.layout;
            statement.key_columns = width as u16;
        }
        self.capture = Capture { unit: sent.unit, described, is_active };
    }

    /// Keeps a row's keys and adds the row to the result's digest.
    pub(super) fn row(&mut self, row: &Row<'_>) {
        let Some(sent) = self.awaited.front().copied() else { return };
        if self.capture.unit != sent.unit {
            // A cursor's rows, whose columns were described when it was opened.
            let described = self.described_of(sent);
            self.capture_rows(sent, described);
        }
        let (Some(number), Some(slot)) = (sent.number, sent.slot) else { return };
        let body = &row.payload[..row.payload.len().min(INSPECT_BYTES_MAX)];
        let is_whole = body.len() as u64 == row.payload_len;
        let Self { units, names, values, capture, scratch, undecoded, .. } = self;
        let Some(mut book) = units.result_mut(number, slot) else { return };
        book.add_to_digest(values, number, (body, is_whole), row.is_binary);
        let Some(layout) =
            names.layout_of(capture.described.layout).filter(|_| capture.is_active && is_whole)
        else {
            return;
        };
        let width = layout.keys.len();
        if !book.has_room_for(width) {
            return;
        }
        let before = book.values.len();
        let mut keys = layout.keys.iter();
        let mut next = keys.next();
        let see = |position: usize, value: Option<&[u8]>| {
            let Some((_, code)) = next.filter(|(key, _)| usize::from(*key) == position) else { return };
            let form = Form::of_code(*code);
            book.values.push(values::column(values, value, form, row.is_binary, scratch));
            next = keys.next();
        };
        let types = &capture.described.types;
        let is_row = match row.is_binary {
            true => BinaryRow::read(body, types, see).is_ok(),
            false => TextRow::read(body, types.len(), see).is_ok(),
        };
        *undecoded += u64::from(!is_row);
        if is_row && next.is_none() {
            book.statement.results += width as u32;
        } else {
            // Not as it was described: nothing to rely on.
            book.values.truncate(before);
            capture.is_active = false;
        }
    }

    pub(super) fn failed(&mut self, error: &ErrPacket<'_>) {
        let Some(sent) = self.awaited.front().copied() else { return };
        self.capture.is_active = false;
        let failure = failure(error.state);
        if let Some(exchange) = sent.number.and_then(|number| self.exchange_mut(number)) {
            exchange.outcome = failure;
        }
        if let Some(statement) = self.statement_mut(sent) {
            statement.outcome = failure;
        }
        if sent.unit == 0 {
            self.refused(state_of(error.state), error.message);
        }
    }

    /// All that the server had to say to a unit has been said.
    pub(super) fn replied(&mut self, now: Moment, reply: &Reply) {
        if let Some(status) = reply.status {
            self.status(status);
        }
        let Some(sent) = self.awaited.pop_front() else { return };
        let has_failed = matches!(reply.kind, ReplyKind::Failed(_));
        match (sent.code, has_failed) {
            _ if sent.unit == 0 && has_failed => self.phase = Phase::Refused,
            _ if sent.unit == 0 => {
                self.phase = Phase::Serving;
                self.stream.entered();
            }
            (command::STMT_PREPARE, true) => self.statements.remove(sent.unit),
            (command::RESET_CONNECTION | command::CHANGE_USER, false) => self.statements.clear(),
            _ => {}
        }
        let Some(number) = sent.number else { return };
        let bytes = self.own(reply.bytes.saturating_sub(sent.bytes_booked));
        self.units.bytes_received(number, bytes as usize, now);
        let rows = reply.rows.saturating_add(reply.affected_rows).min(ROWS_MAX);
        let is_cursor_open = sent.code == command::STMT_FETCH
            && reply.status.is_some_and(|status| !status.has(Status::LAST_ROW_SENT));
        match self.statement_mut(sent) {
            Some(statement) => {
                statement.rows = rows;
                statement.suspended = is_cursor_open && statement.outcome == Outcome::Done;
            }
            None => self.units.cut_ended(number, (!has_failed).then_some(rows)),
        }
        self.answered(now, number);
    }

    /// A payload of replication.
    pub(super) fn streamed(&mut self, now: Moment, side: Side, bytes: u64) {
        let bytes = self.own(on_wire(bytes));
        if side == Side::Client {
            return self.units.bytes_sent(bytes as usize);
        }
        let Some(sent) = self.awaited.front_mut() else { return };
        sent.bytes_booked += bytes;
        if let Some(number) = sent.number {
            self.units.bytes_received(number, bytes as usize, now);
        }
    }
}
