//! What becomes of a statement that was told where the server says something else (rule S2).

use std::sync::Arc;

use onetrip_ledger::{Remedy, TransactionStatus};
use onetrip_wire::pg::{Bind, Column, Parse, RowDescription, StatementOrPortal, backend, frame, frontend};

use super::Rule;
use super::remedy::Cx;
use super::statements::{Sent, State, Statements, Told};
use crate::contract::SessionError;
use crate::facts::Place;
use crate::facts::common::Description;
use crate::reply_queue::{Due, Expect, NO_UNIT};
use crate::services::{Own, Said};
use crate::session::core::Core;
use crate::statements::Prepared;

/// A unit that is to fail.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) unit: u64,
    pub(super) error: Vec<u8>,
    /// The server's transaction is being made to fail.
    pub(super) is_failing: bool,
}

/// A statement that was told, and is not there or is another: how it is made again.
#[derive(Debug, Clone)]
pub(crate) struct Broken {
    /// What the server said.
    error: Vec<u8>,
    place: Place,
    key: Box<[u8]>,
    parse: Vec<u8>,
    description: Option<Arc<Description>>,
    may_be_dropped: bool,
}

impl Broken {
    /// What the server said.
    pub(crate) fn into_error(self) -> Vec<u8> {
        self.error
    }
}

impl Statements {
    /// Whether a message needs a statement that was told and is not there, in a way in which it cannot be told so.
    pub(crate) fn needs_broken(&self, core: &Core, tag: u8, body: &[u8]) -> bool {
        if !self.told.has_broken {
            return false;
        }
        let name = match tag {
            frontend::BIND => Bind::decode(body).ok().map(|bind| bind.statement),
            frontend::PARSE => {
                Parse::decode(body).ok().map(|parse| parse.statement).filter(|name| !name.is_empty())
            }
            frontend::DESCRIBE => match StatementOrPortal::decode(body) {
                Ok(StatementOrPortal::Statement(name)) => Some(name),
                _ => None,
            },
            // SQL may name it: EXECUTE, DEALLOCATE.
            frontend::QUERY => {
                let told = &self.told;
                return core.has_prepared(|name, prepared| {
                    told.breaks(prepared) && body.windows(name.len()).any(|text| text == name)
                });
            }
            _ => None,
        };
        let prepared = name.and_then(|name| core.prepared(name));
        prepared.is_some_and(|prepared| self.told.breaks(prepared))
    }

    /// How the statement of this name is made again, if it was told and is not there, or is another.
    pub(crate) fn broken(&self, core: &Core, name: &[u8]) -> Option<Box<Broken>> {
        let serial = core.prepared(name)?.serial;
        self.told.broken.get(&serial).cloned()
    }

    /// Sends what makes a statement again, ahead of the unit that runs it.
    pub(crate) fn make_again(&mut self, core: &mut Core, name: &[u8], broken: &Broken) {
        StatementOrPortal::Statement(name).encode(frontend::CLOSE, core.server_outbox());
        core.server_outbox().extend_from_slice(&broken.parse);
        let mut expected = vec![Expect::Close, Expect::Parse];
        if broken.description.is_some() {
            StatementOrPortal::Statement(name).encode(frontend::DESCRIBE, core.server_outbox());
            expected.push(Expect::DescribeStatement);
        }
        self.watching().ignore();
        for expect in expected {
            let mut due = Due::own(Remedy::Statements, expect);
            due.lesson = self.watching().lesson_of(&due);
            core.owe_own(due);
        }
    }

    /// The unit that runs a statement which is made again has been sent.
    pub(crate) fn runs_again(&mut self, name: &[u8], broken: Broken, unit: u64) {
        let Broken { place, parse, key, description, may_be_dropped, .. } = broken;
        let sent = Sent::new(name, (place, key), parse, description, may_be_dropped);
        self.tells(Sent { unit: NO_UNIT, behind: Some(unit), ..sent });
    }

    /// This unit is to fail with that error.
    pub(crate) fn refuses(&mut self, unit: u64, error: Vec<u8>) {
        self.told.is_ahead_failed = false;
        self.told.state = State::Refusing(Box::new(Refusal { unit, error, is_failing: false }));
    }
}

/// Ends the session: a statement that was told is not there, and its program cannot be told so.
pub(crate) fn statement_refused(core: &mut Core) -> SessionError {
    let message = "the server refused a statement whose Parse onetrip had answered";
    let hint = "Connect again; leave the remedy out by --remedies exact,-statements.";
    core.refuse("08006", message, Some(hint));
    SessionError::StatementRefused
}

impl Told {
    /// Whether this statement was told to be there, and is not, or is another.
    fn breaks(&self, prepared: &Prepared) -> bool {
        self.broken.contains_key(&prepared.serial)
    }

    /// The server answers what was told, or a unit that is to fail.
    pub(super) fn take_reply(&mut self, cx: &mut Cx<'_>, said: &Said<'_>) -> Result<Own, SessionError> {
        let (tag, body) = (said.tag, said.body());
        if let State::Refusing(_) = self.state {
            let is_end = said.is_last() && tag == backend::READY_FOR_QUERY;
            return if is_end { self.refuse_now(cx, said.message) } else { Ok(Own::Dropped) };
        }
        let State::Sent(sent) = &mut self.state else { return Ok(Own::Dropped) };
        if said.is_failure() {
            sent.error = Some(said.message.to_vec());
            sent.is_failed = true;
        } else if tag == backend::ROW_DESCRIPTION && sent.has_columns_of(body) {
            sent.is_outdated |= !sent.is_told(tag, body);
        } else if !sent.is_told(tag, body) {
            sent.error.get_or_insert_with(another_result);
        }
        if !cx.core.queue().owes(Remedy::Statements) {
            self.settle(cx)?;
        }
        Ok(Own::Dropped)
    }

    /// The server has said all about what was told.
    fn settle(&mut self, cx: &mut Cx<'_>) -> Result<(), SessionError> {
        let State::Sent(sent) = std::mem::take(&mut self.state) else { return Ok(()) };
        let sent = *sent;
        let descriptions = &cx.config.common.descriptions;
        let Some(error) = sent.error else {
            if let Some(prepared) = cx.core.prepared(&sent.name) {
                self.broken.remove(&prepared.serial);
            }
            if sent.is_outdated {
                descriptions.forget(&sent.place, &sent.key);
            }
            return Ok(());
        };
        descriptions.forget(&sent.place, &sent.key);
        cx.core.each_prepared(|prepared| prepared.fails_in(sent.unit));
        let Sent { place, key, parse, description, may_be_dropped, .. } = sent;
        let broken = Broken { error: error.clone(), place, key, parse, description, may_be_dropped };
        if let Some(prepared) = cx.core.prepared(&sent.name) {
            // Of those that were prepared anew, nothing is kept.
            let is_there = |serial| cx.core.find_prepared(|one| one.serial == serial).is_some();
            self.broken.retain(|serial, _| is_there(*serial));
            self.broken.insert(prepared.serial, Box::new(broken));
        }
        self.has_broken = true;
        if let Some(unit) = sent.behind {
            if !sent.is_failed && !may_be_dropped {
                // It has run, and the server breaks its own rules.
                return Err(statement_refused(cx.core));
            }
            let owed = cx.core.hand_over(unit, Remedy::Statements);
            for _ in 1..owed {
                cx.core.settled(unit);
            }
            self.state = State::Refusing(Box::new(Refusal { unit, error, is_failing: false }));
            return Ok(());
        }
        let is_open = sent.status.is_none() || cx.core.status() == TransactionStatus::Active;
        self.is_ahead_failed = sent.is_failed && is_open;
        Ok(())
    }

    /// The server has ended the unit that is to fail: its transaction fails, then the client is told (rule S2).
    fn refuse_now(&mut self, cx: &mut Cx<'_>, ready: &[u8]) -> Result<Own, SessionError> {
        let State::Refusing(mut refusal) = std::mem::take(&mut self.state) else { return Ok(Own::Dropped) };
        if ready.ends_with(b"T") && Rule::BothFail.is_kept() {
            if refusal.is_failing {
                return Err(statement_refused(cx.core));
            }
            let statement = cx.own_names.nowhere();
            Bind::without_parameters(statement, statement).encode(cx.core.server_outbox());
            frame(cx.core.server_outbox(), frontend::SYNC, |_| ());
            for expect in [Expect::Bind, Expect::Sync] {
                cx.core.owe_own(Due::own(Remedy::Statements, expect));
            }
            refusal.is_failing = true;
            self.state = State::Refusing(refusal);
            return Ok(Own::Dropped);
        }
        let Refusal { unit, error, .. } = *refusal;
        Ok(Own::Fails { unit, error })
    }
}

impl Sent {
    /// Whether a RowDescription has the columns that were told, of whatever tables: PostgreSQL runs a statement whose
    /// tables were made anew between Parse and Bind if its columns are the same (`RevalidateCachedQuery`).
    fn has_columns_of(&self, body: &[u8]) -> bool {
        let told = self.description.as_deref().and_then(|told| told.row.as_deref());
        let (Some(Ok(told)), Ok(said)) = (told.map(RowDescription::decode), RowDescription::decode(body))
        else {
            return false;
        };
        let of_any_table = |column: Column<'_>| {
            let Column { name, type_oid, type_len, type_modifier, format, .. } = column;
            (name.to_vec(), type_oid, type_len, type_modifier, format)
        };
        told.columns().map(of_any_table).eq(said.columns().map(of_any_table))
    }

    /// Whether the server says what was told.
    fn is_told(&self, tag: u8, body: &[u8]) -> bool {
        let told = self.description.as_deref();
        match tag {
            backend::PARAMETER_DESCRIPTION => told.is_some_and(|told| *told.parameters == *body),
            backend::ROW_DESCRIPTION => told.is_some_and(|told| told.row.as_deref() == Some(body)),
            backend::NO_DATA => told.is_some_and(|told| told.row.is_none()),
            backend::READY_FOR_QUERY => self.is_failed || self.status.is_some_and(|status| body == [status]),
            _ => true,
        }
    }
}

/// What PostgreSQL says to a Bind of a statement whose result is another now, but for the line of its source: drivers look
/// at the routine and prepare the statement again.
fn another_result() -> Vec<u8> {
    let fields = [
        (b'S', "ERROR"),
        (b'V', "ERROR"),
        (b'C', "0A000"),
        (b'M', "cached plan must not change result type"),
        (b'F', "plancache.c"),
        (b'R', "RevalidateCachedQuery"),
    ];
    let mut out = Vec::new();
    frame(&mut out, backend::ERROR_RESPONSE, |out| {
        for (code, text) in fields {
            out.push(code);
            out.extend_from_slice(text.as_bytes());
            out.push(0);
        }
        out.push(0);
    });
    out
}
