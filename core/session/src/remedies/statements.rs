//! The remedy `statements`: a Parse, with its Describe, that the server has answered before is sent at once and answered
//! at once, so that the Bind follows in the same trip.
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
//! Where the server says something else than was told, what the unit behind it comes to is dropped, and the client gets
//! the error that a change between its Parse and its Bind would have given it.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use onetrip_ledger::{Moment, Remedy, TransactionStatus};
use onetrip_sql::purity::is_harmless_parameter_type;
use onetrip_wire::pg::{
    Bind, Execute, ParameterDescription, Parse, StatementOrPortal, TransactionStatus as WireStatus, backend,
    encode_ready_for_query, frame, frontend,
};

use super::Rule;
use super::inquiry::Question;
use super::refusal::{Broken, Refusal, statement_refused};
use super::remedy::Cx;
use super::watching::Watching;
use crate::contract::{SessionError, Verdict};
use crate::events::Event;
use crate::facts::common::{Description, key};
use crate::facts::{Place, Verdict as Proof};
use crate::reading::Effect;
use crate::remedies::Session;
use crate::reply_queue::{Due, Expect, Taker};
use crate::services::Arrived;
use crate::services::{Own, Said};
use crate::slots::Slot;

/// What the session knows of the statements that are told, and learns of all.
#[derive(Debug, Default)]
pub(crate) struct Statements {
    pub(super) told: Told,
    pub(crate) watching: Watching,
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
            | Event::LevelChanges
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
pub(super) struct Sent {
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
struct Prepare<'a> {
    parse: Parse<'a>,
    describes: bool,
}

impl<'a> Prepare<'a> {
    /// Parse and Sync, or Parse and Describe of the same statement with Sync or Flush.
    fn read(unit: Arrived<'a>) -> Option<Self> {
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
fn parse_with(parse: Parse<'_>, told: Option<&Description>) -> (Vec<u8>, bool) {
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
pub(super) fn bound(unit: Arrived<'_>) -> Option<&[u8]> {
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

impl Session {
    /// What becomes of a unit behind a statement that was told and is not confirmed (rules S2 and S6).
    pub(crate) fn behind_told(&mut self, now: Moment, input: &[u8]) -> Result<Option<Verdict>, SessionError> {
        match &self.statements.told.state {
            State::Refusing(_) => return Ok(Some(Verdict::Hold)),
            State::Sent(sent) => {
                let unit = Arrived::peek(input).filter(|unit| runs(*unit, &sent.name));
                return Ok(match unit.filter(|_| sent.behind.is_none()) {
                    Some(unit) => Some(self.send_behind(now, unit)),
                    None => Rule::OnlyItsBind.is_kept().then_some(Verdict::Hold),
                });
            }
            State::None if !self.statements.told.has_broken => return Ok(None),
            State::None => {}
        }
        let unit = Arrived::peek(input);
        if let Some((unit, name)) = unit.and_then(|unit| Some((unit, bound(unit)?))) {
            if let Some(verdict) = self.run_broken(now, unit, name) {
                return Ok(Some(verdict));
            }
        }
        if self.statements.told.is_ahead_failed && input.first() != Some(&frontend::TERMINATE) {
            return Err(statement_refused(&mut self.core));
        }
        Ok(None)
    }

    /// Answers the unit in `input` if it prepares a statement that is known.
    pub(crate) fn answer_prepare(&mut self, now: Moment, input: &[u8]) -> Option<Verdict> {
        let is_alive = matches!(self.core.status(), TransactionStatus::Idle | TransactionStatus::Active);
        if !self.may_remedy(Remedy::Statements) || !is_alive || !self.is_quiet() {
            return None;
        }
        let unit = Arrived::peek_flushed(input)?;
        let prepare = Prepare::read(unit)?;
        let Parse { statement: name, text, .. } = prepare.parse;
        let key = key(text, prepare.parse.parameter_oids())?;
        self.prove(now);
        let common = Arc::clone(&self.config.common);
        let is_known_somewhere = common.descriptions.has_somewhere(self.facts.database_name(), &key);
        if self.is_awaited() && is_known_somewhere {
            return Some(Verdict::Hold); // it is on its way, and so the Bind's reply is not later than without
        }
        self.facts.renew_settings(now);
        let Some(place) = self.facts.place(now).cloned() else {
            self.miss_place(now, text, is_known_somewhere);
            return None;
        };
        if !self.facts.is_free(&self.core, name) && Rule::FreeName.is_kept() {
            return None;
        }
        let entry = common.descriptions.get(&place, &key)?;
        let epoch = self.facts.changes().epoch();
        let is_fresh =
            if prepare.describes { entry.is_described(now, epoch) } else { entry.is_accepted(now, epoch) };
        let is_sure = is_fresh && self.is_read_as_told();
        if !is_sure && Rule::SameKey.is_kept() {
            return None;
        }
        let description = prepare.describes.then(|| entry.description().cloned()).flatten();
        if prepare.describes && description.is_none() {
            return None;
        }
        let reads = description.as_ref().is_none_or(|told| self.reads_with(now, text, told));
        let writes = description.as_ref().is_some_and(|told| self.only_writes(text, told));
        if !reads && !writes && Rule::MayShare.is_kept() {
            return None;
        }
        self.facts.want_acts(now);
        if self.facts.changes().acts(now).is_none() && Rule::SameKey.is_kept() {
            return None;
        }
        let types = description.as_deref().filter(|_| Rule::PinnedTypes.is_kept());
        let (parse, is_pinned) = parse_with(prepare.parse, types);
        self.facts.used();
        self.statements.told.state = State::Sent(Box::new(Sent {
            unit: 0,
            name: name.to_vec(),
            place,
            key,
            parse,
            description: description.clone(),
            status: None,
            behind: None,
            may_be_dropped: reads,
            error: None,
            is_failed: false,
            is_outdated: false,
        }));
        Some(self.tell_prepared(now, unit, is_pinned, description.as_deref()))
    }

    /// A Parse could be answered if the session's state and settings were known, and what was read since proven. Behind a
    /// read they still are when the next Parse comes; behind anything else they have to be asked for again at once.
    fn miss_place(&mut self, now: Moment, text: &[u8], is_known_somewhere: bool) {
        let (effect, _) = self.effect_of(text);
        self.facts.miss_settings(is_known_somewhere && effect != Effect::Read);
        if is_known_somewhere {
            self.facts.want_proofs(now);
            self.facts.want_acts(now);
        }
    }

    /// Whether the server is about to say what is not known.
    fn is_awaited(&self) -> bool {
        let is_asked = |wanted: Question| self.inquiries.is_asked(|asked| asked == wanted);
        self.facts.is_state_awaited() && is_asked(Question::State)
            || self.facts.is_known() && (is_asked(Question::Names) || is_asked(Question::Settings))
    }

    /// Whether the server surely reads a text as it did for the sessions that asked.
    pub(super) fn is_read_as_told(&self) -> bool {
        self.facts.settings.are_plain() && !self.facts.transaction.may_define()
    }

    /// Whether the statement does nothing but read, with parameters of these types (rule S1).
    fn reads_with(&mut self, now: Moment, text: &[u8], told: &Description) -> bool {
        let types = ParameterDescription::decode(&told.parameters);
        let is_harmless = types.is_ok_and(|types| types.oids().all(is_harmless_parameter_type));
        let (effect, template) = self.effect_of(text);
        if !is_harmless || effect != Effect::Read {
            return false;
        }
        let proof = self.verdict(now, template);
        if proof == Proof::Open {
            self.facts.want_proof(now, template);
        }
        proof == Proof::Reads
    }

    /// Whether the statement is an INSERT, UPDATE, DELETE or MERGE that returns no rows, whatever its tables are (rule S1).
    fn only_writes(&mut self, text: &[u8], told: &Description) -> bool {
        const RETURNING: &[u8] = b"returning";
        let mut words = text.windows(RETURNING.len());
        let (effect, _) = self.effect_of(text);
        told.row.is_none()
            && effect == Effect::WritesRows
            && !words.any(|word| word.eq_ignore_ascii_case(RETURNING))
    }

    /// Sends the unit on and tells the client what the server will say to it.
    fn tell_prepared(
        &mut self,
        now: Moment,
        unit: Arrived<'_>,
        is_pinned: bool,
        description: Option<&Description>,
    ) -> Verdict {
        let ends_with_sync = unit.messages().any(|(tag, _)| tag == frontend::SYNC);
        if let State::Sent(sent) = &self.statements.told.state {
            if is_pinned {
                self.core.server_outbox().extend_from_slice(&sent.parse);
            }
        }
        self.core.set_taker(Remedy::Statements);
        for (tag, body) in unit.messages() {
            if is_pinned && tag != frontend::PARSE {
                frame(self.core.server_outbox(), tag, |out| out.extend_from_slice(body));
            }
            self.book_request(now, tag, body, true);
            if is_pinned {
                // What is said about other types teaches nothing about the client's text.
                self.statements.watching.ignore();
            }
        }
        self.core.set_taker(Taker::Client);
        let number = self.core.units().newest();
        let status = match self.core.status() {
            TransactionStatus::Active => WireStatus::Active,
            _ => WireStatus::Idle,
        };
        let reply_at = self.core.client_outbox().len();
        let out = self.core.client_outbox();
        frame(out, backend::PARSE_COMPLETE, |_| ());
        if let Some(told) = description {
            frame(out, backend::PARAMETER_DESCRIPTION, |out| out.extend_from_slice(&told.parameters));
            match &told.row {
                Some(row) => frame(out, backend::ROW_DESCRIPTION, |out| out.extend_from_slice(row)),
                None => frame(out, backend::NO_DATA, |_| ()),
            }
        }
        if ends_with_sync {
            encode_ready_for_query(out, status);
        }
        let reply = self.core.client_outbox().len() - reply_at;
        if let State::Sent(sent) = &mut self.statements.told.state {
            sent.unit = number;
            sent.status = ends_with_sync.then_some(status.letter());
        }
        self.book_told(number, description);
        self.core.answered_by(number, Remedy::Statements);
        self.core.bytes_sent(unit.len());
        self.core.bytes_received(number, reply, now);
        self.book_answered(now);
        if is_pinned { Verdict::Replace(unit.len()) } else { Verdict::Forward(unit.len()) }
    }

    /// Books what the client was told about its statement.
    fn book_told(&mut self, unit: u64, description: Option<&Description>) {
        let Some(told) = description else { return };
        let due = Due::of_client(Expect::DescribeStatement, unit, Some(0));
        self.book_part(due, backend::PARAMETER_DESCRIPTION, &told.parameters, true);
        if let Some(row) = &told.row {
            self.book_part(due, backend::ROW_DESCRIPTION, row, true);
        }
    }

    /// Sends the unit that runs the statement.
    fn send_behind(&mut self, now: Moment, unit: Arrived<'_>) -> Verdict {
        self.tell(&Event::Followed);
        if let State::Sent(sent) = &self.statements.told.state {
            let parse = sent.parse.clone();
            self.runs_behind(now, unit, &parse);
        }
        self.book_unit(now, unit, Taker::Client);
        if let State::Sent(sent) = &mut self.statements.told.state {
            sent.behind = Some(self.core.units().newest());
        }
        self.core.bytes_sent(unit.len());
        self.ask_for_level(now);
        Verdict::Forward(unit.len())
    }
}
