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

use std::collections::VecDeque;
use std::sync::Arc;

use onetrip_ledger::{Moment, Remedy, TransactionStatus};
use onetrip_sql::purity::is_harmless_parameter_type;
use onetrip_wire::pg::{
    Bind, ErrorFields, ErrorResponse, Execute, HEADER_BYTES, ParameterDescription, Parse, Severity,
    StatementOrPortal, TransactionStatus as WireStatus, backend, encode_error, encode_ready_for_query, frame,
    frontend,
};

use super::Rule;
use super::arrived::Arrived;
use super::descriptions::{Asked, Description, Stamp, key};
use super::inquiry::Question;
use super::transaction::Effect;
use crate::reply_queue::{Due, Expect, Owner, Reply};
use crate::session::{Session, SessionError, Verdict};

/// What the session knows about statements that it answers before the server.
#[derive(Debug, Default)]
pub(crate) struct Told {
    state: State,
    /// For each Parse and each Describe of a statement that the server owes a reply: what may be learned of it.
    watched: VecDeque<Option<Arc<Asked>>>,
    /// What the next of them may teach.
    next: Option<Arc<Asked>>,
    /// The last Parse: its unit, its name, and what it may teach.
    parsed: Option<(u64, Vec<u8>, Arc<Asked>)>,
    /// The parameters that the statement being described has.
    parameters: Vec<u8>,
    /// A statement that was told is not there, or is another.
    has_broken: bool,
    /// The server's transaction has failed, or it skips, and the client does not know.
    is_ahead_failed: bool,
    names: Names,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    None,
    /// The server has not confirmed what was told.
    Sent(Box<Sent>),
    /// It has said something else, and the unit behind it is to fail.
    Refusing(Box<Refusal>),
}

/// A statement that was told.
#[derive(Debug)]
struct Sent {
    unit: u64,
    name: Vec<u8>,
    key: Box<[u8]>,
    /// What was told of it; none where only Parse was answered.
    description: Option<Arc<Description>>,
    /// What ReadyForQuery said; none where none was told.
    status: Option<u8>,
    /// The unit that runs it, if that has been sent.
    behind: Option<u64>,
    /// It does nothing but read, or nothing was told of its result.
    may_be_dropped: bool,
    /// What the client's Bind is to fail with.
    error: Option<Vec<u8>>,
    /// It is the Parse that failed.
    is_failed: bool,
}

/// A unit that is to fail.
#[derive(Debug)]
struct Refusal {
    unit: u64,
    error: Vec<u8>,
    /// The server's transaction is being made to fail.
    is_failing: bool,
}

/// Whether the names of the session's statements are surely known.
#[derive(Debug, Default)]
struct Names {
    /// Something ran that may have made one by SQL.
    doubted: bool,
    /// A Close may not have been run.
    lost: bool,
    /// The doubt was in the way.
    wanted: bool,
    /// The server was asked, and nothing that may make one was sent since.
    asked: bool,
}

/// What a client's unit that prepares a statement says.
struct Prepare<'a> {
    parse: Parse<'a>,
    describes: bool,
    ends_with_sync: bool,
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
        let ends_with_sync = tag == frontend::SYNC;
        let is_end = ends_with_sync || describes && tag == frontend::FLUSH;
        let is_plain = is_end && body.is_empty() && messages.next().is_none();
        is_plain.then_some(Self { parse, describes, ends_with_sync })
    }
}

/// Whether a unit does nothing but run the statement of this name once.
fn runs(unit: Arrived<'_>, name: &[u8]) -> bool {
    bound(unit).is_some_and(|bound| bound == name)
}

/// The statement that a unit runs once, if it does nothing else: Bind, Describe, Execute, Close, all of one portal.
fn bound(unit: Arrived<'_>) -> Option<&[u8]> {
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

/// Where the reply to this is watched.
fn is_watched(due: &Due) -> bool {
    matches!(due.expect, Expect::Parse | Expect::DescribeStatement)
        && matches!(due.owner, Owner::Client | Owner::Statements)
}

impl Told {
    /// A message that the server will answer goes to it.
    pub(crate) fn sent(&mut self, due: &Due) {
        if is_watched(due) {
            self.watched.push_back(self.next.take());
        }
    }

    /// Something runs that may make a statement by SQL.
    pub(crate) fn doubt_names(&mut self) {
        self.names.doubted = true;
        self.names.asked = false;
    }

    /// The server skips a message.
    pub(crate) fn is_skipped(&mut self, due: &Due) {
        self.next = None;
        self.names.lost |=
            due.expect == Expect::Close && due.owner != Owner::Inquiry && due.owner != Owner::Begin;
    }

    /// No statement is left.
    pub(crate) fn names_cleared(&mut self) {
        self.names.lost = false;
    }

    /// The server says whether there are statements made by SQL.
    pub(crate) fn learn_names(&mut self, has_any: bool) {
        self.names.doubted = has_any || !self.names.asked;
    }
}

impl Session {
    /// What becomes of a unit behind a statement that was told and is not confirmed (rules S2 and S6).
    pub(crate) fn behind_told(&mut self, now: Moment, input: &[u8]) -> Result<Option<Verdict>, SessionError> {
        match &self.told.state {
            State::Refusing(_) => return Ok(Some(Verdict::Hold)),
            State::Sent(sent) => {
                let unit = Arrived::peek(input).filter(|unit| runs(*unit, &sent.name));
                return Ok(match unit.filter(|_| sent.behind.is_none()) {
                    Some(unit) => Some(self.send_behind(now, unit)),
                    None => Rule::OnlyItsBind.is_kept().then_some(Verdict::Hold),
                });
            }
            State::None if !self.told.has_broken => return Ok(None),
            State::None => {}
        }
        let unit = Arrived::peek(input);
        if let Some((unit, error)) = unit.and_then(|unit| Some((unit, self.broken(bound(unit)?)?))) {
            return Ok(Some(self.refuse_unit(now, unit, error)));
        }
        if self.told.is_ahead_failed && input.first() != Some(&frontend::TERMINATE) {
            return Err(self.statement_refused());
        }
        Ok(None)
    }

    /// Whether a message needs a statement that was told and is not there: only a unit that runs it alone can be told.
    pub(crate) fn needs_broken(&self, tag: u8, body: &[u8]) -> bool {
        let name = match tag {
            frontend::BIND => Bind::decode(body).ok().map(|bind| bind.statement),
            frontend::DESCRIBE => match StatementOrPortal::decode(body) {
                Ok(StatementOrPortal::Statement(name)) => Some(name),
                _ => None,
            },
            _ => None,
        };
        self.told.has_broken && name.is_some_and(|name| self.broken(name).is_some())
    }

    /// What a Bind of this statement is to fail with.
    fn broken(&self, name: &[u8]) -> Option<Vec<u8>> {
        self.prepared.get(name)?.broken.clone()
    }

    pub(crate) fn statement_refused(&mut self) -> SessionError {
        let message = "the server refused a statement whose Parse onetrip had answered";
        let hint = "Connect again; leave the remedy out by --remedies exact,-statements.";
        self.refuse("08006", message, Some(hint));
        SessionError::StatementRefused
    }

    /// Answers the unit in `input` if it prepares a statement that is known.
    pub(crate) fn answer_prepare(&mut self, now: Moment, input: &[u8]) -> Option<Verdict> {
        let is_alive = matches!(self.status, TransactionStatus::Idle | TransactionStatus::Active);
        if !self.may_remedy(Remedy::Statements) || !is_alive || !self.is_quiet() {
            return None;
        }
        let unit = Arrived::peek_flushed(input)?;
        let prepare = Prepare::read(unit)?;
        let Parse { statement: name, text, .. } = prepare.parse;
        let key = key(text, prepare.parse.parameter_oids())?;
        if !self.is_free(name) && Rule::FreeName.is_kept() {
            return None;
        }
        self.prove(now);
        let common = Arc::clone(&self.config.common);
        let is_awaited = self.facts.is_state_awaited() && self.inquiries.is_asked(Question::State);
        if is_awaited && common.descriptions.has_somewhere(self.facts.place(), &key) {
            return Some(Verdict::Hold); // it is on its way, and so the Bind's reply is not later than without
        }
        let entry = common.descriptions.get(self.facts.place(), &key)?;
        let epoch = common.knowledge.epoch();
        let is_fresh =
            if prepare.describes { entry.is_described(now, epoch) } else { entry.is_accepted(now, epoch) };
        let is_sure = is_fresh && self.is_place_known();
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
        self.told.state = State::Sent(Box::new(Sent {
            unit: 0,
            name: name.to_vec(),
            key,
            description: description.clone(),
            status: None,
            behind: None,
            may_be_dropped: reads,
            error: None,
            is_failed: false,
        }));
        Some(self.tell(now, unit, &prepare, description.as_deref()))
    }

    /// Whether the server surely resolves names as it did for the sessions that asked.
    fn is_place_known(&self) -> bool {
        self.facts.is_known() && self.standard_strings && self.is_utf8 && !self.transaction.may_define
    }

    /// Whether a Parse of this name is surely not refused because there is one (rule S4).
    fn is_free(&mut self, name: &[u8]) -> bool {
        if name.is_empty() {
            return true;
        }
        self.told.names.wanted |= self.told.names.doubted;
        let is_sure = !self.told.names.doubted && !self.told.names.lost && self.prepared.has_room();
        is_sure && self.prepared.get(name).is_none()
    }

    /// Whether the statement does nothing but read, with parameters of these types (rule S1).
    fn reads_with(&mut self, now: Moment, text: &[u8], told: &Description) -> bool {
        let types = ParameterDescription::decode(&told.parameters);
        let is_harmless = types.is_ok_and(|types| types.oids().all(is_harmless_parameter_type));
        let (effect, template) = self.effect_of(text);
        is_harmless && effect == Effect::Read && self.only_reads(now, template)
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
    fn tell(
        &mut self,
        now: Moment,
        unit: Arrived<'_>,
        prepare: &Prepare<'_>,
        description: Option<&Description>,
    ) -> Verdict {
        let is_pinned = description.is_some_and(|told| self.pin(prepare.parse, told));
        self.owner = Owner::Statements;
        for (tag, body) in unit.messages() {
            if is_pinned && tag != frontend::PARSE {
                frame(&mut self.to_server, tag, |out| out.extend_from_slice(body));
            }
            self.book_request(now, tag, body, true);
            if is_pinned {
                // What is said about other types teaches nothing about the client's text.
                self.told.parsed = None;
                self.told.watched.iter_mut().for_each(|watched| *watched = None);
            }
        }
        self.owner = Owner::Client;
        let number = self.units.newest();
        let status = match self.status {
            TransactionStatus::Active => WireStatus::Active,
            _ => WireStatus::Idle,
        };
        let reply_at = self.to_client.len();
        let out = &mut self.to_client;
        frame(out, backend::PARSE_COMPLETE, |_| ());
        if let Some(told) = description {
            frame(out, backend::PARAMETER_DESCRIPTION, |out| out.extend_from_slice(&told.parameters));
            match &told.row {
                Some(row) => frame(out, backend::ROW_DESCRIPTION, |out| out.extend_from_slice(row)),
                None => frame(out, backend::NO_DATA, |_| ()),
            }
        }
        if prepare.ends_with_sync {
            encode_ready_for_query(out, status);
        }
        let reply = self.to_client.len() - reply_at;
        if let State::Sent(sent) = &mut self.told.state {
            sent.unit = number;
            sent.status = prepare.ends_with_sync.then_some(status.letter());
        }
        self.book_told(number, description);
        self.units.answered_by(number, Remedy::Statements);
        self.units.bytes_sent(unit.len());
        self.units.bytes_received(number, reply, now);
        self.book_answered(now);
        if is_pinned { Verdict::Replace(unit.len()) } else { Verdict::Forward(unit.len()) }
    }

    /// Puts the Parse with the types that are told, unless the client has fixed them itself (rule S5).
    fn pin(&mut self, parse: Parse<'_>, told: &Description) -> bool {
        let Ok(types) = ParameterDescription::decode(&told.parameters) else { return false };
        if types.oids().eq(parse.parameter_oids()) || !Rule::PinnedTypes.is_kept() {
            return false;
        }
        frame(&mut self.to_server, frontend::PARSE, |out| {
            for text in [parse.statement, parse.text] {
                out.extend_from_slice(text);
                out.push(0);
            }
            out.extend_from_slice(&told.parameters); // a count and types, as Parse has them
        });
        true
    }

    /// Books what the client was told about its statement.
    fn book_told(&mut self, unit: u64, description: Option<&Description>) {
        let Some(told) = description else { return };
        let expect = Expect::DescribeStatement;
        let due = Due { expect, unit, statement: Some(0), owner: Owner::Client };
        self.book_part(due, backend::PARAMETER_DESCRIPTION, &told.parameters, true);
        if let Some(row) = &told.row {
            self.book_part(due, backend::ROW_DESCRIPTION, row, true);
        }
    }

    /// Sends the unit that runs the statement.
    fn send_behind(&mut self, now: Moment, unit: Arrived<'_>) -> Verdict {
        self.begin.is_followed();
        for (tag, body) in unit.messages() {
            self.book_request(now, tag, body, true);
        }
        if let State::Sent(sent) = &mut self.told.state {
            sent.behind = Some(self.units.newest());
        }
        self.units.bytes_sent(unit.len());
        Verdict::Forward(unit.len())
    }

    /// Sends a unit that runs a statement which is not there so that it fails, and its transaction with it.
    fn refuse_unit(&mut self, now: Moment, unit: Arrived<'_>, error: Vec<u8>) -> Verdict {
        self.begin.is_followed();
        self.owner = Owner::Statements;
        for (tag, body) in unit.messages() {
            match Bind::decode(body) {
                Ok(bind) if tag == frontend::BIND => {
                    Bind { statement: self.inquiries.nowhere(), ..bind }.encode(&mut self.to_server);
                }
                _ => frame(&mut self.to_server, tag, |out| out.extend_from_slice(body)),
            }
            self.book_request(now, tag, body, true);
        }
        self.owner = Owner::Client;
        self.told.is_ahead_failed = false;
        let number = self.units.newest();
        self.units.owes(number);
        self.units.bytes_sent(unit.len());
        self.told.state = State::Refusing(Box::new(Refusal { unit: number, error, is_failing: false }));
        Verdict::Replace(unit.len())
    }

    /// The server answers what was told, or a unit that is to fail.
    pub(crate) fn statements_reply(
        &mut self,
        now: Moment,
        tag: u8,
        reply: Reply,
        message: &[u8],
    ) -> Result<Verdict, SessionError> {
        let body = &message[HEADER_BYTES..];
        let is_failed = matches!(reply, Reply::Failed(_));
        if is_failed && ErrorResponse::decode(body).is_ok_and(|error| error.is_fatal()) {
            return Ok(Verdict::Forward(message.len()));
        }
        let is_last = matches!(reply, Reply::Last(_));
        if let State::Refusing(_) = self.told.state {
            let is_end = is_last && tag == backend::READY_FOR_QUERY;
            return if is_end { self.refuse_now(now, message) } else { Ok(Verdict::Replace(message.len())) };
        }
        let State::Sent(sent) = &mut self.told.state else { return Ok(Verdict::Replace(message.len())) };
        if is_failed {
            sent.error = Some(message.to_vec());
            sent.is_failed = true;
        } else if !sent.is_told(tag, body) {
            sent.error.get_or_insert_with(another_result);
        }
        if !self.queue.owes(Owner::Statements) {
            self.told_is_answered()?;
        }
        Ok(Verdict::Replace(message.len()))
    }

    /// The server has said all about what was told.
    fn told_is_answered(&mut self) -> Result<(), SessionError> {
        let State::Sent(sent) = std::mem::take(&mut self.told.state) else { return Ok(()) };
        let sent = *sent;
        let Some(error) = sent.error else { return Ok(()) };
        self.config.common.descriptions.forget(self.facts.place(), &sent.key);
        self.prepared.for_each(|prepared| prepared.fails_in(sent.unit));
        if let Some(unit) = sent.behind {
            if !sent.is_failed && !sent.may_be_dropped {
                return Err(self.statement_refused()); // it has run, and the server breaks its own rules
            }
            let owed = self.queue.hand_over(unit, Owner::Statements);
            for _ in 1..owed {
                self.units.settled(unit);
            }
            self.told.state = State::Refusing(Box::new(Refusal { unit, error, is_failing: false }));
            return Ok(());
        }
        if let Some(prepared) = self.prepared.get_mut(&sent.name) {
            prepared.broken = Some(error);
        }
        self.told.has_broken = true;
        let is_open = sent.status.is_none() || self.status == TransactionStatus::Active;
        self.told.is_ahead_failed = sent.is_failed && is_open;
        Ok(())
    }

    /// The server has ended the unit that is to fail: its transaction fails, then the client is told (rule S2).
    fn refuse_now(&mut self, now: Moment, ready: &[u8]) -> Result<Verdict, SessionError> {
        let State::Refusing(mut refusal) = std::mem::take(&mut self.told.state) else {
            return Ok(Verdict::Replace(ready.len()));
        };
        if ready.ends_with(b"T") && Rule::BothFail.is_kept() {
            if refusal.is_failing {
                return Err(self.statement_refused());
            }
            let statement = self.inquiries.nowhere();
            let (parameter_formats, parameters) = Default::default();
            let result_formats = Default::default();
            Bind { portal: statement, statement, parameter_formats, parameters, result_formats }
                .encode(&mut self.to_server);
            frame(&mut self.to_server, frontend::SYNC, |_| ());
            for expect in [Expect::Bind, Expect::Sync] {
                self.queue.sent(Due::own(Owner::Statements, expect));
            }
            refusal.is_failing = true;
            self.told.state = State::Refusing(refusal);
            return Ok(Verdict::Replace(ready.len()));
        }
        let Refusal { unit, error, .. } = *refusal;
        let due = Due { expect: Expect::Sync, unit, statement: Some(0), owner: Owner::Client };
        self.book_failure(due, &error[HEADER_BYTES..]);
        self.book_part(due, backend::READY_FOR_QUERY, &ready[HEADER_BYTES..], true);
        self.units.bytes_received(unit, error.len() + ready.len(), now);
        self.to_client.extend_from_slice(&error);
        if let Verdict::Forward(_) = self.pass_kept(ready) {
            self.to_client.extend_from_slice(ready);
        }
        self.units.settled(unit);
        self.book_answered(now);
        Ok(Verdict::Replace(ready.len()))
    }

    /// A Parse of the client's is about to be sent: whether the server accepts it will be known.
    pub(crate) fn watch_parse(&mut self, now: Moment, unit: u64, parse: Parse<'_>) {
        self.told.parsed = None;
        if !self.may_remedy(Remedy::Statements)
            || !self.standard_strings
            || !self.is_utf8
            || self.transaction.may_define
        {
            return;
        }
        let stamp = Stamp { sent_at: now, epoch: self.config.common.knowledge.epoch() };
        if let Some(asked) = Asked::new(parse.text, parse.parameter_oids(), stamp) {
            let asked = Arc::new(asked);
            self.told.next = Some(Arc::clone(&asked));
            self.told.parsed = Some((unit, parse.statement.to_vec(), asked));
        }
    }

    /// A Describe of a statement is about to be sent.
    pub(crate) fn watch_describe(&mut self, unit: u64, name: &[u8]) {
        let parsed = self.told.parsed.as_ref().filter(|(parsed_in, parsed, _)| {
            *parsed_in == unit && parsed == name // the types are those that it gets today
        });
        self.told.next = parsed.map(|(_, _, asked)| Arc::clone(asked));
    }

    /// Learns from what the server says; `dropped` will not be answered.
    pub(crate) fn see_reply(
        &mut self,
        now: Moment,
        tag: u8,
        reply: Reply,
        body: Option<&[u8]>,
        dropped: &[Due],
    ) {
        let told = &mut self.told;
        match reply {
            Reply::Async if tag == backend::NOTICE_RESPONSE => {
                // It is a part of the reply that would not be told.
                if self.queue.front().is_some_and(|front| is_watched(&front)) {
                    let noisy = told.watched.front().cloned().flatten();
                    let is_noisy =
                        |one: &Arc<Asked>| noisy.as_ref().is_some_and(|noisy| Arc::ptr_eq(one, noisy));
                    for watched in &mut told.watched {
                        *watched = watched.take().filter(|one| !is_noisy(one));
                    }
                }
            }
            Reply::Part(due) if is_watched(&due) && tag == backend::PARAMETER_DESCRIPTION => {
                told.parameters.clear();
                match body.filter(|_| told.watched.front().is_some_and(Option::is_some)) {
                    Some(body) => told.parameters.extend_from_slice(body),
                    None => told.watched.iter_mut().take(1).for_each(|watched| *watched = None),
                }
            }
            Reply::Last(due) if is_watched(&due) => {
                if let Some(asked) = told.watched.pop_front().flatten() {
                    self.learn_statement(now, tag, &asked, body);
                }
            }
            Reply::Failed(due) => {
                let lost = dropped.iter().chain([&due]).filter(|due| is_watched(due)).count();
                told.watched.drain(..lost.min(told.watched.len()));
                dropped.iter().for_each(|due| told.is_skipped(due));
            }
            _ => {}
        }
    }

    /// The server has accepted a Parse, or described its statement.
    fn learn_statement(&mut self, now: Moment, tag: u8, asked: &Asked, body: Option<&[u8]>) {
        self.prove(now);
        let common = Arc::clone(&self.config.common);
        if !self.is_place_known() || asked.epoch() != common.knowledge.epoch() {
            return;
        }
        let row = match tag {
            backend::PARSE_COMPLETE => return common.descriptions.accepted(self.facts.place(), asked),
            backend::ROW_DESCRIPTION => match body {
                Some(body) => Some(Box::from(body)),
                None => return,
            },
            _ => None,
        };
        let parameters = Box::from(self.told.parameters.as_slice());
        common.descriptions.described(self.facts.place(), asked, Description { parameters, row });
    }

    /// The server refused to run a plan: what is known here is of no use.
    pub(crate) fn forget_statements(&self) {
        self.config.common.descriptions.forget_all(self.facts.place());
    }

    /// Between transactions: asks whether there are statements made by SQL, if that was in the way (rule S4).
    pub(crate) fn inquire_names(&mut self) {
        let names = &mut self.told.names;
        if names.wanted && names.doubted && !names.asked {
            names.asked = true;
            names.wanted = false;
            self.ask(Question::Names, NAMES_QUERY, true);
        }
    }
}

/// Whether the session has statements that SQL has made.
const NAMES_QUERY: &str = "SELECT EXISTS (SELECT FROM pg_catalog.pg_prepared_statements WHERE from_sql)";

impl Sent {
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

/// What PostgreSQL says to a Bind of a statement whose result is another now (`RevalidateCachedQuery`).
fn another_result() -> Vec<u8> {
    let mut out = Vec::new();
    let message = "cached plan must not change result type";
    encode_error(&mut out, ErrorFields { severity: Severity::Error, sqlstate: "0A000", message, hint: None });
    out
}
