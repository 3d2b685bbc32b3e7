//! The remedy `statements`: a Parse, with its Describe, is sent and answered at once if the server has answered it before.
//! So the Bind follows in the same trip.
//!
//! ```text
//!  client               session                                server
//!    | Parse Describe S ->| Parse Describe S ----------------->|   Sent
//!    |<- 1 t T Z ---------|                                    |
//!    | Bind Execute S --->| Bind Execute S ------------------->|   Sent, with a unit behind it
//!    |                    |<------- 1 t T Z: as it was told ---|   dropped
//!    |<-------------------|<------- 2 D C Z -------------------|
//! ```
//!
//! If the server says something else than was told, the reply to the unit behind it is dropped. The client gets the error
//! that a change between its Parse and its Bind would have given it.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use onetrip_wire::pg::{Bind, Execute, ParameterDescription, Parse, StatementOrPortal, frame, frontend};

use super::Rule;
use super::refusal::{Broken, Refusal};
use super::remedy::Cx;
use super::watching::Watching;
use crate::contract::SessionError;
use crate::events::Event;
use crate::facts::Place;
use crate::facts::common::Description;
use crate::services::{Arrived, Own, Said};
use crate::session::core::Core;
use crate::slots::Slot;

/// What the session knows of the statements that are told, and learns of all.
#[derive(Debug, Default)]
pub(crate) struct Statements {
    pub(super) told: Told,
    watching: Watching,
}

impl super::remedy::Remedy for Statements {
    #[inline(always)] // see `tell`
    fn on_event(&mut self, _: &mut Cx<'_>, event: &Event<'_>) {
        match *event {
            Event::StateChanges { .. } => self.watching.place_changes(),
            Event::Opened(_)
            | Event::PathMeasured(_)
            | Event::ParameterReported { .. }
            | Event::UnknownReported
            | Event::SetRead(_)
            | Event::Followed
            | Event::StatementSent { .. }
            | Event::ReadSent { .. }
            | Event::SavepointSent
            | Event::TransactionBegun { .. }
            | Event::LevelChanges { .. }
            | Event::DescriptorsDoubted
            | Event::EndSent { .. }
            | Event::UnitReady { .. }
            | Event::TransactionOver
            | Event::UnitFailed { .. }
            | Event::PortalLeaves { .. }
            | Event::UnnamedPortalEnds
            | Event::UnnamedPortalMade
            | Event::UnnamedStatementMade { .. }
            | Event::UnnamedStatementGone
            | Event::CameUnasked { .. }
            | Event::Disproved => {}
        }
    }

    fn own_reply(&mut self, cx: &mut Cx<'_>, _: Slot, said: &Said<'_>) -> Result<Own, SessionError> {
        self.told.take_reply(cx, said)
    }

    /// The error in front of it was taken.
    fn own_skipped(&mut self, _: Slot) {}
}

/// A statement that was answered before the server has taken it, and what became of others.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) state: State,
    /// A statement that was told is not there, or is another.
    pub(super) has_broken: bool,
    /// Those statements, by serial.
    pub(super) broken: HashMap<u64, Box<Broken>, RandomState>,
    /// The server's transaction has failed, or it skips, and the client does not know.
    pub(super) is_ahead_failed: bool,
}

#[derive(Debug, Default)]
pub(super) enum State {
    #[default]
    None,
    /// The server has not confirmed what was told.
    Sent(Box<Sent>),
    /// It has said something else, and the unit behind it is to fail.
    Refusing(Box<Refusal>),
}

/// A statement that was told.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(super) unit: u64,
    pub(super) name: Vec<u8>,
    /// Where what was told comes from.
    pub(super) place: Place,
    pub(super) key: Box<[u8]>,
    /// The Parse as it was sent.
    pub(super) parse: Vec<u8>,
    /// What was told of it; none where only Parse was answered.
    pub(super) description: Option<Arc<Description>>,
    /// What ReadyForQuery said; none where none was told.
    pub(super) status: Option<u8>,
    /// The unit that runs it, if that has been sent.
    pub(super) behind: Option<u64>,
    /// It does nothing but read, or nothing was told of its result.
    pub(super) may_be_dropped: bool,
    /// What the client's Bind is to fail with.
    pub(super) error: Option<Vec<u8>>,
    /// It is the Parse that failed.
    pub(super) is_failed: bool,
    /// What was told holds, and the server says more of it now: its tables are others with the same columns.
    pub(super) is_outdated: bool,
}

/// What a client's unit that prepares a statement says.
pub(crate) struct Prepare<'a> {
    pub(crate) parse: Parse<'a>,
    /// It asks for the statement's description.
    pub(crate) describes: bool,
}

impl<'a> Prepare<'a> {
    /// Parse and Sync, or Parse and Describe of the same statement with Sync or Flush.
    pub(crate) fn read(unit: Arrived<'a>) -> Option<Self> {
        let mut messages = unit.messages();
        let (frontend::PARSE, body) = messages.next()? else { return None };
        let parse = Parse::decode(body).ok()?;
        let (mut tag, mut body) = messages.next()?;
        let describes = tag == frontend::DESCRIBE;
        if describes {
            let of = StatementOrPortal::decode(body).ok()?;
            (of == StatementOrPortal::Statement(parse.statement)).then_some(())?;
            (tag, body) = messages.next()?;
        }
        let is_end = tag == frontend::SYNC || describes && tag == frontend::FLUSH;
        let is_plain = is_end && body.is_empty() && messages.next().is_none();
        is_plain.then_some(Self { parse, describes })
    }
}

/// The Parse with the types that are told, and whether the client has not fixed them itself (rule S5).
pub(crate) fn parse_with(parse: Parse<'_>, told: Option<&Description>) -> (Vec<u8>, bool) {
    let mut out = Vec::new();
    let types = told.filter(|told| {
        let types = ParameterDescription::decode(&told.parameters);
        types.is_ok_and(|types| !types.oids().eq(parse.parameter_oids()))
    });
    match types {
        None => parse.encode(&mut out),
        Some(told) => frame(&mut out, frontend::PARSE, |out| {
            for text in [parse.statement, parse.text] {
                out.extend_from_slice(text);
                out.push(0);
            }
            out.extend_from_slice(&told.parameters); // a count and types, as Parse has them
        }),
    }
    (out, types.is_some())
}

/// Whether a unit does nothing but run the statement of this name once.
fn runs(unit: Arrived<'_>, name: &[u8]) -> bool {
    bound(unit).is_some_and(|bound| bound == name)
}

/// The statement that a unit runs once, if it does nothing else: Bind, Describe, Execute, Close, all of one portal.
pub(crate) fn bound(unit: Arrived<'_>) -> Option<&[u8]> {
    let mut messages = unit.messages();
    let (frontend::BIND, body) = messages.next()? else { return None };
    let bind = Bind::decode(body).ok()?;
    let mut step = frontend::BIND;
    for (tag, body) in messages {
        let is_next = match tag {
            frontend::DESCRIBE => step == frontend::BIND && is_portal(body, bind.portal),
            frontend::EXECUTE => {
                let is_it = Execute::decode(body).is_ok_and(|execute| execute.portal == bind.portal);
                matches!(step, frontend::BIND | frontend::DESCRIBE) && is_it
            }
            frontend::CLOSE => step == frontend::EXECUTE && is_portal(body, bind.portal),
            frontend::SYNC => matches!(step, frontend::EXECUTE | frontend::CLOSE),
            _ => false,
        };
        is_next.then(|| step = tag)?;
    }
    (step == frontend::SYNC).then_some(bind.statement)
}

fn is_portal(body: &[u8], name: &[u8]) -> bool {
    StatementOrPortal::decode(body) == Ok(StatementOrPortal::Portal(name))
}

/// What becomes of a unit of the client's, as far as statements were told.
pub(crate) enum Behind<'a> {
    /// It is as any other.
    Free,
    /// It waits.
    Hold,
    /// It runs the statement that was told, and is not confirmed.
    Runs(Arrived<'a>),
    /// Statements that were told are not there: it may need one of them.
    Broken,
}

impl Statements {
    /// What becomes of the unit at the front of `input` (rules S2 and S6).
    #[inline]
    pub(crate) fn behind<'a>(&self, input: &'a [u8]) -> Behind<'a> {
        match &self.told.state {
            State::Refusing(_) => Behind::Hold,
            State::Sent(sent) => {
                let unit = Arrived::peek(input).filter(|unit| runs(*unit, &sent.name));
                match unit.filter(|_| sent.behind.is_none()) {
                    Some(unit) => Behind::Runs(unit),
                    None if Rule::OnlyItsBind.is_kept() => Behind::Hold,
                    None => Behind::Free,
                }
            }
            State::None if self.told.has_broken => Behind::Broken,
            State::None => Behind::Free,
        }
    }

    /// Whether the server's transaction has failed, or it skips, and the client does not know.
    pub(crate) fn is_ahead_failed(&self) -> bool {
        self.told.is_ahead_failed
    }

    /// This is told now.
    pub(crate) fn tells(&mut self, sent: Sent) {
        self.told.state = State::Sent(Box::new(sent));
    }

    /// Puts the Parse of what is told.
    pub(crate) fn put_parse(&self, core: &mut Core) {
        if let State::Sent(sent) = &self.told.state {
            core.server_outbox().extend_from_slice(&sent.parse);
        }
    }

    /// The Parse of what was told, as it was sent.
    pub(crate) fn parse_sent(&self) -> Option<Vec<u8>> {
        match &self.told.state {
            State::Sent(sent) => Some(sent.parse.clone()),
            State::None | State::Refusing(_) => None,
        }
    }

    /// What is told is booked as this unit; with what ReadyForQuery says, if there is one.
    pub(crate) fn booked_as(&mut self, unit: u64, status: Option<u8>) {
        if let State::Sent(sent) = &mut self.told.state {
            (sent.unit, sent.status) = (unit, status);
        }
    }

    /// The unit that runs it has been sent.
    pub(crate) fn has_behind(&mut self, unit: u64) {
        if let State::Sent(sent) = &mut self.told.state {
            sent.behind = Some(unit);
        }
    }

    /// What is learned from the server's replies.
    #[inline]
    pub(crate) fn watching(&mut self) -> &mut Watching {
        &mut self.watching
    }
}

impl Sent {
    /// Told from what is known at this place under this key, and not yet booked.
    pub(crate) fn new(
        name: &[u8],
        (place, key): (Place, Box<[u8]>),
        parse: Vec<u8>,
        description: Option<Arc<Description>>,
        may_be_dropped: bool,
    ) -> Self {
        Self {
            unit: 0,
            name: name.to_vec(),
            place,
            key,
            parse,
            description,
            status: None,
            behind: None,
            may_be_dropped,
            error: None,
            is_failed: false,
            is_outdated: false,
        }
    }
}
