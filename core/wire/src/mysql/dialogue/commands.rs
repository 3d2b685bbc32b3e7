//! What the client sends after its login.

use super::awaited::{Awaited, Expect, answer_to};
use super::event::{Command, Event, LostReason, Side, Statement};
use super::talk::{Phase, Talk, check_sequence};
use crate::WireError;
use crate::mysql::{
    BulkExecute, Capabilities, Execute, Fetch, LAST_STATEMENT, LongData, OutOfSequence, Payload, Query,
    StatementId, TextCommand, command, server,
};

/// Sets of attributes.
const SETS: u8 = 1;
/// The first character that a text may begin with.
const FIRST_OF_TEXT: u8 = b'\t';

impl Talk {
    pub(super) fn client(
        &mut self,
        payload: Payload<'_>,
        on: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), LostReason> {
        if let Some(told) = self.told_ahead.take() {
            on(Event::CommandRest(payload.bytes_on_wire.saturating_sub(told)));
            return Ok(());
        }
        let Some(front) = self.awaited.front_mut() else { return self.command(payload, on) };
        match front.expect {
            Expect::Login { asked: false } if front.reply.unit == 0 => return Err(LostReason::OutOfTurn),
            Expect::Login { asked: true } => {
                if self.is_numbered {
                    check_sequence(&mut front.sequence, payload)?;
                }
                front.expect = Expect::Login { asked: false };
                self.trips += 1;
                on(Event::AuthData(Side::Client, payload.head));
            }
            Expect::File { form, has_begun } => {
                if self.is_numbered {
                    check_sequence(&mut front.sequence, payload)?;
                }
                let ends = payload.len == 0;
                front.expect =
                    if ends { Expect::Result(form) } else { Expect::File { form, has_begun: true } };
                self.trips += u64::from(!has_begun);
                on(Event::FileSent(payload.len));
            }
            Expect::Stream => on(Event::Streamed(Side::Client, payload.len)),
            _ => return self.command(payload, on),
        }
        Ok(())
    }

    /// The server may answer a command by an error before it has all of it, such as one that is too long. What has come of it
    /// is told, so that it is answered.
    pub(super) fn answered_early(
        &mut self,
        begun: Payload<'_>,
        answer: Payload<'_>,
        on: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), LostReason> {
        let is_error = answer.head.first() == Some(&server::ERR);
        let is_due = self.phase == Phase::Commands && self.awaited.is_empty() && self.told_ahead.is_none();
        if !is_error || !is_due || answer_to(begun.head[0], begun.head).is_none() {
            return Ok(());
        }
        self.told_ahead = Some(begun.bytes_on_wire);
        self.command(begun, on)
    }

    fn command(&mut self, payload: Payload<'_>, on: &mut dyn FnMut(Event<'_>)) -> Result<(), LostReason> {
        if self.is_numbered && payload.sequence_first != 0 {
            return Err(OutOfSequence { expected: 0, found: payload.sequence_first }.into());
        }
        let code = *payload.head.first().ok_or(WireError::Truncated)?;
        if self.is_supposed && has_attributes(payload.head) {
            self.capabilities = self.capabilities | Capabilities::QUERY_ATTRIBUTES;
        }
        let expect = answer_to(code, payload.head);
        if self.awaited.len() >= self.settings.awaited_max && expect.is_some() {
            return Err(LostReason::TooManyAwaited(self.settings.awaited_max));
        }
        self.units += 1;
        let unit = self.units;
        if expect.is_some() && self.awaited.is_empty() {
            self.trips += 1;
        }
        let is_in_trip = expect.is_some() || !self.awaited.is_empty();
        on(Event::Command(Command {
            unit,
            code,
            payload: payload.head,
            payload_len: payload.len,
            bytes: payload.bytes_on_wire,
            text: self.text_of(code, payload.head),
            statement: self.statement_of(code, payload.head),
            is_answered: expect.is_some(),
            trip: is_in_trip.then_some(self.trips),
        }));
        match code {
            command::STMT_PREPARE => self.last_prepare = Some((unit, None)),
            command::STMT_CLOSE => {
                if let Ok(closed) = StatementId::decode(code, payload.head) {
                    self.statements.remove(&closed.statement);
                }
            }
            _ => {}
        }
        if let Some(expect) = expect {
            let sequence = payload.sequence_last.wrapping_add(1);
            self.awaited.push_back(Awaited::new(unit, code, self.trips, expect, sequence));
        }
        Ok(())
    }

    fn text_of<'a>(&self, code: u8, body: &'a [u8]) -> Option<&'a [u8]> {
        match code {
            command::QUERY => Query::decode(body, self.capabilities).ok().map(|query| query.text),
            command::STMT_PREPARE => TextCommand::decode(code, body).ok().map(|prepare| prepare.text),
            _ => None,
        }
    }

    fn statement_of(&self, code: u8, body: &[u8]) -> Option<Statement> {
        let id = match code {
            command::STMT_EXECUTE => Execute::peek(body).ok()?.0,
            command::STMT_BULK_EXECUTE => BulkExecute::peek(body).ok()?.0,
            command::STMT_FETCH => Fetch::decode(body).ok()?.statement,
            command::STMT_SEND_LONG_DATA => LongData::decode(body).ok()?.statement,
            command::STMT_CLOSE | command::STMT_RESET => StatementId::decode(code, body).ok()?.statement,
            _ => return None,
        };
        let known = self.statements.get(&id);
        Some(match self.last_prepare {
            Some((unit, parameters)) if id == LAST_STATEMENT => {
                Statement { id, prepared_by: Some(unit), parameters }
            }
            _ => Statement {
                id,
                prepared_by: known.map(|known| known.unit),
                parameters: known.map(|known| known.parameters),
            },
        })
    }
}

/// Whether a command says how many attributes it has: no text begins so.
fn has_attributes(body: &[u8]) -> bool {
    match body {
        [command::QUERY, count, SETS, ..] => *count < FIRST_OF_TEXT,
        [command::STMT_EXECUTE, ..] => {
            Execute::peek(body).is_ok_and(|(_, flags)| flags & Execute::COUNT_IS_SAID != 0)
        }
        _ => false,
    }
}
