//! The program's unnamed statement and portal, where the server has others: it has not run the last unit that was answered
//! from memory.

use onetrip_ledger::TransactionStatus;
use onetrip_wire::pg::{Bind, FrameHeader, Parse, StatementOrPortal, frame, frontend};

use super::Rule;
use super::arrived::Arrived;
use crate::contract::{LENGTH_MAX, Verdict};
use crate::events::Event;
use crate::reply_queue::{Due, Expect, Service};
use crate::session::core::Core;

/// What the server has not seen of the unnamed objects.
#[derive(Debug, Default)]
pub(crate) struct Unseen {
    /// The last unit that was served, as the server would have to be told it.
    unit: Option<Vec<u8>>,
}

impl Unseen {
    /// A unit of the extended protocol was answered from memory; `is_run` where the server runs it as well.
    pub(super) fn served(&mut self, unit: Arrived<'_>, is_run: bool) {
        self.unit = (!is_run).then(|| without_sync(unit));
    }

    /// Where the server's unnamed statement or portal is not the one that the program believes in, and the unit at the
    /// front of `input` may use it, the last unit that was served is run for real first (rule P22).
    pub(super) fn show(&mut self, core: &mut Core, tag: u8, input: &[u8]) -> Option<Verdict> {
        let unseen = self.unit.as_ref()?;
        let has_portal = unseen.len() > parse_len(unseen);
        let needs = |unit| Unnamed::of(unit).is_none_or(|unnamed| unnamed.needs(has_portal));
        let is_sure = tag == frontend::QUERY || Arrived::peek(input).is_some_and(|unit| !needs(unit));
        let has_failed = core.status() == TransactionStatus::Failed;
        if is_sure
            || !Rule::Unnamed.is_kept()
            || has_failed && (self.is_closed(input) || self.is_refused(input))
        {
            return None;
        }
        put(core, &self.unit.take()?);
        Some(Verdict::Replace(0))
    }

    /// A transaction that has failed runs no statement again, and closes what it is asked to.
    fn is_closed(&mut self, input: &[u8]) -> bool {
        let Some(unit) = Arrived::peek(input) else { return false };
        if !unit.messages().all(|(tag, _)| matches!(tag, frontend::CLOSE | frontend::SYNC)) {
            return false;
        }
        let unnamed = StatementOrPortal::Statement(b"");
        let is_gone = unit.messages().any(|(_, body)| StatementOrPortal::decode(body) == Ok(unnamed));
        match &mut self.unit {
            Some(unseen) if !is_gone => keep_parse(unseen),
            unseen => *unseen = None,
        }
        true
    }

    /// A transaction that has failed refuses a portal, and says of a statement whether it is there: that is the server's to
    /// tell, if the last unit that was served has not made it.
    fn is_refused(&self, input: &[u8]) -> bool {
        let makes_statement =
            self.unit.as_ref().is_some_and(|unseen| unseen.first() == Some(&frontend::PARSE));
        let asks_portal = |unit| Unnamed::of(unit).is_none_or(|unnamed| unnamed.asks_portal);
        !makes_statement && Arrived::peek(input).is_some_and(|unit| !asks_portal(unit))
    }

    /// The program's unnamed portal is made anew.
    fn portal_replaced(&mut self) {
        self.unit = self.unit.take().and_then(|mut unseen| {
            keep_parse(&mut unseen);
            (!unseen.is_empty()).then_some(unseen)
        });
    }

    #[inline(always)] // see `tell`
    pub(super) fn on_event(&mut self, event: &Event<'_>) {
        match *event {
            Event::EndSent { .. } | Event::TransactionOver => {
                if let Some(unseen) = &mut self.unit {
                    keep_parse(unseen);
                }
            }
            Event::UnnamedStatementGone => self.unit = None,
            Event::UnnamedPortalMade => self.portal_replaced(),
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
            | Event::LevelChanges
            | Event::StateChanges { .. }
            | Event::DescriptorsDoubted
            | Event::UnitReady { .. }
            | Event::UnitFailed { .. }
            | Event::PortalLeaves { .. }
            | Event::UnnamedPortalEnds
            | Event::CameUnasked { .. }
            | Event::Disproved => {}
        }
    }
}

/// Runs on the server what was answered from memory.
fn put(core: &mut Core, unseen: &[u8]) {
    let mut rest = unseen;
    while let Some(Ok(header)) = FrameHeader::peek(rest, LENGTH_MAX) {
        rest = rest.get(header.frame_len()..).unwrap_or_default();
        let expect = match header.tag {
            frontend::PARSE => Expect::Parse,
            frontend::BIND => Expect::Bind,
            frontend::DESCRIBE => Expect::DescribePortal,
            _ => Expect::Execute,
        };
        core.owe_own(Due::own(Service::Unseen, expect));
    }
    core.server_outbox().extend_from_slice(unseen);
}

/// Leaves the Parse alone: portals end with their transaction.
fn keep_parse(unseen: &mut Vec<u8>) {
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
