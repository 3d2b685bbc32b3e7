//! The program's unnamed statement and portal, where the server has others: it has not run the last unit that was answered
//! from memory.

use onetrip_wire::pg::{Bind, HEADER_BYTES, Parse, StatementOrPortal, frame, frontend};

use super::arrived::{Arrived, messages};
use crate::contract::Verdict;
use crate::events::Event;
use crate::own_names::OwnNames;
use crate::reading::place_of;
use crate::reply_queue::{Due, Expect, Service};
use crate::rules::Rule;
use crate::session::core::Core;

/// Bytes of a Parse that are remembered, in case the program's portal has to be made anew by it.
const PARSE_BYTES_MAX: usize = 8 << 10;

/// What the server has not seen of the unnamed objects.
#[derive(Debug, Default)]
pub(crate) struct Unseen {
    /// The Parse of the program's unnamed statement, where the server has another or none.
    statement: Option<Vec<u8>>,
    /// The program's unnamed portal, where the server has another or none.
    portal: Option<Portal>,
    /// Body of the Parse that made the server's unnamed statement in this transaction; empty if that is not known.
    sent: Vec<u8>,
}

/// A portal that the server has not seen.
#[derive(Debug)]
struct Portal {
    /// Its Bind, and what was asked of it, as the server would have to be told.
    run: Vec<u8>,
    statement: Bound,
}

/// What a portal was bound to.
#[derive(Debug, PartialEq, Eq)]
enum Bound {
    /// A statement with a name.
    Named,
    /// The unnamed statement that the program has.
    Unnamed,
    /// One that the program has replaced; the body of its Parse.
    Replaced(Vec<u8>),
}

impl Unseen {
    /// A unit of the extended protocol was answered from memory; `is_run` where the server runs it as well.
    pub(crate) fn served(&mut self, unit: Arrived<'_>, is_run: bool) {
        (self.statement, self.portal) = match is_run {
            true => (None, None),
            false => (parse_of(unit).or(self.statement.take()), Portal::of(unit)),
        };
    }

    /// Where the server's unnamed statement or portal is not the one that the program believes in, and the unit at the
    /// front of `input` uses it, what was answered from memory is told to the server first (rule P22). Of what nobody uses it
    /// is told nothing: it may have become an error since, and that would be another statement's.
    pub(crate) fn show(
        &mut self,
        core: &mut Core,
        own_names: &OwnNames,
        tag: u8,
        input: &[u8],
    ) -> Option<Verdict> {
        let is_shown = self.statement.is_none() && self.portal.is_none();
        // A simple query ends both, and a call of a function knows neither.
        let is_sure = matches!(tag, frontend::QUERY | frontend::FUNCTION_CALL);
        if is_shown || is_sure || !Rule::Unnamed.is_kept() {
            return None;
        }
        let uses = Arrived::peek(input).and_then(Unnamed::of).unwrap_or(Unnamed::ALL);
        let queue_length = core.queue().len();
        if uses.asks_statement {
            self.tell_statement(core);
        }
        if uses.asks_portal || uses.replaces_statement() && !self.may_wait() {
            self.tell_portal(core, own_names);
        }
        if uses.closes_portal {
            self.portal = None;
        }
        if uses.closes_statement {
            self.statement_leaves();
        }
        (core.queue().len() > queue_length).then_some(Verdict::Replace(0))
    }

    fn tell_statement(&mut self, core: &mut Core) {
        if let Some(parse) = self.statement.take() {
            self.sent = parse[HEADER_BYTES..].to_vec();
            put(core, &parse);
        }
    }

    fn tell_portal(&mut self, core: &mut Core, own_names: &OwnNames) {
        let Some(portal) = self.portal.take() else { return };
        match &portal.statement {
            Bound::Named => put(core, &portal.run),
            Bound::Unnamed => {
                self.tell_statement(core);
                put(core, &portal.run);
            }
            Bound::Replaced(parse) => put(core, &portal.under(own_names.name(), parse)),
        }
    }

    /// Whether the portal can be made after its statement has been replaced.
    fn may_wait(&self) -> bool {
        let is_known = self.statement.is_some() || !self.sent.is_empty();
        self.portal.as_ref().is_none_or(|portal| portal.statement != Bound::Unnamed || is_known)
    }

    /// The program's unnamed statement is another now, or none.
    fn statement_leaves(&mut self) {
        let parse = self.statement.take();
        if let Some(portal) = self.portal.as_mut().filter(|portal| portal.statement == Bound::Unnamed) {
            let body = parse.map(|parse| parse[HEADER_BYTES..].to_vec());
            portal.statement = Bound::Replaced(body.unwrap_or_else(|| self.sent.clone()));
        }
        self.sent.clear();
    }

    #[inline(always)] // see `tell`
    pub(crate) fn on_event(&mut self, event: &Event<'_>) {
        match *event {
            // Portals end with their transaction.
            Event::EndSent { .. } | Event::TransactionOver => {
                self.portal = None;
                self.sent.clear();
            }
            Event::UnnamedStatementMade { parse } => {
                self.statement_leaves();
                if parse.len() <= PARSE_BYTES_MAX {
                    self.sent.extend_from_slice(parse);
                }
            }
            Event::UnnamedStatementGone => {
                (self.statement, self.portal) = (None, None);
                self.sent.clear();
            }
            Event::UnnamedPortalMade => self.portal = None,
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
            | Event::UnitReady { .. }
            | Event::UnitFailed { .. }
            | Event::PortalLeaves { .. }
            | Event::UnnamedPortalEnds
            | Event::CameUnasked { .. }
            | Event::Disproved => {}
        }
    }
}

impl Portal {
    /// What a unit that was answered leaves behind.
    fn of(unit: Arrived<'_>) -> Option<Self> {
        let mut run = Vec::with_capacity(unit.len());
        let mut statement = None;
        for (tag, body) in unit.messages() {
            match tag {
                frontend::PARSE | frontend::SYNC => continue,
                frontend::BIND => {
                    let is_unnamed = Bind::decode(body).is_ok_and(|bind| bind.statement.is_empty());
                    statement = Some(if is_unnamed { Bound::Unnamed } else { Bound::Named });
                }
                _ => {}
            }
            frame(&mut run, tag, |out| out.extend_from_slice(body));
        }
        Some(Self { run, statement: statement? })
    }

    /// The same, of a statement of this name that is there for as long as it takes.
    fn under(&self, name: &[u8], parse: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.run.len() + parse.len() + 4 * name.len());
        frame(&mut out, frontend::PARSE, |out| {
            out.extend_from_slice(name);
            out.extend_from_slice(parse); // begins with the end of an empty name
        });
        for (tag, body) in messages(&self.run) {
            frame(&mut out, tag, |out| match tag {
                frontend::BIND => {
                    // Portal and statement have no name: two ends of names.
                    out.push(0);
                    out.extend_from_slice(name);
                    out.extend_from_slice(&body[1..]);
                }
                _ => out.extend_from_slice(body),
            });
        }
        frame(&mut out, frontend::CLOSE, |out| {
            out.push(b'S');
            out.extend_from_slice(name);
            out.push(0);
        });
        out
    }
}

/// The Parse of a unit that makes the unnamed statement.
fn parse_of(unit: Arrived<'_>) -> Option<Vec<u8>> {
    let is_unnamed = |body: &[u8]| body.first() == Some(&0);
    let (tag, body) = unit.messages().find(|(tag, body)| *tag == frontend::PARSE && is_unnamed(body))?;
    let mut parse = Vec::with_capacity(HEADER_BYTES + body.len());
    frame(&mut parse, tag, |out| out.extend_from_slice(body));
    Some(parse)
}

/// Runs on the server what was answered from memory.
fn put(core: &mut Core, unseen: &[u8]) {
    for (tag, _) in messages(unseen) {
        let expect = match tag {
            frontend::PARSE => Expect::Parse,
            frontend::BIND => Expect::Bind,
            frontend::DESCRIBE => Expect::DescribePortal,
            frontend::CLOSE => Expect::Close,
            _ => Expect::Execute,
        };
        core.owe_own(Due::own(Service::Unseen, expect));
    }
    core.server_outbox().extend_from_slice(unseen);
}

/// What a unit does with the unnamed statement and the unnamed portal.
#[derive(Clone, Copy, Default)]
struct Unnamed {
    makes_statement: bool,
    makes_portal: bool,
    /// It uses the statement before it makes one.
    asks_statement: bool,
    /// It closes the statement before it makes one.
    closes_statement: bool,
    /// It describes or executes the portal before it makes one.
    asks_portal: bool,
    /// It closes the portal before it makes one.
    closes_portal: bool,
    /// A text of it may list portals.
    lists_portals: bool,
}

/// Where a text finds the portals of its session, the unnamed one among them.
const PORTALS: &[u8] = b"pg_cursor";

/// Whether a text may list portals.
fn lists_portals(text: &[u8]) -> bool {
    place_of(text, PORTALS).is_some()
}

impl Unnamed {
    /// What a unit may do that is not looked into.
    const ALL: Self = Self {
        makes_statement: true,
        makes_portal: false,
        asks_statement: true,
        closes_statement: false,
        asks_portal: true,
        closes_portal: false,
        lists_portals: false,
    };

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
            frontend::PARSE => {
                let parse = Parse::decode(body).ok()?;
                self.makes_statement |= parse.statement.is_empty();
                self.lists_portals |= lists_portals(parse.text);
            }
            frontend::BIND => {
                let bind = Bind::decode(body).ok()?;
                self.asks_statement |= bind.statement.is_empty() && !self.makes_statement;
                self.makes_portal |= bind.portal.is_empty();
            }
            frontend::DESCRIBE | frontend::CLOSE => match StatementOrPortal::decode(body).ok()? {
                StatementOrPortal::Statement(name) => {
                    let asks = if tag == frontend::CLOSE {
                        &mut self.closes_statement
                    } else {
                        &mut self.asks_statement
                    };
                    *asks |= name.is_empty() && !self.makes_statement;
                }
                StatementOrPortal::Portal(name) => {
                    let asks =
                        if tag == frontend::CLOSE { &mut self.closes_portal } else { &mut self.asks_portal };
                    *asks |= name.is_empty() && !self.makes_portal;
                }
            },
            frontend::EXECUTE => {
                let asks = body.first() == Some(&0) || self.lists_portals;
                self.asks_portal |= asks && !self.makes_portal;
            }
            _ => {}
        }
        Some(())
    }

    /// Whether it leaves the portal without its statement.
    fn replaces_statement(self) -> bool {
        (self.makes_statement || self.closes_statement) && !self.makes_portal
    }
}
