//! What the server answers.

use super::awaited::{Awaited, Expect, Form};
use super::event::{Event, LostReason, ReplyKind, Row, Side};
use super::talk::{EOF_BYTES, Phase, Prepared, Talk, check_sequence, whole};
use crate::mysql::{
    AuthMoreData, AuthSwitch, CachingSha2, Capabilities, EofPacket, ErrPacket, HEADER_BYTES, OkPacket,
    PAYLOAD_MAX, PacketHeader, Payload, PrepareOk, Progress, Status, TextCommand, command, server,
};

/// Payloads that begin like the end of rows and are not shorter than this are rows.
const END_BYTES_MAX: u64 = PAYLOAD_MAX as u64;

/// What the answer to a unit has come to with a payload.
enum Next {
    Goes(Expect),
    Ends,
}

impl Talk {
    pub(super) fn answer(
        &mut self,
        payload: Payload<'_>,
        on: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), LostReason> {
        let Some(mut awaited) = self.awaited.pop_front() else { return self.unasked(payload, on) };
        awaited.reply.bytes += payload.bytes_on_wire;
        let is_error = payload.head.first() == Some(&server::ERR);
        if self.is_numbered && !is_error && awaited.expect != Expect::Stream {
            check_sequence(&mut awaited.sequence, payload)?;
        } else {
            awaited.sequence = payload.sequence_last.wrapping_add(1);
        }
        let next = if is_error {
            self.error(&mut awaited, payload, on)
        } else {
            self.good(&mut awaited, payload, on)
        };
        match next? {
            Next::Goes(expect) => {
                if matches!(expect, Expect::Login { asked: true } | Expect::File { has_begun: false, .. }) {
                    on(Event::Asked(awaited.reply.bytes));
                }
                awaited.expect = expect;
                self.awaited.push_front(awaited);
            }
            Next::Ends => on(Event::Replied(awaited.reply)),
        }
        Ok(())
    }

    /// Takes the whole rows at the front of `input`, each a packet of its own, as [`Self::answer`] would one by one. What is left
    /// begins with something else, or has not all come.
    pub(super) fn rows(&mut self, input: &mut &[u8], on: &mut dyn FnMut(Event<'_>)) {
        let is_plain = self.phase == Phase::Commands && self.is_numbered && self.end_may_follow.is_none();
        let Some(awaited) = self.awaited.front_mut().filter(|_| is_plain) else { return };
        let Expect::Rows(Form { is_binary, .. }) = awaited.expect else { return };
        while let Some(header) = PacketHeader::peek(input) {
            let Some((packet, rest)) = input.split_at_checked(header.packet_len()) else { return };
            let payload = &packet[HEADER_BYTES..];
            let is_row = match payload.first() {
                None | Some(&(server::ERR | server::EOF)) => false,
                Some(&first) => !is_binary || first == server::OK,
            };
            if !is_row || header.is_continued() || header.sequence != awaited.sequence {
                return;
            }
            *input = rest;
            awaited.sequence = header.sequence.wrapping_add(1);
            let reply = &mut awaited.reply;
            (reply.kind, reply.rows, reply.bytes) =
                (ReplyKind::Rows, reply.rows + 1, reply.bytes + packet.len() as u64);
            on(Event::Row(Row { payload, payload_len: payload.len() as u64, is_binary }));
        }
    }

    fn error(
        &mut self,
        awaited: &mut Awaited,
        payload: Payload<'_>,
        on: &mut dyn FnMut(Event<'_>),
    ) -> Result<Next, LostReason> {
        let body = whole(payload)?;
        if Progress::is(body) {
            on(Event::Progress(Progress::decode(body)?));
            return Ok(Next::Goes(awaited.expect));
        }
        let error = ErrPacket::decode(body)?;
        awaited.reply.kind = ReplyKind::Failed(error.code);
        on(Event::Failed(error));
        Ok(Next::Ends)
    }

    fn good(
        &mut self,
        awaited: &mut Awaited,
        payload: Payload<'_>,
        on: &mut dyn FnMut(Event<'_>),
    ) -> Result<Next, LostReason> {
        match awaited.expect {
            Expect::Login { .. } => self.login(awaited, whole(payload)?, on),
            Expect::Single => self.single(awaited, whole(payload)?, on),
            Expect::Text => {
                awaited.reply.kind = ReplyKind::Text;
                on(Event::Text(payload.head));
                Ok(Next::Ends)
            }
            Expect::FieldList => self.field_list(awaited, payload, on),
            Expect::Result(form) => self.result(awaited, form, payload, on),
            Expect::File { .. } => Err(unexpected(awaited, payload)),
            Expect::Definitions { form, left } => {
                on(Event::Column(self.column(whole(payload)?)?));
                Ok(Next::Goes(self.behind_definition(form, left - 1)))
            }
            Expect::DefinitionsEnd(form) => self.definitions_end(awaited, form, payload, on),
            Expect::Rows(form) => self.row(awaited, form, payload, on),
            Expect::Prepare => self.prepare(awaited, whole(payload)?, on),
            Expect::Prepared { parameters, columns, is_end_due } => {
                self.prepared(awaited, (parameters, columns, is_end_due), payload, on)
            }
            Expect::Stream => {
                awaited.reply.kind = ReplyKind::Stream;
                on(Event::Streamed(Side::Server, payload.len));
                let ends = payload.whole().is_some_and(|body| EofPacket::decode(body).is_ok());
                Ok(if ends { Next::Ends } else { Next::Goes(Expect::Stream) })
            }
        }
    }

    fn login(
        &mut self,
        awaited: &mut Awaited,
        body: &[u8],
        on: &mut dyn FnMut(Event<'_>),
    ) -> Result<Next, LostReason> {
        let asked = match body.first() {
            Some(&server::OK) => {
                let ok = OkPacket::decode(body, self.capabilities)?;
                awaited.reply.status = Some(ok.status);
                self.forget_statements();
                self.is_logged_in = true;
                on(Event::Done(ok));
                return Ok(Next::Ends);
            }
            Some(&server::EOF) => {
                on(Event::AuthSwitch(AuthSwitch::decode(body)?));
                true
            }
            _ => {
                on(Event::AuthData(Side::Server, body));
                // The one message behind which the server goes on by itself.
                AuthMoreData::decode(body).map(|more| more.caching_sha2()) != Ok(CachingSha2::FastOk)
            }
        };
        Ok(Next::Goes(Expect::Login { asked }))
    }

    fn single(
        &mut self,
        awaited: &mut Awaited,
        body: &[u8],
        on: &mut dyn FnMut(Event<'_>),
    ) -> Result<Next, LostReason> {
        awaited.reply.results = 1;
        awaited.reply.status = Some(self.end(body, awaited, on)?);
        if awaited.reply.code == command::RESET_CONNECTION {
            self.forget_statements();
        }
        Ok(Next::Ends)
    }

    /// An OK or EOF packet, whichever it is.
    fn end(
        &self,
        body: &[u8],
        awaited: &mut Awaited,
        on: &mut dyn FnMut(Event<'_>),
    ) -> Result<Status, LostReason> {
        if body.first() == Some(&server::EOF) && body.len() == EOF_BYTES {
            let EofPacket { warnings, status } = EofPacket::decode(body)?;
            on(Event::RowsDone { warnings, status });
            return Ok(status);
        }
        let ok = OkPacket::decode(body, self.capabilities)?;
        awaited.reply.affected_rows = awaited.reply.affected_rows.saturating_add(ok.affected_rows);
        on(Event::Done(ok));
        Ok(ok.status)
    }

    fn field_list(
        &mut self,
        awaited: &mut Awaited,
        payload: Payload<'_>,
        on: &mut dyn FnMut(Event<'_>),
    ) -> Result<Next, LostReason> {
        awaited.reply.kind = ReplyKind::Columns;
        let body = whole(payload)?;
        if is_end(payload) {
            awaited.reply.status = Some(self.end(body, awaited, on)?);
            return Ok(Next::Ends);
        }
        on(Event::Column(self.column(body)?));
        Ok(Next::Goes(Expect::FieldList))
    }

    fn result(
        &mut self,
        awaited: &mut Awaited,
        form: Form,
        payload: Payload<'_>,
        on: &mut dyn FnMut(Event<'_>),
    ) -> Result<Next, LostReason> {
        let body = whole(payload)?;
        match body.first() {
            Some(&server::OK) => {
                let status = self.end(body, awaited, on)?;
                Ok(awaited.end_result(status, form).map_or(Next::Ends, Next::Goes))
            }
            Some(&server::LOCAL_INFILE) => {
                if !self.awaited.is_empty() {
                    return Err(LostReason::FileBehindCommands);
                }
                on(Event::FileWanted(TextCommand::decode(server::LOCAL_INFILE, body)?.text));
                Ok(Next::Goes(Expect::File { form, has_begun: false }))
            }
            Some(&server::EOF) | None => Err(unexpected(awaited, payload)),
            Some(_) => {
                let columns = self.column_count(body)?;
                awaited.reply.kind = ReplyKind::Rows;
                on(Event::Columns(columns.count));
                Ok(Next::Goes(self.behind_definition(form, columns.definitions())))
            }
        }
    }

    fn behind_definition(&self, form: Form, left: u64) -> Expect {
        if left > 0 {
            Expect::Definitions { form, left }
        } else if self.capabilities.has(Capabilities::DEPRECATE_EOF) {
            Expect::Rows(form)
        } else {
            Expect::DefinitionsEnd(form)
        }
    }

    fn definitions_end(
        &mut self,
        awaited: &mut Awaited,
        form: Form,
        payload: Payload<'_>,
        on: &mut dyn FnMut(Event<'_>),
    ) -> Result<Next, LostReason> {
        if self.is_end_open && !self.shows_end(payload) {
            return self.row(awaited, form, payload, on);
        }
        let EofPacket { warnings, status } = EofPacket::decode(whole(payload)?)?;
        let form = Form { is_out: status.has(Status::PS_OUT_PARAMS), ..form };
        if !(form.may_be_cursor && status.has(Status::CURSOR_EXISTS)) {
            return Ok(Next::Goes(Expect::Rows(form)));
        }
        awaited.reply.opened_cursor = true;
        on(Event::RowsDone { warnings, status });
        Ok(awaited.end_result(status, form).map_or(Next::Ends, Next::Goes))
    }

    fn row(
        &mut self,
        awaited: &mut Awaited,
        form: Form,
        payload: Payload<'_>,
        on: &mut dyn FnMut(Event<'_>),
    ) -> Result<Next, LostReason> {
        awaited.reply.kind = ReplyKind::Rows;
        if is_end(payload) {
            let status = self.end(whole(payload)?, awaited, on)?;
            awaited.reply.opened_cursor |= form.may_be_cursor && status.has(Status::CURSOR_EXISTS);
            return Ok(awaited.end_result(status, form).map_or(Next::Ends, Next::Goes));
        }
        match payload.head.first() {
            None if payload.len == 0 => return Err(unexpected(awaited, payload)),
            Some(&first) if form.is_binary && first != server::OK => {
                return Err(unexpected(awaited, payload));
            }
            _ => {}
        }
        awaited.reply.rows += 1;
        let row = Row { payload: payload.head, payload_len: payload.len, is_binary: form.is_binary };
        on(Event::Row(row));
        Ok(Next::Goes(Expect::Rows(form)))
    }

    fn prepare(
        &mut self,
        awaited: &mut Awaited,
        body: &[u8],
        on: &mut dyn FnMut(Event<'_>),
    ) -> Result<Next, LostReason> {
        let ok = PrepareOk::decode(body)?;
        let unit = awaited.reply.unit;
        awaited.reply.kind = ReplyKind::Prepared;
        if self.statements.len() < self.settings.statements_max {
            self.statements.insert(ok.statement, Prepared { unit, parameters: ok.parameters });
        }
        if let Some((last, parameters)) = &mut self.last_prepare {
            if *last == unit {
                *parameters = Some(ok.parameters);
            }
        }
        on(Event::Prepared(ok));
        let follows = ok.metadata_follows != Some(false);
        let (parameters, columns) = if follows { (ok.parameters, ok.columns) } else { (0, 0) };
        Ok(prepared_next(parameters, columns, false))
    }

    fn prepared(
        &mut self,
        awaited: &Awaited,
        (mut parameters, mut columns, is_end_due): (u16, u16, bool),
        payload: Payload<'_>,
        on: &mut dyn FnMut(Event<'_>),
    ) -> Result<Next, LostReason> {
        if is_end_due && (!self.is_end_open || self.shows_end(payload)) {
            return match is_end(payload) {
                true => Ok(prepared_next(parameters, columns, false)),
                false => Err(unexpected(awaited, payload)),
            };
        }
        on(Event::Column(self.column(whole(payload)?)?));
        let left = if parameters > 0 { &mut parameters } else { &mut columns };
        *left -= 1;
        let is_end_due = *left == 0 && !self.capabilities.has(Capabilities::DEPRECATE_EOF);
        if is_end_due && self.is_end_open && (parameters, columns) == (0, 0) {
            self.end_may_follow = Some(awaited.sequence);
            return Ok(Next::Ends);
        }
        Ok(prepared_next(parameters, columns, is_end_due))
    }
}

fn prepared_next(parameters: u16, columns: u16, is_end_due: bool) -> Next {
    if parameters == 0 && columns == 0 && !is_end_due {
        return Next::Ends;
    }
    Next::Goes(Expect::Prepared { parameters, columns, is_end_due })
}

/// Whether a payload, where rows or definitions may be, ends them.
fn is_end(payload: Payload<'_>) -> bool {
    payload.head.first() == Some(&server::EOF) && payload.len < END_BYTES_MAX
}

fn unexpected(awaited: &Awaited, payload: Payload<'_>) -> LostReason {
    let first = payload.head.first().copied().unwrap_or_default();
    LostReason::UnexpectedAnswer { code: awaited.reply.code, first }
}
