//! The remedy `loops`: statements that a loop will send are run ahead, and answered from memory when they come.
//!
//! Only inside REPEATABLE READ, where a statement's answer does not depend on when it runs. What comes next is guessed by
//! `onetrip-loops`; whether an answer may be served is decided by the bytes of the request alone (`Buffer::ask`).
//!
//! ```text
//!  client            session                                          server
//!    | T(1) --------->| T(1), SAVEPOINT, T(2) ... T(9), ROLLBACK TO --->|
//!    |<---------------|<------------------------------ answer of T(1) --|
//!    | T(2) --------->| <- waits, if its answer is still under way -----|
//!    |<--- from memory|                                                 |
//! ```

mod guess;
mod request;

use onetrip_wire::pg::{Bind, Oid};
use smallvec::SmallVec;

use self::request::Ways;
use super::remedy::Cx;
use crate::contract::SessionError;
use crate::events::Event;
use crate::services::flights::{Flights, Request};
use crate::services::{Own, Said};
use crate::slots::Slot;
use crate::statements::Learned;

/// How one session's program writes its statements; what it will ask for is guessed by the flights.
#[derive(Debug, Default)]
pub(crate) struct Loops {
    ways: Ways,
}

impl super::remedy::Remedy for Loops {
    /// What a statement is written like changes by no event.
    #[inline(always)] // see `tell`
    fn on_event(&mut self, _: &mut Cx<'_>, event: &Event<'_>) {
        match *event {
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
            | Event::StateChanges { .. }
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

    /// What it sends goes by the flights.
    fn own_reply(&mut self, _: &mut Cx<'_>, _: Slot, _: &Said<'_>) -> Result<Own, SessionError> {
        Ok(Own::PassedOn)
    }

    fn own_skipped(&mut self, _: Slot) {}
}

impl Loops {
    /// What a simple query asks for, if its literals are plain.
    pub(crate) fn simple_request<'a>(
        &mut self,
        flights: &mut Flights,
        text: &'a [u8],
        template: u32,
    ) -> Option<Request<'a>> {
        self.ways.simple(flights, text, template)
    }

    /// What an extended group asks for that binds `bind` to a statement with this text; with name and serial where it is
    /// one of the program's own, prepared before. `types` are those that its Parse declares, `learned` is what the server has
    /// told of it.
    pub(crate) fn extended_request<'a>(
        &mut self,
        flights: &mut Flights,
        (text, prepared): (&[u8], Option<(&[u8], u64)>),
        types: SmallVec<[Oid; 8]>,
        bind: &Bind<'a>,
        describes: bool,
        (template, learned): (u32, Option<&Learned>),
    ) -> Option<Request<'a>> {
        self.ways.extended(flights, (text, prepared), types, bind, describes, (template, learned))
    }
}
